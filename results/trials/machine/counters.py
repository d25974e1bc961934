"""What the machine has counted: taken before and after a timed run.

The files are read off the clock; what a machine does not have is None.
"""

import functools
import os
import re

from trials.machine import disks

NS_PER_TICK = 10 ** 9 // os.sysconf("SC_CLK_TCK")
# The field in the line "cpu" of /proc/stat, the name counted as 0.
STEAL_FIELD = 8
# The field in a line of softnet_stat, which is hexadecimal.
DROPPED_FIELD = 1
# Fields in the stat of a block device.
READ_SECTORS_FIELD = 2
WRITTEN_SECTORS_FIELD = 6


def total(values) -> int | None:
    """The sum of those that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


# --- one file each ------------------------------------------------------------


def of_udp(snmp: str) -> dict[str, int]:
    """The heads and the figures of "Udp:" are two lines."""
    lines = [line.split() for line in snmp.splitlines()
             if line.startswith("Udp:")]
    if len(lines) != 2:
        return {}
    return {head: int(figure)
            for head, figure in zip(lines[0][1:], lines[1][1:])}


def of_udp6(snmp6: str) -> dict[str, int]:
    return {head: int(figure) for head, figure in
            re.findall(r"^Udp6(\w+)\s+(\d+)", snmp6, re.MULTILINE)}


def of_softnet(text: str) -> int | None:
    """Packets that no queue of a CPU had room for."""
    return total(int(line.split()[DROPPED_FIELD], 16)
                 for line in text.splitlines())


def of_stat(text: str) -> dict[str, int]:
    found = {}
    for name, rest in re.findall(r"^(cpu |ctxt|intr)(.*)", text,
                                 re.MULTILINE):
        if name == "cpu ":
            fields = rest.split()
            if len(fields) >= STEAL_FIELD:
                found["steal_ns"] = int(fields[STEAL_FIELD - 1]) * NS_PER_TICK
        elif name == "ctxt":
            found["context_switches"] = int(rest)
        else:
            # The first is the total, then follow a thousand others.
            found["interrupts"] = int(rest.split(None, 1)[0])
    return found


def of_vmstat(text: str) -> int | None:
    return total(int(pages) for pages in
                 re.findall(r"^pswp(?:in|out) (\d+)", text,
                            re.MULTILINE))


def of_disk(text: str, field: int) -> int | None:
    fields = text.split()
    if len(fields) <= field:
        return None
    return int(fields[field]) * disks.SECTOR_BYTES


# --- all of them --------------------------------------------------------------


def throttle_paths(root: str) -> list[str]:
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

    def __init__(self, paths: tuple[str, ...] = (), root: str = "/"):
        self.proc = f"{root}/proc"
        self.throttle = throttle_paths(root)
        drives = {drive for path in paths
                  for drive in disks.of_path(path, root).drives}
        self.drives = [f"{disks.folder_of(drive, root)}/stat"
                       for drive in sorted(drives)]

    def read(self) -> dict[str, int | None]:
        """The totals now."""
        def text_of(name):
            return disks.read_text(f"{self.proc}/{name}") or ""

        udp = of_udp(text_of("net/snmp"))
        udp6 = of_udp6(text_of("net/snmp6"))
        stat = of_stat(text_of("stat"))
        drives = [disks.read_text(path) or "" for path in self.drives]
        return {
            "udp_rcvbuf_errors": total(
                of.get("RcvbufErrors") for of in (udp, udp6)),
            "udp_in_errors": total(of.get("InErrors") for of in (udp, udp6)),
            "softnet_dropped": of_softnet(text_of("net/softnet_stat")),
            "context_switches": stat.get("context_switches"),
            "interrupts": stat.get("interrupts"),
            "steal_ns": stat.get("steal_ns"),
            "throttle_events": total(
                disks.read_number(path) for path in self.throttle),
            "disk_read_bytes": total(
                of_disk(text, READ_SECTORS_FIELD) for text in drives),
            "disk_written_bytes": total(
                of_disk(text, WRITTEN_SECTORS_FIELD) for text in drives),
            "swapped_pages": of_vmstat(text_of("vmstat")),
        }


# The files are looked up once for the same paths.
_counters = functools.cache(Counters)


def read(*paths: str) -> dict[str, int | None]:
    return _counters(paths).read()


def difference(before: dict, after: dict) -> dict:
    """The counts in between; None where either is not known."""
    return {key: after[key] - value
            if value is not None and after[key] is not None else None
            for key, value in before.items()}
