#!/usr/bin/env python3
"""What blinksort --key=random and --numbers write, by another program.

USAGE: numbers_reference.py RECORD_SIZE KEYS NUMBERS UNIQUE IN... >OUT

KEYS are slices OFFSET:LENGTH and random:SEED, with commas between; NUMBERS is
the bytes of a number, or 0: the records are written; UNIQUE is no, first or
last.

As a module it has the permutation, for test_widening.py.
"""

import sys

MASK = (1 << 64) - 1


def finalize(bits):
    """The finalizer of SplitMix64."""
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & MASK
    return bits ^ bits >> 31


def mixer(seed):
    """The permutation of 64-bit numbers that this seed stands for."""
    keys = [finalize(seed + i * 0x9E3779B97F4A7C15 & MASK) for i in (1, 2, 3)]

    def mix(number):
        return finalize(finalize(number ^ keys[0]) ^ keys[1]) ^ keys[2]
    return mix


def key_function(keys, records):
    """Of a record's number: what it is sorted by."""
    parts = []
    for key in keys.split(","):
        left, right = key.split(":")
        if left == "random":
            parts.append(mixer(int(right)))
            continue
        begin, end = int(left), int(left) + int(right)
        parts.append(lambda i, begin=begin, end=end: records[i][begin:end])
    return lambda i: tuple(part(i) for part in parts)


def main(size, keys, numbers, unique, *paths):
    """Sort, and write."""
    size, numbers = int(size), int(numbers)
    data = b"".join(open(path, "rb").read() for path in paths)
    records = [data[at:at + size] for at in range(0, len(data), size)]
    key = key_function(keys, records)
    order = sorted(range(len(records)), key=key)
    if unique != "no":
        kept = {}
        for i in order:
            if unique == "last" or key(i) not in kept:
                kept[key(i)] = i
        order = list(kept.values())
    write = sys.stdout.buffer.write
    write(b"".join(i.to_bytes(numbers, "little") if numbers else records[i]
                   for i in order))


if __name__ == "__main__":
    main(*sys.argv[1:])
