"""What is tried: this machine, some of its devices, the ranks of an mpirun,
a cluster, or commands.

All have the same steps: prepare, run, finish.  So the runner need not know
which of them it has.
"""

from typing import NamedTuple

from trials.machine import counters, environment
from trials.run.output_check import OutputCheck


class Ending(NamedTuple):
    """How a trial was found behind its run."""

    counters: dict
    conditions: list
    # None of a run that has failed, and of commands.
    check: OutputCheck | None


class Target:
    """One machine, which has a Place and Programs."""

    hosts = None
    devices = None
    # What a trial takes is not known before the first.
    shortest_ns = None
    # After so many failures, trials are given up.
    failures_at_most = 10

    def prepare(self, scenario: str, configuration: dict) -> tuple:
        """The conditions then, and after them the counters."""
        return self._bring_about(scenario, configuration), self._read_counters()

    def finish(self, scenario: str, configuration: dict, result) -> Ending:
        """Count, look at the output, and clear up."""
        after = self._read_counters()
        found = self._verify(scenario, result)
        check = None if result.failed else self._judge()
        self._clear(configuration)
        return Ending(after, found, check)

    def _read_counters(self) -> dict:
        return counters.read(*self._place.paths)

    def difference(self, before: dict, after: dict) -> dict:
        return counters.difference(before, after)

    def describe(self) -> dict:
        return environment.describe(self._place.paths, self._programs)
