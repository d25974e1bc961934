"""What the benchmarks of sorts beyond memory have in common: rows by name, in a
new folder that is removed, and a record of all that they find."""

import argparse
import datetime
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench_files import Bench, label_of
from external_run import HEADING
from machine import describe_machine, describe_programs
from places import Place
from programs import BUILD, program
from report import record_results

ROUNDS = 5


class Benchmark(NamedTuple):
    doc: str               # for --help
    label: str             # of the record, before the user's
    folder: str            # names the variable that says where files are
    table: dict            # of rows, by name
    read_config: Callable  # (parser, place): returns the config of all rows
    settings: Callable     # (config): returns what the record says of it
    run_row: Callable      # (bench, config, name, row)


def number(parser, name, default):
    text = os.environ.get(name, str(default))
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e15:
        parser.error(f"{name}: {text}: not a number above 0")
    return value


def wanted(name, only):
    return not only or any(
        word[1:] == name if word.startswith("=") else word in name
        for word in only)


def read_options(benchmark):
    parser = argparse.ArgumentParser(
        description=benchmark.doc,
        formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--label", default="local", type=label_of,
                        help="names the machine or the occasion")
    parser.add_argument("--list", action="store_true",
                        help="print the names of the rows")
    return parser, parser.parse_args()


def end_on(signal_number, _frame):
    sys.exit(128 + signal_number)


def describe(benchmark, bench, config, label):
    return {"label": label,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(
                timespec="seconds"),
            "rounds": bench.rounds, "only": bench.only,
            benchmark.label.replace("-", "_"): benchmark.settings(config),
            "machine": describe_machine(), **describe_programs(),
            "places": {"disk": config.place.describe()}}


def run(benchmark):
    """Returns the exit status."""
    parser, options = read_options(benchmark)
    if options.list:
        print("\n".join(benchmark.table))
        return 0
    only = os.environ.get("BENCH_ONLY", "").replace(",", " ").split()
    bench = Bench(round(number(parser, "BENCH_ROUNDS", ROUNDS)), only)
    table = {name: row for name, row in benchmark.table.items()
             if wanted(name, only)}
    if not table:
        parser.error(f"BENCH_ONLY: {' '.join(only)}: no row; see --list")
    if not os.path.exists(program("blinksort")):
        sys.exit(f"{parser.prog}: blinksort: not built: run make")
    # So that processes are ended, what was mounted is unmounted, and cgroups
    # and namespaces are removed.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, end_on)
    parent = Path(os.environ.get(benchmark.folder, BUILD)).resolve()
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=parent) as folder:
        config = benchmark.read_config(parser, Place("disk", folder))
        document = describe(benchmark, bench, config, options.label)
        print(HEADING, flush=True)
        for name, row in table.items():
            with bench.attempt(None, name):
                benchmark.run_row(bench, config, name, row)
    return record_results(bench, document,
                          f"{benchmark.label}-{options.label}",
                          complete=not only and bench.rounds >= ROUNDS)
