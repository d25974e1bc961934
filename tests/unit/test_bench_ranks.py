#!/usr/bin/python3
"""The parts of the benchmark of ranks beyond memory: how inputs are cut, how
the kernel's counts are read, which ratios are printed."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import unit

sys.path.insert(0, str(unit.ROOT / "tests/bench"))

import disk_counts  # noqa: E402
import links  # noqa: E402
import report  # noqa: E402
from external_inputs import Kind  # noqa: E402
from programs import Failed  # noqa: E402
from rank_inputs import Parts, RankInputs, check_equal  # noqa: E402
from trials.machine.memory_cgroup import Unavailable  # noqa: E402


class Counts(unittest.TestCase):
    V1 = ("254:0 Read 8192\n254:0 Write 4096\n254:0 Sync 12288\n"
          "254:0 Total 12288\n254:16 Read 1\n254:16 Write 2\nTotal 12288\n")
    V2 = ("8:0 rbytes=1 wbytes=2 rios=1 wios=1 dbytes=0 dios=0\n"
          "254:0 rbytes=8192 wbytes=4096 rios=2 wios=1 dbytes=7 dios=1\n")

    def test_version_1(self):
        self.assertEqual((8192, 4096), disk_counts.of_v1(self.V1, "254:0"))
        self.assertEqual((1, 2), disk_counts.of_v1(self.V1, "254:16"))
        self.assertIsNone(disk_counts.of_v1(self.V1, "254:1"))
        self.assertIsNone(disk_counts.of_v1("Total 0\n", "254:0"))

    def test_version_2(self):
        self.assertEqual((8192, 4096), disk_counts.of_v2(self.V2, "254:0"))
        self.assertEqual((1, 2), disk_counts.of_v2(self.V2, "8:0"))
        self.assertIsNone(disk_counts.of_v2(self.V2, "54:0"))

    def test_disk_of_partition(self):
        with tempfile.TemporaryDirectory() as root:
            device = os.stat(root).st_dev
            name = f"{os.major(device)}:{os.minor(device)}"
            with self.assertRaises(Unavailable):
                disk_counts.disk_of(root, root)
            folder = Path(root) / "sys/devices/sda/sda1"
            folder.mkdir(parents=True)
            (folder.parent / "dev").write_text("8:0\n")
            block = Path(root) / "sys/dev/block"
            block.mkdir(parents=True)
            (block / name).symlink_to(folder)
            self.assertEqual(name, disk_counts.disk_of(root, root))
            (folder / "partition").write_text("1\n")
            self.assertEqual("8:0", disk_counts.disk_of(root, root))

    def test_real(self):
        """What one process has written is counted for it, and nothing stays."""
        size = 1 << 20
        build = os.environ.get("BUILD", unit.ROOT / "build")
        with tempfile.TemporaryDirectory(dir=build) as folder:
            try:
                disk = disk_counts.disk_of(folder)
                cgroup = disk_counts.RankCgroup(64 << 20, disk)
            except Unavailable as reason:
                self.skipTest(str(reason))
            with cgroup:
                process = subprocess.Popen(cgroup.command(
                    ["dd", "if=/dev/zero", f"of={folder}/made", "conv=fsync",
                     f"bs={size}", "count=1"]), stderr=subprocess.DEVNULL)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                moved = cgroup.moved(usage)
        self.assertEqual(0, process.returncode)
        self.assertTrue(size <= moved["written_bytes"] < 2 * size, moved)
        self.assertTrue(size <= moved["process_written_bytes"] < 2 * size)
        for left in (cgroup.memory.folder, cgroup.counts):
            self.assertFalse(left and os.path.exists(left))


class Inputs(unittest.TestCase):
    def test_counts(self):
        kind = Kind("uniform")
        equal = [2, 3, 2, 3]
        for cut, wanted in (("even", equal), ("next-range", equal),
                            ("two-empty", [5, 0, 5, 0])):
            with self.subTest(cut):
                self.assertEqual(wanted, Parts(kind, 4, 1099, cut).counts())

    def test_cut(self):
        """The last rank has what comes first."""
        with tempfile.TemporaryDirectory() as folder:
            inputs = RankInputs(Path(folder))
            whole = Path(folder) / "whole"
            whole.write_bytes(b"aabbccdd")
            parts = Parts(Kind("uniform", 2), 4, 8, "next-range")
            inputs._cut(whole, parts)
            self.assertEqual([b"bb", b"cc", b"dd", b"aa"], [
                path.read_bytes() for path in inputs.paths(parts)])

    def test_equal(self):
        with tempfile.TemporaryDirectory() as folder:
            def file(name, data):
                path = Path(folder) / name
                path.write_bytes(data)
                return path
            outputs = [file("out.0", b"ab"), file("out.1", b""),
                       file("out.2", b"c")]
            check_equal(outputs, file("one", b"abc"))
            for wrong in (b"ab", b"abd", b"abcd", b""):
                with self.subTest(wrong), self.assertRaises(Failed):
                    check_equal(outputs, file("one", wrong))


class Figures(unittest.TestCase):
    def test_ratio(self):
        found = report.ratio_of([2, 3, 4], [2, 2, 2])
        self.assertEqual((1.25, 1.5, 1.75, None), tuple(found.values()))
        self.assertEqual("1.500, quartiles 1.250 to 1.750",
                         report.ratio_words(found))
        # Of six the extremes cover 1 - 2 / 2^6.
        found = report.ratio_of([2, 3, 4, 5, 6, 7], [2] * 6)
        self.assertEqual({"low": 1, "high": 3.5, "confidence": 0.9688},
                         found["interval"])
        self.assertIn("96.9 % interval of the median 1.000 to 3.500",
                      report.ratio_words(found))

    def test_link(self):
        # A datagram of 1514 bytes, at a million bytes a second.
        self.assertAlmostEqual(1.514, links.wire_ms(
            1440, 1440, links.HEADER_BYTES_UDP, mbit=8))


if __name__ == "__main__":
    unit.main()
