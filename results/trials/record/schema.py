"""Is a record what it should be?

The JSON Schemas in results/schema say what each document looks like.  What they
can't say is checked here: that lines come in the order of the design, that
figures agree with each other.  A record that blinktrial made has no complaints.
"""

import functools
import os
import re
from decimal import Decimal
from typing import Iterable, Iterator

from trials.base import documents
from trials.base.failure import FILE, Failure
from trials.record import acceptance, design as designs
from trials.record.sweep import RANKS, ranks_of
from trials.statistics.precision import Precision
from trials.statistics.racing import Race

FOLDER = os.path.realpath(os.path.join(os.path.dirname(__file__),
                                       "../../schema"))

ENVIRONMENT = "blinktrial-environment-1"
MEASURE = "blinktrial-measure-1"
TRIAL = "blinktrial-trial-1"
TRIAL_KEYS = (
    "schema", "trial", "block", "position", "scenario", "configuration",
    "seed", "begin_unix_ns", "begin_monotonic_ns", "whole_ns", "outcome",
    "exit_status", "message", "records", "bytes", "checksum", "ranks",
    "measures", "counters", "conditions", "scenario_met", "runner", "tuning",
    "energy", "noise")


# --- one document ------------------------------------------------------------

@functools.cache
def validator(name):
    """The library's for this schema, which also says what is wrong."""
    # A tenth of a second to import, and most runs write only.
    from jsonschema import Draft202012Validator, validators
    # JSON Schema takes 20.0 for an integer; a reader that counts with it does
    # not.
    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: type(value) is int)
    whole = validators.extend(Draft202012Validator, type_checker=types)
    return whole(documents.read(os.path.join(FOLDER, f"{name}.schema.json")))


@functools.cache
def _accepted_trial():
    return acceptance.accepts(
        documents.read(os.path.join(FOLDER, f"{TRIAL}.schema.json")))


def _complaints(name, document) -> Iterator[str]:
    # There are thousands of trials: see acceptance.py.
    if name == TRIAL and _accepted_trial()(document):
        return
    for error in validator(name).iter_errors(document):
        message = error.message
        if len(message) > 200:
            message = f"{message[:200]}..."
        where = _pointer(error)
        yield f"{where}: {message}" if where else message


def complaint(name: str, document) -> str | None:
    """The first thing in which a document is not as the schema `name` says."""
    return next(_complaints(name, document), None)


def read(path: str, name: str) -> dict:
    """The document in the file, which is as its schema says; raises Failure."""
    document = documents.read(path)
    why = f"is not of schema {name}"
    if isinstance(document, dict) and document.get("schema") == name:
        why = complaint(name, document)
    if why:
        raise Failure(path, why, FILE)
    return document


def parsed(path: str, name: str, lines: Iterable[bytes]):
    """(where, document) of each line of the file, which is as its schema says;
    raises Failure."""
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        try:
            document = documents.loads(line)
        except ValueError as error:
            raise Failure(where, f"is damaged: {error}", FILE) from None
        why = complaint(name, document)
        if why:
            raise Failure(where, f"is damaged: {why}", FILE)
        yield where, document


