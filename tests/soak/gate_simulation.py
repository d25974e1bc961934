#!/usr/bin/python3
"""gate_simulation.py - how often does `blinktrial gate` call a commit slower or
faster than itself, and how often does it see a change?

usage: tests/soak/gate_simulation.py [GATES [SEED]]

GATES gates (400) of each kind are made up and judged as blinktrial gate judges
one command: up to 60 blocks with five runs each of the commit before, of the
same again, and of the commit after, at the default margin of 1 % and at 2 %.
Printed are the shares, in per cent, of gates of a commit against itself that
end with slower or faster, of gates of a commit that is slower by 3 % that end
with slower, and with inconclusive.  The noise:

    recorded NAME   blocks of trials of one configuration in results/runs:
                    neighbours in time are dealt out to the three arms
    ar(1) 0.8       normal, a standard deviation of 3 % within blocks, and of
                    10 % between them with the autocorrelation 0.8
    drift           the same noise within blocks; all become 30 % slower
    neighbour       in the middle of the run somebody takes half of the CPU: all
                    times double, and vary by 10 %

The status is 1 if a false alarm is more frequent than 1 %, by more than chance
explains (one in a thousand).  It takes a minute or two.
"""

import json
import sys
from pathlib import Path

import numpy as np
from scipy import stats

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "results"))
sys.dont_write_bytecode = True

from aa_simulation import autoregression  # noqa: E402
from trials.statistics import precision, verdict  # noqa: E402
from trials.statistics.racing import is_sample  # noqa: E402

BLOCKS, REPEATS = 60, 5
RUNS = 3 * REPEATS  # of a block
MARGINS = (0.01, 0.02)
SLOWER = 1.03
LEAST_BLOCKS = 6  # that a record has to be worth
MEDIAN_NS = 20e6
BAR = 0.01
CHANCE = 0.001


def ar(rng):
    common = 1 + 0.1 * autoregression(rng, BLOCKS, 0.8)
    return common[:, None] * (1 + 0.03 * rng.standard_normal((BLOCKS, RUNS)))


def drift(rng):
    trend = np.linspace(1, 1.3, BLOCKS * RUNS).reshape(BLOCKS, RUNS)
    return trend * (1 + 0.03 * rng.standard_normal((BLOCKS, RUNS)))


def neighbour(rng):
    start = rng.integers(BLOCKS * RUNS // 4, 3 * BLOCKS * RUNS // 4)
    late = (np.arange(BLOCKS * RUNS) >= start).reshape(BLOCKS, RUNS)
    return np.where(late, 2 * (1 + 0.1 * rng.standard_normal((BLOCKS, RUNS))),
                    1 + 0.03 * rng.standard_normal((BLOCKS, RUNS)))


def recorded():
    """name -> a function that makes noise of each record that is long
    enough."""
    found = {}
    for path in sorted(ROOT.glob("results/runs/*/trials.jsonl")):
        groups = {}
        for line in path.read_text().splitlines():
            trial = json.loads(line)
            if is_sample(trial) and trial["configuration"] == "reference":
                groups.setdefault(trial["scenario"], []).append(
                    trial["whole_ns"])
        for scenario, times_ns in groups.items():
            if len(times_ns) >= LEAST_BLOCKS * RUNS:
                found[f"{path.parent.name} {scenario}"] = stretch(
                    np.array(times_ns) / np.median(times_ns))
    return found


def stretch(times):
    """Neighbours in time are a block; as many blocks as a gate has, of those
    that there are."""
    blocks = times[:len(times) // RUNS * RUNS].reshape(-1, RUNS)
    return lambda rng: blocks[rng.integers(len(blocks), size=BLOCKS)]


def gate(noise, rng, ratio):
    """(before, again, after), each the shortest of its runs in each block; the
    order within a block is one of chance."""
    times = rng.permuted(noise(rng), axis=1).reshape(BLOCKS, 3, REPEATS)
    return np.rint(MEDIAN_NS * times.min(axis=2) * (1, 1, ratio)).T


def ended(arms, margin):
    """Both changes when such a gate has ended: each is known to half the
    margin, or there are no more blocks."""
    before, again, after = arms
    for look in precision.looks():
        count = min(look, BLOCKS)
        blocks = (list(range(count)),) * 2
        found = [verdict.change(before[:count], other[:count], blocks)
                 for other in (again, after)]
        if count == BLOCKS or all(
                (each.interval.high - each.interval.low) / 2
                <= margin / 2 * each.ratio for each in found):
            return found


def row(noise, rng, gates):
    """Of each margin: counts of false alarms, of changes that were found and
    of inconclusive ones among them."""
    found = {margin: [0, 0, 0] for margin in MARGINS}
    for _ in range(gates):
        itself, slower = (gate(noise, rng, ratio) for ratio in (1, SLOWER))
        for margin, counts in found.items():
            counts[0] += verdict.judge(*ended(itself, margin), margin) in (
                verdict.SLOWER, verdict.FASTER)
            word = verdict.judge(*ended(slower, margin), margin)
            counts[1] += word == verdict.SLOWER
            counts[2] += word == verdict.INCONCLUSIVE
    return found


def main():
    gates = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng = np.random.default_rng(seed)
    print(f"{gates} gates of {BLOCKS} blocks of each kind, seed {seed}; "
          f"{100 * (SLOWER - 1):.0f} % is planted")
    bad = 0
    for name, noise in {"ar(1) 0.8": ar, "drift": drift,
                        "neighbour": neighbour, **recorded()}.items():
        cells = []
        for margin, (alarms, slower, not_told) in row(
                noise, rng, gates).items():
            bad += stats.binom.sf(alarms - 1, gates, BAR) < CHANCE
            cells.append(
                f"margin {100 * margin:.0f}: alarms "
                f"{100 * alarms / gates:4.1f}, found "
                f"{100 * slower / gates:5.1f}, inconclusive "
                f"{100 * not_told / gates:5.1f}")
        print(f"{name:40}  {'  '.join(cells)}", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
