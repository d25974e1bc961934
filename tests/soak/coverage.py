#!/usr/bin/python3
"""coverage.py - how often do the intervals that are printed hold what they are
of?

usage: tests/soak/coverage.py [RUNS [SEED]]

RUNS runs (500) of n trials each are made up, of four laws: skewed (lognormal),
with a tail (exponential), bimodal, and quantised (ticks of a third of the
standard deviation); those of two arms share a part of what disturbs them.
Printed are the shares, in per cent, of the intervals that hold the truth:

    median     order statistics; energy, records for a cent and a PennySort have
               the same
    mean       BCa bootstrap, from 200 trials on
    rounds     the median of ratios round by round, as of make bench
    ratio      Hodges and Lehmann within blocks; ratio90 is that of 90 %
    repeats    the same of the shortest of five runs in each block
    runs       the median of all these runs of one arm
    shift      Hodges and Lehmann of two samples
    medians    the ratio of two samples' medians, by a bootstrap
    compare    the change between two runs, of 90 %, at the level that dependent
               trials need
    until      the ratio, where --until=1 has ended the run
    alone      the same of one arm's median

and again for neighbours with the autocorrelations 0.3 and 0.8; of two arms,
what is common to a block has it.  The last table has the least and the largest
share of all laws but the quantised one, and in brackets of that.

The status is 1 if a share is more than two points below what the interval
promises, by more than chance explains (one in a thousand); but for those that
dependence makes too narrow, of which blinkreport(1) says what they hold.  2000
runs take 30 minutes of a CPU.
"""

import functools
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
from trials.report import changes  # noqa: E402
from trials.report.study import REFERENCE, Group  # noqa: E402
from trials.statistics import (comparison, descriptive,  # noqa: E402
                               precision)
from trials.statistics.descriptive import Interval  # noqa: E402

COUNTS = (10, 20, 40, 200)
AUTOCORRELATIONS = (0.0, 0.3, 0.8)
MEDIAN_NS = 20e6
SD_RATIO = 0.03
REPEATS = 5
RESAMPLES = 999  # fewer than for a report, which changes no share
UNTIL = 0  # as a number of trials
UNTIL_RATIO = 0.01
UNTIL_MOST = 1000
PROMISED = {"ratio90": 0.9, "compare": 0.9}  # others 0.95
TOLERANCE = 0.02
CHANCE = 0.001
# What blinkreport(1) says to be too narrow for trials that are not independent.
TOO_NARROW = ("median", "runs", "mean", "compare")


def uniforms(rng, count, rho):
    """Numbers from 0 to 1, of which neighbours are alike."""
    return stats.norm.cdf(autoregression(rng, count, rho))


def skewed(share):
    return stats.lognorm.ppf(share, 0.8) / 1.5


def tailed(share):
    return stats.expon.ppf(share)


def bimodal(share):
    """Three in ten are slow."""
    return np.where(share < 0.7, stats.norm.ppf(share / 0.7) / 5,
                    2 + stats.norm.ppf((share - 0.7) / 0.3) / 5)


def quantised(share):
    return np.round(3 * stats.norm.ppf(share)) / 3


LAWS = (skewed, tailed, bimodal, quantised)


@functools.cache
def truth(law):
    """Median and mean of the times.  They are whole, and a quantised median is
    a tick: so the median is, too."""
    values = law((np.arange(200_000) + 0.5) / 200_000)
    return (round(MEDIAN_NS * (1 + SD_RATIO * float(np.median(values)))),
            MEDIAN_NS * (1 + SD_RATIO * float(values.mean())))


def times(law, rng, count, rho):
    return np.rint(MEDIAN_NS * (1 + SD_RATIO * law(uniforms(rng, count, rho))))


def two_arms(law, rng, count, rho, repeats=1):
    """Each has noise of its own.  What depends on time is common to a block,
    and half as much."""
    common = np.ones(count) if not rho else (
        1 + SD_RATIO / 2 * autoregression(rng, count, rho))
    return [np.rint(times(law, rng, count * repeats, 0)
                    * np.repeat(common, repeats)) for _ in range(2)]


@functools.cache
def repeated_median(law):
    """The median of runs of which those of a block have something in common."""
    return np.median(two_arms(law, np.random.default_rng(1), 100_000, 1e-9,
                              REPEATS))


def in_blocks(arms, count, repeats=1):
    """What the blocked analysis of the first `count` blocks takes."""
    blocks = np.repeat(np.arange(count), repeats).tolist()
    return *(comparison.whole(arm[:count * repeats]) for arm in arms), (
        blocks, blocks)


