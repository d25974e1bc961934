"""What machine this is and how it is set, so that a reader can judge a result.

A nested dict; what is not there or may not be read is None.  changes() tells
what became different during a session.  Nothing that names people, places or
single devices is taken: no names of hosts, users, addresses, serial numbers or
paths.
"""

import os
import platform
import re
from typing import Callable, Iterable

from trials.base.programs import first_line
from trials.machine import disks, ethernet

# These values differ each time they are read.
NOT_COMPARED = ("load", "memory.available_bytes")
# These options of a mount name its user or its server.
PRIVATE_OPTIONS = ("addr", "clientaddr", "mountaddr", "user", "username",
                   "uid", "gid", "password", "domain", "credentials",
                   "prefixpath")
ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+|[0-9a-fA-F:]*::[0-9a-fA-F:]*"
                     r"|[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}"
                     r"|[0-9a-fA-F-]{16,}")
PLACE = re.compile(ADDRESS.pattern + "|/")
# Two of the first level, and one of each other: four and some room.
CACHES_AT_MOST = 8
OURS = ("blinksort", "blinkgen", "blinkval", "blinksh")


class Tree:
    """Files below a root, read as one value each."""

    def __init__(self, root: str):
        self.root = root.rstrip("/")

    def text(self, path: str) -> str | None:
        return disks.read_text(f"{self.root}/{path}")

    def number(self, path: str) -> int | None:
        return disks.read_number(f"{self.root}/{path}")

    def selected(self, path: str) -> str | None:
        """The word in [brackets] of a file that lists what there is."""
        text = self.text(path)
        found = re.search(r"\[([^]]+)\]", text or "")
        return found[1] if found else text

    def names(self, path: str, pattern: str = ".*") -> list[str]:
        """The matching names in numeric order: cpu10 stands after cpu9."""
        names = [name for name in disks.names_in(f"{self.root}/{path}")
                 if re.fullmatch(pattern, name)]
        return sorted(names, key=lambda name: [
            int(part) if part.isdigit() else part
            for part in re.split(r"(\d+)", name)])

    def values(self, path: str, pattern: str = ".*") -> dict:
        return {name: self.text(f"{path}/{name}")
                for name in self.names(path, pattern)}


def folded(values: dict):
    """One value where all are the same, else all of them."""
    kinds = list(values.values())
    if not kinds:
        return None
    return kinds[0] if kinds.count(kinds[0]) == len(kinds) else values


# --- kernel and CPUs ----------------------------------------------------------


def without_places(command_line: str | None) -> str | None:
    """The kernel's command line without addresses, identifiers, paths, and
    what init is given."""
    if command_line is None:
        return None
    words = command_line.split(" -- ")[0].split()
    return " ".join(word.split("=")[0] + "=..."
                    if "=" in word and PLACE.search(word) else word
                    for word in words)


def of_kernel(tree: Tree) -> dict:
    return {
        "release": tree.text("proc/sys/kernel/osrelease"),
        "version": tree.text("proc/sys/kernel/version"),
        "command_line": without_places(tree.text("proc/cmdline")),
        "clock_source": tree.text("sys/devices/system/clocksource/"
                                  "clocksource0/current_clocksource"),
        "randomize_va_space": tree.number("proc/sys/kernel/randomize_va_space"),
        "nmi_watchdog": tree.number("proc/sys/kernel/nmi_watchdog"),
    }


def of_virtualisation(tree: Tree) -> dict:
    return {
        "hypervisor": disks.hypervisor(f"{tree.root}/"),
        "type": tree.text("sys/hypervisor/type"),
        "vendor": tree.text("sys/class/dmi/id/sys_vendor"),
        "product": tree.text("sys/class/dmi/id/product_name"),
    }


def cpu_fields(tree: Tree) -> dict:
    """The first CPU's lines of /proc/cpuinfo; the others are taken to be of the
    same model."""
    fields = {}
    for line in (tree.text("proc/cpuinfo") or "").splitlines():
        if not line.strip():
            break
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    return fields


