"""Does the order of the times mean something?  Drift, steps, neighbours.

Trials are to be independent.  A machine that gets warm, or another load that
begins, makes the times drift, jump, or resemble their neighbours; intervals and
tests then promise too much.

Everything here rests on ranks or medians, so that one very slow trial is not
taken for a trend.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

# Small, since every configuration of a sweep is asked four such questions.
ALPHA = 0.01
# A trend must also be larger than this: with many trials one too small to
# matter becomes significant.
LEAST_CHANGE_RATIO = 0.01
# The Theil-Sen slope takes all pairs; of longer runs, those of this many
# medians of stretches.
MOST_POINTS = 1000
# The tests could find nothing at ALPHA in fewer samples.
LEAST_COUNT = 10


@dataclass(frozen=True)
class Drift:
    """A steady change: Kendall's tau against order, the Theil-Sen slope."""

    tau: float
    p_value: float
    change_ns: float  # by the line, from the first trial to the last
    change_ratio: float  # of the median
    found: bool


@dataclass(frozen=True)
class Step:
    """One sudden change: Pettitt's test."""

    index: int  # of the first trial after it
    p_value: float
    change_ns: float  # median after, less median before
    change_ratio: float
    found: bool


@dataclass(frozen=True)
class Neighbours:
    """Lag-1 autocorrelation of the ranks; runs above and below the median."""

    autocorrelation: float
    autocorrelation_p_value: float
    runs: int
    runs_p_value: float | None
    found: bool


def _found(p_value, change_ratio):
    return bool(p_value < ALPHA and abs(change_ratio) >= LEAST_CHANGE_RATIO)


def _slope(samples_ns):
    """Theil and Sen: the median of the slopes of all pairs."""
    stretches = np.array_split(samples_ns, min(len(samples_ns), MOST_POINTS))
    lengths = np.array([len(stretch) for stretch in stretches])
    middles = np.cumsum(lengths) - lengths / 2
    return stats.theilslopes([np.median(s) for s in stretches], middles).slope


def drift(samples_ns) -> Drift:
    order = np.arange(len(samples_ns))
    tau, p_value = stats.kendalltau(order, samples_ns)
    change_ns = float(_slope(samples_ns) * order[-1])
    ratio = change_ns / float(np.median(samples_ns))
    return Drift(float(tau), float(p_value), change_ns, ratio,
                 _found(p_value, ratio))


def step(samples_ns) -> Step:
    """A. N. Pettitt: A non-parametric approach to the change-point problem.
    Applied Statistics 28 (1979), 126-135; p is his approximation."""
    n = len(samples_ns)
    before = np.arange(1, n)
    # Mann-Whitney's statistic of the first k against the others, for each k.
    excess = 2 * np.cumsum(stats.rankdata(samples_ns))[:-1] - before * (n + 1)
    index = int(np.argmax(np.abs(excess))) + 1
    p_value = min(1.0, float(2 * np.exp(
        -6 * excess[index - 1]**2 / (n**3 + n**2))))
    change_ns = float(np.median(samples_ns[index:])
                      - np.median(samples_ns[:index]))
    ratio = change_ns / float(np.median(samples_ns))
    return Step(index, p_value, change_ns, ratio, _found(p_value, ratio))


def _runs(samples_ns):
    """A. Wald and J. Wolfowitz, 1940: the count of runs, and p by the normal
    law.  Times equal to the median are on neither side and left out."""
    median = np.median(samples_ns)
    above = samples_ns[samples_ns != median] > median
    high, low = int(above.sum()), int((~above).sum())
    runs = int(np.count_nonzero(above[1:] != above[:-1])) + 1
    if min(high, low) < 5:
        return runs, None
    expected = 2 * high * low / (high + low) + 1
    variance = (expected - 1) * (expected - 2) / (high + low - 1)
    z = abs(runs - expected) / np.sqrt(variance)
    return runs, float(2 * stats.norm.sf(z))


def neighbours(samples_ns) -> Neighbours:
    """p of the autocorrelation is by the normal law, with mean -1/n and
    variance 1/n, which is that of ranks in random order to first order."""
    n = len(samples_ns)
    ranks = stats.rankdata(samples_ns)
    ranks -= ranks.mean()
    lag = float((ranks[1:] * ranks[:-1]).sum() / (ranks**2).sum())
    p_value = float(2 * stats.norm.sf(abs(lag + 1 / n) * np.sqrt(n)))
    runs, runs_p_value = _runs(samples_ns)
    # Two tests of one question: Bonferroni.
    least = min(p_value, 1.0 if runs_p_value is None else runs_p_value)
    return Neighbours(lag, p_value, runs, runs_p_value, least < ALPHA / 2)


def explain(samples_ns, drift_found: Drift, step_found: Step):
    """The word for the change that describes the run better, and what is left
    of the times without it.

    Each test also finds the other's change, so the better fit wins: the sum of
    squared residuals, those of outliers being cut.  A step may choose its
    place, and has to be better by what a parameter costs (Schwarz, 1978)."""
    n = len(samples_ns)
    order = np.arange(n)
    line = samples_ns - drift_found.change_ns * order / order[-1]
    line -= np.median(line)
    before = order < step_found.index
    step_left = samples_ns - np.where(
        before, np.median(samples_ns[before]), np.median(samples_ns[~before]))
    # Three standard deviations, of normal samples.
    most = 3 * 1.4826 * np.median(np.abs(line))
    of_line, of_step = (np.square(np.clip(left, -most, most)).sum()
                        for left in (line, step_left))
    steps = step_found.found and (
        not drift_found.found or of_step < of_line * n**(-1 / n))
    return ("step", step_left) if steps else ("drift", line)
