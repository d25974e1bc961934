#!/usr/bin/python3
"""Sorts beyond memory that fail in the middle: none hangs, none is wrong.

usage: tests/soak/failing_sorts.py [--seed=N] [--only=N] [--bin=FOLDER]
           [--load=K] [--seconds=T] [--ways=WAY,...] [COUNT]

COUNT sorts (2000), or as many as begin within T seconds, with random options:
with --unique or not, 2 threads or 8, lz4 or nothing, all ways of reading, a
disk with an arm or not, keys of many values or of few.  While each runs,
something happens to it:

  cut      its input is cut short
  removed  its input is removed
  stream   its standard input ends in the middle of a record
  reader   the reader of its standard output goes away
  full     another program fills the disk that its scratch files are on (root)
  output   the same, of its output (root)
  corrupt  bytes of that disk change (root)

Those marked (root) mount small file systems on loop devices, and are skipped by
name without root.  With --load=K so many busy processes run beside.

A sort ends with status 0 and a whole output, or with 3 or 5, one line of
complaint and no output; and nothing else is left.  A sort that lives on for
10 s without using any CPU or waiting for a disk hangs: what its threads wait
for is printed, with their stacks where there is gdb (with names, if it is of
build/dyn/bin).

Files are made in a folder of $TMPDIR.  Prints how many sorts ended how; the
last line is "N passed, M failed, K hung", and the status is 1 if any failed or
hung.  --only=N repeats one sort, whose number a failure names.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

REPO = pathlib.Path(__file__).resolve().parents[2]
RECORD_BYTES = 100
KEY_BYTES = 10
RECORDS = 300000
DISK_WITH_AN_ARM = "--disk-rates=150M:150M:150M:150"
# Little more than a sort takes at least, by threads, in MiB; of a stream.
MEMORY_MIB = {2: 8, 8: 14}
STREAM_MIB = 4
# Scratch files take the size of the input at most, and so does an output.
DISK_BYTES = 64 << 20
# Where a file system of that size keeps what is not the contents of files.
METADATA_BYTES = 8 << 20
# A file system that has been corrupted is made anew after so many sorts.
CORRUPTED_MAX = 20
HANGS_S = 10
# It ends what is busy, and does not end.
LIMIT_S = 300
LOOK_S = 0.005
# io_uring closes the files of a process some time after its end.
TRIES = 2000
ROOT_WAYS = ("full", "output", "corrupt")
# And how often each is chosen: few sorts need the name of their input.
WAYS = {"cut": 4, "removed": 1, "stream": 3, "reader": 3, "full": 3,
        "output": 3, "corrupt": 4}


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


# --- inputs -----------------------------------------------------------------


class Data:
    """An input, and its sorts."""

    def __init__(self, rng, key_count):
        keys = [rng.randbytes(KEY_BYTES) for _ in range(key_count)]
        rest = RECORD_BYTES - KEY_BYTES - 4
        records = [rng.choice(keys) + number.to_bytes(4, "big") +
                   bytes([number % 251]) * rest for number in range(RECORDS)]
        self.bytes = b"".join(records)
        records.sort(key=lambda record: record[:KEY_BYTES])
        self.sorted = b"".join(records)
        firsts = {}
        for record in records:
            firsts.setdefault(record[:KEY_BYTES], record)
        self.unique = b"".join(firsts.values())


# --- a small disk -----------------------------------------------------------


class Disk:
    """An ext4 of its own, on a loop device over a file."""

    def __init__(self, folder, name):
        self.image = folder / f"{name}.image"
        self.place = folder / name
        self.place.mkdir()
        self.uses = 0
        self.open()

    def open(self):
        with open(self.image, "wb") as image:
            image.truncate(DISK_BYTES)
        run("mkfs.ext4", "-q", "-F", "-b", "4096", "-N", "64", "-m", "0",
            "-O", "^has_journal", self.image)
        run("mount", "-o", "loop", self.image, self.place)

    def close(self):
        for _ in range(TRIES):
            if subprocess.run(["umount", self.place],
                              stderr=subprocess.DEVNULL).returncode == 0:
                break
            time.sleep(LOOK_S)
        # A mount namespace that another program has made meanwhile may hold
        # the file system still, and its device.
        self.image.unlink()

    def renew(self):
        self.uses += 1
        if self.uses % CORRUPTED_MAX == 0:
            self.close()
            self.open()


# --- what happens meanwhile -------------------------------------------------


class Way:
    """Of one sort: what it gets, and what happens while it runs."""

    def __init__(self, soak, rng, moment_s):
        self.soak = soak
        self.rng = rng
        self.moment_s = moment_s
        self.work = soak.folder / "work"
        self.input = self.work / "in"
        self.output = self.work / "out"
        self.scratch = self.work / "scratch"
        self.data = rng.choice(soak.data)
        self.is_stream = rng.random() < 0.3
        self.stop = threading.Event()

    def folder(self):
        """Of the output."""
        return self.work

    def sources(self):
        """Arguments, and what standard input is."""
        if not self.is_stream:
            return [str(self.input)], subprocess.DEVNULL
        return ["-"], open(self.input, "rb")

    def prepare(self):
        """Its files; and so that the sort finds nothing else."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir()
        self.scratch.mkdir(exist_ok=True)
        self.input.write_bytes(self.data.bytes)

    def act(self, process):
        """In a thread, when the moment has come."""

    def run(self, process):
        if not self.stop.wait(self.moment_s):
            self.act(process)

    def end(self):
        """After the sort: what is left that was there before."""


