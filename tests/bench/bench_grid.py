#!/usr/bin/python3
"""From which message size on do rounds take less time than a grid, on links
with a rate, and where does the model have it?

USAGE: tests/bench/bench_grid.py [--rounds N] [--nodes N:MBIT]...

As root.  Ranks are in network namespaces whose links let so many Mbit/s through
(tests/cluster --rate).  bench_exchange makes three exchanges by each schedule,
for each size in turn, round by round; the table has the medians, and what the
model says with CPU times that were measured where links are no limit.  The
crossing lies where the logarithm of grid / rounds, over that of the size, is 0.
"""

import argparse
import math
import os
import statistics
import sys
from collections import defaultdict

from cluster import Cluster
from links import links
from programs import BUILD, Failed, Skip, must_run

BENCH = BUILD / "musl/tests/bench/bench_exchange"
SIZES = (250, 500, 1000, 2000, 4000)
EXCHANGES = 3
# Of bench_exchange's rows.
MEDIAN, MODEL = 2, 7
HEADING = (f"{'ranks':>5} {'Mbit/s':>6} {'bytes':>6} {'rounds':>8} {'model':>8}"
           f" {'grid':>8} {'model':>8}   ms")


def exchange_ms(cluster, nodes, mbit, size):
    """{schedule: (measured, predicted)}"""
    bridge = cluster.hosts[0].split(".")[2]
    # The megabytes of all; half a byte more, as they are rounded down.
    megabytes = (size + 0.5) * nodes * (nodes - 1) / 1e6
    said = must_run(str(BENCH), str(nodes), f"{megabytes:.9f}", "0",
                    str(EXCHANGES), bridge, str(mbit))
    rows = [line.split() for line in said.decode("ascii").splitlines()[2:]]
    return {row[0]: (float(row[MEDIAN]), float(row[MODEL])) for row in rows}


def crossing(points):
    """Of [(size, rounds, grid)]: where both are equal, or None."""
    logs = [(math.log(size), math.log(grid / rounds))
            for size, rounds, grid in points]
    for (x0, y0), (x1, y1) in zip(logs, logs[1:]):
        if y0 < 0 <= y1:
            return math.exp(x0 - y0 * (x1 - x0) / (y1 - y0))
    return None


def measure(nodes, mbit, rounds):
    samples = defaultdict(list)
    with Cluster(nodes, "--netns", f"--rate={mbit}") as cluster:
        for _ in range(rounds):
            for size in SIZES:
                samples[size].append(exchange_ms(cluster, nodes, mbit, size))
    found = []
    for size in SIZES:
        found.append([statistics.median(s[name][which] for s in samples[size])
                      for name in ("rounds", "grid") for which in (0, 1)])
        print(f"{nodes:5} {mbit:6} {size:6} " +
              " ".join(f"{ms:8.2f}" for ms in found[-1]), flush=True)
    measured, predicted = (
        crossing([(size, ms[which], ms[2 + which])
                  for size, ms in zip(SIZES, found)]) for which in (0, 1))
    if measured and predicted:
        print(f"{nodes} ranks: crossing at {measured:.0f} bytes, by the model "
              f"at {predicted:.0f}: {predicted / measured:.2f}", flush=True)
    else:
        print(f"{nodes} ranks: no crossing among these sizes", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--nodes", type=links, action="append")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench_grid.py: network namespaces need root")
    print(f"{options.rounds} rounds\n{HEADING}", flush=True)
    try:
        # So slow that two CPUs can do what all ranks and the switch do.
        for nodes, mbit in options.nodes or ((16, 10), (32, 10)):
            measure(nodes, mbit, options.rounds)
    except (Skip, Failed) as reason:
        sys.exit(f"bench_grid.py: {reason}")


if __name__ == "__main__":
    main()
