"""Is one set of times slower than another, by how much, and how surely?

THE test is Mann and Whitney's U, two-sided: exact up to 20 samples a side
without ties, else normal with the correction for ties and for continuity.
Around it stand sizes, since significant is not large:

  shift     Hodges and Lehmann: the median of all differences (times of this
            one less times of the reference), with the interval that belongs to
            the U test (M. Hollander, D. Wolfe, E. Chicken, Nonparametric
            Statistical Methods, 3rd ed., 2014, chapter 4)
  ratio     of the medians, with a bootstrap percentile interval: BCa's
            acceleration has no meaning for a median
  superiority   the probability that a trial of this one takes longer than one
            of the reference, ties by half (A. Vargha, H. Delaney, 2000: A12);
            Cliff's delta is twice that, less 1
  blocked   when both arms ran in the same blocks: Wilcoxon's signed ranks of
            the differences within blocks, which drift does not touch, and the
            Hodges-Lehmann estimate that belongs to it

Times are whole nanoseconds, and all estimates are differences of sets as they
are: nothing is left out, nothing is taken to be normal.
"""

import math
from dataclasses import dataclass
from typing import Optional

import numpy as np
from scipy import stats

from trials.statistics import BATCH_NUMBERS, CONFIDENCE, Interval

ALPHA = 0.05
# Up to here the law of U is counted out, beyond it is near to normal.
EXACT_COUNT = 20
# The same for signed ranks; scipy's own border.
EXACT_PAIRS = 50
LEAST_PAIRS = 6
# And these for the normal law.
LEAST_PAIRS_NORMAL = 10
RESAMPLES = 4999
# Cliff's delta below which an effect is called so: J. Romano and others,
# Appropriate statistics for ordinal level data, 2006.
EFFECTS = ((0.147, "negligible"), (0.33, "small"), (0.474, "medium"))


@dataclass(frozen=True)
class Blocked:
    pairs: int
    p_value: float
    shift_ns: float
    shift_interval_ns: Optional[Interval]


@dataclass(frozen=True)
class Comparison:
    n_reference: int
    n: int
    u: float  # pairs in which this one took longer, ties by half
    p_value: float
    method: str  # exact or asymptotic
    least_p_value: float  # that so few trials can give at all
    shift_ns: float
    shift_interval_ns: Optional[Interval]  # null when there are too few trials
    ratio: float
    ratio_interval: Interval
    superiority: float
    cliffs_delta: float
    effect: str  # negligible, small, medium, large
    blocked: Optional[Blocked]

    def verdict(self, p_holm=None, alpha=ALPHA) -> str:
        """slower, faster, same; or unknown: too few trials to tell anything.
        Give the corrected p when this is one of several comparisons."""
        if self.least_p_value > alpha:
            return "unknown"
        if (self.p_value if p_holm is None else p_holm) > alpha:
            return "same"
        return "slower" if self.superiority > 0.5 else "faster"


def compare(reference_ns, samples_ns, seed: int, blocks=None) -> Comparison:
    """`blocks`: the block of each sample, as (of the reference's, of these);
    without it there is no blocked estimate."""
    reference, samples = _whole(reference_ns), _whole(samples_ns)
    u, p_value, method = u_test(reference, samples)
    superiority = u / (len(reference) * len(samples))
    shift_ns, shift_interval_ns = shift(reference, samples)
    return Comparison(
        n_reference=len(reference), n=len(samples),
        u=u, p_value=p_value, method=method,
        least_p_value=least_p_value(len(reference), len(samples)),
        shift_ns=shift_ns, shift_interval_ns=shift_interval_ns,
        ratio=float(np.median(samples) / np.median(reference)),
        ratio_interval=ratio_interval(reference, samples, seed),
        superiority=superiority, cliffs_delta=2 * superiority - 1,
        effect=effect(2 * superiority - 1),
        blocked=_blocked(reference, samples, blocks) if blocks else None)


def holm(p_values) -> list:
    """S. Holm, 1979: p values so corrected that the chance of any false alarm
    among all of them stays below alpha."""
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(
        1.0, np.maximum.accumulate(p_values[order] * factors))
    return corrected.tolist()


def effect(cliffs_delta) -> str:
    for limit, word in EFFECTS:
        if abs(cliffs_delta) < limit:
            return word
    return "large"


def least_p_value(n_reference, n) -> float:
    """Of two sets that do not overlap: the best that so many can do."""
    return min(1.0, 2 / math.comb(n_reference + n, n))


def u_test(reference, samples):
    """U of `samples`, the two-sided p value, and how it was computed."""
    together = np.concatenate((reference, samples))
    few = max(len(reference), len(samples)) <= EXACT_COUNT
    method = ("exact" if few and len(np.unique(together)) == len(together)
              else "asymptotic")
    if np.ptp(together) == 0:
        # Without any variance there is no normal law to ask.
        return len(reference) * len(samples) / 2, 1.0, method
    u, p_value = stats.mannwhitneyu(samples, reference, method=method)
    return float(u), float(p_value), method


