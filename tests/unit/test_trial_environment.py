#!/usr/bin/python3
"""What a machine is: trials/machine/environment.py and ethernet.py."""

import json
import os
import platform
import re
import sys
import tempfile
import unittest
import unittest.mock

import unit
from trials.base.programs import Programs
from trials.machine import disks, environment, ethernet

BIN = os.environ.get("BIN") or str(unit.ROOT / "bin")
CPU = "sys/devices/system/cpu"

COALESCING = """\
Coalesce parameters for eth0:
Adaptive RX: on  TX: off
rx-usecs: 3
rx-frames: n/a
tx-usecs: 0

CQE mode RX: n/a  TX: n/a
"""
RINGS = """\
Ring parameters for eth0:
Pre-set maximums:
RX:             4096
RX Mini:        2048
TX:             4096
Current hardware settings:
RX:             512
RX Mini:        n/a
TX:             256
"""
OFFLOADS = """\
Features for eth0:
rx-checksumming: on [fixed]
\ttx-checksum-ipv4: off [requested on]
generic-receive-offload: on
"""


class Stub:
    """Programs that are not there."""

    def find(self, name):
        return None


class TestTree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="blinksort-test.")
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def put(self, path, text=""):
        path = f"{self.root}/{path}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def describe(self, paths=()):
        return environment.describe(paths, Stub(), self.root)

    def test_nothing_is_there(self):
        found = environment.flatten(self.describe())
        known = {key for key, value in found.items()
                 if value not in (None, {}, False)}
        self.assertEqual({key.split(".")[0] for key in known}, {"versions"})
        self.assertIn("cpu.frequency.governor", found)

    def fill(self):
        self.put("proc/sys/kernel/osrelease", "6.1.0-9-amd64")
        self.put("proc/cmdline", "quiet")
        self.put("proc/cpuinfo",
                 "processor : 0\nmodel name : A CPU\nmicrocode : 0x7\n"
                 "flags : fpu hypervisor\n\nprocessor : 1\nmodel name : B")
        for cpu in range(12):
            self.put(f"{CPU}/cpufreq/policy{cpu}/scaling_governor",
                     "performance")
            self.put(f"{CPU}/cpufreq/policy{cpu}/scaling_max_freq", 3000000)
            for state in range(2):
                folder = f"{CPU}/cpu{cpu}/cpuidle/state{state}"
                self.put(f"{folder}/name", ("POLL", "C6")[state])
                self.put(f"{folder}/disable", state)
        self.put(f"{CPU}/intel_pstate/no_turbo", "1")
        self.put(f"{CPU}/vulnerabilities/meltdown", "Mitigation: PTI")
        self.put("sys/kernel/mm/transparent_hugepage/enabled",
                 "always [madvise] never")
        self.put("proc/meminfo", "MemTotal:  1024 kB\nMemAvailable: 512 kB\n"
                 "HugePages_Total:       8\nHugepagesize:    2048 kB")
        self.put("proc/sys/vm/swappiness", "1")
        self.put("proc/loadavg", "0.50 0.25 0.10 1/100 12345")
        self.put("sys/class/net/eth0/mtu", "9000")
        self.put("sys/class/net/eth0/speed", "-1")
        self.put("sys/class/net/eth0/address", "52:54:00:12:34:56")
        self.put("sys/class/net/lo/mtu", "65536")
        self.put("sys/block/md0/md/level", "raid0")
        self.put("sys/block/md0/md/chunk_size", "65536")

    def test_figures(self):
        self.fill()
        found = environment.flatten(self.describe())
        for key, value in {
                "kernel.release": "6.1.0-9-amd64",
                "virtualisation.hypervisor": True,
                "cpu.model_name": "A CPU", "cpu.microcode": "0x7",
                "cpu.frequency.governor": "performance",
                "cpu.frequency.maximum_khz": 3000000,
                "cpu.frequency.turbo": False,
                "cpu.idle.names": ["POLL", "C6"],
                "cpu.idle.disabled": ["0", "1"],
                "cpu.mitigations.meltdown": "Mitigation: PTI",
                "memory.transparent_huge_pages.enabled": "madvise",
                "memory.total_bytes": 1 << 20, "memory.huge_pages": 8,
                "memory.huge_page_bytes": 2 << 20,
                "memory.virtual.swappiness": 1,
                "load.minutes_1": 0.5,
                "network.interfaces.eth0.mtu_bytes": 9000,
                "network.interfaces.eth0.speed_mbit": None,
                "storage.arrays.md0.level": "raid0",
                "storage.arrays.md0.chunk_bytes": 65536}.items():
            self.assertEqual(found[key], value, key)
        self.assertNotIn("network.interfaces.lo.mtu_bytes", found)
        self.assertNotIn("52:54:00", json.dumps(found))

    def test_boost(self):
        self.put(f"{CPU}/cpufreq/boost", "1")
        self.assertIs(self.describe()["cpu"]["frequency"]["turbo"], True)

    def test_one_cpu_of_many(self):
        self.fill()
        before = self.describe()
        self.put(f"{CPU}/cpufreq/policy10/scaling_governor", "powersave")
        found = self.describe()["cpu"]["frequency"]["governor"]
        self.assertEqual(found["policy10"], "powersave")
        self.assertEqual(list(found)[:3], ["policy0", "policy1", "policy2"])
        self.assertTrue(environment.changes(before, self.describe()))

    def test_changes(self):
        self.fill()
        before = self.describe()
        self.put("proc/sys/vm/swappiness", "60")
        self.put("proc/loadavg", "9 9 9 1/100 12345")
        self.put("proc/meminfo", "MemTotal:  1024 kB\nMemAvailable: 5 kB\n"
                 "HugePages_Total:       8\nHugepagesize:    2048 kB")
        self.put(f"{CPU}/smt/control", "off")
        os.unlink(f"{self.root}/{CPU}/intel_pstate/no_turbo")
        self.assertEqual(environment.changes(before, self.describe()), [
            {"key": "cpu.frequency.turbo", "before": False, "after": None},
            {"key": "cpu.smt", "before": None, "after": "off"},
            {"key": "memory.virtual.swappiness", "before": 1, "after": 60}])
        self.assertEqual(environment.changes(before, before), [])

    def test_changes_on_nodes(self):
        self.fill()
        node = self.describe()
        before = {**node, "nodes": {"a:7300": node, "b:7300": node}}
        after = json.loads(json.dumps(before))
        after["nodes"]["b:7300"]["cpu"]["smt"] = "on"
        after["nodes"]["a:7300"]["load"]["minutes_1"] = 99.0
        self.assertEqual(environment.changes(before, after), [
            {"key": "nodes.b:7300.cpu.smt", "before": None, "after": "on"}])

    def test_interface_that_comes(self):
        self.fill()
        before = self.describe()
        self.put("sys/class/net/eth1/mtu", "1500")
        self.assertIn(
            {"key": "network.interfaces.eth1.mtu_bytes", "before": None,
             "after": 1500}, environment.changes(before, self.describe()))

    def test_caches(self):
        folder = "sys/devices/system/cpu/cpu0/cache"
        for index, words in enumerate(((1, "Data", "32K"),
                                       (1, "Instruction", "32K"),
                                       (3, "Unified", "32768K"))):
            for name, word in zip(("level", "type", "size"), words):
                self.put(f"{folder}/index{index}/{name}", word)
        self.assertEqual(
            [(cache["level"], cache["type"], cache["size_bytes"])
             for cache in self.describe()["cpu"]["caches"]],
            [(1, "Data", 32768), (1, "Instruction", 32768),
             (3, "Unified", 32 << 20)])

    # --- nothing personal ---

    def test_command_line(self):
        for line, shown in (
                ("quiet mitigations=off", "quiet mitigations=off"),
                ("ip=10.0.0.1:::::eth0 quiet", "ip=... quiet"),
                ("root=UUID=0a3407de-014b-458b-b5c1-848e92a327a3 ro",
                 "root=... ro"),
                ("isolcpus=1-3 -- --name joe", "isolcpus=1-3"),
                ("BOOTIF=01-52-54-00-12-34-56", "BOOTIF=..."),
                ("nfs=[fe80::1]:/x", "nfs=..."),
                ("quiet init=/home/joe/init", "quiet init=...")):
            self.assertEqual(environment.without_places(line), shown)

    def test_mount_options(self):
        for option, private in (
                ("rw", False), ("size=1024k", False), ("data=ordered", False),
                ("addr=server", True), ("username=joe", True),
                ("lowerdir=/home/joe", True), ("x=192.168.0.1", True)):
            self.assertIs(environment.is_private(option), private, option)

    def test_paths_have_no_names(self):
        self.assertNotIn(self.root, json.dumps(self.describe([self.root])))

    # --- ethtool ---

    def test_ethtool(self):
        said = {"-c": COALESCING, "-g": RINGS, "-k": OFFLOADS}
        with unittest.mock.patch.object(
                disks, "output_of", lambda _, option, interface: said[option]):
            self.assertEqual(ethernet.coalescing("eth0"), {
                "rx-usecs": 3, "tx-usecs": 0, "adaptive-rx": "on",
                "adaptive-tx": "off"})
            self.assertEqual(ethernet.rings("eth0"), {"RX": 512, "TX": 256})
            self.assertEqual(ethernet.offloads("eth0"), {
                "rx-checksumming": "on", "tx-checksum-ipv4": "off",
                "generic-receive-offload": "on"})

    def test_without_ethtool(self):
        with unittest.mock.patch.object(disks, "tool", lambda name: None):
            self.assertIsNone(ethernet.coalescing("eth0"))
            self.assertIsNone(ethernet.rings("eth0"))
            self.assertIsNone(ethernet.offloads("eth0"))
        self.assertIsNone(ethernet.coalescing("none-such"))


