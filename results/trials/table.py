"""A study as tables: text for a terminal, CSV for other programs.

text()          a heading, two tables for each scenario, and notes
csv_trials()    a row for each trial, in the order of the run
csv_summary()   a row for each scenario and configuration
"""

import csv
import io
import textwrap

from trials import facts, units

WIDTH = 100
# benchstat's sign for "no significant difference".
VERDICTS = {"same": "~", "unknown": "?", None: ""}
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))


def first_environment(study):
    sessions = (study.run.environment or {}).get("sessions") or [{}]
    return sessions[0].get("before") or {}


# --- text ---------------------------------------------------------------------


def text(study) -> str:
    parts = [_heading(study)]
    parts += [_scenario(study, scenario) for scenario in study.scenarios]
    if study.skipped:
        parts.append("Not run:\n" + "\n".join(
            wrapped(f"{name}: {reason}") for name, reason in study.skipped))
    notes = [*_wrong_notes(study), *_control_notes(study), *study.notes,
             *(note for group in study.groups.values()
               for note in flag_notes(group))]
    if notes:
        parts.append("Notes:\n" + "\n".join(map(wrapped, notes)))
    return "\n\n".join(parts) + "\n"


def wrapped(line):
    return textwrap.fill(line, WIDTH, initial_indent="  ",
                         subsequent_indent="      ")


def machine_text(study) -> str:
    return facts.summary(first_environment(study)) or "not recorded"


def _heading(study):
    design = study.design
    hosts = design["hosts"]
    lines = [("machine", machine_text(study)),
             ("blinksort", design["program_version"]),
             ("input", f"{units.count(design['records'])} records of "
                       f"{design['record_bytes']} bytes, {design['kind']}"
                       + (f", {len(hosts)} nodes" if hosts else "")),
             ("trials", f"{units.count(len(study.run.trials))} in order of "
                        f"{design['order']}, seed {design['seed']}")]
    return "\n".join(textwrap.fill(f"{name:10} {value}", WIDTH,
                                   subsequent_indent=" " * 11)
                     for name, value in lines)


def _scenario(study, scenario):
    groups = study.of(scenario)
    scale, unit = _unit(groups)
    title = f"{study.label(scenario)}: times in {unit}"
    rows = [_times_row(group, scale) for group in groups]
    head = ("configuration", "n", "failed", "min", "median [95 %]",
            "mean ± sd", "p95", "p99")
    parts = [title + "\n" + grid(head, rows)]
    if any(group.comparison or flag_words(group) for group in groups):
        head = ("configuration", "median ratio [95 %]", "p (Holm)", "effect",
                "verdict", "signs")
        parts.append(grid(head, [_against_row(group) for group in groups]))
    return "\n\n".join(parts)


def _unit(groups):
    """One unit for all of a scenario, so that columns can be compared."""
    medians = [group.summary.median_ns for group in groups if group.summary]
    return next((scale, unit) for scale, unit in _UNITS
                if scale <= min(medians, default=1e6) or scale == 1)


def _times_row(group, scale):
    def number(ns):
        return units.digits(ns / scale)

    s = group.summary
    if s is None:
        return [group.name, "0", str(group.failed), "", "-", "-", "", ""]
    interval = s.median_interval_ns
    median = number(s.median_ns)
    if interval:
        median += f" [{number(interval.low)}, {number(interval.high)}]"
    mean = number(s.mean_ns)
    if s.sd_ns is not None:
        mean += f" ± {number(s.sd_ns)}"
    return [group.name, str(s.n), str(group.failed), number(s.min_ns), median,
            mean, number(s.percentiles_ns["95"]),
            number(s.percentiles_ns["99"])]


def _against_row(group):
    signs = ", ".join(flag_words(group))
    c = group.comparison
    if c is None:
        return [group.name, "-", "", "", "", signs]
    ratio = (f"{c.ratio:.4f} [{c.ratio_interval.low:.4f}, "
             f"{c.ratio_interval.high:.4f}]")
    return [group.name, ratio, p_text(shown_p(group)), c.effect,
            VERDICTS.get(group.verdict, group.verdict), signs]


def shown_p(group):
    """The control is no candidate, so its p is not corrected."""
    if group.p_holm is not None:
        return group.p_holm
    return group.comparison.p_value


def p_text(p_value) -> str:
    return "<0.0001" if p_value < 0.0001 else f"{p_value:.4f}"