def turbo(tree: Tree) -> bool | None:
    off = tree.number("sys/devices/system/cpu/intel_pstate/no_turbo")
    if off is not None:
        return off == 0
    boost = tree.number("sys/devices/system/cpu/cpufreq/boost")
    return None if boost is None else boost == 1


def of_frequency(tree: Tree) -> dict:
    folder = "sys/devices/system/cpu/cpufreq"
    policies = tree.names(folder, r"policy\d+")

    def each(name: str, read: Callable):
        return folded({policy: read(f"{folder}/{policy}/{name}")
                       for policy in policies})

    return {
        "driver": each("scaling_driver", tree.text),
        "governor": each("scaling_governor", tree.text),
        "minimum_khz": each("scaling_min_freq", tree.number),
        "maximum_khz": each("scaling_max_freq", tree.number),
        "energy_preference": each("energy_performance_preference", tree.text),
        "turbo": turbo(tree),
    }


def of_idle_states(tree: Tree) -> dict:
    folder = "sys/devices/system/cpu"
    cpus = tree.names(folder, r"cpu\d+")

    def each(name: str):
        return folded({cpu: [tree.text(f"{folder}/{cpu}/cpuidle/{state}/{name}")
                             for state in tree.names(f"{folder}/{cpu}/cpuidle",
                                                     r"state\d+")]
                       for cpu in cpus})

    return {
        "driver": tree.text(f"{folder}/cpuidle/current_driver"),
        "governor": tree.text(f"{folder}/cpuidle/current_governor"),
        "names": each("name"),
        "disabled": each("disable"),
    }


def of_cpu(tree: Tree) -> dict:
    fields = cpu_fields(tree)
    folder = "sys/devices/system/cpu"
    return {
        "model_name": fields.get("model name"),
        "vendor": fields.get("vendor_id"),
        "family": fields.get("cpu family"),
        "model": fields.get("model"),
        "stepping": fields.get("stepping"),
        "microcode": fields.get("microcode"),
        "online": tree.text(f"{folder}/online"),
        "isolated": tree.text(f"{folder}/isolated"),
        "allowed": allowed_cpus(tree),
        "smt": tree.text(f"{folder}/smt/control"),
        "caches": of_caches(tree),
        "frequency": of_frequency(tree),
        "idle": of_idle_states(tree),
        "mitigations": tree.values(f"{folder}/vulnerabilities"),
    }


def of_caches(tree: Tree) -> list[dict] | None:
    """The caches of the first CPU, as the kernel counts them."""
    found = []
    folder = "sys/devices/system/cpu/cpu0/cache"
    for index in range(CACHES_AT_MOST):
        entry = f"{folder}/index{index}"
        size = tree.text(f"{entry}/size")
        if size and re.fullmatch("[0-9]+K", size):
            found.append({"level": tree.number(f"{entry}/level"),
                          "type": tree.text(f"{entry}/type"),
                          "size_bytes": int(size[:-1]) << 10})
    return found or None


def allowed_cpus(tree: Tree) -> str | None:
    found = re.search(r"^Cpus_allowed_list:\s*(\S+)",
                      tree.text("proc/self/status") or "", re.MULTILINE)
    return found[1] if found else None


# --- memory, network, load ----------------------------------------------------


def of_memory(tree: Tree) -> dict:
    info = dict(re.findall(r"^(\w+):\s*(\d+)",
                           tree.text("proc/meminfo") or "", re.MULTILINE))

    def kib(name: str) -> int | None:
        return int(info[name]) << 10 if name in info else None

    thp = "sys/kernel/mm/transparent_hugepage"
    return {
        "total_bytes": kib("MemTotal"),
        "available_bytes": kib("MemAvailable"),
        "swap_bytes": kib("SwapTotal"),
        "huge_page_bytes": kib("Hugepagesize"),
        "huge_pages": int(info["HugePages_Total"])
        if "HugePages_Total" in info else None,
        "transparent_huge_pages": {
            name: tree.selected(f"{thp}/{name}")
            for name in ("enabled", "defrag", "shmem_enabled")},
        "numa_nodes": len(tree.names("sys/devices/system/node", r"node\d+"))
        or None,
        "numa_balancing": tree.number("proc/sys/kernel/numa_balancing"),
        "virtual": {name: tree.number(f"proc/sys/vm/{name}") for name in (
            "swappiness", "dirty_ratio", "dirty_bytes",
            "dirty_background_ratio", "dirty_background_bytes",
            "dirty_expire_centisecs", "dirty_writeback_centisecs",
            "overcommit_memory", "zone_reclaim_mode")},
    }


