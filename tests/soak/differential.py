#!/usr/bin/python3
"""Sorts of random shape, in all ways that blinksort has, against numpy.

usage: tests/soak/differential.py [--seed=N] [--only=N] [--bin=FOLDER] COUNT

Each job draws its records and keys as tests/programs/sort_keys.py does, and
then the way: one process or 2 to 5 ranks, in memory or within a few megabytes,
from files or a pipe, into files, a pipe or one file of all ranks.  The output
must be what numpy makes of the records.  A job may be refused, by status 5, if
its memory is too little; it then leaves no output.  --only=N repeats one job,
whose number a failure names.

Files are made in a folder of $TMPDIR.  Prints how many jobs ended how; the
last line is "N passed, M failed", and the status is 1 if any output was wrong.
"""

import argparse
import collections
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

import numpy as np

REPO = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "tests" / "programs"))
import key_reference  # noqa: E402
import sort_runs  # noqa: E402

# The memory that a job draws may be too little.
REFUSAL = 5
# It only ends what hangs.
LIMIT_S = 120
# A job beyond memory has so many times the bytes of a small input.
REPEATS_MAX = 40
INPUT_BYTES_MAX = 24 << 20


def any_input(rng, beyond_memory):
    given = key_reference.any_input(rng)
    if beyond_memory and len(given.raw):
        most = INPUT_BYTES_MAX // max(1, given.raw.nbytes)
        repeats = max(1, min(int(rng.integers(1, REPEATS_MAX)), most))
        raw = np.tile(given.raw, (repeats, 1))
        # The copies of a record differ, so that their order is seen.
        column = int(rng.integers(0, given.size))
        raw[:, column] += (np.arange(len(raw)) % 251).astype(np.uint8)
        given.raw = np.ascontiguousarray(raw[rng.permutation(len(raw))])
    return given


def some(rng, *choices):
    """One of these options, or none."""
    option = str(rng.choice(["", *choices]))
    return [option] if option else []


def any_options(rng, beyond_memory):
    options = [*some(rng, "--kernel=scalar", "--kernel=avx2"),
               *some(rng, "--io=buffered", "--io=mmap", "--io=direct"),
               *some(rng, "--splitters=static", "--splitters=sampled"),
               *some(rng, "--checksum")]
    if beyond_memory:
        options += [f"-S{rng.choice([6, 8, 12, 16, 24])}M", "-Tscratch",
                    *some(rng, "--compress=lz4", "--compress=zstd",
                          "--compress=auto"),
                    *some(rng, "--disk-rates=150M:150M:150M:150")]
    return options


