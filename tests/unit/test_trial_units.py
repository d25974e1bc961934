"""Figures as people read them, and failures as one line."""

import errno
import unittest

import unit
from trials.base import units
from trials.base.failure import FAILED, FILE, Failure, of_file


class Units(unittest.TestCase):
    def test_units_durations(self):
        for ns, text in ((0, "0 ns"), (999, "999 ns"), (12.34, "12.34 ns"),
                         (1000, "1.000 us"), (23_712_345, "23.71 ms"),
                         (237_123_450, "237.1 ms"), (999_949, "999.9 us"),
                         (999_950, "1.000 ms"), (999_994_999, "1.000 s"),
                         (61e9, "61.00 s"), (12_345_678e9, "12345678 s"),
                         (-1500, "-1.500 us")):
            self.assertEqual(units.duration(ns), text)

    def test_units_digits(self):
        for value, text in ((0, "0.000"), (9.9994, "9.999"), (9.9996, "10.00"),
                            (99.996, "100.0"), (999.96, "1000"),
                            (123456, "123456")):
            self.assertEqual(units.digits(value), text)

    def test_units_others(self):
        self.assertEqual(units.size(512), "512 bytes")
        self.assertEqual(units.size(100_000_000), "95.37 MiB")
        self.assertEqual(units.milliseconds(23_712_345), "23.71")
        self.assertEqual(units.change(1.0234), "+2.34 %")
        self.assertEqual(units.change(0.5), "-50.00 %")


class Failures(unittest.TestCase):
    def test_failure_is_one_line(self):
        failure = Failure("a", "b\nc")
        self.assertEqual((str(failure), failure.status), ("a: b c", FAILED))

    def test_failure_of_file(self):
        failure = of_file("x", OSError(errno.ENOENT, "whatever", "y"))
        self.assertEqual(str(failure), "x: No such file or directory")
        self.assertEqual(failure.status, FILE)
        self.assertEqual(str(of_file("x", OSError("odd"))), "x: odd")


if __name__ == "__main__":
    unit.main()
