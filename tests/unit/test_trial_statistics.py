"""Summaries and flags: against simple references, and on planted truths.

The simulations have fixed seeds: what they found once they find always.
"""

import unittest
from itertools import product
from math import comb

import numpy as np

import unit
from scipy import stats
from trials.statistics import descriptive, sequence


def times(generator, count, middle_ns=23_700_000, sd_ratio=0.03):
    """Lognormal noise, as real runs have."""
    return np.rint(middle_ns * np.exp(
        generator.normal(0, sd_ratio, count)))


def share(trues):
    return float(np.mean(list(trues)))


class SummaryTest(unittest.TestCase):
    def test_figures_of_a_small_sample(self):
        found = descriptive.summarise([7, 1, 3, 5, 9, 100], seed=1)
        self.assertEqual((found.n, found.min_ns, found.max_ns), (6, 1, 100))
        self.assertAlmostEqual(found.mean_ns, 125 / 6)
        self.assertAlmostEqual(found.sd_ns, 38.8866, places=4)
        self.assertEqual(found.median_ns, 6)
        self.assertEqual(found.mad_ns, 3)  # of 1 1 3 3 5 94
        self.assertEqual(found.percentiles_ns["25"], 3.5)
        self.assertEqual(found.percentiles_ns["75"], 8.5)
        self.assertEqual(found.iqr_ns, 5)
        self.assertAlmostEqual(found.percentiles_ns["99.9"], 99.545)
        self.assertAlmostEqual(found.variation_ratio, 38.8866 * 6 / 125, 4)
        self.assertEqual(list(found.percentiles_ns), [
            "1", "5", "10", "25", "50", "75", "90", "95", "99", "99.9"])

    def test_too_few(self):
        self.assertIsNone(descriptive.summarise([], seed=1))
        one = descriptive.summarise([5], seed=1)
        self.assertEqual((one.median_ns, one.iqr_ns), (5, 0))
        self.assertIsNone(one.sd_ns)
        self.assertIsNone(one.variation_ratio)
        self.assertIsNone(one.mean_interval_ns)
        self.assertIsNone(one.median_interval_ns)
        self.assertIsNone(descriptive.median_interval([1, 2, 3, 4, 5]))
        self.assertIsNotNone(descriptive.median_interval([1, 2, 3, 4, 5, 6]))
        two = descriptive.mean_interval([5, 6], seed=1)
        self.assertTrue(two is None or 5 <= two.low <= two.high <= 6)

    def test_interval_of_the_mean_needs_many(self):
        """Of few samples it would not cover what it says."""
        for count, wanted in ((199, False), (200, True)):
            found = descriptive.summarise(range(1, count + 1), seed=1)
            self.assertEqual(found.mean_interval_ns is not None, wanted)

    def test_percentiles_of_few(self):
        for count, wanted in ((19, (False, False)), (20, (True, False)),
                              (99, (True, False)), (100, (True, True))):
            found = descriptive.summarise(range(1, count + 1), seed=1)
            self.assertEqual(tuple(
                found.shown_percentile_ns(percent) is not None
                for percent in ("95", "99")), wanted)

    def test_equal_samples_have_no_width(self):
        found = descriptive.summarise([5] * 200, seed=1)
        for interval in found.mean_interval_ns, found.median_interval_ns:
            self.assertEqual((interval.low, interval.high), (5, 5))
        self.assertEqual((found.sd_ns, found.mad_ns), (0, 0))

    def test_same_seed_same_interval(self):
        samples = times(np.random.default_rng(1), 200)
        first, again, other = (
            descriptive.mean_interval(samples, seed) for seed in (7, 7, 8))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_nothing_is_dropped(self):
        samples = times(np.random.default_rng(1), 50)
        samples[17] *= 40
        found = descriptive.summarise(samples, 1)
        self.assertEqual(found.n, 50)
        self.assertEqual(found.max_ns, samples[17])
        self.assertEqual(found.mean_ns, samples.mean())


