"""This machine as the target of trials, where one process sorts from a block
device to another."""

import contextlib
import fcntl
import os
import time

from trials.base.failure import FAILED, FILE, USAGE, Failure, naming
from trials.base.programs import end_of
from trials.machine import disks
from trials.run.machine import REHEARSAL_RECORDS, Machine, beside
from trials.scenario import conditions, inputs
from trials.scenario.context import DeviceContext
from trials.scenario.inputs import RECORD_BYTES
from trials.scenario.place import Place
from trials.scenario.residency import opened

# udev locks a device for some milliseconds when a program has written to it.
LOCK_TRIES = 20
LOCK_PAUSE_S = 0.01


class Devices(Machine):
    """The records are the first bytes of each device; what stands behind them
    stays, and no trial removes anything.  The work folder has small files."""

    def __init__(self, options, programs, supervisor, _sweep=None):
        super().__init__(options, programs, supervisor)
        self._context = DeviceContext.at(self._place)
        # The beginning of their names.
        self._small_files = f"{self._work}/in"
        self._held = []

    def _place_of(self, options) -> Place:
        return Place(options.input_device, options.output_device,
                     options.records * RECORD_BYTES)

    @property
    def devices(self) -> dict:
        return {"input": self._place.input, "output": self._place.output}

    # --- before anything is written -------------------------------------------

    def check(self, refuse_unverified: bool) -> None:
        self._refuse()
        for path in self._place.paths:
            expect_room(path, self._place.device_bytes)
        super().check(refuse_unverified)

    def _refuse(self) -> None:
        """What blinksort writes to no device for holds for both: a sort of no
        records refuses it, and writes nothing."""
        source, output = map(os.path.realpath, (self._place.input,
                                                self._place.output))
        if source == output:
            raise Failure("--output-device", "is the device of the input",
                          USAGE)
        for path in self._place.paths:
            expect_unlocked(path)
        done = self._programs.call("blinksort", "-",
                                   f"--output-device={self._place.input}",
                                   f"--output-device={self._place.output}")
        if done.returncode != 0:
            # Notices may stand before the message.
            said = (done.stderr.splitlines() or [""])[-1]
            what, _, why = said.removeprefix("blinksort: ").partition(": ")
            raise Failure(what or "blinksort", why or end_of(done.returncode),
                          max(done.returncode, FAILED))

    # --- the input ------------------------------------------------------------

    def _input_files(self) -> list[str]:
        return []

    def _output_files(self) -> list[str]:
        return []

    def _rehearsal_files(self) -> list[str]:
        return []

    def _own_files(self) -> list[str]:
        return beside([self._small_files], inputs.FIRST, inputs.SUMMARY)

    def _make_input(self, reuse: bool) -> inputs.Input:
        self._hold()
        if reuse:
            return inputs.find_on_device(
                self._context.input, self._records, self._ascii,
                self._programs, self._small_files)
        return inputs.make_on_device(self._context.input, self._records,
                                     self._ascii, self._programs)

    def _hold(self) -> None:
        """Keep both open, so that the kernel keeps their pages between one
        program and the next; and lock the input, which keeps blinksort, and
        another run, from writing there.  The sorter locks the output."""
        for path in self._place.paths:
            with naming(path):
                self._held.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        try:
            fcntl.flock(self._held[0], fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise locked(self._place.input) from None

    # --- a trial --------------------------------------------------------------

    def rehearse(self, scenario: str, configuration: dict) -> str | None:
        """The first records of the input are a few."""
        few_bytes = min(self._records, REHEARSAL_RECORDS) * RECORD_BYTES
        _, result = self._sort(scenario, configuration,
                               self._words_of(scenario, few_bytes))
        return result.message or "fails" if result.failed else None

    def run(self, scenario: str, configuration: dict):
        return self._sort(scenario, configuration, self._words_of(
            scenario, self._place.device_bytes))

    def _words_of(self, scenario: str, size_bytes: int) -> list[str]:
        words = [self._context.input, f"--device-bytes={size_bytes}",
                 f"--output-device={self._context.output}"]
        if scenario == conditions.BeyondMemory.name:
            words += ["-T", self._work]
        return words

    def _validate(self):
        return inputs.validate(self._context.output, self._programs,
                               device_bytes=self._place.device_bytes)

    def close(self, keep: bool) -> None:
        while self._held:
            os.close(self._held.pop())
        super().close(keep)


def locked(path: str) -> Failure:
    return Failure(path, "it is in use: another program has locked it", FILE)


def expect_unlocked(path: str) -> None:
    """blinksort would find a lock, too; but while it looked, it would claim
    the devices, and the trials of the run that holds the lock would fail."""
    if not os.path.exists(path) or not disks.is_device(path):
        return
    with opened(path) as fd:
        for _ in range(LOCK_TRIES):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(LOCK_PAUSE_S)
    raise locked(path)


def expect_room(path: str, size_bytes: int) -> None:
    with opened(path) as fd:
        found_bytes = os.lseek(fd, 0, os.SEEK_END)
    if found_bytes < size_bytes:
        raise Failure(path, f"has {found_bytes} bytes, and the records take "
                      f"{size_bytes}", FILE)
