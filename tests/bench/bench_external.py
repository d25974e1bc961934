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
  BENCH_PYTHON           a Python that has duckdb (that of make bench-deps)

All samples and a description of the machine go to
results/bench-DATE-external-LABEL.json; to build/ instead when not all rows
were run, or in less than 5 rounds.
"""

import contextlib
import sys

import external_bench
import external_rows
from external_bench import number
from external_inputs import Inputs
from external_run import TIMEOUT_S_PER_GB, alternate, rows, summary
from programs import Skip


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
        place=place, inputs=Inputs(place.folder, size_bytes))


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


def run_row(bench, config, name, row):
    with contextlib.ExitStack() as stack:
        config.stack = stack
        measure(bench, config, name, row)


def settings(config):
    return {key: getattr(config, key) for key in (
        "size_bytes", "memory_bytes", "small_bytes", "curve_least_bytes",
        "pipe_bytes_per_s", "disk_bytes_per_s")}


if __name__ == "__main__":
    sys.exit(external_bench.run(external_bench.Benchmark(
        __doc__, "external", "BENCH_EXTERNAL_FOLDER", external_rows.table(),
        read_config, settings, run_row)))
