"""What will be run, in which order: decided before the first trial.

Trials are arranged in randomised complete blocks.  A block holds every pair of
a scenario and a configuration once, in an order drawn anew for each block.
What drifts over minutes or hours, the machine's temperature, its neighbours,
the state of its disk, then falls on all alike, and configurations can be
compared within blocks.  The order "sequence" keeps one fixed order in every
block instead.  It is worse: whatever one trial leaves behind, in caches or in
the drive, always falls on the same next one.  It is there to see that effect.

The orders follow from the seed by SHA-256 alone, so that they are the same in
any version of Python, and a run that is resumed goes on as it would have.
"""

import hashlib
import itertools
import os
import time
from typing import Callable, Iterator, NamedTuple

from trials.base.failure import USAGE, Failure
from trials.record.sweep import (NODES, RANKS_DEFAULTS, Parameter, Sweep,
                                 ranks_of, short_name_of)

SCHEMA = "blinktrial-design-1"
ORDERS = ("blocks", "sequence")
# The arms that are no variants: what others are compared with, and the same
# again under another name, which shows what is noise.
REFERENCE, CONTROL, VARIANT = "reference", "control", "variant"
# The scenario that asks for nothing, of commands.
AS_IS = "as-is"


class Planned(NamedTuple):
    """One trial of the schedule."""

    trial: int
    block: int
    position: int
    scenario: str
    configuration: str


# --- configurations ----------------------------------------------------------

def _judge(scenarios, hosts, unsettable):
    """A function of a parameter and a value: why it can't be set, or None."""
    own_io = next((s for s in scenarios if s != "pagecache"), None)

    def why_not(parameter, value):
        skip = parameter.why_not(value)
        if skip:
            return skip
        is_of_cluster = parameter.cluster_only or NODES in parameter.places.get(
            value, ())
        if is_of_cluster and not hosts:
            return "for a cluster only"
        if parameter.name == "sort.io" and own_io:
            return f"the scenario {own_io} sets it itself"
        return unsettable(parameter.name, value)

    return why_not


def _tuning(parameters):
    """The request to blinktune; None if there is none."""
    if "tune.profile" in parameters:
        profile = parameters["tune.profile"]
        return None if profile == "keep" else {"profile": profile}
    knobs = {name.partition(".")[2]: value
             for name, value in parameters.items()
             if name.startswith("tune.") and value != "keep"}
    return {"knobs": knobs} if knobs else None


def _configuration(name, role, parameters, skipped=None):
    return {"name": name, "role": role, "parameters": parameters,
            "tuning": None if skipped else _tuning(parameters),
            "skipped": skipped}


def _of_arms(arms, settings):
    """Each arm, (name, command), under each of the settings, which are
    configurations of a sweep, or the reference and its control alone.  The
    first arm as the first one has it is the reference of all."""
    for number, (name, command) in enumerate(arms):
        for setting in settings:
            if number and setting["role"] == CONTROL:
                continue
            role = VARIANT if number else setting["role"]
            words = {REFERENCE: name, CONTROL: f"{name} (control)"}.get(
                setting["name"], f"{name}, {setting['name']}")
            yield {**setting, "name": words, "role": role, "command": command}


def _name(changes):
    """{sort.io: direct, sort.threads: 1} -> "io=direct,threads=1"."""
    return ",".join(f"{short_name_of(name)}={value.replace(' ', '_')}"
                    for name, value in changes.items())


def _combinations(factors: list[Parameter]):
    """All combinations but the one of reference values only."""
    for values in itertools.product(*(factor.values for factor in factors)):
        if any(v != f.reference for f, v in zip(factors, values)):
            yield dict(zip((f.name for f in factors), values))


def _changes(sweep):
    """The changes of each variant, as dicts from parameter to value."""
    factors = sweep.factorial or []
    for parameter in sweep.parameters:
        if parameter.name not in factors:
            for value in parameter.alternatives:
                yield {parameter.name: value}
    yield from sweep.together
    if factors:
        by_name = {p.name: p for p in sweep.parameters}
        yield from _combinations([by_name[name] for name in factors])


