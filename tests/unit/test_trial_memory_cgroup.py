#!/usr/bin/python3
"""trials.machine.memory_cgroup: cgroups of both versions, in a tree of files,
and one of this machine."""

import contextlib
import os
import subprocess
import tempfile
import unittest

import unit
from trials.machine import memory_cgroup
from trials.machine.memory_cgroup import MemoryCgroup, Unavailable

MIB = 1 << 20


class MemoryCgroups(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = scratch.name

    def put(self, path, text):
        path = f"{self.root}/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    def said(self, cgroup, name):
        return memory_cgroup.read(f"{cgroup.folder}/{name}")

    def test_version_1(self):
        self.put("proc/mounts", "none /sys/cpu cgroup rw,cpu 0 0\n"
                 "none /sys/memory cgroup rw,memory 0 0\n"
                 "none /sys/unified cgroup2 rw 0 0\n")
        self.put("sys/unified/cgroup.subtree_control", "cpu\n")
        os.makedirs(f"{self.root}/sys/memory")
        cgroup = MemoryCgroup(5 * MIB, self.root)
        self.assertEqual(os.path.dirname(cgroup.folder),
                         f"{self.root}/sys/memory")
        self.assertEqual(self.said(cgroup, "memory.limit_in_bytes"),
                         str(5 * MIB))

    def test_version_2(self):
        self.put("proc/mounts", "none /sys/all cgroup2 rw 0 0\n")
        self.put("sys/all/cgroup.subtree_control", "cpu memory\n")
        cgroup = MemoryCgroup(5 * MIB, self.root)
        self.assertEqual(self.said(cgroup, "memory.max"), str(5 * MIB))
        self.assertIsNone(cgroup.peak_bytes())
        self.put(f"{cgroup.folder[len(self.root):]}/memory.peak", "77\n")
        self.assertEqual(cgroup.peak_bytes(), 77)

    def test_none(self):
        for mounts, control in (("", ""), ("none /x cgroup2 rw 0 0", "cpu")):
            self.put("proc/mounts", mounts)
            self.put("x/cgroup.subtree_control", control)
            with self.assertRaises(Unavailable):
                MemoryCgroup(MIB, self.root)

    def test_real(self):
        try:
            cgroup = MemoryCgroup(64 * MIB)
        except Unavailable as reason:
            self.skipTest(f"no memory cgroup: {reason}")
        take = "import sys; bytearray(int(sys.argv[1]) << 20)"
        with contextlib.closing(cgroup):
            for mebibytes, status in ((20, 0), (200, -9)):
                done = subprocess.run(cgroup.command(
                    ["/usr/bin/python3", "-c", take, str(mebibytes)]),
                    check=False)
                self.assertEqual(done.returncode, status)
            if cgroup.peak_bytes() is not None:
                self.assertLessEqual(cgroup.peak_bytes(), 64 * MIB)
                self.assertGreater(cgroup.peak_bytes(), 20 * MIB)
        self.assertFalse(os.path.exists(cgroup.folder))


if __name__ == "__main__":
    unit.main()
