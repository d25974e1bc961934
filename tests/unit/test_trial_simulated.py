#!/usr/bin/python3
"""Simulated exchanges: points, sorts with them, and what was measured."""

import json
import os
import shutil
import tempfile
import unittest

import unit
from report_page import Page
from trials.base.failure import FILE, Failure
from trials.base.programs import Programs
from trials.simulated import simulated, simulated_plots

RUNS = unit.ROOT / "results" / "runs"
RECORD, MACHINE = RUNS / "simulated.jsonl", RUNS / "2026-11-28-machine"
BIN = os.environ.get("BIN", str(unit.ROOT / "bin"))


def make(path):
    return simulated.make(Programs(BIN), str(path), str(MACHINE))


class Simulated(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="blinksort-check.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "simulated")
        with open(RECORD, "rb") as file:
            self.line = json.loads(file.readline())

    def write(self, *changes):
        with open(self.path, "w", encoding="utf-8") as file:
            for change in changes:
                file.write(json.dumps(self.line | change) + "\n")
        return self.path

    def made(self, nodes, message_bytes, link, ns):
        return {"nodes": nodes, "message_bytes": message_bytes,
                "link_bits_per_s": link, "max_ns": ns, "schedule": "rounds"}

    def test_points_and_sorts(self):
        # 95 bytes to each of 1024 are all but a million records.
        report = make(self.write(self.made(1024, 95, 10**10, 9 * 10**6),
                                 self.made(2, 25 * 10**6, 10**11, 10**7)))
        self.assertEqual([10**6], report.records)
        self.assertEqual([["2", "-", "10.00"], ["1024", "9.000", "-"]],
                         simulated.rows(report, 10**6))
        job, = report.jobs["pagecache", 10**10]
        self.assertEqual(9e6 + job.launch + job.beside, job.whole)
        self.assertTrue(job.launch > job.beside > 0)

    def test_measured_beside(self):
        shutil.copy(RUNS / simulated.EXCHANGES, self.folder)
        report = make(self.write(self.made(4, 6250000, 10**10, 10**7),
                                 self.made(4, 6250000, 10**8, 1590 * 10**6)))
        rows = simulated.measured_rows(report)
        self.assertIn(["4 x 100 Mbit/s, 1M, rounds", "1590", "1590", "1.00",
                       "link", "memory settled"], rows)

    def test_what_is_no_record(self):
        for words, *changes in (
                ("is not complete",), ("nodes: 1 is less", {"nodes": 1}),
                ("nodes: 4097 is greater", {"nodes": 4097}),
                ("no link of 1 Gbit", self.made(2, 50, 10**8, 5))):
            self.write(*changes)
            with self.subTest(words), \
                    self.assertRaisesRegex(Failure, words) as caught:
                make(self.path)
            self.assertEqual(FILE, caught.exception.status)

    def test_page_of_the_record(self):
        report = make(RECORD)
        page = Page(simulated_plots.render(report))
        self.assertEqual([], page.outside())
        self.assertEqual([], page.missing_references())
        self.assertEqual(4, len(page.pictures()))
        self.assertTrue(report.measured)
        for words in "100M records", "2011: 40.5 ms", "1024":
            self.assertIn(words, page.text)
        self.assertIn("100M records", simulated.text(report))


if __name__ == "__main__":
    unit.main()
