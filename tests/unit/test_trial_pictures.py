"""The pictures that are kept beside records are what blinkreport draws."""

import re
import unittest

import unit
from trials.record import bench, store
from trials.report import peers, plots
from trials.report.study import Study

RUNS = unit.ROOT / "results/runs"
# matplotlib measures texts with a library whose versions differ a little.
TOLERANCE_PX = 0.5
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
TAG = re.compile("<[^>]*>")


def pictures_of(folder):
    if bench.is_one(folder):
        return peers.pictures(bench.read(folder))
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


if __name__ == "__main__":
    unit.main()