class Cut(Way):
    """A stream would be shorter, and whole."""

    def __init__(self, soak, rng, moment_s):
        super().__init__(soak, rng, moment_s)
        self.is_stream = False

    def act(self, process):
        with contextlib.suppress(FileNotFoundError):
            os.truncate(self.input, self.rng.randrange(len(self.data.bytes)))


class Removed(Way):
    def act(self, process):
        self.input.unlink()


class Stream(Way):
    """A whole number of records would be an input, too."""

    def __init__(self, soak, rng, moment_s):
        super().__init__(soak, rng, moment_s)
        self.is_stream = True

    def sources(self):
        return ["-"], subprocess.PIPE

    def run(self, process):
        size = self.rng.randrange(RECORDS) * RECORD_BYTES + 1
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(memoryview(self.data.bytes)[:size])
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


class Reader(Way):
    """What it has read until then is the beginning of the output."""

    def __init__(self, soak, rng, moment_s):
        super().__init__(soak, rng, moment_s)
        self.output = "-"

    def run(self, process):
        left = self.rng.randrange(2 * len(self.data.bytes))
        self.got = process.stdout.read(left)
        process.stdout.close()


class Full(Way):
    """The room for a file's scratch files is allocated early."""

    def __init__(self, soak, rng, moment_s):
        super().__init__(soak, rng, moment_s)
        self.is_stream = rng.random() < 0.8
        self.disk = soak.disk("full")
        self.filler = self.disk.place / "filler"
        self.scratch = self.disk.place

    def act(self, process):
        with open(self.filler, "wb") as filler, \
                contextlib.suppress(OSError):
            for bytes_ in (1 << 20, 1 << 12):
                with contextlib.suppress(OSError):
                    while not self.stop.is_set():
                        os.posix_fallocate(filler.fileno(),
                                           filler.seek(0, os.SEEK_END),
                                           bytes_)

    def end(self):
        self.filler.unlink(missing_ok=True)


class Output(Full):
    def __init__(self, soak, rng, moment_s):
        super().__init__(soak, rng, moment_s)
        self.output = self.disk.place / "out"
        self.scratch = self.work / "scratch"

    def folder(self):
        return self.disk.place


class Corrupt(Way):
    """From its beginning on."""

    def __init__(self, soak, rng, moment_s):
        super().__init__(soak, rng, 0)
        self.disk = soak.disk("corrupt")
        self.disk.renew()
        self.scratch = self.disk.place
        self.pause_s = rng.choice([0.0002, 0.001, 0.004, 0.02])

    def act(self, process):
        with open(self.disk.image, "r+b", buffering=0) as image:
            while not self.stop.wait(self.pause_s):
                image.seek(self.rng.randrange(METADATA_BYTES, DISK_BYTES))
                image.write(self.rng.randbytes(self.rng.choice([1, 8, 64])))


