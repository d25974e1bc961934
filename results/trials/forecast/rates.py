"""What a characterisation says of the stages of a sort, as rates."""

import os
from dataclasses import dataclass, field

from trials.base.failure import FILE, Failure
from trials.characterise import machine_profile, measurements
from trials.forecast.wanted import LINK_MAX
from trials.record import store
from trials.report import machine_facts


# A network has less, and blinksort takes no more.
LATENCY_NS_MAX = 10**9
# Bytes a second, and nanoseconds of a start: beyond them is no machine, and
# what they come to may be no number.
_FIGURE_MIN, _FIGURE_MAX = 1, 10**15


def _within(value, low, high):
    return None if value is None else round(min(max(value, low), high))


@dataclass(frozen=True)
class Rates:
    """Bytes a second and nanoseconds; of memory, for a number of threads."""

    # {threads: (read, copy)}
    memory: dict
    start_ns: float
    # The rates of a disk; None: there are none.
    disk_read: float | None
    disk_write: float | None
    # The rate of both at once, which only a sort beyond memory does.
    disk_both: float | None
    # The rate between two processes of the machine; None: it was not measured.
    loopback: float | None
    # The rate between nodes; None: only this machine was measured.
    link_bits_per_s: float | None
    latency_ns: float | None
    memory_bytes: float | None
    notes: list = field(default_factory=list)

    @property
    def link_options(self):
        """The options of the exchange's model, as far as they were measured."""
        return {"link": _within(self.link_bits_per_s, 8, LINK_MAX),
                "latency_ns": _within(self.latency_ns, 0, LATENCY_NS_MAX)}

    @property
    def cpus(self):
        return max(self.memory)

    def supposed(self, scenario, threads=None):
        """The machine, as stages.predict() takes it."""
        known, read, copy = self.of_memory(threads or self.cpus)
        disk = self.disk_read, self.disk_write, self.disk_both
        return {"threads": known, "memory_read": round(read),
                "memory_copy": round(copy), "start_ns": round(self.start_ns),
                "disk": None if scenario == "pagecache"
                else tuple(map(round, disk))}

    def of_memory(self, threads):
        """(threads, read, copy) for as many threads as were measured, and no
        more than asked for."""
        known = max((t for t in self.memory if t <= threads),
                    default=min(self.memory))
        return (known, *self.memory[known])


def of(folder) -> Rates:
    """Raises Failure if what no forecast can do without was not measured."""
    if not machine_profile.is_one(folder) and os.path.exists(
            os.path.join(folder, store.DESIGN)):
        raise Failure(folder, "has trials, and no characterisation of a "
                      "machine: blinktrial characterise makes one", FILE)
    return of_profile(machine_profile.read(folder), os.path.join(
        folder, measurements.FILE_NAME))


def of_profile(profile, path) -> Rates:
    notes: list = []
    disk = _disk(profile, notes)
    link, latency = _network(profile, notes)
    starts = {s.name: s.spread.middle for s in profile.starts}
    if not starts:
        raise Failure(path, "has no start of a program", FILE)
    found = Rates(
        _memory(profile, path), max(starts.values()), *disk,
        _loopback(profile), link, latency, machine_facts.at(
            machine_facts.before(profile.environment), "memory.total_bytes"),
        notes)
    _check(found, path)
    return found


def _check(rates, path):
    for figure in (rates.start_ns, rates.disk_read, rates.disk_write,
                   rates.loopback, *sum(rates.memory.values(), ())):
        if figure is not None and not _FIGURE_MIN <= figure <= _FIGURE_MAX:
            raise Failure(path, f"comes to {figure:g}, which no machine has",
                          FILE)


def _memory(profile, path):
    """The rates of the largest area, which no cache holds."""
    rates = {(curve.threads, curve.name): curve.points[-1][1].middle
             for curve in profile.memory}
    found = {threads: (rates[threads, "read"], rates[threads, "copy"])
             for threads in profile.thread_counts
             if (threads, "read") in rates and (threads, "copy") in rates}
    if not found or not all(map(all, found.values())):
        raise Failure(path, "has no rates of memory, read and copy", FILE)
    return found


def _disk(profile, notes):
    """The rates at which a sort reads, writes and does both, else those of one
    transfer at a time, in order."""
    if profile.stream_rates:
        return [rate or None for rate in profile.stream_rates]
    rates = {curve.name: max(spread.middle for _, spread in curve.points)
             for curves in profile.transfers.values() for curve in curves}
    read, write = (rates.get(f"sequential {what}") or None
                   for what in ("read", "write"))
    if read and not write:
        notes.append("No rate of writing was measured: the disk is taken to "
                     "write as fast as it reads.")
    return read, write or read, read and max(read, write or read)


def _loopback(profile):
    return next((s.spread.middle for s in profile.throughputs
                 if s.setting.get("loopback") and s.spread.middle), None)


def _network(profile, notes):
    """(bits a second, ns one way) of the slowest other node."""
    if profile.loopback or not profile.round_trips:
        notes.append("No network was measured: a datagram is taken to be on "
                     "its way for 10 µs.")
        return None, None
    rates = [8 * s.spread.middle for s in profile.throughputs
             if s.spread.middle]
    return (min(rates, default=None),
            max(s.spread.middle for s in profile.round_trips) / 2)
