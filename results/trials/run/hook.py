"""Runs a command off the clock, beside one that is timed."""

import os
import subprocess

from trials.base.failure import FAILED, Failure
from trials.base.programs import end_of, first_line
from trials.run.supervisor import Supervisor

STDERR_BYTES = 4096


def run(name: str, text: str, directory: str | None,
        supervisor: Supervisor) -> None:
    """Run the text by /bin/sh.  Failure: it fails; the option that has the
    name says so.

    Its standard error is a file, and only the shell is waited for: it may leave
    a server in the background, which goes on.
    """
    # What clears up behind a signal is not ended by it.
    is_told = bool(supervisor.signal)
    with open(os.memfd_create("stderr"), "r+b") as stderr:
        process = subprocess.Popen(
            ["/bin/sh", "-c", text], cwd=directory, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=stderr)
        supervisor.pid = process.pid
        _, status = supervisor.wait(is_told=is_told)
        process.returncode = os.waitstatus_to_exitcode(status)
        said = os.pread(stderr.fileno(), STDERR_BYTES, 0)
    if process.returncode and (is_told or not supervisor.signal):
        raise Failure(f"--{name}", first_line(said.decode("utf-8", "replace"))
                      or f"'{text}' {end_of(process.returncode)}", FAILED)