class MedianIntervalTest(unittest.TestCase):
    def test_known_ranks(self):
        # Order statistics in the usual tables, and what they cover.
        for n, low, high, coverage in (
                (6, 1, 6, 0.9688), (10, 2, 9, 0.9785), (15, 4, 12, 0.9648),
                (20, 6, 15, 0.9586), (25, 8, 18, 0.9567),
                (50, 18, 33, 0.9672), (200, 86, 115, 0.9600)):
            found = descriptive.median_interval(np.arange(n, 0, -1))
            self.assertEqual((found.low, found.high), (low, high))
            self.assertAlmostEqual(found.confidence, coverage, places=4)

    def test_coverage_by_counting(self):
        for n in range(6, 60):
            found = descriptive.median_interval(np.arange(1, n + 1))
            outside = sum(comb(n, i) for i in range(int(found.low)))
            self.assertAlmostEqual(found.confidence, 1 - 2 * outside / 2**n)
            self.assertGreaterEqual(found.confidence, 0.95)
            more = outside + comb(n, int(found.low))
            self.assertLess(1 - 2 * more / 2**n, 0.95)

    def test_covers_the_median(self):
        generator = np.random.default_rng(20)
        for n in 20, 200:
            found = [descriptive.median_interval(generator.exponential(1, n))
                     for _ in range(3000)]
            covered = share(i.low <= np.log(2) <= i.high for i in found)
            self.assertAlmostEqual(covered, found[0].confidence, delta=0.01)


class MeanIntervalTest(unittest.TestCase):
    def test_covers_the_mean(self):
        # Fewer resamples than a report takes: it is many intervals.
        generator = np.random.default_rng(4)
        covered = share(
            i.low <= 1 <= i.high for i in (
                descriptive.mean_interval(generator.exponential(1, 100), 1,
                                          resamples=399)
                for _ in range(600)))
        self.assertAlmostEqual(covered, 0.95, delta=0.025)

    def test_is_corrected_for_skewness(self):
        # The sides of plain percentiles are both too low then.
        samples = np.random.default_rng(6).exponential(1, 60)
        found = descriptive.mean_interval(samples, 1)
        plain = stats.bootstrap(
            (samples,), np.mean, method="percentile",
            random_state=np.random.default_rng(1)).confidence_interval
        self.assertGreater(found.low, plain.low + 0.01)
        self.assertGreater(found.high, plain.high + 0.01)

    def test_is_near_to_students_for_normal_samples(self):
        samples = np.random.default_rng(5).normal(1000, 30, 400)
        found = descriptive.mean_interval(samples, 1)
        low, high = stats.t.interval(0.95, 399, samples.mean(),
                                     stats.sem(samples))
        self.assertAlmostEqual(found.low, low, delta=0.3)
        self.assertAlmostEqual(found.high, high, delta=0.3)


class OutlierTest(unittest.TestCase):
    def test_planted(self):
        samples = np.r_[np.arange(100, 120), 400, 101, 103, 2]
        found = descriptive.flags(samples)
        self.assertEqual(found.outliers, [20, 23])

    def test_modified_z(self):
        # By hand: median 4, deviations 3 1 0 1 96, MAD 1.
        np.testing.assert_allclose(
            descriptive.modified_z([1, 3, 4, 5, 100]),
            0.6745 * np.array([-3, -1, 0, 1, 96]))

    def test_half_of_the_samples_equal(self):
        samples = [100] * 19 + [101]
        self.assertEqual(descriptive.flags(samples).outliers, [19])
        self.assertEqual(descriptive.flags([100] * 20).outliers, [])

    def test_few(self):
        for samples in [], [5], [5, 6]:
            found = descriptive.flags(samples)
            self.assertEqual((found.outliers, found.words), ([], []))
            self.assertIsNone(found.drift)


