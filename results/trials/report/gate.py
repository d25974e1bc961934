"""Two records against each other: has something become slower?

Two runs have no blocks in common: the n-th block of one ran at another time
than that of the other, and nothing that disturbed the one is in the other.  So
the test is the two-sample one (see comparison.py), and what has changed between
the runs beside the program counts as a change.  For each scenario and
configuration that both have, by name:

  slower    Mann and Whitney's U says that they differ (p at most 0.05, after
            Holm's correction for all that are compared), and the
            Hodges-Lehmann estimate of the change is beyond the margin
  faster    the same, downwards
  same      the 90 % interval of the change lies within the margin: two
            one-sided tests at 5 % each, so that "same" has been shown, and is
            not just that nothing was found
  failed    a greater share of the trials failed than before
  inconclusive   none of these: more trials would tell; or the machines or the
            settings are not the same (see settings.py), so that nothing can

The change is the shift over the older median.
"""

from dataclasses import asdict, dataclass, field
from typing import Optional

import numpy as np

from trials.base import text_table, units
from trials.base.failure import FILE, Failure
from trials.machine import environment
from trials.report import settings, table
from trials.statistics import comparison

SCHEMA = "blinkreport-compare-1"
MARGIN_RATIO = 0.01
TEST = "two-sample U test"
TEST_WORDS = f"{TEST}: two runs have no blocks in common"
EQUIVALENCE_CONFIDENCE = 0.90
# The exit status of the worst pair; the first of these that there is.
STATUSES = {"failed": 1, "slower": 1, "inconclusive": 7, "faster": 6,
            "same": 0}
# Another of these is another machine; other differences are only listed.
MACHINE_KEYS = ("virtualisation.", "cpu.vendor", "cpu.family", "cpu.model",
                "cpu.stepping", "cpu.online", "memory.total_bytes")
# Of two boots of one machine the kernel keeps a little more or less.
MEMORY_TOLERANCE_RATIO = 0.01
# Of two designs: what a time is the time of; how it is called, and which
# trials can be compared.
SAME_INPUT = (
    (lambda design: f"{units.count(design['records'])} records",
     "with the --records of the other"),
    (lambda design: f"records of {design['record_bytes']} bytes",
     "with records of one size"),
    (lambda design: f"{design['kind']} records",
     "both with --ascii or both without"),
    (lambda design: f"on {_nodes(len(design['hosts'] or [None]))}",
     "on as many nodes"),
    (lambda design: "from device to device" if design.get("devices")
     else "from file to file", "both with --input-device or both without"))
_LISTED = 20


@dataclass
class Pair:
    scenario: str
    configuration: str
    verified: bool  # in both
    n_before: int
    n_after: int
    failed_before: int
    failed_after: int
    median_before_ns: Optional[float]
    median_after_ns: Optional[float]
    # Shift over the older median; all null when one side has no sample.
    change_ratio: Optional[float] = None
    change_low_ratio: Optional[float] = None
    change_high_ratio: Optional[float] = None
    p_value: Optional[float] = None
    p_holm: Optional[float] = None
    verdict: str = "inconclusive"
    # Settings that are not the same: {"key", "before", "after"}.
    settings: list = field(default_factory=list)


@dataclass
class Result:
    before: str
    after: str
    version_before: Optional[str]
    version_after: Optional[str]
    margin_ratio: float
    machine_differs: bool
    across_machines: bool
    options: list  # {"key", "before", "after"}; those that forbid nothing
    differences: list  # the same of the environments
    only_before: list  # "scenario, configuration" that the other lacks
    only_after: list
    pairs: list

    @property
    def verdict(self) -> str:
        found = {pair.verdict for pair in self.pairs}
        return next(word for word in STATUSES if word in found)

    @property
    def status(self) -> int:
        return STATUSES[self.verdict]


def compare(before, after, margin_ratio=MARGIN_RATIO,
            across_machines=False) -> Result:
    """Compare two studies; `before` is the older one."""
    _require_same_input(before, after)
    differences = environment.changes(table.first_environment(before),
                                      table.first_environment(after))
    differs = any(map(is_machine, differences))
    keys = [key for key in before.groups if key in after.groups]
    if not keys:
        raise Failure(after.run.path, "has no scenario and configuration that "
                      f"{before.run.path} has", FILE)
    pairs = [_pair(before.groups[key], after.groups[key]) for key in keys]
    for key, pair in zip(keys, pairs):
        pair.settings = settings.group_differences(
            before, after, before.groups[key], after.groups[key])
    tested = [pair for pair in pairs if pair.p_value is not None]
    for pair, p_holm in zip(
            tested, comparison.holm([pair.p_value for pair in tested])):
        pair.p_holm = p_holm
    for pair in pairs:
        pair.verdict = judge(pair, margin_ratio, not differs or across_machines)
    return Result(before.run.path, after.run.path,
                  before.design["program_version"],
                  after.design["program_version"], margin_ratio, differs,
                  across_machines, settings.differences(before, after),
                  differences,
                  _missing(before, after), _missing(after, before), pairs)


def _require_same_input(before, after):
    for words, advice in SAME_INPUT:
        old, new = words(before.design), words(after.design)
        if old != new:
            raise Failure(
                after.run.path, f"its trials sorted {new}, but those of "
                f"{before.run.path} {old}: their times can't be compared; "
                f"take the trials of one of them anew, {advice}", FILE)


