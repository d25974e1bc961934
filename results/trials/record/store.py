"""A record directory: the design, the trials, the machine.

    design.json        written once, before the first trial
    trials.jsonl       a line a trial, in order; only ever appended to
    environment.json   the machine before and after each session

A trial that append() has returned from is on the medium, and stays there
whatever happens to the process or the machine.  One that was being written when
the process was killed is there whole or not at all: it is one write of a line,
and a last line without its end is cut off when the record is opened again.
Everything else that is wrong with a record is damage, and refused.
"""

import errno
import fcntl
import json
import os
import time
from dataclasses import dataclass, field
from typing import Iterable

from trials.base import documents
from trials.base.failure import FILE, Failure, naming, of_file
from trials.record import design as designs, schema
from trials.statistics.precision import Precision

DESIGN = "design.json"
TRIALS = "trials.jsonl"
ENVIRONMENT = "environment.json"


@dataclass
class Run:
    """A record, read."""

    path: str
    design: dict
    trials: list[dict]
    environment: dict
    notes: list[str] = field(default_factory=list)
    complete: bool = False


# --- files -------------------------------------------------------------------

def _sync_folder(path):
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write_document(folder, name, document):
    """Write the file so that it is complete, or as it was before."""
    path = os.path.join(folder, name)
    with naming(path):
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1, allow_nan=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + ".new", path)
        _sync_folder(folder)


def _read_design(folder):
    path = os.path.join(folder, DESIGN)
    design = schema.read(path, designs.SCHEMA)
    for why in schema.plan_complaints(design):
        raise Failure(path, why, FILE)
    return design


def read_environment(folder) -> dict:
    """The environment of all sessions; no session if there is no file."""
    path = os.path.join(folder, ENVIRONMENT)
    if not os.path.exists(path):
        return {"schema": schema.ENVIRONMENT, "sessions": []}
    return schema.read(path, schema.ENVIRONMENT)


# --- lines -------------------------------------------------------------------

def _torn(path, length_bytes):
    return (f"{path}: the last line was never finished; its {length_bytes} "
            "bytes do not count")


def _line(path, trial) -> bytes:
    ordered = {key: trial[key] for key in schema.TRIAL_KEYS}
    try:
        text = json.dumps(ordered, ensure_ascii=False, allow_nan=False,
                          separators=(",", ":"))
    except ValueError as error:
        raise Failure(f"{path}: a trial", error) from None
    # Half a surrogate pair can stand in a message that was not UTF-8.
    return f"{text}\n".encode("utf-8", "replace")


def _parse(path, design, lines: Iterable[bytes]) -> schema.Sequence:
    sequence = schema.Sequence(design)
    for where, trial in schema.parsed(path, schema.TRIAL, lines):
        for why in sequence.complaints(trial):
            raise Failure(where, f"is damaged: {why}", FILE)
        sequence.add(trial)
    return sequence


# --- readers -----------------------------------------------------------------

def read(path: str) -> Run:
    """The record in the folder `path`, which may still be growing."""
    design = _read_design(path)
    trials_path = os.path.join(path, TRIALS)
    lines, rest = documents.read_lines(trials_path)
    sequence = _parse(trials_path, design, lines)
    run = Run(path, design, sequence.trials, read_environment(path),
              complete=sequence.next is None)
    if rest:
        run.notes.append(_torn(trials_path, rest))
    if not run.complete:
        run.notes.append(f"stopped in block {sequence.next.block + 1} of "
                         f"{design['trials']}, after "
                         f"{len(sequence.trials)} trials")
    return run


# --- the writer --------------------------------------------------------------

