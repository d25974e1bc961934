"""Runs the trials of a design, one after the other, and records each of them.

Only the run of the sorter or the command is timed, and not preparing, counting,
checking, recording and showing how far the trials are.  What all that costs is
in the record, too.
"""

import contextlib
import time

from trials.base.failure import Failure
from trials.cost.energy import Energy
from trials.record import schema
from trials.record.design import block_seed, configuration
from trials.record.store import Record
from trials.run.noise import NoiseWatch
from trials.run.output_check import OutputCheck
from trials.run.progress import Progress
from trials.run.supervisor import Supervisor
from trials.scenario.conditions import BeyondMemory, all_met
from trials.scenario.tuning import Tuning, Unavailable
from trials.statistics.racing import is_sample

# A run that can only fail is not worth its time.
MOST_FAILURES_AT_FIRST = 3


class Clock:
    """Measures where the runner's own time goes, from one trial to the next."""

    def __init__(self):
        self._end_ns = time.monotonic_ns()
        self._checked_ns = 0

    def costs(self, timed, spent: dict) -> dict:
        """The runner's times of one trial.  Overhead is what was spent on
        neither preparation, tuning, checks nor noise."""
        prepare_ns, tuning_ns = spent["prepare"], spent["tuning"]
        overhead_ns = (timed.begin_monotonic_ns - self._end_ns - prepare_ns
                       - tuning_ns - spent["noise"] - self._checked_ns)
        self._end_ns = timed.end_monotonic_ns
        self._checked_ns = spent["check"]
        return {"user_ns": timed.runner_user_ns,
                "system_ns": timed.runner_system_ns,
                "prepare_ns": prepare_ns, "check_ns": spent["check"],
                "tuning_ns": tuning_ns, "noise_ns": spent["noise"],
                "overhead_ns": overhead_ns}


class Runner:
    """Goes on where the record ends, until all trials are recorded."""

    def __init__(self, record: Record, target, tuning: Tuning,
                 supervisor: Supervisor, progress: Progress,
                 energy: Energy, noise: NoiseWatch):
        self._record = record
        self._target = target
        self._tuning = tuning
        self._supervisor = supervisor
        self._progress = progress
        self._energy = energy
        self._noise = noise
        self._watched_block = None
        self._clock = Clock()
        self._session = []

    def run(self) -> None:
        try:
            while not self._supervisor.signal:
                planned = self._record.next()
                if planned is None:
                    break
                trial = self._trial(planned)
                if trial:
                    self._record.append(trial)
                    self._note(trial)
        finally:
            self._progress.close()
            self._tuning.close()

    def _note(self, trial: dict) -> None:
        self._session.append(is_sample(trial))
        failed = self._session.count(False)
        self._progress.show(trial["trial"] + 1, failed)
        most = self._target.failures_at_most
        if (failed == len(self._session) == min(most, MOST_FAILURES_AT_FIRST)
                or failed == most):
            raise Failure("given up", f"{failed} of {len(self._session)} "
                          f"trials failed; the last one: {trial['message']}")

    def _trial(self, planned) -> dict | None:
        """Run the trial; None: a signal has come into it, so that it tells
        nothing.  After a stop, as by Ctrl-Z, the trial is run again: the sorter
        has gone on, and its end was seen late."""
        self._supervisor.was_stopped = False
        wanted = configuration(self._record.design, planned.configuration)
        spent = {}
        with stopwatch(spent, "noise"):
            noise = self._watch(planned.block)
        if self._supervisor.signal:
            return None
        with stopwatch(spent, "tuning"):
            tuning = self._tune(wanted)
        with stopwatch(spent, "prepare"):
            conditions, before = self._target.prepare(planned.scenario, wanted)
        has_passes = planned.scenario == BeyondMemory.name
        with self._energy.around(has_passes):
            timed, result = self._target.run(planned.scenario, wanted)
        with stopwatch(spent, "check"):
            ending = self._target.finish(planned.scenario, wanted, result)
            conditions += ending.conditions
            if self._supervisor.signal:
                return None
            if self._supervisor.was_stopped:
                self._progress.remark(f"trial {planned.trial} is run again: "
                                      "blinktrial was stopped during it")
                return None
            energy = self._energy.of(timed, result.whole_ns,
                                     result.ranks if has_passes else ())
        return {
            "schema": schema.TRIAL, **planned._asdict(),
            "seed": block_seed(self._record.design, planned.block),
            "begin_unix_ns": timed.begin_unix_ns,
            "begin_monotonic_ns": timed.begin_monotonic_ns,
            **findings(result, ending.check), "ranks": result.ranks,
            "measures": timed.measures,
            "counters": self._target.difference(before, ending.counters),
            "conditions": conditions, "scenario_met": all_met(conditions),
            "runner": self._clock.costs(timed, spent), "tuning": tuning,
            "energy": energy, "noise": noise}

    def _watch(self, block: int) -> dict:
        """A session that goes on within a block begins with it."""
        begins_block = block != self._watched_block
        self._watched_block = block
        return self._noise.before_trial(begins_block)

    def _tune(self, wanted: dict) -> dict | None:
        try:
            return self._tuning.want(wanted["tuning"])
        except Unavailable as reason:
            # The condition was available when the run began.
            raise Failure(wanted["name"], reason) from None


@contextlib.contextmanager
def stopwatch(spent: dict, name: str):
    """Note in the dict how long a with block takes."""
    begin_ns = time.monotonic_ns()
    yield
    spent[name] = time.monotonic_ns() - begin_ns


def findings(result, check: OutputCheck | None) -> dict:
    """The outcome of a run; a time is only given if it ended well."""
    good = check is None or check.good
    outcome = "failed" if result.failed else "ok" if good else "wrong"
    return {"whole_ns": None if result.failed else result.whole_ns,
            "outcome": outcome, "exit_status": result.exit_status,
            "message": check.message or result.message if check
            else result.message,
            "records": result.records, "bytes": result.bytes,
            "checksum": check.checksum if check else None}
