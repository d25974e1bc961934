"""Racing: what is dropped, and what never is."""

import random
import tempfile
import unittest
from pathlib import Path

import trial_samples
import unit  # noqa: F401
from trials.record import store
from trials.statistics import racing

FIGURES = "racing first_block=8 every=4 alpha=0.01 margin_ratio=1.02\n"
TEXT = "sort.threads default | 1 2 4\n" + FIGURES
SLOWER = {"threads=1": 1.3, "threads=2": 1.01}


def times(_scenario, name, _block, rng):
    return 2e7 * SLOWER.get(name, 1) * rng.uniform(0.995, 1.005)


def all_trials(design, times, blocks):
    """Every configuration in every block, as if nothing were dropped."""
    trials = []
    for block in range(blocks):
        for scenario in design["scenarios"]:
            for configuration in design["configurations"]:
                rng = random.Random(f"{block}:{scenario}:"
                                    f"{configuration['name']}")
                whole_ns = times(scenario, configuration["name"], block, rng)
                trials.append({
                    "block": block, "scenario": scenario,
                    "configuration": configuration["name"],
                    "outcome": "ok" if whole_ns else "failed",
                    "whole_ns": whole_ns})
    return trials


def dropped(times, block, text=TEXT, blocks=20, **options):
    design = trial_samples.make_design(sweep_text=text, trials=blocks,
                                       **options)
    return racing.dropped(design, all_trials(design, times, blocks), block)


class Racing(unittest.TestCase):
    def test_racing_decides(self):
        figures = {"first_block": 8, "every": 4}
        self.assertEqual([b for b in range(20) if racing.decides(figures, b)],
                         [8, 12, 16])
        self.assertFalse(racing.decides(None, 8))

    def test_racing_drops_what_is_slower(self):
        self.assertEqual(dropped(times, 7), set())
        self.assertEqual(dropped(times, 8), {"threads=1"})
        # threads=2 is surely slower, but by less than the margin.
        self.assertEqual(dropped(times, 20), {"threads=1"})

    def test_racing_margin(self):
        text = TEXT.replace("1.02", "1.005")
        self.assertEqual(dropped(times, 20, text), {"threads=1", "threads=2"})

    def test_racing_is_sure(self):
        """Far more than the margin, but it might be chance."""
        def noisy(_scenario, name, block, _rng):
            return 2e7 * (1.5 if name == "threads=1" and block % 2 else
                          1 + block / 1e6)
        text = TEXT.replace("1.02", "1")
        self.assertEqual(dropped(noisy, 8, text), set())

    def test_racing_alpha_is_adjusted(self):
        """A p-value that is below alpha by itself, but not among seven."""
        design = trial_samples.make_design(
            sweep_text="sort.threads default | 1 2 3 4 5 6 7\n" + FIGURES)
        figures = {**design["racing"], "alpha": 0.05}
        even = [100, 102, 104, 106, 108, 110, 112, 114]
        samples = {"reference": even, "slow": [n + 6 for n in even]}
        self.assertEqual(racing.losers(figures, samples, {"slow"}), {"slow"})
        others = {f"same{n}": [n / 1000 + value for value in even]
                  for n in range(6)}
        self.assertEqual(
            racing.losers(figures, {**samples, **others},
                          {"slow", *others}), set())

    def test_racing_keeps_reference_and_control(self):
        def worse(_scenario, name, _block, rng):
            bad = name in ("reference", "control", "threads=1")
            return 2e7 * (1.3 if bad else 1) * rng.uniform(0.995, 1.005)
        self.assertEqual(dropped(worse, 20), {"threads=1"})

    def test_racing_loses_in_every_scenario(self):
        def mixed(scenario, name, _block, rng):
            bad = {"cache": ("threads=1", "threads=4"),
                   "platter": ("threads=1",)}[scenario]
            return 2e7 * (1.3 if name in bad else 1) * rng.uniform(0.99, 1.01)
        self.assertEqual(dropped(mixed, 20, scenarios=["cache", "platter"]),
                         {"threads=1"})

    def test_racing_forgets_nothing(self):
        """What was slow at first stays out, though it would get better."""
        def warming(_scenario, name, block, rng):
            slow = name == "threads=1" and block < 8
            return 2e7 * (1.3 if slow else 0.9) * rng.uniform(0.99, 1.01)
        self.assertEqual(dropped(warming, 19), {"threads=1"})

    def test_racing_looks_not_ahead(self):
        """A reader has all trials; the runner had those before the block."""
        def cooling(_scenario, name, block, rng):
            slow = name == "threads=1" and block >= 8
            return 2e7 * (1.3 if slow else 1) * rng.uniform(0.99, 1.01)
        self.assertEqual(dropped(cooling, 8), set())

    def test_racing_failures_do_not_count(self):
        def failing(_scenario, name, block, rng):
            if name == "threads=4" and block != 3:
                return None
            return times(_scenario, name, block, rng)
        self.assertEqual(dropped(failing, 8), {"threads=1"})
        self.assertEqual(dropped(lambda *_: None, 20), set())

    def test_racing_wrong_output_wins_nothing(self):
        design = trial_samples.make_design(sweep_text=TEXT)
        trials = all_trials(design, lambda *_: 2e7, 20)
        for trial in trials:
            if trial["configuration"] == "threads=4":
                trial.update(outcome="wrong", whole_ns=1e7)
        self.assertEqual(racing.dropped(design, trials, 20), set())

    def test_racing_what_is_out_is_no_rival(self):
        """Old times of a dropped one, when all others have become slower."""
        def drifting(scenario, name, block, rng):
            return (3 if block >= 8 else 1) * times(scenario, name, block, rng)
        design = trial_samples.make_design(sweep_text=TEXT, trials=60)
        trials = [trial for trial in all_trials(design, drifting, 60)
                  if trial["configuration"] != "threads=1"
                  or trial["block"] < 8]
        self.assertEqual(racing.dropped(design, trials, 60), {"threads=1"})

    def test_racing_without(self):
        self.assertEqual(dropped(times, 20, TEXT.replace(FIGURES, "")), set())

    def test_racing_on_record(self):
        """A reader, which starts anew, drops what the writer dropped."""
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "run")
            trial_samples.make_record(path, times=times, sweep_text=TEXT,
                                      trials=13, most=50)
            with store.Record.open(path) as resumed:
                trial_samples.fill(resumed, times)
            run = store.read(path)
            self.assertTrue(run.complete)
            last = {name: max(t["block"] for t in run.trials
                              if t["configuration"] == name)
                    for name in ("reference", "control", "threads=1",
                                 "threads=2", "threads=4")}
            self.assertEqual(last, {"reference": 12, "control": 12,
                                    "threads=1": 7, "threads=2": 12,
                                    "threads=4": 12})
            race = racing.Race(run.design)
            for block in range(14):
                self.assertEqual(
                    race.dropped(run.trials, block),
                    racing.dropped(run.design, run.trials, block))


if __name__ == "__main__":
    unit.main()