class Job:
    """Commands that run at once, what goes in, and where the output is."""

    def __init__(self, rng, program, number):
        self.beyond_memory = bool(rng.integers(0, 2))
        self.given = any_input(rng, self.beyond_memory)
        self.ins, self.outs, self.stdin = [], [], None
        self.stdout = False
        self.common = [*self.given.options(),
                       *any_options(rng, self.beyond_memory)]
        if rng.integers(0, 3):
            self.commands = [self.alone(rng, program)]
        else:
            self.commands = self.ranks(rng, program, number)

    def alone(self, rng, program):
        command = [program, *self.common, *some(
            rng, "--threads=1", "--threads=2", "--threads=3", "--threads=5",
            "--threads=8")]
        if self.beyond_memory:
            command += some(rng, "--batch-size=2", "--batch-size=5")
        if rng.integers(0, 4) == 0:
            self.stdin = self.given.raw.tobytes()
            command.append("-")
        else:
            self.ins = [f"in.{i}" for i in range(rng.choice([1, 2, 5, 40]))]
            command += self.ins
        if rng.integers(0, 4) == 0:
            self.stdout = True
            return command + ["-o", "-"]
        # Beyond memory, and of a pipe, --unique has one output.
        counts = [1, 1, 1 if "--unique" in self.common else 3]
        self.outs = [f"out.{i}" for i in range(rng.choice(counts))]
        return command + some(rng, "--sync") + [
            f"-o{name}" for name in self.outs]

    def ranks(self, rng, program, number):
        count = int(rng.choice([2, 3, 5]))
        common = [program, *self.common, "--deadline=60",
                  f"--nodes=127.0.0.[2-{count + 1}]",
                  f"--job=differential.{os.getpid()}.{number}",
                  f"--threads={rng.choice([1, 2, 3])}",
                  *some(rng, "--plain"), *some(rng, "--payload=1200"),
                  *some(rng, "--transport=udp", "--by-reference=auto")]
        self.ins = [f"in.{i}" for i in range(count)]
        inputs = [[name] for name in self.ins]
        dice = rng.integers(0, 4) if self.beyond_memory else 0
        if dice == 1:
            common.append("--shared-input")
            inputs = [self.ins] * count
        elif not self.beyond_memory:
            common += some(rng, "--schedule=grid", "--schedule=all-at-once")
        elif dice == 2:
            # The last rank reads nothing of what it names.
            common.append(f"--roles=read:0-{count - 2},sort:0-{count - 1},"
                          f"keep:{count - 1}")
            self.ins = self.ins[:count - 1]
        # Beyond memory, --unique writes no gathered file.
        gathers = bool(rng.integers(0, 3) == 0) and not (
            self.beyond_memory and "--unique" in self.common)
        self.outs = [f"out.{i}" for i in range(
            rng.integers(1, count + 1) if gathers else count)]
        return [[*common, f"--rank={rank}", *inputs[rank],
                 *([f"--gather={name}" for name in self.outs] if gathers
                   else [f"-oout.{rank}"])]
                for rank in range(count)]

    def run(self):
        """The worst status, what was said, and what standard output got."""
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started = [subprocess.Popen(command, stdin=subprocess.PIPE, **streams)
                   for command in self.commands]
        status, said, found = 0, [], b""
        try:
            for process in started:
                out, error = process.communicate(self.stdin, LIMIT_S)
                found += out
                status = max(status, abs(process.returncode))
                said.append(error.decode(errors="replace").strip())
        except subprocess.TimeoutExpired:
            status, said = 124, ["it does not end"]
        finally:
            for process in started:
                process.kill()
                process.wait()
        return status, "; ".join(filter(None, said)), found


def found_in(names):
    found = b""
    for name in names:
        with open(name, "rb") as file:
            found += file.read()
    return found


def verdict(job):
    """What became of the job, and what is wrong with that, or None."""
    rng = np.random.default_rng([len(job.given.raw), len(job.ins)])
    if job.ins:
        sort_runs.write_parts(rng, job.given.raw, job.ins)
    status, said, found = job.run()
    if status == REFUSAL:
        left = [name for name in job.outs if os.path.exists(name)]
        return f"status {status}", f"left {left}" if left else None
    if status != 0:
        return f"status {status}", said or "no word"
    if not job.stdout:
        found = found_in(job.outs)
    if found != job.given.expected().tobytes():
        return "status 0", "the output is not what numpy makes of it"
    return "status 0", None


def run_job(arguments, number):
    rng = np.random.default_rng([arguments.seed, number])
    job = Job(rng, str(arguments.bin / "blinksort"), number)
    outcome, why = verdict(job)
    kind = ("ranks" if len(job.commands) > 1 else "alone") + (
        " beyond memory" if job.beyond_memory else "")
    if why:
        print(f"  {why}\n  of: {shlex.join(job.commands[0])}\n"
              f"  repeat by --seed={arguments.seed} --only={number}",
              flush=True)
    sort_runs.remove([*job.ins, *job.outs])
    return f"{kind}: {outcome}", why is None


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=os.getpid())
    parser.add_argument("--only", type=int)
    parser.add_argument("--bin", type=pathlib.Path, default=REPO / "bin")
    parser.add_argument("count", type=int)
    arguments = parser.parse_args()
    arguments.bin = arguments.bin.resolve()
    return arguments


def main():
    arguments = parse_arguments()
    numbers = ([arguments.only] if arguments.only is not None
               else range(arguments.count))
    outcomes, passed, failed = collections.Counter(), 0, 0
    with tempfile.TemporaryDirectory(prefix="differential.") as folder:
        os.chdir(folder)
        os.mkdir("scratch")
        for number in numbers:
            outcome, good = run_job(arguments, number)
            outcomes[outcome] += 1
            passed, failed = passed + good, failed + (not good)
        os.chdir("/")
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:6} {outcome}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
