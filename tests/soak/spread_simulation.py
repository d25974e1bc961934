#!/usr/bin/python3
"""spread_simulation.py - which test of spread raises no false alarms, and which
finds a difference?

usage: tests/soak/spread_simulation.py [RUNS [SEED]]

RUNS runs (600) of two arms in the same n blocks are made up, with a standard
deviation of 3 %.  Printed are the shares, in per cent, of runs in which p is at
most 0.05: of equal arms, and of those of which one has the noise of the other
times 1.5, 2 and 10, or is stalled in 6 of 100 trials, for up to six times the
median.
The noise of an arm is normal, skewed (lognormal), has tails (Student's with 3
degrees), is stalled (5 of 100 trials, for up to the median again), bimodal, or
quantised; a block has nothing in common, or as much as an arm has of its own
(block), or the same with the autocorrelation 0.8 (ar).  The candidates:

    ours      exchanged mean deviations from the median; spread.py
    roots     the same of their square roots
    signed    Wilcoxon's signed ranks of the differences of deviations
    logs      the same of the logarithms of deviations
    ranks     Pitman and Morgan's: Spearman's of sums and differences
    mads      exchanged labels, by the ratio of median absolute deviations

Behind them is the share of our 95 % intervals that hold the ratio.  Then come
arms of which one takes twice the time, with the other's spread as a share of
the time or in seconds, if spreads were compared in either way; and two runs
without common blocks, as blinkreport compare judges them: alarms, intervals
that hold the ratio 1, and the share of those of the ratio 2 that are found.

The status is 1 if a false alarm of ours is more frequent than 5 %, or an
interval of equal arms wrong in more than 7 %, by more than chance explains (one
in a thousand).  600 runs take an hour of two CPUs.
"""

import itertools
import sys
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "results"))
sys.dont_write_bytecode = True

from aa_simulation import autoregression  # noqa: E402
from trials.statistics import comparison, spread  # noqa: E402

COUNTS = (10, 20, 30, 60, 200)
RATIOS = (1, 1.5, 2, 10)
MEDIAN_NS = 20e6
SD_RATIO = 0.03
RESAMPLES = 999  # fewer than for a report, which changes no share
LABELLINGS = 199
ALPHA = 0.05
CHANCE = 0.001
TOO_WIDE = 0.07

LAWS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "skewed": lambda rng, n: np.exp(0.8 * rng.standard_normal(n)) / 1.5,
    "tails": lambda rng, n: rng.standard_t(3, n) / 1.7,
    "stalled": lambda rng, n: rng.standard_normal(n) + np.where(
        rng.random(n) < 0.05, rng.random(n) / SD_RATIO, 0),
    "bimodal": lambda rng, n: rng.standard_normal(n) / 5 + np.where(
        rng.random(n) < 0.3, 2, 0),
    "quantised": lambda rng, n: np.round(3 * rng.standard_normal(n)) / 3}
COMMON = {
    "": lambda rng, n: np.zeros(n),
    "block": lambda rng, n: rng.standard_normal(n),
    "ar": lambda rng, n: autoregression(rng, n, 0.8)}
# The ratios that are tried where blocks have something in common.
SOME_RATIOS = (1, 2)


def whole_ns(noise, middle_ns=MEDIAN_NS):
    return np.rint(middle_ns * (1 + np.maximum(SD_RATIO * noise, -0.9)))


def two_arms(law, common, rng, count, ratio):
    shared = COMMON[common](rng, count)
    stalls = np.zeros(count)
    if ratio == "stalls":
        ratio, stalls = 1, np.where(rng.random(count) < 0.06,
                                    6 * rng.random(count) / SD_RATIO, 0)
    return (whole_ns(shared + LAWS[law](rng, count)),
            whole_ns(shared + ratio * LAWS[law](rng, count) + stalls))


# --- candidates: the p of two arms -------------------------------------------

def distances(samples):
    return np.abs(samples - np.median(samples))


def exchanged(below, above, rng):
    """The two-sided p of the sum of differences, when the two change places."""
    sums = rng.integers(0, 2, (RESAMPLES, len(below)),
                        dtype=bool) @ (above - below)
    fewest = min((sums <= 0).sum(), (sums >= 0).sum())
    return 2 * (1 + fewest) / (RESAMPLES + 1)


def roots(before, after, rng):
    return exchanged(*(np.sqrt(distances(arm)) for arm in (before, after)), rng)


def signed(before, after, _):
    return comparison.signed_rank_test(distances(after) - distances(before))[0]


def logs(before, after, _):
    below, above = distances(before), distances(after)
    known = (below > 0) & (above > 0)
    return comparison.signed_rank_test(np.log(above[known] / below[known]))[0]


def ranks(before, after, _):
    return stats.spearmanr(before + after, after - before)[1]


def mads(before, after, rng):
    arms = [arm - np.median(arm) for arm in (before, after)]
    swapped = rng.integers(0, 2, (LABELLINGS, len(before)), dtype=bool)

    def statistic(below, above):
        middle = [np.median(np.abs(arm - np.median(
            arm, axis=-1, keepdims=True)), axis=-1) for arm in (below, above)]
        with np.errstate(all="ignore"):
            return np.abs(np.log(middle[1] / middle[0]))

    found = statistic(np.where(swapped, arms[1], arms[0]),
                      np.where(swapped, arms[0], arms[1]))
    return (1 + (found >= statistic(*arms) - 1e-12).sum()) / (LABELLINGS + 1)