def _absent(sweep, why_not):
    """Parameters whose reference can't be set, and why.

    They are set nowhere, and all their variants are skipped: there would be
    nothing to compare them with.
    """
    reasons = {p.name: why_not(p, p.reference) for p in sweep.parameters}
    return {name: why for name, why in reasons.items() if why}


def _variant(changes, base, by_name, absent, why_not):
    reasons = (absent.get(name) or why_not(by_name[name], value)
               for name, value in changes.items()
               if value != by_name[name].reference)
    skipped = next(filter(None, reasons), None)
    parameters = {**base, **changes}
    if not skipped:
        parameters = {name: value for name, value in parameters.items()
                      if name not in absent}
    return _configuration(_name(changes), VARIANT, parameters, skipped)


def _configurations(sweep, why_not):
    by_name = {p.name: p for p in sweep.parameters}
    absent = _absent(sweep, why_not)
    base = {p.name: p.reference for p in sweep.parameters
            if p.name not in absent}
    return [_configuration(REFERENCE, REFERENCE, dict(base)),
            _configuration(CONTROL, CONTROL, dict(base)),
            *(_variant(changes, base, by_name, absent, why_not)
              for changes in _changes(sweep))]


# --- the design --------------------------------------------------------------

def _check(scenarios, trials, order):
    if not scenarios:
        raise Failure("--scenario", "names none", USAGE)
    if len(set(scenarios)) != len(scenarios):
        raise Failure("--scenario", "names one twice", USAGE)
    if trials < 1:
        raise Failure("--trials", "is below 1", USAGE)
    if order not in ORDERS:
        raise Failure("--order", f"'{order}' is not blocks or sequence", USAGE)


def make(scenarios: list[str], sweep: Sweep | None, trials: int, seed: int,
         *, arms: list[tuple[str, dict]] | None = None,
         commands: dict | None = None, hosts: list[str] | None = None,
         devices: dict | None = None, records: int = 1_000_000,
         record_bytes: int = 100, kind: str = "binary", order: str = "blocks",
         command: tuple = (), program_version: str | None = None,
         unsettable: Callable[[str, str], str | None] = lambda *_: None,
         memory_bytes: int | None = None,
         until: dict | None = None, repeats: int = 1,
         price: dict | None = None, energy: dict | None = None) -> dict:
    """The document design.json.

    `trials` is the number of blocks, or the most of them if `until`, see
    statistics/precision.py, ends the run, and `repeats` is how often a block
    has each configuration. `unsettable` says what this machine can't be told:
    a function of a parameter and its value that returns the reason or None.
    `devices` has the paths of "input" and "output" if they are block devices.
    `memory_bytes` is what the sorter may take in beyond-memory, if that is one
    of the scenarios. `price`: see cost/price.py, `energy`: see cost/energy.py.
    `arms` are names and commands that are timed instead of blinksort, the
    reference first, and `commands` is what is the same for all: see
    results/schema.
    """
    _check(scenarios, trials, order)
    configurations = [_configuration(REFERENCE, REFERENCE, {})]
    if arms:
        configurations.append(_configuration(CONTROL, CONTROL, {}))
    if sweep:
        configurations = _configurations(
            sweep, _judge(scenarios, hosts, unsettable))
    if arms:
        configurations = list(_of_arms(arms, configurations))
    return {
        "schema": SCHEMA,
        "run_id": os.urandom(8).hex(),
        "created_unix_ns": time.time_ns(),
        "program_version": program_version,
        "command": list(command),
        "seed": seed,
        "trials": trials,
        "until": until,
        "repeats": repeats,
        "order": order,
        "scenarios": list(scenarios),
        "hosts": list(hosts) if hosts else None,
        "devices": devices,
        "commands": commands,
        "records": None if arms else records,
        "record_bytes": None if arms else record_bytes,
        "kind": None if arms else kind,
        "weak_scaling": bool(sweep and sweep.weak_scaling),
        "memory_bytes": memory_bytes,
        "sweep_text": sweep.text if sweep else None,
        "configurations": configurations,
        "racing": sweep.racing if sweep else None,
        "price": price,
        "energy": energy,
        # After the rehearsals: run/timed.py, facts().
        "timing": None,
    }


