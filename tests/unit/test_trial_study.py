#!/usr/bin/python3
"""results/trials/report/study.py: what a report shows, computed once."""

import tempfile
import unittest

import numpy as np
from scipy import stats

import trial_samples
import unit
from trials.record import store
from trials.report.study import Study
from trials.statistics.comparison import NOT_SHOWN, TOO_FEW

SWEEP = """\
sort.threads  default | 1 4
sort.kernel   default | scalar
machine.raid-chunk  64K | 1M
  skip     a new array destroys what is on the disks
"""


def sweep_times(_scenario, name, _block, rng):
    """One thread takes half as long again."""
    return rng.gauss(30e6 if name == "threads=1" else 20e6, 1e5)


def numbered(_scenario, _name, block, _rng):
    return 20_000_000 + 1000 * block


class StudyCase(unittest.TestCase):
    def read(self, **options):
        with tempfile.TemporaryDirectory() as folder:
            trial_samples.make_record(folder + "/r", **options)
            return store.read(folder + "/r")

    def study(self, **options):
        return Study(self.read(**options))


class Groups(StudyCase):
    def test_samples_are_in_order_of_time(self):
        run = self.read(trials=9, scenarios=("pagecache", "cache"))
        study = Study(run)
        for scenario in ("pagecache", "cache"):
            want = [t["whole_ns"] for t in run.trials
                    if t["scenario"] == scenario]
            group = study.groups[scenario, "reference"]
            self.assertEqual(want, group.samples_ns.tolist())
            self.assertEqual(np.median(want), group.summary.median_ns)
        self.assertEqual(["pagecache", "cache"],
                         [g.scenario for g in study.groups.values()])

    def test_only_right_and_unchecked_trials_are_samples(self):
        outcomes = ["ok", "failed", "wrong", "unchecked", "ok"]

        def alter(trial):
            trial["outcome"] = outcomes[trial["block"]]
            if trial["outcome"] == "failed":
                trial["whole_ns"] = None

        study = self.study(trials=5, times=numbered, alter=alter)
        group = study.reference("pagecache")
        self.assertEqual([20_000_000, 20_003_000, 20_004_000],
                         group.samples_ns.tolist())
        self.assertEqual([0, 3, 4], group.blocks)
        self.assertEqual((3, 2, 5),
                         (group.count, group.failed, len(group.trials)))
        self.assertEqual(["failed", "wrong"],
                         [t["outcome"] for t in study.failures])
        self.assertTrue(any("2 of 5" in note for note in study.notes))
        self.assertTrue(any("not validated" in note for note in study.notes))

    def test_roles(self):
        study = self.study(trials=2, sweep_text=SWEEP)
        self.assertEqual("reference", study.reference("pagecache").name)
        self.assertEqual("control", study.control("pagecache").role)
        self.assertEqual(
            ["threads=1", "threads=4", "kernel=scalar"],
            [g.name for g in study.variants("pagecache")])
        self.assertEqual(
            [("raid-chunk=1M",
              "a new array destroys what is on the disks")], study.skipped)
        self.assertNotIn(("pagecache", "raid-chunk=1M"),
                         study.groups)
        alone = self.study(trials=1)
        self.assertIsNone(alone.control("pagecache"))

    def test_no_sample_is_no_summary(self):
        study = self.study(trials=3, times=lambda *_: None)
        group = study.reference("pagecache")
        self.assertEqual((0, None, None, None),
                         (group.count, group.summary, group.comparison,
                          study.median_trial(group)))
        self.assertFalse(study.verified("pagecache"))
        self.assertTrue(any("none of 3" in note for note in study.notes))

    def test_an_empty_record(self):
        study = self.study(trials=3, most=0, sweep_text=SWEEP)
        self.assertEqual([0] * 5, [g.count for g in study.groups.values()])
        self.assertTrue(any("stopped" in note for note in study.notes))

    def test_a_trial_of_nothing_is_left_out(self):
        run = self.read(trials=3)
        run.trials[1] = {**run.trials[1], "configuration": "unheard-of"}
        study = Study(run)
        self.assertEqual(2, study.reference("pagecache").count)
        self.assertEqual([run.trials[1]], study.strays)
        self.assertTrue(any("left out" in note for note in study.notes))


class Verification(StudyCase):
    def labels(self, **changes):
        def alter(trial):
            if trial["block"] == 2:
                trial.update(changes)

        study = self.study(trials=4, alter=alter)
        return study.label("pagecache"), study.reference("pagecache").verified

    def test_all_met(self):
        self.assertEqual(("pagecache", True), self.labels())

    def test_one_not_met_or_unknown(self):
        for met in (False, None):
            self.assertEqual(("pagecache (unverified)", False),
                             self.labels(scenario_met=met))

    def test_a_failed_trial_has_no_say(self):
        self.assertEqual(
            ("pagecache", True),
            self.labels(scenario_met=None, outcome="failed", whole_ns=None))

    def test_a_variant_is_marked_by_itself(self):
        """It may be just what does not meet the conditions."""
        def alter(trial):
            if trial["configuration"] == "threads=4":
                trial["scenario_met"] = None

        study = self.study(trials=2, sweep_text=SWEEP, alter=alter,
                           scenarios=("pagecache", "cache"))
        self.assertEqual("cache", study.label("cache"))
        self.assertFalse(study.groups["cache", "threads=4"].verified)
        self.assertEqual(2, sum("threads=4: its conditions" in note
                                for note in study.notes))

    def test_the_control_is_the_reference(self):
        def alter(trial):
            if trial["configuration"] == "control":
                trial["scenario_met"] = False

        study = self.study(trials=2, sweep_text=SWEEP, alter=alter)
        self.assertEqual("pagecache (unverified)", study.label("pagecache"))
        self.assertEqual(1, sum("not all verified" in n for n in study.notes))


