#!/usr/bin/env python3
"""blinksort --merge against numpy: sorted files of any records, into one.

usage: sort_merges.py [--only=N] WHAT COUNT SEED COMMAND...

WHAT:

  merge     COUNT times 1 to 20 sorted files
  disorder  COUNT times such files, of which some have records that are out of
            order: the first of these must be named

COMMAND is blinksort.  Files are made in the current folder.  All is drawn from
SEED and the number of the case: --only=N repeats one of them.  Inputs, keys and
what is expected are those of key_reference.py.
"""

import itertools
import json
import os
import shlex
import subprocess
import sys

import numpy as np

import key_reference
import sort_runs

FILES = (1, 1, 2, 2, 3, 5, 8, 20)


def sorted_parts(rng, given, count):
    """The input in so many parts, each sorted; some may be empty."""
    return [np.ascontiguousarray(key_reference.expected(
        part, given.size, given.keys, given.reverse))
        for part in sort_runs.any_parts(rng, given.raw, count)]


def any_options(rng, size):
    """Those that change nothing of the output."""
    options = sort_runs.any_options(rng)
    little = "16M" if 4 <= size < 50000 else "40M"
    options += [[], [], [f"-S{little}"], [f"-S{little}", "--batch-size=2"],
                ["--batch-size=3"],
                [f"-S{little}", "--batch-size=4", "--compress=lz4"],
                ["--disk-rates=150M:150M:150M:150"]][rng.integers(0, 7)]
    return options


def run(context, given, parts, outs, options):
    """The process when it has ended, and its command."""
    names = [f"in.{i}" for i in range(len(parts))]
    for name, part in zip(names, parts):
        part.tofile(name)
    command = [*context.command, "-m", *names,
               *itertools.chain(*(("-o", out) for out in outs)),
               *given.options(), *options]
    done = subprocess.run(command, capture_output=True, text=True,
                          timeout=sort_runs.LIMIT_S, check=False,
                          stdin=subprocess.DEVNULL)
    return done, command


def try_merge(context, rng):
    given = key_reference.any_input(rng)
    parts = sorted_parts(rng, given, rng.choice(FILES))
    # How much the parts of an output without duplicates have is not known.
    outs = [f"out.{i}" for i in
            range(1 if given.unique else rng.choice([1, 1, 2, 3]))]
    done, command = run(context, given, parts, outs,
                        any_options(rng, given.size))
    given.raw = np.concatenate(parts)
    if done.returncode or done.stderr:
        why = f"status {done.returncode}: {done.stderr[:400].strip()}"
    else:
        why = sort_runs.wrong(outs, given.expected())
    return why, command


def disturb(rng, part, block):
    """Exchange two records at a place of any kind; often those on both sides of
    a border of blocks, which are in order then, each by itself."""
    count = len(part)
    if count < 2:
        return
    border = block * int(rng.integers(1, max(2, count // block + 1)))
    place = int(rng.choice([1, count - 1, border, border, border + 1,
                            rng.integers(0, count)]))
    place = min(max(place, 1), count - 1)
    other = int(rng.choice([place - 1, place - 1, 0, rng.integers(0, count)]))
    part[[place, other]] = part[[other, place]]


def try_disorder(context, rng):
    given = key_reference.any_input(rng)
    parts = sorted_parts(rng, given, rng.choice(FILES))
    options = any_options(rng, given.size)
    done, command = run(context, given, parts, ["out"], [*options, "--json"])
    if done.returncode:
        return f"status {done.returncode}: {done.stderr[:400]}", command
    block = json.loads(done.stdout)["external"]["block_bytes"] // given.size
    for number in rng.integers(0, len(parts), rng.integers(1, 4)):
        disturb(rng, parts[number], block)
    found = [(f"in.{i}", key_reference.first_disorder(
        part, given.size, given.keys, given.reverse))
             for i, part in enumerate(parts)]
    found = [(name, record) for name, record in found if record is not None]
    if not found:
        return None, None
    os.unlink("out")
    done, command = run(context, given, parts, ["out"], options)
    name, record = found[0]
    want = (f"blinksort: {name}: record {record} (from 0) belongs before the "
            "one before it: -m needs sorted inputs\n")
    why = None
    if done.returncode != 1 or done.stderr != want or done.stdout:
        why = (f"status {done.returncode}, '{done.stderr[:400]}', not "
               f"'{want}'")
    elif os.path.exists("out"):
        why = "there is an output"
    return why, command


KINDS = {"merge": (1, try_merge), "disorder": (2, try_disorder)}


def main():
    context = sort_runs.parse_arguments(KINDS, has_kernels=False)
    kind, try_one = KINDS[context.what]
    numbers = range(context.count)
    if context.only is not None:
        numbers = [context.only]
    for number in numbers:
        rng = np.random.default_rng([context.seed, kind, number])
        why, command = try_one(context, rng)
        if why:
            sys.exit(f"{context.what} {number} of seed {context.seed}: {why}\n"
                     f"{shlex.join(command)}")
        sort_runs.remove([name for name in os.listdir()
                          if name.startswith(("in.", "out"))])


if __name__ == "__main__":
    main()
