"""How much of a file is in the page cache; bringing it in, taking it out.

A file may be a block device: then size_bytes is the number of its first bytes
that are meant, and else it is None.  The kernel drops the pages of a device
when the last program closes it: the caller keeps it open.

Every function leaves the file's content alone.  Figures are measured, never
concluded from what was asked of the kernel: posix_fadvise(2) is advice, and
pages that are mapped, dirty or being written stay where they are.
"""

import contextlib
import ctypes
import errno
import mmap
import os

from trials.base.failure import naming

PAGE_BYTES = mmap.PAGESIZE
PIECE_BYTES = 1 << 20
# The same on all architectures; glibc of Debian 12 has no name for it.
SYS_CACHESTAT = 451
DROP_PAGE_CACHE = b"1"
LOADS_AT_MOST = 4

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int,
                      ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
MAP_FAILED = ctypes.c_void_p(-1).value


class CachestatRange(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("bytes", ctypes.c_uint64)]


class Cachestat(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in
                ("cached", "dirty", "writeback", "evicted",
                 "recently_evicted")]


@contextlib.contextmanager
def opened(path: str, flags: int = os.O_RDONLY):
    """A descriptor of the file; an OSError within becomes its Failure."""
    with naming(path):
        fd = os.open(path, flags | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)


def page_count(size_bytes: int) -> int:
    return -(-size_bytes // PAGE_BYTES)


def pages_by_cachestat(fd: int, size_bytes: int) -> int | None:
    """Pages of the file that are in memory; None: the kernel can't tell."""
    whole = CachestatRange(0, size_bytes)
    found = Cachestat()
    if libc.syscall(ctypes.c_long(SYS_CACHESTAT), fd, ctypes.byref(whole),
                    ctypes.byref(found), 0) != 0:
        return None
    return found.cached


def may_ask_mincore(fd: int) -> bool:
    """May this process trust mincore(2)?  To a process that neither owns the
    file nor may write it, mincore(2) says that all pages are resident."""
    return (os.geteuid() in (0, os.fstat(fd).st_uid)
            or os.access(f"/proc/self/fd/{fd}", os.W_OK))


def pages_by_mincore(fd: int, size_bytes: int) -> int | None:
    if not may_ask_mincore(fd):
        return None
    address = libc.mmap(None, size_bytes, mmap.PROT_READ, mmap.MAP_SHARED,
                        fd, 0)
    if address == MAP_FAILED:
        return None
    try:
        pages = (ctypes.c_ubyte * page_count(size_bytes))()
        if libc.mincore(address, size_bytes, pages) != 0:
            return None
        # Only the lowest bit of each means something.
        return sum(page & 1 for page in bytes(pages))
    finally:
        libc.munmap(address, size_bytes)


def fraction_of(fd: int, size_bytes: int | None = None) -> float | None:
    if size_bytes is None:
        size_bytes = os.fstat(fd).st_size
    if size_bytes == 0:
        return None
    pages = pages_by_cachestat(fd, size_bytes)
    if pages is None:
        pages = pages_by_mincore(fd, size_bytes)
    if pages is None:
        return None
    return min(1.0, pages / page_count(size_bytes))


def fraction(path: str, size_bytes: int | None = None) -> float | None:
    """The part of the file that is in the page cache, from 0 to 1; None if it
    can't be known, as of an empty file."""
    with opened(path) as fd:
        return fraction_of(fd, size_bytes)


def read_all(fd: int, size_bytes: int | None = None) -> None:
    piece = bytearray(PIECE_BYTES)
    offset = 0
    while size_bytes is None or offset < size_bytes:
        count = os.preadv(fd, [piece], offset)
        if count == 0:
            return
        offset += count


def load(path: str, size_bytes: int | None = None) -> float | None:
    """Bring the whole file into the page cache; returns fraction()."""
    with opened(path) as fd:
        # Read, not only asked for: readahead(2) returns before it is done
        # and ends silently where memory is short.  Again if the kernel has
        # taken some back meanwhile, as one that looks for idle pages does.
        for _ in range(LOADS_AT_MOST):
            if fraction_of(fd, size_bytes) == 1.0:
                break
            read_all(fd, size_bytes)
        return fraction_of(fd, size_bytes)


def evict(path: str, size_bytes: int | None = None) -> float | None:
    """Take the file, or all of the device, out of the page cache; returns
    fraction().

    The pages of a file on tmpfs stay: they are nowhere else."""
    with opened(path) as fd:
        # Dirty pages stay.
        os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        return fraction_of(fd, size_bytes)


def settle(path: str) -> None:
    """Write what is dirty on the file system that path lies on, so that it is
    neither written during a run nor kept from being dropped."""
    with opened(path) as fd:
        if libc.syncfs(fd) != 0:
            raise OSError(ctypes.get_errno(), "")


def drop_caches(root: str = "/") -> str | None:
    """Drop all clean pages of the page cache, of all files.  Returns None, or
    why that can't be done: only root may."""
    try:
        with open(os.path.join(root, "proc/sys/vm/drop_caches"), "wb", 0,
                  opener=lambda path, _: os.open(path, os.O_WRONLY)) as file:
            file.write(DROP_PAGE_CACHE)
    except OSError as error:
        return "no permission" if error.errno in (
            errno.EACCES, errno.EPERM, errno.EROFS) \
            else os.strerror(error.errno)
    return None
