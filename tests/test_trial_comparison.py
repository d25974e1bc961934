"""Comparisons: against enumeration and published examples, on planted truths.

The simulations have fixed seeds: what they found once they find always.  Made
times are lognormal around 23.7 ms with a standard deviation of 3 %, which is
what sorts on a busy machine have.
"""

import unittest
from itertools import combinations, product
from math import comb
from unittest import mock

import numpy as np

import unit
from scipy import stats
from trials import comparison

# Hollander and Wolfe's examples (also those of R's help for wilcox.test): the
# permeability of membranes at two ages, and a depression scale before and
# after; times 100 and 1000.
AT_TERM = (80, 83, 189, 104, 145, 138, 191, 164, 73, 146)
EARLIER = (115, 88, 90, 74, 121)
BEFORE = (1830, 500, 1620, 2480, 1680, 1880, 1550, 3060, 1300)
AFTER = (878, 647, 598, 2050, 1060, 1290, 1060, 3140, 1290)


def times(generator, count, slower=1.0, sd_ratio=0.03):
    return np.rint(23_700_000 * slower * np.exp(
        generator.normal(0, sd_ratio, count)))


def share(trues):
    return float(np.mean(list(trues)))


def pairs_above(reference, samples):
    """U by its definition."""
    return sum((a > b) + (a == b) / 2 for a, b in product(samples, reference))


def p_by_enumeration(reference, samples):
    """Every way to deal the values to the two arms is as likely."""
    values = [*reference, *samples]
    middle = len(reference) * len(samples) / 2
    far = abs(pairs_above(reference, samples) - middle)
    extreme = 0
    for chosen in combinations(range(len(values)), len(samples)):
        rest = [v for i, v in enumerate(values) if i not in chosen]
        u = pairs_above(rest, [values[i] for i in chosen])
        extreme += abs(u - middle) >= far
    return extreme / comb(len(values), len(samples))


