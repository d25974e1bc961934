"""What a meter between the machine and the mains has logged: a CSV file of
times and watts, as blinktrial(1) describes it.

Between two lines power is taken to change evenly (the trapezoid rule); where
they are more than 5 s apart there is a hole, of which nothing is known: a run
must not reach into it.
"""

import bisect
import math
import re
import time
from datetime import datetime

from trials.base import documents
from trials.base.failure import FILE, Failure
from trials.cost import csv_lines

COLUMNS = ("time", "watts")
# Longest time between two lines; JouleSort asks for one a second.
HOLE_S = 5.0
# A meter may take this long to write down what it has measured.
PATIENCE_S = 10.0
POLL_S = 0.05
WATTS_MAX = 1e8
TIME_MAX_S = 2.0**33
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,2})?")
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+")


class Log:
    """The readings of a file, as far as they have been taken in."""

    def __init__(self, path: str):
        self.path = path
        self.times_s: list[float] = []
        self.watts: list[float] = []
        self._columns = None
        self._is_iso = None
        self._lines = 0

    def add(self, line: bytes) -> None:
        """Takes in the next line; raises Failure."""
        self._lines += 1
        where = f"{self.path}:{self._lines}"
        fields = csv_lines.fields_of(where, line)
        if not fields:
            return
        if self._columns is None:
            self._columns = csv_lines.columns(where, fields, COLUMNS)
            return
        if len(fields) != len(self._columns):
            raise Failure(where, f"has {len(fields)} fields, for "
                          f"{len(self._columns)} columns", FILE)
        found = dict(zip(self._columns, fields))
        self._append(where, self._time_s(where, found["time"]),
                     _watts(where, found["watts"]))

    def _append(self, where, time_s, watts):
        if self.times_s and time_s <= self.times_s[-1]:
            raise Failure(where, "its time is not after that of the line "
                          "before", FILE)
        self.times_s.append(time_s)
        self.watts.append(watts)

    def _time_s(self, where, text):
        is_iso = not _NUMBER.fullmatch(text)
        time_s = _iso_s(where, text) if is_iso else float(text)
        if self._is_iso not in (None, is_iso):
            raise Failure(where, f"time '{text:.40}' is not of the kind of "
                          "those before it", FILE)
        self._is_iso = is_iso
        if not 0 <= time_s <= TIME_MAX_S:
            raise Failure(where, f"time '{text:.40}' is not in seconds since "
                          "1970", FILE)
        return time_s

    @property
    def kind(self) -> str:
        """The kind of the times, in words."""
        return "ISO 8601" if self._is_iso else "seconds since 1970"

    def microjoules(self, begin_s: float, end_s: float) -> int:
        """The energy of a run; raises Failure unless readings cover it."""
        times_s = self.times_s
        if not times_s or begin_s < times_s[0] or end_s > times_s[-1]:
            raise Failure(self.path, "does not cover a run from "
                          f"{begin_s:.3f} to {end_s:.3f}: its times are "
                          + (f"from {times_s[0]:.3f} to {times_s[-1]:.3f}"
                             if times_s else "none"), FILE)
        first = bisect.bisect_right(times_s, begin_s)
        last = bisect.bisect_left(times_s, end_s)
        self._refuse_hole(times_s[first - 1:last + 1])
        points = [(begin_s, self._watts_at(begin_s)),
                  *zip(times_s[first:last], self.watts[first:last]),
                  (end_s, self._watts_at(end_s))]
        return round(1e6 * math.fsum(
            (after_s - before_s) * (before + after) / 2
            for (before_s, before), (after_s, after)
            in zip(points, points[1:])))

    def _refuse_hole(self, times_s):
        """Raise Failure if two neighbours among these times are too far apart.
        """
        for before_s, after_s in zip(times_s, times_s[1:]):
            if after_s - before_s > HOLE_S:
                raise Failure(self.path, "has a hole during a run: no reading "
                              f"from {before_s:.3f} to {after_s:.3f}, which "
                              f"is more than {HOLE_S:g} s", FILE)

    def _watts_at(self, time_s):
        after = bisect.bisect_left(self.times_s, time_s)
        if self.times_s[after] == time_s:
            return self.watts[after]
        left_s, right_s = self.times_s[after - 1:after + 1]
        share = (time_s - left_s) / (right_s - left_s)
        return (1 - share) * self.watts[after - 1] + share * self.watts[after]


def _iso_s(where, text):
    try:
        if not _ISO.match(text):
            raise ValueError
        found = datetime.fromisoformat(text)
    except ValueError:
        raise Failure(where, f"time '{text:.40}' is neither in seconds since "
                      "1970 nor in ISO 8601", FILE) from None
    if found.tzinfo is None:
        raise Failure(where, f"time '{text:.40}' has no zone, such as Z or "
                      "+01:00", FILE)
    return found.timestamp()


def _watts(where, text):
    if not _NUMBER.fullmatch(text) or float(text) > WATTS_MAX:
        raise Failure(where, f"watts '{text:.40}' is not a number from 0 to "
                      f"{WATTS_MAX:.0f}", FILE)
    return float(text)


class Growing:
    """A log that a meter is writing."""

    def __init__(self, path: str):
        """Raises Failure if the log is wrong so far, or does not grow."""
        self.log = Log(path)
        self._at_bytes = 0
        self._take()
        if not self.log.times_s:
            raise Failure(path, "has no reading of a meter", FILE)
        behind_s = time.time() - self.log.times_s[-1]
        if not -PATIENCE_S <= behind_s <= PATIENCE_S:
            raise Failure(path, f"its last time is {abs(behind_s):.0f} s "
                          f"{'ago' if behind_s > 0 else 'from now'}: a meter "
                          "that is running has to write it", FILE)

    def _take(self):
        """The whole lines that were written since."""
        path = self.log.path
        with documents.open_regular(path) as file:
            more_bytes = file.seek(0, 2) - self._at_bytes
            if more_bytes < 0:
                raise Failure(path, "became shorter", FILE)
            if more_bytes > documents.MOST_BYTES:
                raise Failure(path, "is longer than "
                              f"{documents.MOST_BYTES >> 20} MiB", FILE)
            file.seek(self._at_bytes)
            data = file.read(more_bytes)
        whole, end, rest = data.rpartition(b"\n")
        if len(rest) > csv_lines.LINE_BYTES_MAX:
            raise Failure(path, "has a line of more than "
                          f"{csv_lines.LINE_BYTES_MAX} bytes", FILE)
        self._at_bytes += len(whole) + len(end)
        if end:
            for line in whole.split(b"\n"):
                self.log.add(line)

    def microjoules(self, begin_s: float, end_s: float) -> int:
        """Waits until the log has come to the end of the run.  Raises Failure
        if it does not, or has a hole."""
        patience_ends = time.monotonic() + PATIENCE_S
        self._take()
        while (self.log.times_s[-1] < end_s
               and time.monotonic() < patience_ends):
            time.sleep(POLL_S)
            self._take()
        return self.log.microjoules(begin_s, end_s)
