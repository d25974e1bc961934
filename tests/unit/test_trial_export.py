"""Exports: fields and units that other programs expect."""

import json
import re
import tempfile
import unittest
from pathlib import Path

import numpy as np

import unit
import trial_samples
from trials.record import store
from trials.report import export
from trials.report.study import Study

# hyperfine's src/benchmark/benchmark_result.rs
HYPERFINE_KEYS = {"command", "mean", "stddev", "median", "user", "system",
                  "min", "max", "times", "memory_usage_byte", "exit_codes",
                  "parameters"}


class ExportTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = str(Path(folder.name) / "record")

    def study(self, **options):
        settings = {"sweep_text": trial_samples.SWEEP, "trials": 8, **options}
        trial_samples.make_record(self.path, **settings)
        return Study(store.read(self.path))

    @staticmethod
    def unverified(trial):
        if trial["scenario"] == "platter":
            trial["scenario_met"] = None

    @staticmethod
    def some_fail(scenario, name, block, rng):
        if name == "threads=4" or (name, block) == ("threads=1", 3):
            return None
        return trial_samples.ordinary_times(scenario, name, block, rng)

    def test_hyperfine(self):
        study = self.study(times=self.some_fail, ranks=2)
        results = json.loads(export.hyperfine(study))["results"]
        self.assertEqual([r["command"] for r in results], [
            "pagecache: reference", "pagecache: control",
            "pagecache: threads=1", "pagecache: kernel=scalar"])
        for result in results:
            self.assertEqual(set(result), HYPERFINE_KEYS)
            times = result["times"]
            self.assertEqual(len(times), len(result["exit_codes"]))
            self.assertEqual(len(times), len(result["memory_usage_byte"]))
            self.assertAlmostEqual(result["mean"], np.mean(times))
            self.assertAlmostEqual(result["stddev"], np.std(times, ddof=1))
            self.assertAlmostEqual(result["median"], np.median(times))
            self.assertEqual((result["min"], result["max"]),
                             (min(times), max(times)))
            self.assertTrue(0.0236 < result["min"] < 0.03)
            # Both ranks, each busy for most of the time.
            self.assertTrue(1.5 < result["user"] / result["mean"] < 2)
            self.assertTrue(0.7 < result["system"] / result["mean"] < 1)
            self.assertTrue(all(isinstance(value, str) for value
                                in result["parameters"].values()))
        self.assertEqual(len(results[2]["times"]), 7)
        group = study.groups["pagecache", "threads=1"]
        self.assertEqual(results[2]["times"],
                         [t["whole_ns"] / 1e9 for t in group.sample_trials])
        self.assertEqual(results[2]["parameters"]["sort.threads"], "1")
        self.assertEqual(results[2]["parameters"]["scenario"], "pagecache")

    def test_hyperfine_of_one_trial(self):
        result, *_ = json.loads(export.hyperfine(self.study(trials=1))
                                )["results"]
        self.assertIsNone(result["stddev"])
        self.assertEqual(len(result["times"]), 1)

    def test_unverified_in_every_name(self):
        study = self.study(scenarios=("pagecache", "platter"),
                           alter=self.unverified)
        for result in json.loads(export.hyperfine(study))["results"]:
            self.assertEqual("platter" in result["command"],
                             "platter (unverified)" in result["command"])
        text = export.benchfmt(study)
        self.assertEqual(text.count("platter"),
                         text.count("scenario=platter_(unverified)/"))

    def test_benchfmt(self):
        study = self.study(times=self.some_fail)
        head, _, body = export.benchfmt(study).partition("\n\n")
        for line in head.splitlines():
            self.assertRegex(line, r"^[a-z]+: \S.*$")
        self.assertIn("blinksort: 0123abc", head.splitlines())
        lines = body.splitlines()
        self.assertTrue(body.endswith("\n"))
        wanted = [(g.name, trial["whole_ns"]) for g in study.groups.values()
                  for trial in g.sample_trials]
        found = [re.fullmatch(
            r"BenchmarkSort/scenario=pagecache/configuration=(\S+) 1 "
            r"([0-9]+) ns/op", line).groups() for line in lines]
        self.assertEqual(found, [(name, str(ns)) for name, ns in wanted])
        # benchstat's base is what it sees first.
        self.assertEqual(found[0][0], "reference")


if __name__ == "__main__":
    unit.main()