def records_of(design: dict, name: str) -> int:
    """The records that a configuration sorts: with weak scaling each of its
    ranks has those of the design."""
    return design["records"] * (rank_count(design, name)
                                if design.get("weak_scaling") else 1)


def rank_count(design: dict, name: str) -> int:
    """The ranks that a configuration starts on this machine, or one."""
    ranks = ranks_of(configuration(design, name)["parameters"])
    return int((ranks or RANKS_DEFAULTS)["count"])


def input_words(design: dict) -> str:
    """What one configuration sorts."""
    return (f"{design['records']:,} records of {design['record_bytes']} bytes"
            + (" on each rank" if design.get("weak_scaling") else ""))


def route(design: dict) -> str:
    """Words for what the records are sorted from and to; older records tell of
    no devices."""
    devices = design.get("devices")
    if not devices:
        return "file to file"
    return f"{devices['input']} to {devices['output']}"


def of_commands(design: dict) -> bool:
    """Are commands timed, rather than blinksort?"""
    return design.get("commands") is not None


def arms(design: dict) -> list[tuple[str, dict]]:
    """Each command once, with the first name that it has."""
    found = {}
    for each in design["configurations"]:
        if each.get("command"):
            found.setdefault(str(each["command"]),
                             (each["name"], each["command"]))
    return list(found.values())


def configuration(design: dict, name: str) -> dict:
    """The configuration of that name."""
    return next(c for c in design["configurations"] if c["name"] == name)


# --- order -------------------------------------------------------------------

def _bits(text):
    """Numbers of 64 random bits, without end, that `text` alone determines."""
    for counter in itertools.count():
        digest = hashlib.sha256(f"{text}:{counter}".encode()).digest()
        for at in range(0, len(digest), 8):
            yield int.from_bytes(digest[at:at + 8], "little")


def _below(limit, bits):
    """A number from 0 to limit - 1, each as likely as any other."""
    # The remainder of a number from the last, incomplete stretch of the range
    # would favour small results.
    whole = 2**64 - 2**64 % limit
    return next(number for number in bits if number < whole) % limit


def _shuffled(items, bits):
    """Fisher and Yates: every order is equally likely."""
    items = list(items)
    for last in range(len(items) - 1, 0, -1):
        other = _below(last + 1, bits)
        items[last], items[other] = items[other], items[last]
    return items


def block_seed(design: dict, block: int) -> int:
    """What the block's order is drawn from, and whatever else is random in it.

    Below 2**53: a JSON reader may keep numbers as doubles.
    """
    text = f"{design['seed']}:{block}"
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 11


def order(design: dict, block: int,
          dropped: frozenset = frozenset()) -> list[tuple[str, str]]:
    """(scenario, configuration) of the block's trials, from first to last.

    Dropping a configuration leaves the order of the others as it was.
    """
    pairs = [(scenario, c["name"]) for scenario in design["scenarios"]
             for c in design["configurations"] if c["skipped"] is None]
    pairs *= design.get("repeats") or 1
    if design["order"] == "blocks":
        pairs = _shuffled(pairs, _bits(f"order:{block_seed(design, block)}"))
    return [pair for pair in pairs if pair[1] not in dropped]


def schedule(design: dict,
             dropped: Callable[[int], set] = lambda _: frozenset(),
             ends: Callable[[int], str | None] = lambda _: None,
             ) -> Iterator[Planned]:
    """All trials in order.

    Both functions are asked when a block begins, with its number, and at that
    time all trials before it have been run: `dropped`, what racing has dropped
    before it; `ends`, why it is not run, nor any further one.
    """
    trial = 0
    for block in range(design["trials"]):
        if ends(block):
            return
        for position, (scenario, name) in enumerate(
                order(design, block, dropped(block))):
            yield Planned(trial, block, position, scenario, name)
            trial += 1
