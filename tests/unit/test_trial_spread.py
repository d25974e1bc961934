"""Spreads: against enumeration and arithmetic, on planted truths.

tests/soak/spread_simulation.py asks more: laws, dependent trials, intervals.
"""

import unittest
from itertools import product
from unittest import mock

import numpy as np

import unit
from trials.statistics import comparison, spread
from trials.statistics.descriptive import deviations


def times(generator, count, sd_ratio=0.03):
    return np.rint(2e7 * np.exp(generator.normal(0, sd_ratio, count)))


def within(reference, samples):
    """Each is in a block of its own."""
    return spread.blocked(reference, samples,
                          (range(len(reference)), range(len(samples))), 1)


def verdicts(sd_ratio, count, runs=40):
    generator = np.random.default_rng(5)
    return [within(times(generator, count),
                   times(generator, count, sd_ratio)).verdict()
            for _ in range(runs)]


class BlockedTest(unittest.TestCase):
    def test_p_by_enumeration(self):
        """Every way to exchange the deviations is as likely."""
        generator = np.random.default_rng(1)
        for sd_ratio in 0.03, 0.05, 0.08:
            arms = times(generator, 10), times(generator, 10, sd_ratio)
            gains = deviations(arms[1]) - deviations(arms[0])
            sums = np.array([*product((-1, 1), repeat=10)]) @ gains
            wanted = min(1, 2 * min(np.mean(sums <= -abs(gains.sum()) + 1e-12),
                                    0.5))
            self.assertAlmostEqual(within(*arms).p_value, wanted, delta=0.03)

    def test_ratio(self):
        found = within([90, 100, 110] * 4, [100, 200, 260] * 4)
        self.assertAlmostEqual(found.ratio, (160 / 600) / (20 / 300))
        self.assertEqual(found.count, 12)

    def test_factor_is_no_spread(self):
        generator = np.random.default_rng(2)
        reference, samples = times(generator, 30), times(generator, 30)
        plain, slower = within(reference, samples), within(reference,
                                                           3 * samples)
        self.assertAlmostEqual(plain.ratio, slower.ratio)
        self.assertAlmostEqual(plain.p_value, slower.p_value)
        self.assertAlmostEqual(plain.interval.high, slower.interval.high)

    def test_planted(self):
        self.assertLessEqual(sum(word != comparison.NOT_SHOWN
                                 for word in verdicts(0.03, 30)), 5)
        self.assertGreater(verdicts(0.06, 60).count("wider"), 35)
        self.assertGreater(verdicts(0.015, 60).count("narrower"), 35)

    def test_stalls_are_seen(self):
        """What a median deviation would not see."""
        generator = np.random.default_rng(3)
        reference, samples = times(generator, 200), times(generator, 200)
        samples[::16] *= 7
        found = within(reference, samples)
        self.assertEqual(found.verdict(), "wider")
        self.assertLess(np.median(deviations(samples))
                        / np.median(deviations(reference)), 1.3)

    def test_what_a_block_has_in_common(self):
        """Blocks that are slow as a whole widen both."""
        generator = np.random.default_rng(4)
        common = 1 + 0.2 * generator.random(40)
        found = within(times(generator, 40) * common,
                       times(generator, 40) * common)
        self.assertEqual(found.verdict(), comparison.NOT_SHOWN)

    def test_runs_of_a_block_are_one(self):
        reference = [100, 104, 100, 96]
        found = spread.blocked(reference, [100, 108, 100, 92],
                               ([0, 0, 1, 1], [0, 0, 1, 1]), 1)
        self.assertEqual(found.count, 2)
        self.assertAlmostEqual(found.ratio, 2)

    def test_blocks_that_both_have(self):
        generator = np.random.default_rng(6)
        reference, samples = times(generator, 12), times(generator, 12)
        whole = within(reference, samples)
        more = spread.blocked(
            [*reference, 9e9], [*samples, 1], ([*range(12), 12],
                                               [*range(12), 13]), 1)
        self.assertEqual(whole, more)
        self.assertEqual(spread.blocked([1], [2], ([0], [1]), 1).verdict(),
                         comparison.TOO_FEW)

    def test_too_few(self):
        generator = np.random.default_rng(7)
        for count, known in (9, False), (10, True):
            found = within(times(generator, count),
                           times(generator, count, 0.9))
            self.assertEqual((found.verdict() == "wider",
                              found.interval is not None), (known, known))

    def test_no_spread(self):
        equal = within([5] * 30, [7] * 30)
        self.assertEqual((equal.p_value, equal.ratio, equal.verdict()),
                         (1, None, comparison.NOT_SHOWN))
        some = within([50] * 30, [40, 50, 60] * 10)
        self.assertEqual((some.ratio, some.verdict()), (None, "wider"))
        none = within([40, 50, 60] * 10, [50] * 30)
        self.assertEqual((none.ratio, none.verdict()), (0, "narrower"))

    def test_same_in_parts(self):
        """A long run is not resampled in one piece."""
        generator = np.random.default_rng(8)
        arms = times(generator, 50), times(generator, 50)
        whole = within(*arms)
        with mock.patch.object(spread, "BATCH_NUMBERS", 50 * 97):
            parts = within(*arms)
        self.assertAlmostEqual(whole.p_value, parts.p_value, delta=0.05)
        self.assertAlmostEqual(whole.interval.low, parts.interval.low,
                               delta=0.05)

    def test_corrected(self):
        found = spread.Spread(40, 0.04, 1.5)
        self.assertEqual(found.verdict(), "wider")
        self.assertEqual(found.verdict(0.08), comparison.NOT_SHOWN)


