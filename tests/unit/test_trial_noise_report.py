"""What reports say of noise: in text, CSV, pictures and pages."""

import csv
import io
import tempfile
import unittest
from pathlib import Path

import numpy as np
from scipy import stats

import report_page
import trial_samples
import unit
from trial_samples import noise_look as look
from trials.record import schema, store
from trials.report import noise_plot, page, plots, table
from trials.report.study import Study
from trials.statistics.dependence import dependence


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = str(Path(folder.name) / "record")

    def study(self, look_of, **options):
        """look_of(block): what stands with each trial of a block."""
        def alter(trial):
            trial["noise"] = look_of(trial["block"])
        trial_samples.make_record(self.path, alter=alter, **options)
        self.assertEqual(schema.validate(self.path), [])
        return Study(store.read(self.path))

    @staticmethod
    def slowed(_scenario, _name, block, rng):
        """As much as blocks are noisy, by percent(block)."""
        return 2e7 * (1 + percent(block) / 100) + rng.random() * 1e4


def percent(block):
    return 0.5 + block * 7 % 20


def noisy(block):
    return look(percent(block))


class Text(Case):
    def test_heading_and_note_of_dependence(self):
        text = table.text(self.study(noisy, times=self.slowed))
        self.assertRegex(text, r"noise +before a trial the worst CPU lost "
                         r"10\.0 % of its time at the median, 19\.5 % at most"
                         r"\n")
        self.assertRegex(text, r"pagecache, reference: the noisier, the "
                         r"longer \(rank\s+correlation \+(?:0\.9\d|1\.00), "
                         r"p <0.0001\)")
        self.assertRegex(text, r"\nreference +20 .*\bnoise\b")

    def test_a_busy_machine_is_told_on_top(self):
        wanted = ("Others took 79 % of a CPU before the median trial: the "
                  "times are those of a machine that was busy")
        for lost, told in ((79.0, True), (1.0, False)):
            self.path += "3"
            study = self.study(lambda block, lost=lost: look(lost))
            self.assertEqual(
                wanted in " ".join(table.text(study).split()), told)
            doubt = page.render(study).partition('class="doubt"')[2]
            self.assertEqual(wanted in doubt.partition("</div>")[0], told)

    def test_no_note_without_dependence(self):
        text = table.text(self.study(noisy))
        self.assertNotIn("the noisier", text)
        self.assertNotRegex(text, r"\nreference .*noise")

    def test_limit_labels_what_is_above(self):
        study = self.study(
            lambda block: look(percent(block), limit=15,
                               over=percent(block) > 15),
            sweep_text=trial_samples.SWEEP)
        for block in (0, 1):
            study.looks[5 * block].noise["waited_ns"] = 10**9
        text = table.text(study)
        self.assertIn("25 of 100 trials began above the noise limit of 15 %; "
                      "their times are in", " ".join(text.split()))
        self.assertIn("waited 2.000 s before 2 of 20 blocks",
                      " ".join(text.split()))
        self.assertRegex(text, r"\ncontrol .*5 noisy")
        self.assertEqual({group.noisy for group in study.groups.values()},
                         {5})

    def test_unknown_is_told(self):
        study = self.study(
            lambda block: look(1.0, None if block == 3 else 2.0,
                               hosts=study_hosts), ranks=2)
        text = " ".join(table.text(study).split())
        self.assertIn("The noise before 1 of 20 trials is not known.", text)
        self.assertEqual(len(study.groups["pagecache", "reference"
                                          ].noise_percents), 19)
        found = self.words(lambda block: look(None))
        self.assertIn("noise not known", found)

    def words(self, look_of):
        self.path += "2"
        return " ".join(table.text(self.study(look_of)).split())

    def test_old_records_say_nothing(self):
        study = self.study(lambda block: None, sweep_text=trial_samples.SWEEP)
        self.assertNotIn("nois", table.text(study))
        for word in ("Noise", "noisy", 'id="noise"'):
            self.assertFalse(word in page.render(study), word)

    def test_csv(self):
        study = self.study(lambda block: look(percent(block), limit=15,
                                              over=percent(block) > 15)
                           if block else None, trials=4,
                           sweep_text=trial_samples.SWEEP)
        rows = list(csv.DictReader(io.StringIO(table.csv_trials(study))))
        self.assertEqual(
            [(row["noise_percent"], row["noise_over_limit"],
              row["noise_waited_ns"]) for row in rows if
             row["position"] in ("0", "2")],
            [("", "", "")] * 2 + [("7.5", "false", "0")] * 2
            + [("14.5", "false", "0")] * 2 + [("1.5", "false", "0")] * 2)


study_hosts = ["node00:7300", "node01:7300"]


class Pages(Case):
    def test_page_has_picture_and_table(self):
        study = self.study(
            lambda block: look(percent(block), limit=15,
                               over=percent(block) > 15),
            sweep_text=trial_samples.SWEEP, scenarios=("pagecache", "cache"))
        text = page.render(study)
        report_page.Page(text)
        self.assertIn('<section id="noise"', text)
        # A row for each block, though each trial has been watched
        self.assertEqual(text.count(">above 15 %</td>"), 5)
        environment = text[text.index('<section id="environment"'):]
        self.assertIn("the noise before each block", environment)
        self.assertIn("Noise is watched just before each trial", text)

    def test_picture_of_any_noise(self):
        for number, look_of in enumerate((
                noisy,
                lambda block: look(0 if block else 0.01),
                lambda block: look(0.02 if block else 100),
                lambda block: look(0.2 if block else 100),
                lambda block: look(2 + block / 10 if block else 90),
                lambda block: look(None if block % 2 else percent(block)),
                lambda block: look(percent(block)) if block > 1 else None)):
            self.path += str(number)
            study = self.study(look_of, scenarios=("pagecache", "cache"))
            for picture in plots.pictures(study):
                for width_px in (880, 358):
                    self.assertIn("<desc", picture.svg(width_px))
            self.assertEqual([p.name for p in plots.pictures(study)][-1],
                             "noise")

    def test_no_picture_where_nothing_differs(self):
        for number, look_of in enumerate((
                lambda block: look(1.0), lambda block: look(None),
                lambda block: None)):
            self.path += str(number)
            study = self.study(look_of, trials=3)
            self.assertEqual(noise_plot.shown(study), [])
            page.render(study)

    def test_failures_have_no_dot(self):
        study = self.study(noisy, times=lambda s, n, block, rng: (
            None if block < 18 else 2e7 + block))
        self.assertEqual(len(study.groups["pagecache", "reference"
                                          ].noise_trials), 2)
        page.render(study)


class Dependences(unittest.TestCase):
    def test_as_scipy_has_it(self):
        rng = np.random.default_rng(1)
        beside = rng.exponential(size=40)
        times = beside + rng.normal(size=40)
        found = dependence(times, beside)
        rho, p_value = stats.spearmanr(beside, times)
        self.assertEqual((found.count, found.rho, found.p_value),
                         (40, rho, p_value))
        self.assertGreater(found.rho, 0)
        self.assertTrue(found.found)

    def test_none_where_nothing_can_be_told(self):
        self.assertIsNone(dependence([], []))
        self.assertIsNone(dependence(range(9), range(9)))
        self.assertIsNone(dependence(range(12), [1] * 12))
        self.assertIsNone(dependence([1] * 12, range(12)))


if __name__ == "__main__":
    unit.main()
