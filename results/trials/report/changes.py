"""Two records against each other: has something become slower?

Two runs have no blocks in common: the n-th block of one ran at another time
than that of the other, and nothing that disturbed the one is in the other.  So
the test is the two-sample one (see comparison.py), and what has changed between
the runs beside the program counts as a change.  Test and interval take
dependent trials for as many independent ones as they are worth (see
effective.py).  blinkreport(1) says what each verdict means.

The change is the Hodges-Lehmann shift of the logarithms, as a ratio: so no
limit of it is below -100 %.
"""

import textwrap
from dataclasses import asdict, dataclass, field

import numpy as np

from trials.base import text_table, units
from trials.base.failure import FILE, Failure
from trials.machine import environment
from trials.record import design as designs
from trials.report import noise, settings, table
from trials.statistics import comparison, effective, spread
from trials.statistics.spread import Spread

SCHEMA = "blinkreport-compare-1"
MARGIN_RATIO = 0.01
TEST = "two-sample U test"
TEST_WORDS = f"{TEST}: the runs were not interleaved"
# A warning of differences between runs that no look at the times of one tells.
UNSEEN = ("A difference between whole runs, such as where the program lies in "
          "memory or what else the machine did, looks like one of the program: "
          "{} Make both records again before you rely on a small change, or "
          "compare by blinktrial gate, which interleaves the two.")
ONE_SESSION = "each record is of one session, so it can't be told apart."
SESSIONS = "only differences between the sessions of a record are allowed for."
EQUIVALENCE_CONFIDENCE = 0.90
# The exit status of the worst pair; the first of these that there is.
STATUSES = {"failed": 1, "slower": 1, "inconclusive": 7, "faster": 6,
            "same": 0}
# Another of these is another machine; other differences are only listed.
MACHINE_KEYS = ("virtualisation.", "cpu.vendor", "cpu.family", "cpu.model",
                "cpu.stepping", "cpu.online", "memory.total_bytes")