class TwoSampleTest(unittest.TestCase):
    def test_ratio_and_interval(self):
        before, after = [90, 100, 110] * 8, [100, 200, 260] * 8
        found = spread.two_sample(before, after, 1)
        self.assertAlmostEqual(found.ratio, (160 / 600) / (20 / 300))
        self.assertLess(found.interval.low, found.ratio / 1.1)
        self.assertGreater(found.interval.high, 1.1 * found.ratio)

    def test_stalls_of_one_run_by_chance(self):
        """Student's t would call 11 of 100 different."""
        generator = np.random.default_rng(11)

        def stalled():
            found = times(generator, 30)
            found[generator.random(30) < 0.05] *= 1.7
            return found
        alarms = sum(spread.two_sample(stalled(), stalled(), 1).verdict()
                     != comparison.NOT_SHOWN for _ in range(60))
        self.assertLessEqual(alarms, 5)

    def test_planted(self):
        generator = np.random.default_rng(9)
        for sd_ratio, wanted in ((0.09, "wider"), (0.01, "narrower")):
            found = spread.two_sample(times(generator, 60),
                                      times(generator, 80, sd_ratio), 1)
            self.assertEqual(found.verdict(), wanted)

    def test_dependent_trials_count_for_fewer(self):
        """Spells of noise, of which one run has more by chance."""
        generator = np.random.default_rng(10)
        runs = [2e7 + 1e5 * generator.permutation(20 * [-1, 1]).repeat(2)
                * np.repeat(sds, 10) for sds in (
                    (1, 5, 1, 1, 3, 1, 1, 1), (1, 1, 6, 1, 1, 7, 1, 4))]
        together = spread.two_sample(*runs, 1)
        mixed = spread.two_sample(*map(generator.permutation, runs), 1)
        self.assertAlmostEqual(together.ratio, mixed.ratio)
        self.assertLess(mixed.p_value, 0.05)
        self.assertGreater(together.p_value, 0.1)

    def test_nothing_to_tell(self):
        for before, after in (([5], [6, 7]), ([5] * 20, [5] * 20),
                              ([5] * 20, [4, 5, 6] * 7)):
            found = spread.two_sample(before, after, 1)
            self.assertEqual((found.p_value, found.ratio), (1, None))
        few = spread.two_sample([4, 5] * 4, [5, 6] * 40, 1)
        self.assertEqual(few.verdict(), comparison.TOO_FEW)


if __name__ == "__main__":
    unit.main()
