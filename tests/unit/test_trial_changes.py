"""blinkreport compare's verdicts: rules by hand, planted changes, statuses."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import unit
import trial_samples
from trials.base.failure import Failure
from trials.record import store
from trials.report import changes, settings, table
from trials.report.study import Study
from trials.run import options
from trials.statistics import comparison

sys.path.insert(0, str(unit.ROOT / "tests" / "soak"))
import aa_simulation  # noqa: E402

MACHINE = {"cpu": {"model_name": "A CPU", "frequency": {"governor": "fast"}},
           "kernel": {"release": "6.1.0"},
           "memory": {"total_bytes": 10**10}, "load": {"minutes_1": 0.1}}


def scaled(slower, sd_ratio=0.01):
    def times(_scenario, _name, _block, rng):
        return 23_700_000 * slower * rng.lognormvariate(0, sd_ratio)
    return times


def pair(**figures):
    """One for which there is nothing to say."""
    values = {"change_ratio": 0.0, "change_low_ratio": -0.001,
              "change_high_ratio": 0.001, "p_value": 0.5, "p_holm": 0.5}
    return changes.Pair("s", "c", True, 20, 20, 0, 0, 1.0, 1.0,
                        **{**values, **figures})


class JudgeTest(unittest.TestCase):
    def judge(self, comparable=True, **figures):
        found = pair()
        for name, value in figures.items():
            setattr(found, name, value)
        return changes.judge(found, 0.01, comparable)

    def change(self, low, middle, high, p_holm):
        return self.judge(change_low_ratio=low, change_ratio=middle,
                          change_high_ratio=high, p_holm=p_holm)

    def test_rules(self):
        for low, middle, high, p_holm, wanted in (
                (-0.005, 0, 0.005, 0.9, "same"),
                (-0.01, 0, 0.01, 0.9, "same"),
                # Real, but no matter.
                (0.002, 0.004, 0.006, 0.001, "same"),
                (0.015, 0.02, 0.025, 0.001, "slower"),
                (0.005, 0.0101, 0.015, 0.05, "slower"),
                (-0.025, -0.02, -0.015, 0.001, "faster"),
                # Real, but it may be larger or smaller than the margin.
                (0.002, 0.009, 0.016, 0.001, "inconclusive"),
                # Perhaps a lot, perhaps nothing.
                (-0.03, 0.02, 0.07, 0.2, "inconclusive"),
                (-0.011, 0, 0.005, 0.9, "inconclusive"),
                (-0.005, 0, 0.011, 0.9, "inconclusive"),
                (None, 0.5, None, 0.3, "inconclusive")):
            self.assertEqual(self.change(low, middle, high, p_holm), wanted)

    def test_another_machine(self):
        self.assertEqual(self.judge(comparable=False), "inconclusive")
        self.assertEqual(self.judge(comparable=False, failed_after=1),
                         "failed")

    def test_failures_count_by_share(self):
        self.assertEqual(self.judge(failed_after=1), "failed")
        self.assertEqual(self.judge(failed_before=1), "same")
        self.assertEqual(self.judge(failed_before=2, failed_after=2), "same")
        self.assertEqual(
            self.judge(n_before=95, failed_before=5, n_after=190,
                       failed_after=10), "same")
        self.assertEqual(
            self.judge(n_before=95, failed_before=5, n_after=38,
                       failed_after=3), "failed")
        self.assertEqual(self.judge(n_after=0, failed_after=20), "failed")
        self.assertEqual(self.judge(n_after=0, p_holm=None), "inconclusive")

    def test_status_of_the_worst(self):
        for verdicts, status in (
                (("same", "same"), 0), (("same", "faster"), 6),
                (("faster", "inconclusive"), 7),
                (("inconclusive", "slower"), 1), (("failed", "faster"), 1)):
            pairs = [pair() for _ in verdicts]
            for one, verdict in zip(pairs, verdicts):
                one.verdict = verdict
            result = changes.Result(
                "a", "b", "1", "2", 0.01, False, False, [], [], [], [], pairs,
                changes.Side(1, None, 0, []), changes.Side(1, None, 0, []))
            self.assertEqual(result.status, status)


class CompareTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.count = 0

    def study(self, times=scaled(1), machine=MACHINE, **options):
        self.count += 1
        path = self.folder / f"record{self.count}"
        settings = {"trials": 40, "seed": self.count, **options}
        trial_samples.make_record(path, times=times, **settings)
        file = path / "environment.json"
        environment = json.loads(file.read_text())
        environment["sessions"][0]["before"] = machine
        file.write_text(json.dumps(environment))
        return Study(store.read(str(path)))

    def verdict(self, before, after, **options):
        return changes.compare(before, after, **options).verdict

    def test_planted(self):
        before = self.study()
        for slower, wanted in (
                (1, "same"), (1.03, "slower"), (1 / 1.03, "faster")):
            after = self.study(scaled(slower))
            self.assertEqual(self.verdict(before, after), wanted)
        self.assertEqual(self.verdict(before, after, margin_ratio=0.1),
                         "same")
        self.assertEqual(
            self.verdict(before, self.study(scaled(1, 0.2))), "inconclusive")

    def test_holm_over_all(self):
        sweep = {"sweep_text": trial_samples.SWEEP}
        result = changes.compare(self.study(**sweep), self.study(**sweep))
        self.assertEqual(len(result.pairs), 5)
        ordered = sorted(result.pairs, key=lambda pair: pair.p_effective)
        self.assertAlmostEqual(ordered[0].p_holm,
                               min(1, 5 * ordered[0].p_effective))

    def test_two_runs_have_no_blocks_in_common(self):
        """The verdict is the two-sample test's, and says so."""
        before, after = self.study(), self.study(scaled(1.03))
        result = changes.compare(before, after)
        groups = [study.reference("pagecache") for study in (before, after)]
        self.assertEqual(result.pairs[0].p_value, comparison.u_test(
            *(group.samples_ns for group in groups))[1])
        self.assertIn("\ntest    two-sample U test: the runs were not "
                      "interleaved\n", changes.text(result))
        self.assertEqual(changes.document(result)["test"], "two-sample U test")

    def test_spread(self):
        """It is told, and changes no verdict."""
        before, after = self.study(), self.study(scaled(1, 0.04))
        for first, second, word in ((before, after, "wider"),
                                    (after, before, "narrower"),
                                    (before, before, "no difference shown")):
            result = changes.compare(first, second)
            found, = changes.document(result)["pairs"]
            self.assertEqual(found["spread_verdict"], word)
            self.assertIn(found["verdict"], ("same", "inconclusive"))
            self.assertAlmostEqual(
                found["spread"]["ratio"], found["deviation_after_ratio"]
                / found["deviation_before_ratio"])
        line = changes.text(changes.compare(before, after)).split(
            "as a share of it\n")[1].splitlines()[1]
        self.assertRegex(line, r"^pagecache, reference +[\d.]+ % +[\d.]+ % +"
                         r"[\d.]+ \[[\d.]+, [\d.]+\] +0.0004  wider$")

    def test_spread_of_what_may_be_something_else(self):
        def drifting(_scenario, _name, block, rng):
            return 23_700_000 * (1 + 0.01 * block) * rng.lognormvariate(0, 0.01)
        result = changes.compare(self.study(), self.study(drifting))
        self.assertGreater(result.pairs[0].spread.ratio, 5)
        self.assertIsNone(result.pairs[0].spread_verdict)
        other = {**MACHINE, "cpu": {"model_name": "another"}}
        for across, word in (False, None), (True, "wider"):
            result = changes.compare(
                self.study(), self.study(scaled(1, 0.1), machine=other),
                across_machines=across)
            self.assertEqual(result.pairs[0].spread_verdict, word)

    def test_alarms_of_dependent_trials(self):
        """tests/soak/aa_simulation.py asks more: n, changes, records."""
        rng = np.random.default_rng(7)
        for rho, least in ((0, 0), (0.8, 10)):
            ours, alone = aa_simulation.rates(rng, 40, 20, rho)
            self.assertLessEqual(ours, 4)
            self.assertGreaterEqual(alone, least)
        # What is there is seen.
        ours, _ = aa_simulation.rates(rng, 20, 20, 0, 0.05)
        self.assertGreaterEqual(ours, 16)

    def test_drift_is_no_change(self):
        """Of a run that drifted, the last trials are not the program's."""
        def drifting(_scenario, _name, block, rng):
            return 23_700_000 * (1.1 + 0.004 * block) * rng.lognormvariate(
                0, 0.01)
        result = changes.compare(self.study(), self.study(drifting))
        self.assertEqual(result.pairs[0].signs_after[0], "drift")
        self.assertEqual(result.status, 7)
        text = changes.text(result)
        self.assertRegex(text, "after: pagecache, reference: the times drift")
        self.assertIn("may be all that does", " ".join(text.split()))

    def test_sessions_that_differ(self):
        """Sessions of one record that differ are what a change is against."""
        def study(starts, shares):
            found = self.study(lambda _scenario, _name, block, rng:
                               23_700_000 * shares[block // 10 % len(shares)]
                               * rng.lognormvariate(0, 0.005))
            group = found.reference("pagecache")
            if starts:
                group.sample_sessions = [block // 10 for block in range(40)]
            return found

        other = [1, 1.04, 1, 1.04]
        pairs = [changes.compare(study(starts, [1]),
                                 study(starts, other)).pairs[0]
                 for starts in (False, True)]
        self.assertEqual([pair.sessions_differ for pair in pairs],
                         [False, True])
        self.assertEqual(pairs[1].verdict, "inconclusive")

    def test_what_it_cannot_see(self):
        text = changes.text(changes.compare(self.study(),
                                            self.study(scaled(1.05))))
        self.assertIn("each record is of one session, so it can't be told",
                      " ".join(text.split()))

    def test_noise_of_both(self):
        def noisy(trial):
            trial["noise"] = trial_samples.noise_look(79.0, limit=5, over=True)
        result = changes.compare(self.study(), self.study(alter=noisy))
        self.assertIn("1 session; others took 79.0 % of a CPU before the "
                      "median trial; 40 trials above the noise limit\n",
                      changes.text(result))
        after = changes.document(result)["side_after"]
        self.assertEqual((after["noise_median_percent"],
                          after["trials_over_noise_limit"]), (79.0, 40))

    def test_change_is_not_below_all(self):
        """Times can't fall by more than they are."""
        rng = np.random.default_rng(1)
        old, new = (np.rint(1e7 * rng.lognormal(mean, 1, 12))
                    for mean in (0, -1.2))
        found = changes.pair_of(aa_simulation.group(old),
                                aa_simulation.group(new))
        self.assertGreater(found.change_low_ratio, -1)

    def test_names_that_one_lacks(self):
        before = self.study(sweep_text="sort.threads default | 1 4\n")
        after = self.study(sweep_text="sort.threads default | 1 2\n")
        result = changes.compare(before, after)
        self.assertEqual([pair.configuration for pair in result.pairs],
                         ["reference", "control", "threads=1"])
        self.assertEqual(result.only_before, ["pagecache, threads=4"])
        self.assertEqual(result.only_after, ["pagecache, threads=2"])
        text = changes.text(result)
        self.assertIn("only before: pagecache, threads=4\n", text)
        with self.assertRaisesRegex(Failure, "has no scenario and config"):
            changes.compare(before, self.study(scenarios=("cache",)))

    def test_another_input(self):
        before = self.study()
        for other, why in (
                ({"records": 5}, "sorted 5 records, but those of .*record1 "
                 "1,000,000 records: .*, with the --records of the other$"),
                ({"kind": "ascii"}, "sorted ascii records, but .*record1 "
                 "binary records: .*, both with --ascii or both without$"),
                ({"record_bytes": 10}, "of 10 bytes, but .* of 100 bytes"),
                ({"ranks": 2}, "on 2 nodes, but .* on 1 node: .*, on as many "
                 "nodes$"),
                ({"devices": {"input": "/dev/a", "output": "/dev/b"}},
                 "sorted from device to device, but .* from file to file: "
                 ".*, both with --input-device or both without$")):
            with self.assertRaisesRegex(Failure, why) as caught:
                changes.compare(before, self.study(**other))
            self.assertEqual(caught.exception.status, 3)

    def asked(self, *more, memory=None, alter=None):
        """A study of a record for which blinktrial was asked this."""
        trials = [] if "--until=1" in more else ["--trials=40"]
        asked = options.complete(options.parse(
            ["--scenario=beyond-memory", *trials,
             f"--out=/r{self.count}", "--seed=5", *more]))
        hosts = asked.hosts.split(",") if asked.hosts else None
        devices = asked.input_device and {
            "input": asked.input_device, "output": asked.output_device}
        return self.study(
            scenarios=asked.scenarios, trials=asked.trials or 40,
            seed=asked.seed,
            sweep_text=trial_samples.SWEEP if asked.sweep else None,
            records=asked.records, devices=devices, order=asked.order,
            kind="ascii" if asked.ascii else "binary",
            ranks=len(hosts) if hosts else 1, memory_bytes=memory,
            command=options.command_of(asked), alter=alter)

    def test_every_option(self):
        """Each is compared, listed, or known to have no effect."""
        devices = ["--input-device=/dev/a", "--output-device=/dev/b"]
        others = {
            "scenarios": ["--scenario=beyond-memory,cache"],
            "trials": ["--trials=41"], "sweep": ["--sweep=/s"],
            "hosts": ["-w", "n1,n2"], "work": ["--work=/w"],
            "input_device": devices, "output_device": devices,
            "records": ["--records=7"], "ascii": ["--ascii"],
            "seed": ["--seed=6"], "order": ["--order=sequence"],
            "unverified": ["--unverified"], "cache_bytes": ["--cache-bytes=1M"],
            "memory": ["--memory=8M"], "price": ["--price=/p"],
            "energy": ["--energy"], "powercap": ["--energy", "--powercap=/c"],
            "key_file": ["--key-file=/k"], "meter": ["--meter=/m"],
            "meter_error": ["--meter=/m", "--meter-error=1"],
            "noise_limit": ["--noise-limit=5"],
            "noise_wait": ["--noise-wait=9"], "until": ["--until=1"],
            "max_trials": ["--until=1", "--max-trials=99"],
            "max_time": ["--until=1", "--max-time=9"]}
        self.assertEqual(
            {*others, "commands", *options.OF_COMMANDS},
            {*options.LASTING, *options.REPLACEABLE, "show_output"})
        before = self.asked()
        for name, more in others.items():
            try:
                result = changes.compare(before, self.asked(*more))
            except Failure as failure:
                self.assertEqual(failure.status, 3)
                continue
            shown = {each["key"] for each in result.options}
            for pair in result.pairs:
                if pair.settings:
                    self.assertEqual(pair.verdict, "inconclusive")
                shown.update(each["key"] for each in pair.settings)
            if name in settings.WITHOUT_EFFECT:
                self.assertEqual(shown, set(), name)
            else:
                self.assertIn(options.spelled(name), shown)

    def test_other_parameters(self):
        """A change of the reference is no change of the program."""
        before = self.study(sweep_text="sort.threads default | 1\n")
        result = changes.compare(before, self.study(
            sweep_text="sort.threads 1 | 2\n"))
        self.assertEqual(result.status, 7)
        self.assertEqual([pair.settings for pair in result.pairs], 2 * [[
            {"key": "sort.threads", "before": "default", "after": "1"}]])
        self.assertIn("The settings differ, so that no verdict is possible:\n"
                      "  pagecache, reference, sort.threads: default -> 1\n",
                      changes.text(result))
        for text in (None, "sort.kernel default | scalar\n",
                     "sort.kernel auto | scalar\n", "sort.plain no | yes\n",
                     "tune.swappiness keep | 1\n"):
            other = self.study(sweep_text=text)
            self.assertEqual(
                changes.compare(before, other).pairs[0].settings, [])
        self.assertEqual(
            [each["after"] for each in changes.compare(before, self.study(
                sweep_text="tune.swappiness 1 | keep\n")).pairs[0].settings],
            ["1"])

    def test_other_memory(self):
        before = self.asked("--memory=8M", memory=8 << 20)
        result = changes.compare(before, self.asked("--memory=24M"))
        self.assertEqual(result.status, 7)
        self.assertIn("--memory: 8388608 -> 25165824\n", changes.text(result))
        # The default, and what was given, are the same.
        self.assertEqual(self.verdict(self.asked(),
                                      self.asked("--memory=256M")), "same")
        self.assertIn("\nmemory     8.000 MiB for the sorter in "
                      "beyond-memory\n", table.text(before))

    def test_other_conditions(self):
        def other(trial):
            trial["conditions"][0]["wanted"] = "50 %"
        result = changes.compare(self.study(), self.study(alter=other))
        self.assertEqual(result.status, 7)
        self.assertIn("condition input-resident: 100 % -> 50 %\n",
                      changes.text(result))

    def test_versions(self):
        result = changes.compare(self.study(), self.study())
        self.assertRegex(changes.text(result),
                         "(?m)^after   .*record2, blinksort 0123abc$")
        self.assertEqual(changes.document(result)["version_before"], "0123abc")

    def test_environments(self):
        before = self.study()
        quiet = {**MACHINE, "load": {"minutes_1": 5.0},
                 "memory": {"total_bytes": 10**10 - 4096}}
        result = changes.compare(before, self.study(machine=quiet))
        self.assertFalse(result.machine_differs)
        self.assertEqual(result.verdict, "same")
        kernel = {**MACHINE, "kernel": {"release": "6.5.0"}}
        result = changes.compare(before, self.study(machine=kernel))
        self.assertFalse(result.machine_differs)
        self.assertEqual([d["key"] for d in result.differences],
                         ["kernel.release"])
        self.assertIn("kernel.release: 6.1.0 -> 6.5.0", changes.text(result))
        other = {**MACHINE, "cpu": {"model_name": "Another CPU"}}
        after = self.study(machine=other)
        result = changes.compare(before, after)
        self.assertTrue(result.machine_differs)
        self.assertEqual(result.status, 7)
        self.assertIn("--across-machines", changes.text(result))
        self.assertEqual(
            self.verdict(before, after, across_machines=True), "same")

    def test_machine_keys(self):
        for key, old, new, wanted in (
                ("cpu.model_name", "a", "b", True),
                ("cpu.microcode", "a", "b", False),
                ("nodes.a.b:7300.cpu.online", "0-1", "0-3", True),
                ("nodes.a.b:7300.kernel.release", "1", "2", False),
                ("memory.total_bytes", 100, 200, True),
                ("memory.total_bytes", None, 200, True),
                ("memory.total_bytes", 10000, 10001, False)):
            self.assertEqual(changes.is_machine(
                {"key": key, "before": old, "after": new}), wanted)

    def test_document(self):
        result = changes.compare(self.study(), self.study(
            lambda *_: None, trials=3))
        document = json.loads(json.dumps(changes.document(result),
                                         allow_nan=False))
        self.assertEqual(document["schema"], "blinkreport-compare-1")
        self.assertEqual((document["verdict"], document["status"]),
                         ("failed", 1))
        self.assertIsNone(document["pairs"][0]["median_after_ns"])
        self.assertIn("0/3", changes.text(result))


if __name__ == "__main__":
    unit.main()
