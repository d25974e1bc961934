"""record/bench.py and report/peers.py: programs that ran by turns with cp."""

import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import unit
from report_page import picture_texts
from trials.base.failure import Failure
from trials.drawing import style
from trials.record import bench
from trials.report import peers
from xml.etree import ElementTree

TIMES = {"blinksort": [10, 11, 12], "GNU <b>sort\x1b": [200, 300, 400],
         "cp": [20, 20, 30]}


def document(**changes):
    return {
        "rounds": 3, "blinksort_version": "blinksort 0.1.0",
        "machine": {"cpu_model": "a CPU", "cpus_allowed": 2, "kernel": "6"},
        "places": {"disk": {"fs_type": "ext4"}},
        "results": [
            {"name": "kernels", "place": None, "kernels": []},
            {"name": "disk/peers-ascii-1m", "place": "disk", "contestants": [
                {"name": name, "elapsed_ns": [ms * 10**6 for ms in times]}
                for name, times in TIMES.items()]}], **changes}


def read(found):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, bench.FILE_NAME).write_text(json.dumps(found))
        return bench.read(folder)


class Bench(unittest.TestCase):
    def test_ratios_are_of_the_same_round(self):
        series, = read(document()).series
        self.assertEqual([0.5, 0.55, 0.4], series.ratios("blinksort"))

    def test_text(self):
        text = peers.text(read(document()))
        self.assertRegex(text, r"\next4: .*\n.*\nblinksort +10.00 +11.00 +0.50")
        self.assertNotIn("\x1b", text)

    def test_a_foreign_text_begins_no_line(self):
        text = peers.text(read(document(machine={
            "cpu_model": "a CPU\nblinksort  9", "cpus_allowed": "2\n2",
            "kernel": "6\n7"})))
        self.assertRegex(text, r"\Amachine    a CPU.*7\nblinksort  0\.1\.0\n")

    def test_a_long_name_is_measured_few_times(self):
        measured = []
        with mock.patch.object(
                style, "text_width",
                lambda _, text, **settings: measured.append(len(text)) or
                6 * len(text)):
            short = style.shortened(None, "ab" * 50_000, 80)
        self.assertEqual("ababab…ababab", short)
        self.assertLess(sum(measured), 1000)

    def test_picture(self):
        picture, = peers.pictures(read(document()))
        for width in 358, 880:
            texts = picture_texts(ElementTree.fromstring(picture.svg(width)))
            for words in "on ext4", "blinksort", "0.50", "11 ms", "13.3", "cp":
                self.assertIn(words, texts)
        self.assertIn("blinksort 0.50", picture.description)

    def test_what_is_no_record_is_refused(self):
        good = document()["results"]
        for changes in ({"results": good[:1]}, {"results": 3},
                        {"results": [{**good[1], "place": "shelf"}]},
                        {"rounds": 2}, {"places": {}}, {"machine": None}):
            with self.subTest(changes), self.assertRaises(Failure):
                read(document(**changes))
        for times in [], [1, 2], [1, 2, 0], [1, 2, "3"], [1, 2, 3.5], None:
            found = document()
            found["results"][1]["contestants"][0]["elapsed_ns"] = times
            with self.subTest(times), self.assertRaises(Failure):
                read(found)


if __name__ == "__main__":
    unit.main()
