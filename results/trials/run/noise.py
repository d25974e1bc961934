"""Watches the CPUs before each trial, and before a block waits until they are
still.

To watch takes time in which caches become cold: while only the first trial of a
block was watched before, it took 5 % longer than the others.  So all are.
No noise that comes later is seen: a limit keeps blocks from beginning beside a
neighbour that is busy, not from meeting one.
"""

import time
from typing import Callable, NamedTuple

from trials.base import units
from trials.base.failure import Failure
from trials.record import noise as recorded

# Time from one look to the next while a run waits.
PAUSE_S = 0.5


class Limit(NamedTuple):
    """The most noise that is taken, and what is done if there is more."""

    percent: float
    refuse: bool = False

    def __str__(self):
        return f"{self.percent:g}" + (",refuse" if self.refuse else "")


class NoiseWatch:
    """`look` finds the places of a record; see machine/noise.py."""

    def __init__(self, look: Callable[[], list], limit: Limit | None,
                 wait_s: float, supervisor, progress):
        self._look = look
        self._limit = limit
        self._wait_s = wait_s
        self._supervisor = supervisor
        self._progress = progress
        self._has_complained = False

    def before_trial(self, begins_block: bool) -> dict:
        """"noise" of a trial.  Only the first one of a block is waited for.
        Failure: it is to be refused."""
        begin_ns, waited_s = time.monotonic_ns(), 0
        noise = {"limit_percent": None, "over_limit": None, "waited_ns": 0,
                 "looks": 0}
        while True:
            noise["places"] = self._look()
            noise["looks"] += 1
            self._complain(noise)
            if self._limit is None:
                return noise
            noise["limit_percent"] = self._limit.percent
            noise["over_limit"] = recorded.over_limit(noise,
                                                      self._limit.percent)
            if (not begins_block or noise["over_limit"] is not True
                    or self._supervisor.signal
                    or waited_s >= self._wait_s):
                break
            self._progress.wait(
                f"{worst(noise)}; waiting for {self._limit.percent:g} %")
            time.sleep(min(PAUSE_S, self._wait_s - waited_s))
            noise["waited_ns"] = time.monotonic_ns() - begin_ns
            waited_s = noise["waited_ns"] / 1e9
        if (begins_block and self._limit.refuse
                and noise["over_limit"] is not False
                and not self._supervisor.signal):
            raise Failure("noise", self._refusal(noise))
        return noise

    def _complain(self, noise: dict) -> None:
        """Say once that it can't be watched; the trials go on.  A signal from
        the keyboard ends the probe, too."""
        message = why_unknown(noise)
        if message and not (self._has_complained or self._supervisor.signal):
            self._has_complained = True
            self._progress.remark(f"the noise is not known: {message}")

    def _refusal(self, noise: dict) -> str:
        if noise["over_limit"] is None:
            return f"can't be watched, as the limit asks: {why_unknown(noise)}"
        waited = (" after a wait of " + units.duration(noise["waited_ns"])
                  if noise["waited_ns"] else "")
        return (f"{worst(noise)}{waited}, the limit is "
                f"{self._limit.percent:g} %")


def worst(noise: dict) -> str:
    """CPU 3 on node1 loses 12.3 % of its time"""
    percent, cpu, host = max(
        (cpu["lost_percent"], cpu["cpu"], place["host"] or "")
        for place in noise["places"] for cpu in place["cpus"])
    place = f" on {host}" if host else ""
    return f"CPU {cpu}{place} loses {percent:.3g} % of its time"


def why_unknown(noise: dict) -> str | None:
    return next(iter(recorded.Look(0, 0, noise).messages), None)
