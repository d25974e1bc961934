"""Sorts beyond memory: what each pass took beside what was predicted of it.

A record has these figures from the sorter itself; records of sorts in memory,
and older ones, have none.
"""

import statistics

from trials.base import units

HEAD = ("configuration", "pass", "time", "predicted", "predicted / time",
        "read", "written", "waits")
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
             f"{shown(spilled, units.size)} spilled", "-"]] + [
        _pass_row(group, name, [one for _, said in found
                                for one in said["passes"]
                                if one["pass"] == name and one["ns"]])
        for name in names]


def _pass_row(group, name, each):
    return [group.name, name,
            *_times([(one["ns"], one["predicted_ns"]) for one in each]),
            *(shown(median(one.get(key) for one in each), units.size)
              for key in ("read_bytes", "written_bytes")), _waits(each)]


def _times(pairs):
    """Median time and prediction, and the median of their ratios."""
    ratio = median(predicted_ns / ns for ns, predicted_ns in pairs
                   if ns and predicted_ns)
    return [shown(median(ns for ns, _ in pairs), units.duration),
            shown(median(predicted_ns for _, predicted_ns in pairs),
                  units.duration),
            shown(ratio, lambda value: f"{value:.2f}")]


def _waits(each):
    """The two longest waits, as the sum over threads."""
    causes = dict.fromkeys(cause for one in each
                           for cause in one.get("waits_ns") or {})
    waits = [(median((one.get("waits_ns") or {}).get(cause)
                     for one in each) or 0, cause) for cause in causes]
    longest = sorted((one for one in waits if one[0]), reverse=True)[:2]
    return ", ".join(f"{cause} {units.duration(ns)}"
                     for ns, cause in longest) or "-"
