"""How what a document says is answered: by a record, by a model, by a test, by
what is built.

A claim's member "ours" says which; a record that can answer is looked for among
those that were given.  One that several records can answer has an answer of
each.
"""

import os
from dataclasses import dataclass, replace
from typing import Callable

import numpy as np

from trials.base.failure import Failure
from trials.characterise import machine_profile
from trials.published import benchmark, model_curves, quantity
from trials.record import store
from trials.record.sweep import ranks_of
from trials.report.study import REFERENCE, Study
from trials.statistics.comparison import NOT_SHOWN, TOO_FEW
from trials.statistics.spread import NARROWER, WIDER

# The benchmark, whose times the documents have.
STATISTICS: dict[str, Callable] = {
    "mean": np.mean, "median": np.median, "minimum": np.min,
    "maximum": np.max, "sd": lambda samples: np.std(samples, ddof=1)}


@dataclass(frozen=True)
class Answer:
    """`value` is in the claim's unit, or one for each label of its values."""

    by: str
    words: str
    value: float | dict | None = None
    # A difference that can't be chance alone.
    shown: bool = True
    # The name of the record.
    record: str = ""


@dataclass(frozen=True)
class Source:
    """A record that was given."""

    path: str
    environment: dict
    # One of the two is there.
    study: Study | None = None
    profile: machine_profile.Profile | None = None

    @property
    def name(self) -> str:
        return os.path.basename(os.path.normpath(self.path))


def read(path: str) -> Source | None:
    """The record in the folder; None of a file, which stands beside records.
    Raises Failure."""
    if os.path.isfile(path):
        return None
    if machine_profile.is_one(path):
        profile = machine_profile.read(path)
        return Source(path, profile.environment, profile=profile)
    run = store.read(path)
    return Source(path, run.environment, study=Study(run))


class Answers:
    """The answers to claims by these records, and by the programs."""

    def __init__(self, programs, sources):
        self._programs = programs
        self._sources = sources

    def of(self, claim) -> list[Answer]:
        ours = claim["ours"]
        if ours["by"] == "measured":
            return self._by_records(claim)
        if ours["by"] == "modelled":
            return [self._modelled(claim)]
        value = ours.get("value")
        return [Answer(ours["by"], _words(ours), value and _for_each_label(
            claim, value))]

    def _by_records(self, claim):
        ours = claim["ours"]
        found = MEASURES[ours["measure"]](self._sources, claim)
        note = f"; {ours['note']}" if "note" in ours else ""
        return [replace(answer, words=answer.words + note)
                for answer in found] or _skipped(self._sources, ours)

    def _modelled(self, claim):
        """By blinksort's own model."""
        ours = claim["ours"]
        arguments = ours["arguments"]
        value = member_of(model_curves.explained(self._programs, *arguments),
                          ours["member"])
        if value is None:
            raise Failure(claim["id"], f"no {ours['member']} in the plan")
        words = ours.get("note", "blinksort --explain " + " ".join(arguments))
        if "unit" not in claim:
            return Answer("modelled", f"{ours['member']} is {value}; {words}")
        unit = quantity.base_of(ours["member"])
        if "of_bytes" in ours:
            value, unit = ours["of_bytes"] * 1e9 / value, "bytes/s"
        return Answer("modelled", words, _for_each_label(
            claim, quantity.in_unit(value, unit, claim["unit"])))


def _for_each_label(claim, value):
    return dict.fromkeys(claim["values"], value) if "values" in claim \
        else value


def _words(ours) -> str:
    return "; ".join(ours[key] for key in ("where", "test", "why", "note")
                     if key in ours)


def member_of(document, path):
    """What stands at passes.0.elapsed_ns; None: nothing does."""
    for step in path.split("."):
        if isinstance(document, list):
            document = (document[int(step)] if step.isdigit()
                        and int(step) < len(document) else None)
        elif isinstance(document, dict):
            document = document.get(step)
        else:
            return None
    return document


# --- measured -----------------------------------------------------------------

def _measured(source, words, value, unit, claim, shown=True):
    return Answer("measured", ", ".join(filter(None, (source.name, words))),
                  _for_each_label(claim, quantity.in_unit(
                      float(value), unit, claim["unit"])), shown, source.name)


def _nodes(study, group) -> str:
    ranks = ranks_of(group.parameters)
    if ranks and not study.design["hosts"]:
        return f"{ranks['count']} ranks"
    count = len(group.trials[0]["ranks"] or [None])
    return f"{count} node{'s' * (count > 1)}" \
        + f" of {benchmark.NODES}" * benchmark.is_part(study)


