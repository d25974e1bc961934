#!/usr/bin/python3
"""Time sorts of files that are larger than the memory, against a copy.

USAGE: tests/bench/bench_external.py [--label LABEL] [--list]
                                               (make bench-external LABEL=...)

As root.  Each run is in a memory cgroup of its own, which counts what the page
cache holds for it, too; the input's pages are dropped before, and seen to be
gone.  Before each run as much free memory as its limit is touched, so that a
virtual machine has it from its host already.  The contestants of a row run
alternately, round by round.  A time is that of whole processes, from the first
one's start until the last one has ended, which includes giving back scratch
files, and the output is on the medium then.  After the last round each output
is checked.  The last contestant of a row is what the others are compared with:
ratios are taken round by round.

  copy      bench_copy: reads and writes past the page cache, both at once: the
            least that one pass can take
  cp+sync   cp(1), then sync(1)

ROWS (--list prints their names)
  memory        against GNU sort, DuckDB, STXXL, cp+sync and copy
  memory-*      other limits; memory-edge: enough to sort at once, and 1 % less;
                memory-curve: ten limits, from which memory_curve.py draws
  compress-*    what is spilled compressed if that pays, and never
  pipes*        between two cat(1), also with a slow writer or reader, against a
                cat(1) in the same place
  scratch-two   scratch on a fast and on a slow disk, against the fast one alone
  shape-*       keys that are not uniform, against uniform ones
  size-*        records of other sizes; key-last: the key ends the record

ENVIRONMENT
  BENCH_EXTERNAL_GB      size of each input, in 1e9 bytes (8)
  BENCH_EXTERNAL_MEMORY  limit of memory, in bytes (1000000000)
  BENCH_EXTERNAL_SMALL   that of memory-small (100000000)
  BENCH_EXTERNAL_LEAST   the least of memory-curve (50000000)
  BENCH_EXTERNAL_PIPE    bytes a second of a slow writer or reader (200000000)
  BENCH_EXTERNAL_DISK    bytes a second of the fast disk of two (200000000)
  BENCH_EXTERNAL_FOLDER  where the files are, a new folder in there (build/)
  BENCH_ROUNDS           rounds (5)
  BENCH_ONLY             words; only rows whose name holds one of them; a word
                         with = before it is a row's whole name
  BENCH_PYTHON           a Python that has duckdb (/usr/bin/python3)

All samples and a description of the machine go to
results/bench-DATE-external-LABEL.json; to build/ instead when not all rows
were run, or in less than 5 rounds.
"""

import argparse
import contextlib
import datetime
import os
import signal
import sys
import tempfile
from pathlib import Path

import external_rows
from bench_files import Bench, label_of
from external_inputs import Inputs
from external_run import (HEADING, TIMEOUT_S_PER_GB, alternate, rows,
                          summary)
from machine import describe_machine, describe_programs
from places import Place
from programs import BUILD, ROOT, Skip, program
from report import record_path, write_record

ROUNDS = 5


def number(parser, name, default):
    text = os.environ.get(name, str(default))
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e15:
        parser.error(f"{name}: {text}: not a number above 0")
    return value


def read_config(parser, place):
    size_bytes = round(number(parser, "BENCH_EXTERNAL_GB", 8) * 1e9)

    def whole(name, default):
        return round(number(parser, f"BENCH_EXTERNAL_{name}", default))
    return external_rows.Config(
        size_bytes, memory_bytes=whole("MEMORY", 10**9),
        small_bytes=whole("SMALL", 10**8),
        curve_least_bytes=whole("LEAST", 5 * 10**7),
        pipe_bytes_per_s=whole("PIPE", 2 * 10**8),
        disk_bytes_per_s=whole("DISK", 2 * 10**8),
        python=os.environ.get("BENCH_PYTHON", "/usr/bin/python3"),
        place=place, inputs=Inputs(place.folder, size_bytes))


def wanted(name, only):
    return not only or any(
        word[1:] == name if word.startswith("=") else word in name
        for word in only)


def measure(bench, config, name, row):
    """One row; what it has made is removed, but for its inputs."""
    config.inputs.keep_only(row.kinds)
    missing = sum(kind not in config.inputs.paths for kind in row.kinds)
    config.inputs.expect_room(row.files + missing)
    contestants = []
    for make in row.contestants(config):
        try:
            made = make(config)
            made.timeout_s += TIMEOUT_S_PER_GB * config.size_bytes / 1e9
            contestants.append(made)
        except Skip as reason:
            bench.note("skipped", f"{name}: peer", reason)

    def dropped(contestant, reason):
        skipped = contestant.peer or isinstance(reason, Skip)
        bench.note("skipped" if skipped else "failed",
                   f"{name}: {contestant.name}", reason)
    left = alternate(contestants, config.place, bench.rounds, dropped)
    if left:
        found = summary(left, config.size_bytes)
        bench.record(config.place, name, {
            "rounds": bench.rounds, "size_bytes": config.size_bytes,
            "contestants": found}, rows(name, found))


def run_rows(bench, config, table):
    for name, row in table.items():
        with bench.attempt(None, name), contextlib.ExitStack() as stack:
            config.stack = stack
            measure(bench, config, name, row)


def describe(bench, config, label):
    options = {key: getattr(config, key) for key in (
        "size_bytes", "memory_bytes", "small_bytes", "curve_least_bytes",
        "pipe_bytes_per_s", "disk_bytes_per_s")}
    return {"label": label,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(
                timespec="seconds"),
            "rounds": bench.rounds, "only": bench.only, "external": options,
            "machine": describe_machine(), **describe_programs(),
            "places": {"disk": config.place.describe()}}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--label", default="local", type=label_of,
                        help="names the machine or the occasion")
    parser.add_argument("--list", action="store_true",
                        help="print the names of the rows")
    options = parser.parse_args()
    names = list(external_rows.table())
    if options.list:
        print("\n".join(names))
        return 0
    only = os.environ.get("BENCH_ONLY", "").replace(",", " ").split()
    bench = Bench(round(number(parser, "BENCH_ROUNDS", ROUNDS)), only)
    table = {name: row for name, row in external_rows.table().items()
             if wanted(name, only)}
    if not table:
        parser.error(f"BENCH_ONLY: {' '.join(only)}: no row; see --list")
    if not os.path.exists(program("blinksort")):
        sys.exit("bench_external.py: blinksort: not built: run make")
    # So that what was mounted is unmounted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    parent = Path(os.environ.get("BENCH_EXTERNAL_FOLDER", BUILD)).resolve()
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=parent) as folder:
        config = read_config(parser, Place("disk", folder))
        document = describe(bench, config, options.label)
        print(HEADING, flush=True)
        run_rows(bench, config, table)
    document.update(results=bench.results, skipped=bench.skipped,
                    failed=bench.failed)
    path = record_path(f"external-{options.label}",
                       complete=not only and bench.rounds >= ROUNDS)
    write_record(path, document)
    print(f"recorded in {os.path.relpath(path, ROOT)}")
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
