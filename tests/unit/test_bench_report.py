#!/usr/bin/python3
"""What make bench says of a comparison with an older build."""

import sys
import unittest

import unit

sys.path.insert(0, str(unit.ROOT / "tests/bench"))
from report import slower_rows  # noqa: E402


def result(name, interval):
    return {"name": name, "ratio": {"interval": interval}}


class SlowerRows(unittest.TestCase):
    def test_slower(self):
        text = slower_rows([
            result("same", {"low": 0.98, "high": 1.02}),
            result("slow", {"low": 1.01, "high": 1.2}),
            {"name": "alone", "ratio": None}])
        self.assertEqual(
            ["2 compared; the interval of the median ratio lies above 1.00 "
             "in 1", "slow: 1.010 to 1.200"], text.splitlines())

    def test_no_interval(self):
        """Too few rounds, or no packages: nothing was shown."""
        text = slower_rows([
            result("few", None), result("bare", {"missing": "python3-numpy"}),
            result("same", {"low": 0.98, "high": 1.02})])
        self.assertRegex(text, "^1 compared; .* in 0\n2 without an interval")


if __name__ == "__main__":
    unit.main()
