#!/usr/bin/env python3
"""blinksort's options all together against numpy, in cases drawn at random.

usage: sort_options.py [--only=N] COUNT SEED KERNELS COMMAND...

A case has records of 1 to 5000 bytes, one to eight keys of any type, up to five
inputs, some without records, and any of --reverse, --unique, --head, --numbers,
--header and a random key.  It goes from files, pipes, sorted files that are
merged, or over ranks, into files, a pipe, or one file of all ranks; in memory,
or in little more than the least memory that blinksort says it needs.

What is expected follows from key_reference.py and numbers_reference.py.
REFUSALS has the combinations that are documented as refused: any other refusal
is a failure, and so is a sort that was to be refused.

COMMAND is blinksort, and KERNELS are those of this CPU, divided by commas.
Files are made in the current folder.  All is drawn from SEED and the number of
the case: --only=N repeats one of them, and leaves its files if it fails.
"""

import collections
import contextlib
import json
import math
import os
import re
import shlex
import subprocess
import sys
import zlib

import numpy as np

import key_reference
import sort_runs
from numbers_reference import mixer

WAYS = ("files", "pipes", "merge", "ranks")
WAY_SHARES = (0.42, 0.22, 0.22, 0.14)
MIB = 1 << 20
# Of records: enough that little memory does not hold them, as each takes 16
# bytes or more beside its own.
LARGE_BYTES = 14 * MIB
LARGE_COUNT = 500000
SMALL_BYTES = 3 * MIB
SMALL_COUNT = 40000
# Ranks have the memory of all of them together.
RANKS_BYTES = 36 * MIB
HEADERS = (1, 10, 128, 4096, 5000, 70000)
OUTPUTS = (1, 1, 1, 1, 2, 3, 5)
HEAD_MAX = (1 << 63) - 1
# How many cases of those that are to be refused are drawn again.
REDRAWN = 0.85


def chance(rng, part):
    return bool(rng.random() < part)


def any_size(rng):
    most = rng.choice([16, 200, 5000], p=[0.5, 0.35, 0.15])
    return int(rng.integers(1, most + 1))


