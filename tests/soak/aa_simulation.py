#!/usr/bin/python3
"""aa_simulation.py - how often does `blinkreport compare` call two runs of one
program different, and how often does it see a change?

usage: tests/soak/aa_simulation.py [PAIRS [SEED]]

PAIRS of runs (600) of n trials each are made up and judged as blinkreport
compare judges one configuration.  Times have a standard deviation of 3 %, and
neighbours the autocorrelation rho.  Printed are the shares, in per cent, of
pairs that were called slower or faster: with no difference, which is a false
alarm, and with one of 2 % and 5 %; in brackets, by the U test alone, as if all
trials were independent.  Then the trials in results/runs are cut into
stretches, and each stretch is compared with the next.

The status is 1 if a false alarm is more frequent than 5 %, by more than chance
explains (one in a thousand).  It takes some minutes.
"""

import json
import sys
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "results"))
sys.dont_write_bytecode = True

from trials.report import changes  # noqa: E402
from trials.report.study import REFERENCE, Group  # noqa: E402
from trials.statistics import comparison, descriptive, racing  # noqa: E402

COUNTS = (10, 20, 40, 200)
AUTOCORRELATIONS = (0, 0.2, 0.4, 0.6, 0.8)
CHANGES = (0.02, 0.05)
SD_RATIO = 0.03
MEDIAN_NS = 20e6
STRETCHES = (10, 20, 40)
BAR = 0.05
CHANCE = 0.001


def autoregression(rng, count, rho):
    """Normal numbers of variance 1 with this lag-1 autocorrelation."""
    numbers = rng.standard_normal(count)
    for at in range(1, count):
        numbers[at] = rho * numbers[at - 1] + np.sqrt(
            1 - rho**2) * numbers[at]
    return numbers


def times(rng, count, rho, change=0.0):
    """Of a run that takes longer by `change`."""
    return np.rint(MEDIAN_NS * (1 + change) * (
        1 + SD_RATIO * autoregression(rng, count, rho)))


def group(samples_ns):
    return Group("reference", "pagecache", REFERENCE, samples_ns=samples_ns,
                 flags=descriptive.flags(samples_ns), verified=True)


def called_different(before_ns, after_ns):
    """By compare, and by the U test alone."""
    pair = changes.pair_of(group(before_ns), group(after_ns))
    pair.p_holm = pair.p_effective
    verdict = changes.judge(pair, changes.MARGIN_RATIO)
    alone = (pair.p_value <= comparison.ALPHA
             and abs(pair.change_ratio) > changes.MARGIN_RATIO)
    return verdict in ("slower", "faster"), alone


def rates(rng, pairs, count, rho, change=0.0):
    """Counts of pairs that are called different, by both."""
    found = [called_different(times(rng, count, rho),
                              times(rng, count, rho, change))
             for _ in range(pairs)]
    return [sum(each) for each in zip(*found)]


def too_many(alarms, pairs):
    return alarms > stats.binom.ppf(1 - CHANCE, pairs, BAR)


def recorded_stretches():
    """(length, times, times after them) of all that was recorded."""
    runs = {}
    for path in sorted((ROOT / "results" / "runs").glob("*/trials.jsonl")):
        for line in path.read_text().splitlines():
            trial = json.loads(line)
            if racing.is_sample(trial):
                key = path, trial["scenario"], trial["configuration"]
                runs.setdefault(key, []).append(trial["whole_ns"])
    for length in STRETCHES:
        for recorded in runs.values():
            cut = [np.array(recorded[at:at + length], dtype=float) for at
                   in range(0, len(recorded) - length + 1, length)]
            yield from ((length, *two) for two in zip(cut, cut[1:]))


def percent(count, pairs):
    return f"{100 * count / pairs:.1f}"


def main(arguments):
    pairs = int(arguments[0]) if arguments else 600
    rng = np.random.default_rng(int(arguments[1]) if arguments[1:] else 1)
    failed = False
    print(f"   n  rho  no change (U)   +{CHANGES[0]:.0%} (U)        "
          f"+{CHANGES[1]:.0%} (U)")
    for count in COUNTS:
        for rho in AUTOCORRELATIONS:
            cells = [rates(rng, pairs, count, rho, change)
                     for change in (0.0, *CHANGES)]
            words = [f"{percent(ours, pairs):>5} ({percent(alone, pairs)})"
                     for ours, alone in cells]
            bad = too_many(cells[0][0], pairs)
            failed |= bad
            print(f"{count:4}  {rho:3}  " + "  ".join(
                f"{word:14}" for word in words) + ("  TOO MANY" if bad else ""),
                flush=True)
    found = [(length, *called_different(*two))
             for length, *two in recorded_stretches()]
    for length in STRETCHES:
        these = [each for each in found if each[0] == length]
        print(f"recorded, stretches of {length}: "
              f"{sum(each[1] for each in these)} "
              f"({sum(each[2] for each in these)}) of {len(these)}")
    bad = too_many(sum(each[1] for each in found), len(found))
    print(f"recorded, all: {percent(sum(e[1] for e in found), len(found))} "
          f"({percent(sum(e[2] for e in found), len(found))})"
          + ("  TOO MANY" if bad else ""))
    return 1 if failed or bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
