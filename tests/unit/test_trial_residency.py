#!/usr/bin/python3
"""Files in and out of the page cache: trials/scenario/residency.py."""

import mmap
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import unit
from trials.base.failure import FILE, Failure
from trials.machine import disks
from trials.scenario import residency

PAGE = mmap.PAGESIZE
NOBODY = 65534


def as_nobody(work):
    """What work() returns, as text, in a process that may do nothing; the
    test's own user if that is not root."""
    read_fd, write_fd = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            text = repr(work())
        except BaseException as error:
            text = f"raised {error!r}"
        os.write(write_fd, text.encode())
        os._exit(0)
    os.close(write_fd)
    with os.fdopen(read_fd) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


class TestResidency(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="blinksort-test.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.chmod(self.folder, 0o755)
        self.path = f"{self.folder}/file"

    def write(self, size_bytes):
        with open(self.path, "wb") as file:
            file.write(os.urandom(size_bytes))

    def evict(self):
        """Skips where files are nowhere else."""
        part = residency.evict(self.path)
        if disks.of_path(self.folder).memory:
            self.assertEqual(part, 1.0)
            self.skipTest("files in memory only")
        return part

    def test_in_and_out(self):
        self.write(300 * PAGE)
        self.assertEqual(residency.load(self.path), 1.0)
        self.assertEqual(self.evict(), 0.0)
        self.assertEqual(residency.fraction(self.path), 0.0)
        self.assertEqual(residency.load(self.path), 1.0)
        self.assertEqual(residency.fraction(self.path), 1.0)

    def test_dirty_pages_are_evicted(self):
        self.write(64 * PAGE)
        self.assertEqual(self.evict(), 0.0)

    def test_content_stays(self):
        self.write(10 * PAGE + 17)
        with open(self.path, "rb") as file:
            before = file.read()
        residency.evict(self.path)
        residency.load(self.path)
        with open(self.path, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_last_page_is_a_part_of_one(self):
        self.write(2 * PAGE + 1)
        self.assertEqual(residency.load(self.path), 1.0)

    def evict_but(self, pages):
        """Only these pages are there then."""
        self.evict()
        fd = os.open(self.path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        for page in pages:
            os.pread(fd, 1, page * PAGE)
        os.close(fd)

    def test_first_bytes(self):
        """As of a device, which has no end that fstat(2) knows."""
        self.write(64 * PAGE)
        self.evict_but([0, 1, 40])
        fraction = residency.fraction
        self.assertEqual(fraction(self.path, 2 * PAGE), 1.0)
        self.assertEqual(fraction(self.path, PAGE + 1), 1.0)
        self.assertEqual(fraction(self.path, 4 * PAGE), 0.5)
        with unittest.mock.patch.object(residency, "pages_by_cachestat",
                                        return_value=None):
            self.assertEqual(fraction(self.path, 4 * PAGE), 0.5)
        self.assertEqual(residency.load(self.path, 3 * PAGE), 1.0)
        self.assertEqual(residency.evict(self.path, 3 * PAGE), 0.0)
        self.assertEqual(fraction(self.path), 0.0)

    def test_some_pages(self):
        self.write(64 * PAGE)
        self.evict_but([0, 1, 40])
        part = residency.fraction(self.path)
        self.assertGreater(part, 0)
        self.assertLess(part, 1)
        try:
            done = subprocess.run(
                ["fincore", "--raw", "--noheadings", "--bytes", "--output",
                 "RES", self.path], capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("no fincore")
        self.assertEqual(part * 64 * PAGE, int(done.stdout))

    def test_mincore_says_the_same(self):
        self.write(64 * PAGE - 5)
        fd = os.open(self.path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        size_bytes = 64 * PAGE - 5
        self.assertEqual(residency.pages_by_mincore(fd, size_bytes), 64)
        self.evict_but([3])
        found = residency.pages_by_cachestat(fd, size_bytes)
        if found is None:
            self.skipTest("no cachestat")
        self.assertEqual(residency.pages_by_mincore(fd, size_bytes), found)

    def test_without_cachestat(self):
        self.write(8 * PAGE)
        whole = unittest.mock.patch.object(residency, "pages_by_cachestat",
                                           return_value=None)
        with whole:
            self.assertEqual(residency.load(self.path), 1.0)
            self.assertEqual(self.evict(), 0.0)

    def test_nobody_can_tell(self):
        self.write(8 * PAGE)
        with unittest.mock.patch.multiple(
                residency, pages_by_cachestat=lambda fd, _: None,
                may_ask_mincore=lambda fd: False):
            self.assertIsNone(residency.load(self.path))

    def test_what_stays_is_reported(self):
        # Pages that are mapped and in use are not dropped: advice it is.
        self.write(8 * PAGE)
        with open(self.path, "rb") as file, \
                mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            self.assertIsNotNone(mapped[5 * PAGE])
            self.assertGreater(residency.evict(self.path), 0)

    def test_stranger_is_not_told_a_lie(self):
        # mincore(2) calls all pages resident if the caller may not write.
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.write(64 * PAGE)
        os.chmod(self.path, 0o644)
        self.evict()
        self.assertIn(
            as_nobody(lambda: residency.fraction(self.path)), ("None", "0.0"))
        with unittest.mock.patch.object(residency, "pages_by_cachestat",
                                        return_value=None):
            self.assertEqual(
                as_nobody(lambda: residency.fraction(self.path)), "None")

    def test_empty(self):
        self.write(0)
        self.assertIsNone(residency.fraction(self.path))
        self.assertIsNone(residency.load(self.path))
        self.assertIsNone(residency.evict(self.path))

    def test_missing(self):
        for function in (residency.load, residency.evict, residency.fraction,
                         residency.settle):
            with self.assertRaises(Failure) as caught:
                function(f"{self.folder}/none")
            self.assertEqual(caught.exception.status, FILE)
            self.assertEqual(str(caught.exception), f"{self.folder}/none: "
                             "No such file or directory")

    def test_settle(self):
        self.write(PAGE)
        residency.settle(self.folder)
        residency.settle(self.path)

    # --- all caches ---

    def tree(self, mode):
        folder = f"{self.folder}/proc/sys/vm"
        os.makedirs(folder)
        with open(f"{folder}/drop_caches", "w", encoding="ascii") as file:
            file.write("0")
        os.chmod(f"{folder}/drop_caches", mode)
        return f"{folder}/drop_caches"

    def test_drops_the_page_cache_alone(self):
        # 2 and 3 would drop names and inodes, which no scenario asks for.
        path = self.tree(0o644)
        self.assertIsNone(residency.drop_caches(self.folder))
        with open(path, encoding="ascii") as file:
            self.assertEqual(file.read(), "1")

    def test_may_not_drop(self):
        self.tree(0o444)
        self.assertEqual(
            as_nobody(lambda: residency.drop_caches(self.folder)),
            "'no permission'")

    def test_cannot_drop(self):
        self.assertEqual(residency.drop_caches(self.folder),
                         "No such file or directory")


if __name__ == "__main__":
    sys.exit(unit.main())
