#!/usr/bin/python3
"""Scenarios, what lies under a path, and what is read and sorted there:
conditions.py, disks.py, cache_filler.py, inputs.py of results/trials."""

import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import unit
from trials.base.failure import FILE, USAGE, Failure
from trials.base.programs import Programs
from trials.machine import disks
from trials.machine.disks import Placement
from trials.scenario import cache_filler, conditions, inputs, residency
from trials.scenario.context import Context, DeviceContext
from trials.scenario.place import Place

BIN = os.environ.get("BIN") or str(unit.ROOT / "bin")
MIB = 1 << 20
HDPARM_CACHE = "\tcache/buffer size  = 8192 KBytes (type=DualPortCache)\n"
DIRECT = {"io": "direct", "output_io": "direct", "synced": True}


def patch(what, **names):
    return unittest.mock.patch.multiple(what, **names)


class Folder(unittest.TestCase):
    """A folder, and in it a tree that stands for /sys and /proc."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="blinksort-test.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.root = f"{self.folder}/root"
        # Of a machine that is not this one, nothing is asked.
        patcher = patch(disks, ask_hdparm=lambda option, drive: "")
        patcher.start()
        self.addCleanup(patcher.stop)

    def put(self, path, text=""):
        path = f"{self.root}/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def link(self, path, to):
        path = f"{self.root}/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(f"{self.root}/{to}", path)

    def put_drive(self, name, place="pci0000:00/ata1", cache="write back",
                  numbers=None):
        """A drive with one partition; numbers: "8:0" of the drive."""
        folder = f"sys/devices/{place}/block/{name}"
        self.put(f"{folder}/queue/write_cache", cache)
        self.put(f"{folder}/{name}1/partition", "1")
        self.link(f"sys/block/{name}", folder)
        if numbers:
            major, minor = numbers.split(":")
            self.link(f"sys/dev/block/{numbers}", folder)
            self.link(f"sys/dev/block/{major}:{int(minor) + 1}",
                      f"{folder}/{name}1")
        return folder

    def put_array(self, name, numbers, members, level=None):
        folder = f"sys/devices/virtual/block/{name}"
        self.put(f"{folder}/size", "1")
        for member in members:
            self.link(f"{folder}/slaves/{os.path.basename(member)}", member)
        if level:
            self.put(f"{folder}/md/level", level)
        self.link(f"sys/dev/block/{numbers}", folder)


class TestDisks(Folder):
    def on(self, major, minor):
        return disks.of_device(major, minor, self.root)

    def test_drive_and_partition(self):
        self.put_drive("sda", numbers="8:0")
        self.assertEqual(self.on(8, 0), Placement(("sda",)))
        self.assertEqual(self.on(8, 1), Placement(("sda",)))

    def test_array_of_partitions(self):
        parts = [self.put_drive(name) + f"/{name}1" for name in
                 ("sda", "sdb", "sdc")]
        self.put_array("md0", "9:0", parts, "raid0")
        self.assertEqual(self.on(9, 0), Placement(("sda", "sdb", "sdc")))

    def test_mirror_is_not_read_evenly(self):
        drives = [self.put_drive(name) for name in ("sda", "sdb")]
        self.put_array("md0", "9:0", drives, "raid1")
        self.assertFalse(self.on(9, 0).spread)

    def test_volume_on_an_array(self):
        drives = [self.put_drive(name) for name in ("sda", "sdb")]
        self.put_array("md0", "9:0", drives, "raid0")
        self.put_array("dm-0", "253:0", ["sys/devices/virtual/block/md0"])
        self.assertEqual(self.on(253, 0).drives, ("sda", "sdb"))

    def test_volume_on_one_drive(self):
        self.put_array("dm-0", "253:0",
                       [self.put_drive("nvme0n1", "pci0000:00/nvme")])
        self.assertEqual(self.on(253, 0), Placement(("nvme0n1",)))

    def test_memory_is_no_drive(self):
        self.put("sys/devices/virtual/block/zram0/size", "1")
        self.link("sys/dev/block/252:0", "sys/devices/virtual/block/zram0")
        self.assertTrue(self.on(252, 0).memory)
        self.put_array("dm-1", "253:1", ["sys/devices/virtual/block/zram0"])
        self.assertTrue(self.on(253, 1).memory)

    def test_unknown_device(self):
        found = self.on(99, 9)
        self.assertEqual(found.drives, ())
        self.assertEqual(found.why, "no device 99:9 in /sys")

    def mounted(self, fs_type, source="none", options="rw"):
        device = os.stat(self.folder).st_dev
        self.put("proc/self/mountinfo",
                 "22 1 0:9999 / /elsewhere rw - proc proc rw\n"
                 f"23 1 {os.major(device)}:{os.minor(device)} / / "
                 f"rw,noatime - {fs_type} {source} {options}")

    def test_file_systems_without_a_device(self):
        anonymous = types.SimpleNamespace(
            st_dev=os.makedev(0, 77), st_mode=0o40755)
        for fs_type, memory, why in (
                ("tmpfs", True, "tmpfs has no disk"),
                ("overlay", False, "disks of overlay not known")):
            self.put("proc/self/mountinfo",
                     f"23 1 0:77 / / rw - {fs_type} none rw")
            with patch(disks.os, stat=lambda path: anonymous):
                found = disks.of_path(self.folder, self.root)
            self.assertEqual(found, Placement((), why, memory))

    def test_path_that_is_not_there_yet(self):
        self.assertEqual(disks.of_path(f"{self.folder}/a/b/c"),
                         disks.of_path(self.folder))

    def test_mount(self):
        self.mounted("ext4", "/dev/x\\040y", "rw,barrier=0")
        found = disks.mount_of(self.folder, self.root)
        self.assertEqual(found, disks.Mount(
            "/", "/dev/x y", "ext4", "rw,noatime,barrier=0"))

    def test_write_cache(self):
        for text, state in (("write back", True), ("write through", False),
                            ("", None), ("of course", None)):
            self.put_drive("sda", cache=text)
            self.assertIs(disks.write_cache("sda", self.root), state)
            os.unlink(f"{self.root}/sys/block/sda")
        self.assertIsNone(disks.write_cache("sdz", self.root))

    def test_write_cache_that_only_the_kernel_thinks_off(self):
        folder = self.put_drive("sda", cache="write through")
        cache_type = f"{folder}/device/scsi_disk/0:0:0:0/cache_type"
        self.put(cache_type, "write through")
        self.assertIs(disks.write_cache("sda", self.root), False)
        self.put(cache_type, "write back")
        self.assertIsNone(disks.write_cache("sda", self.root))

    def test_write_cache_of_a_file(self):
        folder = self.put_drive("loop0", "virtual")
        self.put(f"{folder}/loop/backing_file", "/a/file")
        self.assertIsNone(disks.write_cache("loop0", self.root))

    def test_hdparm(self):
        self.assertEqual(disks.cache_bytes_in(HDPARM_CACHE), 8 * MIB)
        self.assertIsNone(disks.cache_bytes_in(
            "\tcache/buffer size  = unknown\n"))
        for text, state in (("1 (on)", True), ("0 (off)", False),
                            ("not supported", None)):
            self.assertIs(disks.write_cache_in(
                f"\n/dev/sda:\n write-caching =  {text}\n"), state)

    def test_virtual(self):
        self.put("proc/cpuinfo", "processor : 0\nflags : fpu sse2")
        self.put_drive("vda", "pci0000:00/virtio1")
        self.put_drive("xvda", "vbd-768")
        qemu = self.put_drive("sdb")
        self.put(f"{qemu}/device/vendor", "QEMU")
        self.put(f"{self.put_drive('loop7', 'virtual')}/loop/backing_file")
        self.put_drive("sda")
        for drive, said in (
                ("vda", "virtio disk"), ("xvda", "Xen disk"),
                ("sdb", "QEMU disk"), ("loop7", "a file, not a drive"),
                ("nbd0", "disk of another machine"), ("sda", None)):
            self.assertEqual(disks.virtual(drive, self.root), said)
        self.put("proc/cpuinfo", "processor : 0\nflags : fpu hypervisor")
        self.assertEqual(disks.virtual("sda", self.root), "virtual machine")


class TestCacheFiller(Folder):
    def test_read_past_the_page_cache(self):
        one = cache_filler.CacheFiller(f"{self.folder}/filler", 3 * MIB - 1)
        try:
            one.make()
        except Failure as failure:
            self.skipTest(str(failure))
        self.assertEqual(os.path.getsize(one.path), 3 * MIB)
        self.assertEqual(one.read(), 3 * MIB)
        if not disks.of_path(self.folder).memory:
            self.assertEqual(residency.fraction(one.path), 0.0)
        made_ns = os.stat(one.path).st_mtime_ns
        one.make()
        self.assertEqual(os.stat(one.path).st_mtime_ns, made_ns)
        os.truncate(one.path, MIB)
        one.make()
        self.assertEqual(one.read(), 3 * MIB)
        with open(one.path, "rb") as file:
            self.assertNotEqual(file.read(MIB), file.read(MIB))
        one.remove()
        one.remove()
        self.assertFalse(os.path.exists(one.path))

    def test_no_folder(self):
        for function in (cache_filler.CacheFiller("/nowhere/x", 1).make,
                         cache_filler.CacheFiller("/nowhere/x", 1).read):
            with self.assertRaises(Failure) as caught:
                function()
            self.assertEqual(caught.exception.status, FILE)


@unittest.skipUnless(os.path.exists(f"{BIN}/blinkgen"), "no programs")
class TestInputs(Folder):
    def setUp(self):
        super().setUp()
        self.programs = Programs(BIN)
        self.path = f"{self.folder}/in"

    def make(self, records=1000, ascii=True, start=0, reuse=False):
        return inputs.make(self.path, records, ascii, start, self.programs,
                           reuse)

    def read(self):
        with open(self.path, "rb") as file:
            return file.read()

    def test_known_checksum(self):
        # Of a million ascii records of gensort 1.5, as the manual has it.
        self.assertEqual(
            inputs.generate("/dev/null", 1_000_000, True, 0, self.programs),
            "7a19cff467438")
        made = self.make()
        self.assertEqual(made.bytes, 100_000)
        done = subprocess.run([f"{BIN}/blinkval", self.path], check=False,
                              capture_output=True, text=True)
        self.assertIn(f"Checksum: {made.checksum}\n", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["in"])

    def test_shares_are_the_whole(self):
        self.make(1001)
        whole, parts = self.read(), b""
        for rank in range(7):
            start, count = inputs.share(1001, rank, 7)
            self.assertIn(count, (143, 1001 // 7))
            self.make(count, start=start)
            parts += self.read()
        self.assertEqual(parts, whole)

    def test_shares_differ_by_one_at_most(self):
        for records in (0, 1, 5, 1000):
            counts = [inputs.share(records, rank, 16)[1]
                      for rank in range(16)]
            self.assertEqual(sum(counts), records)
            self.assertLessEqual(max(counts) - min(counts), 1)

    def inode(self):
        return os.stat(self.path).st_ino, os.stat(self.path).st_mtime_ns

    def test_right_file_is_taken(self):
        first, before = self.make(), self.inode()
        self.assertEqual(self.make(reuse=True), first)
        self.assertEqual(self.inode(), before)
        self.make()
        self.assertNotEqual(self.inode(), before)

    def test_wrong_files_are_not(self):
        self.make()
        right = self.read()
        records = sorted(right[i:i + 100] for i in range(0, 100_000, 100))
        for wrong in (right[:-100], b"", right[:-101] + b"x" + right[-100:],
                      b"".join(records)):
            with open(self.path, "wb") as file:
                file.write(wrong)
            self.make(reuse=True)
            self.assertEqual(self.read(), right)
        self.make(ascii=False, reuse=True)
        self.assertNotEqual(self.read(), right)
        self.make(start=5, reuse=True)
        self.assertNotEqual(self.read()[:100], right[:100])

    def test_no_folder(self):
        with self.assertRaises(Failure) as caught:
            inputs.make("/nowhere/x", 1, True, 0, self.programs)
        self.assertEqual(caught.exception.status, FILE)
        self.assertIn("/nowhere/x", str(caught.exception))


class TestScenarios(Folder):
    """By a drive of the tree, and files of the real folder."""

    def setUp(self):
        super().setUp()
        self.put("proc/cpuinfo", "flags : fpu")
        self.put("proc/sys/vm/drop_caches", "0")
        self.input, self.output = f"{self.folder}/in", f"{self.folder}/out"
        self.context = Context(self.input, self.output)
        for path in (self.input, self.output):
            with open(path, "wb") as file:
                file.write(os.urandom(3 * MIB + 5))

    def scenario(self, name, placement=Placement(("sda",)), hdparm=None,
                 **options):
        said = hdparm or {}
        with patch(disks, of_path=lambda path, root: placement,
                   ask_hdparm=lambda option, drive: said.get(option, "")):
            return conditions.scenario(
                name, Place.folder(self.folder),
                types.SimpleNamespace(root=self.root, **options))

    def refusal(self, name, *arguments, **options):
        with self.assertRaises(Failure) as caught:
            self.scenario(name, *arguments, **options).check()
        self.assertEqual(caught.exception.status, 1)
        return str(caught.exception)

    def met(self, found):
        return {one["name"]: one["met"] for one in found}

    def skip_in_memory(self):
        if disks.of_path(self.folder).memory:
            self.skipTest("files in memory only")

    # --- before all trials ---

    def test_unknown_name(self):
        with self.assertRaises(Failure) as caught:
            conditions.scenario("floppy", Place.folder(self.folder))
        self.assertEqual(caught.exception.status, USAGE)

    def test_sort_options(self):
        self.assertEqual(
            [self.scenario(name).sort_options() for name in conditions.NAMES],
            [[], ["--io=direct"], ["--io=direct", "--sync"],
             ["--sync", "--memory=268435456"]])

    def test_all_well(self):
        self.put_drive("sda")
        self.assertEqual(self.scenario("pagecache").check(), [])
        self.assertEqual(self.met(self.scenario("cache").check()),
                         {"write-cache": True})
        found = self.scenario("platter", cache_bytes=MIB).check()
        self.assertEqual(conditions.all_met(found), True)
        self.assertEqual([one["name"] for one in found],
                         ["drive-cache-defeated", "write-cache", "flush"])

    def test_memory_is_refused_always(self):
        memory = Placement((), "tmpfs has no disk", True)
        for name in ("cache", "platter"):
            said = f"{name}: {self.folder}: tmpfs has no disk"
            self.assertEqual(self.refusal(name, memory), said)
            with self.assertRaises(Failure):
                self.scenario(name, memory).check(refuse_unverified=False)
        self.assertEqual(self.scenario("pagecache", memory).check(), [])

    def test_write_cache_off(self):
        self.put_drive("sda", cache="write through")
        self.assertEqual(self.refusal("cache"),
                         "cache: write-cache: off (sda) (wanted: on)")
        found = self.scenario("cache").check(refuse_unverified=False)
        self.assertEqual(self.met(found), {"write-cache": False})
        self.scenario("platter", cache_bytes=MIB).check()

    def test_write_cache_unknown(self):
        self.assertIn("unknown (sda)", self.refusal("cache"))
        self.assertIn("write-cache", self.refusal("platter", cache_bytes=MIB))
        nowhere = Placement((), "disks of overlay not known")
        self.assertIn("disks of overlay not known",
                      self.refusal("cache", nowhere))
        self.assertIn("disks of overlay not known",
                      self.refusal("platter", nowhere, cache_bytes=MIB))

    def test_drive_contradicts_the_kernel(self):
        self.put_drive("sda", cache="write through")
        on = {"-W": " write-caching =  1 (on)\n"}
        off = {"-W": " write-caching =  0 (off)\n"}
        self.assertIn("write-cache: unknown (sda)", self.refusal(
            "platter", hdparm=on, cache_bytes=MIB))
        self.scenario("platter", hdparm=off, cache_bytes=MIB).check()

    def test_one_drive_of_two(self):
        self.put_drive("sda")
        self.put_drive("sdb", cache="write through")
        two = Placement(("sda", "sdb"))
        self.assertEqual(
            self.refusal("cache", two),
            "cache: write-cache: on (sda), off (sdb) (wanted: on)")

    def test_cache_size(self):
        self.put_drive("sda")
        self.assertEqual(
            self.refusal("platter"), "platter: drive cache of sda: size "
            "unknown (give --cache-bytes)")
        found = self.scenario("platter", hdparm={"-I": HDPARM_CACHE})
        self.assertEqual(found.wanted_bytes, 8 * MIB)
        found.check()
        found = self.scenario("platter", hdparm={"-I": HDPARM_CACHE},
                              cache_bytes=5 * MIB)
        self.assertEqual(found.wanted_bytes, 5 * MIB)
        found = self.scenario("platter")
        self.assertEqual(found.wanted_bytes, 256 * MIB)

    def test_several_drives_need_more(self):
        self.put_drive("sda")
        self.put_drive("sdb")
        two = self.scenario("platter", Placement(("sda", "sdb")),
                            cache_bytes=MIB)
        self.assertEqual(two.wanted_bytes, 2 * MIB)
        two.check()
        self.assertIn("not read evenly", self.refusal(
            "platter", Placement(("sda", "sdb"), spread=False),
            cache_bytes=MIB))

    def test_virtual_disk(self):
        self.put_drive("vda", "pci0000:00/virtio1")
        virtual = Placement(("vda",))
        self.assertEqual(
            self.refusal("platter", virtual, cache_bytes=MIB), "platter: "
            "drive cache of vda: virtio disk, the host may cache")
        found = self.scenario("platter", virtual, cache_bytes=MIB)
        self.assertEqual(self.met(found.check(refuse_unverified=False)), {
            "drive-cache-defeated": None, "write-cache": True, "flush": None})

    def test_mount_without_barriers(self):
        self.put_drive("sda")
        device = os.stat(self.folder).st_dev
        self.put("proc/self/mountinfo",
                 f"23 1 {os.major(device)}:{os.minor(device)} / / rw - ext4 "
                 "/dev/sda1 rw,nobarrier")
        self.assertEqual(
            self.refusal("platter", cache_bytes=MIB), "platter: flush: "
            "mounted without barriers (wanted: passed on to the medium)")

    # --- before and after one ---

    def test_pagecache(self):
        residency.evict(self.input)
        one = self.scenario("pagecache")
        self.assertEqual(self.met(one.prepare(self.context)),
                         {"input-resident": True})
        self.assertEqual(residency.fraction(self.input), 1.0)
        residency.load(self.output)
        self.assertEqual(self.met(one.verify(self.context, {})),
                         {"output-resident": True})
        self.skip_in_memory()
        residency.evict(self.output)
        self.assertEqual(one.verify(self.context, {}), [
            {"name": "output-resident", "wanted": "100 %", "found": "0 %",
             "met": False}])

    def test_no_output(self):
        self.put_drive("sda")
        os.unlink(self.output)
        residency.evict(self.input)
        self.skip_in_memory()
        for name in conditions.NAMES:
            found = self.scenario(name).verify(self.context, None)
            self.assertIsNone(conditions.all_met(found))

    def test_cache(self):
        self.skip_in_memory()
        self.put_drive("sda")
        residency.load(self.input)
        one = self.scenario("cache")
        self.assertEqual(self.met(one.prepare(self.context)), {
            "input-not-resident": True, "write-cache": True})
        self.assertEqual(residency.fraction(self.input), 0.0)
        residency.evict(self.output)
        self.assertEqual(
            conditions.all_met(one.verify(self.context, DIRECT)), True)

    def test_write_cache_is_looked_at_each_time(self):
        folder = self.put_drive("sda")
        one = self.scenario("cache")
        one.check()
        self.put(f"{folder}/queue/write_cache", "write through")
        self.assertIs(self.met(one.prepare(self.context))["write-cache"],
                      False)

    def test_what_was_not_passed_by(self):
        self.skip_in_memory()
        self.put_drive("sda")
        one = self.scenario("cache")
        residency.evict(self.output)
        residency.load(self.input)
        self.assertEqual(
            self.met(one.verify(self.context, DIRECT))["input-passed-by"],
            False)
        residency.evict(self.input)
        residency.load(self.output)
        self.assertEqual(
            self.met(one.verify(self.context, DIRECT))["output-passed-by"],
            False)
        for modes in (("mmap", "direct"), ("direct", "buffered")):
            said = dict(zip(("io", "output_io"), modes))
            found = one.verify(self.context, said)
            self.assertIn({"name": "direct-io", "wanted": "direct, direct",
                           "found": ", ".join(modes), "met": False}, found)

    def test_input_that_cannot_be_evicted(self):
        # An input that a process has mapped stays, and that is found.
        self.skip_in_memory()
        self.put_drive("sda")
        one = self.scenario("cache")
        with patch(residency, evict=lambda path, _=None: 0.25):
            found = one.prepare(self.context)
        self.assertEqual(found[0], {"name": "input-not-resident", "wanted":
                                    "0 %", "found": "25.00 %", "met": False})

    def test_inputs_of_more_ranks(self):
        self.skip_in_memory()
        self.put_drive("sda")
        other = f"{self.folder}/in.1"
        with open(self.input, "rb") as file:
            data = file.read()
        with open(other, "wb") as file:
            file.write(data)
        context = Context(self.input, self.output, (other,))
        self.scenario("cache").prepare(context)
        self.assertEqual(residency.fraction(other), 0.0)
        self.scenario("pagecache").prepare(context)
        self.assertEqual(residency.fraction(other), 1.0)
        # The one that is not as it should be is the one that counts.
        for name, call in (("pagecache", "load"), ("cache", "evict")):
            with patch(residency, **{call: lambda path, _:
                                     0.25 if path == other else
                                     1.0 if call == "load" else 0.0}):
                found = self.scenario(name).prepare(context)
            self.assertEqual(found[0]["found"], "25.00 %", name)

    def prepare_platter(self, **options):
        self.skip_in_memory()
        self.put_drive("sda")
        one = self.scenario("platter", **options)
        self.addCleanup(one.close)
        residency.load(self.input)
        return one, one.prepare(self.context)

    def test_platter(self):
        one, found = self.prepare_platter(cache_bytes=2 * MIB)
        self.assertEqual(self.met(found), {
            "input-not-resident": True, "caches-dropped": True,
            "other-data-read": True, "drive-cache-defeated": True,
            "write-cache": True, "flush": True})
        self.assertEqual(
            [one["found"] for one in found][:3], ["0 %", "page cache",
                                                  "2 MiB"])
        self.assertEqual(residency.fraction(self.input), 0.0)
        with open(f"{self.root}/proc/sys/vm/drop_caches",
                  encoding="ascii") as file:
            self.assertEqual(file.read().strip()[0], "1")
        self.assertTrue(os.path.exists(f"{self.input}.filler"))
        one.close()
        self.assertFalse(os.path.exists(f"{self.input}.filler"))

    def test_platter_after(self):
        one, _ = self.prepare_platter(cache_bytes=MIB)
        residency.evict(self.output)
        self.assertTrue(conditions.all_met(one.verify(self.context, DIRECT)))
        for synced in (False, None):
            found = one.verify(self.context, {**DIRECT, "synced": synced})
            self.assertIs(self.met(found)["synced"], synced)

    def test_platter_without_root(self):
        os.makedirs(self.root, exist_ok=True)
        os.unlink(f"{self.root}/proc/sys/vm/drop_caches")
        _, found = self.prepare_platter(cache_bytes=MIB)
        self.assertEqual(found[1]["found"],
                         "our files only (No such file or directory)")
        self.assertTrue(conditions.all_met(found))

    def test_less_other_data_than_wanted(self):
        self.put_drive("sda")
        one = self.scenario("platter", cache_bytes=2 * MIB)
        self.addCleanup(one.close)
        with patch(cache_filler.CacheFiller, read=lambda self: MIB):
            found = one.prepare(self.context)
        self.assertIs(self.met(found)["other-data-read"], False)

    # --- devices ---

    def on_devices(self, name, size_bytes=8 * MIB, **options):
        """The input lies on sda, the output goes to sdb; what is read and
        written there are files."""
        under = {self.input: Placement(("sda",)),
                 self.output: Placement(("sdb",))}
        patcher = patch(disks, size_bytes_of=lambda path, root: size_bytes
                        if path == self.input else 0)
        patcher.start()
        self.addCleanup(patcher.stop)
        with patch(disks, of_path=lambda path, root: under[path]):
            return conditions.scenario(
                name, Place(self.input, self.output, 2 * MIB + 5),
                types.SimpleNamespace(root=self.root, **options))

    def test_devices_each_have_their_drives(self):
        self.put_drive("sda", cache="write through")
        self.put_drive("sdb")
        found = self.on_devices("cache").check()
        self.assertEqual(found[0]["found"], "on (sdb)")
        found = self.on_devices("platter", cache_bytes=MIB).check()
        self.assertEqual([one["found"] for one in found], [
            "1 MiB (sda)", "on (sdb)", "passed on to the medium"])

    def test_devices_output_on_a_disk_of_a_host(self):
        self.put_drive("sda")
        self.put_drive("sdb", "pci0000:00/virtio1")
        found = self.on_devices("platter", cache_bytes=MIB).check(False)
        self.assertEqual(self.met(found), {
            "drive-cache-defeated": True, "write-cache": True, "flush": None})

    def test_device_without_other_data(self):
        self.put_drive("sda")
        self.put_drive("sdb")
        # The records end in the third MiB, and other data begin behind it.
        self.on_devices("platter", cache_bytes=5 * MIB).check()
        for size_bytes in (8 * MIB - 1, None):
            one = self.on_devices("platter", size_bytes, cache_bytes=5 * MIB)
            with self.assertRaises(Failure) as caught:
                one.check()
            self.assertEqual(
                str(caught.exception), "platter: drive cache of sda: less "
                f"than 5 MiB behind the records on {self.input}")

    def test_other_data_of_a_device(self):
        with open(self.input, "rb") as file:
            data = file.read()
        filler = cache_filler.DeviceFiller(self.input, 2 * MIB, MIB - 5)
        filler.make()
        try:
            self.assertEqual(filler.read(), 2 * MIB)
            filler = cache_filler.DeviceFiller(self.input, 9 * MIB, MIB + 5)
            self.assertEqual(filler.read(), MIB + 5)
        except Failure as failure:
            self.skipTest(str(failure))
        filler.remove()
        with open(self.input, "rb") as file:
            self.assertEqual(file.read(), data)

    def test_nothing_is_made_beside_a_device(self):
        self.skip_in_memory()
        os.truncate(self.input, 4 * MIB)
        before = sorted(os.listdir(self.folder))
        one = self.on_devices("platter", cache_bytes=MIB)
        found = self.met(one.prepare(DeviceContext.at(one.place)))
        self.assertIs(found["other-data-read"], True)
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_devices_are_evicted_before_each(self):
        """Both: the last output was read to check it."""
        self.skip_in_memory()
        self.put_drive("sdb")
        for name in ("pagecache", "cache"):
            one = self.on_devices(name)
            residency.load(self.output)
            context = DeviceContext.at(one.place)
            self.assertTrue(conditions.all_met(one.prepare(context)))
            self.assertEqual(residency.fraction(self.output), 0.0)

    def test_sort_options_for_devices(self):
        self.assertEqual(
            [self.on_devices(name).sort_options()
             for name in conditions.NAMES[:2]],
            [["--io=mmap"], ["--io=direct"]])

    # --- beyond memory ---

    def put_cgroups(self):
        self.put("proc/mounts", "cgroup /memory cgroup rw,memory 0 0\n")
        os.makedirs(f"{self.root}/memory", exist_ok=True)

    def beyond_memory(self, memory):
        self.skip_in_memory()
        self.put_drive("sda")
        self.put_cgroups()
        one = self.scenario("beyond-memory", cache_bytes=MIB, memory=memory)
        self.addCleanup(one.close)
        return one

    def test_beyond_memory(self):
        one = self.beyond_memory(MIB)
        self.assertEqual(
            [name for name, met in self.met(one.prepare(self.context)).items()
             if met is not True], [])
        command = one.command(["/bin/sort"])
        self.assertEqual(command[-1], "/bin/sort")
        self.assertIn(f"{one.cgroup.folder}/cgroup.procs", command)
        with open(f"{one.cgroup.folder}/memory.limit_in_bytes",
                  encoding="ascii") as file:
            self.assertEqual(int(file.read()), 17 * MIB)
        for peak, met in (("17000000", True), ("18000000", False),
                          ("?", None)):
            one.command(["/bin/sort"])
            with open(f"{one.cgroup.folder}/memory.max_usage_in_bytes", "w",
                      encoding="ascii") as file:
                file.write(peak)
            found = self.met(one.verify_run({**DIRECT, "synced": True}))
            self.assertIs(found["memory-limited"], met)
            self.assertIsNone(one.cgroup)

    def test_input_that_fits(self):
        found = self.beyond_memory(4 * MIB).prepare(self.context)
        self.assertEqual(found[-1], {
            "name": "input-beyond-memory", "wanted": "> 4 MiB",
            "found": "3 MiB", "met": False})

    def test_no_limit_of_memory(self):
        self.put_drive("sda")
        self.put("proc/mounts", "")
        self.assertEqual(
            self.refusal("beyond-memory", cache_bytes=MIB), "beyond-memory: "
            "limit of memory: no cgroup hierarchy has memory")

    # --- in words ---

    def test_all_met(self):
        for verdicts, whole in (([True, True], True), ([], True),
                                ([True, None], None),
                                ([None, False, True], False)):
            self.assertIs(conditions.all_met(
                [{"met": verdict} for verdict in verdicts]), whole)

    def test_percent_is_never_rounded_to_all_or_nothing(self):
        for part, text in ((0.0, "0 %"), (1.0, "100 %"), (0.5, "50.00 %"),
                           (1e-9, "0.01 %"), (1 - 1e-9, "99.99 %"),
                           (None, "unknown")):
            self.assertEqual(conditions.percent(part), text)


@unittest.skipUnless(os.path.exists(f"{BIN}/blinksort"), "no programs")
class TestSorts(Folder):
    """With the sorter itself, on the disk that is there."""

    def run_in(self, name):
        one = conditions.scenario(
            name, Place.folder(self.folder),
            types.SimpleNamespace(cache_bytes=MIB))
        context = Context(f"{self.folder}/in", f"{self.folder}/out")
        self.addCleanup(one.close)
        inputs.make(context.input, 100_000, True, 0, Programs(BIN))
        with patch(residency, drop_caches=lambda root: "not in a test"):
            before = one.prepare(context)
        done = subprocess.run(
            [f"{BIN}/blinksort", context.input, "-o", context.output,
             "--json", *one.sort_options()], check=True, capture_output=True)
        found = before + one.verify(context, json.loads(done.stdout))
        return {one["name"]: one["met"] for one in found}

    def need_direct_io(self):
        if disks.of_path(self.folder).memory:
            self.skipTest("files in memory only")
        try:
            cache_filler.CacheFiller(f"{self.folder}/probe", MIB).make()
        except Failure as failure:
            self.skipTest(str(failure))

    def test_pagecache_sort(self):
        self.assertEqual(self.run_in("pagecache"), {
            "input-resident": True, "output-resident": True})

    def test_cache_sort(self):
        self.need_direct_io()
        found = self.run_in("cache")
        del found["write-cache"]
        self.assertEqual(found, {
            "input-not-resident": True, "input-passed-by": True,
            "output-passed-by": True, "direct-io": True})

    def test_platter_sort(self):
        self.need_direct_io()
        found = self.run_in("platter")
        for name in ("input-not-resident", "caches-dropped", "direct-io",
                     "other-data-read", "input-passed-by", "synced",
                     "output-passed-by"):
            self.assertIs(found[name], True, name)


class RemovedOutput(unittest.TestCase):
    def test_what_is_no_regular_file_stays(self):
        # A FIFO stands for a device, which a test had better not risk.
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            with self.assertRaisesRegex(Failure, "is no regular file"):
                inputs.remove(pipe)
            self.assertTrue(os.path.exists(pipe))


if __name__ == "__main__":
    sys.exit(unit.main())
