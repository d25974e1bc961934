#!/usr/bin/python3
"""Pass standard input on to standard output, at a limited rate.

USAGE: throttle.py BYTES_PER_S
"""

import os
import sys
import time

# What a pipe holds.
PIECE_BYTES = 1 << 16


def main(rate):
    passed_bytes, begin = 0, time.monotonic()
    while True:
        piece = os.read(0, PIECE_BYTES)
        if not piece:
            return
        passed_bytes += len(piece)
        ahead_s = passed_bytes / rate - (time.monotonic() - begin)
        if ahead_s > 0:
            time.sleep(ahead_s)
        while piece:
            piece = piece[os.write(1, piece):]


if __name__ == "__main__":
    main(float(sys.argv[1]))
