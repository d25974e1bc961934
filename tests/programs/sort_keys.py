#!/usr/bin/env python3
"""blinksort against numpy: records of any shape by any list of keys.

usage: sort_keys.py [--only=N] WHAT COUNT SEED KERNELS COMMAND...

WHAT:

  types    each type, byte order and direction, over all special values
  random   COUNT inputs by key lists drawn at random, each with all KERNELS
           (divided by commas)
  ranks    COUNT inputs over 2 or 4 ranks on 127.0.0.2 and following
  differ   two ranks whose key lists differ

types and differ do not use COUNT.

COMMAND is blinksort.  Files are made in the current folder.  All is drawn from
SEED and the number of the input: --only=N repeats one of them.

What is expected is what key_reference.py makes of the input.
"""

import itertools
import os
import shlex
import sys

import numpy as np

from key_reference import KINDS, Input, Key, any_input, special_numbers
from sort_runs import (any_options, complaint, parse_arguments, remove, run,
                       run_ranks, write_parts, wrong)


# --- runs -------------------------------------------------------------------

def run_one(context, rng, given, kernels):
    """On one machine, from several files and into several."""
    want = given.expected()
    for kernel in kernels:
        ins = [f"in.{i}" for i in range(rng.choice([1, 1, 2, 4]))]
        outs = [f"out.{i}" for i in range(rng.choice([1, 1, 2, 3]))]
        command = [*context.command, *ins,
                   *itertools.chain(*(("-o", out) for out in outs)),
                   *given.options(), f"--kernel={kernel}", *any_options(rng)]
        write_parts(rng, given.raw, ins)
        why = complaint([run(command)]) or wrong(outs, want)
        if why:
            return why, shlex.join(command)
        remove(ins + outs)
    return None


def rank_commands(context, rng, given, count, job):
    """One for each rank: it reads in.RANK and writes out.RANK."""
    common = [f"--nodes=127.0.0.[2-{count + 1}]", f"--job={job}",
              "--deadline=120", *given.options(), *any_options(rng)]
    common += [option for option in
               (str(rng.choice(["", "--by-reference=auto", "--plain"])),
                str(rng.choice(["", "--transport=udp"]))) if option]
    return [[*context.command, f"--rank={rank}", *common,
             f"--kernel={rng.choice(context.kernels)}", f"in.{rank}",
             "-o", f"out.{rank}"] for rank in range(count)]


def run_cluster(context, rng, given, job):
    count = int(rng.choice([2, 4]))
    commands = rank_commands(context, rng, given, count, job)
    ins = [f"in.{rank}" for rank in range(count)]
    outs = [f"out.{rank}" for rank in range(count)]
    write_parts(rng, given.raw, ins)
    why = complaint(run_ranks(commands)) or wrong(outs, given.expected())
    remove(ins + outs)
    return (why, shlex.join(commands[0])) if why else None


# --- the three kinds of input -------------------------------------------------

def type_input(rng, key, before, size):
    """All corners of one type, in many records, behind the keys before."""
    corners = special_numbers(key)
    # Records of two bytes may be counted, from 65536 of them on.
    copies = 40 if size > 2 else 3000
    given = Input(rng, size, 0, [*before, key], False)
    given.raw = rng.integers(0, 256, (copies * len(corners), size), np.uint8)
    for other in before:
        given.raw[:, other.offset:other.offset + other.kind] &= 1
    given.raw[:, key.offset:key.offset + key.length] = np.tile(
        corners, (copies, 1))
    given.raw = given.raw[rng.permutation(len(given.raw))]
    return given


def try_type(context, number):
    """In the middle of a record; as all of one; and behind a slice that has
    most of the key's first eight bytes."""
    rng = np.random.default_rng([context.seed, 1, number])
    kind, descending = KINDS[number // 2], bool(number % 2)
    alone = Key(0, kind, descending)
    inner = Key(3, kind, descending)
    for key, before, size in ((inner, [], 32), (alone, [], alone.length),
                              (inner, [Key(24, 5, False)], 32)):
        failed = run_one(context, rng, type_input(rng, key, before, size),
                         context.kernels)
        if failed:
            return failed
    return None


def try_random(context, number):
    rng = np.random.default_rng([context.seed, 2, number])
    given = any_input(rng)
    return run_one(context, rng, given, rng.permutation(context.kernels))


def try_ranks(context, number):
    rng = np.random.default_rng([context.seed, 3, number])
    job = f"keys.{os.getpid()}.{number}"
    return run_cluster(context, rng, any_input(rng), job)


# Of each pair, the first rank's options and the second one's: do they agree?
PAIRS = (
    ("--key=0:u32", "--key=0:u32:desc", False),
    ("--key=0:u32", "--key=0:u32 --reverse", False),
    ("--key=0:u32", "--key=0:u32be", False),
    ("--key=0:f64", "--key=0:f64be", False),
    ("--key=0:u32", "--key=0:i32", False),
    ("--key=0:i32", "--key=0:f32", False),
    ("--key=0:f32", "--key=0:f32:nanlast", False),
    ("--key=0:f16:nanfirst", "--key=0:f16:nanlast", False),
    ("--key=0:f16", "--key=0:bf16", False),
    ("--key=0:f64:nanlast:desc", "--key=0:f64:nanlast --reverse", True),
    ("--key=0:u32", "--key=1:u32", False),
    ("--key=0:u32", "--key=0:u64", False),
    ("--key=0:u32", "--key=0:u32 --key=9:1", False),
    ("--key=9:1 --key=0:u32", "--key=0:u32 --key=9:1", False),
    ("--key=0:4", "--key=0:4:desc", False),
    ("--key=0:4 --key=4:4", "--key=0:u64be", True),
    ("--key=0:f64:desc --key=9:1 --reverse", "--key=0:f64 --key=9:u8:desc",
     True),
)


def try_differ(context, number):
    """Neither rank writes an output, and both name the option: one that has
    seen it itself, and one that may have been told."""
    first, second, agree = PAIRS[number]
    rng = np.random.default_rng([context.seed, 4, number])
    raw = rng.integers(0, 256, (100, 16), np.uint8)
    write_parts(rng, raw, ["in.0", "in.1"])
    commands = [[*context.command, f"--rank={rank}", "--deadline=120",
                 "--nodes=127.0.0.[2-3]", f"--job=differ.{os.getpid()}",
                 "--record-size=16", *options.split(), f"in.{rank}", "-o",
                 f"out.{rank}"] for rank, options in enumerate((first, second))]
    said = complaint(run_ranks(commands)) or ""
    outs = [name for name in ("out.0", "out.1") if os.path.exists(name)]
    remove(["in.0", "in.1", *outs])
    if agree:
        good = said == "" and len(outs) == 2
    else:
        good = (outs == [] and "status 2:" in said and
                said.count("has another --key than rank") == 2)
    return None if good else (said or "they agree", f"{first} and {second}")


TRIES = {"types": try_type, "random": try_random, "ranks": try_ranks,
         "differ": try_differ}
COUNTS_MAX = {"types": 2 * len(KINDS), "differ": len(PAIRS)}


def main():
    context = parse_arguments(TRIES)
    count = COUNTS_MAX.get(context.what, context.count)
    numbers = range(count) if context.only is None else [context.only]
    for number in numbers:
        failed = TRIES[context.what](context, number)
        if failed:
            why, command = failed
            again = [*sys.argv[:1], f"--only={number}", *sys.argv[1:]]
            print(f"  {why}\n  of: {command}\n  SEED={context.seed}, to "
                  f"repeat: {shlex.join(again)}", file=sys.stderr)
            sys.exit(1)


if __name__ == "__main__":
    main()
