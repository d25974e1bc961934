"""A limit for the memory of a process and all that it starts: a cgroup.

What the page cache holds for these processes counts, too; so a limit keeps the
page cache out of what is measured.  The kernel mounts cgroups of version 1 or
of version 2; only root may make one.
"""

import contextlib
import os
import re
import time
from dataclasses import dataclass

from trials.machine import disks

# The kernel takes this for a process beside what the process asks for: tables
# of pages, rings, what file systems note.  A limit counts it, too.
KERNEL_BYTES = 16 << 20
# A process that has ended leaves its cgroup a moment later.
REMOVED_S = 5.0
# Moves the shell into the cgroup, then becomes the command: costs 1 ms.
ENTER = 'echo $$ >"$0" && exec "$@"'


class Unavailable(Exception):
    """No cgroup can be made here; the reason."""


@dataclass(frozen=True)
class Version:
    """Names of the files of a cgroup."""
    number: int
    limit: str
    swap: str
    peak: str
    events: str

    def swap_limit(self, limit_bytes: int) -> int:
        """Version 1 limits the sum of memory and swap."""
        return limit_bytes if self.number == 1 else 0


VERSIONS = {
    "cgroup": Version(1, "memory.limit_in_bytes",
                      "memory.memsw.limit_in_bytes",
                      "memory.max_usage_in_bytes", "memory.oom_control"),
    "cgroup2": Version(2, "memory.max", "memory.swap.max", "memory.peak",
                       "memory.events")}


def mounted(controllers: list[str], root: str = "/") -> tuple[str, str]:
    """(folder, type) of the hierarchy that has one of these controllers:
    version 1 and 2 may call it by different names."""
    for found in re.findall(r"^\S+ (\S+) (cgroup2?) (\S+) ", read(
            os.path.join(root, "proc/mounts")), re.MULTILINE):
        folder, kind, options = found
        folder = os.path.join(root, folder.lstrip("/"))
        has = options.split(",") if kind == "cgroup" else read(
            f"{folder}/cgroup.subtree_control").split()
        if set(controllers) & set(has):
            return folder, kind
    raise Unavailable(f"no cgroup hierarchy has {controllers[0]}")


def read(path: str) -> str:
    """All of a file; nothing if it is not there."""
    return disks.read_text(path) or ""


def write(path: str, value) -> None:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(f"{value}\n")
    except OSError as error:
        raise Unavailable(f"{os.path.basename(path)}: {error.strerror}"
                          ) from None


def make(hierarchy: str) -> str:
    """A new cgroup; its folder."""
    folder = os.path.join(hierarchy, f"blink-{os.getpid()}")
    number = 0
    while os.path.exists(f"{folder}-{number}"):
        number += 1
    try:
        os.mkdir(f"{folder}-{number}")
    except OSError as error:
        raise Unavailable(f"no cgroup can be made: {error.strerror}"
                          ) from None
    return f"{folder}-{number}"


def remove(folder: str) -> None:
    """Wait until its processes have left, then remove it."""
    end = time.monotonic() + REMOVED_S
    with contextlib.suppress(OSError):
        while read(f"{folder}/cgroup.procs") and time.monotonic() < end:
            time.sleep(0.01)
        os.rmdir(folder)


def entered(folder: str, command: list[str]) -> list[str]:
    """The command, run in the cgroup."""
    return ["/bin/sh", "-c", ENTER, f"{folder}/cgroup.procs", *command]


class MemoryCgroup:
    """A cgroup whose processes together take no more than limit_bytes."""

    def __init__(self, limit_bytes: int, root: str = "/"):
        hierarchy, kind = mounted(["memory"], root)
        self.version = VERSIONS[kind]
        self.limit_bytes = limit_bytes
        self.folder = make(hierarchy)
        try:
            self._limit()
        except Unavailable:
            self.close()
            raise

    def _limit(self) -> None:
        version = self.version
        write(f"{self.folder}/{version.limit}", self.limit_bytes)
        # Kernels may be built without the accounting of swap.
        if os.path.exists(f"{self.folder}/{version.swap}"):
            write(f"{self.folder}/{version.swap}",
                  version.swap_limit(self.limit_bytes))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def command(self, words: list[str]) -> list[str]:
        return entered(self.folder, words)

    def peak_bytes(self) -> int | None:
        """The most that was taken; None before Linux 5.19 with version 2."""
        text = read(f"{self.folder}/{self.version.peak}")
        return int(text) if text.isdigit() else None

    def killed(self) -> int:
        """The number of processes that the kernel has killed for the limit's
        sake."""
        found = re.search(r"^oom_kill (\d+)$", read(
            f"{self.folder}/{self.version.events}"), re.MULTILINE)
        return int(found[1]) if found else 0

    def close(self) -> None:
        remove(self.folder)
