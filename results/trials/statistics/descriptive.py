"""What a set of times says by itself: its summary, and what should make a
reader careful.

Times are nanoseconds, in the order of the run.  No time is ever left out:
outliers are counted and named, and stay in every figure.

Percentiles are by linear interpolation between order statistics (number 7 of
Hyndman and Fan, the default of numpy and R).  The interval of the median is
the exact one of order statistics: it holds for any distribution, and its
coverage, which can't be just 95 %, is given.  The interval of the mean is a
BCa bootstrap; the same seed gives the same interval.  Of times of which one in
twenty is twice as long as the others, which is usual, it covers the mean in
45 % of all runs of 10 trials, 84 % of 40, and 93 % of 200: so there is none of
fewer than 200.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import stats

from trials.statistics import sequence

CONFIDENCE = 0.95
RESAMPLES = 9999
LEAST_MEAN_COUNT = 200
# Fewer samples have no such percentile of their own: it is next to the maximum.
LEAST_COUNTS = {"95": 20, "99": 100}
PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9)
# B. Iglewicz and D. Hoaglin, How to Detect and Handle Outliers (1993).
MODIFIED_Z_LIMIT = 3.5
# Sets of resamples are made so many numbers at a time, to bound memory.
BATCH_NUMBERS = 1 << 22


@dataclass(frozen=True)
class Interval:
    low: float
    high: float
    # The share that the interval covers; for the bootstrap, what it aims at.
    confidence: float


@dataclass(frozen=True)
class Summary:
    n: int
    min_ns: float
    max_ns: float
    mean_ns: float
    sd_ns: float | None  # n - 1; null for one sample
    median_ns: float
    mad_ns: float  # median absolute deviation from the median, not scaled
    deviation_ratio: float  # mean absolute deviation from the median / median
    iqr_ns: float
    variation_ratio: float | None  # sd / mean
    percentiles_ns: dict  # {"1": …, "99.9": …}
    median_interval_ns: Interval | None  # null below 6 samples
    mean_interval_ns: Interval | None  # null below LEAST_MEAN_COUNT

    def shown_percentile_ns(self, percent: str) -> float | None:
        """The percentile, or None if there are too few samples to tell it from
        the maximum."""
        if self.n < LEAST_COUNTS[percent]:
            return None
        return self.percentiles_ns[percent]


@dataclass(frozen=True)
class Flags:
    """Indexes are those of the samples; parts are null when there are too few
    samples to ask."""

    outliers: list  # modified Z above 3.5
    drift: sequence.Drift | None
    step: sequence.Step | None
    # The neighbours in what the drift or the step leaves, if one was found: in
    # a run that drifts all neighbours resemble each other.
    neighbours: sequence.Neighbours | None
    words: list  # those that are raised: drift step autocorrelated


def summarise(samples_ns, seed: int) -> Summary | None:
    """The summary, or None when there is no sample."""
    samples = np.asarray(samples_ns, dtype=float)
    n = len(samples)
    if n == 0:
        return None
    mean, median = float(samples.mean()), float(np.median(samples))
    sd = float(samples.std(ddof=1)) if n > 1 else None
    percentiles = {f"{percent:g}": float(np.percentile(samples, percent))
                   for percent in PERCENTS}
    return Summary(
        n=n, min_ns=float(samples.min()), max_ns=float(samples.max()),
        mean_ns=mean, sd_ns=sd, median_ns=median,
        mad_ns=float(stats.median_abs_deviation(samples)),
        deviation_ratio=float(deviations(samples).mean()),
        iqr_ns=percentiles["75"] - percentiles["25"],
        variation_ratio=sd / mean if sd is not None and mean > 0 else None,
        percentiles_ns=percentiles,
        median_interval_ns=median_interval(samples),
        mean_interval_ns=(mean_interval(samples, seed)
                          if n >= LEAST_MEAN_COUNT else None))


def deviations(samples_ns):
    """The distance of each from their median, as a share of it."""
    median = np.median(samples_ns)
    return np.abs(np.asarray(samples_ns) - median) / median


def median_interval(samples_ns, confidence=CONFIDENCE) -> Interval | None:
    """The k-th from below and from above, for the greatest k that covers
    enough: fewer than k samples lie below the median with the probability of
    the binomial law (1/2).  None when not even the extremes do."""
    ordered = np.sort(samples_ns)
    n = len(ordered)
    k = int(stats.binom.ppf((1 - confidence) / 2, n, 0.5))
    if k < 1:
        return None
    coverage = 1 - 2 * float(stats.binom.cdf(k - 1, n, 0.5))
    return Interval(float(ordered[k - 1]), float(ordered[n - k]), coverage)


def mean_interval(samples_ns, seed: int, confidence=CONFIDENCE,
                  resamples=RESAMPLES) -> Interval | None:
    n = len(samples_ns)
    if n < 2:
        return None
    low, high = float(np.min(samples_ns)), float(np.max(samples_ns))
    if low < high:
        with warnings.catch_warnings():
            # The result says when an interval can't be computed.
            warnings.simplefilter("ignore")
            found = stats.bootstrap(
                (np.asarray(samples_ns, dtype=float),), np.mean,
                confidence_level=confidence, n_resamples=resamples,
                batch=max(1, BATCH_NUMBERS // n), method="BCa",
                random_state=np.random.default_rng(seed)).confidence_interval
        low, high = float(found.low), float(found.high)
    if not np.isfinite([low, high]).all():
        return None
    return Interval(low, high, confidence)


def modified_z(samples_ns):
    """The distances from the median, in units that are a standard deviation for
    normal samples.  When half of the samples are equal their MAD is 0: then by
    the mean deviation, as Iglewicz and Hoaglin advise."""
    deviation = np.asarray(samples_ns, dtype=float) - np.median(samples_ns)
    scale = np.median(np.abs(deviation)) / 0.6745
    if scale == 0:
        scale = np.abs(deviation).mean() * 1.253314
    return deviation / scale if scale > 0 else deviation


def flags(samples_ns) -> Flags:
    samples = np.asarray(samples_ns, dtype=float)
    outliers = []
    if len(samples):
        outliers = np.flatnonzero(
            np.abs(modified_z(samples)) > MODIFIED_Z_LIMIT).tolist()
    if len(samples) < sequence.LEAST_COUNT or np.ptp(samples) == 0:
        return Flags(outliers, None, None, None, [])
    drift, step = sequence.drift(samples), sequence.step(samples)
    words, left = [], samples
    if drift.found or step.found:
        word, left = sequence.explain(samples, drift, step)
        words.append(word)
    neighbours = sequence.neighbours(left)
    if neighbours.found:
        words.append("autocorrelated")
    return Flags(outliers, drift, step, neighbours, words)
