"""Bytes a second that ranks read, wrote, sent and received, from a timeline.

`blinksort --trace` writes an event on each line.  A counter is the rate from
its time on until the next one of the same name and process.
"""

from dataclasses import dataclass, field

import numpy as np

from trials.base import documents, units
from trials.base.failure import FILE, Failure
from trials.base.text_table import grid

FLOWS = ("read", "write", "send", "receive")
_FIRST_LINE = b'{"displayTimeUnit":"ns","traceEvents":['
_LINE_BYTES_MAX = 4096
# More than 64 bits of nanoseconds can tell.
_TIME_US_MAX = 1e16


@dataclass
class Rate:
    """Steps: the rate from each time on; the last one is 0."""

    times_ns: np.ndarray
    bytes_per_s: np.ndarray

    @property
    def moved_bytes(self):
        return self.until(self.times_ns[-1])

    def until(self, times_ns):
        """Bytes that were moved by then."""
        moved = np.cumsum(self.bytes_per_s[:-1] * np.diff(self.times_ns)) / 1e9
        return np.interp(times_ns, self.times_ns, [0, *moved])

    def at(self, times_ns):
        place = np.searchsorted(self.times_ns, times_ns, "right")
        return np.concatenate(([0.0], self.bytes_per_s))[place]


@dataclass
class Rates:
    path: str
    # {process's number: its name}
    names: dict = field(default_factory=dict)
    # {flow: {process's number: Rate}}, of those that moved any bytes
    flows: dict = field(default_factory=dict)

    def total(self, flow) -> Rate:
        """The rate of all processes."""
        rates = self.flows[flow].values()
        times = np.unique(np.concatenate([rate.times_ns for rate in rates]))
        return Rate(times, sum(rate.at(times) for rate in rates))


def read(path) -> Rates:
    """Raises Failure: it is not there, or no timeline of blinksort's."""
    found, steps = Rates(path), {}
    with documents.open_regular(path) as file:
        if file.readline(len(_FIRST_LINE) + 1).rstrip() != _FIRST_LINE:
            raise Failure(path, "is no timeline: blinksort --trace makes one",
                          FILE)
        for number, line in enumerate(iter(
                lambda: file.readline(_LINE_BYTES_MAX + 1), b""), 2):
            try:
                _take(line, found.names, steps)
            except (ValueError, KeyError, TypeError) as error:
                raise Failure(f"{path}:{number}", f"is damaged: {error}",
                              FILE) from None
    for flow in FLOWS:
        rates = {pid: rate for (kind, pid), taken in steps.items()
                 if kind == flow and (rate := _rate(taken)).moved_bytes}
        if rates:
            found.flows[flow] = rates
    if not found.flows:
        raise Failure(path, "has no rates", FILE)
    return found


def _take(line, names, steps):
    """Spans, which are most of the lines, are left alone."""
    if len(line) > _LINE_BYTES_MAX:
        raise ValueError(f"a line of more than {_LINE_BYTES_MAX} bytes")
    if b'"ph":"C"' not in line and b'"process_name"' not in line:
        return
    event = documents.loads(line.rstrip(b",\n"))
    pid = event["pid"]
    if type(pid) is not int:
        raise ValueError(f"pid: {pid!r} is no number")
    if event["ph"] == "M":
        names[pid] = str(event["args"]["name"])
        return
    time_us, rate = event["ts"], event["args"]["bytes/s"]
    if (event["name"] not in FLOWS
            or {type(time_us), type(rate)} - {int, float}
            or abs(time_us) > _TIME_US_MAX
            or not 0 <= rate < documents.LIMIT):
        raise ValueError("it is no rate")
    steps.setdefault((event["name"], pid), []).append((time_us * 1e3, rate))


def _rate(steps):
    times, rates = zip(*sorted(steps))
    return Rate(np.array(times), np.array((*rates[:-1], 0.0)))


# --- as a table ---------------------------------------------------------------

HEADINGS = "of|>moved|>from|>to|>mean|>most"


def rows(found) -> list:
    """All processes together, and then each."""
    made = []
    for flow, rates in found.flows.items():
        made.append(_row(f"{flow}, all" if len(rates) > 1 else flow,
                         found.total(flow)))
        if len(rates) > 1:
            made += [_row(f"{flow}, {found.names.get(pid, pid)}", rate)
                     for pid, rate in sorted(rates.items())]
    return made


def _row(words, rate):
    first, last = rate.times_ns[0], rate.times_ns[-1]
    moved = rate.moved_bytes
    mean = moved * 1e9 / (last - first) if last > first else 0.0
    return [words, units.size(moved), units.duration(first),
            units.duration(last), f"{units.digits(mean / 1e6)} MB/s",
            f"{units.digits(max(rate.bytes_per_s) / 1e6)} MB/s"]


def text(found) -> str:
    return grid(HEADINGS, rows(found)) + "\n"
