"""Runs of gigabytes: whole processes within a limit of memory, and their costs.

A contestant runs one step after the other; a step is a pipeline of commands.
Its commands run in one memory cgroup, which counts the page cache that they
use, too, and is made anew for each run.
"""

import contextlib
import os
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from memory import REPORTED_S, back_memory
from programs import ROOT, Failed, Skip

sys.path.insert(0, str(ROOT / "results"))

from trials.base.documents import loads  # noqa: E402
from trials.machine import counters  # noqa: E402
from trials.machine.memory_cgroup import (  # noqa: E402
    MemoryCgroup, Unavailable)

# GNU sort takes 16 s a GB; what thrashes must end, too.
TIMEOUT_S, TIMEOUT_S_PER_GB = 60, 300
# More than any JSON document of blinksort's.
SAID_BYTES = 1 << 20
DISK_COUNTERS = ("disk_read_bytes", "disk_written_bytes")


@dataclass
class Contestant:
    """What runs, within limit_bytes of memory."""
    name: str
    steps: list  # of pipelines: lists of commands
    limit_bytes: int
    before: object = None  # called off the clock
    check: object = None   # called with the output, off the clock
    # Of a pipeline: the command that the limit is for; None: all.
    limited: int | None = None
    # A function of a MemoryCgroup and a command; None: its command().
    enter: object = None
    timeout_s: float = TIMEOUT_S
    # Another's program: that it fails within this memory is a result.
    peer: bool = False
    samples: list = field(default_factory=list)

    def __post_init__(self):
        self.enter = self.enter or MemoryCgroup.command

    def run(self, place):
        """Run once; the sample."""
        return run(self, place)


def start(contestant, cgroup, pipeline, said, errors):
    """Start all commands of a pipeline; the last one's output goes to said,
    which is a file."""
    started, source = [], subprocess.DEVNULL
    try:
        for number, words in enumerate(pipeline):
            if contestant.limited in (None, number):
                words = contestant.enter(cgroup, words)
            last = number == len(pipeline) - 1
            process = subprocess.Popen(
                words, stdin=source, stderr=errors,
                stdout=said if last else subprocess.PIPE,
                env=dict(os.environ, LC_ALL="C"))
            if source is not subprocess.DEVNULL:
                source.close()
            source = process.stdout
            started.append(process)
    except BaseException:
        end(started)
        raise
    return started


def end(started):
    for process in started:
        process.kill()
        process.wait()


def wait(started, contestant, errors):
    """Until all have ended; the resources that each one has used."""
    name, expired, used = contestant.name, [], []

    def expire():
        expired.append(True)
        for process in started:
            # The id still belongs to a process that was not waited for.
            if process.returncode is None:
                process.kill()
    timer = threading.Timer(contestant.timeout_s, expire)
    timer.start()
    try:
        for process in started:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            used.append(usage)
    except BaseException:
        end(one for one in started if one.returncode is None)
        raise
    finally:
        timer.cancel()
    if expired:
        raise Failed(f"{name}: did not end within "
                     f"{contestant.timeout_s:.0f} s")
    for process in started:
        if process.returncode != 0:
            errors.seek(0)
            why = errors.read().decode("utf-8", "replace").strip()[-200:]
            raise Failed(f"{name}: status {process.returncode}: {why}")
    return used


def run_steps(contestant, cgroup, folder):
    """The costs of one run; what the last command has printed."""
    user_s = system_s = 0
    with open(folder / "said", "w+b") as said, \
            open(folder / "errors", "w+b") as errors:
        begin_ns = time.monotonic_ns()
        for pipeline in contestant.steps:
            output = said
            with contextlib.ExitStack() as stack:
                # A path behind the commands is where the last one writes.
                if isinstance(pipeline[-1], Path):
                    output = stack.enter_context(open(pipeline[-1], "wb"))
                    pipeline = pipeline[:-1]
                used = wait(start(contestant, cgroup, pipeline, output,
                                  errors), contestant, errors)
            user_s += sum(usage.ru_utime for usage in used)
            system_s += sum(usage.ru_stime for usage in used)
        elapsed_ns = time.monotonic_ns() - begin_ns
        said.seek(0)
        text = said.read(SAID_BYTES)
    return {"elapsed_ns": elapsed_ns, "user_ns": round(user_s * 1e9),
            "system_ns": round(system_s * 1e9)}, text


