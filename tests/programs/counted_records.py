#!/usr/bin/python3
"""Sort standard input, of 8-bit or 16-bit little-endian numbers, to standard
output: what blinksort counts, by a plain sort.

USAGE: counted_records.py FORMAT [reverse] [unique] <INPUT >OUTPUT

FORMAT is struct(3)'s of Python: B, b, H or h.
"""

import struct
import sys
from collections import Counter


def main():
    kind, options = sys.argv[1], sys.argv[2:]
    counts = Counter(value for (value,) in struct.iter_unpack(
        f"<{kind}", sys.stdin.buffer.read()))
    for value in sorted(counts, reverse="reverse" in options):
        times = 1 if "unique" in options else counts[value]
        sys.stdout.buffer.write(struct.pack(f"<{kind}", value) * times)


main()
