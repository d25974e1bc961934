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
from trials.statistics import comparison

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
        compared = comparison.compare(EARLIER, AT_TERM, 1)
        found = compared.two_sample
        self.assertIsNone(compared.blocked)
        self.assertEqual(compared.name, "two-sample")
        self.assertEqual((found.u, found.method), (35, "exact"))
        self.assertAlmostEqual(found.p_value, 0.2544, places=4)
        self.assertAlmostEqual(found.superiority, 0.7)
        self.assertAlmostEqual(found.cliffs_delta, 0.4)
        self.assertEqual(compared.verdict(), comparison.NOT_SHOWN)
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
        compared = comparison.compare([5] * 30, [5] * 30, 1)
        found = compared.two_sample
        self.assertEqual((found.p_value, compared.verdict()),
                         (1, comparison.NOT_SHOWN))
        self.assertEqual((found.ratio, found.shift_ns), (1, 0))
        self.assertEqual(found.ratio_interval.low, 1)
        constants = comparison.compare([5] * 30, [6] * 30, 1)
        self.assertEqual(constants.verdict(), "slower")
        self.assertEqual(constants.two_sample.ratio_interval.high, 1.2)

    def test_too_few_to_tell(self):
        for n, wanted in ((1, comparison.TOO_FEW), (3, comparison.TOO_FEW),
                          (4, "slower")):
            found = comparison.compare(range(1, n + 1), range(100, 100 + n),
                                       1)
            self.assertEqual(found.verdict(), wanted)
            self.assertAlmostEqual(found.main.p_value,
                                   found.main.least_p_value)
        self.assertIsNone(comparison.compare(
            [1, 2, 3], [4, 5, 6], 1).two_sample.shift_interval_ns)

    def test_one_sample_against_several(self):
        """As in a run that was stopped in its second block."""
        for reference, samples in ([5, 7], [6]), ([6], [5, 7]), ([6], [7]):
            with self.subTest(reference=reference, samples=samples):
                found = comparison.compare(reference, samples, 1)
                self.assertIsNone(found.two_sample.ratio_interval)
                self.assertEqual(found.verdict(), comparison.TOO_FEW)


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
        for _ in range(30):
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
            for _ in range(700):
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

    def test_subset_sum_counts(self):
        for numbers in (1,), (1, 2, 3, 4), (2, 5, 5, 8), range(1, 8):
            wanted = np.zeros(sum(numbers) + 1, dtype=int)
            for signs in product((0, 1), repeat=len(numbers)):
                wanted[sum(n * s for n, s in zip(numbers, signs))] += 1
            self.assertEqual(comparison.subset_sum_counts(numbers).tolist(),
                             wanted.tolist())


class RatioTest(unittest.TestCase):
    def test_same_seed_same_interval(self):
        generator = np.random.default_rng(7)
        reference, samples = times(generator, 100), times(generator, 100)
        first, again, other = (comparison.compare(reference, samples, seed)
                               for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first.two_sample.ratio_interval,
                            other.two_sample.ratio_interval)

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
        compared = comparison.compare(times(generator, 200),
                                      times(generator, 200, 1.02), 1)
        self.assertEqual(compared.verdict(), "slower")
        self.assertEqual(compared.verdict(p_holm=0.06), comparison.NOT_SHOWN)
        found = compared.two_sample
        self.assertAlmostEqual(found.ratio, 1.02, delta=0.01)
        self.assertLess(found.ratio_interval.low, 1.02)
        self.assertGreater(found.ratio_interval.high, 1.02)
        self.assertLess(found.shift_interval_ns.low, 474_000)
        self.assertGreater(found.shift_interval_ns.high, 474_000)
        back = comparison.compare(times(generator, 200, 1.02),
                                  times(generator, 200), 1)
        self.assertEqual(back.verdict(), "faster")
        self.assertLess(back.two_sample.shift_ns, 0)

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


