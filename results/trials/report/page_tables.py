"""The tables of the page: a study's figures and a record's circumstances."""

from trials.base import units
from trials.report import frame, markup, table
from trials.report.markup import Cell
from trials.report.study import CONTROL
from trials.statistics.comparison import NOT_SHOWN, TOO_FEW
from trials.statistics.spread import NARROWER, WIDER

_MOST_FAILURES = 20
VERDICT_KINDS = {"slower": "slower", "faster": "faster", WIDER: "slower",
                 NARROWER: "faster", TOO_FEW: "doubtful"}


def _ms(value_ns):
    return "–" if value_ns is None else units.milliseconds(value_ns)


def _sd(summary):
    """The standard deviation, to as many decimals as the mean."""
    if summary.sd_ns is None:
        return "–"
    decimals = len(_ms(summary.mean_ns).partition(".")[2])
    return f"{summary.sd_ns / 1e6:.{decimals}f}"


def _interval(interval, show):
    if interval is None:
        return "–"
    return f"{show(interval.low)} to {show(interval.high)}"


def statistics(study, scenario) -> str:
    groups = study.of(scenario)
    return markup.table(
        f"{study.label(scenario)}: times of whole runs, ms",
        "configuration|>n|>failed|>min|>p5|>median|>95 % interval|>mean|>sd|"
        ">p95|>p99|>max|remarks",
        [_statistics_row(group) for group in groups])


def _statistics_row(group):
    failed = Cell(str(group.failed), "bad") if group.failed else "0"
    if group.summary is None:
        words = ("none of its trials succeeded" if group.trials
                 else "not run")
        return [group.name, "0", failed, *["–"] * 9, Cell(words, "doubtful")]
    s = group.summary
    return [group.name, str(s.n), failed, _ms(s.min_ns),
            _ms(s.percentiles_ns["5"]), _ms(s.median_ns),
            _interval(s.median_interval_ns, units.milliseconds),
            _ms(s.mean_ns), _sd(s), _ms(s.shown_percentile_ns("95")),
            _ms(s.shown_percentile_ns("99")), _ms(s.max_ns), remarks(group)]


def remarks(group) -> str:
    words = table.flag_words(group)
    if group.dropped_block is not None:
        words.append(f"left out from block {group.dropped_block} on")
    return ", ".join(words)


def comparisons(study, scenario) -> str:
    """The table of the test that gives verdicts, that of spreads, and that of
    the other test."""
    groups = [g for g in study.of(scenario) if g.comparison]
    return markup.table(
        f"{study.label(scenario)}: beside the reference in the same block",
        "configuration|verdict|>slower in blocks|>ratio|>95 % interval|"
        ">p, by Holm",
        [_blocked_row(group) for group in groups]) + markup.table(
        f"{study.label(scenario)}: spread beside that of the reference in the "
        "same blocks",
        "configuration|verdict|>spread|>ratio|>95 % interval|>p, by Holm",
        [_spread_row(group) for group in groups]) + markup.table(
        f"{study.label(scenario)}: the two-sample test, which knows of no "
        "blocks; no verdict stands on it",
        "configuration|>slower in pairs|>ratio of medians|>95 % interval|"
        ">p of U test, by Holm",
        [_two_sample_row(group) for group in groups])


def _blocked_row(group):
    found = group.comparison.blocked
    return [group.name, verdict(group, group.verdict), table.slower_in(found),
            *_ratio(found), table.p_text(group.shown_p)]


def _spread_row(group):
    found = group.spread
    return [group.name, verdict(group, group.spread_verdict),
            table.share(group.summary.deviation_ratio),
            _digits(found.ratio), _interval(found.interval, _digits),
            table.p_text(group.shown_spread_p)]


def _digits(value):
    return "–" if value is None else units.digits(value)


def _two_sample_row(group):
    found = group.comparison.two_sample
    return [group.name, f"{100 * found.superiority:.0f} %", *_ratio(found),
            table.p_text(group.shown_two_sample_p)]


def _ratio(analysis):
    """The ratio and its interval."""
    if analysis.ratio is None:
        return "–", "–"
    return (f"{analysis.ratio:.4f}",
            _interval(analysis.ratio_interval, "{:.4f}".format))


def verdict(group, word):
    """The verdict; for the control, beside what an A/A comparison ought to say.
    """
    if group.role == CONTROL and word == NOT_SHOWN:
        return f"{word}, as it should be"
    if group.role == CONTROL and word != TOO_FEW:
        return Cell(f"{word}, though it is the same", "bad")
    return Cell(word, VERDICT_KINDS[word]) if word in VERDICT_KINDS else word


def skipped(study) -> str:
    return markup.table("not run", "configuration|reason", study.skipped)


def conditions(study, scenario) -> str:
    """A table of what each condition asked for and what was found, over all
    samples."""
    found = {}
    for group in study.of(scenario):
        for trial in group.sample_trials:
            for condition in trial["conditions"]:
                key = condition["name"], condition["wanted"]
                found.setdefault(key, []).append(condition)
    return markup.table(
        f"{study.label(scenario)}: conditions",
        "condition|wanted|found|met",
        [[name, wanted, _few({str(c["found"]): None for c in each}),
          _met(each)] for (name, wanted), each in found.items()])


def _few(values, most=3):
    values = list(values)
    rest = f" and {len(values) - most} others" if len(values) > most else ""
    return ", ".join(values[:most]) + rest


def _met(each):
    met = sum(c["met"] is True for c in each)
    if met == len(each):
        return Cell(f"all {met}", "good")
    unknown = sum(c["met"] is None for c in each)
    if met == 0 and unknown == len(each):
        return Cell("could not be verified", "doubtful")
    words = f"{met} of {len(each)}"
    if unknown:
        words += f", {unknown} could not be verified"
    return Cell(words, "bad" if met + unknown < len(each) else "doubtful")


def failures(study) -> str:
    failed = study.failures
    caption = f"{len(failed)} trials that gave no time"
    if len(failed) > _MOST_FAILURES:
        caption += f"; the first {_MOST_FAILURES}"
    return markup.table(
        caption,
        "trial|scenario|configuration|outcome|>status|message",
        [[str(t["trial"]), t["scenario"], t["configuration"], t["outcome"],
          str(t["exit_status"]), t["message"] or ""]
         for t in failed[:_MOST_FAILURES]])


def counters(study) -> str:
    """A table of what the machine counted during the timed runs."""
    rows = []
    trials = [t for g in study.groups.values() for t in g.sample_trials]
    names = dict.fromkeys(name for t in trials for name in t["counters"])
    for name in names:
        values = [t["counters"].get(name) for t in trials]
        values = [v for v in values if isinstance(v, (int, float))]
        if values:
            rows.append([name, f"{sum(v > 0 for v in values)}",
                         f"{max(values):,}", f"{sum(values):,}"])
    return markup.table(
        "counted during the timed runs",
        "counter|>trials with any|>most in a trial|>sum", rows)


def changes(study) -> str:
    return markup.table(
        "changed between the beginning and the end of a session",
        "session|what|before|after",
        [[str(number + 1), Cell(change["key"], "bad"),
          frame.shown(change["before"]), frame.shown(change["after"])]
         for number, change in study.changes])