def external_of(text):
    """What blinksort says of a sort beyond memory; None if it says nothing."""
    try:
        document = loads(text)
    except ValueError:
        return None
    found = document.get("external") if isinstance(document, dict) else None
    return found if isinstance(found, dict) else None


def settle(limit_bytes):
    """What the last run has freed is given back by now, and as much as the next
    one may use is there: see memory.py."""
    free_bytes = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    time.sleep(REPORTED_S)
    back_memory(min(limit_bytes, free_bytes // 10 * 9))()


def run(contestant, place):
    """Run once; the sample."""
    place.output.unlink(missing_ok=True)
    if contestant.before:
        contestant.before()
    settle(contestant.limit_bytes)
    try:
        cgroup = MemoryCgroup(contestant.limit_bytes)
    except Unavailable as reason:
        raise Skip(f"no limit of memory: {reason}") from None
    with cgroup:
        before = counters.read(str(place.folder))
        sample, text = run_steps(contestant, cgroup, place.folder)
        moved = counters.difference(before, counters.read(str(place.folder)))
        sample.update({name: moved.get(name) for name in DISK_COUNTERS},
                      peak_bytes=cgroup.peak_bytes(),
                      killed=cgroup.killed(), external=external_of(text))
    return sample


def alternate(contestants, place, rounds, dropped):
    """All contestants in each round; one that fails, or can't run here, is
    left out from then on: `dropped` is called with it and the reason.
    The output of the last round is checked.  Returns those that are left."""
    left = list(contestants)
    for number in range(rounds):
        for contestant in list(left):
            try:
                contestant.samples.append(contestant.run(place))
                if number == rounds - 1 and contestant.check:
                    contestant.check(place.output)
            except (Failed, Skip, Unavailable, OSError) as reason:
                left.remove(contestant)
                dropped(contestant, reason)
    place.output.unlink(missing_ok=True)
    return left


# --- figures ------------------------------------------------------------------

def ratio(contestant, baseline):
    """The median of the ratios, round by round."""
    return round(statistics.median(
        a["elapsed_ns"] / b["elapsed_ns"]
        for a, b in zip(contestant.samples, baseline.samples)), 4)


def median(samples, key):
    values = [sample[key] for sample in samples if sample[key] is not None]
    return round(statistics.median(values)) if values else None


def largest(samples, key):
    return max((sample[key] for sample in samples
                if sample[key] is not None), default=None)


def summary(contestants, size_bytes):
    """For each contestant: medians, and ratios to each of the others that are
    there to be compared with."""
    return [{
        "name": one.name,
        "limit_bytes": one.limit_bytes,
        "median_ns": median(one.samples, "elapsed_ns"),
        "cpu_s_per_gb": round(statistics.median(
            (s["user_ns"] + s["system_ns"]) / size_bytes
            for s in one.samples), 3),
        "peak_bytes": largest(one.samples, "peak_bytes"),
        "spilled_bytes": spilled_bytes(one.samples),
        "ratios": {other.name: ratio(one, other)
                   for other in contestants if other is not one},
        "samples": one.samples,
    } for one in contestants]


def spilled_bytes(samples):
    found = [(sample["external"] or {}).get("spilled_bytes")
             for sample in samples]
    found = [value for value in found if isinstance(value, int)]
    return round(statistics.median(found)) if found else None


HEADING = (f"{'':34}{'median':>8}{'CPU':>7}{'peak':>7}{'spilled':>8}"
           f"{'ratio to':>9}\n"
           f"{'':34}{'s':>8}{'s/GB':>7}{'MB':>7}{'MB':>8}{'the last':>9}")


def rows(name, found):
    """Lines of a table; the last contestant of a row is what the others are
    compared with."""
    def mb(value):
        return "-" if value is None else f"{value / 1e6:.0f}"
    lines = [name]
    for one in found:
        against = one["ratios"].get(found[-1]["name"])
        lines.append(
            f"  {one['name']:32}{one['median_ns'] / 1e9:8.3f}"
            f"{one['cpu_s_per_gb']:7.2f}{mb(one['peak_bytes']):>7}"
            f"{mb(one['spilled_bytes']):>8}"
            + (f"{against:9.3f}" if against else ""))
    return "\n".join(lines)