def compared(before, after):
    """What blinkreport compare prints of the change, as a ratio."""
    pair = changes.pair_of(*(Group("a", "b", REFERENCE, samples_ns=samples_ns)
                             for samples_ns in (before, after)))
    return pair.change_low_ratio is not None and Interval(
        1 + pair.change_low_ratio, 1 + pair.change_high_ratio, 0.9)


def intervals(law, rng, count, rho, seed):
    """name -> (an interval or none, what it is of)"""
    median, mean = truth(law)
    samples = times(law, rng, count, rho)
    arms = two_arms(law, rng, count, rho)
    repeated = two_arms(law, rng, count, rho, REPEATS)
    found = {
        "median": (descriptive.median_interval(samples), median),
        "rounds": (descriptive.median_interval(arms[1] / arms[0]), 1),
        "ratio": (comparison.blocked(
            *in_blocks(arms, count)).ratio_interval, 1),
        "ratio90": (comparison.blocked_ratio_interval(
            *in_blocks(arms, count), 0.9), 1),
        "repeats": (comparison.blocked(
            *in_blocks(repeated, count, REPEATS)).ratio_interval, 1),
        "runs": (descriptive.median_interval(repeated[0]),
                 repeated_median(law) if rho else median),
        "shift": (comparison.shift(*arms)[1], 0),
        "medians": (comparison.ratio_interval(*arms, seed), 1),
        "compare": (compared(samples, times(law, rng, count, rho)), 1)}
    if count >= descriptive.LEAST_MEAN_COUNT:
        found["mean"] = (descriptive.mean_interval(
            samples, seed, resamples=RESAMPLES), mean)
    return found


def until_ends(known):
    """The interval at which such a run ends; `known`: a function of the number
    of blocks that tells the interval and the estimate."""
    for look in precision.looks():
        interval, middle = known(min(look, UNTIL_MOST))
        if look >= UNTIL_MOST or interval and (
                interval.high - interval.low) / 2 <= UNTIL_RATIO * middle:
            return interval


def until(law, rng, rho):
    """The same as intervals() of runs that --until ends."""
    arms = two_arms(law, rng, UNTIL_MOST, rho)
    samples = times(law, rng, UNTIL_MOST, rho)

    def ratio(count):
        found = comparison.blocked(*in_blocks(arms, count))
        return found.ratio_interval, found.ratio

    return {"until": (until_ends(ratio), 1),
            "alone": (until_ends(
                lambda count: precision.median(samples[:count])),
                truth(law)[0])}


def holds(interval, value):
    return interval.low <= value <= interval.high


def shares(runs):
    """name -> (intervals that hold the truth, intervals) of such dicts."""
    found = {}
    for run in runs:
        for name, (interval, value) in run.items():
            held, count = found.get(name, (0, 0))
            if interval:
                found[name] = held + holds(interval, value), count + 1
    return found


def row(asked):
    """The shares of one law, autocorrelation and number of trials."""
    rho, law, count, runs, seed = asked
    rng = np.random.default_rng([seed, LAWS.index(law), round(10 * rho), count])
    return shares(until(law, rng, rho) if count == UNTIL else
                  intervals(law, rng, count, rho, each) for each in range(runs))


def too_low(name, rho, held, count):
    least = PROMISED.get(name, 0.95) - TOLERANCE
    return not (rho and name in TOO_NARROW) and stats.binom.cdf(
        held, count, least) < CHANCE


def spread(cells, name, rho):
    """The words of the last table."""
    def words(quantised_ones):
        found = [f"{100 * held / count:.0f}" for law, at, each, held, count
                 in cells if (at, each) == (rho, name)
                 and (law is quantised) == quantised_ones]
        least, most = min(found, key=int), max(found, key=int)
        return least if least == most else f"{least} to {most}"
    return f"{words(False)} ({words(True)})"


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    comparison.RESAMPLES = RESAMPLES
    asked = [(*each, runs, seed) for each in itertools.product(
        AUTOCORRELATIONS, LAWS, (*COUNTS, UNTIL))]
    cells = []
    with Pool() as pool:
        for (rho, law, count, *_), found in zip(asked, pool.imap(row, asked)):
            cells += [(law, rho, name, *each) for name, each in found.items()]
            print(f"rho {rho}  {law.__name__:9}  n {count or '':3}", *(
                f"{name} {100 * held / all:.1f}" + f" of {all}" * (all < runs)
                for name, (held, all) in found.items()), sep="  ", flush=True)
    for name in dict.fromkeys(cell[2] for cell in cells):
        print(f"| {name} |", " | ".join(spread(cells, name, rho) for rho
                                        in AUTOCORRELATIONS), "|")
    return any(too_low(name, rho, held, count)
               for _, rho, name, held, count in cells)


if __name__ == "__main__":
    sys.exit(main())
