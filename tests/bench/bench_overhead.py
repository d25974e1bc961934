#!/usr/bin/env python3
"""How much longer a command takes for who times it.

usage: tests/bench/bench_overhead.py [--rounds=N] [--json=FILE] [--command=C]

Times one command, `blinkprobe nothing` unless told, by turns in these ways:

  C           posix_spawn and wait4, and nothing else: bench_spawn.c
  blinktrial  what a trial of blinktrial does
  hyperfine   hyperfine -N, if it is installed (make bench-deps)

A round is ten runs in each way, the ways in an order of chance; each has the
same environment.  The difference to C is that of the medians of each round:
its median and quartiles, and of how many rounds it is above 20 us.
Microseconds; rows are tab-separated.
"""

import argparse
import json
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from duel import Spawner
from programs import BIN, ROOT, Skip, tool

sys.path.insert(0, str(ROOT / "results"))
from trials.base.programs import Programs  # noqa: E402
from trials.run import timed  # noqa: E402
from trials.run.supervisor import Supervisor  # noqa: E402

RUNS = 10
LIMIT_US = 20
BASELINE = "C"


class Hyperfine:
    def __init__(self, scratch):
        self.path = tool("hyperfine")
        self.document = str(scratch / "hyperfine.json")

    def times_us(self, words):
        subprocess.run(
            [self.path, "-N", "--warmup=0", f"--runs={RUNS}", "--style=none",
             f"--export-json={self.document}", " ".join(words)], check=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(self.document, encoding="utf-8") as file:
            return [time * 1e6 for time in json.load(file)["results"][0][
                "times"]]


def ways(scratch, supervisor):
    """{name: a function of words that returns the times of RUNS runs}"""
    spawner = Spawner(scratch)
    found = {
        BASELINE: lambda words: [spawner.run([words])[0] / 1e3
                                 for _ in range(RUNS)],
        "blinktrial": lambda words: [timed.time_command(
            words, supervisor, environment=dict(os.environ),
            keeps_stdout=False).whole_ns / 1e3 for _ in range(RUNS)]}
    try:
        found["hyperfine"] = Hyperfine(scratch).times_us
    except Skip as reason:
        print(f"# {reason}", file=sys.stderr)
    return found


def measure(found, words, rounds):
    """{name: the times of each round}"""
    times_us = {name: [] for name in found}
    names = list(found)
    for number in range(rounds + 1):
        random.shuffle(names)
        for name in names:
            round_us = found[name](words)
            if number:  # the first one is for the caches
                times_us[name].append(round_us)
    return times_us


def row(name, times_us):
    medians = {name: [statistics.median(round_us) for round_us in rounds]
               for name, rounds in times_us.items()}
    more = [own - base for own, base in zip(medians[name], medians[BASELINE])]
    all_us = [one for round_us in times_us[name] for one in round_us]
    figures = [min(all_us), *statistics.quantiles(all_us, n=4),
               *statistics.quantiles(more, n=4)]
    above = sum(one > LIMIT_US for one in more)
    return [name, *(f"{one:.1f}" for one in figures), f"{above}/{len(more)}"]


def main():
    parser = argparse.ArgumentParser(
        usage=__doc__.partition("usage: ")[2].rstrip())
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json")
    parser.add_argument("--command", type=shlex.split,
                        default=[str(BIN.resolve() / "blinkprobe"), "nothing"])
    options = parser.parse_args()
    # The stack lies elsewhere in another environment.
    os.environ.clear()
    os.environ.update(timed.ENVIRONMENT)
    with tempfile.TemporaryDirectory() as folder, \
            Supervisor(Programs(str(BIN))) as supervisor:
        times_us = measure(ways(Path(folder), supervisor), options.command,
                           options.rounds)
    print(f"# {' '.join(options.command)}; load {os.getloadavg()[0]:.2f}")
    print("\t".join(("way", "min", "q1", "median", "q3", "more q1",
                     "more median", "more q3", f"> {LIMIT_US}")))
    for name in times_us:
        print("\t".join(row(name, times_us)))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(times_us, file)


if __name__ == "__main__":
    main()
