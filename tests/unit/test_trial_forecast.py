#!/usr/bin/python3
"""Forecasts of clusters: options, rates, stages, what was measured."""

import argparse
import functools
import json
import os
import shutil
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from statistics import median

import profile_samples
import trial_samples
import unit
from report_page import Page
from trials.base.failure import FILE, Failure
from trials.base.programs import Programs
from trials.characterise import machine_profile
from trials.drawing import style
from trials.forecast import (forecast_page, forecast_plots, forecast_table,
                             measured, rates, report, stages, wanted)
from trials.record import schema

RUNS = unit.ROOT / "results" / "runs"
MACHINE = RUNS / "2026-11-22-zen4-1-machine"
BIN = os.environ.get("BIN", str(unit.ROOT / "bin"))
# 1 GB/s and the like: times can be told by heart.
PLAIN = rates.Rates(
    memory={1: (1e9, 5e8), 4: (4e9, 2e9)}, start_ns=1e5, disk_read=1e8,
    disk_write=5e7, disk_both=1.2e8, loopback=1e9, link_bits_per_s=None,
    latency_ns=None, memory_bytes=10**9)


def forecast(nodes, scenario="platter", records=10**6, **options):
    return stages.predict(Programs(BIN), nodes, records, 100,
                          **PLAIN.supposed(scenario), **options)


class WantedTest(unittest.TestCase):
    def test_nodes(self):
        for text, numbers in (
                ("16", (16,)), ("64,16,64", (16, 64)),
                ("16..4096", (16, 64, 256, 1024, 4096)),
                ("16..128", (16, 32, 64, 128)), ("3..13", (3, 6, 12, 13)),
                ("2,16..64,100", (2, 16, 64, 100)), ("5..5", (5,)),
                ("1k..2k", (1000, 2000)), ("65535", (65535,))):
            with self.subTest(text):
                self.assertEqual(wanted.nodes(text), numbers)

    def test_suffixes(self):
        self.assertEqual(wanted.records("1M,100M,2k,3G,1T,7"),
                         (7, 2000, 10**6, 10**8, 3 * 10**9, 10**12))
        self.assertEqual(wanted.link("10G"), 10**10)
        for text in "250M", "250Mbit":
            self.assertEqual(wanted.link(text), 250 * 10**6)
        self.assertEqual(wanted.cpus("2+4"), (2, 4))
        self.assertEqual(wanted.mtu("9000"), 9000)
        self.assertEqual(wanted.record_bytes("16"), 16)

    def test_refused(self):
        for read, texts in (
                (wanted.nodes, ("", "0", "65536", "16,", "64..16", "..4", "4..",
                                "1.5", "-1", "16...64", "a", "1M", " 4", "٤",
                                ",".join(map(str, range(1, 66))))),
                (wanted.records, ("", "0", "1m", "1e6", "1125899906842625",
                                  "9" * 30, "1..4", "2000T")),
                (wanted.link, ("0", "G", "10Gbyte", "1001T")),
                (wanted.mtu, ("575", "65536", "1.5k")),
                (wanted.cpus, ("", "1", "0+1", "1+", "1+2+3", "4097+1")),
                (wanted.record_bytes, ("0", "1048577", "2M"))):
            for text in texts:
                with self.subTest(read=read.__name__, text=text), \
                        self.assertRaises(argparse.ArgumentTypeError):
                    read(text)


class RatesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "machine")
        os.mkdir(self.path)

    def profile(self, **options):
        profile_samples.make(self.path, **options)
        return machine_profile.read(self.path)

    def test_of_a_record(self):
        profile = self.profile(hosts=("a:1", "b:1"))
        found = rates.of(self.path)
        largest = {(curve.threads, curve.name): curve.points[-1][1].middle
                   for curve in profile.memory}
        self.assertEqual(found.cpus, 16)
        self.assertEqual(found.of_memory(16), (
            16, largest[16, "read"], largest[16, "copy"]))
        self.assertEqual(found.of_memory(7)[0], 4)
        # As a sort reads and writes, not one transfer at a time.
        self.assertEqual(found.disk_read, 700 << 20)
        self.assertEqual(found.disk_write, 500 << 20)
        # Of the slowest of two nodes.
        middles = [median(s.samples) for s in profile.round_trips]
        self.assertEqual(found.latency_ns, max(middles) / 2)
        self.assertEqual(found.link_bits_per_s, 8 * min(
            median(s.samples) for s in profile.throughputs))
        self.assertIsNone(found.loopback)
        self.assertEqual(found.notes, [])

    def test_of_one_machine_alone(self):
        self.profile()
        found = rates.of(self.path)
        self.assertIsNone(found.latency_ns)
        self.assertIsNone(found.link_bits_per_s)
        self.assertGreater(found.loopback, 10**8)
        self.assertIn("No network was measured", found.notes[0])
        self.assertEqual(found.link_options,
                         {"link": None, "latency_ns": None})

    def test_disk_without_writes(self):
        found = rates.of(MACHINE)
        self.assertEqual(found.disk_read, 1971824191)
        self.assertEqual(found.disk_write, found.disk_read)
        self.assertIn("No rate of writing", found.notes[0])

    def test_refused(self):
        for part, words in (("memory", "no rates of memory"),
                            ("start", "no start")):
            with self.subTest(part), tempfile.TemporaryDirectory() as folder:
                profile_samples.make(folder, without=(part,))
                with self.assertRaisesRegex(Failure, words) as caught:
                    rates.of(folder)
                self.assertEqual(caught.exception.status, FILE)
        with self.assertRaisesRegex(Failure, "has trials"):
            rates.of(RUNS / "2026-11-22-zen4-1")
        with self.assertRaisesRegex(Failure, "No such file"):
            rates.of(os.path.join(self.path, "nowhere"))

    def test_rates_of_no_machine(self):
        """A page has no axis for what they come to."""
        self.profile()
        path = Path(self.path) / "characterisation.jsonl"
        text = path.read_text()
        for what in "read", "copy":
            lines = [json.loads(line) for line in text.splitlines()]
            for line in lines:
                if (line["part"], line["what"]) == ("memory", what):
                    line["samples"] = [1e-308]
            path.write_text("".join(f"{json.dumps(line)}\n"
                                    for line in lines))
            with self.subTest(what), \
                    self.assertRaisesRegex(Failure, "1e-308, which no"):
                rates.of(self.path)

    def test_without_a_disk(self):
        self.profile(without=("disk",))
        self.assertIsNone(rates.of(self.path).disk_read)
        made = report.make(Programs(BIN), self.path, wanted.Wanted(), [])
        self.assertEqual(made.wanted.scenario, "pagecache")
        with self.assertRaisesRegex(Failure, "no rates of a disk"):
            report.make(Programs(BIN), self.path,
                        wanted.Wanted(scenario="cache"), [])


