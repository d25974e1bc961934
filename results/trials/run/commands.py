"""This machine as the target of trials of any commands.

The steps are those of Machine, which sorts; but a command's files are its own,
and whether it did well is for its exit status to say.
"""

import os
import sys
import time

from trials.base.failure import USAGE, Failure, naming
from trials.base.programs import Programs
from trials.machine import noise
from trials.run import hook
from trials.run.arms import Arm
from trials.run.sorter import Result
from trials.run.supervisor import Supervisor
from trials.run.target import Target
from trials.run.timed import message_of, time_command
from trials.scenario import conditions, inputs
from trials.scenario.context import Context
from trials.scenario.place import Place

# Nobody waits for a month; but a timer takes no more than a number.
TIMEOUT_S = 30 * 86400.0


class Commands(Target):
    """Arms that are timed, each in the current folder or one of its own."""

    # The first trial that fails ends the run.
    failures_at_most = 1

    def __init__(self, options, arms: list[Arm], programs: Programs,
                 supervisor: Supervisor):
        self._programs = programs
        self._supervisor = supervisor
        self._arms = arms
        self._ignores_failure = bool(options.ignore_failure)
        self._inputs = list(options.inputs or [])
        self._outputs = list(options.outputs or [])
        self._stdin = options.stdin or os.devnull
        self._shows_output = bool(options.show_output)
        self._warmup = options.warmup or 0
        self._place = Place(*(paths[0] if paths else os.getcwd() for paths
                              in (self._inputs, self._outputs)))
        self._context = Context(*(paths[0] if paths else "" for paths
                                  in (self._inputs, self._outputs)),
                                tuple(self._inputs[1:]))
        self._scenarios = {name: self._scenario(name, options)
                           for name in options.scenarios}
        self._set_up: list[Arm] = []
        # A limit asks for what can be relied on: the whole time.
        self._looks_long = options.noise_limit is not None
        self._shortest_ns = noise.TIME_MS * 10**6
        self._has_failed = False  # the command that has run last
        self.rehearsed_ns: dict[tuple, int] = {}

    def _scenario(self, name: str, options):
        if name == conditions.AsIs.name:
            return conditions.AsIs(self._place, options)
        if name not in conditions.NAMES:
            raise conditions.unknown(name, (conditions.AsIs.name,
                                            *conditions.NAMES))
        if not self._inputs:
            raise Failure(f"--scenario={name}", "names conditions of files: "
                          "give --input=FILE, and --output=FILE", USAGE)
        return conditions.scenario(name, self._place, options)

    @property
    def design(self) -> dict:
        """The member `commands` of a design."""
        return {"directory": os.getcwd(), "inputs": self._inputs,
                "outputs": self._outputs, "stdin": self._stdin,
                "ignores_failure": self._ignores_failure,
                "warmup_blocks": self._warmup}

    @property
    def shortest_ns(self) -> int:
        """What the shortest run took, but no more than a look at the noise
        ever takes."""
        return self._shortest_ns

    # --- before the first trial -----------------------------------------------

    def check(self, refuse_unverified: bool) -> None:
        for path in self._inputs:
            with naming(path):
                os.stat(path)
        for path in self._outputs:
            inputs.expect_removable(path)
        for scenario in self._scenarios.values():
            scenario.check(refuse_unverified)

    def make_inputs(self, reuse: bool) -> None:
        """What each arm asks for, once."""
        for arm in self._arms:
            # It is cleared up behind a setup that was begun.
            self._set_up.append(arm)
            self._call(arm, "setup", arm.setup)
            if self._supervisor.signal:
                return

    def rehearse(self, scenario: str, configuration: dict) -> str | None:
        """Run the command once off the record, and as often as it takes to warm
        up.  None, or why it fails.  What a trial takes is noted with all that
        is off the clock, for which the user waits, too."""
        for _ in range(1 + self._warmup):
            begin_ns = time.monotonic_ns()
            self._bring_about(scenario, configuration)
            if self._supervisor.signal:
                return None
            _, result = self.run(scenario, configuration)
            self._clear(configuration)
            if result.failed or self._supervisor.signal:
                break
            self.noise()
        self.rehearsed_ns[scenario, configuration["name"]] = (
            time.monotonic_ns() - begin_ns)
        return result.message if result.failed else None

    def end_rehearsals(self) -> None:
        """Each run clears up behind itself."""

    def noise(self) -> list[dict]:
        """Looked at for as long as the shortest command takes, within limits:
        thousands of short ones are done soon, and all trials are alike."""
        time_ms = noise.TIME_MS if self._looks_long else max(
            noise.LEAST_TIME_MS, self._shortest_ns // 10**6)
        return [noise.place(noise.watch(self._programs, time_ms))]

    # --- a trial --------------------------------------------------------------

    def _bring_about(self, scenario: str, configuration: dict) -> list[dict]:
        arm = self._arm(configuration)
        self.remove_output()
        self._call(arm, "prepare", arm.prepare)
        return self._scenarios[scenario].prepare(self._context)

    def run(self, scenario: str, configuration: dict):
        arm, wanted = self._arm(configuration), self._scenarios[scenario]
        timed = time_command(
            wanted.command(list(arm.words)), self._supervisor, TIMEOUT_S,
            directory=arm.directory, environment=dict(os.environ),
            stdin=self._stdin, keeps_stdout=self._shows_output)
        result = Result(timed.whole_ns, timed.exit_status,
                        message_of(timed), ignored=self._ignores_failure)
        self._shortest_ns = min(self._shortest_ns, timed.whole_ns)
        self._has_failed = bool(result.failed)
        if wanted.flushes:
            result.whole_ns += self._flush()
        if self._shows_output:
            print(timed.stdout + timed.stderr, end="", file=sys.stderr,
                  flush=True)
        return timed, result

    def _flush(self) -> int:
        """The time that it takes until the outputs are on the medium."""
        begin_ns = time.monotonic_ns()
        for path in self._outputs:
            inputs.flush(path)
        return time.monotonic_ns() - begin_ns

    def _verify(self, scenario: str, _result: Result) -> list[dict]:
        return self._scenarios[scenario].verify_command()

    def _judge(self) -> None:
        """Only its exit status tells of a command."""

    def _clear(self, configuration: dict) -> None:
        """Clear up behind a trial.  What concludes it may look at the output,
        which a command that has failed need not have: then that is what is
        told, and not that looking has failed, too."""
        arm = self._arm(configuration)
        try:
            self._call(arm, "conclude", arm.conclude)
        except Failure:
            if not self._has_failed:
                raise
        finally:
            self.remove_output()

    def remove_output(self) -> None:
        for path in self._outputs:
            inputs.remove(path)

    # --- around the trials ----------------------------------------------------

    def close(self, keep: bool) -> None:
        for scenario in self._scenarios.values():
            scenario.close()
        if not keep:
            self.remove_output()
        while self._set_up:
            arm = self._set_up.pop()
            self._call(arm, "cleanup", arm.cleanup)

    def _arm(self, configuration: dict) -> Arm:
        return Arm(configuration["name"], **configuration["command"])

    def _call(self, arm: Arm, name: str, text: str | None) -> None:
        """Run one of the commands beside the arm, off the clock."""
        if text is not None:
            hook.run(name, text, arm.directory, self._supervisor)