# The kernel keeps a little more or less at each boot of one machine.
MEMORY_TOLERANCE_RATIO = 0.01
# Two designs can be compared if these are the same, since a time is the time of
# them: words for each, and which trials could be compared.
SAME_INPUT = (
    (lambda design: f"{design['records']:,} records",
     "with the --records of the other"),
    (lambda design: f"records of {design['record_bytes']} bytes",
     "with records of one size"),
    (lambda design: "records of each rank" if design.get("weak_scaling")
     else "records of all ranks", "both with weak scaling or both without"),
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
    median_before_ns: float | None
    median_after_ns: float | None
    # The ratio less 1; null when one side has no sample.
    change_ratio: float | None = None
    change_low_ratio: float | None = None
    change_high_ratio: float | None = None
    # The p of the U test, and that for as many trials as those are worth.
    p_value: float | None = None
    p_effective: float | None = None
    n_effective: float | None = None  # of both runs together
    autocorrelation: float | None = None
    sessions_differ: bool = False
    p_holm: float | None = None
    verdict: str = "inconclusive"
    # Settings that are not the same: {"key", "before", "after"}.
    settings: list = field(default_factory=list)
    signs_before: list = field(default_factory=list)
    signs_after: list = field(default_factory=list)
    # True if one of the runs has a drift or a step.
    unsteady: bool = False
    # The mean deviations from the median, as shares of it; and the one beside
    # the other, of which no verdict of the record depends.
    deviation_before_ratio: float | None = None
    deviation_after_ratio: float | None = None
    spread: Spread | None = None
    spread_p_holm: float | None = None
    # None, where what differs may be something else.
    spread_verdict: str | None = None


@dataclass
class Side:
    """What a report says of a whole record, for a reader of a comparison."""

    sessions: int
    noise_median_percent: float | None
    trials_over_noise_limit: int
    notes: list

    @classmethod
    def of(cls, study, keys):
        """`keys` are of the groups that are compared."""
        known = study.noise_percents
        return cls(1 + len(study.sessions),
                   float(np.median(known)) if known else None,
                   sum(look.noise["over_limit"] is True
                       for look in study.looks),
                   [*study.notes, *(note for key in keys for note
                                    in table.flag_notes(study.groups[key]))])

    @property
    def words(self):
        words = [f"{self.sessions} session{'s' * (self.sessions > 1)}"]
        if self.noise_median_percent is not None:
            words.append("others took "
                         f"{noise.percent(self.noise_median_percent)} of a CPU "
                         "before the median trial")
        if self.trials_over_noise_limit:
            words.append(f"{self.trials_over_noise_limit} trials above the "
                         "noise limit")
        return "; ".join(words)


@dataclass
class Result:
    before: str
    after: str
    version_before: str | None
    version_after: str | None
    margin_ratio: float
    machine_differs: bool
    across_machines: bool
    options: list  # {"key", "before", "after"}; those that forbid nothing
    differences: list  # the same of the environments
    only_before: list  # "scenario, configuration" that the other lacks
    only_after: list
    pairs: list
    side_before: Side
    side_after: Side

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
    pairs = [pair_of(before.groups[key], after.groups[key]) for key in keys]
    for key, pair in zip(keys, pairs):
        pair.settings = settings.group_differences(
            before, after, before.groups[key], after.groups[key])
    tested = [pair for pair in pairs if pair.p_effective is not None]
    for pair, p_holm in zip(
            tested, comparison.holm([pair.p_effective for pair in tested])):
        pair.p_holm = p_holm
    comparable = not differs or across_machines
    for pair in pairs:
        pair.verdict = judge(pair, margin_ratio, comparable)
    _judge_spreads(pairs, [(before.groups[key], after.groups[key])
                           for key in keys], before.design["seed"], comparable)
    return Result(before.run.path, after.run.path,
                  before.design["program_version"],
                  after.design["program_version"], margin_ratio, differs,
                  across_machines, settings.differences(before, after),
                  differences,
                  _missing(before, after), _missing(after, before), pairs,
                  Side.of(before, keys), Side.of(after, keys))


def _require_same_input(before, after):
    kinds = [designs.of_commands(study.design) for study in (before, after)]
    if kinds[0] != kinds[1]:
        raise Failure(after.run.path, "its trials are of "
                      f"{'commands' if kinds[1] else 'blinksort'}, but those "
                      f"of {before.run.path} of "
                      f"{'commands' if kinds[0] else 'blinksort'}", FILE)
    if all(kinds):
        return
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


def pair_of(old, new) -> Pair:
    """Two groups, without a verdict."""
    pair = Pair(old.scenario, old.name, old.verified and new.verified,
                old.count, new.count, old.failed, new.failed,
                *(group.summary.median_ns if group.summary else None
                  for group in (old, new)))
    pair.signs_before, pair.signs_after = (
        table.flag_words(group) for group in (old, new))
    pair.unsteady = any(effective.unsteady(group.flags, group.count)
                        for group in (old, new))
    if not old.count or not new.count:
        return pair
    _, pair.p_value, _ = comparison.u_test(old.samples_ns, new.samples_ns)
    worth = effective.worth((old.samples_ns, new.samples_ns),
                            _sessions(old, new))
    pair.autocorrelation = worth.autocorrelation
    pair.n_effective = worth.effective_count
    pair.sessions_differ = worth.sessions_differ
    pair.p_effective = worth.p_value(pair.p_value)
    level = worth.level(EQUIVALENCE_CONFIDENCE)
    ratio, interval = comparison.shift_ratio(
        old.samples_ns, new.samples_ns, level or EQUIVALENCE_CONFIDENCE)
    pair.change_ratio = ratio - 1
    if level and interval:
        pair.change_low_ratio = interval.low - 1
        pair.change_high_ratio = interval.high - 1
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
    if (pair.p_holm <= comparison.ALPHA and not pair.unsteady
            and abs(pair.change_ratio) > margin_ratio):
        return "slower" if pair.change_ratio > 0 else "faster"
    return "inconclusive"


def _sessions(old, new):
    return (old.sample_sessions, new.sample_sessions) \
        if old.sample_sessions and new.sample_sessions else None


def _judge_spreads(pairs, groups, seed, comparable):
    """`groups`: those of each pair."""
    for pair, (old, new) in zip(pairs, groups):
        if old.count and new.count:
            pair.deviation_before_ratio = old.summary.deviation_ratio
            pair.deviation_after_ratio = new.summary.deviation_ratio
            pair.spread = spread.two_sample(old.samples_ns, new.samples_ns,
                                            seed, _sessions(old, new))
    pairs = [pair for pair in pairs if pair.spread]
    for pair, p_holm in zip(pairs, comparison.holm(
            [pair.spread.p_value for pair in pairs])):
        pair.spread_p_holm = p_holm
        if comparable and not pair.settings and not pair.unsteady:
            pair.spread_verdict = pair.spread.verdict(p_holm)


# --- what it prints -----------------------------------------------------------


def document(result: Result) -> dict:
    return {"schema": SCHEMA, "verdict": result.verdict,
            "status": result.status, "test": TEST, **asdict(result)}


def text(result: Result) -> str:
    lines = [f"before  {result.before}, blinksort {result.version_before}",
             f"        {result.side_before.words}",
             f"after   {result.after}, blinksort {result.version_after}",
             f"        {result.side_after.words}",
             f"margin  {result.margin_ratio:.2%}".replace("%", " %"),
             f"test    {TEST_WORDS}",
             "worth   so many independent trials all of both runs count for",
             "", _pairs_text(result.pairs), *_spreads_text(result.pairs)]
    notes = [*(f"only before: {name}" for name in result.only_before),
             *(f"only after: {name}" for name in result.only_after)]
    if not all(pair.verified for pair in result.pairs):
        notes.append("Scenarios marked * were not verified in both records.")
    if notes:
        lines += ["", *notes]
    lines += _notes_text(result)
    lines += _settings_text(result) + _differences_text(result)
    if result.verdict in ("slower", "faster"):
        lines += ["", *textwrap.wrap(UNSEEN.format(_seen(result)),
                                     text_table.width())]
    found = sum(pair.verdict == result.verdict for pair in result.pairs)
    lines += ["", f"{result.verdict}: {found} of {len(result.pairs)}"]
    return text_table.as_lines("\n".join(lines) + "\n")


def _pairs_text(pairs):
    headings = ("configuration|>n|>worth|>failed|>before|>after|"
                ">change [90 %]|>p (Holm)|verdict")
    rows = [_pair_row(pair) for pair in pairs]
    if not any(pair.failed_before or pair.failed_after for pair in pairs):
        # Room for the names.
        headings = headings.replace("|>failed", "")
        rows = [[*row[:3], *row[4:]] for row in rows]
    return text_table.grid(headings, rows)


def _spreads_text(pairs):
    rows = [[_name(pair), table.share(pair.deviation_before_ratio),
             table.share(pair.deviation_after_ratio),
             units.with_interval(pair.spread.ratio, pair.spread.interval),
             table.p_text(pair.spread_p_holm),
             table.VERDICTS.get(pair.spread_verdict, pair.spread_verdict)]
            for pair in pairs if pair.spread]
    return ["", "spread, the mean deviation from the median as a share of it",
            text_table.grid("configuration|>before|>after|>ratio [95 %]|"
                            ">p (Holm)|verdict", rows)] if rows else []


def _name(pair):
    return (f"{pair.scenario}{'' if pair.verified else '*'}, "
            f"{pair.configuration}")


def _pair_row(pair):
    def duration(ns):
        return "-" if ns is None else units.duration(ns)

    change = "-"
    if pair.change_ratio is not None:
        change = units.change(1 + pair.change_ratio)
    if pair.change_low_ratio is not None:
        change += (f" [{100 * pair.change_low_ratio:+.2f}, "
                   f"{100 * pair.change_high_ratio:+.2f}]")
    return [_name(pair), f"{pair.n_before}/{pair.n_after}",
            "-" if pair.n_effective is None else f"{pair.n_effective:.0f}",
            f"{pair.failed_before}/{pair.failed_after}",
            duration(pair.median_before_ns), duration(pair.median_after_ns),
            change, "-" if pair.p_holm is None else table.p_text(pair.p_holm),
            pair.verdict]


def _seen(result):
    """The differences between runs that the comparison has seen."""
    several = max(result.side_before.sessions, result.side_after.sessions) > 1
    return SESSIONS if several else ONE_SESSION


def _notes_text(result):
    notes = [f"{name}: {note}" for name, side in (
        ("before", result.side_before), ("after", result.side_after))
        for note in side.notes]
    notes += [f"{pair.scenario}, {pair.configuration}: sessions of one record "
              "differ, and a change is judged against that."
              for pair in result.pairs if pair.sessions_differ]
    notes += [f"{pair.scenario}, {pair.configuration}: the runs differ, but a "
              "drift or a step within one of them may be all that does."
              for pair in result.pairs if pair.unsteady
              and pair.p_holm is not None
              and pair.p_holm <= comparison.ALPHA
              and pair.verdict == "inconclusive"]
    return ["", "Notes:", *map(text_table.wrapped, notes)] if notes else []


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
    # The most important differences come first: a new machine differs in a
    # hundred things.
    lines = _listed("The environments differ:", sorted(
        result.differences, key=lambda d: not is_machine(d)))
    if result.machine_differs:
        lines.append("  This is another machine: "
                     + ("compared all the same." if result.across_machines
                        else "see --across-machines."))
    return lines
