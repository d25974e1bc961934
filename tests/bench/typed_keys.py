"""Records with typed keys, and the programs that sort them."""

import os
import subprocess

from duel import Contestant
from files import write_pieces
from programs import Failed, program

COUNT = 10_000_000
OPTIONS = {"u64": ("--record-size=16", "--key=0:u64"),
           "f64": ("--record-size=8", "--key=0:f64")}


def _numbers(name):
    import numpy as np
    rng = np.random.default_rng(1)
    if name == "floats":
        return rng.random(COUNT)
    if name == "small":
        return rng.integers(0, 256, COUNT)
    if name == "million":
        return rng.integers(0, 10**6, COUNT)
    if name == "zipf":
        return np.minimum(rng.zipf(1.3, COUNT), 2**40)
    if name in ("bursts", "sorted"):
        # Nanoseconds; after one record of a thousand there is a pause.
        pause = rng.random(COUNT) < 0.001
        steps = np.where(pause, rng.integers(10**6, 10**9, COUNT),
                         rng.integers(0, 50, COUNT))
        times = 1_700_000_000_000_000_000 + np.cumsum(steps)
        return times if name == "sorted" else rng.permutation(times)
    return rng.integers(0, 2**64, COUNT, np.uint64)


def make_numbers(path, name):
    import numpy as np
    numbers = _numbers(name)
    if name != "floats":
        records = np.empty((COUNT, 2), "<u8")
        records[:, 0] = numbers
        records[:, 1] = np.arange(COUNT)
        numbers = records
    write_pieces(path, numbers.tobytes())
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def check_in_order(source, kind):
    def check(output):
        done = subprocess.run(
            [program("blinkval"), "-q", str(output), *OPTIONS[kind],
             "--against", str(source)], text=True, capture_output=True,
            check=False)
        if done.returncode != 0:
            raise Failed("the output is not the input, sorted: "
                         f"{done.stderr.strip()[-200:]}")
    return check


def blinksort_typed(place, kind, *options, name="blinksort", source=None):
    source = source or place.input
    return Contestant(
        name, [program("blinksort"), *OPTIONS[kind], *options, str(source),
               "-o", str(place.output)],
        check=None if options else check_in_order(source, kind))
