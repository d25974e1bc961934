"""HdrHistogram's encoding, version 2, of a histogram of whole numbers.

Values fall into buckets of doubling width, each cut into the same number of
parts, so that a value is known to a number of significant digits.  The counts
up to the last one that is not 0 are numbers of variable length (LEB128, of the
ZigZag form); one that is negative stands for so many zeros.  A head comes
before them, and all of it is compressed by zlib.

Source: org.HdrHistogram.AbstractHistogram of HdrHistogram 2.1, by Gil Tene.
"""

import base64
import math
import struct
import zlib

_COOKIE, _COMPRESSED_COOKIE = 0x1c849303 | 0x10, 0x1c849304 | 0x10
_LOWEST = 1
# Cookie, bytes of counts, offset of normalising, digits, lowest and highest
# value, ratio of conversion
_HEAD = struct.Struct(">iiiiqqd")
_MASK = 2**64 - 1


def encode(values, digits: int, highest: int) -> str:
    """The histogram as base64 text.  Values are from 0 to `highest`, which is
    what a reader makes room for; `digits` from 1 to 5."""
    counts = {}
    for value in values:
        at = index(value, digits)
        counts[at] = counts.get(at, 0) + 1
    body = bytearray()
    at = 0
    for place in sorted(counts):
        if place > at:
            body += _number(at - place)
        body += _number(counts[place])
        at = place + 1
    # Readers of Java ask for twice the lowest at least.
    head = _HEAD.pack(_COOKIE, len(body), 0, digits, _LOWEST,
                      max(highest, 2 * _LOWEST), 1.0)
    packed = zlib.compress(head + body)
    return base64.b64encode(struct.pack(
        ">ii", _COMPRESSED_COOKIE, len(packed)) + packed).decode()


def index(value: int, digits: int) -> int:
    """The index of the count that a value adds to.  The first bucket has all
    its parts; the lower half of any other would be in the one before."""
    magnitude = math.ceil(math.log2(2 * 10**digits))
    half = 2**(magnitude - 1)
    bucket = max(0, value.bit_length() - magnitude)
    return (bucket + 1) * half + (value >> bucket) - half


def _number(signed: int) -> bytes:
    """Seven bits a byte, the lowest first; a ninth byte has all its eight."""
    left = (signed << 1 ^ signed >> 63) & _MASK
    found = bytearray()
    while left > 0x7f and len(found) < 8:
        found.append(left & 0x7f | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)
