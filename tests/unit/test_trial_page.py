#!/usr/bin/python3
"""results/trials/report/page.py, and the pictures in it.

How it looks in a browser is check_report_page.sh's.
"""

import functools
import random
import re
import tempfile
import unittest
from xml.etree import ElementTree

import numpy as np

import trial_samples
import unit
from report_page import Page, picture_texts, segments
from trials.base import units
from trials.drawing import labels, overflow, style
from trials.record import store
from trials.report import (bars, overview, page, plots, run_sequence, table,
                           timeline)
from trials.report.study import Study

NASTY = '<script>alert("&amp;")</script>\' onload="x" $x_1$ ]]> --> \u202e'
PICTURES = ("overview", "distribution", "sweep", "phases", "run-sequence")


def read(**options):
    with tempfile.TemporaryDirectory() as folder:
        trial_samples.make_record(folder + "/r", **options)
        return store.read(folder + "/r")


def study_of(**options):
    return Study(read(**options))


def two_peaks(scenario, name, block, rng):
    """Cache and platter, apart; and a variant that fails now and then."""
    if name == "threads=4" and block % 3 == 0:
        return None
    base_ns = {"cache": 40e6, "platter": 74e6}.get(scenario, 24e6)
    return base_ns * rng.uniform(1, 1.05)


@functools.lru_cache
def whole():
    study = study_of(
        scenarios=("cache", "platter"), trials=12, times=two_peaks,
        sweep_text=trial_samples.SWEEP,
        changed=[{"key": "cpu.governor", "before": "a", "after": "b"}])
    return study, page.render(study)


class Whole(unittest.TestCase):
    """A sweep in two scenarios, with everything a page can have."""

    def setUp(self):
        self.study, self.text = whole()
        self.page = Page(self.text)

    def test_every_picture_in_both_widths(self):
        self.assertEqual(
            [f"{name}-{width}" for name in PICTURES
             for width in (style.WIDE, style.NARROW)],
            list(self.page.pictures()))

    def test_ids_are_unique_and_references_resolve(self):
        self.assertEqual(len(self.page.ids), len(set(self.page.ids)))
        self.assertEqual([], self.page.missing_references())

    def test_nothing_comes_from_elsewhere(self):
        self.assertEqual([], self.page.outside())

    def test_same_record_same_bytes(self):
        self.assertEqual(self.text, page.render(Study(self.study.run)))

    def test_pictures_say_what_they_are(self):
        for root in self.page.pictures().values():
            self.assertEqual("img", root.get("role"))
            self.assertTrue(all(
                root.find(f"{{http://www.w3.org/2000/svg}}{name}").text
                for name in ("title", "desc")))
        self.assertEqual(5, self.page.elements.count("figcaption"))

    def test_figures_are_those_of_the_samples(self):
        for group in self.study.groups.values():
            for value in (np.median(group.samples_ns), group.samples_ns.min(),
                          group.samples_ns.max(), group.samples_ns.mean()):
                self.assertIn(units.milliseconds(value), self.page.text)

    def test_it_tells_of_all_that_a_reader_must_know(self):
        for words in (
                "raid-chunk=1M", "a new array destroys",
                "4 of 12 trials failed", "Input/output error",
                "environment changed during the run: cpu.governor",
                "no difference shown, as it should be", "input-resident",
                "all 56",
                "blinktrial", "seed 1", "0123abc", "10.1109/CLUSTER.2011.75"):
            self.assertIn(words, self.page.text)

    def test_the_published_figures_are_another_machines(self):
        texts = picture_texts(self.page.pictures()["overview-880"])
        self.assertEqual(
            ["2011, memo: 57 ms", "2011, memo: < 40.8 ms",
             "2011, paper: < 39.8 ms", "2011, paper: < 73.8 ms"],
            sorted(text for text in texts if text.startswith("2011")))
        self.assertIn("another machine's, of 16 nodes", self.page.text)

    def test_each_published_figure_has_its_document(self):
        for words in (
                "P. Bertasi, M. Bonazza, M. Bressan, E. Peserico, Datamation: "
                "a quarter of a century and four orders of magnitude later , "
                "IEEE CLUSTER 2011, doi 10.1109/CLUSTER.2011.75 .",
                "III; Figure 4: time of a sort from platter to platter, mean "
                "< 73.8 ms.",
                "P. Bertasi, F. Bogo, M. Bressan, E. Peserico, psort 2011 - "
                "pennysort, datamation, joulesort , 2011.",
                "4.3; Figure 3: time of a sort from platter to platter, median "
                "57 ms."):
            self.assertIn(words, self.page.text)


