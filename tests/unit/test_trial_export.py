"""Exports: fields and units that other programs expect."""

import base64
import json
import random
import re
import struct
import tempfile
import unittest
import zlib
from pathlib import Path

import numpy as np

import unit
import trial_samples
from trials.record import store
from trials.report import export, hdr_histogram
from trials.report.study import Study

# hyperfine's src/benchmark/benchmark_result.rs
HYPERFINE_KEYS = {"command", "mean", "stddev", "median", "user", "system",
                  "min", "max", "times", "memory_usage_byte", "exit_codes",
                  "parameters"}


# Of the examples in HdrHistogram's own sources (jHiccup-2.0.7S.logV2.hlog has
# such lines): 741 times, to two digits, and 2.769 ms as the greatest.
HDR_EXAMPLE = (
    "HISTFAAAAEV42pNpmSzMwMCgyAABTBDKT4GBgdnNYMcCBvsPEBEJISEuATEZMQ4uASkhIR4n"
    "rxg9v2lMaxhvMekILGZkKmcCAEf2CsI=")


def decoded_hdr(text):
    """(digits, highest value, {(lowest, highest value of a count): count}), by
    the definition: a bucket of 2^m parts, and others of half as many, each as
    wide as the two before it."""
    data = base64.b64decode(text, validate=True)
    cookie, length = struct.unpack(">ii", data[:8])
    assert (cookie, length) == (0x1c849314, len(data) - 8)
    data = zlib.decompress(data[8:])
    cookie, length, offset, digits, lowest, highest, ratio = struct.unpack(
        ">iiiiqqd", data[:40])
    assert (cookie, length, offset) == (0x1c849313, len(data) - 40, 0)
    assert ratio == 1.0
    unit = 1 << lowest.bit_length() - 1
    parts = 1
    while parts < 2 * 10**digits:
        parts *= 2
    found, place, at = {}, 0, 40
    while at < len(data):
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            if shift == 56:
                number |= byte << 56
                break
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        count = -(number + 1 >> 1) if number & 1 else number >> 1
        if count < 0:
            place -= count
            continue
        width, low = 1, place
        if place >= parts:
            doublings, part = divmod(place - parts, parts // 2)
            width = 2**(doublings + 1)
            low = (part + parts // 2) * width
        found[low * unit, (low + width) * unit - 1] = count
        place += 1
    return digits, highest, {key: n for key, n in found.items() if n}


class HdrHistogramTest(unittest.TestCase):
    def expect(self, values, digits, highest):
        found = decoded_hdr(hdr_histogram.encode(values, digits, highest))
        self.assertEqual(found[:2], (digits, max(2, highest)))
        left = dict(found[2])
        for value in values:
            (low, high), = [key for key in left if key[0] <= value <= key[1]]
            self.assertLessEqual((high - low) * 10**digits, value)
            left[low, high] -= 1
        self.assertEqual(set(left.values()) - {0}, set())

    def test_decoder_knows_a_foreign_one(self):
        digits, _, counts = decoded_hdr(HDR_EXAMPLE)
        self.assertEqual((digits, sum(counts.values())), (2, 741))
        # Which rounds to what stands beside it.
        self.assertEqual(max(counts)[1], 2_768_895)

    def test_values_come_back(self):
        rng = random.Random(1)
        for digits in (1, 2, 3, 4, 5):
            for highest in (1, 100, 10**7, 2**62):
                self.expect([rng.randint(0, highest) for _ in range(50)],
                            digits, highest)

    def test_ends_of_buckets(self):
        ends = [2**power + more for power in range(1, 62)
                for more in (-1, 0, 1)]
        for digits in (1, 3, 4):
            self.expect(ends, digits, 2**62)

    def test_many_of_one(self):
        for count in (1, 63, 64, 8191, 8192, 20000):
            text = hdr_histogram.encode([7] * count, 3, 100)
            self.assertEqual(decoded_hdr(text)[2], {(7, 7): count})

    def test_none(self):
        self.assertEqual(decoded_hdr(hdr_histogram.encode([], 3, 9)),
                         (3, 9, {}))

    def test_numbers_of_any_length(self):
        for number, wanted in (
                (0, "00"), (-1, "01"), (1, "02"), (-64, "7f"), (64, "8001"),
                (2**55 - 1, "feffffffffffff7f"),
                (2**63 - 1, "feffffffffffffffff"),
                (-2**63, "ffffffffffffffffff")):
            self.assertEqual(hdr_histogram._number(number).hex(), wanted)


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

    def test_hyperfine_of_commands(self):
        """They have no ranks, and measures."""
        def alter(trial):
            trial.update(ranks=[], measures=trial_samples.measures(
                rng, user_ns=3 * 10**6, system_ns=10**6))
        rng = random.Random(1)
        study = self.study(trials=2, alter=alter)
        result = json.loads(export.hyperfine(study))["results"][0]
        self.assertEqual((result["user"], result["system"]), (0.003, 0.001))
        self.assertEqual(result["memory_usage_byte"], [3 << 20] * 2)
        self.assertEqual(result["measures"]["branch_misses"], [500, 500])
        self.assertEqual(result["measures"]["cache_misses"], [None, None])
        self.assertEqual(set(result), HYPERFINE_KEYS | {"measures"})

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

    def test_hlog(self):
        study = self.study(times=self.some_fail, scenarios=(
            "pagecache", "platter"), alter=self.unverified)
        lines = export.hlog(study).splitlines()
        self.assertEqual(lines[1], "#[Histogram log format version 1.3]")
        start = re.fullmatch(r"#\[StartTime: ([0-9.]+) \(seconds since epoch"
                             r"\), .* UTC 2026\]", lines[2])
        self.assertEqual(lines[3], '"StartTimestamp","Interval_Length",'
                         '"Interval_Max","Interval_Compressed_Histogram"')
        by_tag = {}
        for line in lines[4:]:
            tag, *figures, text = line.split(",")
            by_tag[tag] = [*map(float, figures), decoded_hdr(text)]
        groups = [g for g in study.groups.values() if g.count]
        self.assertEqual(set(by_tag), {
            f"Tag={scenario}:{name}" for scenario in (
                "pagecache", "platter_(unverified)") for name in (
                "reference", "control", "threads=1", "kernel=scalar")})
        for group in groups:
            begin, length, greatest, found = by_tag[
                f"Tag={study.label(group.scenario).replace(' ', '_')}:"
                f"{group.name}"]
            first, last = group.sample_trials[0], group.sample_trials[-1]
            self.assertAlmostEqual(float(start[1]) + begin,
                                   first["begin_unix_ns"] / 1e9, 2)
            self.assertAlmostEqual(float(start[1]) + begin + length, (
                last["begin_unix_ns"] + last["whole_ns"]) / 1e9, 2)
            self.assertAlmostEqual(greatest, max(group.samples_ns) / 1e6, 3)
            self.assertEqual(sum(found[2].values()), group.count)
            low, high = max(found[2])
            self.assertTrue(low <= max(group.samples_ns) <= high)
            self.assertLess(high - low, low / 1e4 + 1)

    def test_hlog_without_a_time(self):
        study = self.study(times=lambda *_: None, trials=2)
        self.assertEqual(len(export.hlog(study).splitlines()), 3)


if __name__ == "__main__":
    unit.main()
