"""Do times depend on something that was measured beside them?

Spearman's rank correlation: it asks for no line and no distribution, and one
very slow trial has no more say than another.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from trials.statistics.sequence import ALPHA, LEAST_COUNT


@dataclass(frozen=True)
class Dependence:
    """rho is positive where more of the one goes with longer times."""

    count: int
    rho: float  # from -1 to 1
    p_value: float  # two-sided

    @property
    def found(self) -> bool:
        return self.p_value < ALPHA


def dependence(samples_ns, beside) -> Dependence | None:
    """The dependence; None: there are too few, or all of either are the same.
    """
    samples_ns, beside = np.asarray(samples_ns), np.asarray(beside)
    if len(samples_ns) < LEAST_COUNT or not (
            np.ptp(samples_ns) and np.ptp(beside)):
        return None
    rho, p_value = stats.spearmanr(samples_ns, beside)
    return Dependence(len(samples_ns), float(rho), float(p_value))