class UTest(unittest.TestCase):
    def test_published_example(self):
        found = comparison.compare(EARLIER, AT_TERM, 1)
        self.assertEqual((found.u, found.method), (35, "exact"))
        self.assertAlmostEqual(found.p_value, 0.2544, places=4)
        self.assertAlmostEqual(found.superiority, 0.7)
        self.assertAlmostEqual(found.cliffs_delta, 0.4)
        self.assertEqual((found.effect, found.verdict()), ("medium", "same"))
        self.assertAlmostEqual(found.shift_ns, 30.5)
        interval = found.shift_interval_ns
        self.assertEqual((interval.low, interval.high), (-15, 76))

    def test_exact_by_enumeration(self):
        generator = np.random.default_rng(1)
        for n_reference, n in (3, 4), (5, 5), (6, 4), (1, 7):
            values = generator.permutation(1000)[:n_reference + n]
            reference, samples = values[:n_reference], values[n_reference:]
            u, p_value, method = comparison.u_test(reference, samples)
            self.assertEqual(method, "exact")
            self.assertEqual(u, pairs_above(reference, samples))
            self.assertAlmostEqual(p_value,
                                   p_by_enumeration(reference, samples))

    def test_counts_by_enumeration(self):
        for n_reference, n in product((1, 2, 3, 5), (1, 2, 4, 6)):
            wanted = np.zeros(n_reference * n + 1, dtype=int)
            for chosen in combinations(range(n_reference + n), n):
                wanted[sum(chosen) - n * (n - 1) // 2] += 1
            found = comparison.u_counts(n_reference, n)
            self.assertEqual(found.tolist(), wanted.tolist())
        self.assertEqual(comparison.u_counts(20, 20).sum(), comb(40, 20))

    def test_exact_until_twenty_without_ties(self):
        generator = np.random.default_rng(2)
        values = generator.permutation(1000)
        for first, second, wanted in (
                (20, 20, "exact"), (21, 5, "asymptotic"),
                (5, 21, "asymptotic")):
            reference = values[:first]
            samples = values[first:first + second]
            _, p_value, method = comparison.u_test(reference, samples)
            self.assertEqual(method, wanted)
            self.assertEqual(p_value, stats.mannwhitneyu(
                samples, reference, method=wanted).pvalue)
        tied = np.array([1, 2, 2, 3]), np.array([4, 5, 6, 7])
        self.assertEqual(comparison.u_test(*tied)[2], "asymptotic")

    def test_ties_are_corrected_for(self):
        reference, samples = np.array([1, 2, 2, 3] * 8), np.array([2, 3, 3] * 9)
        n_reference, n = len(reference), len(samples)
        u, p_value, _ = comparison.u_test(reference, samples)
        _, counts = np.unique(np.r_[reference, samples], return_counts=True)
        total = n_reference + n
        variance = n_reference * n / 12 * (
            total + 1 - (counts**3 - counts).sum() / (total * (total - 1)))
        z = (abs(u - n_reference * n / 2) - 0.5) / np.sqrt(variance)
        self.assertAlmostEqual(p_value, 2 * stats.norm.sf(z))

    def test_all_equal(self):
        found = comparison.compare([5] * 30, [5] * 30, 1)
        self.assertEqual((found.p_value, found.verdict()), (1, "same"))
        self.assertEqual((found.ratio, found.shift_ns), (1, 0))
        self.assertEqual(found.ratio_interval.low, 1)
        self.assertEqual(found.effect, "negligible")
        constants = comparison.compare([5] * 30, [6] * 30, 1)
        self.assertEqual(constants.verdict(), "slower")
        self.assertEqual(constants.ratio_interval.high, 1.2)

    def test_too_few_to_tell(self):
        for n, wanted in (1, "unknown"), (3, "unknown"), (4, "slower"):
            found = comparison.compare(range(1, n + 1), range(100, 100 + n),
                                       1)
            self.assertEqual(found.verdict(), wanted)
            self.assertAlmostEqual(found.p_value, found.least_p_value)
        self.assertIsNone(
            comparison.compare([1, 2, 3], [4, 5, 6], 1).shift_interval_ns)


class ShiftTest(unittest.TestCase):
    def test_by_brute_force(self):
        generator = np.random.default_rng(3)
        for n_reference, n in (1, 1), (2, 3), (7, 7), (20, 15), (40, 33):
            for spread in 5, 10**8:
                reference = generator.integers(-spread, spread, n_reference)
                samples = generator.integers(-spread, spread, n)
                differences = np.sort(
                    [b - a for a, b in product(reference, samples)])
                shift, interval = comparison.shift(reference, samples)
                self.assertEqual(shift, np.median(differences))
                if interval:
                    k = int(np.searchsorted(differences, interval.low,
                                            side="right"))
                    self.assertEqual(
                        interval.high, differences[len(differences) - k]
                        if spread > 5 else interval.high)

    def test_rank_of_the_interval(self):
        # Exact: the greatest rank that leaves at most 2.5 % at each end.
        for n_reference, n in (4, 4), (5, 10), (12, 9), (20, 20):
            reference, samples = range(n_reference), 100 * np.arange(1, n + 1)
            differences = sorted(b - a for a, b in product(reference, samples))
            _, interval = comparison.shift(reference, samples)
            k = differences.index(interval.low) + 1
            self.assertEqual(interval.high, differences[-k])
            counts = comparison.u_counts(n_reference, n)
            self.assertLessEqual(counts[:k].sum() / counts.sum(), 0.025)
            self.assertGreater(counts[:k + 1].sum() / counts.sum(), 0.025)

    def test_interval_and_test_agree(self):
        # 0 is outside the interval just when the exact test says so.
        generator = np.random.default_rng(4)
        for _ in range(60):
            reference = generator.permutation(10**6)[:8]
            samples = generator.permutation(10**6)[:7] + 350_000
            _, p_value, method = comparison.u_test(reference, samples)
            _, interval = comparison.shift(reference, samples)
            self.assertEqual(method, "exact")
            self.assertEqual(p_value <= 0.05,
                             not interval.low <= 0 <= interval.high)

    def test_covers_the_shift(self):
        generator = np.random.default_rng(5)
        for n in 15, 100:
            covered = []
            for _ in range(1000):
                reference = np.rint(1e6 * generator.exponential(1, n))
                samples = np.rint(1e6 * generator.exponential(1, n)) + 5000
                _, interval = comparison.shift(reference, samples)
                covered.append(interval.low <= 5000 <= interval.high)
            self.assertAlmostEqual(share(covered), 0.95, delta=0.02)

    def test_paired_by_brute_force(self):
        generator = np.random.default_rng(6)
        for n in 1, 2, 6, 25, 60:
            differences = generator.integers(-1000, 1000, n)
            means = np.sort([(differences[i] + differences[j]) / 2
                             for i in range(n) for j in range(i, n)])
            shift, interval = comparison.paired_shift(differences)
            self.assertEqual(shift, np.median(means))
            if interval:
                self.assertIn(interval.low, means)
                at = np.searchsorted(means, interval.low, side="left")
                self.assertTrue((means[:at] < interval.low).all())
        # Hollander and Wolfe's, n = 9: the sixth from either end, 96.1 %.
        differences = np.array(BEFORE) - AFTER
        means = np.sort([(a + b) / 2 for i, a in enumerate(differences)
                         for b in differences[i:]])
        _, interval = comparison.paired_shift(differences)
        self.assertEqual((interval.low, interval.high), (means[5], means[-6]))

    def test_paired_covers_the_shift(self):
        generator = np.random.default_rng(16)
        for n in 20, 80:
            covered = []
            for _ in range(400):
                _, interval = comparison.paired_shift(
                    generator.normal(5000, 10_000, n))
                covered.append(interval.low <= 5000 <= interval.high)
            self.assertAlmostEqual(share(covered), 0.95, delta=0.03)

    def test_signed_rank_counts(self):
        for n in 1, 4, 7:
            wanted = np.zeros(n * (n + 1) // 2 + 1, dtype=int)
            for signs in product((0, 1), repeat=n):
                wanted[sum((i + 1) * s for i, s in enumerate(signs))] += 1
            self.assertEqual(comparison.signed_rank_counts(n).tolist(),
                             wanted.tolist())


class RatioTest(unittest.TestCase):
    def test_same_seed_same_interval(self):
        generator = np.random.default_rng(7)
        reference, samples = times(generator, 100), times(generator, 100)
        first, again, other = (comparison.compare(reference, samples, seed)
                               for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first.ratio_interval, other.ratio_interval)

    @mock.patch.object(comparison, "RESAMPLES", 499)
    def test_covers_the_ratio(self):
        generator = np.random.default_rng(8)
        covered = []
        for _ in range(400):
            interval = comparison.ratio_interval(
                times(generator, 60), times(generator, 90, 1.1), 1)
            covered.append(interval.low <= 1.1 <= interval.high)
        self.assertAlmostEqual(share(covered), 0.95, delta=0.03)


class PlantedTest(unittest.TestCase):
    def test_two_percent_is_reported(self):
        generator = np.random.default_rng(9)
        found = comparison.compare(times(generator, 200),
                                   times(generator, 200, 1.02), 1)
        self.assertEqual(found.verdict(), "slower")
        self.assertEqual(found.verdict(p_holm=0.06), "same")
        self.assertAlmostEqual(found.ratio, 1.02, delta=0.01)
        self.assertLess(found.ratio_interval.low, 1.02)
        self.assertGreater(found.ratio_interval.high, 1.02)
        self.assertLess(found.shift_interval_ns.low, 474_000)
        self.assertGreater(found.shift_interval_ns.high, 474_000)
        back = comparison.compare(times(generator, 200, 1.02),
                                  times(generator, 200), 1)
        self.assertEqual(back.verdict(), "faster")
        self.assertLess(back.shift_ns, 0)

    def power(self, generator, slower, count=200, sets=400):
        return share(
            comparison.u_test(times(generator, count),
                              times(generator, count, slower))[1] < 0.05
            for _ in range(sets))

    def test_power(self):
        generator = np.random.default_rng(10)
        self.assertGreaterEqual(self.power(generator, 1.02), 0.995)
        self.assertGreaterEqual(self.power(generator, 1.01), 0.85)

    def test_false_alarms(self):
        generator = np.random.default_rng(11)
        self.assertAlmostEqual(self.power(generator, 1, sets=1000), 0.05,
                               delta=0.015)
        self.assertAlmostEqual(self.power(generator, 1, 20, 1000), 0.05,
                               delta=0.015)

    def test_direction_of_effects(self):
        generator = np.random.default_rng(12)
        for slower, effect in ((1, "negligible"), (1.0125, "small"),
                               (1.021, "medium"), (1.06, "large")):
            found = comparison.compare(times(generator, 1000),
                                       times(generator, 1000, slower), 1)
            self.assertEqual(found.effect, effect)
        self.assertEqual([comparison.effect(delta) for delta in (
            -0.146, 0.147, -0.329, 0.33, 0.473, -0.474)],
            ["negligible", "small", "small", "medium", "medium", "large"])


class BlockedTest(unittest.TestCase):
    def test_published_example(self):
        found = comparison.compare(AFTER, BEFORE, 1, (range(9), range(9)))
        self.assertEqual(found.blocked.pairs, 9)
        self.assertAlmostEqual(found.blocked.p_value, 0.0390625)
        self.assertEqual(found.blocked.shift_ns, 460)

    def test_drift_does_not_hide_a_difference(self):
        generator = np.random.default_rng(13)
        drift = np.linspace(1, 1.5, 200)
        reference = np.rint(times(generator, 200) * drift)
        samples = np.rint(times(generator, 200, 1.02) * drift)
        found = comparison.compare(reference, samples, 1,
                                   (range(200), range(200)))
        self.assertEqual(found.verdict(), "same")
        self.assertLess(found.blocked.p_value, 0.001)
        interval = found.blocked.shift_interval_ns
        self.assertLess(interval.low, 23_700_000 * 1.25 * 0.02)
        self.assertGreater(interval.high, 23_700_000 * 1.25 * 0.02)

    def test_blocks_are_matched(self):
        # A trial failed in each arm; the order within an arm does not matter.
        reference = {block: 1000 * block + 9
                     for block in range(20) if block != 3}
        samples = {block: 1000 * block + 16 + block
                   for block in reversed(range(20)) if block != 11}
        found = comparison.compare(
            list(reference.values()), list(samples.values()), 1,
            (list(reference), list(samples)))
        self.assertEqual(found.blocked.pairs, 18)
        differences = [7 + b for b in range(20) if b not in (3, 11)]
        self.assertEqual(found.blocked.p_value, 2 / 2**18)
        self.assertEqual(found.blocked.shift_ns,
                         comparison.paired_shift(differences)[0])

    def test_too_few_and_equal(self):
        few, many = range(1, 6), range(1, 11)
        self.assertIsNone(
            comparison.compare(few, few, 1, (few, few)).blocked)
        # Ties, and too few for the normal law.
        tied = [1, 1, 2, 2, 3, 3, 4, 4, 5]
        self.assertIsNone(comparison.compare(
            [9] * 9, tied, 1, (range(9), range(9))).blocked)
        equal = comparison.compare(many, many, 1, (many, many))
        self.assertEqual(equal.blocked.p_value, 1)
        self.assertEqual(equal.blocked.shift_ns, 0)

    def test_false_alarms(self):
        generator = np.random.default_rng(14)
        blocks = range(30), range(30)
        with mock.patch.object(comparison, "RESAMPLES", 9):
            p_values = [comparison.compare(
                times(generator, 30), times(generator, 30), 1,
                blocks).blocked.p_value for _ in range(400)]
        self.assertAlmostEqual(share(p < 0.05 for p in p_values), 0.05,
                               delta=0.025)


class HolmTest(unittest.TestCase):
    def test_by_hand(self):
        np.testing.assert_allclose(
            comparison.holm([0.01, 0.04, 0.03, 0.005]),
            [0.03, 0.06, 0.06, 0.02])
        self.assertEqual(comparison.holm([0.9, 0.8]), [1, 1])
        self.assertEqual(comparison.holm([]), [])
        self.assertEqual(comparison.holm([0.2]), [0.2])

    def test_family_keeps_its_promise(self):
        generator = np.random.default_rng(15)
        alarms = share(min(comparison.holm(generator.random(20))) < 0.05
                       for _ in range(4000))
        self.assertAlmostEqual(alarms, 0.05, delta=0.012)


if __name__ == "__main__":
    unit.main()
