"""One timed run: spawned, waited for, and nothing between.

The runner takes the time before it calls posix_spawn and after wait4 has
returned, since a user of the sorter waits that long.  The runner gives each
process the same few environment variables: the size of the environment moves
the stack, and where the stack lies can cost more than what is compared.
"""

import gc
import os
import resource
import signal
import time
from dataclasses import dataclass

from trials.base.failure import Failure
from trials.base.programs import first_line
from trials.run.supervisor import Supervisor

ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/local/bin:/usr/bin:/bin"}
TIMEOUT_S = 60.0
# Python ignores them, and a child would inherit that.
DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)
# The status that the shell gives a command that took too long.
STATUS_TIMED_OUT = 124


@dataclass
class Timed:
    """A process that has run."""
    begin_unix_ns: int
    begin_monotonic_ns: int
    whole_ns: int
    exit_status: int  # 128 + signal, as in the shell
    stdout: str
    stderr: str
    usage: resource.struct_rusage
    runner_user_ns: int
    runner_system_ns: int
    timeout_s: float

    @property
    def end_monotonic_ns(self) -> int:
        return self.begin_monotonic_ns + self.whole_ns


def time_command(command: list[str], supervisor: Supervisor,
                 timeout_s: float = TIMEOUT_S) -> Timed:
    """Run the command.  Between the two readings of the clock are the spawn,
    the wait, and two stores."""
    out = os.memfd_create("stdout")
    err = os.memfd_create("stderr")
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
               (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, err, 2)]
    path, group = command[0], supervisor.group
    clock, monotonic = time.clock_gettime_ns, time.CLOCK_MONOTONIC
    supervisor.arm(timeout_s)
    gc.disable()
    try:
        own_before = resource.getrusage(resource.RUSAGE_SELF)
        begin_unix_ns = time.time_ns()
        begin_ns = clock(monotonic)
        # The sorter is not in our process group: ^C reaches only us, and the
        # supervisor then ends the sorter.
        supervisor.pid = os.posix_spawn(
            path, command, ENVIRONMENT, file_actions=actions, setpgroup=group,
            setsigmask=(), setsigdef=DEFAULT_SIGNALS)
        _, status, usage = supervisor.wait()
        end_ns = clock(monotonic)
        own_after = resource.getrusage(resource.RUSAGE_SELF)
    except OSError as reason:
        os.close(out)
        os.close(err)
        raise Failure(path, reason.strerror) from None
    finally:
        gc.enable()
        supervisor.disarm()
    return Timed(
        begin_unix_ns, begin_ns, end_ns - begin_ns,
        STATUS_TIMED_OUT if supervisor.expired else shell_status(status),
        read_all(out), read_all(err), usage,
        to_ns(own_after.ru_utime - own_before.ru_utime),
        to_ns(own_after.ru_stime - own_before.ru_stime), timeout_s)


def message_of(timed: Timed) -> str | None:
    if timed.exit_status == STATUS_TIMED_OUT:
        return f"did not end within {timed.timeout_s:g} s"
    line = first_line(timed.stderr)
    if line or timed.exit_status == 0:
        return line
    return f"ended with status {timed.exit_status}"


def read_all(descriptor: int) -> str:
    with open(descriptor, "rb") as file:
        file.seek(0)
        return file.read().decode("utf-8", "replace")


def shell_status(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def to_ns(seconds: float) -> int:
    return round(seconds * 1e9)
