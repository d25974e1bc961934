"""Sorts beyond memory: what each pass took beside what was predicted of it, and
the stages of its work, as in the table of TritonSort (Rasmussen et al. 2011,
figure 8).

A record has these figures from the sorter itself; records of sorts in memory,
and older ones, have none.
"""

import statistics

from trials.base import units

HEADINGS = ("configuration|pass|>time|>predicted|>predicted / time|>read|"
            ">written")
STAGES_HEADINGS = ("configuration|pass|stage|>unit|>time|>workers|>alone|"
                   ">busy")
WAITS_HEADINGS = "configuration|pass|stage|waits for|>time|>times"
WHOLE = "all"


def documents(group) -> list:
    """(whole_ns, what rank 0 has said) of each sample beyond memory."""
    found = [(trial["whole_ns"], (trial["ranks"][0] if trial["ranks"] else
                                  {}).get("external"))
             for trial in group.sample_trials]
    return [(whole_ns, said) for whole_ns, said in found if said]


def median(values):
    """The median of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def shown(value, as_text) -> str:
    return "-" if value is None else as_text(value)


def rows(group) -> list:
    """One row for the whole, one for each pass that took time."""
    found = documents(group)
    if not found:
        return []
    names = dict.fromkeys(one["pass"] for _, said in found
                          for one in said["passes"] if one["ns"])
    whole = [(ns, said.get("predicted_ns")) for ns, said in found]
    spilled = median(said.get("spilled_bytes") for _, said in found)
    return [[group.name, WHOLE, *_times(whole), "-",
             f"{shown(spilled, units.size)} spilled"]] + [
        _pass_row(group, name, [one for _, said in found
                                for one in said["passes"]
                                if one["pass"] == name and one["ns"]])
        for name in names]


def _pass_row(group, name, each):
    return [group.name, name,
            *_times([(one["ns"], one["predicted_ns"]) for one in each]),
            *(shown(median(one.get(key) for one in each), units.size)
              for key in ("read_bytes", "written_bytes"))]


def _times(pairs):
    """Median time and prediction, and the median of their ratios."""
    ratio = median(predicted_ns / ns for ns, predicted_ns in pairs
                   if ns and predicted_ns)
    return [shown(median(ns for ns, _ in pairs), units.duration),
            shown(median(predicted_ns for _, predicted_ns in pairs),
                  units.duration),
            shown(ratio, lambda value: f"{value:.2f}")]


def _stages(group) -> dict:
    """What each sample has said of a stage, by pass and stage."""
    found = {}
    for _, said in documents(group):
        for one in said["passes"]:
            for stage in one.get("stages", ()):
                found.setdefault((one["pass"], stage["stage"]),
                                 []).append(stage)
    return found


def stage_rows(group) -> list:
    """A row for each stage; alone: what it would bring if it never waited."""
    return [[group.name, *names,
             shown(_median_ratio(each, "bytes", "units"), units.size),
             shown(median(one["median_ns"] for one in each), units.duration),
             shown(median(one["workers"] for one in each), count),
             shown(_median_ratio(each, "bytes", "busy_ns", "workers"),
                   lambda rate: f"{units.size(rate * 1e9)}/s"),
             shown(median(one["busy_ns"] for one in each), units.duration)]
            for names, each in _stages(group).items()]


def _median_ratio(each, part, whole, factor=None):
    return median(one[part] / one[whole] * (one[factor] if factor else 1)
                  for one in each if one[part] and one[whole])


def wait_rows(group) -> list:
    """A row for each thing that the threads of a stage waited for: the time of
    all of them, and how often one did."""
    return [[group.name, *names, cause,
             *(shown(median(one["waits"].get(cause, {}).get(key, 0)
                            for one in each), as_text)
               for key, as_text in (("ns", units.duration), ("count", count)))]
            for names, each in _stages(group).items()
            for cause in dict.fromkeys(key for one in each
                                       for key in one["waits"])]


def count(value) -> str:
    return f"{value:,.0f}"


def tables(groups) -> list:
    """(title, headings, rows) of each table."""
    return [(f"{title}, medians", headings,
             [row for group in groups for row in rows_of(group)])
            for title, headings, rows_of in (
                ("passes of sorts beyond memory", HEADINGS, rows),
                ("stages of these passes", STAGES_HEADINGS, stage_rows),
                ("waits of all threads of a stage", WAITS_HEADINGS,
                 wait_rows))]
