"""When are the times known well enough to run no more?

`until` of a design asks for intervals that are so narrow: half the width of the
95 % interval of each ratio to the reference, over the ratio, is at most so many
percent; of a reference without any other configuration but its control, that of
its median, as median() has it.
Neither a test nor a verdict decides: to look often until something is
significant finds differences that are not there, but how narrow an interval is
says nothing of where it lies.

Something it does say even so: the narrowest of many intervals is one whose
times happened to differ little. Looking from the tenth block on costs up to
two points of the coverage of 95 %; from block 20 on, and each time a quarter
later, it costs less than a simulation of 300 runs can tell
(tests/soak/coverage.py). The idea is that of Y. Chow and H. Robbins, On the
asymptotic theory of fixed-width sequential confidence intervals for the mean,
Annals of Mathematical Statistics 36 (1965).

That follows from the design and the recorded trials alone, as the verdicts of
racing do: a run that is resumed, or read later, comes to the same end.
"""

import statistics
from typing import Iterator, NamedTuple

from trials.statistics.racing import is_sample

FIRST_LOOK = 20
GROWTH = 1.25
# Why a run has ended.
NARROW, TIME = "narrow", "time"


class Width(NamedTuple):
    """How well a configuration is known."""
    scenario: str
    configuration: str
    percent: float | None  # None: too few samples for an interval

    @property
    def words(self) -> str:
        if self.percent is None:
            return "no interval yet"
        # 100 as 1e+02 is for nobody.
        return f"±{self.percent:.{'2g' if self.percent < 99.5 else '0f'}} %"

    def is_known(self, until: dict) -> bool:
        return self.percent is not None and self.percent <= until["percent"]


def looks() -> Iterator[int]:
    """The blocks before which the intervals are looked at."""
    block = FIRST_LOOK
    while True:
        yield block
        block = int(block * GROWTH)


def widths(design: dict, trials: list[dict]) -> list[Width]:
    """Half the interval of each configuration that still runs, beside the
    reference; that of the reference's median if it is only beside itself."""
    found = []
    last = max((trial["block"] for trial in trials), default=0)
    running = {trial["configuration"] for trial in trials
               if trial["block"] == last}
    roles = {c["name"]: c["role"] for c in design["configurations"]}
    reference = next(name for name in roles if roles[name] == "reference")
    others = [name for name in roles if name in running and name != reference]
    if all(roles[name] == "control" for name in others):
        others = []
    for scenario in design["scenarios"]:
        samples = samples_of(trials, scenario)
        known = samples.get(reference, ([], []))
        for name in others or [reference]:
            interval, middle = _interval(known, samples.get(name, ([], [])),
                                         name == reference)
            found.append(Width(scenario, name, interval and 50 * (
                interval.high - interval.low) / middle))
    return found


def least_known(design: dict, trials: list[dict]) -> Width:
    return max(widths(design, trials), key=lambda width: float("inf")
               if width.percent is None else width.percent)


def samples_of(trials, scenario):
    """name -> (times, their blocks): what counts, of one scenario"""
    samples: dict[str, tuple] = {}
    for trial in trials:
        if trial["scenario"] == scenario and is_sample(trial):
            times_ns, blocks = samples.setdefault(trial["configuration"],
                                                  ([], []))
            times_ns.append(trial["whole_ns"])
            blocks.append(trial["block"])
    return samples


def median(times_ns) -> tuple:
    """The interval of the median of one arm, None of too few times, and the
    median.  No block keeps what neighbours have in common out of it: it is that
    of as many independent times as these are worth."""
    # Half a second to import, and most runs do not ask.
    from trials.statistics import descriptive, effective
    level = effective.worth([times_ns]).level(descriptive.CONFIDENCE)
    return (level and descriptive.median_interval(times_ns, level),
            statistics.median(times_ns))


def _interval(reference, other, is_alone):
    if not reference[0] or not other[0]:
        return None, None
    if is_alone:
        return median(reference[0])
    from trials.statistics import comparison
    found = comparison.blocked(comparison.whole(reference[0]),
                               comparison.whole(other[0]),
                               (reference[1], other[1]))
    return found.ratio_interval, found.ratio


def spent_ns(trials: list[dict]) -> int:
    """The time that all trials took, with all that was done for them."""
    return sum((trial["whole_ns"] or 0) + sum(
        trial["runner"][name] for name in
        ("prepare_ns", "check_ns", "tuning_ns", "noise_ns", "overhead_ns")
        if trial["runner"].get(name)) for trial in trials)


class Precision:
    """The end of one run; asked in the order of blocks."""

    def __init__(self, design: dict):
        self._design = design
        self._until = design.get("until")
        self._looks = looks()
        self._next_look = next(self._looks)
        self._trials_counted = self._spent_ns = 0
        # Words for how well the least known one was, at the last look.
        self.known: str | None = None

    @property
    def left_ns(self) -> float:
        """The time that is left at most, by the blocks that are done."""
        return max(0, self._until["max_seconds"] * 1e9 - self._spent_ns)

    def ends(self, trials: list[dict], block: int) -> str | None:
        """Why no more blocks than those before this one are run, by all trials
        before it: NARROW or TIME; None: there are more."""
        if self._until is None or block == 0:
            return None
        self._spent_ns += spent_ns(trials[self._trials_counted:])
        self._trials_counted = len(trials)
        if block == self._next_look:
            self._next_look = next(self._looks)
            least, wanted = least_known(self._design, trials), self._until
            self.known = f"{least.words}, {wanted['percent']:g} % wanted"
            if least.is_known(wanted):
                return NARROW
        if self._spent_ns >= self._until["max_seconds"] * 1e9:
            return TIME
        return None


def sentence(design: dict, trials: list[dict]) -> str | None:
    """Why the run has ended, if it has, and how well the least known
    configuration is known; None where that was not asked for."""
    until = design.get("until")
    if until is None or not trials:
        return None
    least = least_known(design, trials)
    blocks = max(trial["block"] for trial in trials) + 1
    if least.is_known(until):
        why = f"each is known to {until['percent']:g} % or better"
    elif blocks >= design["trials"]:
        why = f"{design['trials']} are all that are allowed"
    elif spent_ns(trials) >= until["max_seconds"] * 1e9:
        why = f"the time, {until['max_seconds']:g} s, is over"
    else:
        why = "the run has not ended"
    return (f"{blocks} blocks: {why}; the least known is "
            f"{least.configuration} ({least.words}).")