CANDIDATES = (roots, signed, logs, ranks, mads)


# --- tables ------------------------------------------------------------------

def truth(law, common, ratio):
    """The ratio of spreads of arms without end."""
    arms = two_arms(law, common, np.random.default_rng(1), 300_000, ratio)
    return np.divide(*(distances(arm).mean() / np.median(arm)
                       for arm in reversed(arms)))


def row(asked):
    """(asked, alarms of each, (intervals that hold the ratio, intervals))"""
    law, common, count, ratio, runs, seed = asked
    rng = np.random.default_rng([
        seed, [*LAWS].index(law), [*COMMON].index(common), count,
        [*RATIOS, "stalls"].index(ratio)])
    wanted = 1 if ratio == 1 else truth(law, common, ratio)
    found, held, intervals = np.zeros(1 + len(CANDIDATES), dtype=int), 0, 0
    blocks = range(count), range(count)
    for each in range(runs):
        arms = two_arms(law, common, rng, count, ratio)
        ours = spread.blocked(*arms, blocks, each)
        found += [ours.p_value <= ALPHA, *(
            candidate(*arms, rng) <= ALPHA for candidate in CANDIDATES)]
        if ours.interval:
            intervals += 1
            held += ours.interval.low <= wanted <= ours.interval.high
    return asked, found, held, intervals


def scales(count, runs, seed):
    """Alarms of deviations as shares of the median, and in seconds, of an arm
    that takes twice the time, with the same spread in either way."""
    rng = np.random.default_rng([seed, count])
    found = np.zeros((2, 2), dtype=int)
    for _ in range(runs):
        noise = rng.standard_normal((2, count))
        before = whole_ns(noise[0])
        for at, after in enumerate((whole_ns(noise[1], 2 * MEDIAN_NS),
                                    whole_ns(noise[1]) + MEDIAN_NS)):
            arms = distances(before), distances(after)
            found[at] += [exchanged(arms[0] / np.median(before),
                                    arms[1] / np.median(after), rng) <= ALPHA,
                          exchanged(*arms, rng) <= ALPHA]
    return found


def compared(law, count, rho, ratio, runs, seed):
    """Alarms of two runs without common blocks; intervals that hold 1, and
    intervals."""
    rng = np.random.default_rng([seed, [*LAWS].index(law), count])
    alarms, held, intervals = 0, 0, 0
    for each in range(runs):
        found = spread.two_sample(*(whole_ns(
            factor * (autoregression(rng, count, rho) if rho
                      else LAWS[law](rng, count))) for factor in (1, ratio)),
            each)
        alarms += found.p_value <= ALPHA
        if found.interval:
            intervals += 1
            held += found.interval.low <= ratio <= found.interval.high
    return alarms, held, intervals


def percent(count, runs):
    return f"{100 * count / runs:.1f}" if runs else "-"


def too_many(count, runs, most):
    return count > stats.binom.ppf(1 - CHANCE, runs, most)


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    spread.RESAMPLES = RESAMPLES
    asked = [(*each, runs, seed) for each in itertools.product(
        LAWS, COMMON, COUNTS, RATIOS)
        if not each[1] or each[3] in SOME_RATIOS]
    asked += [("normal", "", count, "stalls", runs, seed) for count in COUNTS]
    failed = False
    print("law        common    n  ratio ", *(
        f"{name:>6}" for name in ("ours", *(each.__name__ for each
                                            in CANDIDATES), "holds")))
    with Pool() as pool:
        for (law, common, count, ratio, *_), found, held, intervals in \
                pool.imap(row, asked):
            bad = ratio == 1 and bool(
                too_many(found[0], runs, ALPHA)
                or too_many(intervals - held, intervals, TOO_WIDE))
            failed |= bad
            print(f"{law:10} {common:6} {count:4}  {ratio:6}", *(
                f"{percent(each, runs):>6}" for each in found),
                f"{percent(held, intervals):>6}", "TOO MANY" * bad, flush=True)
    print("an arm of twice the time, alarms as shares; in seconds")
    for count in COUNTS:
        for name, found in zip(("as a share", "in seconds"),
                               scales(count, runs, seed)):
            print(f"n {count:3}  equal {name}: ", *(
                percent(each, runs) for each in found))
    print("two runs: alarms at ratio 1, intervals that hold it; found at 2")
    for law, rho in (*((law, 0) for law in LAWS), ("normal", 0.4),
                     ("normal", 0.8)):
        for count in COUNTS:
            equal, other = (compared(law, count, rho, ratio, runs, seed)
                            for ratio in (1, 2))
            bad = bool(too_many(equal[0], runs, ALPHA) or too_many(
                equal[2] - equal[1], equal[2], TOO_WIDE))
            failed |= bad
            print(f"{law:10} rho {rho:3}  n {count:3} ",
                  percent(equal[0], runs), percent(*equal[1:]),
                  percent(other[0], runs), "TOO MANY" * bad, flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
