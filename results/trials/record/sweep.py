"""What to vary: a sweep file, read and checked.

A sweep file is read line by line.  '#' begins a comment, anywhere but within a
text; blank lines mean nothing.

    NAME REFERENCE | ALTERNATIVE...
        One parameter.  NAME is one of
            sort.OPTION    an option of blinksort: see SORT_OPTIONS below;
                           the value "default" leaves it out; plain is yes or no
            tune.KNOB      a knob of blinktune; "keep" leaves it as it is
            tune.profile   a whole profile of blinktune; not beside knobs
            ranks.THING    how many ranks on this machine sort, which mpirun
                       starts them, and over what they exchange records: see
                       RANKS below
        machine.THING  a property of the machine that can't be set
                           between two trials: it must have a skip line, and
                           is listed with its reason
        A value is a word; one with spaces stands in double quotes.

    Indented lines belong to the parameter above, a text each, to the end of
    the line:
        because TEXT    why one would vary it
        source TEXT     where that comes from
        skip TEXT       why it is not set: it is listed and never run
        only cluster    skipped unless many machines sort

    factorial NAME NAME...
        Of these, run every combination, instead of one change at a time.

    racing off
    racing first_block=20 every=10 alpha=0.01 margin_ratio=1.02
        Whether variants that have clearly lost are dropped on the way (see
        racing.py).  A factorial search races unless told not to, with these
        figures; other sweeps do not unless told to.

    scaling weak
        Each rank of this machine has as many records as --records says, so
        that more of them sort more.

A line that can't be understood is refused, with its number and the reason.
"""

import re
import shlex
from dataclasses import dataclass, field
from typing import Optional

from trials.base.failure import FILE, Failure, of_file

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
# No '=' and no ',': names of configurations and blinktune's inline profiles
# are made of those.
_VALUE = re.compile(r"[A-Za-z0-9._:+/@%?-]+( [A-Za-z0-9._:+/@%?-]+)*")
_TEXTS = ("because", "source", "skip")


@dataclass
class Parameter:
    name: str
    reference: str
    alternatives: list[str]
    reason: Optional[str] = None
    source: Optional[str] = None
    skip: Optional[str] = None
    cluster_only: bool = False
    line: int = 0

    @property
    def kind(self) -> str:
        return self.name.partition(".")[0]

    @property
    def short_name(self) -> str:
        return self.name.partition(".")[2]

    @property
    def values(self) -> list[str]:
        return [self.reference, *self.alternatives]


@dataclass
class Sweep:
    parameters: list[Parameter] = field(default_factory=list)
    factorial: Optional[list[str]] = None
    racing: Optional[dict] = None
    text: Optional[str] = None
    weak_scaling: bool = False


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
    _require(_NAME.fullmatch(name), f"'{name}' is not a parameter's name"
             + _meant(name))
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
    _require(alternatives, f"{name} has no alternative")
    for value in (reference, *alternatives):
        _require(_VALUE.fullmatch(value), f"'{value}' can't be a value")
    _require(reference not in alternatives,
             f"{name}: the alternative '{reference}' is the reference")
    _require(len(set(alternatives)) == len(alternatives),
             f"{name}: an alternative stands there twice")
    _require(name != "sort.plain" or set(words[1:]) <= {"no", "|", "yes"},
             "sort.plain is yes or no")
    for value in (reference, *alternatives):
        kind, _, rest = name.partition(".")
        _require(kind != "ranks" or re.fullmatch(RANKS[rest], value),
                 f"{name} can't be '{value}'")
    return Parameter(name, reference, alternatives, line=line)


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


class _Parser:
    def __init__(self):
        self.parameters = []
        self.factorial = None
        self.racing = None
        self.weak_scaling = False
        # Indented lines belong to a parameter only right behind it.
        self.last = None

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
        _require(key in _TEXTS, f"'{key}' is not because, source, skip or only")
        attribute = "reason" if key == "because" else key
        _require(text, f"{key} says nothing")
        _require(getattr(self.last, attribute) is None,
                 f"a second '{key}' for {self.last.name}")
        setattr(self.last, attribute, text)

    def check_factorial(self):
        _require(len(self.factorial) >= 2,
                 "factorial needs two parameters or more")
        _require(len(set(self.factorial)) == len(self.factorial),
                 "factorial: a name stands there twice")
        combinations = 1
        for name in self.factorial:
            found = [p for p in self.parameters if p.name == name]
            _require(found, f"factorial: no parameter '{name}' above")
            combinations *= len(found[0].values)
        _require(combinations <= MOST_COMBINATIONS,
                 f"factorial: {combinations} combinations; at most "
                 f"{MOST_COMBINATIONS}")

    def sweep(self, text):
        racing = self.racing
        if racing is None:
            racing = dict(RACING) if self.factorial else None
        return Sweep(self.parameters, self.factorial, racing or None, text,
                     self.weak_scaling)


def _check_whole(parser, name):
    """Check what can be seen only at the end of the file."""
    if not parser.parameters:
        raise Failure(name, "varies nothing", FILE)
    if parser.weak_scaling and not any(
            parameter.name == "ranks.count" for parameter in parser.parameters):
        raise Failure(name, "scaling weak: no ranks.count is varied", FILE)
    for parameter in parser.parameters:
        if parameter.kind == "machine" and not parameter.skip:
            raise Failure(f"{name}:{parameter.line}",
                          f"{parameter.name} can't be set: it needs a skip "
                          "line that says why", FILE)
        if parameter.skip and parameter.name in (parser.factorial or ()):
            raise Failure(f"{name}:{parameter.line}",
                          f"{parameter.name} is skipped: it can't be part of "
                          "a factorial search", FILE)


def parse(text: str, name: str = "sweep") -> Sweep:
    """The sweep that `text` describes; `name` is the file, for messages."""
    parser = _Parser()
    for number, line in enumerate(text.split("\n"), 1):
        try:
            parser.read(line, number)
        except _Refused as refused:
            raise Failure(f"{name}:{number}", refused, FILE) from None
    _check_whole(parser, name)
    return parser.sweep(text)


def load(path: str) -> Sweep:
    """The sweep in the file `path`."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)
    except OSError as error:
        raise of_file(path, error) from None
    except UnicodeDecodeError:
        raise Failure(path, "is not UTF-8 text", FILE) from None
    if len(text) > MOST_CHARACTERS:
        raise Failure(path, "is too long for a sweep", FILE)
    return parse(text, path)


def ranks_of(parameters: dict) -> Optional[dict]:
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
