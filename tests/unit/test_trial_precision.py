"""trials.statistics.precision: a run ends when its times are known well
enough, and intervals hold what they are of."""

import importlib.util
import itertools
import random
import sys
import unittest
from pathlib import Path

import trial_samples
import unit
from trials.record import design as designs
from trials.statistics import precision

SOAK = Path(__file__).resolve().parent.parent / "soak"


def loaded(name):
    """A script of tests/soak as a module; it may import another one."""
    sys.path.append(str(SOAK))
    spec = importlib.util.spec_from_file_location(name, SOAK / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def trial(block, name, whole_ns, **runner):
    return {"block": block, "scenario": "cache", "configuration": name,
            "outcome": "ok", "whole_ns": whole_ns,
            "runner": {"prepare_ns": 0, **runner}}


class Precision(unittest.TestCase):
    def design(self, percent=1, max_seconds=100, names=("a", "b")):
        return {"seed": 1, "trials": 100, "scenarios": ["cache"],
                "until": {"percent": percent, "max_seconds": max_seconds},
                "configurations": [
                    {"name": name, "skipped": None, "role": "variant" if number
                     else "reference"} for number, name in enumerate(names)]}

    def alone(self):
        """A command, and the same again."""
        design = self.design(names=("a", "a (control)"))
        design["configurations"][1]["role"] = "control"
        return design

    def trials(self, blocks, spread, names=("a", "b"), seed=1):
        rng = random.Random(seed)
        return [trial(block, name, round(1e6 * rng.gauss(10, spread)))
                for block in range(blocks) for name in names]

    def ended(self, design, trials):
        """The block that is not run any more, and why."""
        asked = precision.Precision(design)
        for block in range(design["trials"]):
            why = asked.ends([t for t in trials if t["block"] < block], block)
            if why:
                return block, why
        return None

    def test_looks(self):
        self.assertEqual(list(itertools.islice(precision.looks(), 6)),
                         [20, 25, 31, 38, 47, 58])

    def test_narrow(self):
        """The wider the spread, the later the end."""
        ends = [self.ended(self.design(), self.trials(100, spread))
                for spread in (0.01, 0.2, 0.3)]
        self.assertEqual(ends[0], (20, precision.NARROW))
        self.assertTrue(20 < ends[1][0] < ends[2][0])
        self.assertIsNone(self.ended(self.design(), self.trials(100, 3)))

    def test_one_alone(self):
        """The median is asked for where there is nothing beside it."""
        for design in (self.design(names=("a",)), self.alone()):
            trials = self.trials(100, 0.1, names=[
                c["name"] for c in design["configurations"]])
            self.assertEqual([w.configuration for w in
                              precision.widths(design, trials)], ["a"])
            self.assertEqual(self.ended(design, trials)[1], precision.NARROW)

    def test_neighbours_that_resemble_each_other(self):
        """They know the median less well than as many others would."""
        rng = random.Random(4)
        values = [rng.gauss(10, 0.1) for _ in range(50)]
        steady = [round(1e6 * values[number // 2]) for number in range(100)]
        mixed = rng.sample(steady, 100)
        (narrow, middle), (wide, _) = map(precision.median, (mixed, steady))
        self.assertTrue(narrow.low < middle < narrow.high)
        self.assertGreater(wide.high - wide.low,
                           1.4 * (narrow.high - narrow.low))
        self.assertIsNone(precision.median([10, 11, 12, 13, 14, 15])[0])

    def test_all_are_known(self):
        """One that is not known well keeps all running; one that has been
        dropped does not."""
        names = ("a", "b", "c")
        design = self.design(names=names)
        trials = self.trials(100, 0.01, names)
        rng = random.Random(2)
        for each in trials:
            if each["configuration"] == "c":
                each["whole_ns"] *= rng.uniform(1, 2)
        self.assertIsNone(self.ended(design, trials))
        dropped = [t for t in trials
                   if t["configuration"] != "c" or t["block"] < 10]
        self.assertEqual(self.ended(design, dropped), (20, precision.NARROW))

    def test_time(self):
        """What the runner does counts, too."""
        trials = self.trials(100, 3)
        design = self.design(max_seconds=0.995)
        self.assertEqual(self.ended(design, trials)[1], precision.TIME)
        for each in trials:
            each["runner"].update(prepare_ns=40_000_000, noise_ns=50_000_000)
        self.assertEqual(self.ended(design, trials), (5, precision.TIME))

    def test_how_far_it_is(self):
        """What the line of progress shows."""
        asked, trials = precision.Precision(self.design()), self.trials(20, 3)
        asked.ends(trials[:38], 19)
        self.assertIsNone(asked.known)
        asked.ends(trials, 20)
        self.assertRegex(asked.known, r"^±[0-9.]+ %, 1 % wanted$")
        self.assertEqual(asked.left_ns, 100e9 - precision.spent_ns(trials))

    def test_no_time_without_success(self):
        trials = self.trials(100, 0.01)
        for each in trials:
            each.update(outcome="failed", whole_ns=None)
        self.assertIsNone(self.ended(self.design(), trials))
        self.assertIn("no interval yet",
                      precision.sentence(self.design(), trials))

    def test_not_asked(self):
        design = {**self.design(), "until": None}
        self.assertIsNone(self.ended(design, self.trials(50, 0.01)))
        self.assertIsNone(precision.sentence(design, self.trials(50, 0.01)))

    def test_schedule(self):
        design = trial_samples.make_design(trials=30)
        planned = list(designs.schedule(
            design, ends=lambda block: block == 7 and "narrow"))
        self.assertEqual(planned[-1].block, 6)

    def test_sentences(self):
        self.assertRegex(
            precision.sentence(self.design(), self.trials(20, 0.01)),
            r"^20 blocks: each is known to 1 % or better; the least known is "
            r"b \(±0\.[0-9]+ %\)\.$")
        self.assertIn("100 are all that are allowed", precision.sentence(
            self.design(), self.trials(100, 3)))
        few = self.trials(30, 3)
        self.assertIn("the run has not ended; the least", precision.sentence(
            self.design(), few))
        self.assertIn("the time, 0.5 s, is over; the least", precision.sentence(
            self.design(max_seconds=0.5), few))

    def test_widths_are_read_by_people(self):
        for percent, words in ((0.0123, "±0.012 %"), (9.54, "±9.5 %"),
                               (99.6, "±100 %"), (1402.3, "±1402 %")):
            self.assertEqual(precision.Width("s", "c", percent).words, words)

    def test_each_trial_is_counted_once(self):
        """Or many blocks would take the square of their number."""
        class Counted(list):
            """Counts the trials that are read."""
            read = 0

            def __iter__(self):
                for each in super().__iter__():
                    self.read += 1
                    yield each

            def __getitem__(self, at):
                found = super().__getitem__(at)
                self.read += len(found) if isinstance(at, slice) else 1
                return found

        design, found = self.design(max_seconds=1e9), Counted()
        asked = precision.Precision(design)
        for block in range(precision.FIRST_LOOK):
            asked.ends(found, block)
            found += self.trials(1, 3)
        self.assertLess(found.read, len(found))


class Coverage(unittest.TestCase):
    def test_ends(self):
        """As tests/soak/coverage.py, but few: 84 of 100 is far below 95 %."""
        coverage = loaded("coverage")
        import numpy as np
        rng = np.random.default_rng(3)
        for law in (coverage.skewed, coverage.bimodal):
            for rho in (0.0, 0.8):
                found = coverage.shares(coverage.until(law, rng, rho)
                                        for _ in range(100))
                for held, count in found.values():
                    self.assertEqual(count, 100)
                    self.assertGreater(held, 84)


if __name__ == "__main__":
    unit.main()