def _pointer(error):
    """ranks[3].phases_ns, as one would write it."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}"
                   for step in error.absolute_path)
    return text.removeprefix(".")


def _document(folder, name, schema, complaints):
    """The file parsed, or None after a complaint."""
    path = os.path.join(folder, f"{name}.json")
    try:
        document = documents.read(path)
    except Failure as failure:
        complaints.append(str(failure))
        return None
    found = list(_complaints(schema, document))
    complaints += [f"{path}: {why}" for why in found]
    return None if found else document


# --- the design --------------------------------------------------------------

def plan_complaints(design) -> Iterator[str]:
    """Faults of a design that is as its schema says."""
    configurations = design["configurations"]
    names = [c["name"] for c in configurations]
    if len(set(names)) != len(names):
        yield "two configurations have one name"
    if [c["role"] for c in configurations].count("reference") != 1:
        yield "there is not one reference"
    if any(c["skipped"] for c in configurations if c["role"] != "variant"):
        yield "the reference or the control is skipped"
    of_commands = designs.of_commands(design)
    if {("command" in c) for c in configurations} | {
            design[key] is None for key in ("records", "record_bytes",
                                            "kind")} != {of_commands} or (
            of_commands and design.get("weak_scaling")):
        yield "sorts have records, and commands have none"
    for configuration in configurations:
        ranks = ranks_of(configuration["parameters"]) or {}
        yield from (f"ranks.{name} can't be '{value}'"
                    for name, value in ranks.items()
                    if not re.fullmatch(RANKS.get(name, ""), value))
    price = design.get("price")
    if price and Decimal(price["total"]) != sum(
            part["count"] * Decimal(part["price"]) for part in price["parts"]):
        yield f"the prices of all parts are not {price['total']} in all"


# --- one trial, its figures among each other ---------------------------------

def _outcome_complaints(trial, design) -> Iterator[str]:
    failed = trial["outcome"] == "failed"
    ignores_failure = (design.get("commands") or {}).get("ignores_failure")
    if not failed and trial["exit_status"] != 0 and not ignores_failure:
        yield (f"outcome {trial['outcome']}, but exit_status "
               f"{trial['exit_status']}")
    if failed and trial["whole_ns"] is not None:
        yield "it failed, but has a whole_ns"
    if not failed and trial["whole_ns"] is None:
        yield "it did not fail, but has no whole_ns"


def _rank_count(trial, design) -> int:
    if designs.of_commands(design):
        return 0
    by_name = {c["name"]: c for c in design["configurations"]}
    found = by_name.get(trial["configuration"])
    ranks = ranks_of(found["parameters"]) if found else None
    if design["hosts"]:
        return len(design["hosts"])
    return int(ranks["count"]) if ranks else 1


def _rank_complaints(trial, design) -> Iterator[str]:
    ranks = trial["ranks"]
    if [rank["rank"] for rank in ranks] != list(range(len(ranks))):
        yield "ranks are not numbered 0, 1, 2, ..."
    wanted = _rank_count(trial, design)
    if trial["outcome"] != "failed" and len(ranks) != wanted:
        yield f"{len(ranks)} ranks, by the design {wanted}"
    for rank in ranks:
        name = f"ranks[{rank['rank']}]"
        phases_ns = sum((rank["phases_ns"] or {}).values())
        elapsed_ns, process_ns = rank["elapsed_ns"], rank["process_ns"]
        if elapsed_ns is not None and phases_ns > elapsed_ns:
            yield (f"{name}: phases of {phases_ns} ns in all, in "
                   f"{elapsed_ns} ns elapsed")
        if None not in (elapsed_ns, process_ns) and elapsed_ns > process_ns:
            yield (f"{name}: {elapsed_ns} ns elapsed in a process of "
                   f"{process_ns} ns")
        if (None not in (process_ns, trial["whole_ns"])
                and process_ns > trial["whole_ns"]):
            yield (f"{name}: a process of {process_ns} ns in a whole of "
                   f"{trial['whole_ns']} ns")


def _size_complaints(trial, design) -> Iterator[str]:
    if trial["outcome"] == "failed" or designs.of_commands(design):
        return
    records = designs.records_of(design, trial["configuration"])
    if trial["records"] != records:
        yield f"{trial['records']} records, by the design {records}"
    if trial["bytes"] != records * design["record_bytes"]:
        yield f"{trial['bytes']} bytes do not hold the design's records"


def _condition_complaints(trial) -> Iterator[str]:
    met = [condition["met"] for condition in trial["conditions"]]
    none_asked = trial["scenario"] == designs.AS_IS
    # A scenario_met that says less than the conditions do is no lie.
    if trial["scenario_met"] is True and not (
            all(met) and (met or none_asked)):
        yield "scenario_met, but not by its conditions"
    if trial["scenario_met"] is None and False in met:
        yield "scenario_met is null, but a condition was not met"


def _tuning_complaints(trial, tunings) -> Iterator[str]:
    if (trial["tuning"] is None) != (tunings[trial["configuration"]] is None):
        yield "tuning is not that of its configuration"


def _energy_complaints(trial, design) -> Iterator[str]:
    measured = trial.get("energy") or {"domains_uj": {}}
    wanted = design.get("energy") or {"domains": []}
    if any(set(each["domains_uj"]) != set(wanted["domains"])
           for each in (measured, *measured.get("passes", ()))):
        yield "energy is not that of the design's domains"


def _time_complaints(trial, previous) -> Iterator[str]:
    """Two at a time would disturb each other.  The clock begins anew with the
    machine, so earlier times are another boot's."""
    if previous is None or previous["whole_ns"] is None:
        return
    gap_ns = trial["begin_monotonic_ns"] - previous["begin_monotonic_ns"]
    if 0 <= gap_ns < previous["whole_ns"]:
        yield "it began before the previous trial had ended"


