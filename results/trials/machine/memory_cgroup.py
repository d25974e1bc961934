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
    limit: str
    swap: str
    peak: str
    # Swap is limited together with memory, and not by itself.
    limits_sum: bool = False


VERSIONS = {
    "cgroup": Version("memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
                      "memory.max_usage_in_bytes", True),
    "cgroup2": Version("memory.max", "memory.swap.max", "memory.peak")}


def mounted(root: str) -> tuple[str, str]:
    """(folder, type) of the hierarchy that limits memory."""
    for folder, kind, options in re.findall(
            r"^\S+ (\S+) (cgroup2?) (\S+) ",
            read(os.path.join(root, "proc/mounts")), re.MULTILINE):
        folder = os.path.join(root, folder.lstrip("/"))
        has = options.split(",") if kind == "cgroup" else read(
            f"{folder}/cgroup.subtree_control").split()
        if "memory" in has:
            return folder, kind
    raise Unavailable("no cgroup hierarchy has memory")


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


class MemoryCgroup:
    """A cgroup whose processes together take no more than limit_bytes."""

    def __init__(self, limit_bytes: int, root: str = "/"):
        hierarchy, kind = mounted(root)
        self.version = VERSIONS[kind]
        self.folder = make(hierarchy)
        try:
            self._limit(limit_bytes)
        except Unavailable:
            self.close()
            raise

    def _limit(self, limit_bytes: int) -> None:
        version = self.version
        write(f"{self.folder}/{version.limit}", limit_bytes)
        # Kernels may be built without the accounting of swap.
        if os.path.exists(f"{self.folder}/{version.swap}"):
            write(f"{self.folder}/{version.swap}",
                  limit_bytes if version.limits_sum else 0)

    def command(self, words: list[str]) -> list[str]:
        """The command, run in the cgroup."""
        return ["/bin/sh", "-c", ENTER, f"{self.folder}/cgroup.procs", *words]

    def peak_bytes(self) -> int | None:
        """The most that was taken; None before Linux 5.19 with version 2."""
        return disks.read_number(f"{self.folder}/{self.version.peak}")

    def close(self) -> None:
        """Wait until its processes have left, then remove it."""
        end = time.monotonic() + REMOVED_S
        with contextlib.suppress(OSError):
            while (read(f"{self.folder}/cgroup.procs")
                   and time.monotonic() < end):
                time.sleep(0.01)
            os.rmdir(self.folder)
