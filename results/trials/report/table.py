"""A study as tables: text for a terminal, CSV for other programs.

text()          a heading, tables for each scenario, and notes
csv_trials()    a row for each trial, in the order of the run
csv_summary()   a row for each scenario and configuration
"""

import csv
import io
import textwrap

from trials.base import units
from trials.base.text_table import as_lines, grid, width, wrapped
from trials.machine.counters import total
from trials.record import design as designs, timing
from trials.cost.energy import headline
from trials.report import (arms, cost, external, machine_facts, measures,
                           noise, transports)
from trials.statistics import precision
from trials.statistics.comparison import NOT_SHOWN, TOO_FEW

# benchstat's sign for "no significant difference".
VERDICTS = {NOT_SHOWN: "~", TOO_FEW: "?", None: ""}
# The tests that verdicts stand on, in words above the tables.
VERDICT_WORDS = (
    "by the blocked test: signed ranks of the ratios to the reference in the "
    "same block, below 1 where it is faster. "
    f"~: {NOT_SHOWN}; ?: {TOO_FEW} to tell. p is corrected for all "
    "variants of a scenario and the interval is not: one without 1 beside a ~ "
    "is no contradiction. The p of the two-sample U test, which knows of no "
    "blocks, stands beside it. Spread is the mean deviation from the median, "
    "as a share of it, and is tested in the same blocks: wider, narrower or ~.")
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


def first_environment(study):
    sessions = (study.run.environment or {}).get("sessions") or [{}]
    return sessions[0].get("before") or {}


# --- text ---------------------------------------------------------------------


def text(study) -> str:
    parts = [_heading(study)]
    parts += [_scenario(study, scenario) for scenario in study.scenarios]
    words = cost.sentences(study)
    if words:
        parts.append("Price and energy:\n" + "\n".join(map(wrapped, words)))
    if study.skipped:
        parts.append("Not run:\n" + "\n".join(
            wrapped(f"{name}: {reason}") for name, reason in study.skipped))
    notes = [*_wrong_notes(study), *_control_notes(study), *study.notes,
             *transports.notes(study),
             *(note for group in study.groups.values()
               for note in flag_notes(group))]
    if notes:
        parts.append("Notes:\n" + "\n".join(map(wrapped, notes)))
    return as_lines("\n\n".join(parts) + "\n")


def memory_words(design) -> str:
    return (f"{units.size(design['memory_bytes'])} for the sorter in "
            "beyond-memory")


def _heading(study):
    design = study.design
    told = machine_facts.told(machine_facts.before(study.run.environment))
    lines = [("machine", machine_facts.summary(first_environment(study))
              or "not recorded"),
             *([("facts", told)] if told else []),
             ("blinksort", design["program_version"]), _timed_words(design),
             *arms.lines(design),
             ("trials", f"{len(study.run.trials):,} in order of "
                        f"{design['order']}, seed {design['seed']}")]
    ended = precision.sentence(design, study.run.trials)
    if ended:
        lines.append(("until", ended))
    if design.get("memory_bytes"):
        lines.append(("memory", memory_words(design)))
    if study.looks:
        lines.append(("noise", noise.words(study)))
    if design.get("timing"):
        lines.append(("start", " ".join(timing.sentences(design))))
    by_role = {found["role"]: found for found in design["configurations"]}
    settings = by_role[designs.REFERENCE]["parameters"]
    if settings:
        lines.append(("sweep", "reference: " + ", ".join(
            f"{name.partition('.')[2]}={value}"
            for name, value in settings.items())))
    if designs.CONTROL in by_role:
        lines.append(("A/A", "the control is the reference again, which ought "
                             "not to differ"))
    if any(group.comparison for group in study.groups.values()):
        lines.append(("verdicts", VERDICT_WORDS))
    return "\n".join(textwrap.fill(f"{name:10} {value}", width(),
                                   subsequent_indent=" " * 11)
                     for name, value in lines)


def _timed_words(design) -> tuple[str, str]:
    """A name and words for what is timed, or for what it sorts."""
    if designs.of_commands(design):
        return "folder", design["commands"]["directory"]
    hosts = design["hosts"]
    return "input", (
        f"{designs.input_words(design)}, {design['kind']}"
        + (f", {len(hosts)} nodes" if hosts else "")
        + (f", {designs.route(design)}" if design.get("devices") else ""))


