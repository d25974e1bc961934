"""Which drives a path lies on, and what is known of them.

From /sys and /proc, whose place a test may give as root.  A drive is a whole
disk: partitions lead to it, and so do device-mapper and MD devices by their
members.
"""

import os
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass

# File systems whose files are nowhere but in memory.
MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs", "hugetlbfs")
# Block devices that are no disk.
MEMORY_DEVICES = ("zram", "ram", "brd")
# Hypervisors write these names where a drive's vendor stands.
VIRTUAL_VENDORS = ("QEMU", "VMware", "VBOX", "Msft", "Xen", "Google",
                   "Amazon")
# The unit of sizes in /sys, whatever a drive's own sectors are.
SECTOR_BYTES = 512
TOOL_FOLDERS = "/usr/sbin:/sbin"
TOOL_SECONDS = 10


@dataclass(frozen=True)
class Mount:
    point: str
    source: str
    fs_type: str
    options: str


@dataclass(frozen=True)
class Placement:
    """drives: names as in /sys/block, sorted; empty if there is none or it is
    not known, and why says so.  memory: there is no disk at all.  spread: what
    lies on all drives evenly, a data set that is read evenly reads all of
    them alike; a single drive is."""
    drives: tuple = ()
    why: str | None = None
    memory: bool = False
    spread: bool = True


def read_text(path: str) -> str | None:
    """A small file of /sys or /proc, stripped; None if it can't be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None


def read_number(path: str) -> int | None:
    try:
        return int(read_text(path))
    except (TypeError, ValueError):
        return None


def names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


# --- block devices ------------------------------------------------------------


def is_device(path: str) -> bool:
    """True if it is a block device."""
    return stat.S_ISBLK(os.stat(path).st_mode)


def size_bytes_of(device: str, root: str = "/") -> int | None:
    """The size of a block device; None if /sys does not tell."""
    number = os.stat(device).st_rdev
    sectors = read_number(f"{root}/sys/dev/block/{os.major(number)}:"
                          f"{os.minor(number)}/size")
    return None if sectors is None else sectors * SECTOR_BYTES


# --- where a path lies --------------------------------------------------------


def unescape(text: str) -> str:
    """mountinfo has blanks and such as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)


def mount_of(path: str, root: str = "/") -> Mount | None:
    """The mount that path lies on: the last one of its device whose point is
    above it, else of its device.  A block device lies on none."""
    if is_device(path):
        return None
    device = os.stat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    above, any_place = None, None
    for line in (read_text(f"{root}/proc/self/mountinfo") or "").splitlines():
        fields = line.split()
        if len(fields) < 10 or fields[2] != number:
            continue
        rest = fields[fields.index("-") + 1:]
        point = unescape(fields[4])
        any_place = Mount(point, unescape(rest[1]), rest[0],
                          ",".join(merge(fields[5], rest[-1])))
        if os.path.realpath(path).startswith(point.rstrip("/") + "/"):
            above = any_place
    return above or any_place


def merge(mount_options: str, fs_options: str) -> list[str]:
    options = mount_options.split(",")
    return options + [option for option in fs_options.split(",")
                      if option not in options]


def existing(path: str) -> str:
    """The path, or the closest folder above it that exists."""
    while not os.path.exists(path):
        path = os.path.dirname(os.path.abspath(path))
    return path


def of_path(path: str, root: str = "/") -> Placement:
    """Find where a file or folder lies, or would, or which disk a block device
    is."""
    path = existing(path)
    if is_device(path):
        device = os.stat(path).st_rdev
        return of_device(os.major(device), os.minor(device), root)
    device = os.stat(path).st_dev
    if os.major(device) != 0:
        return of_device(os.major(device), os.minor(device), root)
    mount = mount_of(path, root)
    if mount is None:
        return Placement(why="no disk known")
    if mount.fs_type in MEMORY_FILE_SYSTEMS:
        return Placement(why=f"{mount.fs_type} has no disk", memory=True)
    return Placement(why=f"disks of {mount.fs_type} not known")


