#!/usr/bin/python3
"""Time blinksort, blinkgen and blinkval, file to file, whole processes.

USAGE: tests/bench/bench_files.py [--label LABEL] [--record FOLDER]
                                         (make bench LABEL=... RECORD=...)

What is compared runs alternately, A B A B ..., on the same input in the same
run, since a shared machine drifts by more than what is to be seen; so the
figure to trust is the ratio, taken pair by pair.  A time is that of a process
from before its start to after its end, taken by bench_spawn.  Each run makes a
new output file; the old one is removed off the clock.  One round before the
counted ones warms up; after the last one each output is checked.

Inputs are made anew for each scenario and written in large pieces, as a file
that cp has written with small folios is slower to map and would flatter cp.

SCENARIOS
  cached-*    input in the page cache, output left there; against cp and sort;
              with 10,000,000 records, after free memory was touched (see
              back_memory)
  peers-*     against a C++ library, polars, DuckDB, GNU sort and cp, all of
              them by turns; blinkreport draws it
  cold-*      the input's pages dropped before every run, and seen to be gone;
              against cp; what writes past the page cache (direct), or flushes
              (sync), against cp and sync(1)
  shape-*     keys that are not uniform, against blinksort on uniform ones
  keys-*      10,000,000 records with typed keys, of 16 bytes by a u64 and of
              8 bytes by an f64; against cp and against what Python programs
              use; with integers that are not uniform, against uniform ones
  memory-*    peak memory, not times
  blinkgen-*, blinkval
  kernels     what bench_kernels says, if it was built

PLACES: shm (/dev/shm), disk (where the build is), and for root also xfs (on a
loop device on that disk) and huge (tmpfs with huge=always); those two are
mounted and unmounted here, each command shown.

ENVIRONMENT
  BENCH_ROUNDS  rounds counted (21)
  BENCH_QUICK   1: 5 rounds
  BENCH_ONLY    words; only scenarios whose PLACE/NAME holds one of them
  BENCH_FULL    1: 10,000,000 records too (make bench: and bench_external.py)
  BENCH_AGAINST a folder with the programs of an older build: each scenario
                compares ours with those, and with nothing else, and says
                where an interval of the median ratio lies above 1.00
  BENCH_PYTHON  a Python that has numpy, polars, duckdb and pyarrow (that of
                make bench-deps); what it has not is skipped

All samples and a description of the machine go to
results/bench-DATE-LABEL.json; to build/ instead when not everything was run, or
in 5 rounds or fewer; with --record to FOLDER/bench.json, which blinkreport can
read if peers-* was run.
"""

import argparse
import contextlib
import datetime
import json
import os
import re
import signal
import sys
import tempfile
from pathlib import Path

from duel import Spawner, duel, twin
from machine import describe_machine, describe_programs
from places import PLACES
from programs import (AGAINST, BUILD, ROOT, Failed, Skip, built, program,
                      quiet)
from report import (HEADING, NAME_WIDTH, memory_row, record_results, rows,
                    slower_rows, summary)
from scenarios import MEMORY_RUNS, contests, measure_memory


class Bench:
    """The run: what was measured, skipped and failed."""

    def __init__(self, rounds, only):
        self.rounds = rounds
        self.only = only
        self.results = []
        self.skipped = []
        self.failed = []

    def wanted(self, name):
        return not self.only or any(word in name for word in self.only)

    def note(self, kind, name, reason):
        reason = str(reason).replace(f"{ROOT}/", "")
        getattr(self, kind).append({"name": name, "reason": reason})
        print(f"{name:{NAME_WIDTH}}{kind}: {reason}", flush=True)

    def record(self, place, name, result, text):
        self.results.append({"name": name, "place": place and place.name,
                             "load_average_1min": os.getloadavg()[0], **result})
        print(text, flush=True)

    @contextlib.contextmanager
    def attempt(self, place, name):
        """One scenario; whatever it leaves in the place is removed."""
        try:
            yield
        except Skip as reason:
            self.note("skipped", name, reason)
        except (Failed, OSError, KeyError, ValueError) as reason:
            self.note("failed", name, reason)
        finally:
            for path in place.folder.iterdir() if place else ():
                if path.is_file():
                    path.unlink()

    def measure(self, spawner, place, name, contest):
        contestants = contest(place)
        if AGAINST:
            contestants = [contestants[0], twin(contestants[0])]
        duel(spawner, place.output, self.rounds, contestants)
        result = summary(contestants)
        for shown, contestant in zip(result["contestants"], contestants):
            shown["commands"] = [[self.relative(word, place) for word in words]
                                 for words in contestant.commands]
            shown["elapsed_ns"] = contestant.elapsed_ns
            shown["max_rss_kib"] = contestant.max_rss_kib
        self.record(place, name, {"rounds": self.rounds, **result},
                    rows(name, contestants, result))

    @staticmethod
    def relative(word, place):
        """What is recorded tells nothing about the machine's folders."""
        if not word.startswith("/") or word.startswith("/dev/null"):
            return word
        if Path(word).is_relative_to(place.folder):
            return f"{place.name}/{Path(word).relative_to(place.folder)}"
        return Path(word).name

    def place_names(self, place_name, table):
        return [f"{place_name}/{name}" for name, (places, _) in table.items()
                if place_name in places
                and self.wanted(f"{place_name}/{name}")]

    def run_place(self, spawner, place, names, table):
        for name in names:
            with self.attempt(place, name):
                self.measure(spawner, place, name,
                             table[name.partition("/")[2]][1])

    def run_memory(self, spawner, place):
        for plain, (mode, count) in MEMORY_RUNS.items():
            name = f"{place.name}/{plain}"
            if self.wanted(name):
                with self.attempt(place, name):
                    result = measure_memory(spawner, place, mode, count)
                    self.record(place, name, result, memory_row(name, result))

    def run_kernels(self):
        """The rows of bench_kernels as they are."""
        if not self.wanted("kernels"):
            return
        with self.attempt(None, "kernels"):
            said = quiet([built("bench_kernels"), "--json"])
            if said is None:
                raise Failed("bench_kernels failed")
            try:
                rows = json.loads(said)
            except ValueError:  # JSON Lines
                rows = [json.loads(line) for line in said.splitlines()]
            count = len(rows) if isinstance(rows, list) else 1
            self.record(None, "kernels", {"kernels": rows},
                        f"{'kernels':{NAME_WIDTH}}{count} recorded")


