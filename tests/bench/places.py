"""The file systems that are measured on."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from programs import ROOT, Skip, quiet, tool


class Place:
    """A folder on a file system."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = Path(folder)
        self.input = self.folder / "in"
        self.output = self.folder / "out"

    def describe(self):
        found = quiet(["findmnt", "-n", "-r", "-o", "FSTYPE,OPTIONS", "-T",
                       str(self.folder)]) or "unknown unknown"
        # Where two are mounted on one folder, the last one is on top.
        fs_type, options = found.splitlines()[-1].split()
        # Some file systems name folders of the machine there.
        options = [o for o in options.split(",") if "/" not in o]
        return {"fs_type": fs_type, "mount_options": ",".join(options),
                "free_bytes": shutil.disk_usage(self.folder).free}


def privileged(*command):
    print("# " + " ".join(command).replace(f"{ROOT}/", ""), flush=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Skip(f"{command[0]}: {done.stderr.strip()[-120:]}")


def unmount(folder):
    # A descriptor that another program had open a moment ago keeps it busy.
    with contextlib.suppress(Skip):
        privileged("umount", str(folder))
        return
    privileged("umount", "--lazy", str(folder))


def mounted(name, arguments):
    """A place on a file system of its own, for the time of a with block."""
    @contextlib.contextmanager
    def place(scratch, size_bytes):
        if os.geteuid() != 0:
            raise Skip("only root may mount")
        folder = scratch / name
        folder.mkdir()
        privileged("mount", *arguments(scratch, size_bytes), str(folder))
        try:
            yield Place(name, folder)
        finally:
            unmount(folder)
    return place


def xfs_arguments(scratch, size_bytes):
    image = scratch / "xfs.image"
    with open(image, "wb") as file:
        file.truncate(size_bytes)
    privileged(Path(tool("mkfs.xfs")).name, "-q", str(image))
    return ["-t", "xfs", "-o", "loop", str(image)]


def huge_arguments(_scratch, size_bytes):
    return ["-t", "tmpfs", "-o", f"huge=always,size={size_bytes}", "tmpfs"]


@contextlib.contextmanager
def disk_place(scratch, _size_bytes):
    folder = scratch / "disk"
    folder.mkdir()
    yield Place("disk", folder)


@contextlib.contextmanager
def shm_place(_scratch, size_bytes):
    if not os.path.isdir("/dev/shm"):
        raise Skip("there is no /dev/shm")
    if shutil.disk_usage("/dev/shm").free < size_bytes:
        raise Skip("/dev/shm is too small")
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/dev/shm") as folder:
        yield Place("shm", folder)


PLACES = {"shm": shm_place, "disk": disk_place,
          "xfs": mounted("xfs", xfs_arguments),
          "huge": mounted("huge", huge_arguments)}