def of_device(major: int, minor: int, root: str = "/") -> Placement:
    link = f"{root}/sys/dev/block/{major}:{minor}"
    if not os.path.exists(link):
        return Placement(why=f"no device {major}:{minor} in /sys")
    return of_folder(os.path.realpath(link), root)


def of_folder(folder: str, root: str) -> Placement:
    """The drives of a block device, given its folder in /sys."""
    if os.path.exists(f"{folder}/partition"):
        folder = os.path.dirname(folder)
    name = os.path.basename(folder)
    if name.rstrip("0123456789") in MEMORY_DEVICES:
        return Placement(why=f"{name} has no disk", memory=True)
    members = names_in(f"{folder}/slaves")
    if not members:
        return Placement(drives=(name,))
    below = [of_folder(os.path.realpath(f"{folder}/slaves/{member}"), root)
             for member in members]
    for part in below:
        if not part.drives:
            return part
    drives = sorted({name for part in below for name in part.drives})
    even = len(drives) == 1 or read_text(f"{folder}/md/level") == "raid0"
    return Placement(drives=tuple(drives),
                     spread=even and all(part.spread for part in below))


# --- what is known of a drive -------------------------------------------------


def folder_of(drive: str, root: str = "/") -> str:
    return f"{root}/sys/block/{drive}"


def write_cache(drive: str, root: str = "/") -> bool | None:
    """Whether the kernel takes the drive's write cache for on, and so flushes
    it; None: unknown, also where two places differ."""
    folder = folder_of(drive, root)
    # A loop device says that fsync is passed on; its file's cache is our page
    # cache.
    if os.path.exists(f"{folder}/loop"):
        return None
    said = {"write back": True, "write through": False}.get(
        read_text(f"{folder}/queue/write_cache"))
    # SCSI and SATA drives have cache_type; queue/write_cache can be written to,
    # which changes what is flushed but not the drive.
    for disk in names_in(f"{folder}/device/scsi_disk"):
        kind = read_text(f"{folder}/device/scsi_disk/{disk}/cache_type")
        if kind is not None and ("write back" in kind) != said:
            return None
    return said


def tool(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=TOOL_FOLDERS)


def output_of(*command: str) -> str | None:
    """The output of a command; None if it is missing or fails."""
    program = tool(command[0])
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *command[1:]], check=False, text=True,
            errors="replace", stdin=subprocess.DEVNULL, capture_output=True,
            timeout=TOOL_SECONDS, env={**os.environ, "LC_ALL": "C"})
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def ask_hdparm(option: str, drive: str) -> str:
    """The output of hdparm for a drive, "" if it can't."""
    return output_of("hdparm", option, f"/dev/{drive}") or ""


def write_cache_in(hdparm_text: str) -> bool | None:
    found = re.search(r"write-caching\s*=\s*([01])", hdparm_text)
    return found[1] == "1" if found else None


def cache_bytes_in(hdparm_text: str) -> int | None:
    found = re.search(r"cache/buffer size\s*=\s*(\d+)\s*KBytes", hdparm_text)
    return int(found[1]) << 10 if found else None


def virtual(drive: str, root: str = "/") -> str | None:
    """What makes us think that a drive is a host's file or that a host's cache
    stands before it; None: nothing does."""
    folder = os.path.realpath(folder_of(drive, root))
    if "/virtio" in folder:
        return "virtio disk"
    if drive.startswith("xvd") or "/vbd-" in folder:
        return "Xen disk"
    if os.path.exists(f"{folder}/loop"):
        return "a file, not a drive"
    if drive.startswith(("nbd", "rbd", "drbd")):
        return "disk of another machine"
    vendor = (read_text(f"{folder}/device/vendor") or "") + " " + (
        read_text(f"{folder}/device/model") or "")
    for name in VIRTUAL_VENDORS:
        if name.lower() in vendor.lower():
            return f"{name} disk"
    return "virtual machine" if hypervisor(root) else None


def hypervisor(root: str = "/") -> bool:
    """The CPU says that it is one of a virtual machine."""
    for line in (read_text(f"{root}/proc/cpuinfo") or "").splitlines():
        if line.startswith("flags"):
            return "hypervisor" in line.split()
    return read_text(f"{root}/sys/hypervisor/type") is not None
