"""Where the bytes of a file lie on its disk: FIEMAP.

Offsets are those of the block device that the file system is on.  On a rotating
disk low ones are at the rim, where a turn passes the most bytes.
"""

import array
import errno
import fcntl
import os
import struct
from dataclasses import dataclass

FS_IOC_FIEMAP = 0xC020660B
FIEMAP_FLAG_SYNC = 1
# Flags of an extent whose place is not known, or not that of the bytes
# themselves.
UNPLACED = 0x2 | 0x4 | 0x8 | 0x100 | 0x200
LAST = 0x1

HEAD = struct.Struct("=QQIIII")  # start length flags mapped room reserved
EXTENT = struct.Struct("=QQQQQIIII")  # logical physical length ... flags
EXTENTS_A_CALL = 512


@dataclass(frozen=True)
class Extent:
    logical_bytes: int
    physical_bytes: int | None
    length_bytes: int


class Unknown(Exception):
    """The file system does not tell; the text is why."""


def of_file(path: str) -> list[Extent]:
    """The file's extents in its order; raises OSError, or Unknown."""
    extents = []
    with open(path, "rb") as file:
        start = 0
        while True:
            found, last = _map(file.fileno(), start)
            extents += found
            if last or not found:
                return extents
            start = found[-1].logical_bytes + found[-1].length_bytes


def _map(descriptor, start):
    room = array.array("B", bytes(HEAD.size + EXTENT.size * EXTENTS_A_CALL))
    HEAD.pack_into(room, 0, start, 2**64 - 1 - start, FIEMAP_FLAG_SYNC, 0,
                   EXTENTS_A_CALL, 0)
    try:
        fcntl.ioctl(descriptor, FS_IOC_FIEMAP, room)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL):
            raise Unknown("the file system does not tell where its files "
                          f"lie ({os.strerror(error.errno)})") from None
        raise
    count = HEAD.unpack_from(room, 0)[3]
    extents, last = [], False
    for i in range(count):
        logical, physical, length, _, _, flags, _, _, _ = EXTENT.unpack_from(
            room, HEAD.size + EXTENT.size * i)
        placed = not flags & UNPLACED
        extents.append(Extent(logical, physical if placed else None, length))
        last = bool(flags & LAST)
    return extents, last
