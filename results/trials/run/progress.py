"""A line on the terminal that says how far a run has come."""

import contextlib
import os
import statistics
import sys
import time
from collections import deque

from trials.base.failure import Failure
from trials.base.stdout import print_text
from trials.statistics.precision import Precision

DEFAULT_COLUMNS = 80
RECENT_TRIALS = 20
# The first trials of a run may take longer than those that follow.
ESTIMATE_NS = 10 * 10**9


class Progress:
    """One line, drawn between trials only.  Where there is no terminal, the
    number of trials and their time are told once each."""

    def __init__(self, total: int, quiet: bool = False, stream=sys.stderr,
                 tell=print_text, precision: Precision | None = None):
        """precision: what may end the run before this total."""
        self._total = total
        self._precision = precision
        self._most = "at most " if precision else ""
        self._stream = stream
        self._drawn = 0  # columns of the line that stands there
        self._says_nothing = quiet
        self._quiet = quiet or not stream.isatty()
        self._tell = tell
        self._recent_ns = deque(maxlen=RECENT_TRIALS)
        self._last_ns = time.monotonic_ns()
        self._estimate_ns = self._last_ns + ESTIMATE_NS

    def begin(self, done: int) -> None:
        """Tell the trials of a session before the first one: `done` ones are
        recorded."""
        self._tell_once(f"{self._most}{self._total - done} trials to run")

    def show(self, done: int, failed: int) -> None:
        """Redraw the line after a trial: `done` trials are recorded."""
        now_ns = time.monotonic_ns()
        self._recent_ns.append(now_ns - self._last_ns)
        self._last_ns = now_ns
        left_ns = statistics.median(self._recent_ns) * (self._total - done)
        if self._precision:
            left_ns = min(left_ns, self._precision.left_ns)
        if self._quiet:
            if now_ns >= self._estimate_ns:
                self._estimate_ns = float("inf")
                self._tell_once(f"trial {done} of {self._most}{self._total}, "
                                f"about {clock(left_ns)} left")
            return
        text = (f"trial {done} of {self._most}{self._total}, "
                f"{clock(left_ns)} left")
        if self._precision and self._precision.known:
            text += f", {self._precision.known}"
        if failed:
            text += f", {failed} failed"
        self._draw(text)

    def _tell_once(self, text: str) -> None:
        if self._says_nothing or not self._quiet:
            return
        # A reader that has left ends the run when it has its results.
        with contextlib.suppress(Failure):
            self._tell(f"{text}\n")

    def wait(self, why: str) -> None:
        """Say in the line what is waited for."""
        if self._quiet:
            return
        self._draw(why)

    def _draw(self, text: str) -> None:
        """Write over the old line, with spaces: not every terminal knows escape
        sequences.  A full line would wrap."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except OSError:
            columns = 0
        text = text[:max(columns or DEFAULT_COLUMNS, 2) - 1]
        self._stream.write("\r" + text.ljust(self._drawn))
        self._stream.flush()
        self._drawn = len(text)

    def remark(self, text: str) -> None:
        """A line of its own, which stays; also where there is no terminal."""
        if self._says_nothing:
            return
        self.close()
        print(f"blinktrial: {text}", file=self._stream)

    def close(self) -> None:
        if self._drawn:
            self._draw("")
            self._stream.write("\r")
            self._stream.flush()


def clock(ns: float) -> str:
    """Hours, minutes and seconds, as on a clock."""
    seconds = round(ns / 1e9)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02}:{seconds:02}"
    return f"{minutes}:{seconds:02}"
