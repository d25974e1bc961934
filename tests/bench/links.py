"""Cluster sorts between network namespaces, and how long they exchanged."""

import argparse
import json
import re
import subprocess
from pathlib import Path

from programs import Failed, must_run, program

# What a token bucket counts of a datagram beside the records in it, on Ethernet
# and IPv4: the Ethernet header, but nothing else of what is on a wire, the
# headers of IP and UDP, and the exchange's own.
HEADER_BYTES_UDP = 14 + 20 + 8 + 32
# Of a rank, one after the other, before its exchange.
BEFORE = ("open_ns", "join_ns", "bucket_ns", "arrange_ns")


def links(text):
    """NODES:MBIT, as an option's type."""
    found = re.fullmatch(r"(\d+):(\d+)", text)
    if not found:
        raise argparse.ArgumentTypeError("not of the form NODES:MBIT")
    return int(found.group(1)), int(found.group(2))


def make_inputs(folder, nodes, records):
    """in.RANK: equal parts of so many records."""
    for rank in range(nodes):
        first = records * rank // nodes
        count = records * (rank + 1) // nodes - first
        must_run(program("blinkgen"), "-a", f"-b{first}", str(count),
                 f"{folder}/in.{rank}")


def wire_ms(size_bytes, payload_bytes, header_bytes, mbit):
    """How long a link takes for so many bytes in such packets."""
    packets = size_bytes / payload_bytes
    return packets * (payload_bytes + header_bytes) * 8 / mbit / 1000


def counted(cluster, counter):
    """What the queues of all ports of the switch have counted so far: of drops,
    or of bytes."""
    bridge = cluster.hosts[0].split(".")[2]
    return sum(
        json.loads(must_run("tc", "-s", "-j", "qdisc", "show", "dev",
                            f"bl{bridge}-{node}"))[0][counter]
        for node in range(1, len(cluster.hosts) + 1))


def ask(cluster, *command, timeout_s=90):
    """What blinksh reports."""
    done = subprocess.run(
        [program("blinksh"), "--json", f"--timeout={timeout_s}", "--",
         *command],
        env=cluster.environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{Path(command[0]).name}: status {done.returncode}: "
                     f"{done.stderr.strip()[-200:]}")
    return json.loads(done.stdout)


def sort(cluster, folder, *options, timeout_s=90):
    """(what rank 0 reports, ns of the job by its client) of a cluster sort."""
    # All nodes share this machine's few CPUs: one thread each.
    report = ask(cluster, program("blinksort"), "--cluster", "--json",
                 "--threads=1", *options, f"{folder}/in.%r",
                 "-o", f"{folder}/out.%r", timeout_s=timeout_s)
    return json.loads(report["nodes"][0]["stdout"]), report["whole_ns"]


def exchange_ns(said):
    """From the first rank's begin to the last rank's end, by rank 0's clock."""
    begins, ends = [], []
    for rank in said["ranks"]:
        begins.append(rank["begin_ns"] + sum(rank[key] for key in BEFORE))
        ends.append(begins[-1] + rank["exchange_ns"])
    return max(ends) - min(begins)
