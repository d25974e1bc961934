"""Ends the process that is timed when we get a signal, when the process hangs,
and when we are killed."""

import contextlib
import os
import select
import signal
import subprocess

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A process that has not ended this long after SIGTERM gets SIGKILL.
GRACE_S = 2.0
# This shell leads the process group of all that is timed.  Its standard input
# ends when we are killed; it then ends the group, since a sorter that goes on
# would disturb the trials of a resumed run.
GUARD = ("read _; trap '' TERM; kill -TERM 0; "
         f"sleep {GRACE_S:.0f}; kill -KILL 0")


class Supervisor:
    """Supervises the timed processes for the time of a with block.

    A signal does not raise anything: it would do so between any two steps,
    also between those that make a record whole.  It is noted, the process that
    we wait for is ended, and the loop looks at .signal before it goes on.  A
    second one ends us at once.
    """

    def __init__(self):
        self.pid = 0
        self.signal = 0
        # We were stopped, as by Ctrl-Z, and went on.  The runner resets it
        # before each trial.
        self.was_stopped = False
        self.expired = False
        self._before = {}
        self._guard = None
        self._signalled = None

    @property
    def group(self) -> int:
        """The process group that is ended with us."""
        return self._guard.pid

    def __enter__(self):
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            process_group=0)
        # The kernel's half of a handler writes a byte here, at once.
        self._signalled = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._signalled[1], warn_on_full_buffer=False)
        for number in ENDING:
            # Signals that nohup, or a shell for what it puts behind, has us
            # ignore stay ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._ending)
        self._before[signal.SIGCONT] = signal.signal(
            signal.SIGCONT, self._continued)
        self._before[signal.SIGALRM] = signal.signal(
            signal.SIGALRM, self._alarm)
        return self

    def __exit__(self, *_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.set_wakeup_fd(-1)
        for end in self._signalled:
            os.close(end)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        # A sorter may have left processes in the group.
        os.killpg(self.group, signal.SIGKILL)
        self._guard.wait()
        self._guard.stdin.close()

    def arm(self, timeout_s: float) -> None:
        self.expired = False
        signal.setitimer(signal.ITIMER_REAL, timeout_s, GRACE_S)

    def wait(self):
        """Wait for the process; returns what os.wait4 returns.

        A wait4 alone loses a signal that comes just before it: Python has
        looked for signals then, and its handler runs when wait4 returns.  The
        byte in the pipe ends a poll that begins after the signal, too.
        """
        ended, signalled = os.pidfd_open(self.pid), self._signalled[0]
        try:
            poll = select.poll()
            poll.register(ended, select.POLLIN)
            poll.register(signalled, select.POLLIN)
            while ended not in (ready[0] for ready in poll.poll()):
                os.read(signalled, 64)
        finally:
            os.close(ended)
        return os.wait4(self.pid, 0)

    def disarm(self) -> None:
        self.pid = 0
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _ending(self, number, _frame):
        self.signal = number
        signal.signal(number, signal.SIG_DFL)
        # A process that ignores SIGTERM is not waited for longer than this.
        signal.setitimer(signal.ITIMER_REAL, GRACE_S, GRACE_S)
        self._end(signal.SIGTERM)

    def _continued(self, _number, _frame):
        self.was_stopped = True

    def _alarm(self, _number, _frame):
        again = self.expired or self.signal
        self.expired = True
        self._end(signal.SIGKILL if again else signal.SIGTERM)

    def _end(self, number):
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
