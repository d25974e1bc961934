"""A study: everything that a report shows, computed once from a record.

A run is the record as it was read; a study is what it says.  Trials are put
into groups, one for each scenario and configuration; each group has its
summary, and its comparison with the reference of the same scenario.  Tables,
pictures, pages and changes take a Study and compute nothing by themselves, so
that they can't disagree.

What counts as a sample: the time of a trial that was right ("ok") or that was
not checked ("unchecked").  The time of one that failed, or whose output was
wrong, is no time of a sort; such trials stay in Group.trials and are counted.
"""

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from trials.record import noise
from trials.record.design import AS_IS, CONTROL, REFERENCE, VARIANT
from trials.report import machine_facts
from trials.statistics import descriptive, racing, spread
from trials.statistics.comparison import Comparison, compare, holm
from trials.statistics.dependence import Dependence, dependence
from trials.statistics.racing import is_sample
from trials.statistics.spread import Spread

# Stands where the name of a scenario does, of commands that asked for none.
COMMANDS = "commands"


@dataclass
class Group:
    """The trials of one configuration in one scenario."""

    name: str
    scenario: str
    role: str
    parameters: dict = field(default_factory=dict)
    tuning: dict | None = None
    # The command as a design has it; None: blinksort was timed.
    command: dict | None = None
    trials: list = field(default_factory=list)
    samples_ns: np.ndarray = field(default_factory=lambda: np.array([]))
    # The trial that each sample is of: for the order of the run.
    sample_trials: list = field(default_factory=list)
    # The session that each was taken in, from 0.
    sample_sessions: list = field(default_factory=list)
    # The summary is None when there is no sample.
    summary: descriptive.Summary | None = None
    # Signs that should make a reader careful: drift, steps, outliers.
    flags: descriptive.Flags | None = None
    # The comparison is None for the reference itself, or when one of the two
    # has no sample.
    comparison: Comparison | None = None
    # The p that the verdict stands on, corrected for the number of variants in
    # this scenario; None likewise, and for the control, which is no candidate.
    p_holm: float | None = None
    # The corrected p of the two-sample test, which is shown beside it; None
    # likewise.
    two_sample_p_holm: float | None = None
    # The spread beside the reference's, and its corrected p; None likewise.
    spread: Spread | None = None
    spread_p_holm: float | None = None
    # These p values as they are shown: the control's are not corrected.
    shown_p: float | None = None
    shown_two_sample_p: float | None = None
    shown_spread_p: float | None = None
    # Every sample was taken under conditions that were verified.
    verified: bool = False
    # A search that saw it to be slower left it out from this block on.
    dropped_block: int | None = None

    # The samples before which the noise is known, and what it was.
    noise_trials: list = field(default_factory=list)
    noise_percents: list = field(default_factory=list)
    # The dependence of the times on the noise; None if that can't be told.
    dependence: Dependence | None = None
    # The samples that began above a limit.
    noisy: int = 0

    @property
    def noise_samples_ns(self) -> np.ndarray:
        return np.array([t["whole_ns"] for t in self.noise_trials],
                        dtype=float)

    @property
    def count(self) -> int:
        return len(self.samples_ns)

    @property
    def failed(self) -> int:
        return len(self.trials) - self.count

    @property
    def blocks(self) -> list:
        """The block of each sample: what ran in one block is comparable."""
        return [t["block"] for t in self.sample_trials]

    @property
    def spread_verdict(self) -> str | None:
        """The verdict of spread.py on the group beside the reference."""
        return self.spread and self.spread.verdict(self.spread_p_holm)

    @property
    def verdict(self) -> str | None:
        """The verdict of comparison.py on the group beside the reference."""
        if self.comparison is None:
            return None
        return self.comparison.verdict(self.p_holm)


