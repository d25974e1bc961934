"""How many independent trials are dependent ones worth?

The tests of two samples take the trials of a run for independent.  Trials that
resemble their neighbours say less: of n with the lag-1 autocorrelation r, the
mean is as sure as that of n (1 - r) / (1 + r) independent ones, if they are a
first-order autoregression.  And trials of one session share what the session
had, which shows where there are several.

    factor    by which the variance of a difference is larger than the test
              takes it to be
    degrees   of freedom of Student's law, which takes the normal one's place:
              few trials know their own variance badly

r is that of ranks, of both runs together, since they ran on one machine.  So
few trials give one that is too small (by about (1 + 4 r) / n: F. Marriott and
J. Pope, Biometrika 41 (1954), 390-402), which is corrected, and half a standard
error is added: by simulation, two runs of one program then are called
different in no more than 5 % of all pairs for r from 0 to 0.8 and from 10
trials on (tests/soak/aa_simulation.py).
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from trials.statistics import sequence

# Too few trials are taken to be this dependent, which makes them nearly one
# trial in all.
MOST_AUTOCORRELATION = 0.95
_ADDED_ERRORS = 0.5
# Sessions are thought to differ if chance makes them so seldom.
_SESSIONS_ALPHA = 0.05
# A level can't be told from 1 beyond this.
_MOST_DEVIATIONS = 8


@dataclass(frozen=True)
class Worth:
    count: int  # of all trials
    autocorrelation: float
    factor: float
    degrees: float
    sessions_differ: bool

    @property
    def effective_count(self) -> float:
        return max(1.0, self.count / self.factor)

    def p_value(self, p_value: float) -> float:
        """The p of a test of independent trials, for these."""
        deviations = stats.norm.isf(p_value / 2) / np.sqrt(self.factor)
        return float(min(1.0, 2 * stats.t.sf(deviations, self.degrees)))

    def level(self, confidence: float):
        """What an interval for independent trials has to aim at, to cover so
        much for these; None if no such interval does."""
        deviations = (stats.t.ppf((1 + confidence) / 2, self.degrees)
                      * np.sqrt(self.factor))
        if deviations > _MOST_DEVIATIONS:
            return None
        return float(1 - 2 * stats.norm.sf(deviations))


def worth(runs, sessions=None) -> Worth:
    """`runs`: the times of each run, in order; `sessions`: for each run the
    session of each time."""
    count = sum(map(len, runs))
    lag = _autocorrelation(runs)
    factor = (1 + lag) / (1 - lag)
    degrees = max(1.0, count / factor - len(runs))
    between, sessions_degrees = _sessions(runs, sessions)
    if between > factor:
        return Worth(count, lag, between, min(degrees, sessions_degrees), True)
    return Worth(count, lag, factor, degrees, False)


def unsteady(flags, count) -> bool:
    """Has a run of so many trials a drift or a step that its dependent
    neighbours do not explain?  Their tests take the trials for independent;
    so they are asked again, with the autocorrelation of what a drift or a step
    leaves."""
    if flags is None or flags.neighbours is None or count <= 4:
        return False
    lag = (flags.neighbours.autocorrelation * count + 1) / (count - 4)
    lag = min(max(0.0, lag), MOST_AUTOCORRELATION)
    root = np.sqrt((1 + lag) / (1 - lag))
    return any(
        2 * stats.norm.sf(stats.norm.isf(found.p_value / 2) / root)
        < sequence.ALPHA
        for found in (flags.drift, flags.step) if found.found)


def _centred_ranks(samples):
    ranks = stats.rankdata(samples)
    return ranks - ranks.mean()


def _autocorrelation(runs):
    """0 at least: neighbours that differ more than chance would have it are
    no reason to trust fewer trials."""
    count, known = 0, 0.0
    for samples in runs:
        ranks = _centred_ranks(samples)
        spread = float((ranks**2).sum())
        count += len(ranks)
        if spread:
            known += len(ranks) * float(
                (ranks[1:] * ranks[:-1]).sum()) / spread
    left = count - 4 * len(runs)
    if left <= 0:
        return MOST_AUTOCORRELATION
    lag = (known + len(runs)) / left
    error = np.sqrt(max(0, 1 - lag**2) * count) / left
    return min(max(0.0, lag + _ADDED_ERRORS * error), MOST_AUTOCORRELATION)


def _sessions(runs, sessions):
    """The ratio by which the sessions of a run differ more than chance would
    have it, and the degrees of freedom of that; (1, 0) where that can't be
    told."""
    between, within, groups, count = 0.0, 0.0, 0, 0
    for samples, numbers in zip(runs, sessions or ()):
        ranks, numbers = _centred_ranks(samples), np.asarray(numbers)
        for number in np.unique(numbers):
            part = ranks[numbers == number]
            between += len(part) * float(part.mean())**2
            within += float(((part - part.mean())**2).sum())
            groups += 1
        count += len(ranks)
    degrees, rest = groups - len(runs), count - groups
    if degrees < 1 or rest < 1 or not within:
        return 1.0, 0
    ratio = (between / degrees) / (within / rest)
    if stats.f.sf(ratio, degrees, rest) > _SESSIONS_ALPHA:
        return 1.0, 0
    return ratio, degrees
