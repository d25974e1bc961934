"""What to vary: a sweep file, read line by line and checked.

results/datamation-2011.sweep begins with what such a file may have.  A line
that can't be understood is refused, with its number and the reason.
"""

import re
import shlex
from dataclasses import dataclass, field

from trials.base.failure import FILE, Failure, naming

SORT_OPTIONS = ("io", "threads", "pin", "splitters", "kernel", "memory",
                "plain", "schedule", "transport", "by-reference", "payload")
PREFIXES = ("sort", "tune", "ranks", "machine")
# The values that each may have, and those of a sweep that sets only others.
RANKS = {
    "mpirun": "openmpi|mpich",
    "exchange": "udp|by-reference|mpi-tcp|mpi-shared",
    "count": "[1-9][0-9]{0,2}"}
RANKS_DEFAULTS = {"mpirun": "openmpi", "exchange": "udp", "count": "2"}
RACING = {"first_block": 20, "every": 10, "alpha": 0.01, "margin_ratio": 1.02}
# A full search grows as a product: what is beyond this was a mistake.
MOST_COMBINATIONS = 1000
# A sweep is written by hand; a larger file, or a device, is none.
MOST_CHARACTERS = 1 << 20

_NAME = re.compile(r"[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*")
_TARGETS = re.compile(r"(tune\.[a-z0-9-]+):[A-Za-z0-9._*?-]+")
# No '=' and no ',': names of configurations and blinktune's inline profiles
# are made of those.
_VALUE = re.compile(r"[A-Za-z0-9._:+/@%?-]+( [A-Za-z0-9._:+/@%?-]+)*")
_TEXTS = ("because", "source", "skip")
WORK, NODES = "work", "nodes"
# What a place is, and the form of its text: a folder's path, or a list of hosts
# as blinksort takes it.
_PLACES = {WORK: re.compile(r"/\S*"),
           NODES: re.compile(r"[A-Za-z0-9.:,\[\]-]+")}


def short_name_of(name: str) -> str:
    """tune.mtu:eth0 -> mtu"""
    return name.partition(".")[2].partition(":")[0]


@dataclass
class Parameter:
    name: str
    reference: str
    alternatives: list[str]
    reason: str | None = None
    source: str | None = None
    skip: str | None = None
    cluster_only: bool = False
    # Of values that are had all the time: (WORK, folder) or (NODES, hosts).
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    line: int = 0

    @property
    def kind(self) -> str:
        return self.name.partition(".")[0]

    @property
    def short_name(self) -> str:
        return short_name_of(self.name)

    @property
    def values(self) -> list[str]:
        return [self.reference, *self.alternatives]

    def why_not(self, value: str) -> str | None:
        """The text of its skip line, unless the value has a place, or is the
        reference of values that have one."""
        is_placed = value in self.places or (value == self.reference
                                             and self.places)
        return None if is_placed else self.skip


@dataclass
class Sweep:
    parameters: list[Parameter] = field(default_factory=list)
    factorial: list[str] | None = None
    # Changes that are made at once: {parameter: value} each.
    together: list[dict[str, str]] = field(default_factory=list)
    racing: dict | None = None
    unverified: bool = False
    text: str | None = None
    weak_scaling: bool = False

    def places(self, kind: str) -> dict[tuple[str, str], str]:
        """{(parameter, value): place} of WORK or NODES, those of references
        last: a trial is in the first place that it has a value of."""
        found = [(parameter.name, value, place, value == parameter.reference)
                 for parameter in self.parameters
                 for value, (its_kind, place) in parameter.places.items()
                 if its_kind == kind]
        return {(name, value): place for name, value, place, _
                in sorted(found, key=lambda one: one[3])}


class _Refused(Exception):
    """The reason why a line is not understood; the parser knows which one it
    is."""


def _require(condition, why):
    if not condition:
        raise _Refused(why)


def _words(line):
    try:
        return shlex.split(line, comments=True)
    except ValueError as error:
        raise _Refused(str(error).lower()) from None


def _check_name(name):
    targets = _TARGETS.fullmatch(name)
    _require(_NAME.fullmatch(targets[1] if targets else name),
             f"'{name}' is not a parameter's name" + _meant(name))
    prefix, _, rest = name.partition(".")
    _require(prefix in PREFIXES, f"'{name}': a parameter begins with "
             + ", ".join(f"{known}." for known in PREFIXES))
    _require(prefix != "sort" or rest in SORT_OPTIONS,
             f"'{name}': of sort. a sweep may set "
             + ", ".join(sorted(SORT_OPTIONS)))
    _require(prefix != "ranks" or rest in RANKS,
             "of ranks a sweep may set " + ", ".join(RANKS))


