"""What the timed processes have taken beside time: medians of each arm.

Records of clusters have no such figures, nor have older ones.
"""

from trials.base import units
from trials.report.external import count, median, shown

FIGURES = (
    ("user", units.duration, ("user_ns",)),
    ("system", units.duration, ("system_ns",)),
    ("peak memory", units.size, ("max_rss_bytes",)),
    ("page faults", None, ("minor_faults", "major_faults")),
    ("switches", None, ("voluntary_switches", "involuntary_switches")),
    ("read", units.size, ("read_bytes",)),
    ("written", units.size, ("written_bytes",)),
    ("left behind", None, ("left_processes",)),
    ("instructions", None, ("instructions",)),
    ("cycles", None, ("cycles",)),
    ("cache misses", None, ("cache_misses",)),
    ("branch misses", None, ("branch_misses",)))
# A column that has nothing to tell of any arm is left out.
OFTEN_ZERO = {"left behind"}


def of_trial(trial: dict) -> dict:
    """The figures of a trial, and the processor's; {}: it has none."""
    found = trial.get("measures")
    return {**found, **found["counters"]} if found else {}


def table(groups) -> tuple[str, list]:
    """The headings and the rows of the arms that have figures."""
    arms = [(group.name, found) for group in groups if any(
        found := [of_trial(trial) for trial in group.sample_trials])]
    figures = [[_figure(found, names) for _, _, names in FIGURES]
               for _, found in arms]
    columns = [number for number, (head, _, _) in enumerate(FIGURES)
               if any(row[number] is not None and (
                   row[number] or head not in OFTEN_ZERO) for row in figures)]
    headings = "|>".join(["configuration", *(FIGURES[number][0]
                                             for number in columns)])
    return headings, [
        [name, *(shown(row[number], FIGURES[number][1] or count)
                 for number in columns)]
        for (name, _), row in zip(arms, figures)]


def _figure(found, names):
    """The median over trials of the sum of these."""
    return median(None if None in values else sum(values) for values in (
        [one.get(name) for name in names] for one in found))