class BlockedTest(unittest.TestCase):
    def compare(self, reference, samples):
        """Of the same blocks."""
        blocks = range(len(reference)), range(len(samples))
        return comparison.compare(reference, samples, 1, blocks)

    def blocked(self, reference, samples):
        """Without the other analysis, which takes longer."""
        blocks = range(len(reference)), range(len(samples))
        return comparison.blocked(reference, samples, blocks)

    def test_published_example(self):
        # The tests are of differences: those of the ratios are of their logs.
        differences = np.array(BEFORE) - AFTER
        p_value, method = comparison.signed_rank_test(differences)
        self.assertEqual((p_value, method), (0.0390625, "exact"))
        self.assertEqual(comparison.paired_shift(differences)[0], 460)

    def test_signed_ranks_by_enumeration(self):
        # With ties and zeros, too: the signs of what moved are as likely.
        generator = np.random.default_rng(21)
        for n, spread in (6, 10**9), (9, 10**9), (8, 4), (11, 3), (3, 1):
            differences = generator.integers(-spread, spread + 1, n)
            moved = differences[differences != 0]
            ranks = stats.rankdata(np.abs(moved))
            middle = ranks.sum() / 2
            far = abs(ranks[moved > 0].sum() - middle)
            sums = [abs(np.dot(signs, ranks) - middle) for signs
                    in product((0, 1), repeat=len(moved))]
            self.assertAlmostEqual(
                comparison.signed_rank_test(differences)[0],
                float(np.mean(np.array(sums) >= far)))

    def test_signed_ranks_against_scipy(self):
        generator = np.random.default_rng(22)
        for n, method, their in ((7, "exact", "exact"), (50, "exact", "exact"),
                                 (51, "asymptotic", "approx")):
            differences = generator.permutation(10**6)[:n] - 400_000
            found = comparison.signed_rank_test(differences)
            self.assertEqual(found[1], method)
            self.assertAlmostEqual(found[0], stats.wilcoxon(
                differences, method=their, correction=True).pvalue)

    def test_ratio_of_constants(self):
        found = self.compare([2 * 10**7] * 12, [3 * 10**7] * 12)
        self.assertEqual((found.verdict(), found.name), ("slower", "blocked"))
        self.assertAlmostEqual(found.blocked.ratio, 1.5)
        self.assertAlmostEqual(found.blocked.ratio_interval.low, 1.5)
        self.assertAlmostEqual(found.blocked.ratio_interval.high, 1.5)
        self.assertEqual((found.blocked.superiority,
                          found.blocked.longer_count), (1, 12))

    def test_interval_and_test_agree(self):
        """1 is outside the interval just when the exact test says so."""
        generator = np.random.default_rng(23)
        seen = set()
        for _ in range(60):
            found = self.blocked(times(generator, 10),
                                 times(generator, 10, 1.02))
            interval = found.ratio_interval
            outside = not interval.low <= 1 <= interval.high
            self.assertEqual(found.p_value <= 0.05, outside)
            seen.add(outside)
        self.assertEqual(seen, {True, False})

    def test_covers_the_ratio_under_a_drift(self):
        generator = np.random.default_rng(24)
        for n in 15, 120:
            drift, covered = np.linspace(1, 1.3, n), []
            for _ in range(400):
                interval = self.blocked(
                    times(generator, n) * drift,
                    times(generator, n, 1.02) * drift).ratio_interval
                covered.append(interval.low <= 1.02 <= interval.high)
            self.assertAlmostEqual(share(covered), 0.95, delta=0.035)

    def test_a_drift_is_in_neither_estimate_nor_effect(self):
        generator = np.random.default_rng(13)
        drift = np.linspace(1, 1.5, 200)
        found = self.compare(np.rint(times(generator, 200) * drift),
                             np.rint(times(generator, 200, 1.02) * drift))
        self.assertEqual(found.verdict(), "slower")
        self.assertGreater(found.blocked.superiority, 0.55)
        self.assertAlmostEqual(found.blocked.ratio, 1.02, delta=0.007)
        self.assertGreater(found.blocked.ratio_interval.low, 1)
        # What stands beside it can't tell.
        self.assertGreater(found.two_sample.p_value, 0.05)
        self.assertAlmostEqual(found.two_sample.superiority, 0.5, delta=0.07)

    def test_blocks_are_matched(self):
        # A trial failed in each arm; the order within an arm does not matter.
        reference = {block: 1000 * (block + 1)
                     for block in range(20) if block != 3}
        samples = {block: 1000 * (block + 1) + 16 + block
                   for block in reversed(range(20)) if block != 11}
        found = comparison.compare(
            list(reference.values()), list(samples.values()), 1,
            (list(reference), list(samples)))
        self.assertEqual((found.n_reference, found.n), (19, 19))
        self.assertEqual(found.blocked.pairs, 18)
        self.assertEqual(found.blocked.p_value, 2 / 2**18)
        ratios = [samples[b] / reference[b] for b in samples if b in reference]
        means = [np.sqrt(a * b) for i, a in enumerate(ratios)
                 for b in ratios[i:]]
        self.assertAlmostEqual(found.blocked.ratio, np.median(means))

    def test_several_of_a_block_are_one(self):
        once = comparison.compare([5, 6, 7], [8, 9, 11], 1,
                                  (range(3), range(3)))
        more = comparison.compare([50, 6, 7, 5, 900], [8, 9, 11], 1,
                                  ([0, 1, 2, 0, 0], range(3)))
        self.assertEqual(once.blocked, more.blocked)

    def test_no_block_in_common(self):
        found = comparison.compare([5, 6, 7] * 9, [8, 9, 11] * 9, 1,
                                   (range(27), range(27, 54)))
        self.assertEqual((found.blocked.pairs, found.blocked.ratio), (0, None))
        self.assertEqual(found.verdict(), comparison.TOO_FEW)
        self.assertIsNone(found.blocked.superiority)

    def test_too_few_and_equal(self):
        for n, wanted in (5, comparison.TOO_FEW), (6, "slower"):
            found = self.compare(range(1, n + 1), range(100, 100 + n))
            self.assertEqual(found.verdict(), wanted)
            self.assertEqual(found.blocked.p_value,
                             found.blocked.least_p_value)
        few = self.compare(range(1, 6), range(2, 7)).blocked
        self.assertIsNone(few.ratio_interval)
        equal = self.compare(range(1, 11), range(1, 11))
        self.assertEqual((equal.blocked.p_value, equal.verdict()),
                         (1, comparison.NOT_SHOWN))
        self.assertEqual((equal.blocked.ratio, equal.blocked.superiority,
                          equal.blocked.longer_count), (1, 0.5, 0))

    def test_false_alarms(self):
        generator = np.random.default_rng(14)
        p_values = [self.blocked(times(generator, 30),
                                 times(generator, 30)).p_value
                    for _ in range(600)]
        self.assertAlmostEqual(share(p < 0.05 for p in p_values), 0.05,
                               delta=0.025)