class Pictures(unittest.TestCase):
    def roots(self, **options):
        study = study_of(**options)
        return study, Page(page.render(study)).pictures()

    def test_every_sample_is_drawn(self):
        study, roots = self.roots(trials=37)
        for width in (style.WIDE, style.NARROW):
            for name in "overview", "distribution", "run-sequence":
                self.assertIn(37, segments(roots[f"{name}-{width}"]))

    def test_far_samples_are_drawn_in_a_strip(self):
        _, roots = self.roots(trials=60, times=lambda s, n, block, rng:
                              2e9 if block in (7, 20, 33)
                              else 20e6 + 1e4 * block)
        for name in "overview-880", "distribution-880":
            strokes = segments(roots[name])
            self.assertEqual((1, 1), (strokes.count(57), strokes.count(3)))
            texts = "|".join(picture_texts(roots[name]))
            self.assertIn("3 beyond|to 2.000 s", texts)
        texts = picture_texts(roots["run-sequence-880"])
        self.assertIn("| 3 beyond the axis, up to 2.000 s", texts)

    def test_one_far_slower_hides_no_other(self):
        """Neither on the axis of ratios nor on that of times in order."""
        slower = {"threads=1": 4, "threads=4": 1.03, "kernel=scalar": 1.06}
        study = study_of(
            trials=30, sweep_text=trial_samples.SWEEP,
            times=lambda _scenario, name, _block, rng:
            2e7 * slower.get(name, 1) * rng.lognormvariate(0, 0.01))
        names = [g.name for g in bars.ordered(study, "pagecache")]
        self.assertEqual(names[:3], ["threads=1", "kernel=scalar", "threads=4"])
        self.assertEqual({*names[3:]}, {"reference", "control"})
        roots = Page(page.render(study)).pictures()
        for width in (style.WIDE, style.NARROW):
            texts = picture_texts(roots[f"sweep-{width}"])
            self.assertEqual(1, sum(text.endswith(" →") for text in texts))
            shown = run_sequence.RunSequence(study, "pagecache", width)
            self.assertLess(shown.limits[1], 40)
            self.assertEqual(len(shown.beyond), 30)

    def test_a_step_has_one_trial_number(self):
        """In the picture, and among the notes of the text."""
        study = study_of(
            trials=60, sweep_text="sort.threads 1 | 2\n",
            times=lambda s, n, block, rng:
            (22e6 if block >= 40 else 20e6) * rng.uniform(0.99, 1.01))
        reference = study.reference("pagecache")
        number = reference.sample_trials[40]["trial"]
        self.assertNotEqual(40, number)
        words = run_sequence.RunSequence(study, "pagecache", style.WIDE).words
        self.assertTrue(any(f"jumps at trial {number}," in line
                            for line in words), words)
        self.assertIn(f"pagecache, reference: from trial {number} on the "
                      "times are", " ".join(table.text(study).split()))

    def test_only_the_benchmarks_size_is_beside_published_figures(self):
        run = read(trials=2)
        for options, count in (({}, 4), ({"record_bytes": 10}, 0),
                               ({"record_bytes": 100, "records": 1000}, 0)):
            run.design.update(options)
            self.assertEqual(count, len(overview.published(Study(run))))
        self.assertNotIn("2011", page.render(Study(run)))

    def test_failed_trials_are_marked(self):
        study, roots = self.roots(trials=9, times=lambda s, n, block, rng:
                                  None if block % 4 == 0 else 2e7)
        self.assertEqual(3, len(study.failures))
        self.assertIn("× 3 failed", picture_texts(roots["run-sequence-880"]))

    def test_resumed_sessions_are_marked(self):
        run = read(trials=8)
        first = run.environment["sessions"][0]
        run.environment["sessions"].append(
            {**first, "begin_unix_ns": run.trials[5]["begin_unix_ns"]})
        roots = Page(page.render(Study(run))).pictures()
        self.assertIn("resumed", picture_texts(roots["run-sequence-880"]))

    def test_dollars_are_no_formula(self):
        _, roots = self.roots(trials=1, alter=lambda trial: trial["ranks"][0][
            "phases_ns"].update({"$x_1$": 9_000_000}))
        self.assertTrue(any("$x_1$" in text for text
                            in picture_texts(roots["phases-880"])))

    def test_files(self):
        study = study_of(scenarios=("cache", "platter"), trials=30)
        for picture in plots.pictures(study):
            self.assertEqual(b"\x89PNG", picture.data("png")[:4])
            self.check_file(picture.data("svg").decode())

    def check_file(self, text):
        """It has no paper, and its texts have other colours in the dark."""
        self.assertNotIn(f"fill: {style.PAPER}", text)
        colours = set(re.findall('<text style="fill: (#[0-9a-f]{6})', text))
        self.assertIn(style.INK, colours)
        self.assertLessEqual(colours, set(style.DARK))
        ElementTree.fromstring(text)