class Case:
    """What is sorted, how, and what must come out."""

    def __init__(self, rng):
        self.way = str(rng.choice(WAYS, p=WAY_SHARES))
        self.is_tight = chance(rng, 0.25)
        self.ranks = int(rng.choice([2, 4])) if self.way == "ranks" else 0
        self.merges = self.way == "merge" or (
            self.ranks > 0 and chance(rng, 0.02))
        self.draw_keys(rng)
        self.draw_selection(rng)
        self.draw_inputs(rng)
        self.draw_outputs(rng)
        self.draw_records(rng)
        self.draw_tuning(rng)

    def draw_keys(self, rng):
        self.size = any_size(rng)
        self.reverse = chance(rng, 0.25)
        self.seed = int(rng.integers(0, 1 << 64, dtype=np.uint64)) \
            if chance(rng, 0.15) else None
        most = key_reference.KEYS_MAX - (self.seed is not None)
        count = min(most, int(rng.choice([0, 1, 1, 1, 2, 2, 3, 5, 8])))
        self.keys = [key_reference.any_key(rng, self.size)
                     for _ in range(count)]
        self.key_options = [key.option() for key in self.keys]
        if self.seed is not None:
            place = count - (count > 0 and chance(rng, 0.1))
            self.key_options.insert(place, f"--key=random:{self.seed}")
            self.key_is_behind = place < count
        else:
            self.key_is_behind = False
            self.keys = self.keys or [
                key_reference.Key(0, min(10, self.size), False)]

    def draw_selection(self, rng):
        self.unique = [None, "first", "last"][rng.choice(3, p=[.6, .25, .15])]
        self.has_head = chance(rng, 0.3)
        self.number_bytes = int(rng.choice([4, 8])) if chance(rng, 0.15) else 0
        self.header_bytes = int(rng.choice(HEADERS)) if chance(rng, 0.25) else 0
        self.drops_header = self.header_bytes > 0 and chance(rng, 0.3)
        self.unique_option = None
        if self.unique == "first":
            self.unique_option = str(rng.choice(
                ["-u", "--unique", "--unique=first"]))
        elif self.unique:
            self.unique_option = "--unique=last"

    def draw_inputs(self, rng):
        if self.ranks:
            self.is_shared = chance(rng, 0.2)
            each = int(rng.choice([1, 1, 2]))
            count = each if self.is_shared else each * self.ranks
        else:
            self.is_shared = False
            count = int(rng.integers(1, 6))
        self.ins = [f"in.{i}" for i in range(count)]
        self.pipes = {}  # the word of each that is one, or None: any
        if self.way == "pipes" or (self.way == "merge" and chance(rng, 0.04)):
            first = int(rng.integers(0, count))
            self.pipes = {i: None for i in range(count)
                          if i == first or chance(rng, 0.4)}
            if chance(rng, 0.6):
                self.pipes[first] = "-"

    def draw_outputs(self, rng):
        self.writes_stdout = self.way in ("pipes", "merge") and chance(rng, 0.4)
        self.files_per_rank = self.gathered = 0
        if self.ranks and chance(rng, 0.4):
            self.gathered = int(rng.choice([1, 1, 2]))
            self.outs = [f"out.{i}" for i in range(self.gathered)]
        elif self.ranks:
            self.files_per_rank = int(rng.choice([1, 1, 1, 2]))
            self.outs = [f"out.{i}" for i in
                         range(self.ranks * self.files_per_rank)]
        elif self.writes_stdout:
            self.outs = ["-", "out.1"] if chance(rng, 0.03) else ["-"]
        else:
            self.outs = [f"out.{i}" for i in range(rng.choice(OUTPUTS))]
            if chance(rng, 0.05) and 0 not in self.pipes:
                self.outs[0] = "in.0"
        self.report = [None, None, "--checksum", "--json"][rng.integers(0, 4)]

    def draw_records(self, rng):
        if not self.is_tight:
            most = min(SMALL_COUNT, SMALL_BYTES // self.size)
            count = int((most + 1) ** rng.random()) - chance(rng, 0.1)
        elif self.ranks:
            count = min(LARGE_COUNT, RANKS_BYTES // self.size)
        else:
            count = min(LARGE_COUNT, LARGE_BYTES // self.size)
        self.head = None
        if self.has_head:
            self.head = int(rng.choice([
                1, rng.integers(1, 100), rng.integers(1, count + 2),
                count // 2 + 1, count + 10, HEAD_MAX]))
        raw = key_reference.keyed_records(rng, self.size, count, self.keys)
        self.parts = sort_runs.any_parts(rng, raw, len(self.ins))
        self.headers = [rng.bytes(self.header_bytes) for _ in self.ins]
        self.disorder = None
        if self.merges and self.keys:
            self.sort_parts(rng)
        elif self.keys and chance(rng, 0.3):
            self.sort_some(rng)

    def sort_parts(self, rng):
        """As -m needs them; a few have a record in the wrong place."""
        shape = (self.size, self.keys, self.reverse)
        self.parts = [np.ascontiguousarray(key_reference.expected(part, *shape))
                      for part in self.parts]
        longest = max(self.parts, key=len)
        if len(longest) > 1 and chance(rng, 0.12):
            places = rng.integers(0, len(longest), 2)
            longest[places] = longest[places[::-1]]
        found = [key_reference.first_disorder(part, *shape)
                 for part in self.parts]
        self.disorder = next(
            (f"{name}: record {record} " for name, record
             in zip(self.ins, found) if record is not None), None)

    def sort_some(self, rng):
        """Of each part a stretch, which may be found to be in order."""
        for part in self.parts:
            ends = rng.integers(0, len(part), 2, endpoint=True)
            begin, end = sorted(ends) if chance(rng, 0.7) else (0, len(part))
            part[begin:end] = key_reference.expected(
                part[begin:end], self.size, self.keys, self.reverse)

    def draw_tuning(self, rng):
        """What changes nothing of the output."""
        self.tuning = sort_runs.any_options(rng)
        if chance(rng, 0.2):
            self.tuning.append("--compress=" + str(rng.choice(
                ["lz4", "zstd", "zstd:3", "auto"])))
        self.spare_memory = float(rng.choice([1, 1, 1.1, 1.5]))
        if self.is_tight and not self.ranks and chance(rng, 0.3):
            self.tuning.append("--batch-size=2")
        elif self.is_tight and chance(rng, 0.15):
            self.tuning.append("--disk-rates=150M:150M:150M:150")
        if self.ranks:
            self.tuning += [option for option in (
                str(rng.choice(["", "--by-reference=auto", "--plain"])),
                str(rng.choice(["", "--transport=udp"]))) if option]
            if chance(rng, 0.02):
                self.tuning.append("--batch-size=2")
        self.kernel = rng.random()

    def is_widened(self):
        return self.number_bytes > 0 or self.seed is not None

    def is_beyond_memory(self):
        """None: it depends on the memory."""
        if (self.is_widened() or self.merges or self.pipes
                or self.writes_stdout):
            return True
        if self.is_shared and sum(map(len, self.parts)):
            return True
        return None if self.is_tight else False

    def options(self, kernels):
        options = [f"--record-size={self.size}", *self.key_options,
                   f"--kernel={kernels[int(self.kernel * len(kernels))]}",
                   *self.tuning]
        if self.reverse:
            options.append("--reverse")
        if self.merges:
            options.append("-m")
        if self.unique_option:
            options.append(self.unique_option)
        if self.head:
            options.append(f"--head={self.head}")
        if self.number_bytes:
            options.append(f"--numbers=u{8 * self.number_bytes}")
        if self.header_bytes:
            options.append(f"--header={self.header_bytes}"
                           f"{':drop' if self.drops_header else ''}")
        if self.report:
            options.append(self.report)
        return options

    def contents(self):
        """Of each input."""
        return [header + part.tobytes()
                for header, part in zip(self.headers, self.parts)]

    def want(self):
        """What must be written, in rows."""
        raw = np.concatenate(self.parts)
        columns = []
        if self.keys:
            columns = key_reference.key_columns(raw, self.size, self.keys,
                                                self.reverse)
        if self.seed is not None:
            columns.append(mixer(self.seed)(
                np.arange(len(raw), dtype=np.uint64)))
        order = key_reference.key_order(columns, self.unique)
        self.dropped = len(raw) - len(order)
        order = order[:self.head]
        if not self.number_bytes:
            return raw[order]
        return order.astype(f"<u{self.number_bytes}").view(np.uint8).reshape(
            len(order), self.number_bytes)

    def header_of(self, number):
        """What this output begins with: the first input's; where ranks have
        inputs of their own, that of the first rank that writes this output."""
        if self.drops_header:
            return b""
        if self.ranks == 0 or self.is_shared:
            return self.headers[0]
        if self.gathered:
            rank = number * self.ranks // self.gathered
        else:
            rank = number // self.files_per_rank
        return self.headers[rank * len(self.ins) // self.ranks]


# --- what is refused ----------------------------------------------------------

# when: of a case, whether it must be refused; None: it may be.
Refusal = collections.namedtuple("Refusal", "status words when")

REFUSALS = (
    Refusal(2, "--merge: not of a pipe", lambda c: c.merges and c.pipes != {}),
    Refusal(2, "--merge: not with --cluster or --nodes",
            lambda c: c.merges and c.ranks > 0),
    Refusal(2, "-: is no regular file, and not the only output",
            lambda c: c.writes_stdout and len(c.outs) > 1),
    Refusal(2, "--batch-size: not with --cluster or --nodes",
            lambda c: c.ranks > 0 and "--batch-size=2" in c.tuning),
    Refusal(2, "--merge: not with --unique=last",
            lambda c: c.merges and c.unique == "last"),
    Refusal(2, "--merge: not with --numbers or a random key",
            lambda c: c.merges and c.is_widened()),
    Refusal(2, "--head: not with --unique=last",
            lambda c: c.head is not None and c.unique == "last"),
    Refusal(2, "--numbers: behind a header of records",
            lambda c: c.number_bytes > 0 and c.header_bytes > 0
            and not c.drops_header),
    Refusal(2, "--key=.*: behind a random key", lambda c: c.key_is_behind),
    Refusal(2, "--unique: not with a random key",
            lambda c: c.unique is not None and c.seed is not None),
    Refusal(2, "--unique: one output file only",
            lambda c: c.unique is not None and not c.gathered
            and (c.files_per_rank or len(c.outs)) > 1 and c.is_beyond_memory()),
    Refusal(2, "--gather: this is sorted beyond memory",
            lambda c: c.unique is not None and c.gathered > 0
            and c.is_beyond_memory()),
    Refusal(2, "--head: this is sorted beyond memory",
            lambda c: c.unique is not None and c.head is not None
            and c.ranks > 0 and c.is_beyond_memory()),
    # What lies behind the first records need not be read.
    Refusal(1, r"in\.\d: record \d+ \(from 0\) belongs before",
            lambda c: c.disorder is not None and (None if c.head else True)),
)


def refusals_of(case):
    """Those that apply, and whether one of them must."""
    verdicts = [(refusal, refusal.when(case)) for refusal in REFUSALS]
    return ([refusal for refusal, verdict in verdicts if verdict is not False],
            any(verdict for _, verdict in verdicts))


def any_case(rng):
    while True:
        case = Case(rng)
        if not refusals_of(case)[1] or chance(rng, 1 - REDRAWN):
            return case


# --- runs -------------------------------------------------------------------

def outputs_of(outs, option="-o"):
    return [word for out in outs for word in (option, out)]


def run_alone(context, case, options):
    """How it ended, and the command as one would give it to a shell."""
    words, shown, stdin = [], [], ""
    with contextlib.ExitStack() as stack:
        descriptors, source = [], subprocess.DEVNULL
        for number, name in enumerate(case.ins):
            if number not in case.pipes:
                words.append(name)
                shown.append(name)
                continue
            feed = stack.enter_context(subprocess.Popen(
                ["cat", name], stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL))
            if case.pipes[number]:
                source, stdin = feed.stdout, f"cat {name} | "
                words.append("-")
                shown.append("-")
            else:
                descriptors.append(feed.stdout.fileno())
                words.append(f"/dev/fd/{descriptors[-1]}")
                shown.append(f"<(cat {name})")
        rest = [*outputs_of(case.outs), *options]
        ended = sort_runs.run([*context.command, *words, *rest], source,
                              descriptors)
    return [ended], (f"{stdin}{shlex.join(context.command)} {' '.join(shown)} "
                     f"{shlex.join(rest)}")


def run_ranks(context, case, options):
    job = f"options.{os.getpid()}"
    each = len(case.ins) // case.ranks
    commands = []
    for rank in range(case.ranks):
        if case.is_shared:
            ins = [*case.ins, "--shared-input"]
        else:
            ins = case.ins[rank * each:(rank + 1) * each]
        if case.gathered:
            outs = [f"--gather={out}" for out in case.outs]
        else:
            outs = outputs_of(case.outs[rank * case.files_per_rank:]
                              [:case.files_per_rank])
        commands.append([*context.command, *ins, *outs, f"--rank={rank}",
                         f"--nodes=127.0.0.[2-{case.ranks + 1}]",
                         f"--job={job}", "--deadline=120", *options])
    return (sort_runs.run_ranks(commands),
            " & ".join(shlex.join(command) for command in commands))


def run(context, case, options):
    return (run_ranks if case.ranks else run_alone)(context, case, options)


# What a process says whose memory does not suffice.
# A rank whose share turns out to be large says so when it has its share.
LEAST = Refusal(5, r"--memory: sorting this takes (?:up to )?([0-9.]+) MiB"
                r"(?: at least)?, and [0-9.]+ MiB are allowed", None)


def run_tight(context, case, options):
    """With the least memory that they ask for, or little more; but what does
    not need as much, or is refused for another reason, with 1 MiB."""
    memory = MIB
    # A rank may hear of what another one needs before it has told itself.
    for _ in range(case.ranks + 2):
        ended, command = run(context, case, [*options, f"-S{memory}"])
        if judge_refusal(case, ended, [LEAST]):
            break
        said = b"".join(one.err for one in ended).decode()
        least = max(map(float, re.findall(LEAST.words, said)))
        memory = math.ceil((least + 0.05) * case.spare_memory * MIB)
    return ended, command


# --- judging ------------------------------------------------------------------

def judge_refusal(case, ended, refusals):
    """One line for each process, for one of these reasons, and no report."""
    lines = [one.err.decode(errors="replace") for one in ended]
    if not all(re.fullmatch("blinksort: [^\n]+\n", line) for line in lines):
        return "not one line"
    # What -m has written to a pipe is not taken back.
    if any(one.out for one in ended) and not (case.merges and
                                              case.writes_stdout):
        return "refused, and something on standard output"
    # A rank may be told by another one that the run has ended.
    statuses = {refusal.status for refusal in refusals}
    if case.ranks:
        statuses.add(4)
    if any(one.status not in statuses for one in ended):
        return "another status"
    if not any(one.status == refusal.status and
               re.match(f"blinksort: .*{refusal.words}", line)
               for one, line in zip(ended, lines) for refusal in refusals):
        return "refused for no documented reason"
    return None


def judge_report(case, ended, want):
    """Of one process, or of rank 0."""
    text = ended[0].err if case.writes_stdout else ended[0].out
    quiet = ended[0].out[:0] if case.writes_stdout else ended[0].err
    if quiet or (not case.report and text):
        return "something was printed"
    if case.report == "--checksum":
        total = sum(zlib.crc32(row) for row in want)
        if text != f"{total:x}\n".encode():
            return f"not the checksum {total:x}: {text[:80]}"
    if case.report == "--json" and not case.ranks:
        document = json.loads(text)
        found = [document[name] for name in
                 ("records", "record_size", "written_records")]
        if found != [sum(map(len, case.parts)), case.size, len(want)]:
            return f"not what --json says: {found}"
        if not case.head and document["dropped_records"] != case.dropped:
            return f"not {case.dropped} dropped records, by --json"
    return None


def judge_outputs(case, ended, want):
    found, counts = b"", []
    for number, name in enumerate(case.outs):
        output = ended[0].out
        if name != "-":
            with open(name, "rb") as file:
                output = file.read()
        header = case.header_of(number)
        if not output.startswith(header):
            return f"{name} begins with another header"
        found += output[len(header):]
        counts.append((len(output) - len(header)) // want.shape[1])
    why = sort_runs.differs(found, want)
    if not why and not case.ranks and max(counts) - min(counts) > 1:
        why = f"outputs of {counts} records"
    return why


def judge_files(case, contents, outs):
    """No input was changed, and there is no other file."""
    for name, content in zip(case.ins, contents):
        with open(name, "rb") as file:
            if name not in outs and file.read() != content:
                return f"{name} was changed"
    expected = {*case.ins, *outs} - {"-"}
    if expected != set(os.listdir()):
        return f"files: {sorted(expected ^ set(os.listdir()))}"
    return None


def judge(case, ended, contents):
    """What is wrong, or None."""
    refusals, must_be_refused = refusals_of(case)
    if any(one.status for one in ended):
        return (judge_refusal(case, ended, refusals)
                or judge_files(case, contents, []))
    if must_be_refused:
        return f"not refused: {[refusal.words for refusal in refusals]}"
    # What -m has not seen to be out of order is somewhere.
    if case.disorder:
        return judge_files(case, contents, case.outs)
    want = case.want()
    return (judge_report(case, ended, want)
            or judge_outputs(case, ended, want)
            or judge_files(case, contents, case.outs))


def try_case(context, number):
    """None, or what was wrong, and of which command."""
    rng = np.random.default_rng([context.seed, number])
    case = any_case(rng)
    contents = case.contents()
    for name, content in zip(case.ins, contents):
        with open(name, "wb") as file:
            file.write(content)
    ended, command = (run_tight if case.is_tight else run)(
        context, case, case.options(context.kernels))
    why = judge(case, ended, contents)
    if why:
        return f"{why}; {sort_runs.complaint(ended)}", command
    return None


def main():
    context = sort_runs.parse_arguments()
    if context.only is not None:
        numbers = [context.only]
    else:
        numbers = range(context.count)
    failed_count = 0
    for number in numbers:
        failed = try_case(context, number)
        if failed:
            failed_count += 1
            again = [*sys.argv[:1], f"--only={number}", *sys.argv[1:]]
            print(f"  case {number}: {failed[0]}\n  of: {failed[1]}\n"
                  f"  to repeat: {shlex.join(again)}", file=sys.stderr)
        if not failed or context.only is None:
            sort_runs.remove(os.listdir())
    sys.exit(failed_count > 0)


if __name__ == "__main__":
    main()