def of_network(tree: Tree) -> dict:
    folder = "sys/class/net"
    return {
        "core": {name: tree.number(f"proc/sys/net/core/{name}") for name in (
            "rmem_max", "rmem_default", "wmem_max", "wmem_default",
            "netdev_max_backlog", "netdev_budget", "busy_read", "busy_poll")},
        "interfaces": {
            name: of_interface(tree, f"{folder}/{name}", name)
            for name in tree.names(folder) if name != "lo"
            and os.path.isdir(f"{tree.root}/{folder}/{name}")},
    }


def of_interface(tree: Tree, folder: str, name: str) -> dict:
    driver = f"{tree.root}/{folder}/device/driver"
    speed = tree.number(f"{folder}/speed")
    # A recorded tree has no interfaces to ask.
    real = os.path.exists(driver) and tree.root == ""
    return {
        "driver": os.path.basename(os.path.realpath(driver))
        if os.path.exists(driver) else None,
        "speed_mbit": speed if speed is not None and speed > 0 else None,
        "mtu_bytes": tree.number(f"{folder}/mtu"),
        "transmit_queue_length": tree.number(f"{folder}/tx_queue_len"),
        "queues": len(tree.names(f"{folder}/queues")) or None,
        "coalescing": ethernet.coalescing(name) if real else None,
        "rings": ethernet.rings(name) if real else None,
        "offloads": ethernet.offloads(name) if real else None,
    }


def of_load(tree: Tree) -> dict:
    load = (tree.text("proc/loadavg") or "").split()
    uptime = (tree.text("proc/uptime") or "").split()
    return {
        "minutes_1": float(load[0]) if load else None,
        "minutes_5": float(load[1]) if load else None,
        "minutes_15": float(load[2]) if load else None,
        "uptime_s": float(uptime[0]) if uptime else None,
    }


# --- disks --------------------------------------------------------------------


def of_drive(tree: Tree, drive: str) -> dict:
    folder = f"sys/block/{drive}"
    rotational = tree.number(f"{folder}/queue/rotational")
    sectors = tree.number(f"{folder}/size")
    real = tree.root == ""
    return {
        "model": tree.text(f"{folder}/device/model"),
        "virtual": disks.virtual(drive, f"{tree.root}/"),
        "rotational": None if rotational is None else rotational == 1,
        "size_bytes": None if sectors is None else sectors * 512,
        "scheduler": tree.selected(f"{folder}/queue/scheduler"),
        "read_ahead_kib": tree.number(f"{folder}/queue/read_ahead_kb"),
        "requests": tree.number(f"{folder}/queue/nr_requests"),
        "write_cache": tree.text(f"{folder}/queue/write_cache"),
        "cache_bytes": disks.cache_bytes_in(disks.ask_hdparm("-I", drive))
        if real else None,
    }


def of_array(tree: Tree, name: str) -> dict:
    """An MD device."""
    folder = f"sys/block/{name}/md"
    return {
        "level": tree.text(f"{folder}/level"),
        "drives": tree.number(f"{folder}/raid_disks"),
        "chunk_bytes": tree.number(f"{folder}/chunk_size"),
        "stripe_cache": tree.number(f"{folder}/stripe_cache_size"),
        "read_ahead_kib": tree.number(f"sys/block/{name}/queue/read_ahead_kb"),
    }


def is_private(option: str) -> bool:
    name, _, value = option.partition("=")
    return (name in PRIVATE_OPTIONS or "/" in value
            or ADDRESS.search(value) is not None)