def _scenario(study, scenario):
    groups = study.of(scenario)
    scale, unit = _unit(groups)
    title = f"{study.label(scenario)}: times in {unit}"
    rows = [_times_row(group, scale) for group in groups]
    headings = ("configuration|>n|>failed|>min|>median [95 %]|>mean ± sd|>p95|"
                ">p99")
    compared = any(group.comparison for group in groups)
    signs = [flag_words(group) if group.count else [] for group in groups]
    if not compared and any(signs):
        headings += "|signs"
        rows = [[*row, ", ".join(words)] for row, words in zip(rows, signs)]
    parts = [title + "\n" + grid(headings, rows)]
    if compared:
        parts.append(grid("configuration|>ratio [95 %]|>p (Holm)|>slower in|"
                          "verdict|>p (U)|signs",
                          [_against_row(group) for group in groups]))
        parts.append(f"{study.label(scenario)}: spread\n" + grid(
            "configuration|>spread|>ratio [95 %]|>p (Holm)|verdict",
            [spread_row(group) for group in groups]))
    parts += [f"{textwrap.fill(title, width())}\n{grid(headings, rows)}"
              for title, headings, rows in (*beside(study, scenario),
                                            *costs(study, scenario))]
    return "\n\n".join(parts)


def beside(study, scenario) -> list:
    """(title, headings, rows) of each table of what trials tell beside their
    times."""
    groups = study.of(scenario)
    return _labelled(study, scenario, [
        ("what a process takes with all that it starts, medians",
         *measures.table(groups)), *external.tables(groups),
        (transports.TITLE, transports.HEADINGS,
         transports.rows(study, scenario))])


def costs(study, scenario) -> list:
    """The same of what a sort costs, for a cent and for a joule."""
    return _labelled(study, scenario, cost.tables(study, scenario))


def _labelled(study, scenario, tables):
    return [(f"{study.label(scenario)}: {title}", headings, rows)
            for title, headings, rows in tables if rows]


def _unit(groups):
    """One unit for all of a scenario, so that columns can be compared."""
    medians = [group.summary.median_ns for group in groups if group.summary]
    return units.unit_of(min(medians, default=1e6), units.DURATIONS)


def _times_row(group, scale):
    def number(ns):
        return units.digits(ns / scale)

    s = group.summary
    if s is None:
        return [group.name, "0", str(group.failed), "", "-", "-", "", ""]
    mean = number(s.mean_ns)
    if s.sd_ns is not None:
        mean += f" ± {number(s.sd_ns)}"
    return [group.name, str(s.n), str(group.failed), number(s.min_ns),
            units.with_interval(s.median_ns, s.median_interval_ns, number),
            mean, *("-" if ns is None else number(ns) for ns in
                    map(s.shown_percentile_ns, ("95", "99")))]


def _against_row(group):
    signs = ", ".join(flag_words(group))
    c = group.comparison
    if c is None:
        return [group.name, "-", "", "", "", "", signs]
    ratio = units.with_interval(c.main.ratio, c.main.ratio_interval,
                                "{:.4f}".format)
    return [group.name, ratio, p_text(group.shown_p),
            slower_in(c.main), VERDICTS.get(group.verdict, group.verdict),
            p_text(group.shown_two_sample_p), signs]


def spread_row(group):
    row = [group.name, share(group.summary and group.summary.deviation_ratio)]
    if group.spread is None:
        return [*row, "-", "", ""]
    found = group.spread
    return [*row, units.with_interval(found.ratio, found.interval),
            p_text(group.shown_spread_p),
            VERDICTS.get(group.spread_verdict, group.spread_verdict)]


def share(ratio) -> str:
    """0.0123 -> "1.23 %"."""
    return "-" if ratio is None else f"{units.digits(100 * ratio)} %"


def slower_in(blocked) -> str:
    """38 of 40: how often, whatever the size of the difference."""
    return f"{blocked.longer_count} of {blocked.pairs}"


def p_text(p_value) -> str:
    return "<0.0001" if p_value < 0.0001 else f"{p_value:.4f}"


# --- notes --------------------------------------------------------------------


def flag_words(group) -> list:
    words = [] if group.verified else ["unverified"]
    if group.flags is None:
        return words
    words += group.flags.words
    if group.dependence and group.dependence.found:
        words.append("noise")
    if group.noisy:
        words.append(f"{group.noisy} noisy")
    outliers = len(group.flags.outliers)
    if outliers:
        words.append(f"{outliers} outlier" + "s" * (outliers > 1))
    return words