class Hard(unittest.TestCase):
    """Records that are small, broken or hostile."""

    def test_one_and_two_trials(self):
        for trials in (1, 2):
            found = Page(page.render(study_of(
                trials=trials, sweep_text=trial_samples.SWEEP)))
            self.assertEqual(10, len(found.pictures()))

    def test_all_times_equal(self):
        found = Page(page.render(study_of(trials=8, times=lambda *_: 2e7)))
        self.assertEqual(8, len(found.pictures()))

    def test_nothing_succeeded(self):
        found = Page(page.render(study_of(trials=3, times=lambda *_: None)))
        self.assertEqual({}, found.pictures())
        self.assertIn("no time of the reference", found.text)
        self.assertIn("none of 3 trials succeeded", found.text)

    def test_only_the_reference_failed(self):
        found = Page(page.render(study_of(
            trials=3, sweep_text=trial_samples.SWEEP,
            times=lambda s, name, b, r: None if name == "reference"
            else 2e7)))
        self.assertEqual(["sweep-880", "sweep-358", "run-sequence-880",
                          "run-sequence-358"], list(found.pictures()))

    def test_wrong_output_is_said_first(self):
        found = Page(page.render(study_of(trials=5, alter=lambda trial: (
            trial["block"] in (1, 3) and trial.update(outcome="wrong")))))
        self.assertIn("The output of 2 trials was wrong", found.text)
        self.assertIn("median of 3 trials", found.text)

    def test_nothing_was_run(self):
        found = Page(page.render(study_of(trials=3, most=0)))
        self.assertIn("not run", found.text)

    def test_no_environment(self):
        run = read(trials=2, most=0)
        for environment in (None, {}, {"sessions": []}):
            run.environment = environment
            self.assertIn("pagecache", page.render(Study(run)))

    def test_a_clusters_machines_are_its_nodes(self):
        run = read(trials=1, ranks=2, most=0)
        run.environment["sessions"][0]["before"]["nodes"] = {
            "node00:7300": {"cpu": {"model_name": "one kind"}},
            "node01:7300": {"cpu": {"model_name": "another"}}}
        self.assertIn("on 2 nodes: one kind; another.",
                      Page(page.render(Study(run))).text)

    def test_a_fixed_order_is_told_of(self):
        run = read(trials=1, most=0)
        self.assertIn("in a random order", page.render(Study(run)))
        run.design["order"] = "sequence"
        self.assertIn("in a fixed order", page.render(Study(run)))

    def test_what_was_not_verified_says_so_everywhere(self):
        study = study_of(trials=2, alter=lambda trial: trial.update(
            scenario_met=None))
        found = Page(page.render(study))
        self.assertIn("blinksort trials: pagecache (unverified)", found.text)
        for root in found.pictures().values():
            self.assertTrue(any("pagecache (unverified)" in text
                                for text in picture_texts(root)))

    def test_text_of_a_record_is_never_markup(self):
        run = read(trials=6, sweep_text=trial_samples.SWEEP,
                   times=two_peaks, scenarios=("cache",))
        run.design.update(command=[NASTY], sweep_text=NASTY,
                          program_version=NASTY, run_id=NASTY,
                          scenarios=[NASTY])
        for configuration in run.design["configurations"]:
            configuration["name"] += f"{NASTY}\x1b[31m\n"
            if configuration["skipped"]:
                configuration["skipped"] = NASTY
        for trial in run.trials:
            trial["scenario"] = NASTY
            trial["configuration"] += f"{NASTY}\x1b[31m\n"
            trial["message"] = NASTY + "\ud800\x00\x1b[2J\nmore"
            trial["conditions"][0].update(name=NASTY, found=NASTY)
            for rank in trial["ranks"]:
                rank["phases_ns"][NASTY] = 5_000_000
        run.environment["sessions"][0].update(
            before={NASTY: {NASTY: NASTY}, "cpu": {"model_name": NASTY}},
            changed=[{"key": NASTY, "before": NASTY, "after": [NASTY]}])
        run.notes.append(NASTY)
        text = page.render(Study(run))
        text.encode("utf-8")
        found = Page(text)
        self.assertEqual([], found.outside())
        self.assertEqual(10, len(found.pictures()))
        self.assertEqual([], found.missing_references())
        self.assertIn(units.printable(NASTY).split("\ufffd")[0].strip(),
                      found.text)
        self.assertNotIn("\x1b", text)

    def test_a_sweep_on_sixteen_nodes_is_small_enough(self):
        sweep = "sort.splitters  0 | " + " ".join(
            str(number) for number in range(1, 15)) + "\n"
        with_less = len(page.render(study_of(
            trials=6, ranks=16, sweep_text=sweep)))
        with_more = len(page.render(study_of(
            trials=10, ranks=16, sweep_text=sweep)))
        # By the samples that 200 trials in two scenarios would add.
        each = (with_more - with_less) / 4
        self.assertLess(2 * (with_less + 194 * each), 2e6)