def grid(head, rows):
    """Columns as wide as they need be; what has digits stands to the right.

    A name that would make the table wider than a terminal has a line to
    itself."""
    rows = [list(head), *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    rest = sum(widths[1:]) + 2 * (len(widths) - 1)
    widths[0] = min(widths[0], max(len(head[0]), WIDTH - rest))
    lines = []
    for row in rows:
        name = row[0]
        if len(name) > widths[0]:
            lines.append(name)
            name = ""
        cells = [name.ljust(widths[0])]
        cells += [cell.ljust(width) if title in ("effect", "verdict", "signs")
                  else cell.rjust(width)
                  for title, cell, width in zip(head[1:], row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


# --- notes --------------------------------------------------------------------


def flag_words(group) -> list:
    words = [] if group.verified else ["unverified"]
    if group.flags is None:
        return words
    words += group.flags.words
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
            f"from sample {flags.step.index + 1} on the times are "
            f"{units.change(1 + flags.step.change_ratio)} "
            f"(p {p_text(flags.step.p_value)})"),
        "autocorrelated": lambda: (
            "neighbouring trials resemble each other (lag 1: "
            f"{flags.neighbours.autocorrelation:+.2f}, "
            f"{flags.neighbours.runs} runs): intervals promise too much"),
        "bimodal": lambda: (
            "there is more than one peak (dip test, p "
            f"{p_text(flags.modes.p_value)}): no single figure describes it")}
    return [f"{name}: {sentences[word]()}." for word in flags.words]


def _control_notes(study):
    """The same configuration twice: if the two differ, so may anything."""
    notes = []
    for scenario in study.scenarios:
        control = study.control(scenario)
        if control and control.verdict in ("slower", "faster"):
            c = control.comparison
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
    phases = _all_keys(rank["phases_ns"] for trial in trials
                       for rank in trial["ranks"][:1])
    counters = [key for key in _all_keys(t["counters"] for t in trials)
                if key != "nodes"]
    return _csv([_trial_row(t, phases, counters) for t in trials],
                list(_trial_row(None, phases, counters)))


def _all_keys(documents):
    """In the order in which they were first seen."""
    return list({key: None for document in documents for key in document})


_PLAIN = ("trial", "block", "position", "scenario", "configuration", "seed",
          "begin_unix_ns", "begin_monotonic_ns", "whole_ns", "outcome",
          "exit_status", "message", "records", "bytes", "checksum",
          "scenario_met")
_SUMMED = ("user_ns", "system_ns", "minor_faults", "major_faults",
           "voluntary_switches", "involuntary_switches")
_RUNNER = ("user_ns", "system_ns", "prepare_ns", "check_ns", "tuning_ns",
           "overhead_ns")


def _trial_row(trial, phases, counters):
    """Ranks are summed up, but for the memory of the largest; the phases are
    rank 0's.  Without a trial: the keys alone."""
    trial = trial or {"ranks": [], "counters": {}, "runner": {}}
    ranks = trial["ranks"]
    row = {key: trial.get(key) for key in _PLAIN}
    row["ranks"] = len(ranks)
    row["elapsed_ns"] = ranks[0]["elapsed_ns"] if ranks else None
    for key in _SUMMED:
        row[key] = _total([rank[key] for rank in ranks])
    row["max_rss_bytes"] = largest([rank["max_rss_bytes"] for rank in ranks])
    for name in phases:
        row[f"phase_{name}_ns"] = (ranks[0]["phases_ns"].get(name)
                                   if ranks else None)
    for name in counters:
        row[f"counter_{name}"] = trial["counters"].get(name)
    for key in _RUNNER:
        row[f"runner_{key}"] = trial["runner"].get(key)
    return row


def _total(values):
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def largest(values):
    return max((value for value in values if value is not None), default=None)


def csv_summary(study) -> str:
    rows = [_summary_row(study, group) for group in study.groups.values()]
    return _csv(rows, list(rows[0]) if rows else [])


def _summary_row(study, group):
    row = {"scenario": group.scenario,
           "verified": group.verified,
           "configuration": group.name, "role": group.role,
           "n": group.count, "failed": group.failed}
    s, c = group.summary, group.comparison
    for key in ("min_ns", "max_ns", "mean_ns", "sd_ns", "median_ns", "mad_ns",
                "iqr_ns", "variation_ratio"):
        row[key] = getattr(s, key, None)
    percentiles = s.percentiles_ns if s else {}
    for percent in ("1", "5", "10", "25", "50", "75", "90", "95", "99",
                    "99.9"):
        row[f"p{percent}_ns"] = percentiles.get(percent)
    row.update(_interval("median", "ns",
                         getattr(s, "median_interval_ns", None)))
    row.update(_interval("mean", "ns", getattr(s, "mean_interval_ns", None)))
    for key in ("u", "p_value", "method", "shift_ns", "ratio", "superiority",
                "cliffs_delta", "effect"):
        row[key] = getattr(c, key, None)
    row["p_holm"] = group.p_holm
    row.update(_interval("shift", "ns", getattr(c, "shift_interval_ns", None)))
    row.update(_interval("ratio", "", getattr(c, "ratio_interval", None)))
    blocked = c.blocked if c else None
    row["blocked_pairs"] = getattr(blocked, "pairs", None)
    row["blocked_p_value"] = getattr(blocked, "p_value", None)
    row["blocked_shift_ns"] = getattr(blocked, "shift_ns", None)
    row.update(_interval("blocked_shift", "ns",
                         getattr(blocked, "shift_interval_ns", None)))
    row["verdict"] = group.verdict
    row["signs"] = " ".join(group.flags.words) if group.flags else None
    row["outliers"] = len(group.flags.outliers) if group.flags else None
    return row


def _interval(name, unit, interval):
    unit = f"_{unit}" if unit else ""
    return {f"{name}_low{unit}": getattr(interval, "low", None),
            f"{name}_high{unit}": getattr(interval, "high", None),
            f"{name}_confidence": getattr(interval, "confidence", None)}


def _csv(rows, keys):
    file = io.StringIO()
    writer = csv.DictWriter(file, keys, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _cell(value) for key, value in row.items()})
    return file.getvalue()


def _cell(value):
    """As in JSON: true, false, and nothing for null; all digits there are."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value
