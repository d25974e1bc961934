"""Runs of blinksort, by one process or several ranks, and what they wrote."""

import argparse
import collections
import os
import subprocess

import numpy as np

# It only ends what hangs.
LIMIT_S = 300

# How a process ended, and the bytes that it printed.
Ended = collections.namedtuple("Ended", "status out err")


def parse_arguments(whats=None, has_kernels=True):
    """[--only=N] [WHAT] COUNT SEED [KERNELS] COMMAND..."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", type=int)
    if whats:
        parser.add_argument("what", choices=whats)
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    if has_kernels:
        parser.add_argument("kernels", type=lambda text: text.split(","))
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args()


def any_options(rng):
    """Those that change nothing of the output."""
    options = []
    for choice in (["", "--io=auto", "--io=buffered", "--io=mmap",
                    "--io=direct"],
                   ["", "--splitters=auto", "--splitters=static",
                    "--splitters=sampled"],
                   ["", "--threads=1", "--threads=2", "--threads=3",
                    "--threads=5"]):
        options.append(str(rng.choice(choice)))
    return [option for option in options if option]


def any_parts(rng, raw, count):
    """The records in so many parts, one behind the other; some may be
    empty."""
    return np.split(raw, np.sort(rng.integers(0, len(raw) + 1, count - 1)))


def write_parts(rng, raw, names):
    for name, part in zip(names, any_parts(rng, raw, len(names))):
        part.tofile(name)


def differs(found, want):
    """What is wrong with these bytes, or None; want are rows."""
    rows = want.reshape(-1).tobytes()
    if found == rows:
        return None
    if len(found) != len(rows):
        return f"{len(found)} bytes, not {len(rows)}"
    first = next(i for i, (a, b) in enumerate(zip(found, rows)) if a != b)
    return (f"record {first // want.shape[1]} of {len(want)} is "
            "not the expected one")


def wrong(names, want):
    """What is wrong with the outputs, or None."""
    found = b""
    for name in names:
        with open(name, "rb") as file:
            found += file.read()
    return differs(found, want)


def remove(names):
    for name in names:
        if os.path.exists(name):
            os.unlink(name)


# --- processes ----------------------------------------------------------------

def run(command, stdin=subprocess.DEVNULL, descriptors=()):
    done = subprocess.run(command, capture_output=True, stdin=stdin,
                          pass_fds=descriptors, timeout=LIMIT_S, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def run_ranks(commands):
    """All at once."""
    environment = {name: value for name, value in os.environ.items()
                   if name != "BLINK_KEY"}
    ranks, ended = [], []
    try:
        for command in commands:
            ranks.append(subprocess.Popen(
                command, stdin=subprocess.DEVNULL, env=environment,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        for rank in ranks:
            out, err = rank.communicate(timeout=LIMIT_S)
            ended.append(Ended(rank.returncode, out, err))
    finally:
        end_all(ranks)
    return ended


def end_all(ranks):
    for rank in ranks:
        if rank.poll() is None:
            rank.kill()
        rank.wait()


def complaint(ended):
    """What was said by those that failed, or said anything; or None."""
    said = [f"rank {number}: status {rank.status}: "
            f"{rank.err[:400].decode(errors='replace').strip()}"
            for number, rank in enumerate(ended) if rank.status or rank.err]
    return "; ".join(said) or None
