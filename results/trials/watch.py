"""Ends the process that runs now: at a signal to us, or when it hangs."""

import contextlib
import os
import signal

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A process that does not end by SIGTERM gets SIGKILL so much later.
GRACE_S = 2.0


class Watch:
    """Handlers for the time of a with block.

    A signal does not raise anything: it would do so between any two steps, also
    between those that make a record whole.  It is noted, the process that we
    wait for is ended, and the loop looks at .signal before it goes on.  A second
    one ends us at once.
    """

    def __init__(self):
        self.pid = 0
        self.signal = 0
        self.expired = False
        self._before = {}

    def __enter__(self):
        for number in ENDING:
            self._before[number] = signal.signal(number, self._ending)
        self._before[signal.SIGALRM] = signal.signal(
            signal.SIGALRM, self._alarm)
        return self

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def arm(self, timeout_s: float) -> None:
        self.expired = False
        signal.setitimer(signal.ITIMER_REAL, timeout_s, GRACE_S)

    def disarm(self) -> None:
        self.pid = 0
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _ending(self, number, _frame):
        self.signal = number
        signal.signal(number, signal.SIG_DFL)
        # A process that ignores SIGTERM is not waited for longer than this.
        signal.setitimer(signal.ITIMER_REAL, GRACE_S, GRACE_S)
        self._end(signal.SIGTERM)

    def _alarm(self, _number, _frame):
        again = self.expired or self.signal
        self.expired = True
        self._end(signal.SIGKILL if again else signal.SIGTERM)

    def _end(self, number):
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)
