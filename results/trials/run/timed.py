"""One timed run of a command: it is started and waited for, and nothing else is
done meanwhile.

`blinkprobe run`, a new process for each run, starts the command and reads the
clock: so no interpreter runs between the two readings.  It is small, because
the kernel counts the image of the process that starts a program towards the
program's peak of memory.  It also ends the processes that the command leaves
behind, and measures what all of them have taken.

The runner gives each process the same few environment variables unless the
caller has others: the size of the environment moves the stack, and where the
stack lies can cost more than what is compared.
"""

import contextlib
import json
import os
import resource
import shutil
import signal
import statistics
from dataclasses import dataclass

from trials.base.failure import FAILED, RESOURCES, Failure, naming
from trials.base.programs import Programs, end_of, first_line
from trials.run.supervisor import ENDING, Supervisor

ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/local/bin:/usr/bin:/bin"}
TIMEOUT_S = 60.0
# Python ignores them, and a child would inherit that.
DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)
# The status that the shell gives a command that took too long.
STATUS_TIMED_OUT = 124
# More than a line of what a command complains of.
STDERR_BYTES = 4096
# Descriptors of `blinkprobe run`: it prints its document to the first, and
# the command to the second.
DOCUMENT, OUTPUT = 1, 3
# What `blinkprobe run` prints under the same names.
FIGURES = ("user_ns", "system_ns", "max_rss_bytes", "minor_faults",
           "major_faults", "voluntary_switches", "involuntary_switches",
           "read_bytes", "written_bytes", "left_processes")
COUNTERS = ("instructions", "cycles", "cache_misses", "branch_misses")
COUNT = f"--count={','.join(COUNTERS)}"
# Each event makes a start some 5 us longer: the kernel makes a counter for each
# new process, and adds it up at its end.
COUNTED_FROM_NS = 10_000_000
# Starts that are measured before the first trial, which takes 20 ms.
STARTS = 50


@dataclass
class Timed:
    """A command that has run."""
    begin_unix_ns: int
    begin_monotonic_ns: int
    whole_ns: int
    exit_status: int  # 128 + signal, as in the shell
    ended_by: int | None  # the signal that has ended it, if one has
    stopped_by: int | None  # the signal that has stopped it, if one has
    stdout: str
    stderr: str  # the beginning
    # The figures that a trial records; None if they are of another process.
    measures: dict | None
    runner_user_ns: int
    runner_system_ns: int
    timeout_s: float

    @property
    def end_monotonic_ns(self) -> int:
        return self.begin_monotonic_ns + self.whole_ns


def time_command(words: list[str], supervisor: Supervisor,
                 timeout_s: float = TIMEOUT_S, *,
                 directory: str | None = None,
                 environment: dict[str, str] | None = None,
                 stdin: str = os.devnull, keeps_stdout: bool = True) -> Timed:
    """Run the command.  The first word is a path, which may be relative to the
    directory, or a name that is looked for in PATH.  Raises Failure if it can't
    be started, however it ends."""
    environment = ENVIRONMENT if environment is None else environment
    asked = ["blinkprobe", "run", f"--parent={os.getpid()}",
             f"--timeout-ms={max(1, round(timeout_s * 1000))}"]
    if supervisor.counts_events:
        asked.append(COUNT)
    if directory is not None:
        asked.append(f"--directory={directory}")
    if keeps_stdout:
        asked.append(f"--stdout=/proc/self/fd/{OUTPUT}")
    asked += [f"--argv0={words[0]}", "--", path_of(words[0], environment),
              *words[1:]]
    with Streams(stdin, keeps_stdout) as streams:
        before = resource.getrusage(resource.RUSAGE_SELF)
        # What is to end the command waits until the probe takes it.
        supervisor.pid = os.posix_spawn(
            supervisor.programs.path("blinkprobe"), asked, environment,
            file_actions=streams.actions(), setsid=True, setsigmask=ENDING,
            setsigdef=DEFAULT_SIGNALS)
        stderr, status = supervisor.wait(streams.stderr, STDERR_BYTES)
        after = resource.getrusage(resource.RUSAGE_SELF)
        return timed_of(
            streams.text(DOCUMENT), status, stderr.decode("utf-8", "replace"),
            stdout=streams.text(OUTPUT) if keeps_stdout else "",
            runner_user_ns=to_ns(after.ru_utime - before.ru_utime),
            runner_system_ns=to_ns(after.ru_stime - before.ru_stime),
            timeout_s=timeout_s)


