#!/usr/bin/python3
"""Sorts in control groups of little memory and on machines of many CPUs.

usage: tests/soak/memory_matrix.py [--seed=N] [--only=N] [--bin=FOLDER]
       [--disk=FOLDER] [--ramdisk=FOLDER] COUNT

Each run draws a memory limit of 64 MB to 4 GB, 1 to 256 CPUs, records and their
number, the input as a file or by a pipe, its pages cached by the same group or
not, the output on a disk or on a tmpfs, and at times scratch files there, too,
or -S.  It must end with 0 and the right output; or with 5, or 3 where scratch
files have no room in memory, and one line that says why, but only if
--threads=1 ends so, too.  What the kernel kills is a failure.  --only=N repeats
one run, whose number a failure names.

Only root can make control groups (version 1 or 2).  The number of CPUs is what
sched_getaffinity(2) is made to answer by a library for LD_PRELOAD, which cc
makes; so the programs are those that are linked with the C library
(build/dyn/bin).  Prints a line for each run; the last one is "N passed, M
failed", and the status is 1 if any failed.
"""

import argparse
import collections
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile

REPO = pathlib.Path(__file__).resolve().parents[2]
MB = 1000000
LIMITS_MB = (64, 96, 128, 256, 512, 1024, 2048, 4096)
CPUS = (1, 2, 8, 32, 64, 128, 256)
# Sizes of the input, as parts of the limit; and no more than this.
PARTS = (0.1, 0.3, 0.45, 0.6, 0.8, 0.95, 1.3, 2.5)
INPUT_BYTES_MAX = 400 * MB
# Record sizes and keys.
SHAPES = ((100, "0:10"), (16, "0:u64"), (16, "8:u64"), (4000, "0:4000"),
          (1, "0:1"), (100000, "0:8"))
# What is said beside the message, where the user has given -S.
WARNING = "scratch files here are memory, which --memory does not count"
# It only ends what hangs.
TIMEOUT_S = 600

AFFINITY = """
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
    int count = atoi(getenv("MATRIX_CPUS"));

    (void)pid;
    memset(set, 0, bytes);
    for (int i = 0; i < count; i++)
        CPU_SET_S(i, bytes, set);
    return 0;
}
"""


class Group:
    """A control group below that of this process."""

    def __init__(self):
        for number, controllers, path in (
                line.rstrip("\n").split(":", 2)
                for line in open("/proc/self/cgroup", encoding="ascii")):
            if "memory" in controllers.split(","):
                self.limit = "memory.limit_in_bytes"
                mount = pathlib.Path("/sys/fs/cgroup/memory")
                break
            if number == "0":
                self.limit = "memory.max"
                mount = pathlib.Path("/sys/fs/cgroup")
        self.path = mount / path.lstrip("/") / f"matrix-{os.getpid()}"
        self.path.mkdir()

    def set_limit(self, limit_bytes):
        # What the group has cached goes first.
        empty = self.path / "memory.force_empty"
        if empty.exists():
            empty.write_text("0")
        (self.path / self.limit).write_text(str(limit_bytes))

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        self.path.rmdir()


