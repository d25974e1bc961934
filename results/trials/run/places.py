"""Values of a sweep that are not set, but had in a folder of their own all the
time: of arrays with another stripe, or of partitions elsewhere on the disks.

There is a target for each such folder beside that of --work, all of one kind,
and each has the same input.  So the order of trials is random for these values,
too, and nothing is moved between two trials.
"""

import copy

from trials.record.sweep import WORK, Sweep
from trials.run.target import Ending


class Places:
    """A trial is that of the target that its configuration names."""

    def __init__(self, kind, options, programs, supervisor, sweep: Sweep):
        def target(work):
            at = copy.copy(options)
            at.work = work
            return kind(at, programs, supervisor, sweep)

        folders = sweep.places(WORK)
        self._folder_of = folders
        self._targets = {work: target(work) for work in
                         dict.fromkeys([options.work, *folders.values()])}
        self._first = self._targets[options.work]

    def __getattr__(self, name):
        """What all targets have in common."""
        return getattr(self._first, name)

    def _choose(self, configuration: dict):
        parameters = configuration["parameters"]
        return next(
            (self._targets[folder] for (name, value), folder
             in self._folder_of.items() if parameters.get(name) == value),
            self._first)

    def _each(self, method: str, *arguments) -> None:
        for target in self._targets.values():
            getattr(target, method)(*arguments)

    def check(self, refuse_unverified: bool) -> None:
        self._each("check", refuse_unverified)

    def make_inputs(self, reuse: bool) -> None:
        self._each("make_inputs", reuse)

    def rehearse(self, scenario: str, configuration: dict) -> str | None:
        return self._choose(configuration).rehearse(scenario, configuration)

    def end_rehearsals(self) -> None:
        self._each("end_rehearsals")

    def prepare(self, scenario: str, configuration: dict) -> tuple:
        return self._choose(configuration).prepare(scenario, configuration)

    def run(self, scenario: str, configuration: dict):
        return self._choose(configuration).run(scenario, configuration)

    def finish(self, scenario: str, configuration: dict, result) -> Ending:
        return self._choose(configuration).finish(scenario, configuration,
                                                  result)

    def close(self, keep: bool) -> None:
        self._each("close", keep)
