"""Has a set of times one peak or more?  Hartigan's dip test.

The dip is the least distance, over all distribution functions with one mode,
between such a function and that of the sample.  Among the unimodal laws the
uniform one has the largest dips (to first order, as n grows), so the table
below, of uniform samples, makes the test a careful one: skewed and heavy-tailed
times (lognormal, exponential) are not taken for two peaks.  The price: of 200
trials, a second peak that has less than a seventh of them is often not seen.

J. A. Hartigan and P. M. Hartigan: The dip test of unimodality.  Annals of
Statistics 13 (1985), 70-84.
"""

from dataclasses import dataclass
from typing import Optional

import numpy as np

# This is the share of uniform sets that are called bimodal; of normal,
# lognormal, exponential and t samples it is below 0.02 with 20 trials and 0.005
# with 200.
ALPHA = 0.05

# Dips of uniform samples, times the root of their number n: what is exceeded
# with these probabilities, in 20000 sets of each n up to 200, 10000 up to
# 1000, and 4000 of 5000 (numpy's default_rng(20261122)).  The third digit is
# uncertain by a few units in the last columns.
_P_VALUES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001)
_QUANTILES = {
    10: (0.309, 0.376, 0.413, 0.442, 0.474, 0.501, 0.518, 0.558),
    20: (0.328, 0.396, 0.435, 0.468, 0.510, 0.537, 0.567, 0.625),
    50: (0.346, 0.417, 0.459, 0.498, 0.541, 0.572, 0.599, 0.658),
    100: (0.355, 0.426, 0.472, 0.513, 0.557, 0.590, 0.621, 0.682),
    200: (0.361, 0.435, 0.481, 0.521, 0.568, 0.599, 0.627, 0.693),
    500: (0.369, 0.444, 0.492, 0.531, 0.586, 0.618, 0.644, 0.733),
    1000: (0.371, 0.448, 0.493, 0.533, 0.584, 0.620, 0.663, 0.739),
    5000: (0.377, 0.452, 0.496, 0.533, 0.578, 0.607, 0.640, 0.703),
}


@dataclass(frozen=True)
class Modes:
    dip: float
    # Of one mode; from 0.001, the end of the table, up.  Null if it was not
    # asked: of a clock so coarse that most times are equal, every tick would
    # be a peak.
    p_value: Optional[float]
    found: bool  # more than one


def _hull(x, y):
    """Indexes at which the greatest convex minorant of (x, y) touches it."""
    hull = []
    for i, (xi, yi) in enumerate(zip(x, y)):
        while len(hull) >= 2:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (xi - x[b]) < (yi - y[b]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return np.array(hull)


def _bounds(x, low, high):
    """Convex minorant, concave majorant of a stretch, and where they touch."""
    below_at = _hull(x.tolist(), low.tolist())
    above_at = _hull(x.tolist(), (-high).tolist())
    below = np.interp(x, x[below_at], low[below_at])
    above = np.interp(x, x[above_at], high[above_at])
    return below, below_at, above, above_at


def dip(samples):
    """The dip of a sample: from 1/(2n) to 1/4."""
    x, counts = np.unique(np.asarray(samples, dtype=float),
                          return_counts=True)
    high = np.cumsum(counts) / counts.sum()
    low = high - counts / counts.sum()
    worst = 0.0
    while True:
        below, below_at, above, above_at = _bounds(x, low, high)
        gap = above - below
        left = below_at[np.argmax(gap[below_at])]
        right = above_at[np.argmax(gap[above_at])]
        widest = max(gap[left], gap[right])
        if widest <= worst:
            return worst / 2
        # The modal interval: from where the minorant last touches to where
        # the majorant first does, around the widest gap.
        if gap[left] > gap[right]:
            right = above_at[above_at >= left][0]
        else:
            left = below_at[below_at <= right][-1]
        worst = max(worst, (high - below)[:left + 1].max(),
                    (above - low)[right:].max())
        x, low, high = (part[left:right + 1] for part in (x, low, high))


def p_value(dip_found, n):
    """By interpolation: between sizes in log n, between quantiles in log p."""
    sizes = np.log(list(_QUANTILES))
    quantiles = [np.interp(np.log(n), sizes, column)
                 for column in zip(*_QUANTILES.values())]
    # No dip is less than 1/(2n).
    least = 0.5 / np.sqrt(n)
    log_p = np.interp(dip_found * np.sqrt(n), [least, *quantiles],
                      np.log([1.0, *_P_VALUES]))
    return float(np.exp(log_p))


def test(samples) -> Modes:
    n = len(samples)
    found_dip = float(dip(samples))
    if len(np.unique(samples)) < n / 2:
        return Modes(found_dip, None, False)
    p = p_value(found_dip, n)
    return Modes(found_dip, p, p < ALPHA)
