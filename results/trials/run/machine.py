"""One machine as the target of trials: a process sorts."""

import contextlib
import os

from trials.base.failure import FILE, Failure, naming
from trials.base.programs import Programs
from trials.machine import noise
from trials.record.sweep import sort_arguments
from trials.run import output_check, sorter
from trials.run.options import default_work
from trials.run.supervisor import Supervisor
from trials.run.target import Target
from trials.scenario import conditions, inputs
from trials.scenario.context import FILLER, Context
from trials.scenario.place import Place

# Enough for every option to be looked at, and over at once.
REHEARSAL_RECORDS = 1000


class Machine(Target):
    """This machine, where one process sorts."""

    def __init__(self, options, programs: Programs, supervisor: Supervisor,
                 _sweep=None):
        work = options.work
        self._work = work
        self._programs = programs
        self._supervisor = supervisor
        self._place = self._place_of(options)
        self._scenarios = {
            name: conditions.scenario(name, self._place, options)
            for name in options.scenarios}
        self._records = options.records
        self._ascii = options.ascii
        self._context = Context(f"{work}/in", f"{work}/out")
        self._input = None
        self._made_folder = False
        self._own_folder = work == default_work(options.out)

    def _place_of(self, options) -> Place:
        return Place.folder(options.work)

    def check(self, refuse_unverified: bool) -> None:
        for scenario in self._scenarios.values():
            scenario.check(refuse_unverified)

    def make_inputs(self, reuse: bool) -> None:
        """reuse: those of an earlier session may be there."""
        if not reuse and not self._own_folder:
            self._expect_none()
        self._made_folder = not os.path.isdir(self._work)
        with naming(self._work):
            os.makedirs(self._work, exist_ok=True)
        # An output that is replaced would cost the time of its removal.
        self.remove_output()
        self._input = self._make_input(reuse)

    def _make_input(self, reuse: bool) -> inputs.Input:
        return inputs.make(self._context.input, self._records, self._ascii, 0,
                           self._programs, reuse)

    def _input_files(self) -> list[str]:
        """Files that are made before all trials."""
        return [self._context.input]

    def _output_files(self) -> list[str]:
        """Files that each trial makes anew."""
        return [self._context.output]

    def _rehearsal_files(self) -> list[str]:
        """Files that are made before all trials, and removed then."""
        return [f"{self._work}/rehearsal"]

    def _own_files(self) -> list[str]:
        """All files that are ever made in the work folder."""
        sources, outputs = self._input_files(), self._output_files()
        return (sources + outputs + self._rehearsal_files()
                + beside(sources, inputs.FIRST, inputs.SUMMARY, FILLER)
                + beside(outputs, inputs.SUMMARY))

    def _expect_none(self) -> None:
        """Each would replace a file of the same name."""
        for path in self._own_files():
            if os.path.lexists(path):
                raise Failure(path, "is there already, and would be lost",
                              FILE)

    def rehearse(self, scenario: str, configuration: dict) -> str | None:
        """Sort a few records off the record.  None, or why that fails."""
        source = f"{self._work}/rehearsal"
        if not os.path.exists(source):
            inputs.generate(source, REHEARSAL_RECORDS, self._ascii, 0,
                            self._programs)
        _, result = self._sort(scenario, configuration, self._words(source))
        self.remove_output()
        return result.message or "fails" if result.failed else None

    def end_rehearsals(self) -> None:
        for path in self._rehearsal_files():
            inputs.remove(path)

    def noise(self) -> list[dict]:
        """The noise of each machine that sorts, now."""
        return [noise.place(noise.watch(self._programs))]

    def _bring_about(self, scenario: str, _configuration: dict) -> list[dict]:
        return self._scenarios[scenario].prepare(self._context)

    def run(self, scenario: str, configuration: dict):
        return self._sort(scenario, configuration,
                          self._words(self._context.input))

    def _words(self, source: str) -> list[str]:
        """The sorter's words for its input and its output."""
        return [source, "-o", self._context.output]

    def _sort(self, scenario, configuration, words):
        wanted = self._scenarios[scenario]
        return sorter.run(wanted.command(
            [self._programs.path("blinksort"), *words, "--json",
             *wanted.sort_options(),
             *sort_arguments(configuration["parameters"])]),
            self._supervisor, sorter.timeout_s_of(self._records))

    def _verify(self, scenario: str, result: sorter.Result) -> list[dict]:
        return self._scenarios[scenario].verify(self._context,
                                                result.documents[0])

    def _judge(self) -> output_check.OutputCheck:
        """Check that the output is the sorted input."""
        return output_check.of_report(self._validate(), self._input.records,
                                      self._input.checksum)

    def _validate(self):
        """blinkval, as it has run over the output."""
        return self._programs.call("blinkval", self._context.output)

    def remove_output(self) -> None:
        for path in self._output_files():
            inputs.remove(path)

    def _clear(self, _configuration: dict) -> None:
        self.remove_output()

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
        for path in self._input_files():
            inputs.remove(path)


def beside(paths: list[str], *ends: str) -> list[str]:
    return [path + end for path in paths for end in ends]