class TestThisMachine(unittest.TestCase):
    def setUp(self):
        self.found = environment.describe(["/", "/proc", "/nowhere/at/all"],
                                          Programs(BIN))
        self.text = json.dumps(self.found, allow_nan=False)

    def test_what_every_machine_has(self):
        flat = environment.flatten(self.found)
        self.assertEqual(flat["kernel.release"], platform.release())
        for key in ("cpu.online", "cpu.allowed", "memory.total_bytes",
                    "load.uptime_s", "versions.cp", "versions.python"):
            self.assertIsNotNone(flat[key], key)
        self.assertTrue(flat["versions.sort"].startswith("sort "))

    def test_fits_through_the_shell(self):
        # A daemon keeps the last 64 KiB of what a program prints.
        self.assertLess(len(self.text), 48 << 10)

    def test_no_addresses(self):
        self.assertIsNone(re.search(
            r"\b\d+\.\d+\.\d+\.\d+\b|[0-9a-f]{2}(:[0-9a-f]{2}){5}",
            re.sub(r'"versions": {[^}]*}', "", self.text)))

    def test_versions_of_ours(self):
        if not os.path.exists(f"{BIN}/blinksort"):
            self.skipTest("no programs")
        self.assertRegex(self.found["versions"]["blinksort"],
                         "^blinksort [0-9.]+[+][0-9a-z-]+$")


if __name__ == "__main__":
    sys.exit(unit.main())
