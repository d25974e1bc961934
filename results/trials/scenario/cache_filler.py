"""Other data on the same disk, to be read in place of what a drive's cache has.

Random bytes in a file, since drives may compress; of a device, whatever stands
behind the records.  Read with O_DIRECT, so that each byte comes from the drive
and not from the page cache.
"""

import contextlib
import errno
import mmap
import os

from trials.base.failure import FILE, Failure
from trials.scenario import inputs

PIECE_BYTES = 1 << 20


class CacheFiller:
    """A file of at least size_bytes, made when it is first needed."""

    offset_bytes = 0

    def __init__(self, path: str, size_bytes: int):
        self.path = path
        self.pieces = -(-size_bytes // PIECE_BYTES)

    @property
    def size_bytes(self) -> int:
        return self.pieces * PIECE_BYTES

    def make(self) -> None:
        """Write the file past the page cache, and flush it.  A file of this
        size that exists already is used: only its size matters."""
        with contextlib.suppress(OSError):
            if os.path.getsize(self.path) == self.size_bytes:
                return
        try:
            self._write()
        except OSError as error:
            self.remove()
            raise Failure(self.path, why(error), FILE) from None

    def _write(self) -> None:
        with mmap.mmap(-1, PIECE_BYTES) as piece:
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                         | os.O_DIRECT | os.O_CLOEXEC, 0o600)
            try:
                for _ in range(self.pieces):
                    piece[:] = os.urandom(PIECE_BYTES)
                    if os.write(fd, piece) != PIECE_BYTES:
                        raise OSError(errno.ENOSPC, "")
                os.fsync(fd)
            finally:
                os.close(fd)

    def read(self) -> int:
        """Read all of it with O_DIRECT; returns how many bytes came."""
        total_bytes = 0
        try:
            fd = os.open(self.path,
                         os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
            try:
                with mmap.mmap(-1, PIECE_BYTES) as piece:
                    while total_bytes < self.size_bytes:
                        count = os.preadv(fd, [piece],
                                          self.offset_bytes + total_bytes)
                        if count == 0:
                            break
                        total_bytes += count
            finally:
                os.close(fd)
        except OSError as error:
            raise Failure(self.path, why(error), FILE) from None
        return total_bytes

    def remove(self) -> None:
        inputs.remove(self.path)


class DeviceFiller(CacheFiller):
    """What stands behind so many first bytes of a device, and stays as it is.
    There may be less of it than size_bytes."""

    def __init__(self, path: str, size_bytes: int, device_bytes: int):
        super().__init__(path, size_bytes)
        # O_DIRECT needs whole blocks.
        self.offset_bytes = -(-device_bytes // PIECE_BYTES) * PIECE_BYTES

    def make(self) -> None:
        """The device is there already."""

    def remove(self) -> None:
        """The device stays."""


def why(error: OSError) -> str:
    if error.errno == errno.EINVAL:
        return "the file system has no O_DIRECT"
    return os.strerror(error.errno)