def of_path(tree: Tree, path: str) -> dict:
    """The file system that a path lies on; not where."""
    mount = disks.mount_of(path, f"{tree.root}/") \
        if os.path.exists(path) else None
    placement = disks.of_path(path, f"{tree.root}/")
    return {
        "fs_type": mount.fs_type if mount else None,
        "options": [option for option in mount.options.split(",")
                    if not is_private(option)] if mount else None,
        "drives": list(placement.drives),
        "why": placement.why,
    }


def of_storage(tree: Tree, paths: Iterable[str]) -> dict:
    """What is below each path, under the path's number: a path may name a
    person or a project, so it is not recorded."""
    places = [of_path(tree, path) for path in paths]
    drives = sorted({drive for place in places for drive in place["drives"]})
    return {
        "paths": {str(i): place for i, place in enumerate(places)},
        "drives": {drive: of_drive(tree, drive) for drive in drives},
        "arrays": {name: of_array(tree, name)
                   for name in tree.names("sys/block", r"md\d+")},
    }


# --- software -----------------------------------------------------------------


def of_versions(programs) -> dict:
    paths = {name: programs.find(name) if programs else None for name in OURS}
    return {
        **{name: first_line(disks.output_of(path, "--version") or "")
           if path else None
           for name, path in {**paths, "cp": "cp", "sort": "sort"}.items()},
        "python": platform.python_version(),
        "libc": " ".join(platform.libc_ver()).strip() or None}


def of_tuning(programs) -> str | None:
    """The profile that blinktune has in force, as it says it; None without it.
    """
    path = programs.find("blinktune") if programs else None
    return disks.output_of(path, "status", "--json") if path else None


def of_services(tree: Tree) -> dict | None:
    """Running services of systemd; None without it."""
    if not os.path.isdir(f"{tree.root}/run/systemd/system"):
        return None
    text = disks.output_of("systemctl", "list-units", "--type=service",
                           "--state=running", "--no-legend", "--plain")
    if text is None:
        return None
    # Behind "@" may stand a user or an address.
    names = sorted({line.split()[0].split("@")[0] for line
                    in text.splitlines() if line.strip()})
    return {"count": len(names), "names": names}


# --- all of it ----------------------------------------------------------------


def describe(paths: Iterable[str], programs=None, root: str = "/") -> dict:
    """This machine as it is now, and the disks that paths lie on."""
    tree = Tree(root)
    return {
        "virtualisation": of_virtualisation(tree),
        "kernel": of_kernel(tree),
        "cpu": of_cpu(tree),
        "memory": of_memory(tree),
        "storage": of_storage(tree, paths),
        "network": of_network(tree),
        "load": of_load(tree),
        "versions": of_versions(programs),
        "tuning": of_tuning(programs),
        "services": of_services(tree),
    }


def with_facts(described: dict, facts: dict | None) -> dict:
    """The same, and what its user has told of the machine."""
    return {**described, "facts": facts} if facts else described


def flatten(value, prefix: str = "") -> dict:
    """{"cpu": {"smt": "on"}} -> {"cpu.smt": "on"}"""
    if not isinstance(value, dict) or not value:
        return {prefix: value}
    flat = {}
    for key, inner in value.items():
        flat.update(flatten(inner, f"{prefix}.{key}" if prefix else key))
    return flat


def is_compared(key: str) -> bool:
    return not any(key == name or key.startswith(f"{name}.")
                   for name in NOT_COMPARED)


def differences(before: dict, after: dict, prefix: str = "") -> list[dict]:
    old, new = flatten(before), flatten(after)
    return [{"key": prefix + key, "before": old.get(key),
             "after": new.get(key)}
            for key in sorted({*old, *new})
            if is_compared(key) and old.get(key) != new.get(key)]


def changes(before: dict, after: dict) -> list[dict]:
    """What is different and should not be; "nodes" has an environment of
    each."""
    old_nodes, new_nodes = before.get("nodes") or {}, after.get("nodes") or {}
    found = differences(
        {key: value for key, value in before.items() if key != "nodes"},
        {key: value for key, value in after.items() if key != "nodes"})
    for host in sorted({*old_nodes, *new_nodes}):
        found += differences(old_nodes.get(host) or {},
                             new_nodes.get(host) or {}, f"nodes.{host}.")
    return found
