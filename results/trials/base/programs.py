"""Where our programs are, and how one is run off the clock."""

import json
import os
import shlex
import shutil
import subprocess

from trials.base.failure import RESOURCES, Failure


class Programs:
    """The programs beside one of them, else those in PATH."""

    def __init__(self, folder: str, shown: str | None = None):
        """`shown`: the folder as a user knows it."""
        self.folder = folder
        self._shown = shown or folder

    @classmethod
    def beside(cls, called: str) -> "Programs":
        """The programs that lie beside the name that a program was called by.
        Links are not followed: bin/ has links to scripts, and the programs."""
        return cls(os.path.dirname(os.path.abspath(called)),
                   os.path.dirname(called) or ".")

    def find(self, name: str):
        """Path of a program, or None."""
        path = os.path.join(self.folder, name)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
        return shutil.which(name)

    def path(self, name: str) -> str:
        found = self.find(name)
        if not found:
            raise Failure(name, f"neither in {self.folder} nor in PATH",
                          RESOURCES)
        return found

    def words(self, name: str, *arguments) -> str:
        """A command line for a user's shell: the name alone if PATH leads to
        the program, else in the folder that this one was called from."""
        path, known = self.find(name), shutil.which(name)
        if not (path and known and os.path.samefile(known, path)):
            name = os.path.join(self._shown, name)
        return shlex.join((name, *map(str, arguments)))

    def call(self, name: str, *arguments,
             stdout=subprocess.PIPE) -> subprocess.CompletedProcess:
        """Run one to its end, off the clock; what it printed as text."""
        return subprocess.run(
            [self.path(name), *map(str, arguments)], check=False, text=True,
            errors="replace", stdin=subprocess.DEVNULL, stdout=stdout,
            stderr=subprocess.PIPE)

    def version(self) -> str:
        """The sorter's version: scripts have none of their own."""
        return self.must_call("blinksort", "--version").stdout.split()[-1]

    def must_call(self, name: str, *arguments) -> subprocess.CompletedProcess:
        """Run a program as call() does; raises Failure if it fails."""
        done = self.call(name, *arguments)
        if done.returncode != 0:
            # A program's message begins with its name.
            why = (first_line(done.stderr) or "").removeprefix(f"{name}: ")
            raise Failure(name, why or end_of(done.returncode))
        return done

    def document(self, name: str, *arguments) -> dict:
        """The JSON that a program prints."""
        return json.loads(self.must_call(name, *arguments).stdout)


def first_line(text: str) -> str | None:
    """The first line of a message; None if it is empty."""
    lines = text.strip().splitlines()
    return lines[0].strip() if lines else None


def end_of(status: int) -> str:
    """Words for the end of a process; a negative status is a signal."""
    if status < 0:
        return f"killed by signal {-status}"
    return f"ended with status {status}"
