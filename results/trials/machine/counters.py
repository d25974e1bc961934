"""What the machine has counted: taken before and after a timed run.

The files are read off the clock; what a machine does not have is None.
"""

import functools
import os
import re
from typing import Dict, List, Optional, Tuple

from trials.machine import disks

NS_PER_TICK = 10 ** 9 // os.sysconf("SC_CLK_TCK")
# The field in the line "cpu" of /proc/stat, the name counted as 0.
STEAL_FIELD = 8
# The field in a line of softnet_stat, which is hexadecimal.
DROPPED_FIELD = 1
# Fields in the stat of a block device.
READ_SECTORS_FIELD = 2
WRITTEN_SECTORS_FIELD = 6


def contents(path: str) -> Optional[bytes]:
    """All of a file of /proc or /sys; None if it is not there."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def total(values) -> Optional[int]:
    """The sum of those that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


# --- one file each ------------------------------------------------------------


def of_udp(snmp: Optional[bytes]) -> Dict[str, int]:
    """The heads and the figures of "Udp:" are two lines."""
    lines = [line.split() for line in (snmp or b"").splitlines()
             if line.startswith(b"Udp:")]
    if len(lines) != 2:
        return {}
    return {head.decode(): int(figure)
            for head, figure in zip(lines[0][1:], lines[1][1:])}


def of_udp6(snmp6: Optional[bytes]) -> Dict[str, int]:
    return {head.decode(): int(figure) for head, figure in
            re.findall(rb"^Udp6(\w+)\s+(\d+)", snmp6 or b"", re.MULTILINE)}


def of_softnet(text: Optional[bytes]) -> Optional[int]:
    """Packets that no queue of a CPU had room for."""
    return total(int(line.split()[DROPPED_FIELD], 16)
                 for line in (text or b"").splitlines())


def of_stat(text: Optional[bytes]) -> Dict[str, int]:
    found = {}
    for name, rest in re.findall(rb"^(cpu |ctxt|intr)(.*)", text or b"",
                                 re.MULTILINE):
        if name == b"cpu ":
            fields = rest.split()
            if len(fields) >= STEAL_FIELD:
                found["steal_ns"] = int(fields[STEAL_FIELD - 1]) * NS_PER_TICK
        elif name == b"ctxt":
            found["context_switches"] = int(rest)
        else:
            # The first is the total, then follow a thousand others.
            found["interrupts"] = int(rest.split(None, 1)[0])
    return found


def of_vmstat(text: Optional[bytes]) -> Optional[int]:
    return total(int(pages) for pages in
                 re.findall(rb"^pswp(?:in|out) (\d+)", text or b"",
                            re.MULTILINE))


def of_disk(text: Optional[bytes], field: int) -> Optional[int]:
    fields = (text or b"").split()
    if len(fields) <= field:
        return None
    return int(fields[field]) * disks.SECTOR_BYTES


def of_number(text: Optional[bytes]) -> Optional[int]:
    return int(text) if text and text.strip().isdigit() else None


# --- all of them --------------------------------------------------------------


def throttle_paths(root: str) -> List[str]:
    """A package's count stands with each of its CPUs, so it is taken once."""
    cpus = f"{root}/sys/devices/system/cpu"
    paths, packages = [], set()
    for cpu in disks.names_in(cpus):
        folder = f"{cpus}/{cpu}/thermal_throttle"
        if not re.fullmatch(r"cpu\d+", cpu) or not os.path.isdir(folder):
            continue
        paths.append(f"{folder}/core_throttle_count")
        package = disks.read_text(
            f"{cpus}/{cpu}/topology/physical_package_id")
        if package not in packages:
            packages.add(package)
            paths.append(f"{folder}/package_throttle_count")
    return paths


class Counters:
    """The counters of this machine, and of the drives that the paths are
    on."""

    def __init__(self, paths: Tuple[str, ...] = (), root: str = "/"):
        self.proc = f"{root}/proc"
        self.throttle = throttle_paths(root)
        drives = {drive for path in paths
                  for drive in disks.of_path(path, root).drives}
        self.drives = [f"{disks.folder_of(drive, root)}/stat"
                       for drive in sorted(drives)]

    def read(self) -> Dict[str, Optional[int]]:
        """The totals now."""
        udp = of_udp(contents(f"{self.proc}/net/snmp"))
        udp6 = of_udp6(contents(f"{self.proc}/net/snmp6"))
        stat = of_stat(contents(f"{self.proc}/stat"))
        drives = [contents(path) for path in self.drives]
        return {
            "udp_rcvbuf_errors": total(
                of.get("RcvbufErrors") for of in (udp, udp6)),
            "udp_in_errors": total(of.get("InErrors") for of in (udp, udp6)),
            "softnet_dropped": of_softnet(
                contents(f"{self.proc}/net/softnet_stat")),
            "context_switches": stat.get("context_switches"),
            "interrupts": stat.get("interrupts"),
            "steal_ns": stat.get("steal_ns"),
            "throttle_events": total(
                of_number(contents(path)) for path in self.throttle),
            "disk_read_bytes": total(
                of_disk(text, READ_SECTORS_FIELD) for text in drives),
            "disk_written_bytes": total(
                of_disk(text, WRITTEN_SECTORS_FIELD) for text in drives),
            "swapped_pages": of_vmstat(contents(f"{self.proc}/vmstat")),
        }


# The files are looked up once for the same paths.
_counters = functools.cache(Counters)


def read(*paths: str) -> Dict[str, Optional[int]]:
    return _counters(paths).read()


def difference(before: dict, after: dict) -> dict:
    """The counts in between; None where either is not known."""
    return {key: after[key] - value
            if value is not None and after[key] is not None else None
            for key, value in before.items()}
