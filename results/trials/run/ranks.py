"""Ranks on this machine as the target of trials: an mpirun starts them, and a
sweep says how many there are, and over what they exchange their records."""

import base64
import contextlib

from trials.base.failure import USAGE, Failure
from trials.machine import disks
from trials.record.sweep import (RANKS_DEFAULTS, Sweep, ranks_of,
                                 sort_arguments)
from trials.run import agent, mpirun, output_check, sorter
from trials.run.machine import REHEARSAL_RECORDS, Machine
from trials.scenario import conditions, inputs
from trials.scenario.context import Context


class Ranks(Machine):
    """Each number of ranks has inputs of its own, in.COUNT.RANK: the same
    records in so many parts, or with weak scaling so many times as many."""

    def __init__(self, options, programs, supervisor, sweep: Sweep):
        if options.hosts:
            raise Failure("-w", "sorts on nodes, the sweep's ranks on this "
                          "machine", USAGE)
        if options.input_device:
            raise Failure("--input-device", "is for one process, not for "
                          "ranks", USAGE)
        if conditions.BeyondMemory.name in options.scenarios:
            raise Failure(conditions.BeyondMemory.name,
                          "is for one process, not for ranks", USAGE)
        self._weak = sweep.weak_scaling
        if self._weak and (options.price or options.energy):
            raise Failure("scaling weak", "sorts more records with more "
                          "ranks: --price and --energy are of one number",
                          USAGE)
        super().__init__(options, programs, supervisor)
        set_counts = [parameter.values for parameter in sweep.parameters
                      if parameter.name == "ranks.count"]
        self._counts = [int(count) for count in
                        (set_counts or [[RANKS_DEFAULTS["count"]]])[0]]
        self._contexts = []
        self._checks = []
        # The inputs by the number of ranks, and that number of the last run.
        self._inputs = {}
        self._count = 0

    @staticmethod
    def wanted_by(sweep: Sweep | None) -> bool:
        """Those of "only cluster" are for a Cluster."""
        return sweep is not None and any(
            parameter.kind == "ranks" and not parameter.cluster_only
            for parameter in sweep.parameters)

    # --- files ----------------------------------------------------------------

    def _input_of(self, count: int, rank) -> str:
        return f"{self._work}/in.{count}.{rank}"

    def _output_of(self, rank) -> str:
        return f"{self._work}/out.{rank}"

    def _rehearsal_of(self, count: int, rank) -> str:
        return f"{self._work}/rehearsal.{count}.{rank}"

    def _said_of(self, rank) -> str:
        return f"{self._work}/said.{rank}"

    def _of_all_ranks(self, path_of) -> list[str]:
        return [path_of(count, rank) for count in self._counts
                for rank in range(count)]

    def _input_files(self) -> list[str]:
        return self._of_all_ranks(self._input_of)

    def _rehearsal_files(self) -> list[str]:
        return self._of_all_ranks(self._rehearsal_of)

    def _output_files(self) -> list[str]:
        return [path for rank in range(max(self._counts))
                for path in (self._output_of(rank), self._said_of(rank))]

    def _make_input(self, reuse: bool) -> inputs.Input:
        for count in self._counts:
            parts, whole = [], self._records_of(count)
            for rank in range(count):
                first, records = inputs.share(whole, rank, count)
                parts.append(inputs.make(
                    self._input_of(count, rank), records, self._ascii, first,
                    self._programs, reuse))
            self._inputs[count] = inputs.Input(
                self._work, whole, agent.join_checksums(
                    [part.checksum for part in parts]))
        return self._inputs[self._counts[0]]

    def _records_of(self, count: int) -> int:
        return self._records * (count if self._weak else 1)

    # --- a trial --------------------------------------------------------------

    def rehearse(self, scenario: str, configuration: dict) -> str | None:
        count = count_of(configuration)
        for rank in range(count):
            first, records = inputs.share(REHEARSAL_RECORDS, rank, count)
            inputs.generate(self._rehearsal_of(count, rank), records,
                            self._ascii, first, self._programs)
        try:
            _, result = self._sort(scenario, configuration, self._rehearsal_of)
        except Failure as reason:
            return str(reason)
        finally:
            self.remove_output()
        return result.message or "fails" if result.failed else None

    def _bring_about(self, scenario: str, configuration: dict) -> list[dict]:
        count = count_of(configuration)
        self._contexts = [Context(
            self._input_of(count, rank), self._output_of(rank))
            for rank in range(count)]
        sources = [context.input for context in self._contexts]
        return self._scenarios[scenario].prepare(Context(
            sources[0], self._output_of(0), tuple(sources[1:])))

    def run(self, scenario: str, configuration: dict):
        return self._sort(scenario, configuration, self._input_of)

    def _sort(self, scenario, configuration, input_of):
        ranks = ranks_of(configuration["parameters"]) or RANKS_DEFAULTS
        count = count_of(configuration)
        timeout_s = sorter.timeout_s_of(self._records_of(count))
        self._count = count
        command = mpirun.command(
            self._programs, ranks["mpirun"], ranks["exchange"], count,
            f"{self._work}/said",
            [literal_but_rank(input_of(count, "%r")), "-o",
             literal_but_rank(self._output_of("%r")), "--json",
             *self._scenarios[scenario].sort_options(),
             *sort_arguments(configuration["parameters"])])
        return sorter.run_ranks(
            command, self._supervisor, timeout_s, [None] * count,
            lambda: [disks.read_text(self._said_of(rank)) or ""
                     for rank in range(count)])

    def _verify(self, scenario: str, result: sorter.Result) -> list[dict]:
        """The conditions after a run; none of a run that has failed.  They
        come first: to sum an output up brings it into the cache."""
        self._checks = []
        if result.failed:
            return []
        wanted = self._scenarios[scenario]
        found = agent.join_conditions({
            f"rank {rank}": wanted.verify(context, document)
            for rank, (context, document)
            in enumerate(zip(self._contexts, result.documents))})
        for rank, context in enumerate(self._contexts):
            summary, message = agent.summary_of(context.output,
                                                self._programs)
            self._checks.append({
                "host": f"rank {rank}", "message": message,
                "summary_base64": base64.b64encode(summary).decode()})
        return found

    def _judge(self) -> output_check.OutputCheck:
        done = agent.join_check(self._checks, self._programs)
        wanted = self._inputs[self._count]
        return output_check.of_report(done, wanted.records, wanted.checksum)

    def close(self, keep: bool) -> None:
        # Ranks of an mpirun that was killed may end a little later.
        with contextlib.suppress(OSError):
            self.remove_output()
        super().close(keep)


def count_of(configuration: dict) -> int:
    ranks = ranks_of(configuration["parameters"]) or RANKS_DEFAULTS
    return int(ranks["count"])


def literal_but_rank(path: str) -> str:
    """blinksort replaces %r by the rank, and %% by %."""
    return path[:-2].replace("%", "%%") + path[-2:]
