"""The pictures that are kept beside records are what blinkreport draws."""

import re
import unittest
from unittest import mock

import unit
from trials.drawing import style
from trials.record import store
from trials.report import plots
from trials.report.study import Study

RUNS = unit.ROOT / "results/runs"
# matplotlib measures texts with a library whose versions differ a little.
TOLERANCE_PX = 0.5
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TAG = re.compile("<[^>]*>")


def pictures_of(folder):
    return plots.pictures(Study(store.read(str(folder))))


def differences(kept, drawn):
    """What is otherwise in one than in the other."""
    if TAG.sub("", kept) != TAG.sub("", drawn):
        return ["texts"]
    if NUMBER.sub("0", kept) != NUMBER.sub("0", drawn):
        return ["shapes"]
    return [(one, other) for one, other in zip(
        NUMBER.findall(kept), NUMBER.findall(drawn))
        if abs(float(one) - float(other)) > TOLERANCE_PX]


class Kept(unittest.TestCase):
    def test_they_are_as_drawn(self):
        kept = sorted(RUNS.glob("*/*.svg"))
        self.assertTrue(kept)
        for path in kept:
            with self.subTest(path.relative_to(RUNS)):
                picture, = (picture for picture in pictures_of(path.parent)
                            if picture.name == path.stem)
                self.assertEqual([], differences(
                    path.read_text("utf-8"), picture.data("svg").decode()))


class Names(unittest.TestCase):
    def test_a_long_name_is_measured_few_times(self):
        measured = []
        with mock.patch.object(
                style, "text_width",
                lambda _, text, **settings: measured.append(len(text)) or
                6 * len(text)):
            short = style.shortened(None, "ab" * 50_000, 80)
        self.assertEqual("ababab…ababab", short)
        self.assertLess(sum(measured), 1000)


if __name__ == "__main__":
    unit.main()
