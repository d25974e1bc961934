"""The commands that are timed: from the command line to the arms of a design.

The words are hyperfine's where it has some.  Each combination of the values of
--parameter-list makes an arm of each command.  What prepares a command and
what clears up behind it is run by /bin/sh, off the clock.
"""

import decimal
import itertools
import math
import re
from dataclasses import dataclass, field
from typing import Mapping, NamedTuple

from trials.base.failure import USAGE, Failure
from trials.run import words

# Lists of each command's own, or one for all.
HOOKS = ("prepare", "conclude")
ARMS_AT_MOST = 1000
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Arm:
    """One command.  Its words are those of the shell where there is one."""
    name: str
    text: str
    words: tuple
    directory: str | None = None
    setup: str | None = None
    prepare: str | None = None
    conclude: str | None = None
    cleanup: str | None = None
    values: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> dict:
        """The member `command` of a configuration."""
        return {"text": self.text, "words": list(self.words),
                "directory": self.directory, "setup": self.setup,
                "prepare": self.prepare, "conclude": self.conclude,
                "cleanup": self.cleanup, "values": dict(self.values)}


class _Wanted(NamedTuple):
    """A command as it stands on the command line, with values for it."""
    number: int  # what is prepared for each command is given in this order
    template: str
    values: Mapping[str, str]
    name: str | None

    @property
    def text(self) -> str:
        return _fill(self.template, self.values)

    def is_meant(self, text: str | None) -> bool:
        return text in (self.template, self.text)


def of_options(options, environment: Mapping[str, str]) -> list[Arm]:
    """The arms, the reference first.  The options have what options.parser()
    gives them; absent ones are None."""
    wanted, reference = _wanted(options), options.reference
    first = next((one for one in wanted if one.is_meant(reference)), None)
    if reference is not None and first is None:
        # One more, once; it has values, so that what prepares it has some.
        first = _Wanted(-1, reference, wanted[0].values if wanted else {},
                        None)
        wanted.insert(0, first)
    if len(wanted) > ARMS_AT_MOST:
        raise _too_many()
    if first is not None:
        wanted.sort(key=lambda one: one is not first)
    least = min(one.number for one in wanted)
    count = len({one.number for one in wanted})
    taken: set[str] = set()
    return [_arm(options, one, one.number - least, count, environment, taken)
            for one in wanted]


def _wanted(options) -> list[_Wanted]:
    combinations = _combinations(options)
    count = len(options.commands)
    names = _names(options.command_name or [], count,
                   count * len(combinations))
    return [_Wanted(number, template, values, names.pop(0))
            for number, template in enumerate(options.commands)
            for values in combinations]


def _names(given, commands, arms):
    """A name or None for each arm: of those that were given, each is of one
    command with all values, or of one arm."""
    if len(given) > arms:
        raise Failure("--command-name", f"is given {len(given)} times for "
                      f"{arms} commands", USAGE)
    each = arms // commands if given and len(given) <= commands else 1
    names = [name for name in given for _ in range(each)]
    return names + [None] * (arms - len(names))


def _combinations(options) -> list[dict]:
    """Dicts of all variables; one that is empty where there is none."""
    variables = {}
    for name, text in options.parameter_list or []:
        _add(variables, name, text.split(","))
    for name, least, most in options.parameter_scan or []:
        _add(variables, name,
             _scan(least, most, options.parameter_step_size or "1"))
    if math.prod(map(len, variables.values())) > ARMS_AT_MOST:
        raise _too_many()
    return [dict(zip(variables, values))
            for values in itertools.product(*variables.values())]


def _too_many() -> Failure:
    return Failure("--parameter-list", f"makes more than {ARMS_AT_MOST} "
                   "commands", USAGE)


def _add(variables, name, values):
    if not _VARIABLE.fullmatch(name):
        raise Failure("--parameter-list", f"'{name}' is no name of a variable",
                      USAGE)
    if name in variables:
        raise Failure("--parameter-list", f"'{name}' stands there twice",
                      USAGE)
    variables[name] = values


def _scan(least, most, step):
    try:
        at, end, by = map(decimal.Decimal, (least, most, step))
    except decimal.InvalidOperation:
        raise Failure("--parameter-scan", f"'{least} {most}' by '{step}' are "
                      "not numbers", USAGE) from None
    if not all(number.is_finite() for number in (at, end, by)) or by <= 0 \
            or end < at:
        raise Failure("--parameter-scan", f"{least} to {most} by {step} has "
                      "no value", USAGE)
    try:
        # A step that the digits of a decimal lose would never arrive.
        is_too_long = (end - at) / by >= ARMS_AT_MOST or end + by == end
    except decimal.Overflow:
        is_too_long = True
    if is_too_long:
        raise Failure("--parameter-scan", f"has more than {ARMS_AT_MOST} "
                      "values", USAGE)
    found = []
    while at <= end:
        found.append(str(at))
        at += by
    return found


def _arm(options, wanted, number, count, environment, taken) -> Arm:
    text, values = wanted.text, wanted.values
    found = (tuple(words.split(text, environment)) if not options.shell
             else (options.shell, "-c", text))
    hooks = {name: _fill(_of_command(getattr(options, name), number, count,
                                     name), values) for name in HOOKS}
    # A record is UTF-8, and a trial is found by its name again.
    name = (_fill(wanted.name, values) or text).encode("utf-8", "replace")
    return Arm(_free(name.decode(), taken), text, found,
               setup=_fill(options.setup, values),
               cleanup=_fill(options.cleanup, values), values=values, **hooks)


def _of_command(given, number, count, name):
    """The one for this command, of one for all or one for each."""
    if given is None:
        return None
    if len(given) not in (1, count):
        raise Failure(f"--{name}", f"is given {len(given)} times for {count} "
                      "commands: once, or once for each", USAGE)
    return given[0] if len(given) == 1 else given[number]


def _fill(text, values):
    """The text with the value of each {VARIABLE}."""
    if text is None:
        return None
    return re.sub(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}",
                  lambda found: values.get(found[1], found[0]), text)


def _free(name, taken):
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    taken.add(free)
    return free