def flag_notes(group) -> list:
    """A sentence with figures for each flag but outliers, which are common."""
    flags = group.flags
    if flags is None:
        return []
    name = f"{group.scenario}, {group.name}"
    sentences = {
        "drift": lambda: (
            f"the times drift by {units.change(1 + flags.drift.change_ratio)} "
            f"over the run (p {p_text(flags.drift.p_value)})"),
        "step": lambda: (
            f"from trial {group.sample_trials[flags.step.index]['trial']} on "
            "the times are "
            f"{units.change(1 + flags.step.change_ratio)} "
            f"(p {p_text(flags.step.p_value)})"),
        "autocorrelated": lambda: (
            "neighbouring trials resemble each other (lag 1: "
            f"{flags.neighbours.autocorrelation:+.2f}, "
            f"{flags.neighbours.runs} runs): intervals promise too much")}
    notes = [f"{name}: {sentences[word]()}." for word in flags.words]
    if group.dependence and group.dependence.found:
        notes.append(f"{name}: {noise.dependence_words(group)}.")
    return notes


def _control_notes(study):
    """The same configuration twice: if the two differ, so may anything."""
    notes = []
    for scenario in study.scenarios:
        control = study.control(scenario)
        if control and control.verdict in ("slower", "faster"):
            c = control.comparison.main
            notes.append(
                f"!!! A/A control differs: {scenario}: the reference again is "
                f"{units.change(c.ratio)} (p {p_text(c.p_value)}). One in 20 "
                "does so by chance; else something beside the configuration "
                "has an effect, and other differences of this size mean "
                "nothing.")
    return notes


def _wrong_notes(study):
    notes = []
    for group in study.groups.values():
        wrong = sum(trial["outcome"] == "wrong" for trial in group.trials)
        if wrong:
            notes.append(f"!!! {group.scenario}, {group.name}: wrong output in "
                         f"{wrong} of {len(group.trials)} trials.")
    return notes


# --- CSV ----------------------------------------------------------------------


def csv_trials(study) -> str:
    trials = study.run.trials
    # A rank that failed has no phases.
    phases = _all_keys(rank["phases_ns"] or {} for trial in trials
                       for rank in trial["ranks"][:1])
    counters = [key for key in _all_keys(t["counters"] for t in trials)
                if key != "nodes"]
    domains = cost.domains(study)
    passes = _all_keys(map(cost.pass_cells, trials))
    return as_csv([{**_trial_row(t, phases, counters, domains),
                    **cost.pass_cells(t), **_noise_cells(study.noise_of(t))}
                   for t in trials],
                  [*_trial_row(None, phases, counters, domains), *passes,
                   *_noise_cells(None)])


def _all_keys(documents):
    """The keys of all documents, in the order of their first use."""
    return list({key: None for document in documents for key in document})


_PLAIN = ("trial", "block", "position", "scenario", "configuration", "seed",
          "begin_unix_ns", "begin_monotonic_ns", "whole_ns", "outcome",
          "exit_status", "message", "records", "bytes", "checksum",
          "scenario_met")
_SUMMED = ("user_ns", "system_ns", "minor_faults", "major_faults",
           "voluntary_switches", "involuntary_switches")
_RUNNER = ("user_ns", "system_ns", "prepare_ns", "check_ns", "tuning_ns",
           "overhead_ns")


def _trial_row(trial, phases, counters, domains):
    """Ranks are summed up, but for the memory of the largest; the phases are
    rank 0's.  Without a trial: the keys alone."""
    trial = trial or {"ranks": [], "counters": {}, "runner": {}}
    ranks = trial["ranks"]
    row = {key: trial.get(key) for key in _PLAIN}
    row["ranks"] = len(ranks)
    row["elapsed_ns"] = ranks[0]["elapsed_ns"] if ranks else None
    # A command's measures are of all that it has started.
    taken = ranks or [trial.get("measures") or {}]
    for key in _SUMMED:
        row[key] = total(each.get(key) for each in taken)
    row["max_rss_bytes"] = largest([each.get("max_rss_bytes")
                                    for each in taken])
    for name in phases:
        row[f"phase_{name}_ns"] = ((ranks[0]["phases_ns"] or {}).get(name)
                                   if ranks else None)
    for name in counters:
        row[f"counter_{name}"] = trial["counters"].get(name)
    for key in _RUNNER:
        row[f"runner_{key}"] = trial["runner"].get(key)
    if domains:
        energy = trial.get("energy") or {}
        row["energy_counter_span_ns"] = energy.get("counter_span_ns")
        for name in domains:
            row[f"energy_{name}_uj"] = energy.get("domains_uj", {}).get(name)
    return row


