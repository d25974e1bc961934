#!/usr/bin/python3
"""How blinktrial times a command, beside hyperfine and beside bare C.

usage: tests/bench/timers.py [--rounds=N] [--prepare=C] COMMAND...

With one command: how much longer it takes for who times it, in microseconds.
A round is ten runs in each of these ways, in an order of chance:

  C           posix_spawn and wait4, and nothing else: bench_spawn.c
  blinktrial  what a trial of blinktrial does
  hyperfine   hyperfine -N

The difference to C is that of the medians of each round: its median and
quartiles, and of how many rounds it is above 20 us.

With several: both tools as a user runs them, in an order of chance in each
round; hyperfine runs one command ten times after the other, blinktrial runs all
of them by turns.  The table has the median of all runs in milliseconds, its
interval, and whether the intervals of both tools meet.

make bench-deps installs hyperfine.  Rows are tab-separated.
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

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("BIN", ROOT / "bin")).resolve()
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.path.insert(0, str(ROOT / "results"))
from trials.base.programs import Programs  # noqa: E402
from trials.run import timed  # noqa: E402
from trials.run.supervisor import Supervisor  # noqa: E402
from trials.statistics.descriptive import median_interval  # noqa: E402

RUNS = 10
LIMIT_US = 20
BASELINE = "C"


class BareC:
    """bench_spawn, kept running."""

    def __init__(self, scratch):
        path = BUILD / "musl/tests/bench/bench_spawn"
        if not path.exists():
            path = BUILD / "dyn/tests/bench/bench_spawn"
        self.process = subprocess.Popen(
            [path, os.path.join(scratch, "stdout")], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def times_us(self, words):
        found = []
        for _ in range(RUNS):
            self.process.stdin.write("\t".join(words) + "\n")
            self.process.stdin.flush()
            time_ns, status, _ = map(int, self.process.stdout.readline()
                                     .split())
            if status:
                sys.exit(f"timers.py: {words[0]}: status {status}")
            found.append(time_ns / 1e3)
        return found


def by_tool(words, document):
    """{command: its times in seconds}; blinktrial's control comes later than
    the command that it repeats."""
    done = subprocess.run([*words, f"--export-json={document}"], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True)
    if done.returncode:
        sys.exit(f"timers.py: {words[0]}: {done.stderr.strip()}")
    with open(document, encoding="utf-8") as file:
        results = json.load(file)["results"]
    found = {}
    for one in results:
        found.setdefault(one["command"], one["times"])
    return found


def hyperfine(*words):
    return ["hyperfine", "-N", "--style=none", f"--runs={RUNS}", *words]


def each_round(ways, rounds):
    """(name, what the way returns), round by round in an order of chance."""
    for _ in range(rounds):
        for name in random.sample(list(ways), len(ways)):
            yield name, ways[name]()


def overhead(command, options, scratch, supervisor):
    words, document = shlex.split(command), os.path.join(scratch, "times.json")
    bare = BareC(scratch)
    ways = {
        BASELINE: lambda: bare.times_us(words),
        "blinktrial": lambda: [timed.time_command(
            words, supervisor, environment=dict(os.environ),
            keeps_stdout=False).whole_ns / 1e3 for _ in range(RUNS)],
        "hyperfine": lambda: [time * 1e6 for time in by_tool(
            hyperfine(command), document)[command]]}
    for way in ways.values():  # for the caches
        way()
    rounds = {name: [] for name in ways}
    for name, times_us in each_round(ways, options.rounds):
        rounds[name].append(times_us)
    print("\t".join(("way", "min", "q1", "median", "q3", "more q1",
                     "more median", "more q3", f"> {LIMIT_US}")))
    for name, times_us in rounds.items():
        more = [statistics.median(own) - statistics.median(base)
                for own, base in zip(times_us, rounds[BASELINE])]
        every = sum(times_us, [])
        figures = [min(every), *statistics.quantiles(every, n=4),
                   *statistics.quantiles(more, n=4)]
        print("\t".join([name, *(f"{one:.1f}" for one in figures),
                         f"{sum(one > LIMIT_US for one in more)}/{len(more)}"]))


def agreement(options, scratch):
    document = os.path.join(scratch, "times.json")
    words = list(options.commands)
    if options.prepare:
        words.insert(0, f"--prepare={options.prepare}")
    ways = {"hyperfine": lambda: by_tool(hyperfine("--warmup=1", *words),
                                         document),
            "blinktrial": lambda: by_tool(
                [str(BIN / "blinktrial"), "--quiet", f"--trials={RUNS}",
                 *words], document)}
    found = {name: {command: [] for command in options.commands}
             for name in ways}
    for name, times in each_round(ways, options.rounds):
        for command in options.commands:
            found[name][command] += times[command]
    print("command\ttool\truns\tmedian\tlow\thigh\tmeet")
    for command in options.commands:
        ends = {name: median_interval(times[command])
                for name, times in found.items()}
        meet = (max(one.low for one in ends.values())
                <= min(one.high for one in ends.values()))
        for name, ends_of in ends.items():
            times = found[name][command]
            figures = [1e3 * one for one in (statistics.median(times),
                                             ends_of.low, ends_of.high)]
            print("\t".join([command, name, str(len(times)),
                             *(f"{one:.3f}" for one in figures),
                             "yes" if meet else "no"]))


def main():
    parser = argparse.ArgumentParser(
        usage=__doc__.partition("usage: ")[2].rstrip())
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--prepare")
    parser.add_argument("commands", nargs="+", metavar="COMMAND")
    options = parser.parse_args()
    # The stack lies elsewhere in another environment.
    os.environ.clear()
    os.environ.update(timed.ENVIRONMENT)
    with tempfile.TemporaryDirectory() as scratch, \
            Supervisor(Programs(str(BIN))) as supervisor:
        if len(options.commands) == 1:
            overhead(options.commands[0], options, scratch, supervisor)
        else:
            agreement(options, scratch)


if __name__ == "__main__":
    main()
