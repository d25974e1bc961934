#!/usr/bin/python3
"""Rates over time: what a timeline's counters say, and how they are shown."""

import json
import os
import shutil
import tempfile
import unittest

import numpy as np

import unit
from report_page import Page, picture_texts
from trials.base.failure import FILE, Failure
from trials.rates import rates, rates_plot

HEAD = '{"displayTimeUnit":"ns","traceEvents":[\n'


def name(pid, text):
    return {"name": "process_name", "ph": "M", "pid": pid, "tid": 0,
            "args": {"name": text}}


def counter(flow, pid, us, bytes_per_s):
    return {"name": flow, "ph": "C", "pid": pid, "ts": us,
            "args": {"bytes/s": bytes_per_s}}


SPAN = {"name": "read", "ph": "X", "pid": 1, "tid": 0, "ts": 1, "dur": 2}
# Rank 0 reads 3 MB in 2 ms, rank 1 1 MB in another time, and sends 500 bytes.
EVENTS = [
    name(1, "rank 0 (a)"), SPAN,
    counter("read", 1, 1000, 10**9), counter("read", 1, 2000, 2 * 10**9),
    counter("read", 1, 3000, 0), name(2, "rank 1 (b)"),
    counter("read", 2, 500, 10**9), counter("read", 2, 1500, 0),
    counter("send", 2, -10, 50 * 10**6), counter("send", 2, 0, 0)]


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="blinksort-check.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "trace")

    def write(self, events, head=HEAD):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(head + ",\n".join(
                each if isinstance(each, str)
                else json.dumps(each, separators=(",", ":"))
                for each in events)
                + '\n],"otherData":{"lost_spans":0}}\n')
        return self.path

    def read(self, events=EVENTS):
        return rates.read(self.write(events))

    def refused(self, words, *events, head=HEAD):
        self.write(events, head)
        with self.assertRaisesRegex(Failure, words) as caught:
            rates.read(self.path)
        self.assertEqual(FILE, caught.exception.status)


class Figures(Folder):
    def test_integral_is_what_was_moved(self):
        found = self.read()
        self.assertEqual(["read", "send"], list(found.flows))
        self.assertEqual(
            {1: 3_000_000, 2: 1_000_000},
            {pid: rate.moved_bytes for pid, rate
             in found.flows["read"].items()})
        self.assertEqual(500, found.flows["send"][2].moved_bytes)
        # Half of the first step, and all.
        self.assertEqual([0, 500_000, 3_000_000], list(
            found.flows["read"][1].until(np.array([0, 1.5e6, 9e9]))))

    def test_sum_of_all_ranks(self):
        total = self.read().total("read")
        self.assertEqual([500e3, 1000e3, 1500e3, 2000e3, 3000e3],
                         list(total.times_ns))
        self.assertEqual([1e9, 2e9, 1e9, 2e9, 0], list(total.bytes_per_s))
        self.assertEqual(4_000_000, total.moved_bytes)

    def test_rows(self):
        found = rates.rows(self.read())
        self.assertEqual(
            ["read, all", "3.815 MiB", "500.0 us", "3.000 ms", "1600 MB/s",
             "2000 MB/s"], found[0])
        self.assertEqual(["read, rank 0 (a)", "read, rank 1 (b)", "send"],
                         [row[0] for row in found[1:]])

    def test_order_of_events_does_not_matter(self):
        found = self.read(EVENTS[::-1])
        self.assertEqual(rates.rows(self.read()), rates.rows(found))


class Damaged(Folder):
    def test_what_is_no_timeline(self):
        self.refused("is no timeline", head='{"traceEvents":[\n')
        self.refused("has no rates", SPAN, name(1, "a"))
        # No time, or no bytes.
        self.refused("has no rates", counter("write", 1, 5, 3),
                     counter("read", 1, 5, 0), counter("read", 1, 6, 0))
        os.unlink(self.path)
        with self.assertRaisesRegex(Failure, "No such file"):
            rates.read(self.path)

    def test_lines_that_cant_be(self):
        good = counter("read", 1, 1, 1)
        for bad, words in (
                (good | {"pid": "x"}, "pid: 'x' is no number"),
                (good | {"name": "think"}, "it is no rate"),
                (counter("read", 1, 1, -1), "it is no rate"),
                (counter("read", 1, 1, "fast"), "it is no rate"),
                (counter("read", 1, None, 1), "it is no rate"),
                (counter("read", 1, 1, True), "it is no rate"),
                (counter("read", 1, -1e300, 1), "it is no rate"),
                (counter("read", 1, 1, 2**63 * 2.0), "it is no rate"),
                (counter("read", True, 1, 1), "pid: True is no number"),
                (good | {"args": {}}, "'bytes/s'"),
                (good | {"args": 1}, ":3: is damaged"),
                ('{"ph":"C","ts":NaN}', "NaN"),
                ('{"ph":"C"', ":3: is damaged"),
                ('{"ph":"C","ph":"C"}', ":3: is damaged"),
                ('{"ph":"C"}' + " " * 5000, "more than 4096 bytes")):
            with self.subTest(words):
                self.refused(words, good, bad)


class Shown(Folder):
    def test_page_has_each_flow(self):
        page = Page(rates_plot.render(self.read()))
        self.assertEqual([], page.outside())
        for root in page.pictures().values():
            texts = picture_texts(root)
            self.assertIn("read: 3.815 MiB", texts)
            self.assertIn("send: 500 bytes", texts)
        self.assertEqual(2, len(page.pictures()))
        self.assertIn("rank 1 (b)", page.text)

    def test_text_of_a_timeline_is_never_markup(self):
        nasty = "<script>alert(1)</script>\x1b[2J"
        found = self.read([*EVENTS, name(2, nasty)])
        page = Page(rates_plot.render(found))
        self.assertEqual([], page.outside())
        self.assertNotIn("\x1b", page.source + rates.text(found))

    def test_many_ranks_and_odd_times(self):
        found = self.read([
            counter("write", pid, 1e3 * pid + step, 1e9 * (2 - step))
            for pid in range(1, 200) for step in range(3)])
        self.assertEqual(199, len(found.flows["write"]))
        self.assertEqual(2, len(Page(rates_plot.render(found)).pictures()))


if __name__ == "__main__":
    unit.main()
