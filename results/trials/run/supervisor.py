"""Ends the process that is timed when we get a signal."""

import contextlib
import os
import select
import signal
import time

from trials.base.programs import Programs

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What a process has written is read in pieces of at most this.
READ_BYTES = 1 << 16
# timeout(1) signals its child, and then its process group: a signal that comes
# this soon after the first is the same one.
SAME_S = 1.0


class Supervisor:
    """Supervises the timed processes for the time of a with block.

    A signal does not raise anything: it would do so between any two steps,
    also between those that make a record whole.  It is noted, the process that
    we wait for is ended, and the loop looks at .signal before it goes on.  A
    second one, SAME_S later, ends us at once.

    The process is `blinkprobe run`, which ends the command and all that this
    has started when it gets SIGTERM: from here, or from the kernel when we are
    killed.
    """

    def __init__(self, programs: Programs):
        self.programs = programs
        # Timed processes are to count events of the processor.
        self.counts_events = False
        self.pid = 0
        self.signal = 0
        self._signal_s = 0.0
        # We were stopped, as by Ctrl-Z, and went on.  The runner resets it
        # before each trial.
        self.was_stopped = False
        self._before = {}
        self._signalled = None

    def __enter__(self):
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
        return self

    def __exit__(self, *_):
        signal.set_wakeup_fd(-1)
        for end in self._signalled:
            os.close(end)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def wait(self, pipe: int | None = None, kept_bytes: int = 0,
             is_told: bool = False) -> tuple[bytes, int]:
        """Wait for the process and reap it.  Returns the first bytes of what
        comes by the pipe, of which we hold both ends, and its status.  is_told:
        it knows of a signal that we have got, or need not.

        A wait4 alone loses a signal that comes just before it: Python has
        looked for signals then, and its handler runs when wait4 returns.  The
        byte in the pipe ends a poll that begins after the signal, too.
        """
        ended, signalled = os.pidfd_open(self.pid), self._signalled[0]
        kept = b""
        try:
            poll = select.poll()
            for descriptor in (ended, signalled, pipe):
                if descriptor is not None:
                    poll.register(descriptor, select.POLLIN)
            ready = []
            while ended not in ready:
                ready = [descriptor for descriptor, _ in poll.poll()]
                if signalled in ready:
                    os.read(signalled, 64)
                if pipe in ready:
                    # The rest is read, too: the pipe must not be full.
                    kept += os.read(pipe, READ_BYTES)[:kept_bytes - len(kept)]
                if self.signal and not is_told:
                    is_told = True
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(self.pid, signal.SIGTERM)
                        # A command may have stopped it.
                        os.kill(self.pid, signal.SIGCONT)
        finally:
            os.close(ended)
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return kept, status

    def _ending(self, number, _frame):
        now_s = time.monotonic()
        if not self.signal:
            self.signal, self._signal_s = number, now_s
        elif now_s - self._signal_s >= SAME_S:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _continued(self, _number, _frame):
        self.was_stopped = True