class SequenceTest(unittest.TestCase):
    def setUp(self):
        self.generator = np.random.default_rng(6)

    def words(self, samples):
        return descriptive.flags(samples).words

    def test_drift_is_found(self):
        samples = times(self.generator, 200) * np.linspace(1, 1.1, 200)
        found = descriptive.flags(samples)
        self.assertEqual(found.words, ["drift"])
        self.assertAlmostEqual(found.drift.change_ratio, 0.1, delta=0.02)
        self.assertEqual(self.words(samples[::-1]), ["drift"])

    def test_drift_or_step(self):
        # Each is taken for itself, and explains what it brings with it.
        drifts, steps = [], []
        for _ in range(60):
            drifts.append(self.words(
                times(self.generator, 200) * np.linspace(1, 1.06, 200)))
            samples = times(self.generator, 200)
            samples[self.generator.integers(60, 140):] *= 1.06
            steps.append(self.words(samples))
        self.assertGreaterEqual(share(w == ["drift"] for w in drifts), 0.9)
        self.assertGreaterEqual(share(w == ["step"] for w in steps), 0.9)

    def test_slope_of_a_line(self):
        for n in 20, sequence.MOST_POINTS, 3 * sequence.MOST_POINTS + 7:
            line = 1_000_000 + 3.0 * np.arange(n)
            self.assertAlmostEqual(sequence.drift(line).change_ns,
                                   3 * (n - 1))

    def test_small_drift_is_no_matter(self):
        samples = times(self.generator, 5000, sd_ratio=0.005)
        samples *= np.linspace(1, 1.005, 5000)
        found = descriptive.flags(samples)
        self.assertLess(found.drift.p_value, 1e-6)
        self.assertFalse(found.drift.found)
        self.assertFalse(found.step.found)

    def test_step_is_found(self):
        samples = times(self.generator, 200)
        samples[120:] *= 1.04
        found = descriptive.flags(samples)
        self.assertEqual(found.words, ["step"])
        self.assertAlmostEqual(found.step.index, 120, delta=10)
        self.assertAlmostEqual(found.step.change_ratio, 0.04, delta=0.012)

    def test_pettitt_by_counting(self):
        samples = times(self.generator, 30)
        samples[18:] *= 1.1
        # His definition: the sum of signs of all pairs across the change.
        excess = [abs(sum(np.sign(b - a) for a, b in product(
            samples[:k], samples[k:]))) for k in range(1, 30)]
        found = sequence.step(samples)
        self.assertEqual(found.index, 1 + int(np.argmax(excess)))
        self.assertAlmostEqual(
            found.p_value, 2 * np.exp(-6 * max(excess)**2 / (30**3 + 30**2)))

    def test_neighbours_are_found(self):
        noise = self.generator.normal(0, 0.03, 200)
        for i in range(1, 200):
            noise[i] += 0.5 * noise[i - 1]
        found = descriptive.flags(np.exp(noise) * 1e7)
        self.assertIn("autocorrelated", found.words)
        self.assertAlmostEqual(found.neighbours.autocorrelation, 0.5,
                               delta=0.15)
        # Alternating ones, too: more runs than there should be.
        samples = times(self.generator, 200) * np.tile([1, 1.05], 100)
        self.assertIn("autocorrelated", self.words(samples))

    def test_runs_by_hand(self):
        # Median 5.5: low, high high, low low, high, low, high high, low
        found = sequence.neighbours(np.array([1, 8, 7, 3, 2, 9, 4, 10, 6, 5]))
        self.assertEqual(found.runs, 7)
        # Expected 2*5*5/10 + 1 = 6, variance 50*40/(100*9)
        self.assertAlmostEqual(
            found.runs_p_value, 2 * stats.norm.sf(1 / np.sqrt(20 / 9)))

    def test_autocorrelation_of_either_sign(self):
        for lag_sign in 1, -1:
            noise = self.generator.normal(0, 1, 400)
            for i in range(1, 400):
                noise[i] += lag_sign * 0.3 * noise[i - 1]
            found = sequence.neighbours(noise)
            self.assertLess(found.autocorrelation_p_value, 0.001)
            self.assertGreater(lag_sign * found.autocorrelation, 0.1)

    def test_a_slow_trial_is_no_trend(self):
        samples = times(self.generator, 200)
        samples[-1] *= 50
        samples[0] *= 50
        self.assertEqual(self.words(samples), [])

    def test_false_alarms(self):
        flags = [descriptive.flags(times(self.generator, 200))
                 for _ in range(250)]
        self.assertLess(share(f.drift.found for f in flags), 0.02)
        self.assertLess(share(f.step.found for f in flags), 0.02)
        self.assertLess(share(f.neighbours.found for f in flags), 0.02)

    def test_neighbours_keep_their_promise(self):
        found = [sequence.neighbours(self.generator.normal(0, 1, 200))
                 for _ in range(1000)]
        for p_values in ([f.autocorrelation_p_value for f in found],
                         [f.runs_p_value for f in found]):
            self.assertAlmostEqual(share(p < 0.05 for p in p_values), 0.05,
                                   delta=0.02)


if __name__ == "__main__":
    unit.main()
