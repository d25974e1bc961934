#!/usr/bin/python3
"""Write records with typed keys to a file.

usage: make_numbers.py NAME COUNT FILE

floats: records of 8 bytes, each a double from 0 to 1.  All others are records
of 16 bytes: a 64-bit number, and the record's own.  uniform: any number; small:
below 256; million: below a million; zipf: few of them often; bursts: times in
nanoseconds with a pause after one of a thousand, shuffled; sorted: in order.
"""

import sys

import numpy as np


def numbers(name, count):
    rng = np.random.default_rng(1)
    if name == "floats":
        return rng.random(count)
    if name == "small":
        return rng.integers(0, 256, count)
    if name == "million":
        return rng.integers(0, 10**6, count)
    if name == "zipf":
        return np.minimum(rng.zipf(1.3, count), 2**40)
    if name in ("bursts", "sorted"):
        pause = rng.random(count) < 0.001
        steps = np.where(pause, rng.integers(10**6, 10**9, count),
                         rng.integers(0, 50, count))
        times = 1_700_000_000_000_000_000 + np.cumsum(steps)
        return times if name == "sorted" else rng.permutation(times)
    return rng.integers(0, 2**64, count, np.uint64)


def main(name, count, path):
    records = numbers(name, int(count))
    if name != "floats":
        records = np.column_stack([records.astype("<u8"), np.arange(
            len(records), dtype="<u8")])
    records.tofile(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
