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


class Disks(Folder):
    """A file serves in place of a device."""

    def setUp(self):
        super().setUp()
        program = shutil.which("fio")
        if not program:
            self.skipTest("no fio")
        with open(self.path("device"), "wb") as file:
            file.truncate(100 * measurements.MIB)
        self.disk = measurements.Disk(
            program, measurements.QUICK,
            measurements.Measures(self.path("out")), self.path("device"))

    def lines(self, what):
        self.disk.measures.close()
        return [line for line in measurements.read(self.path("out"))
                if line["what"] == what]

    def test_surface_has_each_size_at_each_place(self):
        measurements._positions(self.disk)
        lines = self.lines("surface")
        self.assertEqual([], [line["why"] for line in lines if line["why"]])
        self.assertEqual(
            {(offset, block) for offset in (0, 50 * measurements.MIB)
             for block in measurements.QUICK.surface_bytes},
            {(line["setting"]["offset_bytes"],
              line["setting"]["transfer_bytes"]) for line in lines})

    def test_writes_go_to_each_of_the_files(self):
        call, sizes, written = fio.rate, set(), []

        def bytes_of(path):
            for name in os.listdir(path):
                with open(os.path.join(path, name), "rb") as file:
                    yield file.read()

        def watched(program, path, *rest, **options):
            self.assertFalse(any(map(any, bytes_of(path))))
            found = call(program, path, *rest, **options)
            sizes.update(map(len, bytes_of(path)))
            written.append(sum(map(any, bytes_of(path))))
            return found

        with mock.patch.object(fio, "rate", watched):
            measurements._spread_writes(self.disk, self.path("files"))
        self.assertEqual(({256 << 10}, [20, 20]), (sizes, written))
        self.assertFalse(os.path.exists(self.path("files")))
        self.assertEqual(
            [(size, 20) for size in measurements.QUICK.spread_bytes],
            [(line["setting"]["transfer_bytes"], line["setting"]["files"])
             for line in self.lines("spread write")])

    def test_writes_take_half_of_what_is_free(self):
        for room in (10, 3):
            free = mock.Mock(f_bavail=room * 256, f_frsize=1024)
            with mock.patch("os.statvfs", lambda _, found=free: found):
                measurements._spread_writes(self.disk, self.path("files"))
        self.assertFalse(os.path.exists(self.path("files")))
        lines = self.lines("spread write")
        self.assertEqual([5, 5], [line["setting"].get("files")
                                  for line in lines[:2]])
        self.assertRegex(lines[2]["why"], "no room for two files")


class Probes(Folder):
    """What is measured, where the probe answers as it would there."""

    # Two with CPUs, one of which has no memory, and one with memory only.
    NODES = [{"node": 0, "cpus": 2, "has_memory": True,
              "distances": [10, 21, None]},
             {"node": 1, "cpus": 3, "has_memory": False,
              "distances": [21, 10, 31]},
             {"node": 5, "cpus": 0, "has_memory": True,
              "distances": [None, 31, 10]}]

    def run_memory(self, cpus, places=None):
        """The measurements of memory of a machine with these nodes."""
        def call(_, program, *arguments):
            options = dict(word.lstrip("-").split("=")
                           for word in arguments if "=" in word)
            node = options.get("memory-node")
            threads, area = int(options["threads"]), int(options["area"])
            numa = None if node is None else [
                {"node": int(node) if places is None else places,
                 "memory_bytes": threads * area}]
            return mock.Mock(stdout=json.dumps({
                "area_bytes": area, "block_bytes": 64, "threads": threads,
                "thread_bytes": 1000, "thread_accesses": 10,
                "memory_node": node and int(node), "numa": numa,
                "nodes": self.NODES,
                "samples_ns": [100, 200]}))

        job = measurements.Job(
            Programs(BIN), self.path("out"), self.path("work"),
            scale=measurements.QUICK)
        measures = measurements.Measures(job.out)
        with mock.patch.object(Programs, "must_call", call), \
                mock.patch("os.sched_getaffinity", lambda _: set(range(cpus))):
            measurements._memory(job, measures)
        measures.close()
        return measurements.read(job.out)

    def test_memory_from_each_node_to_each(self):
        lines = [line for line in self.run_memory(4)
                 if "cpu_node" in line["setting"]]
        found = [(x["what"], x["setting"]["cpu_node"],
                  x["setting"]["memory_node"], x["setting"]["threads"],
                  x["setting"].get("distance")) for x in lines]
        self.assertEqual(
            [(what, a, b, 1 if what == "chase" else threads, distance)
             for a, b, threads, distance in (
                 (0, 0, 2, 10), (0, 5, 2, None), (1, 0, 3, 21),
                 (1, 5, 3, 31)) for what in ("read", "copy", "chase")], found)
        for line in lines:
            self.assertEqual(
                line["setting"]["threads"] * line["setting"]["area_bytes"],
                line["setting"]["placed_bytes"])
            self.assertEqual([10, 20] if line["what"] == "chase" else
                             [round(1e10 * line["setting"]["threads"] / k)
                              for k in (1, 2)], line["samples"])

    def test_memory_that_lies_elsewhere_is_no_figure(self):
        lines = [line for line in self.run_memory(4, places=0)
                 if "cpu_node" in line["setting"]]
        self.assertEqual({0: True, 5: False}, {
            line["setting"]["memory_node"]: bool(line["samples"])
            for line in lines})
        self.assertIn("node 5: has only 0 of", {
            line["why"] for line in lines if line["why"]}.pop())

    def test_memory_by_number_of_threads(self):
        found = {}
        for line in self.run_memory(4):
            if "cpu_node" not in line["setting"]:
                found.setdefault(line["setting"]["threads"], []).append(
                    (line["what"], line["setting"]["area_bytes"]))
        self.assertEqual([1, 2, 4], sorted(found))
        self.assertEqual(
            [(what, measurements.QUICK.areas_bytes[-1])
             for what in ("read", "write", "copy", "random")], found[2])

    def test_thread_counts(self):
        for cpus, wanted in ((1, [1]), (2, [1, 2]), (3, [1, 2, 3]),
                             (4, [1, 2, 4]), (12, [1, 2, 4, 8, 12])):
            self.assertEqual(wanted, measurements.thread_counts(cpus))


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
        self.assertEqual(parts, {"memory", "codec", "start", "disk",
                                 "extents", "network"})
        nodes = json.loads(Programs(BIN).must_call(
            "blinkprobe", "memory", "--rounds=1", "--bytes=0").stdout)["nodes"]
        self.assertEqual(
            {(a["node"], b["node"]) for a in nodes if a["cpus"]
             for b in nodes if b["has_memory"]},
            {(line["setting"]["cpu_node"], line["setting"]["memory_node"])
             for line in lines if "cpu_node" in line["setting"]})
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
