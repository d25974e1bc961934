"""File systems on loop devices, each with a rate of its own.

The kernel limits the rates for the processes of one cgroup: that of the block
devices' controller with version 1, the memory's own with version 2.
"""

import contextlib
import os
import sys

from places import privileged, unmount
from programs import ROOT, Failed, Skip, must_run, tool

sys.path.insert(0, str(ROOT / "results"))

from trials.machine import memory_cgroup  # noqa: E402
from trials.machine.memory_cgroup import Unavailable  # noqa: E402


class SlowDisks:
    """folders[name] is on a device that reads and writes rates[name] bytes a
    second, for commands that enter() returns."""

    def __init__(self, folder, size_bytes, rates):
        if os.geteuid() != 0:
            raise Skip("only root may mount")
        self.folders = {}
        self._rates = {}
        self._stack = contextlib.ExitStack()
        try:
            for name, rate in rates.items():
                self._add(folder, name, size_bytes, rate)
            self._throttle()
        except BaseException:
            self.close()
            raise

    def _add(self, folder, name, size_bytes, rate):
        image, mounted = folder / f"{name}.image", folder / f"{name}.mounted"
        self._stack.callback(image.unlink, missing_ok=True)
        with open(image, "wb") as file:
            file.truncate(size_bytes)
        try:
            # Direct: the page cache of the file would count as our memory.
            device = must_run(tool("losetup"), "--direct-io=on", "--find",
                              "--show", str(image)).decode().strip()
        except Failed as reason:
            raise Skip(f"no loop device: {reason}") from None
        self._stack.callback(self._detach, device)
        privileged(tool("mkfs.ext4"), "-q", device)
        mounted.mkdir()
        self._stack.callback(mounted.rmdir)
        privileged("mount", device, str(mounted))
        self._stack.callback(unmount, mounted)
        self.folders[name] = mounted
        found = os.stat(mounted).st_dev
        self._rates[f"{os.major(found)}:{os.minor(found)}"] = rate

    @staticmethod
    def _detach(device):
        with contextlib.suppress(Failed):
            must_run(tool("losetup"), "--detach", device)

    def _throttle(self):
        """With version 1 there is another cgroup, for all runs."""
        try:
            hierarchy, kind = memory_cgroup.mounted(["blkio", "io"])
            self._own = None
            if kind == "cgroup":
                self._own = memory_cgroup.make(hierarchy)
                self._stack.callback(memory_cgroup.remove, self._own)
                for device, rate in self._rates.items():
                    for way in ("read", "write"):
                        memory_cgroup.write(
                            f"{self._own}/blkio.throttle.{way}_bps_device",
                            f"{device} {rate}")
        except Unavailable as reason:
            raise Skip(f"no limit of rates: {reason}") from None

    def enter(self, cgroup, words):
        """The command, in the memory cgroup and with these rates."""
        if self._own:
            words = memory_cgroup.entered(self._own, words)
        else:
            for device, rate in self._rates.items():
                memory_cgroup.write(f"{cgroup.folder}/io.max",
                                    f"{device} rbps={rate} wbps={rate}")
        return cgroup.command(words)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._stack.close()