def _noise_cells(look):
    """The noise before the trial."""
    return {"noise_percent": look and look.percent,
            "noise_over_limit": look and look.noise["over_limit"],
            "noise_waited_ns": look and look.noise["waited_ns"]}


def largest(values):
    return max((value for value in values if value is not None), default=None)


def csv_summary(study) -> str:
    rows = [_summary_row(study, group) for group in study.groups.values()]
    return as_csv(rows, list(rows[0]) if rows else [])


def _summary_row(study, group):
    row = {"scenario": group.scenario,
           "verified": group.verified,
           "configuration": group.name, "role": group.role,
           "n": group.count, "failed": group.failed}
    s, c = group.summary, group.comparison
    for key in ("min_ns", "max_ns", "mean_ns", "sd_ns", "median_ns", "mad_ns",
                "iqr_ns", "variation_ratio", "deviation_ratio"):
        row[key] = getattr(s, key, None)
    percentiles = s.percentiles_ns if s else {}
    for percent in ("1", "5", "10", "25", "50", "75", "90", "95", "99",
                    "99.9"):
        row[f"p{percent}_ns"] = percentiles.get(percent)
    row.update(_interval("median", "ns",
                         getattr(s, "median_interval_ns", None)))
    row.update(_interval("mean", "ns", getattr(s, "mean_interval_ns", None)))
    row["analysis"] = c.name if c else None
    for name, analysis, p_holm in (
            ("blocked", c and c.blocked, group.p_holm),
            ("two_sample", c and c.two_sample, group.two_sample_p_holm)):
        row.update(_analysis_cells(name, analysis))
        row[f"{name}_p_holm"] = p_holm
    row["blocked_pairs"] = c.blocked.pairs if c else None
    row["two_sample_u"] = c.two_sample.u if c else None
    row["two_sample_shift_ns"] = c.two_sample.shift_ns if c else None
    row.update(_interval("two_sample_shift", "ns",
                         c and c.two_sample.shift_interval_ns))
    row["verdict"] = group.verdict
    row["spread_ratio"] = getattr(group.spread, "ratio", None)
    row.update(_interval("spread_ratio", "",
                         getattr(group.spread, "interval", None)))
    row["spread_p_value"] = getattr(group.spread, "p_value", None)
    row["spread_p_holm"] = group.spread_p_holm
    row["spread_verdict"] = group.spread_verdict
    row["signs"] = " ".join(group.flags.words) if group.flags else None
    row["outliers"] = len(group.flags.outliers) if group.flags else None
    return {**row, **_cost_cells(study, group)}


def _cost_cells(study, group):
    whole = headline(cost.domains(study))
    energy = cost.joules(group, whole)
    cells = {"records_per_cent": cost.records_per_cent(study, group),
             "joules": energy,
             "records_per_joule": energy and study.design["records"]
             and energy.over(study.design["records"])}
    row = {"energy_domains": " ".join(whole) or None,
           "watts": cost.watts(group, whole),
           "joules_meter_error": cost.meter_error_joules(study, group, whole)}
    for name, found in cells.items():
        row[name] = getattr(found, "middle", None)
        row.update(_interval(name, "", getattr(found, "interval", None)))
    return row


def _analysis_cells(name, analysis):
    cells = {f"{name}_{key}": getattr(analysis, key, None)
             for key in ("p_value", "method", "ratio", "superiority",
                         "cliffs_delta")}
    return {**cells, **_interval(f"{name}_ratio", "",
                                 getattr(analysis, "ratio_interval", None))}


def _interval(name, unit, interval):
    unit = f"_{unit}" if unit else ""
    return {f"{name}_low{unit}": getattr(interval, "low", None),
            f"{name}_high{unit}": getattr(interval, "high", None),
            f"{name}_confidence": getattr(interval, "confidence", None)}


def as_csv(rows, keys) -> str:
    """Values as in JSON: true, false, and nothing for null; all digits.  A
    text that a spreadsheet would take for a formula has an apostrophe before
    it: texts come from a record, which is not trusted."""
    def cell(value):
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str) and value.startswith(FORMULA_SIGNS):
            return f"'{value}"
        return value

    file = io.StringIO()
    writer = csv.DictWriter(file, keys, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: cell(value) for key, value in row.items()})
    return file.getvalue()