class Record:
    """The record of a run that is being made; one process at a time has it."""

    def __init__(self, path: str, design: dict, descriptor: int,
                 sequence: schema.Sequence, notes: list[str]):
        self.path = path
        self.design = design
        self.notes = notes
        self._descriptor = descriptor
        self._sequence = sequence
        self._size_bytes = os.fstat(descriptor).st_size
        self._broken: Failure | None = None
        self._environment = read_environment(path)

    @classmethod
    def create(cls, path: str, design: dict) -> "Record":
        """A new record in the folder `path`, which is made if need be."""
        _make_folder(path)
        descriptor = _lock(path, os.O_CREAT)
        try:
            if (os.path.exists(os.path.join(path, DESIGN))
                    or os.fstat(descriptor).st_size):
                raise Failure(path, "there is a record already", FILE)
            # This file makes it a record; without it, the folder is nothing.
            _write_document(path, DESIGN, design)
            return cls(path, design, descriptor, schema.Sequence(design), [])
        except BaseException:
            os.close(descriptor)
            raise

    @classmethod
    def open(cls, path: str) -> "Record":
        """A record that was begun, to go on with it."""
        design = _read_design(path)
        descriptor = _lock(path, 0)
        try:
            trials_path = os.path.join(path, TRIALS)
            lines, rest = documents.read_lines(trials_path)
            # All lines are read before anything is cut: a damaged record stays
            # as it is.
            sequence = _parse(trials_path, design, lines)
            notes = []
            if rest:
                _cut(trials_path, descriptor,
                     os.fstat(descriptor).st_size - rest)
                notes.append(_torn(trials_path, rest))
            return cls(path, design, descriptor, sequence, notes)
        except BaseException:
            os.close(descriptor)
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Release the lock, so that another process can open the record."""
        os.close(self._descriptor)

    def trials(self) -> list[dict]:
        """The trials that are on the medium, in order."""
        return list(self._sequence.trials)

    @property
    def precision(self) -> Precision | None:
        """What may end the run before its last block, if anything may."""
        return self._sequence.precision

    @property
    def facts(self) -> dict:
        """What the last session was told of the machine."""
        sessions = self._environment["sessions"]
        return sessions[-1]["before"].get("facts") or {} if sessions else {}

    def next(self) -> designs.Planned | None:
        """The trial to run now; None when all have been."""
        return self._sequence.next

    def append(self, trial: dict):
        """Write the trial; when append() returns, the trial is on the medium.

        The trial has the keys of the schema, and is the one that the design
        has next.
        """
        trials_path = os.path.join(self.path, TRIALS)
        if self._broken:
            raise self._broken
        differing = sorted(trial.keys() ^ schema.TRIAL_KEYS)
        why = (f"differs from its schema in {', '.join(differing)}" if differing
               else next(self._sequence.complaints(trial), None))
        if why:
            raise Failure(f"{trials_path}: a trial", why)
        line = _line(trials_path, trial)
        try:
            self._write(line)
        except OSError as error:
            self._broken = of_file(trials_path, error)
            raise self._broken from None
        self._size_bytes += len(line)
        self._sequence.add(trial)

    def _write(self, line):
        written = os.write(self._descriptor, line)
        if written == len(line):
            os.fdatasync(self._descriptor)
            return
        # The medium is full, and a part of the line is written.  Record.open
        # would cut it off, but a reader may come first.
        os.ftruncate(self._descriptor, self._size_bytes)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def begin_session(self, before: dict):
        """Record the state of the machine before the session's first trial."""
        self._environment["sessions"].append({
            "begin_unix_ns": time.time_ns(), "before": before,
            "after": None, "changed": []})
        _write_document(self.path, ENVIRONMENT, self._environment)

    def end_session(self, after: dict, changed: list[dict]):
        """Record the state of the machine after the session's last trial."""
        self._environment["sessions"][-1].update(after=after, changed=changed)
        _write_document(self.path, ENVIRONMENT, self._environment)


def write_environment(folder: str, before: dict, after: dict | None,
                      changed: list[dict], begin_unix_ns: int) -> None:
    """Write the environment of a characterisation: one session, no design."""
    _write_document(folder, ENVIRONMENT, {
        "schema": schema.ENVIRONMENT, "sessions": [{
            "begin_unix_ns": begin_unix_ns, "before": before, "after": after,
            "changed": changed}]})


def _make_folder(path):
    with naming(path):
        os.makedirs(path, exist_ok=True)
        _sync_folder(os.path.dirname(os.path.abspath(path)))


def _lock(path, create):
    """Open the trials for appending, and lock them against other writers."""
    trials_path = os.path.join(path, TRIALS)
    with naming(trials_path):
        descriptor = os.open(trials_path, os.O_RDWR | os.O_APPEND | create,
                             0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise Failure(path, "another blinktrial has it", FILE) from None
        raise of_file(trials_path, error) from None
    return descriptor


def _cut(path, descriptor, size_bytes):
    with naming(path):
        os.ftruncate(descriptor, size_bytes)
        os.fsync(descriptor)
