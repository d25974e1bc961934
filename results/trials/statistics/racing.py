"""Which variants have clearly lost, and need not be run any longer.

After the first blocks, and then every few blocks, each variant's times are held
against those of the best configuration of the same scenario.  It has lost there
if its times are stochastically greater (Mann and Whitney, one-sided, Holm's
adjustment over all that are judged at once), and its median is worse by more
than a margin, so that a difference too small to matter drops nothing.
A variant that has lost in every scenario is left out of all later blocks: what
remains are still complete blocks.  The reference and the control stay.

The scheme is that of F-Race (M. Birattari, T. Stuetzle, L. Paquete and K.
Varrentrapp: A racing algorithm for configuring metaheuristics.  GECCO 2002,
11-18).  F-Race tests by ranks within blocks (Friedman) and has no margin.

This is a search, not a measurement.  The best one is chosen by the same times,
and they are looked at many times over, so alpha is not the chance of dropping a
good variant in a whole run; the margin is what protects it.  What is dropped
has fewer trials, and a report says so.

The verdicts follow from the design and the recorded trials alone: a run that is
resumed, or read later, comes to the same ones.
"""

import statistics

FEWEST_SAMPLES = 2
COUNTED = ("ok", "unchecked")


def is_sample(trial: dict) -> bool:
    return trial["outcome"] in COUNTED and trial["whole_ns"] is not None


def decides(racing: dict | None, block: int) -> bool:
    """Are the variants judged just before this block?"""
    if racing is None or block < racing["first_block"]:
        return False
    return (block - racing["first_block"]) % racing["every"] == 0


def losers(racing: dict, samples: dict[str, list[int]],
           judged: set[str]) -> set[str]:
    """The variants in `judged` that have lost to the best of `samples`, which
    are the times of one scenario."""
    # Half a second to import, and most runs do not race.
    from scipy.stats import mannwhitneyu
    from trials.statistics.comparison import holm
    medians = {name: statistics.median(times)
               for name, times in samples.items()
               if len(times) >= FEWEST_SAMPLES}
    if not medians:
        return set()
    best = min(medians, key=medians.__getitem__)
    rivals = [name for name in medians if name in judged and name != best]
    p_values = holm([
        float(mannwhitneyu(samples[name], samples[best],
                           alternative="greater").pvalue)
        for name in rivals])
    return {name for name, p_value in zip(rivals, p_values)
            if p_value < racing["alpha"]
            and medians[name] > medians[best] * racing["margin_ratio"]}


class Race:
    """The verdicts of one run, each of them reached once."""

    def __init__(self, design: dict):
        self._racing = design["racing"]
        self._scenarios = design["scenarios"]
        running = [c for c in design["configurations"] if c["skipped"] is None]
        self._names = [c["name"] for c in running]
        self._variants = {c["name"] for c in running if c["role"] == "variant"}
        self._dropped: set[str] = set()
        self._judged_until = 0

    def dropped(self, trials: list[dict], block: int) -> set[str]:
        """Names of the configurations that are out before `block`, by all
        trials before it.  The caller asks in the order of blocks.
        """
        for at in range(self._judged_until + 1, block + 1):
            if decides(self._racing, at):
                self._judge([t for t in trials if t["block"] < at])
        self._judged_until = max(self._judged_until, block)
        return set(self._dropped)

    def _judge(self, trials):
        # Configurations that are out are not compared: their times are older.
        samples = {(scenario, name): [] for scenario in self._scenarios
                   for name in self._names if name not in self._dropped}
        for trial in trials:
            pair = trial["scenario"], trial["configuration"]
            if pair in samples and is_sample(trial):
                samples[pair].append(trial["whole_ns"])
        out = set(self._variants)
        for scenario in self._scenarios:
            out &= losers(self._racing,
                          {name: times for (where, name), times
                           in samples.items() if where == scenario},
                          self._variants)
        self._dropped |= out


def dropped(design: dict, trials: list[dict], block: int) -> set[str]:
    """Names of the configurations that are out before this block."""
    return Race(design).dropped(trials, block)
