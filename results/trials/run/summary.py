"""What came out, at a glance, in plain arithmetic: blinkreport says more."""

import statistics

from trials.base import units
from trials.base.text_table import grid
from trials.record import noise
from trials.statistics.racing import is_sample


def text(record) -> str:
    """A line for each scenario and configuration, and one for each that was
    skipped."""
    groups = {}
    for trial in record.trials():
        key = trial["scenario"], trial["configuration"]
        groups.setdefault(key, []).append(trial)
    rows = []
    for scenario in record.design["scenarios"]:
        for configuration in record.design["configurations"]:
            found = groups.get((scenario, configuration["name"]))
            if found:
                rows.append(row(scenario, configuration["name"], found))
    headings = "scenario|configuration|>n|>failed|>min|>median"
    return (grid(headings, rows) + "\n" + noise_words(record.trials())
            + skipped(record.design))


def row(scenario: str, name: str, found: list[dict]) -> tuple:
    good = [trial for trial in found if is_sample(trial)]
    times_ns = [trial["whole_ns"] for trial in good]
    # No result has a scenario's name whose conditions were not verified.
    if any(trial["scenario_met"] is not True for trial in good):
        scenario += " (unverified)"
    figures = (units.duration(min(times_ns)),
               units.duration(statistics.median(times_ns))) if times_ns else (
        "-", "-")
    return (scenario, name, str(len(found)),
            str(len(found) - len(good)), *figures)


def noise_words(trials: list[dict]) -> str:
    """A line, if something had to be waited for or is above a limit."""
    looks = noise.looks(trials)
    waited_ns = [look.noise["waited_ns"] for look in looks
                 if look.noise["waited_ns"]]
    loud = sum(look.noise["over_limit"] is True for look in looks)
    words = []
    if waited_ns:
        words.append(f"waited {units.duration(sum(waited_ns))} before "
                     f"{len(waited_ns)} of "
                     f"{len(noise.first_of_blocks(looks))} blocks")
    if loud:
        words.append(f"{loud} of {len(looks)} trials began above the limit")
    return f"noise: {'; '.join(words)}\n" if words else ""


def skipped(design: dict) -> str:
    return "".join(f"skipped: {found['name']}: {found['skipped']}\n"
                   for found in design["configurations"] if found["skipped"])