class Comparisons(StudyCase):
    def setUp(self):
        self.kept = self.study(trials=25, sweep_text=SWEEP, times=sweep_times)

    def test_each_with_the_reference_of_its_scenario(self):
        reference = self.kept.reference("pagecache")
        self.assertIsNone(reference.comparison)
        self.assertIsNone(reference.verdict)
        for group in self.kept.of("pagecache")[1:]:
            want = stats.mannwhitneyu(group.samples_ns, reference.samples_ns)
            ratio = np.median(group.samples_ns) / np.median(
                reference.samples_ns)
            found = group.comparison.two_sample
            self.assertAlmostEqual(ratio, found.ratio)
            self.assertAlmostEqual(want.pvalue, found.p_value, 2)
            want = stats.wilcoxon(np.log(group.samples_ns
                                         / reference.samples_ns))
            self.assertAlmostEqual(want.pvalue,
                                   group.comparison.blocked.p_value)
            self.assertAlmostEqual(ratio, group.comparison.main.ratio, 2)
        self.assertEqual(25, group.comparison.blocked.pairs)

    def test_holm_is_over_the_variants_alone(self):
        variants = self.kept.variants("pagecache")
        for p_of, corrected in (
                (lambda g: g.comparison.blocked.p_value,
                 lambda g: g.p_holm),
                (lambda g: g.comparison.two_sample.p_value,
                 lambda g: g.two_sample_p_holm)):
            least = min(variants, key=p_of)
            self.assertAlmostEqual(3 * p_of(least), corrected(least))
            for group in variants:
                self.assertGreaterEqual(corrected(group), p_of(group))
        control = self.kept.control("pagecache")
        self.assertIsNone(control.p_holm)
        self.assertEqual(control.comparison.blocked.p_value, control.shown_p)

    def test_verdicts(self):
        verdicts = {g.name: g.verdict for g in self.kept.of("pagecache")}
        self.assertEqual("slower", verdicts["threads=1"])
        self.assertEqual(NOT_SHOWN, verdicts["threads=4"])
        self.assertEqual(NOT_SHOWN, verdicts["control"])

    def test_verdicts_and_holm_stand_on_the_blocks(self):
        """Of a run that slows down by 30 %, with 2 % planted."""
        def times(_scenario, name, block, rng):
            slower = 1.02 if name == "threads=1" else 1
            return 20e6 * slower * (1 + 0.3 * block / 60) * rng.gauss(1, 0.02)

        study = self.study(trials=60, sweep_text=SWEEP, times=times)
        group = study.groups["pagecache", "threads=1"]
        self.assertEqual("slower", group.verdict)
        self.assertLess(group.p_holm, 0.001)

    def test_no_comparison_without_a_reference(self):
        study = self.study(trials=5, sweep_text=SWEEP, times=lambda s, n, b, r:
                           None if n == "reference" else 2e7)
        self.assertEqual([None] * 5,
                         [g.comparison for g in study.groups.values()])

    def test_one_and_two_trials(self):
        for trials in (1, 2):
            study = self.study(trials=trials, sweep_text=SWEEP)
            self.assertEqual(TOO_FEW, study.control("pagecache").verdict)


class MedianTrial(StudyCase):
    def median_block(self, times):
        study = self.study(trials=len(times),
                           times=lambda s, n, block, r: times[block])
        return study.median_trial(study.reference("pagecache"))["block"]

    def test_nearest_and_of_those_the_earliest(self):
        self.assertEqual(2, self.median_block([30e6, 10e6, 20e6]))
        self.assertEqual(1, self.median_block([10e6, 20e6, 22e6, 90e6]))
        self.assertEqual(0, self.median_block([7e6]))
        self.assertEqual(2, self.median_block([None, 30e6, 20e6, 10e6]))


class Circumstances(StudyCase):
    def test_sessions_begin_with_their_first_trial(self):
        run = self.read(trials=6)
        first = run.environment["sessions"][0]
        first["begin_unix_ns"] = run.trials[0]["begin_unix_ns"] - 1
        run.environment["sessions"] += [
            {**first, "begin_unix_ns": run.trials[4]["begin_unix_ns"] - 1},
            # Nothing was run in this one.
            {**first, "begin_unix_ns": run.trials[5]["begin_unix_ns"] + 1}]
        self.assertEqual([4], Study(run).sessions)

    def test_changes_are_flagged(self):
        change = {"key": "cpu.governor", "before": "performance",
                  "after": "powersave"}
        study = self.study(trials=1, changed=[change])
        self.assertEqual([(0, change)], study.changes)
        self.assertTrue(any("cpu.governor" in note for note in study.notes))

    def test_without_an_environment(self):
        run = self.read(trials=2)
        run.environment = None
        self.assertEqual(([], []), (Study(run).sessions, Study(run).changes))

    def test_left_out_by_a_race(self):
        run = self.read(trials=12, sweep_text=SWEEP, times=sweep_times)
        run.design["racing"] = {"first_block": 5, "every": 2, "alpha": 0.05,
                                "margin_ratio": 1.02}
        run.trials = [t for t in run.trials if t["block"] < 6
                      or t["configuration"] != "threads=1"]
        study = Study(run)
        blocks = {g.name: g.dropped_block for g in study.groups.values()}
        self.assertEqual(6, blocks.pop("threads=1"))
        self.assertEqual({None}, set(blocks.values()))


if __name__ == "__main__":
    unit.main()
