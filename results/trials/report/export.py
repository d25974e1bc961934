"""A study in the formats of other programs.

hyperfine()   the JSON of hyperfine --export-json, for the scripts that read it
benchfmt()    Go's benchmark format, for benchstat
hlog()        HdrHistogram's log of intervals, for what plots percentiles

None of them knows of scenarios that were not verified: the name says so.
"""

import json
import re
from datetime import datetime, timezone

import numpy as np

from trials.record import design as designs
from trials.report import arms, hdr_histogram, machine_facts, measures, table

# What a trial has measured beside its time.
MEASURES = tuple(name for _, _, names in measures.FIGURES for name in names)
# A histogram of four digits knows times as reports show them.
_HLOG_DIGITS = 4
# Readers make room for at least an hour.
_HLOG_HIGHEST_NS = 3600 * 10**9


def hyperfine(study) -> str:
    """A result for each group that has a sample; times in seconds."""
    results = [_hyperfine_result(study, group)
               for group in study.groups.values() if group.count]
    return json.dumps({"results": results}, indent=2, allow_nan=False) + "\n"


def _hyperfine_result(study, group):
    s = group.summary
    # A command's figures, and those of a cluster's ranks; of one process both
    # are the same.
    measured = [measures.of_trial(trial) for trial in group.sample_trials]
    ranks = [trial["ranks"] or [found] for trial, found
             in zip(group.sample_trials, measured)]
    result = {
        "command": _command(study, group),
        "mean": s.mean_ns / 1e9,
        "stddev": None if s.sd_ns is None else s.sd_ns / 1e9,
        "median": s.median_ns / 1e9,
        "user": _mean_seconds(ranks, "user_ns"),
        "system": _mean_seconds(ranks, "system_ns"),
        "min": s.min_ns / 1e9,
        "max": s.max_ns / 1e9,
        "times": [ns / 1e9 for ns in group.samples_ns.tolist()],
        "memory_usage_byte": [
            table.largest([rank.get("max_rss_bytes") for rank in trial]) or 0
            for trial in ranks],
        "exit_codes": [trial["exit_status"] for trial in group.sample_trials],
        # Values are texts, as in hyperfine's own files.
        "parameters": {key: str(value) for key, value
                       in _parameters(study, group).items()},
    }
    if any(measured):
        # hyperfine's own readers pass it over.
        result["measures"] = {name: [found.get(name) for found in measured]
                              for name in MEASURES}
    return result


def _is_plain(group) -> bool:
    """A command that hyperfine would have run in the same way."""
    return group.scenario == designs.AS_IS


def _command(study, group) -> str:
    """Scripts take the text of a command for it."""
    if _is_plain(group):
        return group.name
    return f"{study.label(group.scenario)}: {group.name}"


def _parameters(study, group) -> dict:
    """Scripts that draw a curve ask for one parameter and no more."""
    scenario = ({} if _is_plain(group)
                else {"scenario": study.label(group.scenario)})
    return {**scenario, **group.parameters, **arms.values(study.design,
                                                          group.name)}


def _mean_seconds(ranks, key):
    """The mean over trials of the sum over ranks."""
    return float(np.mean([sum(rank.get(key) or 0 for rank in trial)
                          for trial in ranks])) / 1e9


def benchfmt(study) -> str:
    """A line for each sample.

    Every name has the same keys, so that one can tell benchstat
    -col /configuration; its base is what comes first, which is why samples
    stand group by group, the reference before the others, each in the order of
    the run.
    """
    environment = table.first_environment(study)
    settings = {
        "goos": "linux",
        "cpu": machine_facts.at(environment, "cpu.model_name"),
        "kernel": machine_facts.at(environment, "kernel.release"),
        "blinksort": study.design["program_version"],
        "records": study.design["records"],
        "seed": study.design["seed"],
        "run": study.design["run_id"],
    }
    lines = [f"{key}: {value}" for key, value in settings.items()
             if value is not None]
    lines += ["", *(f"{_go_name(study, group)} 1 {trial['whole_ns']} ns/op"
                    for group in study.groups.values()
                    for trial in group.sample_trials)]
    return "\n".join(lines) + "\n"


def _go_name(study, group):
    # Spaces end a name, '/' begins its next part.
    scenario, name = (re.sub(r"[\s/]+", "_", text) for text in (
        study.label(group.scenario), group.name))
    what = "Command" if designs.of_commands(study.design) else "Sort"
    return f"Benchmark{what}/scenario={scenario}/configuration={name}"


def hlog(study) -> str:
    """An interval for each group that has a sample, from its first trial to
    the end of its last, with its name as the tag; values in nanoseconds.  The
    greatest, in a column of its own, is in milliseconds, as that of other
    programs is."""
    groups = sorted((group for group in study.groups.values() if group.count),
                    key=lambda group: group.sample_trials[0]["begin_unix_ns"])
    lines = ["#[blinksort " + _word(study.design["program_version"])
             + ", run " + study.design["run_id"] + "]",
             "#[Histogram log format version 1.3]"]
    if groups:
        start_ns = groups[0].sample_trials[0]["begin_unix_ns"]
        when = datetime.fromtimestamp(start_ns // 10**9, timezone.utc)
        lines.append(f"#[StartTime: {start_ns / 1e9:.3f} (seconds since "
                     f"epoch), {when:%a %b %d %H:%M:%S} UTC {when:%Y}]")
    lines.append('"StartTimestamp","Interval_Length","Interval_Max",'
                 '"Interval_Compressed_Histogram"')
    lines += [_hlog_line(study, group, start_ns) for group in groups]
    return "\n".join(lines) + "\n"


def _hlog_line(study, group, start_ns):
    first, last = group.sample_trials[0], group.sample_trials[-1]
    end_ns = last["begin_unix_ns"] + last["whole_ns"]
    values_ns = [trial["whole_ns"] for trial in group.sample_trials]
    encoded = hdr_histogram.encode(
        values_ns, _HLOG_DIGITS, max(_HLOG_HIGHEST_NS, *values_ns))
    # A clock may be set back during a run.
    begin_s = max(0, first["begin_unix_ns"] - start_ns) / 1e9
    length_s = max(0, end_ns - first["begin_unix_ns"]) / 1e9
    return (f"Tag={_word(study.label(group.scenario))}:{_word(group.name)},"
            f"{begin_s:.3f},{length_s:.3f},{max(values_ns) / 1e6:.3f},"
            f"{encoded}")


def _word(text):
    """The text without what ends a tag or a line."""
    return re.sub(r"[\s,]+", "_", str(text))