class Study:
    """See the module.  The order of groups is the design's: scenario by
    scenario, and in each the configurations as they were listed."""

    def __init__(self, run):
        self.run = run
        self.design = run.design
        self.scenarios = list(run.design["scenarios"])
        self.skipped = [(c["name"], c["skipped"])
                        for c in run.design["configurations"]
                        if c["skipped"] is not None]
        self.groups = self._make_groups()
        self.strays = self._sort_trials()
        self.looks = noise.looks(run.trials)
        self._noise_of_trials = {look.trial: look for look in self.looks}
        self.sessions = self._session_starts()
        for group in self.groups.values():
            self._summarise(group)
        for scenario in self.scenarios:
            self._compare(scenario)
        self._mark_dropped()
        self.notes = self._make_notes()

    # --- what readers ask ---------------------------------------------------

    def of(self, scenario: str) -> list:
        """The groups of a scenario, as the design lists them."""
        return [g for g in self.groups.values() if g.scenario == scenario]

    def reference(self, scenario: str) -> Group | None:
        return self._role(scenario, REFERENCE)

    @property
    def references(self) -> list:
        """The reference of each scenario in which it has a sample."""
        return [g for g in map(self.reference, self.scenarios)
                if g is not None and g.count]

    def control(self, scenario: str) -> Group | None:
        return self._role(scenario, CONTROL)

    def variants(self, scenario: str) -> list:
        return [g for g in self.of(scenario) if g.role == VARIANT]

    def verified(self, scenario: str) -> bool:
        """No sample of the reference, in any of its arms, was taken under
        conditions not verified; a variant may be just what does not meet
        them, and is marked by itself."""
        groups = [g for g in self.of(scenario) if g.count
                  and g.role in (REFERENCE, CONTROL)]
        return bool(groups) and all(g.verified for g in groups)

    def label(self, scenario: str) -> str:
        """A result is never labelled with a scenario that was not verified."""
        if scenario == AS_IS:
            return COMMANDS
        if self.verified(scenario):
            return scenario
        return f"{scenario} (unverified)"

    def median_trial(self, group: Group) -> dict | None:
        """The trial that stands for its group: the one nearest to the median,
        the earliest of such."""
        if not group.count:
            return None
        distance = np.abs(group.samples_ns - np.median(group.samples_ns))
        return group.sample_trials[int(np.argmin(distance))]

    @property
    def failures(self) -> list:
        """The trials that gave no sample, in order of time."""
        trials = [t for g in self.groups.values() for t in g.trials]
        return sorted((t for t in trials if not is_sample(t)),
                      key=lambda t: t["trial"])

    @property
    def changes(self) -> list:
        """(session, change): what was otherwise when a session ended."""
        return [(number, change)
                for number, session in enumerate(
                    machine_facts.sessions(self.run.environment))
                for change in session.get("changed") or []]

    @property
    def noise_percents(self) -> list:
        """The noise at all looks at which it was known."""
        return [look.percent for look in self.looks
                if look.percent is not None]

    def noise_of(self, trial: dict) -> noise.Look | None:
        """The noise before the trial; old records have none."""
        return self._noise_of_trials.get(trial["trial"])

    # --- how it is computed -------------------------------------------------

    def _role(self, scenario, role):
        return next((g for g in self.of(scenario) if g.role == role), None)

    def _make_groups(self):
        return {
            (scenario, c["name"]): Group(
                c["name"], scenario, c["role"], c["parameters"], c["tuning"],
                c.get("command"))
            for scenario in self.scenarios
            for c in self.design["configurations"] if c["skipped"] is None}

    def _sort_trials(self):
        """Puts each trial into its group; returns those that have none."""
        strays = []
        for trial in self.run.trials:
            key = (trial["scenario"], trial["configuration"])
            if key in self.groups:
                self.groups[key].trials.append(trial)
            else:
                strays.append(trial)
        return strays

    def _summarise(self, group):
        group.sample_trials = [t for t in group.trials if is_sample(t)]
        group.samples_ns = np.array(
            [t["whole_ns"] for t in group.sample_trials], dtype=float)
        group.sample_sessions = [bisect_right(self.sessions, t["trial"])
                                 for t in group.sample_trials]
        group.verified = bool(group.count) and all(
            t["scenario_met"] is True for t in group.sample_trials)
        if group.count:
            group.summary = descriptive.summarise(
                group.samples_ns, self.design["seed"])
            group.flags = descriptive.flags(group.samples_ns)
            self._set_beside_noise(group)

    def _set_beside_noise(self, group):
        for trial in group.sample_trials:
            look = self.noise_of(trial)
            if look is None:
                continue
            group.noisy += look.noise["over_limit"] is True
            if look.percent is not None:
                group.noise_trials.append(trial)
                group.noise_percents.append(look.percent)
        group.dependence = dependence(group.noise_samples_ns,
                                      group.noise_percents)

    def _compare(self, scenario):
        reference = self.reference(scenario)
        if reference is None or not reference.count:
            return
        for group in self.of(scenario):
            if group is not reference and group.count:
                arms = reference.samples_ns, group.samples_ns
                blocks = reference.blocks, group.blocks
                group.comparison = compare(*arms, self.design["seed"], blocks)
                group.spread = spread.blocked(*arms, blocks,
                                              self.design["seed"])
        candidates = [g for g in self.variants(scenario) if g.comparison]
        for name, p_of in (
                ("p", lambda g: g.comparison.main.p_value),
                ("two_sample_p", lambda g: g.comparison.two_sample.p_value),
                ("spread_p", lambda g: g.spread.p_value)):
            for group in self.of(scenario):
                if group.comparison:
                    setattr(group, f"shown_{name}", p_of(group))
            for group, p_value in zip(candidates,
                                      holm([*map(p_of, candidates)])):
                setattr(group, f"{name}_holm", p_value)
                setattr(group, f"shown_{name}", p_value)

    def _mark_dropped(self):
        """Finds the block from which on a search left a configuration out."""
        if not self.design["racing"] or not self.run.trials:
            return
        last = max(t["block"] for t in self.run.trials)
        names = racing.dropped(self.design, self.run.trials, last)
        for group in self.groups.values():
            if group.name in names and group.trials:
                group.dropped_block = 1 + max(
                    t["block"] for t in group.trials)

    def _session_starts(self):
        """Numbers of the trials that were the first of a resumed session."""
        starts = []
        for session in machine_facts.sessions(self.run.environment)[1:]:
            begin_ns = session["begin_unix_ns"]
            first = next((t["trial"] for t in self.run.trials
                          if t["begin_unix_ns"] >= begin_ns), None)
            if first is not None and first not in starts:
                starts.append(first)
        return starts

    def _make_notes(self):
        notes = list(self.run.notes)
        if self.strays:
            notes.append(f"{len(self.strays)} trials are of no scenario and "
                         "configuration of the design; they are left out.")
        for group in self.groups.values():
            notes += group_notes(group)
        for scenario in self.scenarios:
            notes += self._scenario_notes(scenario)
        notes += noise.notes(self.looks)
        if self.changes:
            keys = sorted({c["key"] for _, c in self.changes})
            notes.append("The environment changed during the run: "
                         + ", ".join(keys) + ".")
        return notes

    def _scenario_notes(self, scenario):
        groups = self.of(scenario)
        if any(g.count for g in groups) and not self.verified(scenario):
            return [f"The conditions of {scenario} were not all verified: its "
                    "figures are of what was run, not of the scenario."]
        return [f"{scenario}, {g.name}: its conditions were not all met or "
                "verified." for g in groups if g.count and not g.verified]


def group_notes(group: Group) -> list:
    """The warnings that a reader must know before believing the group's
    figures."""
    name = f"{group.scenario}, {group.name}"
    notes = []
    if group.trials and not group.count:
        notes.append(f"{name}: none of {len(group.trials)} trials succeeded.")
    elif group.failed:
        notes.append(f"{name}: {group.failed} of {len(group.trials)} trials "
                     "failed and are not in the figures.")
    unchecked = sum(t["outcome"] == "unchecked" for t in group.sample_trials)
    if unchecked:
        notes.append(f"{name}: the output of {unchecked} trials was not "
                     "validated.")
    ignored = sum(t["exit_status"] not in (0, None)
                  for t in group.sample_trials)
    if ignored:
        notes.append(f"{name}: {ignored} of {group.count} trials ended with "
                     "another status than 0, which was to be ignored; they "
                     "are in the figures.")
    return notes
