"""What a process moves to and from one disk, as the kernel counts it.

The blkio controller of version 1 counts for a cgroup of its own; that of
version 2 counts in the memory's cgroup, in io.stat.  Where neither can be
used, the kernel's count for the process remains, that of /proc/PID/io: it ends
with what the process has waited for.
"""

import os
import re
import sys

from programs import ROOT

sys.path.insert(0, str(ROOT / "results"))

from trials.machine import memory_cgroup  # noqa: E402
from trials.machine.memory_cgroup import (  # noqa: E402
    MemoryCgroup, Unavailable)

V1_COUNTS = "blkio.throttle.io_service_bytes"
V1_RATE = "blkio.throttle.read_bps_device"
V2_COUNTS = "io.stat"
V2_RATE = "io.max"
# The counts of version 1 begin when the disk has had a limit for a cgroup.  No
# disk is as fast as this one, and it is taken back at once.
ANY_RATE = 10**12
# Of ru_inblock and ru_oublock.
BLOCK_BYTES = 512


def disk_of(folder, root="/"):
    """MAJOR:MINOR of the whole disk that the folder is on."""
    device = os.stat(folder).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    path = os.path.join(root, "sys/dev/block", name)
    if not os.path.exists(path):
        raise Unavailable(f"{folder} is on no block device")
    if os.path.exists(f"{path}/partition"):
        whole = os.path.join(os.path.realpath(path), "..", "dev")
        name = memory_cgroup.read(whole).strip()
    return name


def of_v1(text, disk):
    """(bytes read, bytes written); None if the disk is not named."""
    found = dict(re.findall(rf"^{disk} (Read|Write) (\d+)$", text,
                            re.MULTILINE))
    return (int(found["Read"]), int(found["Write"])) \
        if len(found) == 2 else None


def of_v2(text, disk):
    found = re.search(rf"^{disk} .*?rbytes=(\d+) wbytes=(\d+)", text,
                      re.MULTILINE)
    return (int(found[1]), int(found[2])) if found else None


class RankCgroup:
    """A limit of the memory of one process, and its count of one disk."""

    def __init__(self, limit_bytes, disk, root="/"):
        self.disk, self.why = disk, None
        self.counts = None  # the folder of version 1's cgroup
        self.memory = MemoryCgroup(limit_bytes, root)
        try:
            self._count(root)
        except Unavailable as reason:
            self.why = str(reason)
        except BaseException:
            self.close()
            raise

    def _count(self, root):
        if self.disk is None:
            raise Unavailable("the files are on no block device")
        if self.memory.version.number == 2:
            if not os.path.exists(f"{self.memory.folder}/{V2_COUNTS}"):
                raise Unavailable(
                    "the io controller is not enabled for the cgroup")
            return
        hierarchy, kind = memory_cgroup.mounted(["blkio"], root)
        if kind != "cgroup":
            raise Unavailable("memory is of version 1 and io of version 2")
        self.counts = memory_cgroup.make(hierarchy)
        for rate in (ANY_RATE, 0):
            memory_cgroup.write(f"{self.counts}/{V1_RATE}",
                                f"{self.disk} {rate}")

    def limit_reads(self, bytes_per_s):
        """From the disk, by this process."""
        if self.why:
            raise Unavailable(self.why)
        if self.counts:
            memory_cgroup.write(f"{self.counts}/{V1_RATE}",
                                f"{self.disk} {bytes_per_s}")
        else:
            memory_cgroup.write(f"{self.memory.folder}/{V2_RATE}",
                                f"{self.disk} rbps={bytes_per_s}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.counts:
            memory_cgroup.remove(self.counts)
        self.memory.close()

    def command(self, words):
        words = self.memory.command(words)
        return memory_cgroup.entered(self.counts, words) if self.counts \
            else words

    def moved(self, usage):
        """What the disk has read and written; source says what counted it.
        usage is that of the process, from wait4."""
        process = {"process_read_bytes": usage.ru_inblock * BLOCK_BYTES,
                   "process_written_bytes": usage.ru_oublock * BLOCK_BYTES}
        found, source = None, None
        if self.counts:
            source = V1_COUNTS
            found = of_v1(memory_cgroup.read(f"{self.counts}/{source}"),
                          self.disk)
        elif self.memory.version.number == 2 and not self.why:
            source = V2_COUNTS
            found = of_v2(memory_cgroup.read(
                f"{self.memory.folder}/{source}"), self.disk)
        if found is None:
            source = "/proc/PID/io: " + (self.why or "the cgroup has no counts")
            found = tuple(process.values())
        return {"source": source, "read_bytes": found[0],
                "written_bytes": found[1], **process}
