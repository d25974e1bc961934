"""Is one arm slower than another by more than a margin, when a third one, which
is the first again, says what no difference looks like?

All three ran in the same blocks, in an order of chance in each: the ratio
within a block is free of what lasts longer than a block, and its sign is even
if there is no difference, whatever the law of the times and however neighbours
depend on each other. Of several runs in a block the shortest counts: with five
of them, a change of 3 % shows in up to five times as many gates on noise that
was recorded, since most of what disturbs a run makes it longer. A change of
the slow runs alone is not seen so; blinkreport shows it. The test is
Wilcoxon's, of signed ranks, and the change is Hodges and Lehmann's estimate;
two one-sided tests at 5 % show that two are the same. blinktrial-commands(7)
says what each verdict means.

ALPHA is small, since a gate is asked for each change: one false alarm in 100
gates is what people bear. A/A is tested at the same level, so that chance
alone spoils no more gates. tests/soak/gate_simulation.py counts both kinds of
error, on noise that was recorded and on worse.
"""

from dataclasses import dataclass

from trials.statistics import comparison
from trials.statistics.descriptive import Interval

ALPHA = 0.01
EQUIVALENCE_CONFIDENCE = 0.90
SLOWER, FASTER, SAME, INCONCLUSIVE = "slower", "faster", "same", "inconclusive"


@dataclass(frozen=True)
class Change:
    """One arm beside another."""
    pairs: int  # blocks that have both
    ratio: float | None  # None without a pair
    interval: Interval | None  # of 95 %
    within: Interval | None  # of 90 %, for equivalence
    p_value: float

    def differs(self, margin_ratio: float, alpha: float) -> bool:
        return (self.ratio is not None and self.p_value <= alpha
                and abs(self.ratio - 1) > margin_ratio)

    def is_within(self, margin_ratio: float) -> bool:
        return (self.within is not None
                and 1 - margin_ratio <= self.within.low
                and self.within.high <= 1 + margin_ratio)


def change(before_ns, after_ns, blocks) -> Change:
    """`blocks`: the block of each time, as (of the first, of the second)."""
    before, after = comparison.whole(before_ns), comparison.whole(after_ns)
    found = comparison.blocked(before, after, blocks)
    return Change(found.pairs, found.ratio, found.ratio_interval,
                  comparison.blocked_ratio_interval(
                      before, after, blocks, EQUIVALENCE_CONFIDENCE),
                  found.p_value)


def level(count: int) -> float:
    """The largest p of a difference, where so many are judged at once."""
    return ALPHA / count


def judge(again: Change, after: Change, margin_ratio: float,
          count: int = 1) -> str:
    """`again`: the first arm beside itself; `count`: how many are judged at
    once."""
    alpha = level(count)
    if again.differs(margin_ratio, alpha):
        return INCONCLUSIVE
    if after.differs(margin_ratio, alpha):
        return SLOWER if after.ratio > 1 else FASTER
    return SAME if after.is_within(margin_ratio) else INCONCLUSIVE
