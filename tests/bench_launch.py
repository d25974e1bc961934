#!/usr/bin/env python3
"""How long a command takes to start everywhere and to be heard of.

usage: tests/bench_launch.py [--launches=N] [--nodes=N]

Starts a cluster on this machine (tests/cluster) and measures, by blinksh's own
clock, from its first datagram to the last node's end, launches of a program
that does nothing:

  warm   one client that has its sessions, one launch after the other
  cold   a client process for each launch, which asks for its sessions first
  flood  warm, one node, while junk is sent to it as fast as it goes

and beside it what there is of mpirun, and the whole process of a cold client,
as a shell would see it.  Microseconds; rows are tab-separated.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.environ.get("BIN", os.path.join(REPO, "bin"))
TINY = os.path.join(REPO, "build/musl/tests/true_tiny")


def build_tiny():
    """A static program: starting a dynamic one takes four times as long."""
    subprocess.run(["make", "-s", "-C", REPO, "build/musl/tests/true_tiny"],
                   check=True)


class Cluster:
    def __init__(self, nodes):
        self.folder = tempfile.mkdtemp(prefix="blinksort-bench.", dir="/tmp")
        self.tool = os.path.join(REPO, "tests/cluster")
        self.environment = dict(os.environ, BIN=BIN, BLINK_PORT="27300",
                                BLINK_CLUSTER=self.folder + "/cluster")
        self.nodes = nodes

    def __enter__(self):
        self.call("up", str(self.nodes))
        for line in self.call("env").splitlines():
            name, value = line.removeprefix("export ").split("=", 1)
            self.environment[name] = value
        with open(self.environment["WCOLL"], encoding="ascii") as file:
            self.first = file.readline().strip()
        return self

    def __exit__(self, *_):
        self.call("down")
        shutil.rmtree(self.folder)

    def call(self, *arguments):
        return subprocess.run([self.tool, *arguments], check=True, text=True,
                              env=self.environment, stdout=subprocess.PIPE
                              ).stdout

    def launch(self, *options):
        """The samples of one client, in microseconds."""
        output = subprocess.run(
            [BIN + "/blinksh", "--json", *options, "--", TINY], check=True,
            env=self.environment, stdout=subprocess.PIPE).stdout
        return [ns / 1000 for ns in json.loads(output)["samples_whole_ns"]]


def row(name, samples):
    samples = sorted(samples)
    points = [samples[min(int(len(samples) * part), len(samples) - 1)]
              for part in (0, 0.5, 0.9, 0.99, 1)]
    print("\t".join([name, str(len(samples))] + ["%.0f" % us for us in points]),
          flush=True)
    return points[1]


def timed(command, count, **others):
    samples = []
    for _ in range(count):
        begin = time.monotonic_ns()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL,
                       **others)
        samples.append((time.monotonic_ns() - begin) / 1000)
    return samples


def flood(address):
    """A process that sends junk for ever."""
    pid = os.fork()
    if pid:
        return pid
    host, port = address.rsplit(":", 1)
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.connect((host, int(port)))
    junk = [os.urandom(length) for length in (256, 1200)]
    while True:
        for datagram in junk:
            one.send(datagram)


def measure_mpirun(nodes, warm_us):
    for name in ("mpirun.mpich", "mpirun.openmpi"):
        path = shutil.which(name)
        if not path:
            print("# %s is not installed: skipped" % name)
            continue
        command = [path, "-n", str(nodes), TINY]
        if name == "mpirun.openmpi":
            command[1:1] = ["--oversubscribe", "--allow-run-as-root"]
        median = row(name, timed(command, 20, stderr=subprocess.DEVNULL))
        print("# %s / warm: %.0f x" % (name, median / warm_us))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launches", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=16)
    options = parser.parse_args()
    count = options.launches

    build_tiny()
    print("launch, us\tsamples\tmin\tmedian\tp90\tp99\tmax")
    with Cluster(options.nodes) as cluster:
        name = "%d nodes, " % options.nodes
        one = ("-w", cluster.first)
        warm_us = row(name + "warm", cluster.launch("--repeat=%d" % count))
        row(name + "cold", [cluster.launch()[0] for _ in range(count)])
        row(name + "cold, whole process", timed(
            [BIN + "/blinksh", "-q", "--", TINY], count,
            env=cluster.environment))
        row("1 node, warm", cluster.launch(*one, "--repeat=%d" % count))
        row("1 node, cold", [cluster.launch(*one)[0] for _ in range(count)])
        pid = flood(cluster.first)
        try:
            row("1 node, warm, flood",
                cluster.launch(*one, "--repeat=%d" % count,
                               "--lost-after=60"))
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    measure_mpirun(options.nodes, warm_us)
    return 0


sys.exit(main())
