"""Inputs, what is cached of them, and whether an output is right."""

import ctypes
import filecmp
import os
import re
import subprocess

from programs import (Failed, Skip, built, must_run, program, quiet,
                      tool)

RECORD_BYTES = 100
WRITE_BYTES = 1 << 20
# Of make_shape's, those that show something of their own about the time.
SHAPES = ("all-equal", "two-values", "zipf", "sorted", "reversed",
          "first-two-random", "last-two-random", "common-prefix", "extremes")
SHAPE_SEED = 1


def write_pieces(path, data):
    with open(path, "wb", buffering=0) as file:
        view = memoryview(data)
        for start in range(0, len(view), WRITE_BYTES):
            file.write(view[start:start + WRITE_BYTES])


def make_input(path, kind, count):
    """kind: a shape, or blinkgen's options.  On the medium when done, so that
    nothing is written back during a timed run; and written as any program
    would, by cp: blinkgen gives it huge pages on a tmpfs of small ones."""
    if kind in SHAPES:
        write_pieces(path, must_run(built("make_shape"), kind, str(count),
                                    str(SHAPE_SEED)))
    else:
        made = f"{path}.made"
        must_run(program("blinkgen"), *kind.split(), str(count), made)
        must_run(tool("cp"), "--reflink=never", made, str(path))
        os.unlink(made)
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def valsort_report(*paths):
    """blinkval's (status, checksum) of files that follow each other."""
    done = subprocess.run([program("blinkval"), *map(str, paths)], text=True,
                          capture_output=True, check=False)
    found = re.search(r"^Checksum: ([0-9a-f]+)$", done.stdout + done.stderr,
                      re.MULTILINE)
    if not found:
        raise Failed(f"blinkval: {done.stderr.strip()[-200:]}")
    return done.returncode, found.group(1)


def check_sorted(source):
    def check(output):
        status, checksum = valsort_report(output)
        if status != 0 or checksum != valsort_report(source)[1]:
            raise Failed("the output is not the input, sorted")
    return check


def check_copied(source):
    def check(output):
        if not filecmp.cmp(source, output, shallow=False):
            raise Failed("the output is not the input")
    return check


class CachestatRange(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]


SYS_CACHESTAT = 451  # of every architecture; since Linux 6.5


def cached_pages(path):
    """How many pages of the file the page cache holds."""
    counts = (ctypes.c_uint64 * 5)()  # the first one is what is cached
    whole = CachestatRange(0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    with open(path, "rb") as file:
        if libc.syscall(ctypes.c_long(SYS_CACHESTAT),
                        ctypes.c_uint(file.fileno()), ctypes.byref(whole),
                        counts, ctypes.c_uint(0)) == 0:
            return counts[0]
    pages = quiet([tool("fincore"), "-n", "-o", "PAGES", str(path)])
    if pages is None:
        raise Skip("neither cachestat(2) nor fincore(1) works here")
    return int(pages)


def drop_cached(path):
    """Nothing of this file is in the page cache, and no other file's pages
    are waiting to be written.  Only this file: dropping all caches leaves
    tmpfs slower than it was."""
    def drop():
        os.sync()
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        left = cached_pages(path)
        if left:
            raise Failed(f"{left} pages of the input stay in the page cache")
    return drop
