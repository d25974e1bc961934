"""Trees of commits of a git repository, each built in a folder of its own.

A tree is a clone that borrows the repository's objects: the user's work tree,
index, branches and list of work trees stay as they are, and whatever ends the
run leaves nothing there.
"""

import os

from trials.base.failure import FAILED, FILE, USAGE, Failure
from trials.base.programs import Programs, first_line
from trials.run.supervisor import Supervisor
from trials.run.timed import time_command

# A build may take long, but not for ever.
BUILD_S = 6 * 3600.0
# So much of what a build has printed is shown if it fails.
SHOWN_LINES = 20


class Repository:
    """The one that the current folder is in."""

    def __init__(self, programs: Programs):
        self._programs = programs
        # A hook of git has variables that name a repository: neither git, nor
        # a build, nor a command shall take that one for the tree it is in.
        for name in self._git("rev-parse", "--local-env-vars").split():
            os.environ.pop(name, None)
        self.root = self._git("rev-parse", "--show-toplevel", status=USAGE)

    def commit(self, option: str, revision: str) -> str:
        """The commit's full name."""
        try:
            return self._git("rev-parse", "--verify", "--quiet",
                             "--end-of-options", f"{revision}^{{commit}}")
        except Failure:
            raise Failure(option, f"'{revision}' is no commit in {self.root}",
                          USAGE) from None

    def subject(self, commit: str) -> str:
        """Its short name and the first line of its message."""
        return self._git("log", "-1", "--format=%h %s", commit)

    def check_out(self, commit: str, folder: str) -> None:
        """The files of the commit, in this new folder."""
        self._git("clone", "--quiet", "--shared", "--no-checkout", self.root,
                  folder)
        # A clone of a shallow repository, as CI services have, copies what its
        # branches reach, and no commit that was fetched beside them.
        self._git("-C", folder, "-c", "protocol.version=2", "fetch", "--quiet",
                  "--update-shallow", "origin", commit)
        self._git("-C", folder, "checkout", "--quiet", "--detach", commit)

    def _git(self, *words: str, status: int = FILE) -> str:
        """What git prints."""
        done = self._programs.call("git", *words)
        if done.returncode != 0:
            why = (first_line(done.stderr) or "fails").removeprefix("fatal: ")
            raise Failure("git", why, status)
        return done.stdout.strip()


def build(folder: str, command: str, name: str,
          supervisor: Supervisor) -> None:
    """Run the command by /bin/sh in the folder.  Failure: it fails; what it has
    printed last is a part of the reason."""
    timed = time_command(
        ["/bin/sh", "-c", f"exec 2>&1\n{command}"], supervisor, BUILD_S,
        directory=folder, environment=dict(os.environ))
    if supervisor.signal:
        raise Failure("interrupted", f"while {name} was built",
                      128 + supervisor.signal)
    if timed.exit_status != 0:
        for line in timed.stdout.splitlines()[-SHOWN_LINES:]:
            os.write(2, f"  {line}\n".encode())
        raise Failure(f"--build: {name}",
                      f"ended with status {timed.exit_status}", FAILED)
