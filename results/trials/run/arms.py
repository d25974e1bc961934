"""The commands that are timed: from the command line to the arms of a design.

The words are hyperfine's where it has some.  Each combination of the values of
--parameter-list makes an arm of each command.  What prepares a command and
what clears up behind it is run by /bin/sh, off the clock.
"""

import decimal
import itertools
import re
from dataclasses import dataclass, field, replace
from typing import Mapping

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


def of_options(options, environment: Mapping[str, str]) -> list[Arm]:
    """The arms, the reference first.  The options have what options.parser()
    gives them; absent ones are None."""
    texts = list(options.commands)
    reference = 0
    if options.reference is not None:
        if options.reference not in texts:
            texts.insert(0, options.reference)
        reference = texts.index(options.reference)
    combinations = list(_combinations(options))
    if len(texts) * len(combinations) > ARMS_AT_MOST:
        raise Failure("--parameter-list", f"makes more than {ARMS_AT_MOST} "
                      "commands", USAGE)
    arms = []
    for number, text in enumerate(texts):
        for values in combinations:
            arms.append(_arm(options, number, text, values, len(texts),
                             environment))
    first = reference * len(combinations)
    arms.insert(0, arms.pop(first))
    return _named(arms, options.command_name or [], first)


def _combinations(options):
    """Dicts of all variables; one that is empty where there is none."""
    variables = {}
    for name, text in options.parameter_list or []:
        _add(variables, name, text.split(","))
    for name, least, most in options.parameter_scan or []:
        _add(variables, name,
             _scan(least, most, options.parameter_step_size or "1"))
    for values in itertools.product(*variables.values()):
        yield dict(zip(variables, values))


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
    if (end - at) / by >= ARMS_AT_MOST:
        raise Failure("--parameter-scan", f"has more than {ARMS_AT_MOST} "
                      "values", USAGE)
    found = []
    while at <= end:
        found.append(str(at))
        at += by
    return found


def _arm(options, number, text, values, count, environment) -> Arm:
    filled = _fill(text, values)
    found = (tuple(words.split(filled, environment)) if not options.shell
             else (options.shell, "-c", filled))
    hooks = {name: _fill(_of_command(getattr(options, name), number, count,
                                     name), values) for name in HOOKS}
    return Arm(filled, filled, found, setup=_fill(options.setup, values),
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


def _named(arms, names, first):
    """The arms with the names that were given in the order of the command
    line, of which the reference was the first-th; no two have one name."""
    if len(names) > len(arms):
        raise Failure("--command-name", f"is given {len(names)} times for "
                      f"{len(arms)} commands", USAGE)
    order = [first, *(at for at in range(len(arms)) if at != first)]
    taken, found = set(), []
    for at, arm in zip(order, arms):
        name = _fill(names[at], arm.values) if at < len(names) else arm.name
        found.append(replace(arm, name=_free(name, taken)))
    return found


def _free(name, taken):
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    taken.add(free)
    return free
