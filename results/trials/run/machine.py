"""One machine as the target of trials: a process sorts.

What a target does, this one or a cluster: prepare, sort, verify and judge, in
the same steps, so that the runner need not know which of them it has.
"""

import contextlib
import os

from trials.base.failure import FILE, Failure, of_file
from trials.base.programs import Programs
from trials.machine import counters, environment, noise
from trials.record.sweep import sort_arguments
from trials.run import output_check, sorter
from trials.run.options import default_work
from trials.run.supervisor import Supervisor
from trials.scenario import conditions, inputs

# Enough for every option to be looked at, and over at once.
REHEARSAL_RECORDS = 1000


class Machine:
    """This machine, where one process sorts."""

    hosts = None

    def __init__(self, options, programs: Programs, supervisor: Supervisor):
        work = options.work
        self._work = work
        self._programs = programs
        self._supervisor = supervisor
        self._scenarios = {name: conditions.scenario(name, work, options)
                           for name in options.scenarios}
        self._records = options.records
        self._ascii = options.ascii
        self._context = conditions.Context(f"{work}/in", f"{work}/out")
        self._input = None
        self._made_folder = False
        self._own_folder = work == default_work(options.out)

    def check(self, refuse_unverified: bool) -> None:
        for scenario in self._scenarios.values():
            scenario.check(refuse_unverified)

    def make_inputs(self, reuse: bool) -> None:
        """reuse: those of an earlier session may be there."""
        if not reuse and not self._own_folder:
            self._expect_none()
        self._made_folder = not os.path.isdir(self._work)
        try:
            os.makedirs(self._work, exist_ok=True)
        except OSError as error:
            raise of_file(self._work, error) from None
        # One that is replaced would cost the time of its removal.
        self.remove_output()
        self._input = self._make_input(reuse)

    def _make_input(self, reuse: bool) -> inputs.Input:
        return inputs.make(self._context.input, self._records, self._ascii, 0,
                           self._programs, reuse)

    def _files(self) -> list[str]:
        """What is made here, and would replace a file of the same name."""
        return [self._context.input, self._context.output]

    def _expect_none(self) -> None:
        for path in self._files():
            if os.path.lexists(path):
                raise Failure(path, "is there already, and would be lost",
                              FILE)

    def rehearse(self, scenario: str, parameters: dict) -> str | None:
        """Sort a few records off the record.  None, or why that fails."""
        source = f"{self._work}/rehearsal"
        if not os.path.exists(source):
            inputs.generate(source, REHEARSAL_RECORDS, self._ascii, 0,
                            self._programs)
        _, result = self._sort(scenario, parameters, source)
        self.remove_output()
        return result.message or "fails" if result.exit_status else None

    def end_rehearsals(self) -> None:
        inputs.remove(f"{self._work}/rehearsal")

    def noise(self) -> list[dict]:
        """How noisy each machine that sorts is now."""
        return [noise.place(noise.watch(self._programs))]

    def prepare(self, scenario: str, _parameters: dict) -> list[dict]:
        return self._scenarios[scenario].prepare(self._context)

    def counters(self) -> dict:
        return counters.read(self._work)

    def difference(self, before: dict, after: dict) -> dict:
        return counters.difference(before, after)

    def sort(self, scenario: str, parameters: dict):
        return self._sort(scenario, parameters, self._context.input)

    def _sort(self, scenario, parameters, source):
        wanted = self._scenarios[scenario]
        return sorter.run(wanted.command(
            [self._programs.path("blinksort"), source,
             "-o", self._context.output, "--json", *wanted.sort_options(),
             *sort_arguments(parameters)]), self._supervisor,
            sorter.timeout_s_of(self._records))

    def verify(self, scenario: str, result: sorter.Result) -> list[dict]:
        return self._scenarios[scenario].verify(self._context,
                                                result.documents[0])

    def judge(self) -> output_check.OutputCheck:
        """Is the output the sorted input?"""
        done = self._programs.call("blinkval", self._context.output)
        return output_check.of_report(done, self._input.records,
                                      self._input.checksum)

    def remove_output(self) -> None:
        inputs.remove(self._context.output)

    def describe(self) -> dict:
        return environment.describe([self._work], self._programs)

    def close(self, keep: bool) -> None:
        """Remove what was made here, but for what keep asks to leave."""
        if self._input is not None:
            self._remove_files(keep)
        if not keep and (self._made_folder or self._own_folder):
            with contextlib.suppress(OSError):
                os.rmdir(self._work)

    def _remove_files(self, keep: bool) -> None:
        self.end_rehearsals()
        self.remove_output()
        if keep:
            return
        for scenario in self._scenarios.values():
            scenario.close()
        inputs.remove(self._context.input)
