"""How many records this machine could sort for a cent, in one sort: a
PennySort, by the sorter's model of sorts beyond memory.

The disk of the work folder is measured a few times as blinksort --explain does
it; for each of these the size is sought whose sort blinksort --explain
--suppose predicts to take the time that a cent buys.
"""

import json
import os

from trials.base.failure import Failure
from trials.base.programs import first_line
from trials.scenario import inputs

# Fewer measurements give no interval of the median.
MEASUREMENTS = 6
# The records are more than the sorter may take in this memory, so that it
# measures the disk.
PROBE_RECORDS = 640_000
PROBE_MEMORY = "32M"
# The sorter can be supposed to sort this much alone; no machine has memory for
# it.
RECORDS_MAX = (32 << 40) // inputs.RECORD_BYTES
# The model is not worth more digits.
PRECISION = 1 / 4096


class Unpredicted(Exception):
    """Why there is no prediction."""


def predict(programs, work: str, seconds: float) -> dict:
    """The prediction as it is recorded: what was predicted, or why_not."""
    try:
        # All predictions are for one size of memory, or what is free now and
        # then would count.
        memory = _explain(programs, f"--suppose=1:{RECORDS_MAX}")[
            "memory_bytes"]
        rates = _measure(programs, work)
        sizes = [_largest(programs, one, memory, seconds) for one in rates]
        room = max(_room_bytes(programs, one, memory, size)
                   for one, size in zip(rates, sizes))
    except Unpredicted as reason:
        return unpredicted(str(reason))
    disk = os.statvfs(work)
    return {"why_not": None, "memory_bytes": memory,
            "disk_rates": rates, "records": sizes, "room_bytes": room,
            "disk_bytes": disk.f_blocks * disk.f_frsize}


def unpredicted(why_not: str) -> dict:
    return {"why_not": why_not, "memory_bytes": None,
            "disk_rates": [], "records": [], "room_bytes": None,
            "disk_bytes": None}


def _explain(programs, *arguments) -> dict:
    done = programs.call("blinksort", "--explain", "--json", *arguments)
    if done.returncode != 0:
        why = (first_line(done.stderr) or "it fails").removeprefix(
            "blinksort: ")
        raise Unpredicted(f"blinksort: {why}")
    return json.loads(done.stdout)


def _measure(programs, work):
    # No user's file; one that a killed session has left is written over.
    source = f"{work}/.blinktrial-probe"
    try:
        inputs.generate(source, PROBE_RECORDS, True, 0, programs)
        inputs.flush(source)
        return [_rates(programs, work, source) for _ in range(MEASUREMENTS)]
    except (Failure, OSError) as reason:
        # The disk may be full with the input.
        raise Unpredicted(str(reason)) from None
    finally:
        inputs.remove(source)


def _rates(programs, work, source):
    arguments = ("--explain", "--json", "-S", PROBE_MEMORY, "-T", work,
                 "--io=direct", source, "-o", f"{source}.out")
    done = programs.call("blinksort", *arguments)
    document = json.loads(done.stdout) if done.returncode == 0 else {}
    if not document.get("disk_rates"):
        raise Unpredicted((first_line(done.stderr) or
                           f"the disk of {work} can't be measured")
                          .removeprefix("blinksort: "))
    return document["disk_rates"]


def _suppose(programs, rates, memory, records):
    given = ":".join(str(rates[name]) for name
                     in ("read", "write", "both", "requests")
                     if rates.get(name))
    return _explain(programs, f"--suppose=1:{records}", "-S", memory,
                    f"--disk-rates={given}")


def _largest(programs, rates, memory, seconds) -> int:
    """The number of records that take so long, by bisection."""
    def takes_too_long(records):
        found = _suppose(programs, rates, memory, records)
        if found["fits"]:
            return False
        return bool(found["refused"]) or found["predicted_ns"] > seconds * 1e9

    low, high = 1, RECORDS_MAX
    if not takes_too_long(high):
        return high
    while high - low > max(1, low * PRECISION):
        middle = max(low + 1, round((low * high) ** 0.5))
        if takes_too_long(middle):
            high = middle
        else:
            low = middle
    if _suppose(programs, rates, memory, low)["fits"]:
        raise Unpredicted(
            f"{seconds:.4g} s suffice for no sort beyond this machine's "
            "memory, and the model is of no other")
    return low


def _room_bytes(programs, rates, memory, records):
    """The room that input, scratch files and output take."""
    found = _suppose(programs, rates, memory, records)
    return 2 * found["bytes"] + found["scratch_bytes"]
