"""Is one set of times slower than another, by how much, and how surely?

There are two analyses, and each has a test with the estimate and the interval
that belong to it.  The verdict stands on one of them, the other is shown.
blinkreport(1) tells when they are exact.

  blocked     for two arms that ran in the same blocks, which all of a run did.
              p is that of Wilcoxon's signed ranks of the logarithms of the
              ratios in each block (Individual comparisons by ranking methods,
              1945), and the ratio Hodges and Lehmann's (M. Hollander, D. Wolfe,
              E. Chicken, Nonparametric Statistical Methods, 3rd ed., 2014,
              chapter 3).  Superiority is the share of blocks in which this arm
              took longer, ties by half; Cliff's delta is twice that, less 1
              (N. Cliff, Dominance statistics, 1993: his delta within).
              What slows a whole block cancels out.  That the order within each
              is random makes the ratios symmetric around 1 when there is no
              difference: the test needs no other law of the times.
  two-sample  for two arms that have no blocks in common, as two runs have none:
              whatever changes with time is in the spread of each.  p is that
              of Mann and Whitney's U, the shift Hodges and Lehmann's
              (Hollander, chapter 4), and the ratio that of medians, with a
              bootstrap percentile interval: BCa's acceleration has no meaning
              for a median.  Superiority is the probability that a trial of this
              one takes longer (A. Vargha, H. Delaney, 2000: A12).

The verdict does not choose between them by what they find: where there are
blocks it is the blocked test's.  blinkreport(1) says what a drift hides from
either, and which blocks count.  Several samples of one arm in a block, which a
design with repeats has, count as one, the shortest: what disturbs a run makes
it longer.

Times are whole nanoseconds, and all estimates are of sets as they are: nothing
is left out, nothing is taken to be normal.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from trials.statistics.descriptive import BATCH_NUMBERS, CONFIDENCE, Interval

ALPHA = 0.05
# Up to here the law of U is counted out, beyond it is near to normal.
EXACT_COUNT = 20
# The same for signed ranks; scipy's own border.
EXACT_PAIRS = 50
# Logarithms of ratios are counted in these, as whole numbers; so fine that
# rounding makes no ties of times in ns, and the sum of two fits 64 bits.
LOG_UNIT = 1e-15
BLOCKED, TWO_SAMPLE = "blocked", "two-sample"
RESAMPLES = 4999
# Verdicts beside slower and faster.  That no difference was shown is not that
# there is none: only report/changes.py shows that two are the same.
NOT_SHOWN, TOO_FEW = "no difference shown", "too few trials"


@dataclass(frozen=True)
class Analysis:
    """The figures that both analyses have.  They are None when there is no
    sample."""

    p_value: float
    method: str  # exact or asymptotic
    least_p_value: float  # that so few samples can give at all
    ratio: float | None
    ratio_interval: Interval | None  # also None when there are too few
    superiority: float | None

    @property
    def cliffs_delta(self) -> float | None:
        return None if self.superiority is None else 2 * self.superiority - 1


@dataclass(frozen=True)
class Blocked(Analysis):
    pairs: int  # blocks in which both arms have a sample
    longer_count: int  # of them, those in which this one took longer

    @property
    def longer(self) -> bool:
        """The ranks' side, which their estimate is on, not the signs'."""
        return self.ratio > 1


@dataclass(frozen=True)
class TwoSample(Analysis):
    u: float  # pairs in which this one took longer, ties by half
    shift_ns: float
    shift_interval_ns: Interval | None

    @property
    def longer(self) -> bool:
        return self.superiority > 0.5


@dataclass(frozen=True)
class Comparison:
    n_reference: int
    n: int
    blocked: Blocked | None  # None: the arms did not run in blocks
    two_sample: TwoSample

    @property
    def name(self) -> str:
        """The name of the analysis that the verdict stands on."""
        return BLOCKED if self.blocked else TWO_SAMPLE

    @property
    def main(self) -> Analysis:
        """The analysis that the verdict stands on."""
        return self.blocked or self.two_sample

    def verdict(self, p_holm=None, alpha=ALPHA) -> str:
        """slower, faster, NOT_SHOWN; or TOO_FEW to tell anything.
        Give the corrected p when this is one of several comparisons."""
        main = self.main
        if main.least_p_value > alpha:
            return TOO_FEW
        if (main.p_value if p_holm is None else p_holm) > alpha:
            return NOT_SHOWN
        return "slower" if main.longer else "faster"


def compare(reference_ns, samples_ns, seed: int, blocks=None) -> Comparison:
    """`blocks`: the block of each sample, as (of the reference's, of these);
    without it the verdict stands on the two-sample test."""
    reference, samples = whole(reference_ns), whole(samples_ns)
    return Comparison(
        n_reference=len(reference), n=len(samples),
        blocked=blocked(reference, samples, blocks) if blocks else None,
        two_sample=two_sample(reference, samples, seed))


def two_sample(reference, samples, seed: int) -> TwoSample:
    u, p_value, method = u_test(reference, samples)
    shift_ns, shift_interval_ns = shift(reference, samples)
    return TwoSample(
        p_value=p_value, method=method,
        least_p_value=least_p_value(len(reference), len(samples)),
        ratio=float(np.median(samples) / np.median(reference)),
        ratio_interval=ratio_interval(reference, samples, seed),
        superiority=u / (len(reference) * len(samples)),
        u=u, shift_ns=shift_ns, shift_interval_ns=shift_interval_ns)


def blocked(reference, samples, blocks) -> Blocked:
    """See compare(); one without figures if no block has both."""
    logs = _log_ratios(reference, samples, blocks)
    pairs = len(logs)
    if not pairs:
        return Blocked(1.0, "exact", 1.0, None, None, None, 0, 0)
    p_value, method = signed_rank_test(logs)
    middle, interval = paired_shift(logs)
    return Blocked(
        p_value=p_value, method=method, least_p_value=min(1.0, 2 / 2**pairs),
        ratio=_ratio_of(middle),
        ratio_interval=_ratios_of(interval),
        superiority=float(np.mean((np.sign(logs) + 1) / 2)), pairs=pairs,
        longer_count=int(np.count_nonzero(logs > 0)))


def blocked_ratio_interval(reference, samples, blocks,
                           confidence) -> Interval | None:
    """The interval of blocked() for another confidence."""
    logs = _log_ratios(reference, samples, blocks)
    return _ratios_of(paired_shift(logs, confidence)[1]) if len(logs) else None


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


def least_p_value(n_reference, n) -> float:
    """The least p value that two sets of these sizes can have: that of sets
    that do not overlap."""
    return min(1.0, 2 / math.comb(n_reference + n, n))


def u_test(reference, samples):
    """U of `samples`, the two-sided p value, and how it was computed."""
    together = np.concatenate((reference, samples))
    few = max(len(reference), len(samples)) <= EXACT_COUNT
    method = ("exact" if few and len(np.unique(together)) == len(together)
              else "asymptotic")
    if np.ptp(together) == 0:
        # Samples without any variance have no normal law to ask.
        return len(reference) * len(samples) / 2, 1.0, method
    u, p_value = stats.mannwhitneyu(samples, reference, method=method)
    return float(u), float(p_value), method


def ratio_interval(reference, samples, seed,
                   confidence=CONFIDENCE) -> Interval | None:
    """The interval of the ratio of medians, by resampling each arm; None when
    an arm has one sample, whose resamples are all alike."""
    if min(len(reference), len(samples)) < 2:
        return None
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


def signed_rank_test(differences):
    """The two-sided p value, and how it was computed.  Differences of 0 say
    nothing and are left out, as Wilcoxon did; equal ones share their ranks."""
    moved = differences[differences != 0]
    if len(moved) == 0:
        return 1.0, "exact"
    if len(moved) > EXACT_PAIRS:
        return float(stats.wilcoxon(moved, method="approx",
                                    correction=True).pvalue), "asymptotic"
    # Twice the ranks: a shared one may end in a half.
    ranks = np.rint(2 * stats.rankdata(np.abs(moved))).astype(int)
    counts = subset_sum_counts(ranks)
    above = int(ranks[moved > 0].sum())
    fewer = min(above, int(ranks.sum()) - above)
    return min(1.0, 2 * int(counts[:fewer + 1].sum()) / 2**len(moved)), "exact"


# --- Hodges and Lehmann -------------------------------------------------------
#
# Of 10,000 trials an arm there are 100 million differences.  They are never
# made: that of a rank is found by halving, since it is easy to count how many
# lie below a limit, and times are whole numbers.


def shift(reference_ns, samples_ns, confidence=CONFIDENCE):
    """The shift in ns, and its Interval or None."""
    minus, plus = np.sort(-whole(reference_ns)), np.sort(whole(samples_ns))

    def count(limit):
        return int(np.searchsorted(plus, limit - minus, side="right").sum())

    def ranked(rank):
        return _ranked(count, rank, minus[0] + plus[0], minus[-1] + plus[-1])

    return _estimate(ranked, len(minus) * len(plus),
                     _u_rank(len(minus), len(plus), confidence), confidence)


def shift_ratio(reference_ns, samples_ns, confidence=CONFIDENCE):
    """The same of the logarithms, as a ratio and its Interval or None."""
    middle, interval = shift(np.log(reference_ns) / LOG_UNIT,
                             np.log(samples_ns) / LOG_UNIT, confidence)
    return _ratio_of(middle), _ratios_of(interval)


def paired_shift(differences_ns, confidence=CONFIDENCE):
    """The same of one set of differences: by the means of all pairs, each
    with itself too (Walsh averages)."""
    differences = np.sort(whole(differences_ns))
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
        return _exact_rank(subset_sum_counts(range(1, n + 1)), confidence)
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
    """The numbers of orders of all samples that give U = 0, 1, ...: the
    coefficients of the product of (1 - q^(n + i)) / (1 - q^i), i from 1 to
    n_reference."""
    counts = np.zeros(n_reference * n + 1, dtype=np.int64)
    counts[0] = 1
    for i in range(1, n_reference + 1):
        counts[n + i:] -= counts[:max(0, len(counts) - n - i)].copy()
        for begin in range(i):
            counts[begin::i] = np.cumsum(counts[begin::i])
    return counts


def subset_sum_counts(numbers):
    """The numbers of subsets of the numbers that have the sum 0, 1, ..."""
    counts = np.zeros(sum(numbers) + 1, dtype=np.int64)
    counts[0] = 1
    for number in numbers:
        counts[number:] += counts[:-number].copy()
    return counts


# --- the rest -----------------------------------------------------------------


def whole(samples_ns):
    return np.rint(samples_ns).astype(np.int64)


def _log_ratios(reference, samples, blocks):
    """The logarithm of the ratio in each block that has both, in units of
    LOG_UNIT."""
    below, above = (by_block(times.tolist(), numbers) for times, numbers
                    in zip((reference, samples), blocks))
    return whole([math.log(above[block] / below[block]) / LOG_UNIT
                  for block in above if block in below])


def by_block(times, blocks):
    """One time of each block: the shortest, if there are several."""
    found = {}
    for block, time in zip(blocks, times):
        found[block] = min(time, found.get(block, time))
    return found


def _ratio_of(log):
    return math.exp(log * LOG_UNIT)


def _ratios_of(interval):
    return interval and Interval(_ratio_of(interval.low),
                                 _ratio_of(interval.high), interval.confidence)
