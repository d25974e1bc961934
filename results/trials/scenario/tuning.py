"""Settings of the machine for the time of some trials, by blinktune.

`blinktune hold PROFILE` applies a profile, says "held", and takes it back when
its standard input ends.  So it does when we are killed: the kernel closes our
end of the pipe.
"""

import json
import os
import selectors
import subprocess
import tempfile
import time

from trials.base.failure import RESOURCES, Failure
from trials.base.programs import Programs, end_of

PROGRAM = "blinktune"
# blinktune has to apply and to take back within 300 ms; stopping a system's
# daemons may take longer.
PATIENCE_S = 60.0


class Unavailable(Exception):
    """A profile that can't be had here; the reason."""


def profile_of(tuning: dict) -> str:
    """The profile as blinktune takes it: a name, or settings."""
    if tuning.get("profile"):
        return tuning["profile"]
    return ",".join(f"{knob}={value}"
                    for knob, value in tuning["knobs"].items())


def reason_in(said: str) -> str | None:
    """The first message of what blinktune has said on stderr, else its first
    result.  Lines with a plus tell what it does."""
    lines = [line.strip() for line in said.splitlines()
             if line.strip() and not line.startswith("+ ")]
    messages = [line.removeprefix(f"{PROGRAM}: ") for line in lines
                if line.startswith(f"{PROGRAM}: ")]
    return next(iter(messages + lines), None)


class Tuning:
    """What is held now.  Trials that want the same leave it held."""

    def __init__(self, programs: Programs, hosts: str | None = None,
                 key: str | None = None):
        self._programs = programs
        self._nodes = ["-w", hosts] if hosts else []
        self._nodes += ["--key-file", key] if hosts and key else []
        self._wanted = None
        self._holder = None
        self._held = None
        self._said = None

    def want(self, tuning: dict | None) -> dict | None:
        """Make it so; what the record says of it.  Unavailable: it can't be,
        and nothing is held."""
        if tuning != self._wanted:
            self.close()
            if tuning:
                self._hold(profile_of(tuning))
            self._wanted = tuning
        return self._held

    def close(self) -> None:
        """Take back what is held.  Failure: that has not quite succeeded, and
        the machine is not what the next trial takes it for."""
        holder, self._holder = self._holder, None
        self._wanted = self._held = None
        if not holder:
            return
        holder.stdin.close()
        try:
            status = holder.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Failure(PROGRAM, "does not take its settings back; see "
                          "blinktune status", RESOURCES) from None
        finally:
            holder.stdout.close()
            said = self._message()
        if status != 0:
            raise Failure(PROGRAM, said or end_of(status), RESOURCES)

    def _hold(self, profile: str) -> None:
        path = self._programs.find(PROGRAM)
        if not path:
            raise Unavailable(f"{PROGRAM}: not found")
        self._said = tempfile.TemporaryFile()
        # A group of its own: ^C must not end it before it has taken
        # everything back.
        self._holder = subprocess.Popen(
            [path, *self._nodes, "hold", profile], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self._said, process_group=0)
        if not self._is_held():
            self._give_up()
        self._held = {"profile": profile, "journal_sha256": self._journal()}

    def _is_held(self) -> bool:
        """Has it said so?  It may say other things first."""
        end = time.monotonic() + PATIENCE_S
        output = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._holder.stdout, selectors.EVENT_READ)
            while time.monotonic() < end:
                if not selector.select(end - time.monotonic()):
                    continue
                piece = os.read(self._holder.stdout.fileno(), 4096)
                output += piece
                if b"held" in output.split():
                    return True
                if not piece:
                    return False
        return False

    def _give_up(self) -> None:
        holder = self._holder
        try:
            self.close()
        except Failure as reason:
            raise Unavailable(f"{reason.what}: {reason.why}") from None
        raise Unavailable(f"{PROGRAM}: {end_of(holder.returncode)}")

    def _message(self) -> str | None:
        with self._said as file:
            file.seek(0)
            return reason_in(file.read().decode("utf-8", "replace"))

    def _journal(self) -> str | None:
        """What blinktune says of what is in force; nodes have a journal
        each."""
        if self._nodes:
            return None
        done = self._programs.call(PROGRAM, *self._nodes, "status", "--json")
        try:
            return json.loads(done.stdout).get("journal_sha256")
        except (ValueError, AttributeError):
            return None
