#!/usr/bin/env python3
"""How long a command takes to start everywhere and to be heard of.

usage: tests/bench/bench_launch.py [--launches=N] [--nodes=N]

Starts a cluster on this machine (tests/cluster) and measures, by blinksh's own
clock, from its first datagram to the last node's end, launches of a program
that does nothing:

  warm   one client that has its sessions, one launch after the other
  apart  the same, but each one comes when nothing has happened for 30 ms
  cold   a client process for each launch, which asks for its sessions first
  flood  warm, one node, while junk is sent to it as fast as it goes
  +MiB   warm, one node whose daemon has so much memory more, all of it touched:
         what fork(2) would copy the tables of

and beside it what there is of mpirun, and the whole process of a cold client,
as a shell would see it.  Microseconds; rows are tab-separated.

So that the figures mean something on any machine, warm launches alternate with
those of a bare prototype, bench_bare.c: as many processes that each start
the same program by vfork and execve upon a datagram, wait for it and answer,
without authentication, output, limits or a way to end a job.  The
lines "# ... warm / bare" say how much longer blinksh takes: the ratio of the
medians, and of the minima, of all samples.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

REPO = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BIN = os.environ.get("BIN", os.path.join(REPO, "bin"))
TINY = os.path.join(REPO, "build/musl/tests/programs/true_tiny")
BARE = os.path.join(REPO, "build/musl/tests/bench/bench_bare")
BLOCKS = 20  # of warm launches and bare ones, by turns
WARM_UP = 10  # launches of each block that do not count; bench_bare's, too
# What can be preloaded, and what is to be: memory for blinkd alone.
DYNAMIC_BIN = os.path.join(REPO, "build/dyn/bin")
BALLAST = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

__attribute__((constructor)) static void take_ballast(void)
{
        size_t bytes = strtoul(getenv("BALLAST_MIB"), NULL, 10) << 20;

        if (bytes > 0 && strcmp(program_invocation_short_name, "blinkd") == 0)
                mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
}
"""


def make(*targets):
    subprocess.run(["make", "-s", "-C", REPO, *targets], check=True,
                   stdout=subprocess.DEVNULL)


class Cluster:
    def __init__(self, nodes, folder_of_programs=BIN, **environment):
        self.folder = tempfile.mkdtemp(prefix="blinksort-bench.", dir="/tmp")
        self.tool = os.path.join(REPO, "tests/cluster")
        self.environment = dict(os.environ, BIN=folder_of_programs,
                                BLINK_PORT="27300", **environment,
                                BLINK_CLUSTER=self.folder + "/cluster")
        self.nodes = nodes

    def __enter__(self):
        self.call("up", str(self.nodes))
        for line in self.call("env").splitlines():
            name, value = line.removeprefix("export ").split("=", 1)
            self.environment[name] = value
        with open(self.environment["WCOLL"], encoding="ascii") as file:
            self.hosts = file.read().split()
        return self

    def __exit__(self, *_):
        self.call("down")
        shutil.rmtree(self.folder)

    def call(self, *arguments):
        return subprocess.run([self.tool, *arguments], check=True, text=True,
                              env=self.environment, stdout=subprocess.PIPE
                              ).stdout

    def ask(self, *arguments):
        return json.loads(subprocess.run(
            [BIN + "/blinksh", "--json", *arguments], check=True,
            env=self.environment, stdout=subprocess.PIPE).stdout)

    def launch(self, *options):
        """The samples of one client, in microseconds."""
        samples = self.ask(*options, "--", TINY)["samples_whole_ns"]
        return [ns / 1000 for ns in samples]


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


def bare(nodes, count):
    lines = subprocess.run([BARE, str(nodes), str(count), TINY], check=True,
                           text=True, stdout=subprocess.PIPE).stdout.split()
    return [int(ns) / 1000 for ns in lines]


def measure_warm(cluster, nodes, count):
    """Warm launches on so many nodes, and bare ones, by turns."""
    some = ("-w", ",".join(cluster.hosts[:nodes]))
    name = "%d node%s, " % (nodes, "s" if nodes > 1 else "")
    samples = {"warm": [], "bare": []}
    for _ in range(BLOCKS):
        samples["warm"] += cluster.launch(
            *some, "--repeat=%d" % (count // BLOCKS + WARM_UP))[WARM_UP:]
        samples["bare"] += bare(nodes, count // BLOCKS)
    medians = {kind: row(name + kind, samples[kind]) for kind in samples}
    print("# %swarm / bare: median %.2f, min %.2f" % (
        name, medians["warm"] / medians["bare"],
        min(samples["warm"]) / min(samples["bare"])))
    row(name + "apart", cluster.launch(
        *some, "--repeat=%d" % (count // 5 + WARM_UP),
        "--interval=0.03")[WARM_UP:])
    return medians["warm"]


def measure_memory(count):
    """Small and large daemon by turns, so that both see the same machine."""
    sizes = (0, 256)
    samples = {mib: [] for mib in sizes}
    with tempfile.TemporaryDirectory() as folder, \
            contextlib.ExitStack() as stack:
        library = folder + "/ballast.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "-xc", "-"],
                       input=BALLAST, text=True, check=True)
        clusters = {mib: stack.enter_context(
            Cluster(1, DYNAMIC_BIN, LD_PRELOAD=library, BALLAST_MIB=str(mib)))
            for mib in sizes}
        for _ in range(10):
            for mib, cluster in clusters.items():
                samples[mib] += cluster.launch("--repeat=%d" % (count // 10))
        for mib, cluster in clusters.items():
            row("1 node, warm, +%d MiB" % mib, samples[mib])
            print("# its daemon: %.1f MiB resident" % (
                cluster.ask("status")["nodes"][0]["resident_bytes"] / 2**20))


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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--launches", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=16)
    options = parser.parse_args()
    count = max(options.launches, BLOCKS)

    # A static program: starting a dynamic one takes four times as long.
    make("build/musl/tests/programs/true_tiny",
         "build/musl/tests/bench/bench_bare")
    make("build/dyn/bin/blinkd", "build/dyn/bin/blinksh")
    print("launch, us\tsamples\tmin\tmedian\tp90\tp99\tmax")
    with Cluster(options.nodes) as cluster:
        name = "%d nodes, " % options.nodes
        one = ("-w", cluster.hosts[0])
        warm_us = measure_warm(cluster, options.nodes, count)
        row(name + "cold", [cluster.launch()[0] for _ in range(count)])
        row(name + "cold, whole process", timed(
            [BIN + "/blinksh", "-q", "--", TINY], count,
            env=cluster.environment))
        measure_warm(cluster, 1, count)
        row("1 node, cold", [cluster.launch(*one)[0] for _ in range(count)])
        pid = flood(cluster.hosts[0])
        try:
            row("1 node, warm, flood",
                cluster.launch(*one, "--repeat=%d" % count,
                               "--lost-after=60"))
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    measure_memory(count)
    measure_mpirun(options.nodes, warm_us)
    return 0


sys.exit(main())