class DriftTest(unittest.TestCase):
    """Randomised blocks on a machine that slows down by 30 % over the run."""

    BLOCKS = 200

    def verdicts(self, generator, slower, runs):
        drift = np.linspace(1, 1.3, self.BLOCKS)
        blocks = range(self.BLOCKS), range(self.BLOCKS)
        # What is counted is no bootstrap's.
        with mock.patch.object(comparison, "RESAMPLES", 9):
            return [comparison.compare(
                np.rint(times(generator, self.BLOCKS) * drift),
                np.rint(times(generator, self.BLOCKS, slower) * drift), 1,
                blocks).verdict() for _ in range(runs)]

    def test_drift_hides_no_difference(self):
        """A test that finds 99 of 100 finds fewer than 95 in one of 1800 such
        sets of runs; one that finds 80 finds as many in one of 50,000."""
        found = self.verdicts(np.random.default_rng(17), 1.02, 100)
        self.assertGreaterEqual(found.count("slower"), 95)
        self.assertEqual(found.count("faster"), 0)

    def test_drift_is_no_difference(self):
        runs = 200
        found = self.verdicts(np.random.default_rng(18), 1, runs)
        alarms = runs - found.count(comparison.NOT_SHOWN)
        self.assertGreaterEqual(alarms, stats.binom.ppf(0.0005, runs, 0.05))
        self.assertLessEqual(alarms, stats.binom.ppf(0.9995, runs, 0.05))


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
