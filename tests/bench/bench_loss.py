#!/usr/bin/python3
"""The cluster sort's time against random loss.

USAGE: tests/bench/bench_loss.py [--rounds N] [--records N] [--percent P]...
                           [--nodes N:MBIT]...

As root.  Nodes are network namespaces whose links let so many Mbit/s through
(tests/cluster --rate), or, if MBIT is 0, whatever the CPUs can do.  Of what
goes from node to node, records and all that ranks say of them, nftables drops
each packet with the same probability: 0, 0.1, 1, 5 and 20 % in turn, round by
round.  The outputs are checked by blinkval each time.

The table has medians over the rounds: of the exchange, from the first rank's
begin to the last rank's end, and of the whole job by its client; each also as a
ratio to the first loss, which is none, of that round.  "ideal" is that ratio
where lost packets are sent again and nothing else takes time: 1 / (1 - loss).
"resent" is of the datagrams with records, beside how many there were; "status"
are the others.

Each run begins when free memory has settled (bench/memory.py): 3 s after the
one before, and some of it touched.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

from cluster import Cluster
from files import valsort_report
from links import exchange_ns, links, make_inputs, sort
from memory import settle_memory
from programs import Failed, Skip, must_run, tool

PERCENTS = (0.0, 0.1, 1.0, 5.0, 20.0)
TABLE = f"blinkloss{os.getpid()}"
# Of so many random numbers those below the loss are dropped.
DRAWS = 100_000
HEADING = (f"{'nodes':>5} {'Mbit/s':>6} {'loss':>6} {'exchange':>9} "
           f"{'ratio':>6} {'job':>7} {'ratio':>6} {'ideal':>6} {'resent':>7} "
           f"{'of':>7} {'status':>7}\n"
           f"{'':5} {'':6} {'%':>6} {'ms':>9} {'':6} {'ms':>7}")


@dataclass
class Level:
    """What is measured at one loss, round by round."""
    percent: float
    exchange_ms: list[float] = field(default_factory=list)
    job_ms: list[float] = field(default_factory=list)
    resent: list[int] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    status: list[int] = field(default_factory=list)

    def add(self, said, job_ns):
        def total(key):
            return sum(rank[key] for rank in said["ranks"])
        self.exchange_ms.append(exchange_ns(said) / 1e6)
        self.job_ms.append(job_ns / 1e6)
        self.resent.append(total("resent_datagrams"))
        self.sent.append(total("sent_datagrams"))
        self.status.append(total("status_datagrams"))


def bridge_of(cluster):
    """The number of its bridge, from 10.177.NUMBER.2:PORT."""
    return cluster.hosts[0].split(".")[2]


def send_packets_singly(cluster):
    """A packet is lost, not all that was sent with one call."""
    for node in range(1, len(cluster.hosts) + 1):
        must_run("ip", "-n", f"blink{bridge_of(cluster)}-{node}", "link",
                 "set", "eth0", "gso_max_segs", "1")


def set_loss(cluster, percent):
    """Between nodes; what the client and the daemons say is not forwarded."""
    rules = f"""
        table bridge {TABLE}
        delete table bridge {TABLE}
        table bridge {TABLE} {{
            chain through {{
                type filter hook forward priority 0;
                iifname "bl{bridge_of(cluster)}-*" ip protocol udp \\
                    numgen random mod {DRAWS} \\
                    < {round(percent / 100 * DRAWS)} counter drop
            }}
        }}
    """
    done = subprocess.run([tool("nft"), "-f", "-"], input=rules, text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise Skip(f"nft: {done.stderr.strip()[:200]}")


def end_loss():
    subprocess.run([tool("nft"), "delete", "table", "bridge", TABLE],
                   capture_output=True, check=False)


def check_outputs(folder, nodes, checksum):
    outputs = [f"{folder}/out.{rank}" for rank in range(nodes)]
    if valsort_report(*outputs) != (0, checksum):
        raise Failed("the outputs are not the inputs, sorted")


def run_rounds(cluster, folder, levels, rounds):
    """The first round warms up."""
    inputs = [f"{folder}/in.{rank}" for rank in range(len(cluster.hosts))]
    checksum = valsort_report(*inputs)[1]
    for number in range(rounds + 1):
        for level in levels:
            settle_memory()
            set_loss(cluster, level.percent)
            said, job_ns = sort(cluster, folder)
            check_outputs(folder, len(cluster.hosts), checksum)
            if number > 0:
                level.add(said, job_ns)


def measure(nodes, mbit, options):
    levels = [Level(percent) for percent in options.percent or PERCENTS]
    limits = [f"--rate={mbit}"] if mbit else []
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/dev/shm") \
            as folder, Cluster(nodes, "--netns", *limits) as cluster:
        make_inputs(folder, nodes, options.records)
        send_packets_singly(cluster)
        try:
            run_rounds(cluster, folder, levels, options.rounds)
        finally:
            end_loss()
    for level in levels:
        print(row(level, levels[0], nodes, mbit), flush=True)


def ratio(samples, base):
    return statistics.median(a / b for a, b in zip(samples, base))


def row(level, base, nodes, mbit):
    median = statistics.median
    ideal = (100 - base.percent) / (100 - level.percent)
    return (f"{nodes:5} {mbit or '-':>6} {level.percent:6g} "
            f"{median(level.exchange_ms):9.0f} "
            f"{ratio(level.exchange_ms, base.exchange_ms):6.3f} "
            f"{median(level.job_ms):7.0f} "
            f"{ratio(level.job_ms, base.job_ms):6.3f} {ideal:6.3f} "
            f"{median(level.resent):7.0f} {median(level.sent):7.0f} "
            f"{median(level.status):7.0f}")


def loss(text):
    """A percentage, as an option's type."""
    if not re.fullmatch(r"\d+(\.\d+)?", text) or float(text) > 90:
        raise argparse.ArgumentTypeError("not a percentage of up to 90")
    return float(text)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    # So many that a run with losses, too, ends before memory freed ahead of
    # it is given back.
    parser.add_argument("--records", type=int, default=700_000)
    parser.add_argument("--percent", type=loss, action="append")
    parser.add_argument("--nodes", type=links, action="append")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bench_loss.py: network namespaces need root")
    print(f"{options.rounds} rounds, {options.records} records\n{HEADING}",
          flush=True)
    try:
        # So slow that two CPUs can do what all nodes and the switch do.
        for nodes, mbit in options.nodes or ((4, 100), (8, 50)):
            measure(nodes, mbit, options)
    except (Skip, Failed) as reason:
        sys.exit(f"bench_loss.py: {reason}")


if __name__ == "__main__":
    main()