class StagesTest(unittest.TestCase):
    """What is asked of blinksort, and how its document is read; the model is
    tested by test_memory_model."""

    def test_columns(self):
        for nodes, scenario in ((1, "platter"), (1, "pagecache"),
                                (64, "platter")):
            with self.subTest(nodes=nodes, scenario=scenario):
                one = forecast(nodes, scenario)
                self.assertEqual(one.first, max(one.read, one.bucket))
                self.assertEqual(one.last, max(one.sort, one.write))
                self.assertEqual(one.whole, one.launch + one.first
                                 + one.exchange + one.last)
                # At 100 and 50 MB/s.
                self.assertEqual((one.read, one.write), (
                    1e9 // nodes, 2e9 // nodes) if scenario == "platter"
                    else (0, 0))
                self.assertAlmostEqual(one.exchange, one.by(one.chosen)
                                       if nodes > 1 else 0, delta=1)
        # Gone over in 25 ms and copied in 50; four threads share what a million
        # records take.
        one = forecast(1)
        self.assertEqual((one.launch, one.bucket, one.sort),
                         (1e5 + 1.1e6, 27e6, 50.85e6))

    def test_exchange(self):
        many = forecast(64, latency_ns=77, link=10**9)
        self.assertEqual(many.by("rounds") - forecast(
            64, latency_ns=0, link=10**9).by("rounds"), 3 * 77)
        self.assertLess(many.by("link"), many.by("all-at-once"))
        self.assertLess(many.by("all-at-once"), many.by("rounds"))

    def test_share_that_does_not_fit(self):
        for scenario, words in (("platter", "two passes or more"),
                                ("pagecache", "nothing is predicted")):
            with self.subTest(scenario):
                made = [forecast(nodes, scenario, 10**8,
                                 memory_bytes=PLAIN.memory_bytes)
                        for nodes in (1, 64)]
                self.assertEqual([one.fits for one in made],
                                 [False, True])
                self.assertEqual(made[0].whole, made[0].first + made[0].last)
                notes = stages.notes(made)
                self.assertEqual(len(notes), 1)
                self.assertRegex(notes[0], f"a share of 1 node does .*{words}")

    def test_refused(self):
        with self.assertRaisesRegex(Failure, "blinksort: .*--link-rate=0bit"):
            forecast(16, link="0")

    def test_share_that_no_sort_takes(self):
        """Other shares are predicted all the same."""
        made = report.make(Programs(BIN), MACHINE, wanted.Wanted(
            nodes=(1, 4096), records=(10**12,)), [RUNS / "exchanges.json"])
        one, many = made.forecasts[10**12]
        self.assertEqual((one.whole, one.fits), (0, False))
        self.assertGreater(many.whole, 0)
        self.assertTrue(any("more than 32 TiB" in note for note in made.notes))
        self.assertRegex(forecast_table.text(made), r"\n1 +- .* -\n")
        for picture in forecast_plots.pictures(made):
            picture.svg(style.WIDE)
        with self.assertRaisesRegex(Failure, "neither in"), \
                tempfile.TemporaryDirectory() as folder, \
                unittest.mock.patch.dict(os.environ, {"PATH": folder}):
            stages.predict_any(Programs(folder), 1, 1, 100)


class MeasuredTest(unittest.TestCase):
    def compare(self, *paths):
        made = measured.Comparison(Programs(BIN), rates.of(MACHINE), MACHINE)
        for path in paths:
            made.add(path)
        return made

    def compare_beside(self, names):
        """With the records of these names in one folder."""
        with tempfile.TemporaryDirectory() as folder:
            machine = Path(folder, MACHINE.name)
            shutil.copytree(MACHINE, machine)
            for name in names:
                Path(folder, name).symlink_to(RUNS / name)
            made = measured.Comparison(Programs(BIN), rates.of(machine),
                                       machine)
            made.add_beside(machine)
            return made

    def test_exchanges_of_the_notebook(self):
        """What was measured on links with a rate, as results/NOTES.md has it:
        where the links were the limit, the model is right; where CPUs, queues
        or STATUS were, it is below."""
        document = json.loads((RUNS / "exchanges.json").read_text())
        self.assertIsNone(schema.complaint(measured.SCHEMA, document))
        rows = self.compare(RUNS / "exchanges.json").rows
        self.assertEqual(len(rows), len(document["exchanges"]))
        links = [row for row in rows if row.limit == "link"]
        self.assertEqual(len(links), 20)
        for row in rows:
            with self.subTest(row.run, note=row.note):
                if row.limit == "link":
                    self.assertLess(abs(row.error), 0.06)
                else:
                    self.assertLess(row.error, 0)
        self.assertLess(median(abs(row.error) for row in links), 0.03)
        known = {row.run: row for row in rows if "a study" in row.note}
        for run, ms in (("2026-11-25, 16 x 100 Mbit/s, 500k", 247.7),
                        ("2026-11-25, 4 x 300 Mbit/s, 500k", 263.5)):
            self.assertEqual(known[run].measured_ns, ms * 1e6)
            self.assertLess(abs(known[run].error), 0.015)

    def test_exchange_as_it_was(self):
        """Each member of an exchange is an option of the model."""
        known = json.loads((RUNS / "exchanges.json").read_text())
        for changes in ({}, {"shared_cpus": None}, {"overhead_bytes": 98},
                        {"mtu_bytes": 9000}):
            one = known["exchanges"][0] | {"nodes": 64} | changes
            with self.subTest(changes), tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "exchanges.json")
                path.write_text(json.dumps(known | {"exchanges": [one]}))
                self.assertEqual(
                    self.compare(path).rows[0].predicted_ns, stages.predict(
                        Programs(BIN), 64, one["records"], 100, link=10**8,
                        mtu=one["mtu_bytes"], overhead=one["overhead_bytes"],
                        shared_cpus=one["shared_cpus"]).by("rounds"))

    def test_summary(self):
        def row(error, stage, limit):
            return measured.Row("a run", stage, 1 + error, 1, "", limit)
        rows = [row(-0.04, "rounds", "link"), row(0.01, "rounds", "link"),
                row(0.02, "grid", "link"), row(0.9, "rounds", "CPUs"),
                row(-0.5, "whole", None), row(0.8, "launch", None)]
        self.assertEqual(measured.summary(rows), [
            "Error of exchanges that their links limited, in 3 of them: 2.0 % "
            "at the median, 4.0 % at most.",
            "Error of whole sorts, in 1 of them: 50.0 % at the median, 50.0 % "
            "at most."])

    def test_records_beside_the_machine(self):
        by_mpirun = [f"2026-11-25-{name}" for name in (
            "transports", "transports-mpich", "transports-shm")]
        of_commands = ["2026-11-27-ext4", "2026-11-27-peers"]
        made = self.compare_beside(by_mpirun + of_commands + [
            "2026-11-22-zen4-1", "2026-11-22-zen4-1-flush",
            "2026-11-22-zen4-1-sweep", "2026-11-27-external",
            "exchanges.json"])
        self.assertEqual(made.notes, [
            f"Not compared: {name}: an mpirun has started its ranks."
            for name in by_mpirun] + [
            f"Not compared: {name}: commands are timed there, and no sorts."
            for name in of_commands] + [
            "Not compared: trials of other machines, beside this one's: 1."])
        wholes = {row.run: row for row in made.rows if row.stage == "whole"}
        self.assertEqual(len(wholes), 6)
        row = wholes["2026-11-22-zen4-1-sweep, pagecache, 1,000,000 records"]
        self.assertAlmostEqual(row.measured_ns / 1e6, 20.64, 1)
        # The constants were fitted to this one.
        self.assertLess(abs(row.error), 0.05)
        self.assertLess(abs(wholes[
            "2026-11-22-zen4-1, platter, 1,000,000 records"].error), 0.25)

    def test_cluster(self):
        """A trial's launch and exchange are those of its ranks."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "nodes")
            trial_samples.make_record(path, ranks=4, trials=7)
            rows = {row.stage: row for row in self.compare(path).rows}
            self.assertEqual(list(rows), ["launch", "read, bucket", "exchange",
                                          "sort, write", "whole"])
            trials = [json.loads(line) for line
                      in Path(path, "trials.jsonl").read_text().splitlines()]
            self.assertEqual(rows["exchange"].measured_ns, median(
                median(rank["phases_ns"]["exchange"]
                       for rank in trial["ranks"]) for trial in trials))
            # Before the ranks' clocks, and of their first phases.
            self.assertEqual(rows["launch"].measured_ns, median(
                median(sum(rank["phases_ns"][name] for name in
                           ("open", "join")) for rank in trial["ranks"])
                for trial in trials) + median(
                    trial["whole_ns"] - max(rank["elapsed_ns"] for rank
                                            in trial["ranks"])
                    for trial in trials))
            self.assertEqual(rows["whole"].measured_ns,
                             median(t["whole_ns"] for t in trials))
            self.assertAlmostEqual(rows["whole"].predicted_ns, sum(
                row.predicted_ns for stage, row in rows.items()
                if stage != "whole"), delta=4)

    def test_what_is_not_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            machine = os.path.join(folder, "machine")
            os.mkdir(machine)
            profile_samples.make(machine)
            profile_samples.add_environment(machine, cpu={
                "model_name": "ours", "online": "0-3"})
            trial_samples.make_record(os.path.join(folder, "other"), trials=2)
            os.mkdir(os.path.join(folder, "broken"))
            Path(folder, "broken", "design.json").write_text("{")
            Path(folder, "exchanges.json").write_text(
                '{"schema": "blinkreport-exchanges-1", "exchanges": [{}]}')
            Path(folder, "else.json").write_text("[]")
            made = measured.Comparison(Programs(BIN), PLAIN, machine)
            made.add_beside(machine)
            self.assertEqual(made.rows, [])
            self.assertEqual(len(made.notes), 3)
            self.assertRegex(made.notes[0], "broken/design.json: is not JSON")
            self.assertRegex(made.notes[1], "exchanges.json: exchanges.0.: ")
            self.assertRegex(made.notes[2], "trials of other machines, .*: 1")
            for name, words in (("else.json", "is not of schema"),
                                ("exchanges.json", "required property"),
                                ("broken", "is not JSON"),
                                ("nowhere", "No such file")):
                with self.subTest(name), \
                        self.assertRaisesRegex(Failure, words):
                    made.add(os.path.join(folder, name))

    def test_loopback_shares_the_cpus(self):
        made = self.compare(RUNS / "exchanges.json")
        times = {row.run: row.predicted_ns for row in made.rows
                 if "loopback" in row.run and row.stage == "all-at-once"}
        self.assertEqual(len(times), 4)
        self.assertEqual(sorted(times.values()), list(times.values()))


@functools.cache
def whole_report():
    return report.make(Programs(BIN), MACHINE, wanted.Wanted(
        nodes=wanted.nodes("1,16..4096")), [])


class ShownTest(unittest.TestCase):
    def setUp(self):
        self.report = whole_report()

    def test_text(self):
        text = forecast_table.text(self.report)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        self.assertRegex(text, r"\n4096 .* 1\.\d+\*  0\.00")
        self.assertRegex(text, r"\n1 +- ")
        self.assertIn("links of 10 Gbit/s, packets of 1500 bytes, platter",
                      text)
        # One schedule is chosen for each number of nodes but 1.
        rows = [row for forecasts in self.report.forecasts.values()
                for row in forecast_table.rows(forecasts)]
        self.assertEqual([sum(cell.endswith("*") for cell in row)
                          for row in rows], [0, 1, 1, 1, 1, 1] * 2)
        self.assertEqual(text, forecast_table.text(self.report))

    def test_page(self):
        text = forecast_page.render(self.report)
        page = Page(text)
        self.assertEqual(text.count("<svg"), 6)
        self.assertEqual(page.elements.count("table"), 7)

    def test_pictures(self):
        pictures = forecast_plots.pictures(self.report)
        self.assertEqual([picture.name for picture in pictures],
                         ["exchange", "stages", "measured"])
        for picture in pictures:
            for width in style.WIDE, style.NARROW:
                text = picture.svg(width)
                self.assertRegex(text, "(time|predicted), ms")

    def test_one_node_has_no_exchange(self):
        alone = report.make(Programs(BIN), MACHINE, wanted.Wanted(
            nodes=(1,), records=(1000,)), [RUNS / "exchanges.json"])
        self.assertEqual([p.name for p in forecast_plots.pictures(alone)],
                         ["stages", "measured"])
        forecast_page.render(alone)
        self.assertIn("\n1 ", forecast_table.text(alone))


if __name__ == "__main__":
    unit.main()