class Timelines(unittest.TestCase):
    def test_pieces_cover_the_process_without_gaps(self):
        for ranks in (1, 32):
            trial = read(trials=1, ranks=ranks).trials[0]
            for rank in trial["ranks"]:
                pieces = timeline.pieces(rank)
                at = rank["begin_ns"]
                for piece in pieces:
                    self.assertEqual(at, piece.begin_ns)
                    self.assertGreater(piece.length_ns, 0)
                    at += piece.length_ns
                self.assertEqual(rank["begin_ns"] + rank["process_ns"], at)
                self.assertEqual(list(rank["phases_ns"]),
                                 [p.name for p in pieces][:-2])

    def test_colours_are_told_apart(self):
        names = [*timeline.COLOURS, timeline.REST, timeline.OUTSIDE]
        names.remove("prepare")  # one machine's; open is a cluster's
        found = timeline.colours(names)
        self.assertEqual(names, list(found))
        self.assertEqual(len(names), len(set(found.values())))


class Fences(unittest.TestCase):
    def test_no_sample_is_lost(self):
        rng = random.Random(1)
        for _ in range(200):
            samples = [rng.lognormvariate(17, 0.05)
                       * (rng.choice((1, 1, 1, 1, 8)) if rng.random() < 0.1
                          else 1) for _ in range(rng.randrange(1, 80))]
            inside, beyond = overflow.split(samples)
            self.assertEqual(sorted(samples),
                             sorted([*inside, *beyond]))
            self.assertGreater(len(inside), 0.9 * len(samples))
            low, high = overflow.limits(inside)
            self.assertTrue(low <= min(inside) and max(inside) <= high)

    def test_a_second_peak_is_no_outlier(self):
        for others, far, beyond in ((80, 20, 0), (91, 9, 0), (95, 5, 5),
                                    (80, 1, 1)):
            samples = [20e6] * others + [90e6] * far
            self.assertEqual(beyond, len(overflow.split(samples)[1]))

    def test_the_fence_belongs_to_one_side(self):
        samples = [20e6 + 1e4 * number for number in range(100)]
        at = overflow.fence(samples + [1e9])
        for far in (0.999 * at, 0.95 * at, 0.9 * at):
            inside, beyond = overflow.split(samples + [far, 1e9])
            self.assertEqual(102, len(inside) + len(beyond))


class Labels(unittest.TestCase):
    WIDTH_PX = 800

    def place(self, values, words):
        made = [labels.Label(value, text)
                for value, text in zip(values, words)]
        with style.applied():
            labels.place(self.WIDTH_PX, made, (0, 100), self.WIDTH_PX)
        return made

    def test_no_text_covers_another_or_leaves_the_panel(self):
        rng = random.Random(2)
        for _ in range(60):
            count = rng.randrange(1, 6)
            made = self.place(
                [rng.uniform(0, 100) for _ in range(count)],
                ["x" * rng.randrange(3, 120) for _ in range(count)])
            for label in made:
                self.assertGreaterEqual(label.left_px, 0)
                self.assertLessEqual(label.right_px, self.WIDTH_PX)
            for a in made:
                for b in made:
                    if a is not b and a.row == b.row:
                        self.assertTrue(a.right_px < b.left_px
                                        or b.right_px < a.left_px)

    def test_lines_keep_clear_of_texts_where_they_can(self):
        made = self.place([10, 12, 14, 90], ["median 23.7 ms", "p95", "p99",
                                             "far away"])
        for a in made:
            for b in made:
                if a.row > b.row:
                    self.assertFalse(b.left_px < a.at_px < b.right_px)


if __name__ == "__main__":
    unit.main()
