"""A study in the formats of other programs.

hyperfine()   the JSON of hyperfine --export-json, for the scripts that read it
benchfmt()    Go's benchmark format, for benchstat

Neither knows of scenarios that were not verified: the name says so.
"""

import json
import re

import numpy as np

from trials.report import machine_facts, table


def hyperfine(study) -> str:
    """A result for each group that has a sample; times in seconds."""
    results = [_hyperfine_result(study, group)
               for group in study.groups.values() if group.count]
    return json.dumps({"results": results}, indent=2, allow_nan=False) + "\n"


def _hyperfine_result(study, group):
    s = group.summary
    ranks = [trial["ranks"] for trial in group.sample_trials]
    return {
        "command": f"{study.label(group.scenario)}: {group.name}",
        "mean": s.mean_ns / 1e9,
        "stddev": None if s.sd_ns is None else s.sd_ns / 1e9,
        "median": s.median_ns / 1e9,
        "user": _mean_seconds(ranks, "user_ns"),
        "system": _mean_seconds(ranks, "system_ns"),
        "min": s.min_ns / 1e9,
        "max": s.max_ns / 1e9,
        "times": [ns / 1e9 for ns in group.samples_ns.tolist()],
        "memory_usage_byte": [
            table.largest([rank["max_rss_bytes"] for rank in trial]) or 0
            for trial in ranks],
        "exit_codes": [trial["exit_status"] for trial in group.sample_trials],
        # As hyperfine's own, values are texts.
        "parameters": {"scenario": study.label(group.scenario),
                       **{key: str(value)
                          for key, value in group.parameters.items()}},
    }


def _mean_seconds(ranks, key):
    """The mean over trials of the sum over ranks."""
    return float(np.mean([sum(rank[key] or 0 for rank in trial)
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
    return f"BenchmarkSort/scenario={scenario}/configuration={name}"