def _meant(name):
    """The names that there are; a name without its beginning is a usual slip.
    """
    if name in SORT_OPTIONS:
        return f"; sort.{name} is"
    return ("; there are tune.KNOB of blinktune, "
            + ", ".join(f"ranks.{known}" for known in RANKS) + ", and sort. "
            "with " + ", ".join(sorted(SORT_OPTIONS)))


def _parameter(words, line):
    name = words[0]
    _check_name(name)
    _require(len(words) > 2 and words[2] == "|" and words.count("|") == 1,
             "a parameter is written NAME REFERENCE | ALTERNATIVE..., with "
             "blanks around the bar")
    reference, alternatives = words[1], words[3:]
    for value in (reference, *alternatives):
        _check_value(name, value)
    _require(reference not in alternatives,
             f"{name}: the alternative '{reference}' is the reference")
    _require(len(set(alternatives)) == len(alternatives),
             f"{name}: an alternative stands there twice")
    return Parameter(name, reference, alternatives, line=line)


def _check_value(name, value):
    _require(_VALUE.fullmatch(value), f"'{value}' can't be a value")
    _require(name != "sort.plain" or value in ("no", "yes"),
             "sort.plain is yes or no")
    kind, _, rest = name.partition(".")
    _require(kind != "ranks" or re.fullmatch(RANKS[rest], value),
             f"{name} can't be '{value}'")


def _racing(words):
    if words == ["off"]:
        return {}
    racing = dict(RACING)
    for word in words:
        key, _, text = word.partition("=")
        _require(key in RACING, f"racing knows no '{word}'")
        try:
            racing[key] = type(RACING[key])(text)
        except ValueError:
            raise _Refused(f"racing: '{text}' is not a number") from None
    _require(racing["first_block"] >= 2, "racing: first_block is below 2")
    _require(racing["every"] >= 1, "racing: every is below 1")
    _require(0 < racing["alpha"] < 1, "racing: alpha is not within 0 and 1")
    _require(1 <= racing["margin_ratio"] < float("inf"),
             "racing: margin_ratio is below 1")
    return racing


class _Parser(Sweep):
    """A sweep whose lines are being read."""

    # Indented lines belong to a parameter only right behind it.
    last: Parameter | None = None

    def read(self, line, number):
        if not line.strip() or line.lstrip().startswith("#"):
            return
        if line[0] in " \t":
            self.describe(line.strip())
            return
        words = _words(line)
        self.last = None
        if words[0] == "factorial":
            _require(self.factorial is None, "a second factorial line")
            self.factorial = words[1:]
            self.check_factorial()
        elif words[0] == "racing":
            _require(self.racing is None, "a second racing line")
            _require(words[1:], "racing: off, or its figures")
            self.racing = _racing(words[1:])
        elif words[0] == "scaling":
            _require(words[1:] == ["weak"], "scaling: what is known is "
                     "'scaling weak'")
            self.weak_scaling = True
        elif words[0] == "together":
            self.together.append(self.changes(words[1:]))
        elif words == ["unverified"]:
            self.unverified = True
        else:
            self.add(_parameter(words, number))

    def add(self, parameter):
        for other in self.parameters:
            _require(other.short_name != parameter.short_name,
                     f"{parameter.name} stands on line {other.line} already"
                     if other.name == parameter.name else
                     f"{parameter.name}: {other.name} on line {other.line} "
                     "would share its variants' names")
            _require(parameter.kind != "tune" or other.kind != "tune"
                     or "profile" not in (other.short_name,
                                          parameter.short_name),
                     "tune.profile can't be varied beside single knobs")
        self.parameters.append(parameter)
        self.last = parameter

    def describe(self, line):
        key, text = (line.split(None, 1) + [""])[:2]
        _require(self.last is not None,
                 f"'{key}' belongs to no parameter")
        if key == "only":
            _require(text.partition("#")[0].strip() == "cluster",
                     "only: what is known is 'only cluster'")
            self.last.cluster_only = True
            return
        if key in _PLACES:
            self.place(key, text.split())
            return
        _require(key in _TEXTS, f"'{key}' is not because, source, skip, only, "
                 "work or nodes")
        attribute = "reason" if key == "because" else key
        _require(text, f"{key} says nothing")
        _require(getattr(self.last, attribute) is None,
                 f"a second '{key}' for {self.last.name}")
        setattr(self.last, attribute, text)

    def place(self, kind, words):
        parameter = self.last
        _require(parameter.kind == "machine",
                 f"{kind}: {parameter.name} is set, and has no place")
        # What has no place is where --work and -w are.
        values = (parameter.alternatives if kind == WORK
                  else parameter.values)
        _require(len(words) == 2 and words[0] in values
                 and _PLACES[kind].fullmatch(words[1]),
                 f"a place is written {kind} " + (
                     "ALTERNATIVE FOLDER" if kind == WORK
                     else "VALUE HOSTS"))
        _require(words[0] not in parameter.places,
                 f"a second place of {words[0]}")
        parameter.places[words[0]] = (kind, words[1])

    def changes(self, words):
        """{NAME: VALUE} of a line with "together"."""
        found = {}
        for word in words:
            name, _, value = word.partition("=")
            parameter = self.named(name, "together")
            _check_value(name, value)
            _require(value != parameter.reference and name not in found,
                     f"together: '{word}' changes nothing")
            found[name] = value
        _require(len(found) >= 2, "together needs two changes or more")
        _require(found not in self.together, "together: stands there twice")
        return found

    def named(self, name, what):
        found = next((p for p in self.parameters if p.name == name), None)
        _require(found, f"{what}: no parameter '{name}' above")
        return found

    def check_factorial(self):
        _require(len(self.factorial) >= 2,
                 "factorial needs two parameters or more")
        _require(len(set(self.factorial)) == len(self.factorial),
                 "factorial: a name stands there twice")
        combinations = 1
        for name in self.factorial:
            combinations *= len(self.named(name, "factorial").values)
        _require(combinations <= MOST_COMBINATIONS,
                 f"factorial: {combinations} combinations; at most "
                 f"{MOST_COMBINATIONS}")