def run_all(bench, table, size_bytes):
    places = {}
    BUILD.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD)))
        spawner = Spawner(scratch)
        stack.callback(spawner.close)
        for place_name, enter in PLACES.items():
            names = bench.place_names(place_name, table)
            memory = place_name == "disk" and any(
                bench.wanted(f"disk/{name}") for name in MEMORY_RUNS)
            if not names and not memory:
                continue
            with contextlib.ExitStack() as place_stack:
                try:
                    place = place_stack.enter_context(
                        enter(scratch, size_bytes))
                except Skip as reason:
                    bench.note("skipped", place_name, reason)
                    continue
                places[place_name] = place.describe()
                bench.run_place(spawner, place, names, table)
                if memory:
                    bench.run_memory(spawner, place)
    bench.run_kernels()
    return places


def rounds_wanted(parser):
    if os.environ.get("BENCH_QUICK") == "1":
        return 5
    rounds = os.environ.get("BENCH_ROUNDS", "21")
    if not rounds.isdigit() or int(rounds) < 1:
        parser.error(f"BENCH_ROUNDS: {rounds}: not a number >= 1")
    return int(rounds)


def label_of(text):
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", text):
        raise argparse.ArgumentTypeError("letters, digits, dots and dashes")
    return text


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--label", default="local", type=label_of,
                        help="names the machine or the occasion")
    parser.add_argument("--record", metavar="FOLDER", type=Path,
                        help="a folder for the record, as bench.json")
    options = parser.parse_args()
    label, record = options.label, options.record
    rounds = rounds_wanted(parser)
    if record:
        record.mkdir(parents=True, exist_ok=True)
        record /= "bench.json"
        if record.exists():
            parser.error(f"--record: {record} is there already")
    # So that what was mounted is unmounted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))

    for name in ("blinksort", "blinkgen", "blinkval"):
        if not os.path.exists(program(name)):
            sys.exit(f"bench_files.py: bin/{name}: not built: run make")
        if AGAINST and not os.path.exists(AGAINST / name):
            sys.exit(f"bench_files.py: BENCH_AGAINST: there is no {name}")
    only = os.environ.get("BENCH_ONLY", "").replace(",", " ").split()
    full = os.environ.get("BENCH_FULL") == "1"
    bench = Bench(rounds, only)
    document = {"label": label,
                "date": datetime.datetime.now(datetime.timezone.utc).isoformat(
                    timespec="seconds"),
                "rounds": bench.rounds, "warmup_rounds": 1,
                "only": only, "full": full,
                "against": AGAINST and quiet([AGAINST / "blinksort",
                                              "--version"]),
                "machine": describe_machine(), **describe_programs()}
    machine = document["machine"]
    print(f"{machine['cpu_model']}, {machine['cpus_allowed']} CPUs, "
          f"{machine['memory_bytes'] / 2**30:.0f} GiB, "
          f"Linux {machine['kernel']}\n"
          f"{document['blinksort_version']}, "
          f"{bench.rounds} rounds\n{HEADING}", flush=True)
    size_bytes = (6 if full else 1) << 30
    document["places"] = run_all(bench, contests(full), size_bytes)
    if AGAINST:
        print(slower_rows(bench.results))
    return record_results(bench, document, label,
                          complete=not only and bench.rounds > 5, path=record)


if __name__ == "__main__":
    sys.exit(main())
