"""Values of a sweep that are not set, but had in a folder of their own all the
time: of arrays with another stripe, or of partitions elsewhere on the disks.

There is a target for each such folder beside that of --work, all of one kind,
and each has the same input.  So the order of trials is random for these values,
too, and nothing is moved between two trials.
"""

import copy
import functools

from trials.record.sweep import WORK, Sweep

# What all targets do, and what only that of a trial does.
_OF_EACH = ("check", "make_inputs", "end_rehearsals", "close")
_OF_A_TRIAL = ("rehearse", "prepare", "run", "finish")


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
        """What all targets have in common is that of the first."""
        if name in _OF_EACH:
            return functools.partial(self._each, name)
        if name in _OF_A_TRIAL:
            return functools.partial(self._in_its_place, name)
        return getattr(self._first, name)

    def _each(self, name: str, *arguments, **named) -> None:
        for target in self._targets.values():
            getattr(target, name)(*arguments, **named)

    def _in_its_place(self, name: str, scenario: str, configuration: dict,
                      *more):
        parameters = configuration["parameters"]
        chosen = next(
            (self._targets[folder] for (parameter, value), folder
             in self._folder_of.items() if parameters.get(parameter) == value),
            self._first)
        return getattr(chosen, name)(scenario, configuration, *more)
