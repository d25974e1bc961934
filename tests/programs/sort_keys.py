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

What is expected makes no bytes of a key that compare as the key does: numpy
reads each key as a number of its own type, and sorts stably by columns of
numbers.  Descending columns are negated.  numpy has no bfloat16, which is the
upper half of a float32.
"""

import argparse
import itertools
import os
import shlex
import subprocess
import sys

import numpy as np

TYPES = ("u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f16 bf16 f32 f64 u16be u32be "
         "u64be u128be i16be i32be i64be i128be f16be bf16be f32be "
         "f64be").split()
NANS = ("", ":nanlast", ":nanfirst")
KINDS = [kind + nans for kind in TYPES
         for nans in (NANS if "f" in kind else NANS[:1])]
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 64, 100)
LARGE_SIZES = (257, 1000, 4095, 4096, 5000, 70000)
COUNTS = (0, 1, 2, 3, 7, 8, 9, 63, 100, 513, 1000, 1999, 4097)
LARGE_COUNTS = (20481, 50000, 131073)
# The most bytes of an input; those of large counts are few.
INPUT_BYTES = 3 << 20
LARGE_INPUT_BYTES = 10 << 20
KEYS_MAX = 8
SLICE_MAX = 20
# It only ends what hangs.
LIMIT_S = 300

# Of floats: the bits of the fraction.
FRACTION_BITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


class Key:
    """OFFSET:LENGTH or OFFSET:TYPE, and maybe :desc."""

    def __init__(self, offset, kind, descending):
        self.offset = offset
        self.kind = kind  # bytes: their number; else one of KINDS
        self.descending = descending
        self.is_bytes = isinstance(kind, int)
        if not self.is_bytes:
            word, _, self.nans = kind.partition(":")
            self.order = ">" if word.endswith("be") else "<"
            self.type = word.removesuffix("be")
            self.letter = self.type.removeprefix("b")[0]
            self.length = length_of(word)

    def option(self):
        """The suffixes in either order."""
        text = f"{self.offset}:{self.kind}"
        if self.descending:
            text += ":desc"
            if self.offset % 2 and not self.is_bytes and self.nans:
                text = text.replace(f":{self.nans}:desc", f":desc:{self.nans}")
        return f"--key={text}"

    def layout(self):
        """Where numpy finds it in a record: [(offset, format)]."""
        if self.is_bytes:
            return [(self.offset, f"({self.kind},)u1")]
        if self.type == "bf16":
            return [(self.offset, f"{self.order}u2")]
        if self.length < 16:
            return [(self.offset, f"{self.order}{self.letter}{self.length}")]
        high, low = (0, 8) if self.order == ">" else (8, 0)
        return [(self.offset + high, f"{self.order}{self.letter}8"),
                (self.offset + low, f"{self.order}u8")]

    def columns(self, fields, descending):
        """Native numbers, which numpy compares as the key is; the first
        weighs most."""
        nans = []
        if self.is_bytes:
            columns = list(fields[0].T)
        elif self.letter != "f":
            columns = [field.astype(field.dtype.newbyteorder("="))
                       for field in fields]
        elif self.nans:
            values = self.floats(fields[0])
            is_nan = np.isnan(values)
            nans = [is_nan == (self.nans == "nanlast")]
            columns = [np.where(is_nan, values.dtype.type(0), values)]
        else:
            columns = self.total_order(fields[0])
        if descending:
            # ~n is -1 - n, of unsigned numbers the greatest one - n.
            columns = [-column if column.dtype.kind == "f" else ~column
                       for column in columns]
        return nans + columns

    def floats(self, field):
        if self.type == "bf16":
            return (field.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return field.astype(f"=f{self.length}")

    def total_order(self, field):
        """IEEE 754's: NaNs with a sign are below all numbers, others above;
        numbers by value, and -0 before 0; NaNs by their payloads."""
        values = self.floats(field)
        bits = np.ascontiguousarray(field).view(
            field.dtype.str.replace("f", "u")).astype(np.uint64)
        negative = (bits >> np.uint64(8 * self.length - 1)).astype(np.int64)
        sign = 1 - 2 * negative
        is_nan = np.isnan(values)
        mantissa = np.uint64((1 << FRACTION_BITS[self.type]) - 1)
        payload = (bits & mantissa).astype(np.int64)
        return [np.where(is_nan, sign, 0),
                np.where(is_nan, values.dtype.type(0), values),
                np.where(values == 0, sign, 0),
                np.where(is_nan, sign * payload, 0)]


def length_of(kind):
    """Bytes of such a number."""
    word = kind.partition(":")[0]
    return int(word.removesuffix("be").lstrip("buif")) // 8


def key_columns(raw, size, keys, reverse):
    """Columns of numbers that compare as the records' keys do; the first
    weighs most."""
    places = [key.layout() for key in keys]
    flat = list(itertools.chain(*places))
    record = np.dtype({"names": [f"f{i}" for i in range(len(flat))],
                       "offsets": [offset for offset, _ in flat],
                       "formats": [form for _, form in flat],
                       "itemsize": size})
    table = raw.reshape(-1).view(record)
    columns, used = [], 0
    for key, place in zip(keys, places):
        fields = [table[f"f{used + i}"] for i in range(len(place))]
        used += len(place)
        columns += key.columns(fields, key.descending != reverse)
    return columns


def expected(raw, size, keys, reverse, unique=False):
    """The records, as uint8 rows, in the order in which they must come out; if
    unique, of those with equal keys only the first."""
    if len(raw) == 0:
        return raw
    columns = key_columns(raw, size, keys, reverse)
    order = np.lexsort(columns[::-1])
    if unique:
        is_first = np.zeros(len(order), bool)
        is_first[0] = True
        for column in columns:
            is_first[1:] |= column[order[1:]] != column[order[:-1]]
        order = order[is_first]
    return raw[order]


# --- inputs -----------------------------------------------------------------

def special_numbers(key):
    """As many bytes as the key has, in rows: corners of its type."""
    bits = 8 * key.length
    if key.letter == "f":
        sign = 1 << (bits - 1)
        one = 1 << FRACTION_BITS[key.type]
        infinity = sign - one
        corners = (0, 1, one - 1, one, sign // 2 - one, sign // 2 - one // 2,
                   infinity - 1, infinity, infinity + 1,
                   infinity + one // 2 - 1, infinity + one // 2, sign - 1)
        numbers = [n | s for n in corners for s in (0, sign)]
    else:
        half = 1 << (bits - 1)
        corners = (0, 1, 2, 255, 256, half - 1, half, half + 1)
        numbers = [n % (1 << bits) for c in corners for n in (c, -c, c - 2)]
    order = "big" if key.order == ">" else "little"
    return np.array([list(n.to_bytes(key.length, order)) for n in numbers],
                    np.uint8)


def any_records(rng, count, size):
    """Uniform bytes; few bits; few bytes; few records; all equal."""
    raw = rng.integers(0, 256, (count, size), np.uint8)
    style = rng.integers(0, 6)
    if style == 1:
        raw &= 0x83
    elif style == 2:
        raw = np.array([0, 0x7f, 0x80, 0xff], np.uint8)[raw % 4]
    elif style == 3 and count:
        raw = raw[rng.integers(0, 1 + count // 20, count)]
    elif style == 4 and count:
        raw[:] = raw[0]
    elif style == 5:
        raw = raw % 95 + 32
    return raw


def small_numbers(rng, count, key):
    """Numbers near 0, most of them very near; also as floats."""
    numbers = np.minimum(rng.zipf(1.3, count), 10 ** 6).astype(np.int64)
    if key.letter != "u":
        numbers *= rng.integers(0, 2, count) * 2 - 1
    if key.letter == "f":
        if key.type == "bf16":
            wide = (numbers / 8).astype(np.float32).view(np.uint32)
            values = (wide >> np.uint32(16)).astype("<u2")
        else:
            with np.errstate(over="ignore"):  # of float16
                values = (numbers / 8).astype(f"<f{key.length}")
        rows = values.view(np.uint8).reshape(count, key.length)
    else:
        low = numbers.astype("<i8").view(np.uint8).reshape(count, 8)
        high = np.where(numbers < 0, 255, 0).astype(np.uint8)
        rows = np.concatenate([low, np.repeat(high[:, None], 8, 1)],
                              1)[:, :key.length]
    return rows[:, ::-1] if key.order == ">" else rows


def put_numbers(rng, raw, key):
    """Into the key's place of some or all records; keys that overlap it get
    what they get."""
    count = len(raw)
    if key.is_bytes or count == 0 or rng.integers(0, 3) == 0:
        return
    place = slice(key.offset, key.offset + key.length)
    if rng.integers(0, 2):
        choice = special_numbers(key)
        rows = choice[rng.integers(0, len(choice), count)]
    else:
        rows = small_numbers(rng, count, key)
    some = rng.random(count) < rng.choice([0.1, 0.9, 1.0])
    raw[some, place] = rows[some]


def any_key(rng, size):
    descending = bool(rng.integers(0, 3) == 0)
    fitting = [kind for kind in KINDS if length_of(kind) <= size]
    if rng.integers(0, 4) == 0:
        offset = int(rng.integers(0, size))
        most = min(SLICE_MAX, size - offset)
        return Key(offset, int(rng.integers(1, most + 1)), descending)
    key = Key(0, str(rng.choice(fitting)), descending)
    key.offset = int(rng.integers(0, size - key.length + 1))
    return key


class Input:
    """Records, and the options that describe them."""

    def __init__(self, rng, size, count, keys, reverse):
        self.size, self.keys, self.reverse = size, keys, reverse
        self.unique = bool(rng.integers(0, 4) == 0)
        raw = any_records(rng, count, size)
        # The first key last, so that no other one overwrites it.
        for key in reversed(keys):
            put_numbers(rng, raw, key)
        if rng.integers(0, 8) == 0:
            raw = np.ascontiguousarray(
                expected(raw, size, keys, bool(rng.integers(0, 2))))
        self.raw = raw

    def options(self):
        return [f"--record-size={self.size}",
                *(key.option() for key in self.keys),
                *(["--reverse"] if self.reverse else []),
                *(["--unique"] if self.unique else [])]

    def expected(self):
        return expected(self.raw, self.size, self.keys, self.reverse,
                        self.unique)


def any_input(rng):
    size = int(rng.choice(SIZES))
    count = int(rng.choice(COUNTS))
    bytes_max = INPUT_BYTES
    dice = rng.integers(0, 40)
    if dice < 10:
        size = int(rng.integers(1, 201))
    elif dice == 10:
        size = int(rng.choice(LARGE_SIZES))
    elif dice <= 12:
        count = int(rng.choice(LARGE_COUNTS))
        bytes_max = LARGE_INPUT_BYTES
    count = min(count, bytes_max // size)
    keys = [any_key(rng, size)
            for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 5, KEYS_MAX]))]
    return Input(rng, size, count, keys, bool(rng.integers(0, 4) == 0))


# --- runs -------------------------------------------------------------------

def any_options(rng):
    """Those that change nothing of the output."""
    options = []
    for choice in (["", "--io=auto", "--io=buffered", "--io=mmap",
                    "--io=direct"],
                   ["", "--splitters=auto", "--splitters=static",
                    "--splitters=sampled"],
                   ["", "--threads=1", "--threads=2", "--threads=3",
                    "--threads=5"]):
        options.append(str(rng.choice(choice)))
    return [option for option in options if option]


def write_parts(rng, raw, names):
    """The records in these files, one after the other; some may be empty."""
    cuts = np.sort(rng.integers(0, len(raw) + 1, len(names) - 1))
    for name, part in zip(names, np.split(raw, cuts)):
        part.tofile(name)


def wrong(names, want):
    """What is wrong with the outputs, or None."""
    found = b""
    for name in names:
        with open(name, "rb") as file:
            found += file.read()
    rows = want.reshape(-1).tobytes()
    if found == rows:
        return None
    if len(found) != len(rows):
        return f"{len(found)} bytes, not {len(rows)}"
    first = next(i for i, (a, b) in enumerate(zip(found, rows)) if a != b)
    return (f"record {first // want.shape[1]} of {len(want)} is "
            "not the expected one")


def call(command):
    """None, or what the command said."""
    done = subprocess.run(command, capture_output=True, text=True,
                          timeout=LIMIT_S, stdin=subprocess.DEVNULL,
                          check=False)
    if done.returncode == 0 and done.stderr == "":
        return None
    return f"status {done.returncode}: {done.stderr[:400].strip()}"


def remove(names):
    for name in names:
        if os.path.exists(name):
            os.unlink(name)


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
        why = call(command) or wrong(outs, want)
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


def end_all(ranks):
    for rank in ranks:
        if rank.poll() is None:
            rank.kill()
        rank.wait()


def run_ranks(commands):
    """All at once; None, or what the first of them said that failed."""
    environment = {name: value for name, value in os.environ.items()
                   if name != "BLINK_KEY"}
    ranks, said = [], []
    try:
        for command in commands:
            ranks.append(subprocess.Popen(
                command, stdin=subprocess.DEVNULL, env=environment,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        for number, rank in enumerate(ranks):
            error = rank.communicate(timeout=LIMIT_S)[1]
            if rank.returncode or error:
                said.append(f"rank {number}: status {rank.returncode}: "
                            f"{error[:300].strip()}")
    finally:
        end_all(ranks)
    return "; ".join(said) or None


def run_cluster(context, rng, given, job):
    count = int(rng.choice([2, 4]))
    commands = rank_commands(context, rng, given, count, job)
    ins = [f"in.{rank}" for rank in range(count)]
    outs = [f"out.{rank}" for rank in range(count)]
    write_parts(rng, given.raw, ins)
    why = run_ranks(commands) or wrong(outs, given.expected())
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
    said = run_ranks(commands) or ""
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


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", type=int)
    parser.add_argument("what", choices=TRIES)
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("kernels", type=lambda text: text.split(","))
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args()


def main():
    context = parse_arguments()
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