def uncache(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Matrix:
    def __init__(self, options, folder, ramdisk):
        self.options = options
        self.folder, self.ramdisk = folder, ramdisk
        self.group = Group()
        self.library = folder / "affinity.so"
        source = folder / "affinity.c"
        source.write_text(AFFINITY)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.library, source],
                       check=True)
        self.random = folder / "random"
        subprocess.run(f"head -c {INPUT_BYTES_MAX} /dev/urandom >{self.random}",
                       shell=True, check=True)

    def make_input(self, run):
        whole = run.bytes // run.size * run.size
        path = self.folder / "in"
        subprocess.run(f"head -c {whole} {self.random} >{path}", shell=True,
                       check=True)
        uncache(path)
        self.group.set_limit(run.limit)
        if run.is_cached:
            for _ in range(2):
                subprocess.run(["cat", path], stdout=subprocess.DEVNULL,
                               preexec_fn=self.group.enter, check=True)
        return path

    def sort(self, run, path, extra=()):
        """Status, message, and the output."""
        output = (self.ramdisk if run.to_ramdisk else self.folder) / "out"
        scratch = self.ramdisk if run.scratch_in_ramdisk else self.folder
        command = [self.options.bin / "blinksort",
                   "-" if run.is_pipe else path, "-o", output,
                   f"--record-size={run.size}", f"--key={run.key}",
                   "-T", scratch, *run.options, *extra]
        environment = {**os.environ, "LD_PRELOAD": str(self.library),
                       "MATRIX_CPUS": str(run.cpus)}
        writer = None
        if run.is_pipe:
            writer = subprocess.Popen(["cat", path], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL)
        done = subprocess.run(command, env=environment,
                              stdin=writer.stdout if writer else
                              subprocess.DEVNULL,
                              capture_output=True, text=True,
                              preexec_fn=self.group.enter, check=False,
                              timeout=TIMEOUT_S)
        if writer:
            writer.stdout.close()
            writer.wait()
        status = done.returncode
        return 128 - status if status < 0 else status, done.stderr, output

    def judge(self, run):
        """Why the run is wrong, or None; and how it ended."""
        path = self.make_input(run)
        status, message, output = self.sort(run, path)
        if status == 0:
            check = subprocess.run(
                [self.options.bin / "blinkval", "-q", output,
                 f"--record-size={run.size}", f"--key={run.key}",
                 f"--against={path}"], capture_output=True, text=True,
                check=False)
            output.unlink()
            return check.stderr if check.returncode else None, status
        allowed = (3, 5) if run.scratch_in_ramdisk else (5,)
        if output.exists():
            return f"status {status}, and an output", status
        lines = [line for line in message.splitlines()
                 if WARNING not in line]
        if status not in allowed or len(lines) != 1:
            return f"status {status}: {message}", status
        path = self.make_input(run)
        alone, _, output = self.sort(run, path, ("--threads=1",))
        output.unlink(missing_ok=True)
        if alone == 0:
            return f"refused, but not --threads=1: {message}", status
        return None, status


def draw(seed, number):
    rng = random.Random(f"{seed} {number}")
    run = argparse.Namespace()
    run.limit = rng.choice(LIMITS_MB) * MB // 4096 * 4096
    run.cpus = rng.choice(CPUS)
    run.size, run.key = rng.choice(SHAPES)
    run.bytes = min(int(rng.choice(PARTS) * run.limit), INPUT_BYTES_MAX)
    run.is_pipe = rng.random() < 0.4
    run.is_cached = rng.random() < 0.5
    run.to_ramdisk = rng.random() < 0.4
    run.scratch_in_ramdisk = rng.random() < 0.15
    run.options = rng.choice(([], [], [], ["--io=direct"], ["--io=mmap"],
                              [f"-S{run.limit // 2}"], ["--compress=lz4"],
                              ["--disk-rates=150M:150M:150M:150"]))
    if run.is_pipe:
        run.options = [o for o in run.options if not o.startswith("--io")]
    return run


def describe(run):
    return (f"{run.limit / MB:.0f} MB, {run.cpus} CPUs, {run.bytes / MB:.0f} MB"
            f" of {run.size}, key {run.key}, "
            f"{'pipe' if run.is_pipe else 'file'}, "
            f"{'hot' if run.is_cached else 'cold'}, to "
            f"{'tmpfs' if run.to_ramdisk else 'disk'}"
            f"{', scratch on tmpfs' if run.scratch_in_ramdisk else ''} "
            f"{' '.join(run.options)}").rstrip()


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split(
        "\n\n")[0])
    parser.add_argument("--seed", default=str(random.randrange(1 << 24)))
    parser.add_argument("--only", type=int)
    parser.add_argument("--bin", type=pathlib.Path,
                        default=REPO / "build" / "dyn" / "bin")
    parser.add_argument("--disk", default=os.environ.get("TMPDIR", "/var/tmp"))
    parser.add_argument("--ramdisk", default="/dev/shm")
    parser.add_argument("count", type=int, nargs="?", default=1)
    options = parser.parse_args()
    # Nothing stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = pathlib.Path(tempfile.mkdtemp(prefix="matrix-", dir=options.disk))
    ramdisk = pathlib.Path(tempfile.mkdtemp(prefix="matrix-",
                                            dir=options.ramdisk))
    numbers = range(options.count) if options.only is None else [options.only]
    ends = collections.Counter()
    failed = 0
    print(f"seed {options.seed}", flush=True)
    matrix = Matrix(options, folder, ramdisk)
    try:
        for number in numbers:
            run = draw(options.seed, number)
            why, status = matrix.judge(run)
            ends[status] += 1
            failed += why is not None
            print(f"{number}: {describe(run)}: {status}"
                  f"{' FAILED: ' + why.strip() if why else ''}", flush=True)
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(ramdisk)
        matrix.group.remove()
    print(", ".join(f"status {s}: {n}" for s, n in sorted(ends.items())))
    print(f"{len(numbers) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