KINDS = {"cut": Cut, "removed": Removed, "stream": Stream, "reader": Reader,
         "full": Full, "output": Output, "corrupt": Corrupt}


# --- one sort ---------------------------------------------------------------


def memory(way, threads):
    mib = MEMORY_MIB[threads] + STREAM_MIB * way.is_stream
    return [f"--threads={threads}", f"-S{mib}M"]


def any_options(rng, way):
    return [*memory(way, rng.choice(list(MEMORY_MIB))),
            *rng.choice([[], ["--unique"]]),
            *rng.choice([[], ["--compress=lz4"]]),
            *rng.choice([[], ["--batch-size=2"]]),
            *rng.choice([[], [DISK_WITH_AN_ARM]]),
            *rng.choice([[], ["--io=direct"], ["--io=buffered"],
                         ["--io=mmap"]])]


def tasks_of(pid):
    return list(pathlib.Path(f"/proc/{pid}/task").iterdir())


def life_sign(pid):
    """Something that changes while the process lives, and whether a thread of
    it runs or waits for a disk."""
    ticks, is_busy = [], False
    with contextlib.suppress(OSError):
        for task in tasks_of(pid):
            fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
            ticks.append((task.name, fields[11], fields[12]))
            is_busy |= fields[0] in "RD"
    return ticks, is_busy