def ratio_interval(reference, samples, seed,
                   confidence=CONFIDENCE) -> Interval:
    """Of the ratio of medians, by resampling each arm."""
    if np.ptp(reference) == 0 and np.ptp(samples) == 0:
        ratio = float(samples[0] / reference[0])
        return Interval(ratio, ratio, confidence)

    def ratio_of_medians(above, below, axis):
        return np.median(above, axis=axis) / np.median(below, axis=axis)

    longest = max(len(reference), len(samples))
    found = stats.bootstrap(
        (samples, reference), ratio_of_medians, method="percentile",
        confidence_level=confidence, n_resamples=RESAMPLES,
        batch=max(1, BATCH_NUMBERS // longest),
        random_state=np.random.default_rng(seed)).confidence_interval
    return Interval(float(found.low), float(found.high), confidence)


# --- Hodges and Lehmann -------------------------------------------------------
#
# Of 10,000 trials an arm there are 100 million differences.  They are never
# made: that of a rank is found by halving, since it is easy to count how many
# lie below a limit, and times are whole numbers.


def shift(reference_ns, samples_ns, confidence=CONFIDENCE):
    """The shift in ns, and its Interval or None."""
    minus, plus = np.sort(-_whole(reference_ns)), np.sort(_whole(samples_ns))

    def count(limit):
        return int(np.searchsorted(plus, limit - minus, side="right").sum())

    def ranked(rank):
        return _ranked(count, rank, minus[0] + plus[0], minus[-1] + plus[-1])

    return _estimate(ranked, len(minus) * len(plus),
                     _u_rank(len(minus), len(plus), confidence), confidence)


def paired_shift(differences_ns, confidence=CONFIDENCE):
    """The same of one set of differences: by the means of all pairs, each
    with itself too (Walsh averages)."""
    differences = np.sort(_whole(differences_ns))
    n = len(differences)

    def count(limit):
        # Sums of two, in either order; those with itself once more.
        both = np.searchsorted(differences, limit - differences, side="right")
        return int(both.sum() + np.count_nonzero(2 * differences <= limit)) // 2

    def ranked(rank):
        return _ranked(count, rank, 2 * differences[0],
                       2 * differences[-1]) / 2

    return _estimate(ranked, n * (n + 1) // 2,
                     _signed_rank(n, confidence), confidence)


def _ranked(count, rank, low, high):
    """The number of this rank, from 1, of those that `count` counts."""
    low, high = int(low), int(high)
    while low < high:
        middle = (low + high) // 2
        if count(middle) >= rank:
            high = middle
        else:
            low = middle + 1
    return low


def _estimate(ranked, total, rank, confidence):
    """Their median, and those of this rank from either end."""
    median = (ranked((total + 1) // 2) + ranked(total // 2 + 1)) / 2
    if rank < 1:
        return median, None
    return median, Interval(float(ranked(rank)),
                            float(ranked(total + 1 - rank)), confidence)


def _u_rank(n_reference, n, confidence):
    if max(n_reference, n) <= EXACT_COUNT:
        return _exact_rank(u_counts(n_reference, n), confidence)
    pairs = n_reference * n
    return _normal_rank(pairs / 2, pairs * (n_reference + n + 1) / 12,
                        confidence)


def _signed_rank(n, confidence):
    if n <= EXACT_PAIRS:
        return _exact_rank(signed_rank_counts(n), confidence)
    return _normal_rank(n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24,
                        confidence)


def _exact_rank(counts, confidence):
    """The greatest k with P(statistic < k) at most half of what is left."""
    below = np.cumsum(counts) / np.sum(counts)
    return int(np.searchsorted(below, (1 - confidence) / 2, side="right"))


def _normal_rank(mean, variance, confidence):
    z = stats.norm.ppf((1 + confidence) / 2)
    return int(np.floor(mean - z * np.sqrt(variance)))


def u_counts(n_reference, n):
    """How many orders of all samples give U = 0, 1, ...: the coefficients of
    the product of (1 - q^(n + i)) / (1 - q^i), i from 1 to n_reference."""
    counts = np.zeros(n_reference * n + 1, dtype=np.int64)
    counts[0] = 1
    for i in range(1, n_reference + 1):
        counts[n + i:] -= counts[:max(0, len(counts) - n - i)].copy()
        for begin in range(i):
            counts[begin::i] = np.cumsum(counts[begin::i])
    return counts


def signed_rank_counts(n):
    """How many subsets of 1..n have the sum 0, 1, ..."""
    counts = np.ones(1, dtype=np.int64)
    for i in range(1, n + 1):
        counts = np.pad(counts, (0, i)) + np.pad(counts, (i, 0))
    return counts


# --- the rest -----------------------------------------------------------------


def _whole(samples_ns):
    return np.rint(samples_ns).astype(np.int64)


def _blocked(reference, samples, blocks):
    """None when too few blocks have both."""
    by_block = dict(zip(blocks[0], reference))
    differences = np.array([time - by_block[block]
                            for block, time in zip(blocks[1], samples)
                            if block in by_block], dtype=np.int64)
    moved = np.count_nonzero(differences)
    exact = (len(differences) <= EXACT_PAIRS
             and len(np.unique(np.abs(differences))) == moved
             == len(differences))
    if len(differences) < LEAST_PAIRS or (
            not exact and 0 < moved < LEAST_PAIRS_NORMAL):
        return None
    p_value = 1.0
    if moved:
        p_value = float(stats.wilcoxon(
            differences, method="exact" if exact else "approx",
            correction=True).pvalue)
    return Blocked(len(differences), p_value, *paired_shift(differences))