def _check_whole(sweep, name):
    """Check what can be seen only at the end of the file."""
    if not sweep.parameters:
        raise Failure(name, "varies nothing", FILE)
    if sweep.weak_scaling and not any(
            parameter.name == "ranks.count" for parameter in sweep.parameters):
        raise Failure(name, "scaling weak: no ranks.count is varied", FILE)
    for parameter in sweep.parameters:
        why = _why_refused(parameter, sweep)
        if why:
            raise Failure(f"{name}:{parameter.line}",
                          f"{parameter.name} {why}", FILE)
    for names in (*sweep.together, sweep.factorial or ()):
        placed = [p for p in sweep.parameters
                  if p.name in names and p.places]
        if len(placed) > 1:
            raise Failure(f"{name}:{placed[1].line}",
                          f"{placed[1].name} and {placed[0].name} have places, "
                          "and a trial is in one", FILE)


def _why_refused(parameter, sweep):
    if (parameter.kind == "machine" and not parameter.skip
            and set(parameter.alternatives) - set(parameter.places)):
        return "can't be set: it needs a skip line that says why"
    if not parameter.alternatives and not any(
            parameter.name in changes for changes in sweep.together):
        return "has no alternative"
    if parameter.skip and parameter.name in (sweep.factorial or ()):
        return "is skipped: it can't be part of a factorial search"
    return None


def parse(text: str, name: str = "sweep") -> Sweep:
    """The sweep that `text` describes; `name` is the file, for messages."""
    parser = _Parser(text=text)
    for number, line in enumerate(text.split("\n"), 1):
        try:
            parser.read(line, number)
        except _Refused as refused:
            raise Failure(f"{name}:{number}", refused, FILE) from None
    _check_whole(parser, name)
    if parser.racing is None and parser.factorial:
        parser.racing = dict(RACING)
    # "off" is {}.
    parser.racing = parser.racing or None
    return parser


def load(path: str) -> Sweep:
    """The sweep in the file `path`."""
    try:
        with naming(path), open(path, encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)
    except UnicodeDecodeError:
        raise Failure(path, "is not UTF-8 text", FILE) from None
    if len(text) > MOST_CHARACTERS:
        raise Failure(path, "is too long for a sweep", FILE)
    return parse(text, path)


def ranks_of(parameters: dict) -> dict | None:
    """A value for each name of RANKS; None of a configuration without ranks."""
    given = {name.partition(".")[2]: value
             for name, value in parameters.items()
             if name.startswith("ranks.")}
    return {**RANKS_DEFAULTS, **given} if given else None


def sort_arguments(parameters: dict) -> list[str]:
    """blinksort's arguments for the sort.* of a configuration."""
    arguments = []
    for name, value in parameters.items():
        kind, _, option = name.partition(".")
        if kind != "sort" or value == "default":
            continue
        if option == "plain":
            arguments += ["--plain"] if value == "yes" else []
        else:
            arguments.append(f"--{option}={value}")
    return arguments
