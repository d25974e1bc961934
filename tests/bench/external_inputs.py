"""Inputs of gigabytes, each made once for the rows that want it."""

import os
import subprocess
from dataclasses import dataclass, field

from files import SHAPE_SEED
from programs import Failed, Skip, built, must_run, program

# Of make_shape's: those that show something of their own beyond memory.
SHAPES = ("all-equal", "two-values", "sorted", "reversed", "zipf",
          "first-two-random")


@dataclass(frozen=True)
class Kind:
    """A shape of make_shape's, or "ascii", "binary", "skew": blinkgen's."""
    shape: str
    record_bytes: int = 100
    key: str = "0:10"

    @property
    def options(self):
        """For blinksort and blinkval."""
        if (self.record_bytes, self.key) == (100, "0:10"):
            return []
        return [f"--record-size={self.record_bytes}", f"--key={self.key}"]


GENERATED = {"ascii": ["-a"], "binary": [], "skew": ["-a", "-s"]}


def make(path, kind, count):
    """A file of so many records, on the medium and not in the page cache."""
    if kind.shape in GENERATED:
        must_run(program("blinkgen"), *GENERATED[kind.shape], str(count),
                 str(path))
    else:
        with open(path, "wb") as file:
            done = subprocess.run(
                [built("make_shape"), kind.shape, str(count),
                 str(SHAPE_SEED), *kind.options], stdout=file,
                stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise Failed(f"make_shape: {done.stderr.decode().strip()[-200:]}")
    with open(path, "rb") as file:
        os.fsync(file.fileno())


@dataclass
class Inputs:
    """size_bytes each.  Those of a row stay for the next one."""
    folder: object
    size_bytes: int
    paths: dict = field(default_factory=dict)

    def get(self, kind):
        if kind not in self.paths:
            path = self.folder / f"in.{len(self.paths)}.{kind.shape}"
            make(path, kind, self.size_bytes // kind.record_bytes)
            self.paths[kind] = path
        return self.paths[kind]

    def keep_only(self, kinds):
        for kind in set(self.paths) - set(kinds):
            if self.paths[kind].exists():
                self.paths[kind].unlink()
            del self.paths[kind]

    def expect_room(self, files):
        """For so many more files of this size."""
        free = os.statvfs(self.folder)
        free_bytes = free.f_bavail * free.f_frsize
        wanted_bytes = round(files * self.size_bytes)
        if free_bytes < wanted_bytes:
            raise Skip(f"{free_bytes / 1e9:.1f} GB are free in the folder, "
                       f"{wanted_bytes / 1e9:.1f} are needed")


def check_sorted(source, kind):
    """blinkval must find the output in order, with the input's records."""
    def check(output):
        must_run(program("blinkval"), "-q", *kind.options, "--against",
                 str(source), str(output))
    return check


def check_size(size_bytes):
    """For what drops the CR of a line, so that checksums differ."""
    def check(output):
        found = os.path.getsize(output)
        if found != size_bytes:
            raise Failed(f"{found} bytes in the output, not {size_bytes}")
    return check
