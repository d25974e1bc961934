#!/usr/bin/python3
"""coverage.py - how often do the intervals that are printed hold what they are
of?

usage: tests/soak/coverage.py [RUNS [SEED]]

RUNS runs (500) of n trials each are made up, of four laws: skewed (lognormal),
with a tail (exponential), bimodal, and quantised (ticks of a third of the
standard deviation).  Printed are the shares, in per cent, of runs whose
interval holds the truth:

    median   order statistics; of few trials more than 95 %, and the page of
             blinkreport says how much of each
    mean     BCa bootstrap, from 200 trials on
    ratio    Hodges and Lehmann within blocks, of two arms of one law that share
             a part of what disturbs them
    until    the same where --until=1 has ended the run, from block 20 on

and again for neighbours with the autocorrelations 0.3 and 0.8: within a block
both arms have what is common, so that the ratio is not touched; the median's
own interval is, which is why `autocorrelated` stands beside it as a sign.

The status is 1 if a ratio's coverage is below 93 % by more than chance explains
(one in a thousand).  It takes some minutes.
"""

import sys
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "results"))
sys.dont_write_bytecode = True

from aa_simulation import autoregression  # noqa: E402
from trials.statistics import comparison, descriptive, precision  # noqa: E402

COUNTS = (10, 20, 40, 200)
AUTOCORRELATIONS = (0.0, 0.3, 0.8)
MEDIAN_NS = 20e6
SD_RATIO = 0.03
UNTIL_RATIO = 0.01
UNTIL_MOST = 400
BAR = 0.93
CHANCE = 0.001


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


def truth(law):
    """Median and mean of the law."""
    shares = (np.arange(200_000) + 0.5) / 200_000
    values = law(shares)
    return float(np.median(values)), float(values.mean())


def times(law, rng, count, rho):
    return np.rint(MEDIAN_NS * (1 + SD_RATIO * law(uniforms(rng, count, rho))))


def ratio_interval(reference, samples, count):
    blocks = list(range(count))
    return comparison.blocked(
        comparison.whole(reference[:count]), comparison.whole(samples[:count]),
        (blocks, blocks))


def two_arms(law, rng, count, rho):
    """Each has noise of its own, and what is common to a block, of half as
    much; that alone depends on time."""
    common = 1 + SD_RATIO / 2 * stats.norm.ppf(uniforms(rng, count, rho))
    return [np.rint(times(law, rng, count, 0) * common) for _ in range(2)]


def until_ends(arms):
    """The interval at which such a run ends."""
    for look in precision.looks():
        found = ratio_interval(*arms, min(look, UNTIL_MOST))
        interval = found.ratio_interval
        if (interval.high - interval.low) / 2 <= UNTIL_RATIO * found.ratio \
                or look >= UNTIL_MOST:
            return interval


def holds(interval, value):
    return interval is not None and interval.low <= value <= interval.high


def row(law, rng, runs, count, rho):
    """Counts of intervals that hold the truth, by their name."""
    median, mean = (MEDIAN_NS * (1 + SD_RATIO * value)
                    for value in truth(law))
    found = {"median": 0, "ratio": 0}
    if count >= descriptive.LEAST_MEAN_COUNT:
        found["mean"] = 0
    for number in range(runs):
        samples = times(law, rng, count, rho)
        # Half a tick: times are whole, and a quantised median is a tick.
        found["median"] += holds(descriptive.median_interval(samples),
                                 round(median))
        if "mean" in found:
            found["mean"] += holds(descriptive.mean_interval(
                samples, number, resamples=999), mean)
        found["ratio"] += holds(ratio_interval(
            *two_arms(law, rng, count, rho), count).ratio_interval, 1)
    return found


def too_low(count, runs):
    return stats.binom.cdf(count, runs, BAR) < CHANCE


def shares(found, runs):
    return "  ".join(f"{name} {100 * count / runs:5.1f}"
                     for name, count in sorted(found.items()))


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng = np.random.default_rng(seed)
    print(f"coverage in per cent, {runs} runs each, seed {seed}")
    bad = 0
    for rho in AUTOCORRELATIONS:
        for law in LAWS:
            for count in COUNTS:
                found = row(law, rng, runs, count, rho)
                bad += too_low(found["ratio"], runs)
                print(f"rho {rho:.1f}  {law.__name__:9}  n {count:3}  "
                      f"{shares(found, runs)}", flush=True)
            ended = sum(holds(until_ends(two_arms(law, rng, UNTIL_MOST, rho)),
                              1) for _ in range(runs))
            bad += too_low(ended, runs)
            print(f"rho {rho:.1f}  {law.__name__:9}  --until=1 "
                  f"{shares({'ratio': ended}, runs)}", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
