"""Run commands alternately and take their times."""

import contextlib
import os
import subprocess
from pathlib import Path

from programs import Failed, built, older


class Spawner:
    """bench_spawn, kept running: see there."""

    def __init__(self, scratch):
        self.output = scratch / "stdout"
        self.errors = scratch / "stderr"
        environment = dict(os.environ, LC_ALL="C")
        with open(self.errors, "ab") as errors:
            self.process = subprocess.Popen(
                [built("bench_spawn"), str(self.output)], text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=environment)

    def run(self, commands):
        """Commands, one after the other, as one: (elapsed_ns, max_rss_kib)."""
        for path in (self.output, self.errors):
            with contextlib.suppress(FileNotFoundError):
                os.truncate(path, 0)
        self.process.stdin.write(
            "\t&&\t".join("\t".join(words) for words in commands) + "\n")
        self.process.stdin.flush()
        elapsed_ns, status, max_rss_kib = map(
            int, self.process.stdout.readline().split())
        if status != 0:
            raise Failed(f"{Path(commands[0][0]).name}: status {status}: "
                         f"{self.errors.read_text().strip()[-200:]}")
        return elapsed_ns, max_rss_kib

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Contestant:
    """Commands that are timed as one, and what they cost."""

    def __init__(self, name, *commands, before=None, check=None):
        self.name = name
        self.commands = commands
        self.before = before
        self.check = check
        self.elapsed_ns = []
        self.max_rss_kib = []

    def run(self, spawner, output, counted):
        output.unlink(missing_ok=True)
        if self.before:
            self.before()
        elapsed_ns, max_rss_kib = spawner.run(self.commands)
        if counted:
            self.elapsed_ns.append(elapsed_ns)
            self.max_rss_kib.append(max_rss_kib)


def twin(contestant):
    """The same by an older build of our programs."""
    return Contestant(
        "before", *[[older(word) for word in words]
                    for words in contestant.commands],
        before=contestant.before, check=contestant.check)


def duel(spawner, output, rounds, contestants):
    """Run them by turns, in one round from the first to the last, in the next
    from the last to the first; the outputs of the last round are checked."""
    for number in range(rounds + 1):
        for contestant in contestants[::1 if number % 2 else -1]:
            contestant.run(spawner, output, counted=number > 0)
            if number == rounds and contestant.check:
                contestant.check(output)
    output.unlink(missing_ok=True)
