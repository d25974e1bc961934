"""What was run: all that a time depends on beside the program and the machine.

Two records can be compared only where these are the same.  A difference of the
settings would otherwise pass for one of the program.
"""

from trials.base.failure import Failure
from trials.record.sweep import ranks_of
from trials.run import options
from trials.scenario.conditions import DEFAULT_MEMORY_BYTES

# Options by which two records may differ.  The first are listed beside the
# verdicts; the others change no time, or are compared otherwise: scenarios and
# sweep are in the names and parameters of what is compared, as the commands are
# that stand in the design, the seed is that of the order, and prices and energy
# are read beside the trials.
LISTED = ("hosts", "work", "input_device", "output_device", "unverified",
          "noise_limit", "noise_wait", "inputs", "outputs", "stdin", "warmup")
WITHOUT_EFFECT = ("scenarios", "sweep", "trials", "until", "max_trials",
                  "max_time", "seed", "key_file", "price", "energy",
                  "powercap", "meter", "meter_error", "commands",
                  "command_name", "parameter_list", "parameter_scan",
                  "parameter_step_size", "reference", "repeats", "setup",
                  "prepare", "conclude", "cleanup")
# Options that act in these scenarios only.
SCENARIOS = {"memory": ("beyond-memory",),
             "cache_bytes": ("platter", "beyond-memory")}
# The value of a parameter of this kind where a configuration does not name it.
_ABSENT = {"sort": "default", "tune": "keep"}
# Values that blinksort takes by default: sweeps name them in one way or the
# other.
_SORT_DEFAULTS = {"sort.io": "auto", "sort.splitters": "auto",
                  "sort.kernel": "auto", "sort.schedule": "auto",
                  "sort.plain": "no"}


def commanded(design: dict) -> dict:
    """The value of each option that the record was begun with.  Nothing, if
    the command is not one of blinktrial's: a record may be anybody's."""
    try:
        found = options.parsed(design["command"][1:])
    except Failure:
        return {}
    if found.out and found.work == options.default_work(found.out):
        # A work folder at its default place was not asked for.
        found.work = None
    found.order = design["order"]
    found.memory = found.memory or DEFAULT_MEMORY_BYTES
    return {name: options.written(getattr(found, name))
            for name in (*options.LASTING, *options.REPLACEABLE)}


def differences(before, after) -> list:
    """{"key", "before", "after"} of each listed option of two studies."""
    old, new = commanded(before.design), commanded(after.design)
    return [_difference(options.spelled(name), old[name], new[name])
            for name in LISTED if name in old and name in new
            and old[name] != new[name]]


def group_differences(before, after, old, new) -> list:
    """The same of all settings on which the times of two groups depend."""
    found = (_compared(_parameters(old), _parameters(new), _absent)
             + _compared(_conditions(old), _conditions(new))
             + _compared(_command(old), _command(new)))
    asked = [_acting(commanded(study.design), group.scenario)
             for study, group in ((before, old), (after, new))]
    return found + _compared(*asked)


def _parameters(group) -> dict:
    found = {**group.parameters,
             **{f"ranks.{name}": value for name, value
                in (ranks_of(group.parameters) or {}).items()}}
    return {name: _absent(name) if value == "default" else value
            for name, value in found.items()}


def _absent(name):
    return _SORT_DEFAULTS.get(name) or _ABSENT.get(name.partition(".")[0],
                                                   "absent")


def _conditions(group) -> dict:
    """The wanted text of each condition, also of trials that failed."""
    wanted = {}
    for trial in group.trials:
        for each in trial["conditions"]:
            wanted.setdefault(each["name"], {})[each["wanted"]] = None
    return {f"condition {name}": ", ".join(texts)
            for name, texts in wanted.items()}


def _command(group) -> dict:
    """The command and what stands beside it, if one is timed."""
    return {name: str(value) for name, value in (group.command or {}).items()
            if name not in ("words", "directory", "values")}


def _acting(asked, scenario) -> dict:
    return {options.spelled(name): value for name, value in asked.items()
            if name not in (*LISTED, *WITHOUT_EFFECT)
            and scenario in SCENARIOS.get(name, (scenario,))}


def _compared(old, new, absent=None) -> list:
    """What only one of them has is passed over, unless `absent` tells what it
    is in the other: an older blinktrial knew fewer conditions and options."""
    if absent:
        names = dict.fromkeys((*old, *new))
        old, new = ({name: each.get(name, absent(name)) for name in names}
                    for each in (old, new))
    return [_difference(name, old[name], new[name]) for name in old
            if name in new and old[name] != new[name]]


def _difference(key, before, after):
    return {"key": key, "before": before, "after": after}