def describe(pid):
    """What its threads wait for."""
    lines = []
    with contextlib.suppress(OSError):
        for task in tasks_of(pid):
            lines += [f"thread {task.name}: " + ", ".join(
                f"{name} {(task / name).read_text().strip()}"
                for name in ("comm", "wchan", "syscall"))]
    if shutil.which("gdb"):
        stacks = subprocess.run(
            ["gdb", "-batch", "-p", str(pid), "-ex", "set pagination off",
             "-ex", "thread apply all bt"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        lines += [stacks.stdout]
    return "\n".join(lines)


def wait_or_describe(process):
    """None when the process has ended, or why it was ended, and its threads."""
    begin = seen = time.monotonic()
    sign = None
    while process.poll() is None:
        time.sleep(LOOK_S)
        now, last = time.monotonic(), sign
        sign, is_busy = life_sign(process.pid)
        if is_busy or sign != last:
            seen = now
        if now - seen < HANGS_S and now - begin < LIMIT_S:
            continue
        why = "hangs" if now - seen >= HANGS_S else "does not end"
        said = f"{why}\n{describe(process.pid)}"
        process.kill()
        process.wait()
        return said
    return None


def left_over(folder, known):
    return sorted({path.name for path in folder.iterdir()} - known)


def judge(way, options, process, complaint):
    """How the sort has ended, and what is wrong with that, or None."""
    data = way.data
    want = data.unique if "--unique" in options else data.sorted
    status = process.returncode
    if way.output == "-":
        output = way.got if status == 0 else None
        if not want.startswith(way.got):
            return status, "its output has a wrong beginning"
    else:
        there = way.output.exists()
        output = way.output.read_bytes() if there else None
    if status not in (0, 3, 5):
        return status, "its status"
    if status == 0 and output != want and (
            way.output != "-" or len(output) == len(want)):
        return status, "its output is wrong, or there is none"
    if status != 0 and output is not None:
        return status, "it leaves an output"
    lines = complaint.splitlines()
    is_silent = way.output == "-" and not lines
    if status != 0 and not is_silent and (
            len(lines) != 1 or not lines[0].startswith("blinksort: ")):
        return status, f"its complaint: {complaint!r}"
    for folder in {way.scratch, way.work, way.folder()}:
        left = left_over(folder, {"in", "out", "scratch", "filler",
                                  "lost+found"})
        if left:
            return status, f"it leaves {left}"
    return status, None


class Soak:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        rng = random.Random(arguments.seed)
        self.data = [Data(rng, count) for count in (5, 1000, RECORDS)]
        self.disks = {}
        self.counts = collections.Counter()
        self.taken_s = 0
        # Times of the last sorts that have not failed.
        self.good_s = collections.deque(maxlen=9)

    def disk(self, name):
        if name not in self.disks:
            self.disks[name] = Disk(self.folder, name)
        return self.disks[name]

    def close(self):
        for disk in self.disks.values():
            disk.close()

    def start(self, way, options):
        sources, stdin = way.sources()
        command = [str(self.arguments.bin / "blinksort"), *sources,
                   f"-o{way.output}", f"-T{way.scratch}", *options]
        with open(self.folder / "complaint", "wb") as complaint:
            process = subprocess.Popen(
                command, stdin=stdin, stderr=complaint,
                stdout=subprocess.PIPE if way.output == "-" else None)
        if not isinstance(stdin, int):
            stdin.close()
        return command, process

    def sort(self, way, options):
        """Returns the command, the process, and why it was ended or None."""
        way.prepare()
        begin = time.monotonic()
        command, process = self.start(way, options)
        other = threading.Thread(target=way.run, args=(process,))
        other.start()
        hung = wait_or_describe(process)
        self.taken_s = time.monotonic() - begin
        way.stop.set()
        other.join()
        return command, process, hung

    def measure(self):
        """How long a sort takes to which nothing happens."""
        way = Way(self, random.Random(self.arguments.seed), LIMIT_S)
        _, process, hung = self.sort(way, memory(way, 2))
        self.good_s.append(self.taken_s)
        if hung or process.returncode != 0:
            sys.exit("failing_sorts.py: a sort fails to which nothing happens")

    def one(self, number, ways):
        """True: all is well."""
        rng = random.Random(f"{self.arguments.seed}.{number}")
        name = rng.choices(ways, [WAYS[way] for way in ways])[0]
        moment_s = statistics.median(self.good_s) * rng.random()
        way = KINDS[name](self, rng, moment_s)
        options = any_options(rng, way)
        command, process, hung = self.sort(way, options)
        complaint = (self.folder / "complaint").read_text(errors="replace")
        if hung:
            status, wrong = "hung", hung
        else:
            status, wrong = judge(way, options, process, complaint)
        if status == 0:
            self.good_s.append(self.taken_s)
        way.end()
        if way.output != "-":
            way.output.unlink(missing_ok=True)
        self.counts[name, status, "good" if wrong is None else "BAD"] += 1
        if wrong:
            print(f"sort {number}, {name}: {shlex.join(command)}: status "
                  f"{status}: {wrong}", flush=True)
        return wrong is None


def choose_ways(arguments):
    if os.geteuid() == 0:
        return arguments.ways
    for way in set(arguments.ways) & set(ROOT_WAYS):
        print(f"skip {way}: only root can mount")
    return [way for way in arguments.ways if way not in ROOT_WAYS]


def run_all(soak, ways):
    arguments = soak.arguments
    numbers = range(arguments.count)
    if arguments.only is not None:
        numbers = [arguments.only]
    soak.measure()
    end = time.monotonic() + arguments.seconds
    for number in numbers:
        if time.monotonic() > end:
            break
        soak.one(number, ways)
    for (way, status, is_good), count in sorted(soak.counts.items(), key=str):
        print(f"{count:6} {way:8} status {status}, {is_good}")
    count = soak.counts.total()
    hung = sum(n for (_, status, _), n in soak.counts.items()
               if status == "hung")
    bad = sum(n for (_, _, is_good), n in soak.counts.items()
              if is_good == "BAD")
    print(f"{count - bad} passed, {bad - hung} failed, {hung} hung")
    return bad > 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    parser.add_argument("--only", type=int)
    parser.add_argument("--bin", type=pathlib.Path, default=REPO / "bin")
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--ways", type=lambda text: text.split(","),
                        default=list(WAYS))
    parser.add_argument("count", type=int, nargs="?", default=2000)
    arguments = parser.parse_args()
    if not set(arguments.ways) <= WAYS.keys():
        parser.error("the ways are " + ", ".join(WAYS))
    print(f"seed {arguments.seed}", flush=True)
    ways = choose_ways(arguments)
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(arguments.load)]
    with tempfile.TemporaryDirectory(prefix="failing_sorts.") as folder:
        soak = Soak(arguments, pathlib.Path(folder))
        try:
            return run_all(soak, ways)
        finally:
            for process in load:
                process.kill()
                process.wait()
            soak.close()


if __name__ == "__main__":
    sys.exit(main())