class Streams(contextlib.ExitStack):
    """The files of a `blinkprobe run` and its command.  What is brought back
    is in memory; standard error comes by a pipe, of which only the beginning is
    kept, so that a command may print any amount."""

    def __init__(self, stdin: str, keeps_stdout: bool):
        super().__init__()
        with naming(stdin):
            self._stdin = self._own(os.open(stdin, os.O_RDONLY))
        self._files = {DOCUMENT: self._own(os.memfd_create("document"))}
        if keeps_stdout:
            self._files[OUTPUT] = self._own(os.memfd_create("stdout"))
        self.stderr, self._stderr_end = map(self._own, os.pipe2(os.O_CLOEXEC))

    def _own(self, descriptor: int) -> int:
        self.callback(os.close, descriptor)
        return descriptor

    def actions(self) -> list:
        return [(os.POSIX_SPAWN_DUP2, own, given) for own, given in (
            (self._stdin, 0), (self._stderr_end, 2),
            *((own, given) for given, own in self._files.items()))]

    def text(self, given: int) -> str:
        """All that was written there."""
        descriptor = self._files[given]
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, size, 0).decode("utf-8", "replace")


def path_of(word: str, environment: dict[str, str]) -> str:
    """The path of a program, as execvp(3) finds it."""
    if "/" in word:
        return word
    path = environment.get("PATH", os.defpath)
    found = shutil.which(word, path=path)
    if not found:
        raise Failure(word, f"no such program in PATH ({path})")
    # An empty folder of PATH is the current one.
    return os.path.abspath(found)


def timed_of(document: str, status: int, stderr: str, **others) -> Timed:
    """What the probe has printed, or why it has not."""
    try:
        said = json.loads(document)
        figures = {name: said[name] for name in FIGURES}
        counters = {name: said["counters"].get(name) for name in COUNTERS}
        return Timed(
            said["begin_unix_ns"], said["begin_monotonic_ns"],
            said["elapsed_ns"], exit_status_of(said), said["signal"],
            said["stopped_by"], stderr=stderr,
            measures={**figures, "counters": counters}, **others)
    except (KeyError, TypeError, ValueError):
        raise why_not_run(status, stderr) from None


def exit_status_of(said: dict) -> int:
    if said["timed_out"]:
        return STATUS_TIMED_OUT
    if said["stopped_by"]:
        return 128 + said["stopped_by"]
    return said["exit_status"]


def why_not_run(status: int, stderr: str) -> Failure:
    """The probe's own reason: "blinkprobe: WHAT: WHY"."""
    line = first_line(stderr) or ""
    what, divided, why = line.removeprefix("blinkprobe: ").partition(": ")
    if divided:
        return Failure(what, why, FAILED)
    return Failure("blinkprobe", line or
                   end_of(os.waitstatus_to_exitcode(status)), RESOURCES)


def message_of(timed: Timed) -> str | None:
    """A line that tells how it ended, or what it has said; None: it ended well
    and has said nothing."""
    if timed.exit_status == STATUS_TIMED_OUT:
        return f"did not end within {timed.timeout_s:g} s"
    if timed.stopped_by:
        return f"was stopped by {name_of(timed.stopped_by)}, and ended"
    line = first_line(timed.stderr)
    if timed.exit_status == 0:
        return left_behind(timed) or line
    if timed.ended_by:
        return f"killed by {name_of(timed.ended_by)}"
    return line or f"ended with status {timed.exit_status}"


def left_behind(timed: Timed) -> str | None:
    count = timed.measures["left_processes"]
    if count == 0:
        return None
    return "left 1 process, which was ended" if count == 1 else \
        f"left {count} processes, which were ended"


def name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def to_ns(seconds: float) -> int:
    return round(seconds * 1e9)


# --- before the first trial --------------------------------------------------

def facts(programs: Programs, shortest_ns: int | None) -> dict:
    """What is known of all timed runs on this machine, as a design has it:
    what it takes to start a program that ends at once, and whether events of
    the processor are counted.  They are not if a command is short: shortest_ns
    is the shortest time of any command, if one is known."""
    starts = programs.document(
        "blinkprobe", "spawn", f"--rounds={STARTS}")["samples_ns"]
    quartiles = statistics.quantiles(starts, n=4, method="inclusive")
    return {"start_ns": dict(zip(("lower_quartile", "median",
                                  "upper_quartile"), map(round, quartiles))),
            "starts": len(starts), **countable(programs, shortest_ns)}


def countable(programs: Programs, shortest_ns: int | None) -> dict:
    said = programs.document(
        "blinkprobe", "run", COUNT, "--", programs.path("blinkprobe"),
        "nothing")
    place, why = said["counted_in"], said["not_counted"]
    if all(count is None for count in said["counters"].values()):
        place = None
    elif shortest_ns is not None and shortest_ns < COUNTED_FROM_NS:
        place, why = None, "a command is shorter than 10 ms, and its start " \
            "would take some 20 us longer"
    return {"counted_in": place, "not_counted": why}