# --- all trials --------------------------------------------------------------

def _lines(path, name, complaints):
    """(where, document) of each line; None of one that is not as its schema
    says, after complaints."""
    try:
        lines, rest = documents.read_lines(path)
    except Failure as failure:
        complaints.append(str(failure))
        return
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        try:
            document = documents.loads(line)
            found = list(_complaints(name, document))
        except ValueError as error:
            found = [f"is not JSON: {error}"]
        complaints += [f"{where}: {why}" for why in found]
        yield where, None if found else document
    if rest:
        complaints.append(f"{path}:{len(lines) + 1}: was never finished")


class Sequence:
    """The order of trials, which tells the next one by the design and those
    before it."""

    def __init__(self, design: dict):
        self.trials: list[dict] = []
        race, precision = Race(design), Precision(design)
        self.precision = precision if design.get("until") else None
        self._planned = designs.schedule(
            design, lambda block: race.dropped(self.trials, block),
            lambda block: precision.ends(self.trials, block))
        self.next: designs.Planned | None = next(self._planned, None)

    def complaints(self, trial: dict) -> Iterator[str]:
        """The differences of the trial from the one that comes next."""
        if self.next is None:
            yield "is one more than the design has"
            return
        for key, wanted in self.next._asdict().items():
            found = trial.get(key)
            if found != wanted or type(found) is not type(wanted):
                yield f"{key} is {found!r}, by the design {wanted!r}"

    def add(self, trial: dict):
        self.trials.append(trial)
        self.next = next(self._planned, None)


def _check_trials(path, design, complaints):
    sequence, previous = Sequence(design), None
    tunings = {c["name"]: c["tuning"] for c in design["configurations"]}
    for where, trial in _lines(path, TRIAL, complaints):
        if trial is None:
            # The order of the lines that follow can't be told without it.
            complaints.append(f"{where}: the lines after this one were not "
                              "checked")
            return
        found = list(sequence.complaints(trial))
        if trial["seed"] != designs.block_seed(design, trial["block"]):
            found.append("seed is not that of its block")
        found += _outcome_complaints(trial, design)
        found += _rank_complaints(trial, design)
        found += _size_complaints(trial, design)
        found += _condition_complaints(trial)
        found += _energy_complaints(trial, design)
        if trial["configuration"] in tunings:
            found += _tuning_complaints(trial, tunings)
        found += _time_complaints(trial, previous)
        complaints += [f"{where}: {why}" for why in found]
        sequence.add(trial)
        previous = trial


# --- all of it ----------------------------------------------------------------

def validate(folder: str) -> list[str]:
    """All that is wrong with the record or the characterisation in a folder,
    as lines "file:line: what"."""
    complaints: list[str] = []
    if os.path.exists(os.path.join(folder, "environment.json")):
        _document(folder, "environment", ENVIRONMENT, complaints)
    measures = os.path.join(folder, "characterisation.jsonl")
    with_trials = os.path.exists(os.path.join(folder, "design.json"))
    if os.path.exists(measures):
        _require_readable(measures)
        if not list(_lines(measures, MEASURE, complaints)):
            complaints.append(f"{measures}: has no measurement")
    if with_trials or not os.path.exists(measures):
        _require_readable(os.path.join(folder, "design.json"))
        _check_record(folder, complaints)
    return complaints


def _require_readable(path):
    """Failure: there is nothing to complain of."""
    with documents.open_regular(path):
        pass


def _check_record(folder, complaints):
    design = _document(folder, "design", designs.SCHEMA, complaints)
    if design:
        found = [f"{os.path.join(folder, 'design.json')}: {why}"
                 for why in plan_complaints(design)]
        complaints += found
    # Trials are what their design says.
    if design and not found:
        _check_trials(os.path.join(folder, "trials.jsonl"), design, complaints)
