"""What the parts of a machine take: extents, fio's figures, the whole."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

import unit
from trials.base.failure import Failure
from trials.base.programs import Programs
from trials.characterise import extents, fio, measurements

BIN = os.environ.get("BIN", str(unit.ROOT / "bin"))


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="blinksort-check.")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, pieces):
        """A file with bytes at these (offset, length) and holes between."""
        with open(self.path(name), "wb") as file:
            for offset, length in pieces:
                file.seek(offset)
                file.write(os.urandom(length))
            file.flush()
            os.fsync(file.fileno())
        return self.path(name)


class Extents(Folder):
    def of(self, path):
        try:
            return extents.of_file(path)
        except extents.Unknown as why:
            self.skipTest(str(why))

    def test_extents_cover_what_was_written(self):
        path = self.write("holes", [(0, 65536), (1 << 20, 131072)])
        covered = set()
        for extent in self.of(path):
            first = extent.logical_bytes // 4096
            covered |= set(range(first, first + extent.length_bytes // 4096))
        wanted = set(range(16)) | set(range(256, 288))
        self.assertEqual(covered, wanted)

    def test_extents_of_many_pieces(self):
        """More than one call gives."""
        count = extents.EXTENTS_A_CALL * 2 + 5
        path = self.write("many", [(i * 8192, 4096) for i in range(count)])
        found = self.of(path)
        self.assertEqual([e.logical_bytes for e in found],
                         [i * 8192 for i in range(count)])

    def test_extents_as_filefrag_says(self):
        path = self.write("file", [(0, 1 << 20)])
        found = self.of(path)
        tool = shutil.which("filefrag", path="/usr/sbin:/sbin:/usr/bin")
        if not tool:
            self.skipTest("no filefrag")
        said = subprocess.run([tool, "-b4096", "-v", path], text=True,
                              check=True, capture_output=True).stdout
        starts = [int(line.split(":")[2].split("..")[0])
                  for line in said.splitlines()
                  if line.strip()[:1].isdigit() and ".." in line]
        self.assertEqual([e.physical_bytes // 4096 for e in found], starts)


class Fio(Folder):
    def setUp(self):
        super().setUp()
        self.program = shutil.which("fio")
        if not self.program:
            self.skipTest("no fio")

    def test_fio_reads_and_does_not_write(self):
        path = self.write("file", [(0, 1 << 20)])
        with open(path, "rb") as file:
            before = file.read()
        found = fio.rate(self.program, path, "randread", 4096, 0.05)
        self.assertGreater(found["bytes_per_s"], 0)
        self.assertGreaterEqual(found["transfer_p99_ns"],
                                found["transfer_median_ns"])
        with self.assertRaises(Failure):
            fio.rate(self.program, path, "randwrite", 4096, 0.05)
        with open(path, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_streams_write_only_the_second_half(self):
        path = self.write("file", [(0, 1 << 23)])
        with open(path, "rb") as file:
            before = file.read()
        half = len(before) // 2
        for ways in (("read",), ("write",), ("read", "write")):
            self.assertGreater(fio.stream_rate(
                self.program, path, ways, 1 << 20, 2, 0.05, half), 0)
            with open(path, "rb") as file:
                after = file.read()
            self.assertEqual(after[:half], before[:half])
            self.assertEqual(after[half:] == before[half:],
                             ways == ("read",))

    def test_fio_says_why_not(self):
        with self.assertRaises(Failure) as caught:
            fio.rate(self.program, self.path("none"), "read", 4096, 0.05)
        self.assertEqual(len(str(caught.exception).splitlines()), 1)


class Whole(Folder):
    def run_quick(self, **options):
        work = self.path("work")
        os.makedirs(work, exist_ok=True)
        measurements.run(measurements.Job(
            Programs(BIN), self.path("out"), work,
            scale=measurements.QUICK, **options))
        self.assertEqual(os.listdir(work), [])
        self.assertEqual(sorted(os.listdir(self.path("out"))),
                         [measurements.FILE_NAME, "environment.json"])
        return measurements.read(self.path("out"))

    def test_whole_has_every_part(self):
        path = self.write("file", [(0, 8192)])
        lines = self.run_quick(files=[path])
        parts = {line["part"] for line in lines}
        self.assertEqual(parts, {"memory", "start", "disk", "extents",
                                 "network"})
        for line in lines:
            self.assertEqual(bool(line["samples"]), line["why"] is None, line)
            self.assertTrue(all(x > 0 for x in line["samples"]), line)
        with self.assertRaises(Failure):
            self.run_quick()

    def test_whole_without_fio(self):
        """What can't be measured is said, and the rest measured."""
        find = Programs.find
        with mock.patch.object(Programs, "find", lambda self, name: None
                               if name == "fio" else find(self, name)):
            lines = self.run_quick()
        disk = [line for line in lines if line["part"] == "disk"]
        self.assertEqual([line["why"] for line in disk],
                         ["fio is not installed"])

    def test_whole_needs_its_files(self):
        with self.assertRaisesRegex(Failure, "none"):
            self.run_quick(files=[self.path("none")])
        self.assertFalse(os.path.exists(self.path("out")))

    def test_whole_reads_only_its_own(self):
        path = self.path(measurements.FILE_NAME)
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps({"schema": "other"}) + "\n")
        with self.assertRaisesRegex(Failure, ":1"):
            measurements.read(self.folder)


if __name__ == "__main__":
    unit.main()
