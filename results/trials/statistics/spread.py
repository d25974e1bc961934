"""Do the times of one arm scatter more than those of another, by how much, and
how surely?  An arm may be no slower, and yet never be relied upon.

The spread of an arm is the mean deviation of its times from their median, as a
share of the median: so one that is slower by a factor, in all that it does, has
no other spread.  The mean is taken, and not the median deviation, since what
makes a command unreliable may be one run in twenty that is stalled.

  blocked      for two arms that ran in the same blocks.  Which of a block's two
               deviations is whose is chance, if there is no difference.
                 p      of the sum of differences, when the two change places in
                        each block at random (R. Fisher, The Design of
                        Experiments, 1935, section 21): two-sided
                 ratio  of the spreads; its interval is that of the ratios in
                        random subsets of the blocks, which belongs to the test
                        (J. Hartigan, Using subsample values as typical values,
                        1969)
  two-sample   for two runs.  The same, when their deviations are dealt out to
               them at random; the ratio's interval is that of what comes into a
               run to what leaves it.  And Student's t of the logarithm of the
               ratio, for as many trials as times and deviations are worth (see
               effective.py).  The larger p counts, and the wider interval: the
               first test knows nothing of dependent trials, the second is wrong
               where a run has stalls by chance.

All are of M. Brown and A. Forsythe's deviations (Robust tests for the equality
of variances, 1974).  A small error of the median changes their mean by nothing,
but ranks and roots of them by much: those raise up to 10 false alarms in 100 of
skewed times, by tests/soak/spread_simulation.py, which has tried them.  With
repeats, the mean deviation of a block's runs is that of the block.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from trials.statistics import effective
from trials.statistics.comparison import ALPHA, NOT_SHOWN, RESAMPLES, TOO_FEW
from trials.statistics.descriptive import (BATCH_NUMBERS, CONFIDENCE, Interval,
                                           deviations)

WIDER, NARROWER = "wider", "narrower"
# Fewer deviations know their own variance too badly.
LEAST_COUNT = 10


@dataclass(frozen=True)
class Spread:
    """One arm beside another."""

    count: int  # blocks that have both, or trials of the run that has fewer
    p_value: float = 1.0
    ratio: float | None = None  # None: the reference has no spread
    interval: Interval | None = None  # None, too, if there are too few

    def verdict(self, p_holm=None) -> str:
        """wider, narrower, NOT_SHOWN or TOO_FEW; see comparison.py."""
        if self.count < LEAST_COUNT:
            return TOO_FEW
        if (self.p_value if p_holm is None else p_holm) > ALPHA:
            return NOT_SHOWN
        return NARROWER if self.ratio is not None and self.ratio < 1 else WIDER


def blocked(reference_ns, samples_ns, blocks, seed: int) -> Spread:
    """`blocks`: the block of each time, as (of the reference's, of these)."""
    shared = np.intersect1d(*blocks)
    if len(shared) < 2:
        return Spread(len(shared))
    both = np.stack([_by_block(np.asarray(times_ns, dtype=float), numbers,
                               shared)
                     for times_ns, numbers in zip((reference_ns, samples_ns),
                                                  blocks)], axis=1)
    return _judged(len(shared), both.mean(axis=0), _resampled(
        lambda generator, size: generator.integers(
            0, 2, (size, len(both)), dtype=bool) @ both, len(both), seed))


def two_sample(before_ns, after_ns, seed: int, sessions=None) -> Spread:
    """`sessions`: those of the times, as (of these before, after)."""
    samples = before_ns, after_ns
    runs = [deviations(run) for run in samples if len(run) > 1]
    count = min(map(len, samples))
    means = [run.mean() for run in runs]
    error = len(runs) == 2 and all(means) and np.sqrt(sum(
        run.var(ddof=1) / len(run) / mean**2
        for run, mean in zip(runs, means)))
    if not error:
        return Spread(count)
    before, after = runs

    def dealt(generator, size):
        """What comes into the second run, and what leaves it."""
        places = generator.random((size, len(before) + len(after)),
                                  dtype=np.float32).argsort(axis=1)
        taken = places < len(after)
        return np.stack((taken[:, :len(before)] @ before,
                         ~taken[:, len(before):] @ after), axis=1)

    found = _judged(count, means, _resampled(
        dealt, len(before) + len(after), seed))
    worth = max((effective.worth(each, sessions) for each in (samples, runs)),
                key=lambda each: each.factor)
    error *= np.sqrt(worth.factor)
    reach = np.exp(error * stats.t.ppf((1 + CONFIDENCE) / 2, worth.degrees))
    return Spread(
        count, max(found.p_value, float(2 * stats.t.sf(
            abs(np.log(found.ratio)) / error, worth.degrees))), found.ratio,
        found.interval and Interval(
            min(found.interval.low, float(found.ratio / reach)),
            max(found.interval.high, float(found.ratio * reach)), CONFIDENCE))


def _by_block(times_ns, numbers, wanted):
    """The mean deviation in each of the wanted blocks."""
    kept = np.isin(numbers, wanted)
    place = np.searchsorted(wanted, np.asarray(numbers)[kept])
    return (np.bincount(place, deviations(times_ns[kept]))
            / np.bincount(place))


def _resampled(sums, count, seed):
    """The `sums` of RESAMPLES random choices of so many deviations."""
    generator = np.random.default_rng(seed)
    size = max(1, BATCH_NUMBERS // count)
    return np.concatenate([sums(generator, min(size, RESAMPLES - begin))
                           for begin in range(0, RESAMPLES, size)])


def _judged(count, means, sums) -> Spread:
    """`means`: of the deviations of both arms; `sums`: of those that change
    places."""
    below, above = sums.T
    # What is equal may differ by what rounding adds.
    rest = 1e-9 * sums.max()
    fewest = min(np.count_nonzero(above - below <= rest),
                 np.count_nonzero(above - below >= -rest))
    p_value = min(1.0, 2 * (1 + int(fewest)) / (1 + len(sums)))
    if not means[0]:
        return Spread(count, p_value)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.sort((above / below)[sums.any(axis=1)])
    outside = int((1 - CONFIDENCE) / 2 * len(ratios))
    low, high = ratios[[outside, -1 - outside]]
    return Spread(
        count, p_value, float(means[1] / means[0]),
        Interval(float(low), float(high), CONFIDENCE)
        if count >= LEAST_COUNT and np.isfinite(high) else None)
