#!/usr/bin/python3
"""What the machine counts: results/trials/machine/counters.py."""

import mmap
import os
import sys
import tempfile
import unittest
import unittest.mock

import unit
from trials.machine import counters, disks

TICK_NS = 10 ** 9 // os.sysconf("SC_CLK_TCK")
KEYS = ["udp_rcvbuf_errors", "udp_in_errors", "softnet_dropped",
        "context_switches", "interrupts", "steal_ns", "throttle_events",
        "disk_read_bytes", "disk_written_bytes", "swapped_pages"]

SNMP = """\
Ip: Forwarding DefaultTTL
Ip: 1 64
Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors
Udp: 1000 1 {in_errors} 2000 {rcvbuf_errors} 0
UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors
UdpLite: 9 9 9 9 9 9
"""
SNMP6 = """\
Ip6InReceives                   \t77
Udp6InDatagrams                 \t5
Udp6InErrors                    \t100
Udp6RcvbufErrors                \t200
UdpLite6InErrors                \t9
"""
SOFTNET = """\
000000ff 00000010 00000099 00000000
000000ff 0000000a 00000099 00000000
"""
STAT = """\
cpu  1 2 3 4 5 6 7 {steal} 9 10
cpu0 1 2 3 4 5 6 7 88 9 10
intr {interrupts} 0 0 55 {many}
ctxt {switches}
btime 1
processes 7
softirq 8 8 8
"""
VMSTAT = "pgpgin 5\npswpin 3\npswpout {out}\npgfault 9\n"
DISK = "11 12 {read} 14 15 16 {written} 18 19 20 21\n"


class TestCounters(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="blinksort-test.")
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def put(self, path, text):
        path = f"{self.root}/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)

    def fill(self, more):
        """The tree after so many more of everything."""
        self.put("proc/net/snmp", SNMP.format(
            in_errors=30 + more, rcvbuf_errors=20 + more))
        self.put("proc/net/snmp6", SNMP6)
        self.put("proc/net/softnet_stat", SOFTNET)
        self.put("proc/stat", STAT.format(
            steal=50 + more, interrupts=10 ** 6 + more,
            switches=2 * 10 ** 6 + more, many="0 " * 60000))
        self.put("proc/vmstat", VMSTAT.format(out=4 + more))
        self.put("sys/block/sda/stat", DISK.format(
            read=1000 + more, written=2000 + more))
        self.put("sys/block/sdb/stat", DISK.format(read=1, written=2))

    def fill_throttle(self, core, package):
        """Four CPUs of two packages, where each CPU has its package's."""
        for cpu in range(4):
            folder = f"sys/devices/system/cpu/cpu{cpu}"
            self.put(f"{folder}/topology/physical_package_id",
                     f"{cpu // 2}\n")
            self.put(f"{folder}/thermal_throttle/core_throttle_count",
                     f"{core}\n")
            self.put(f"{folder}/thermal_throttle/package_throttle_count",
                     f"{package}\n")
        self.put("sys/devices/system/cpu/cpufreq/policy0/x", "")

    def open(self, drives=("sda", "sdb")):
        with unittest.mock.patch.object(
                disks, "of_path", return_value=disks.Placement(drives)):
            return counters.Counters(("/work",), self.root)

    def test_totals(self):
        self.fill(0)
        self.fill_throttle(7, 1000)
        self.assertEqual(self.open().read(), {
            "udp_rcvbuf_errors": 220, "udp_in_errors": 130,
            "softnet_dropped": 26, "context_switches": 2 * 10 ** 6,
            "interrupts": 10 ** 6, "steal_ns": 50 * TICK_NS,
            "throttle_events": 4 * 7 + 2 * 1000,
            "disk_read_bytes": 1001 * 512, "disk_written_bytes": 2002 * 512,
            "swapped_pages": 7})

    def test_files_are_read_anew(self):
        self.fill(0)
        one = self.open()
        before = one.read()
        self.fill(10)
        found = counters.difference(before, one.read())
        self.assertEqual(found, {
            "udp_rcvbuf_errors": 10, "udp_in_errors": 10,
            "softnet_dropped": 0, "context_switches": 10, "interrupts": 10,
            "steal_ns": 10 * TICK_NS, "throttle_events": None,
            "disk_read_bytes": 5120, "disk_written_bytes": 5120,
            "swapped_pages": 10})

    def test_nothing_is_there(self):
        self.assertEqual(self.open(()).read(), dict.fromkeys(KEYS))

    def test_keys_are_always_the_same(self):
        self.assertEqual(list(counters.read()), KEYS)
        self.fill(0)
        self.assertEqual(list(self.open().read()), KEYS)

    def test_files_of_another_shape(self):
        for name in ("net/snmp", "net/snmp6", "net/softnet_stat", "stat",
                     "vmstat"):
            self.put(f"proc/{name}", "")
        self.put("sys/block/sda/stat", "1 2\n")
        self.assertEqual(self.open().read(), dict.fromkeys(KEYS))

    def test_without_ipv6(self):
        self.fill(0)
        os.unlink(f"{self.root}/proc/net/snmp6")
        self.assertEqual(self.open().read()["udp_in_errors"], 30)

    def test_difference_of_unknown(self):
        self.assertEqual(
            counters.difference({"a": 1, "b": None, "c": 5},
                                {"a": None, "b": 2, "c": 7}),
            {"a": None, "b": None, "c": 2})


class TestThisMachine(unittest.TestCase):
    def test_it_counts(self):
        before = counters.read()
        read_fd, write_fd = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write_fd, b"x")
            os._exit(0)
        os.read(read_fd, 1)
        os.waitpid(child, 0)
        os.close(read_fd)
        os.close(write_fd)
        found = counters.difference(before, counters.read())
        self.assertGreater(found["context_switches"], 0)
        for key in KEYS:
            self.assertTrue(found[key] is None or found[key] >= 0, key)

    def test_disk(self):
        folder = tempfile.TemporaryDirectory(prefix="blinksort-test.")
        self.addCleanup(folder.cleanup)
        if not disks.of_path(folder.name).drives:
            self.skipTest("no drive known")
        before = counters.read(folder.name)
        try:
            fd = os.open(f"{folder.name}/file",
                         os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        except OSError:
            self.skipTest("no O_DIRECT")
        with mmap.mmap(-1, 1 << 20) as piece:
            os.write(fd, piece)
            os.fsync(fd)
            os.preadv(fd, [piece], 0)
        os.close(fd)
        found = counters.difference(before, counters.read(folder.name))
        self.assertGreaterEqual(found["disk_written_bytes"], 1 << 20)
        self.assertGreaterEqual(found["disk_read_bytes"], 1 << 20)

    def test_descriptors_are_closed(self):
        counters.read("/")
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            counters.read("/")
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)


if __name__ == "__main__":
    sys.exit(unit.main())
