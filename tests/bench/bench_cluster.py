#!/usr/bin/python3
"""Time the cluster sort on this machine, whole jobs by their client.

USAGE: tests/bench/bench_cluster.py [--label LABEL] [--rounds N]

Daemons on loopback (tests/cluster) start as many ranks; blinksh, from before
its start to after its end, is what is timed, by bench_spawn: sessions, start of
all ranks, reading, exchange, writing and all ends.  "client" is blinksh's own
time, from its first datagram to the last node's end.

What is compared runs alternately, A B A B ..., on the same records in the same
run, and the figure to trust is the ratio, taken pair by pair.  One round before
the counted ones warms up; after the last one all outputs are checked.

SCENARIOS
  ranks-N         1,000,000 ascii records in N equal inputs, sorted by N ranks;
                  against one process on the same records in one file
  schedule-NAME   16 ranks; against all at once, the default on one machine
  by-reference    16 ranks, --by-reference=yes; against sending the records
  datagram-NAME   16 ranks: small datagrams, without batches; against neither
  mpich, openmpi  16 ranks; against an MPI program that makes as many records
                  and exchanges them with one MPI_Alltoallv, but neither reads
                  nor sorts nor writes; start-up included in both

PLACES: as of bench_files.py.

ENVIRONMENT
  BENCH_ONLY    words; only scenarios whose PLACE/NAME holds one of them

Below each row: medians over the rounds, of phases the ranks' median of each.

All samples, what each rank has said in the last round, and a description of the
machine go to results/bench-DATE-cluster-LABEL.json; to build/ instead when not
everything was run, or in 5 rounds or fewer.
"""

import argparse
import contextlib
import datetime
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from cluster import Cluster
from duel import Contestant, Spawner, duel
from files import RECORD_BYTES, make_input, write_pieces
from machine import describe_machine, describe_programs
from places import PLACES
from programs import (BUILD, ROOT, Failed, Skip, must_run, program,
                      quiet)
from report import HEADING, NAME_WIDTH, ms, record_results, row, summary

RECORDS = 1_000_000
NODES = 16
PLACE_BYTES = 1 << 30


# Of each rank; they follow each other.
PHASES = ("open", "join", "bucket", "arrange", "exchange", "order", "finish",
          "meet", "commit")


class Job(Contestant):
    """A cluster sort through blinksh."""

    def __init__(self, cluster, place, ranks, *options, name=None):
        self.place, self.ranks = place, ranks
        self.client_ns, self.report = [], None
        self.phases_ns = {phase: [] for phase in PHASES}
        command = [
            program("blinksh"), "--json", "-w", cluster.first(ranks), "--",
            program("blinksort"), "--cluster", "--json", *options,
            f"{place.folder}/in-{ranks}.%r", "-o", f"{place.folder}/out.%r"]
        super().__init__(name or f"{ranks} ranks", command,
                         before=self.remove_outputs, check=self.check_outputs)

    def outputs(self):
        return [self.place.folder / f"out.{rank}"
                for rank in range(self.ranks)]

    def remove_outputs(self):
        for path in self.place.folder.glob("out.*"):
            path.unlink()

    def run(self, spawner, output, counted):
        super().run(spawner, output, counted)
        report = json.loads(spawner.output.read_text(encoding="utf-8"))
        self.report = json.loads(report["nodes"][0]["stdout"])
        # Where this machine keeps its files belongs in no record.
        for key in ("inputs", "outputs"):
            self.report[key] = [Path(name).name for name in self.report[key]]
        if not counted:
            return
        self.client_ns.append(report["whole_ns"])
        for phase, samples in self.phases_ns.items():
            samples.append(statistics.median(
                rank[f"{phase}_ns"] for rank in self.report["ranks"]))

    def check_outputs(self, _output):
        """Byte for byte what one process makes of it."""
        with open(self.place.folder / "sorted", "rb") as wanted:
            for path in self.outputs():
                data = path.read_bytes()
                if wanted.read(len(data)) != data:
                    raise Failed(f"{path.name}: not the records sorted")
            if wanted.read(1):
                raise Failed("records are missing")