def _nodes(count):
    return f"{count} node{'' if count == 1 else 's'}"


def is_machine(difference) -> bool:
    key = difference["key"]
    if key.startswith("nodes."):
        # The name of a node has dots, too.
        return any(f".{part}" in key for part in MACHINE_KEYS)
    if key == "memory.total_bytes":
        old, new = difference["before"], difference["after"]
        return not (old and new
                    and abs(new / old - 1) < MEMORY_TOLERANCE_RATIO)
    return key.startswith(MACHINE_KEYS)


def _missing(study, other):
    return [f"{scenario}, {name}" for scenario, name in study.groups
            if (scenario, name) not in other.groups]


def _pair(old, new) -> Pair:
    pair = Pair(old.scenario, old.name, old.verified and new.verified,
                old.count, new.count, old.failed, new.failed,
                *(group.summary.median_ns if group.summary else None
                  for group in (old, new)))
    if not old.count or not new.count:
        return pair
    _, pair.p_value, _ = comparison.u_test(old.samples_ns, new.samples_ns)
    shift_ns, interval_ns = comparison.shift(
        old.samples_ns, new.samples_ns, EQUIVALENCE_CONFIDENCE)
    median_ns = float(np.median(old.samples_ns))
    pair.change_ratio = shift_ns / median_ns
    if interval_ns:
        pair.change_low_ratio = interval_ns.low / median_ns
        pair.change_high_ratio = interval_ns.high / median_ns
    return pair


def judge(pair: Pair, margin_ratio, comparable=True) -> str:
    trials_before = pair.n_before + pair.failed_before
    trials_after = pair.n_after + pair.failed_after
    # Shares, without dividing: an arm may have no trial yet.
    if pair.failed_after * trials_before > pair.failed_before * trials_after:
        return "failed"
    if not comparable or pair.settings or pair.p_holm is None:
        return "inconclusive"
    if (pair.change_low_ratio is not None
            and -margin_ratio <= pair.change_low_ratio
            and pair.change_high_ratio <= margin_ratio):
        return "same"
    if (pair.p_holm <= comparison.ALPHA
            and abs(pair.change_ratio) > margin_ratio):
        return "slower" if pair.change_ratio > 0 else "faster"
    return "inconclusive"


# --- what it prints -----------------------------------------------------------


def document(result: Result) -> dict:
    return {"schema": SCHEMA, "verdict": result.verdict,
            "status": result.status, "test": TEST, **asdict(result)}


def text(result: Result) -> str:
    lines = [f"before  {result.before}, blinksort {result.version_before}",
             f"after   {result.after}, blinksort {result.version_after}",
             f"margin  {result.margin_ratio:.2%}".replace("%", " %"),
             f"test    {TEST_WORDS}", "",
             _pairs_text(result.pairs)]
    notes = [*(f"only before: {name}" for name in result.only_before),
             *(f"only after: {name}" for name in result.only_after)]
    if not all(pair.verified for pair in result.pairs):
        notes.append("Scenarios marked * were not verified in both records.")
    if notes:
        lines += ["", *notes]
    lines += _settings_text(result) + _differences_text(result)
    found = sum(pair.verdict == result.verdict for pair in result.pairs)
    lines += ["", f"{result.verdict}: {found} of {len(result.pairs)}"]
    return text_table.as_lines("\n".join(lines) + "\n")


def _pairs_text(pairs):
    head = ("configuration", "n", "failed", "before", "after",
            "change [90 %]", "p (Holm)", "verdict")
    return text_table.grid(head, [_pair_row(pair) for pair in pairs])


def _pair_row(pair):
    def duration(ns):
        return "-" if ns is None else units.duration(ns)

    change = "-"
    if pair.change_ratio is not None:
        change = units.change(1 + pair.change_ratio)
    if pair.change_low_ratio is not None:
        change += (f" [{100 * pair.change_low_ratio:+.2f}, "
                   f"{100 * pair.change_high_ratio:+.2f}]")
    return [f"{pair.scenario}{'' if pair.verified else '*'}, "
            f"{pair.configuration}",
            f"{pair.n_before}/{pair.n_after}",
            f"{pair.failed_before}/{pair.failed_after}",
            duration(pair.median_before_ns), duration(pair.median_after_ns),
            change, "-" if pair.p_holm is None else table.p_text(pair.p_holm),
            pair.verdict]


def _listed(heading, found):
    if not found:
        return []
    lines = ["", heading]
    lines += [text_table.wrapped(
        f"{d['key']}: {d['before']} -> {d['after']}")
        for d in found[:_LISTED]]
    if len(found) > _LISTED:
        lines.append(f"  and in {len(found) - _LISTED} other things "
                     "(--json has all)")
    return lines


def _settings_text(result):
    found = [{**difference, "key": f"{pair.scenario}, {pair.configuration}, "
                                   f"{difference['key']}"}
             for pair in result.pairs for difference in pair.settings]
    return _listed("The settings differ, so that no verdict is possible:",
                   found) + _listed("The options differ:", result.options)


def _differences_text(result):
    # What matters most first: a new machine differs in a hundred things.
    lines = _listed("The environments differ:", sorted(
        result.differences, key=lambda d: not is_machine(d)))
    if result.machine_differs:
        lines.append("  This is another machine: "
                     + ("compared all the same." if result.across_machines
                        else "see --across-machines."))
    return lines
