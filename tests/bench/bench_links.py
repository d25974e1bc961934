#!/usr/bin/python3
"""The exchange's schedules on links with a rate and a switch with small queues.

USAGE: tests/bench/bench_links.py [--rounds N] [--queue KIB] [--nodes N:MBIT]...

As root.  Nodes are network namespaces whose links let so many Mbit/s through
(tests/cluster --rate); what a switch port's queue cannot hold is dropped.  That
is where the order of sending matters.  Compared, in turn, round by round:

  rounds, all-at-once              blinksort's schedules
  same-order                       UDP, all send to rank 0 first, then to 1, ...
  cubic, bbr                       TCP with this congestion control, if the
                                   kernel has it; a connection for each pair,
                                   all at once

1,000,000 records in all.  The table has the median over the rounds of the time
of the exchange, from the first rank's begin to the last rank's end; how much of
that the link itself takes for a node's share, headers included; and what the
switch's queues have dropped, packets a round.

Each run begins when free memory has settled (bench/memory.py): 3 s after the
one before, and some of it touched.
"""

import argparse
import os
import statistics
import sys
import tempfile

from cluster import Cluster
from links import (HEADER_BYTES_UDP, ask, counted, exchange_ns, links,
                   make_inputs, sort, wire_ms)
from memory import settle_memory
from programs import BUILD, ROOT, Failed, Skip, must_run

RECORDS = 1_000_000
BYTES = RECORDS * 100
SCHEDULES = ("rounds", "all-at-once")
CONTROLS = ("cubic", "bbr")
# For an MTU of 1500, what a packet holds of the records and beside them.
UDP_PACKET = (1440, HEADER_BYTES_UDP)
TCP_PACKET = (1448, 14 + 20 + 32)
HEADING = (f"{'nodes':>5} {'Mbit/s':>6}  {'':12}{'exchange':>8} {'min':>6} "
           f"{'link':>6} {'ratio':>6} {'dropped':>8} {'resent':>7}\n"
           f"{'':5} {'':6}  {'':12}{'ms':>8} {'ms':>6} {'ms':>6}")


def link_ms(name, nodes, mbit):
    """What a node must receive, at its link's rate."""
    bytes_in = BYTES / nodes * (nodes - 1) / nodes
    packet = TCP_PACKET if name in CONTROLS else UDP_PACKET
    return wire_ms(bytes_in, *packet, mbit)


class Competitor:
    """What is measured of one."""

    def __init__(self, name, resent):
        self.name = name
        self.samples_ms, self.drops, self.resent = [], 0, resent


class Sorter(Competitor):
    """One of blinksort's schedules."""

    def __init__(self, name, folder):
        super().__init__(name, resent=0)
        self.folder = folder

    def exchange_ns(self, cluster):
        said, _ = sort(cluster, self.folder, f"--schedule={self.name}")
        self.resent += sum(rank["resent_datagrams"] for rank in said["ranks"])
        return exchange_ns(said)


class Baseline(Competitor):
    """exchange_baseline, which says when it began and ended."""

    def __init__(self, name, built):
        super().__init__(name, resent=None)
        self.built = built

    def exchange_ns(self, cluster):
        hosts = [host.rsplit(":", 1)[0] for host in cluster.hosts]
        report = ask(cluster, self.built, self.name, str(BYTES), *hosts)
        times = [list(map(int, node["stdout"].split()))
                 for node in report["nodes"]]
        return max(end for _, end in times) - min(begin for begin, _ in times)


def baselines():
    """What there is of them in this kernel."""
    path = "/proc/sys/net/ipv4/tcp_available_congestion_control"
    with open(path, encoding="ascii") as file:
        controls = file.read().split()
    return ["same-order"] + [name for name in CONTROLS if name in controls]


def compile_baseline():
    """Where the daemons let it be started."""
    folder = BUILD / "bench" / "tests"
    folder.mkdir(parents=True, exist_ok=True)
    built = str(folder / "exchange_baseline")
    must_run(os.environ.get("CC", "gcc"), "-std=gnu11", "-D_GNU_SOURCE", "-O2",
             "-pthread", "-o", built,
             str(ROOT / "tests/bench/exchange_baseline.c"))
    return built


def measure(nodes, mbit, queue_kib, rounds, built):
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/dev/shm") \
            as folder, Cluster(nodes, "--netns", f"--rate={mbit}",
                               f"--queue={queue_kib}") as cluster:
        make_inputs(folder, nodes, RECORDS)
        competitors = [Sorter(name, folder) for name in SCHEDULES] + [
            Baseline(name, built) for name in baselines()]
        for number in range(rounds + 1):
            for one in competitors:
                run_once(one, cluster, keep=number > 0)
    for one in competitors:
        print(row(one, nodes, mbit, rounds), flush=True)


def run_once(one, cluster, keep):
    drops, resent = counted(cluster, "drops"), one.resent
    settle_memory()
    ns = one.exchange_ns(cluster)
    if keep:
        one.samples_ms.append(ns / 1e6)
        one.drops += counted(cluster, "drops") - drops
    else:
        one.resent = resent


def row(one, nodes, mbit, rounds):
    own_ms = link_ms(one.name, nodes, mbit)
    median = statistics.median(one.samples_ms)
    resent = "" if one.resent is None else f"{one.resent / rounds:8.0f}"
    return (f"{nodes:5} {mbit:6}  {one.name:12}{median:8.0f} "
            f"{min(one.samples_ms):6.0f} {own_ms:6.0f} {median / own_ms:6.2f} "
            f"{one.drops / rounds:8.0f}{resent}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--queue", type=int, default=128)
    parser.add_argument("--nodes", type=links, action="append")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench_links.py: network namespaces need root")
    print(f"{options.rounds} rounds, queues of {options.queue} KiB\n{HEADING}",
          flush=True)
    try:
        built = compile_baseline()
        # So slow that two CPUs can do what all nodes and the switch do.
        for nodes, mbit in options.nodes or ((4, 100), (8, 50), (16, 25)):
            measure(nodes, mbit, options.queue, options.rounds, built)
    except (Skip, Failed) as reason:
        sys.exit(f"bench_links.py: {reason}")


if __name__ == "__main__":
    main()