class Alone(Contestant):
    """One process on the same records."""

    def __init__(self, place):
        super().__init__("alone", [program("blinksort"), str(place.input),
                                   "-o", str(place.output)])


class Mpi(Contestant):
    """As many ranks, started by this mpirun, exchange as many records."""

    def __init__(self, name, command):
        super().__init__(name, command)
        self.exchange_ns = []

    def run(self, spawner, output, counted):
        super().run(spawner, output, counted)
        if counted:
            said = spawner.output.read_text(encoding="ascii").split()
            self.exchange_ns.append(int(said[-1]))


def cut_inputs(place, ranks):
    """in-RANKS.0 ...: the input in equal parts."""
    data = place.input.read_bytes()
    part = -(-RECORDS // ranks) * RECORD_BYTES
    for rank in range(ranks):
        path = place.folder / f"in-{ranks}.{rank}"
        write_pieces(path, data[rank * part:(rank + 1) * part])
        with open(path, "rb") as file:
            os.fsync(file.fileno())


def against_alone(ranks):
    def contest(cluster, place, _scratch):
        return [Job(cluster, place, ranks), Alone(place)]
    return contest


def against_plain_job(name, *options):
    def contest(cluster, place, _scratch):
        return [Job(cluster, place, NODES, *options, name=name),
                Job(cluster, place, NODES, name="default")]
    return contest


def against_mpi(name):
    def contest(cluster, place, scratch):
        compiler = shutil.which(f"mpicc.{name}")
        launcher = shutil.which(f"mpirun.{name}")
        if not compiler or not launcher:
            raise Skip(f"no {name}: make bench-deps installs it")
        built = str(scratch / f"alltoall_{name}")
        must_run(compiler, "-std=gnu11", "-O2", "-o", built,
                 str(ROOT / "tests/bench/alltoall_mpi.c"))
        command = [launcher, "-n", str(NODES), built, str(RECORDS)]
        if name == "openmpi":
            command[1:1] = ["--oversubscribe", "--allow-run-as-root"]
        return [Job(cluster, place, NODES), Mpi(name, command)]
    return contest


def contests():
    """name -> (places, a function that returns the contestants)"""
    everywhere = tuple(PLACES)
    table = {f"ranks-{ranks}": (everywhere if ranks == NODES else ("shm",),
                                against_alone(ranks))
             for ranks in (1, 2, 4, 8, NODES)}
    table["schedule-rounds"] = (("shm",), against_plain_job(
        "rounds", "--schedule=rounds"))
    table["by-reference"] = (everywhere, against_plain_job(
        "by-reference", "--by-reference=yes"))
    table["datagram-small"] = (("shm",), against_plain_job(
        "1472", "--payload=1472"))
    table["datagram-small-plain"] = (("shm",), against_plain_job(
        "plain", "--payload=1472", "--plain"))
    for name in ("mpich", "openmpi"):
        table[name] = (("shm",), against_mpi(name))
    return table


class Bench:
    """The run: what was measured, skipped and failed."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.only = os.environ.get("BENCH_ONLY", "").replace(",", " ").split()
        self.results, self.skipped, self.failed = [], [], []

    def wanted(self, name):
        return not self.only or any(word in name for word in self.only)

    def note(self, kind, name, reason):
        reason = str(reason).replace(f"{ROOT}/", "")
        getattr(self, kind).append({"name": name, "reason": reason})
        print(f"{name:{NAME_WIDTH}}{kind}: {reason}", flush=True)

    def measure(self, spawner, name, place, contestants):
        duel(spawner, place.output, self.rounds, contestants)
        result = summary(contestants)
        for shown, contestant in zip(result["contestants"], contestants):
            shown["elapsed_ns"] = contestant.elapsed_ns
            for key in ("client_ns", "phases_ns", "exchange_ns", "report"):
                if getattr(contestant, key, None):
                    shown[key] = getattr(contestant, key)
        self.results.append({"name": name, "place": place.name,
                             "load_average_1min": os.getloadavg()[0],
                             "rounds": self.rounds, **result})
        print(row(name, result), flush=True)
        self.explain(contestants)

    @staticmethod
    def explain(contestants):
        job, other = contestants
        parts = [f"client {ms(statistics.median(job.client_ns))}"]
        parts += [f"{phase} {ms(statistics.median(samples))}"
                  for phase, samples in job.phases_ns.items()]
        if isinstance(other, Mpi):
            parts.append("its exchange alone "
                         f"{ms(statistics.median(other.exchange_ns))}")
        print(f"{'':{NAME_WIDTH}}  {', '.join(parts)}", flush=True)

    def run_place(self, spawner, cluster, place, names, scratch):
        make_input(place.input, "-a", RECORDS)
        must_run(program("blinksort"), str(place.input), "-o",
                 str(place.folder / "sorted"))
        for ranks in (1, 2, 4, 8, NODES):
            cut_inputs(place, ranks)
        for name in names:
            full_name = f"{place.name}/{name}"
            try:
                contestants = contests()[name][1](cluster, place, scratch)
                self.measure(spawner, full_name, place, contestants)
            except Skip as reason:
                self.note("skipped", full_name, reason)
            except (Failed, OSError, KeyError, ValueError) as reason:
                self.note("failed", full_name, repr(reason))
            Job(cluster, place, NODES).remove_outputs()


def run_all(bench):
    places = {}
    BUILD.mkdir(exist_ok=True)
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix="bench-", dir=BUILD)))
        cluster = stack.enter_context(Cluster(NODES))
        os.environ.update(cluster.environment)
        spawner = Spawner(scratch)
        stack.callback(spawner.close)
        for place_name, enter in PLACES.items():
            names = [name for name, (where, _) in contests().items()
                     if place_name in where
                     and bench.wanted(f"{place_name}/{name}")]
            if not names:
                continue
            try:
                with enter(scratch, PLACE_BYTES) as place:
                    places[place_name] = place.describe()
                    bench.run_place(spawner, cluster, place, names, scratch)
            except Skip as reason:
                bench.note("skipped", place_name, reason)
    return places


def label_of(text):
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", text):
        raise argparse.ArgumentTypeError("letters, digits, dots and dashes")
    return text


def describe_mpi():
    return {f"{name}_version": (quiet([path, "--version"]) or "").split("\n")[0]
            for name in ("mpich", "openmpi")
            if (path := shutil.which(f"mpirun.{name}"))}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--label", default="local", type=label_of)
    parser.add_argument("--rounds", default=21, type=int)
    options = parser.parse_args()
    # So that daemons are ended and what was mounted is unmounted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))

    bench = Bench(options.rounds)
    document = {"label": options.label,
                "date": datetime.datetime.now(datetime.timezone.utc).isoformat(
                    timespec="seconds"),
                "rounds": bench.rounds, "warmup_rounds": 1, "only": bench.only,
                "records": RECORDS, "machine": describe_machine(),
                **describe_programs(), **describe_mpi()}
    print(f"{document['machine']['cpu_model']}, "
          f"{document['machine']['cpus_allowed']} CPUs; "
          f"{document['blinksort_version']}, {bench.rounds} rounds; "
          f"{RECORDS} records\n{HEADING}", flush=True)
    try:
        document["places"] = run_all(bench)
    except (Skip, subprocess.CalledProcessError) as reason:
        sys.exit(f"bench_cluster.py: {reason}")
    return record_results(bench, document, f"cluster-{options.label}",
                          complete=not bench.only and bench.rounds > 5)


if __name__ == "__main__":
    sys.exit(main())