def _groups(sources, ours, has=benchmark.is_whole):
    """(source, group) of the benchmark's times of an arm, or of the reference.
    """
    return [(source, group) for source in sources
            if source.study is not None and has(source.study)
            for group in source.study.of(ours["scenario"])
            if group.count > (ours["statistic"] == "sd")
            and (group.name in ours["arm"] if "arm" in ours
                 else group.role == REFERENCE)]


def _time(sources, claim):
    """The answer of the record with most trials."""
    ours = claim["ours"]
    groups = _groups(sources, ours)
    if not groups:
        return []
    source, group = max(groups, key=lambda pair: pair[1].count)
    return [_measured(source, _circumstances(source, group),
                      STATISTICS[ours["statistic"]](group.samples_ns), "ns",
                      claim)]


def _effect(sources, claim):
    """Of each record that has such an arm, how much longer it takes than the
    reference; or of the one with most trials, how much longer the reference
    takes than in the scenario "less"."""
    ours = claim["ours"]
    of = STATISTICS[ours["statistic"]]
    groups = _groups(sources, ours) or _groups(sources, ours, benchmark.is_part)
    if "less" in ours:
        groups = sorted(groups, key=lambda pair: pair[1].count)[-1:]
    found = []
    for source, group in groups:
        reference = source.study.reference(ours.get("less",
                                                    ours["scenario"]))
        if reference and reference.count > (ours["statistic"] == "sd"):
            base = of(reference.samples_ns)
            more = of(group.samples_ns) - base
            value, unit = ((more / base, "x") if claim["unit"] == "%"
                           else (more, "ns"))
            found.append(_measured(
                source, _circumstances(source, group), value, unit, claim,
                _is_shown(group, ours)))
    return found


def _skipped(sources, ours):
    """The reason of the first record that would have had the arms."""
    for source in sources:
        reasons = [one["skipped"] for one in (
            source.study.design["configurations"] if source.study else ())
            if one["name"] in ours.get("arm", ()) and one["skipped"]]
        if reasons:
            return [Answer("not here", f"{source.name}: {reasons[0]}")]
    return []


def _circumstances(source, group):
    return ", ".join([_nodes(source.study, group), f"{group.count} trials",
                      *([group.name] if group.role != REFERENCE else ()),
                      *(() if group.verified else ("unverified",))])


def _is_shown(group, ours):
    if "less" in ours:
        return True
    if ours["statistic"] == "sd":
        return group.spread_verdict in (WIDER, NARROWER)
    return group.verdict not in (None, NOT_SHOWN, TOO_FEW)


def _machine(sources, claim):
    """Of all lines with this setting, the statistic of their medians."""
    ours = claim["ours"]
    found = []
    for source in sources:
        lines = [line for line in (source.profile.lines if source.profile
                                   else ()) if line["samples"]
                 and (line["part"], line["what"])
                 == (ours["part"], ours["what"])
                 and ours.get("setting", {}).items()
                 <= line["setting"].items()]
        values = [_of_line(line, ours) for line in lines]
        values = [value for value in values if value is not None]
        if values:
            unit = ("x" if "over" in ours else quantity.base_of(ours["member"])
                    if "member" in ours else lines[0]["unit"])
            found.append(_measured(
                source, "", STATISTICS[ours.get("statistic", "median")](values),
                unit, claim))
    return found


def _of_line(line, ours):
    """The median of the line's samples, or a member of it, or the ratio of
    two."""
    if "member" not in ours:
        return float(np.median(line["samples"]))
    value = member_of(line, ours["member"])
    return value / member_of(line, ours["over"]) if "over" in ours else value


def _sort(sources, claim):
    """A member of blinksort's own documents, of the record with most trials."""
    ours = claim["ours"]
    found = [(source, [member_of(trial, ours["member"])
                       for trial in source.study.run.trials
                       if trial["scenario"] == ours["scenario"]])
             for source in sources if source.study]
    found = [(source, [value for value in values if value is not None])
             for source, values in found]
    source, values = max(found, key=lambda pair: len(pair[1]),
                         default=(None, []))
    if not values:
        return []
    return [_measured(source, f"{len(values)} trials",
                      STATISTICS[ours["statistic"]](values),
                      quantity.base_of(ours["member"]), claim)]


MEASURES = {"time": _time, "effect": _effect, "machine": _machine,
            "sort": _sort}


def needed(claim) -> str:
    """What a record has that could answer."""
    ours = claim["ours"]
    if ours["measure"] == "machine":
        return f"characterise: {ours['part']}, {ours['what']}"
    arm = f" with {ours['arm'][0]}" if "arm" in ours else ""
    return f"trials: {ours['scenario']}{arm}"
