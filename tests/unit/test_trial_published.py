#!/usr/bin/python3
"""results/trials/published: what answers a claim, and what a verdict says."""

import copy
import functools
import json
import os
import tempfile
import types
import unittest

import trial_samples
import unit
from report_page import Page
from trials.base.failure import Failure
from trials.base.programs import Programs
from trials.drawing.picture import Picture
from trials.published import (answers, benchmark, claims_page, claims_table,
                              dot_plot, figures, model_curves, passes_plot,
                              quantity, report, verdict)
from trials.published.answers import Answer, Answers

SWEEP = "tune.mtu 9000 | 1500\ntune.read-ahead 1024 | 0\n"


def times(scenario, name, block, rng):
    base_ns = {"cache": 40e6, "platter": 57e6}[scenario]
    more_ns = {"mtu=1500": 20e6, "read-ahead=0": 5e6}.get(name, 0)
    return base_ns + more_ns + rng.uniform(0, 1e5) + 1e4 * block


def claim(**members):
    return {"id": "a-claim", "place": "III", "what": "time of a sort",
            "statistic": "mean", "unit": "ms", "value": 39.8, **members}


def effect(name, value, arm):
    return claim(id=name, statistic="difference", value=value, ours={
        "by": "measured", "measure": "effect", "scenario": "platter",
        "arm": [arm], "statistic": "mean"})


@functools.lru_cache
def sources():
    """Records of a sweep, of weak scaling and of a machine."""
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "sweep")
        trial_samples.make_record(
            record, scenarios=("cache", "platter"), trials=12, times=times,
            sweep_text=SWEEP, records=benchmark.RECORDS)
        weak = os.path.join(folder, "weak")
        trial_samples.make_record(
            weak, scenarios=("cache",), trials=6,
            sweep_text="ranks.count 1 | 2 4\nscaling weak\n")
        machine = os.path.join(folder, "machine")
        os.mkdir(machine)
        lines = [{"schema": "blinktrial-measure-1", "part": "memory",
                  "what": "read", "host": None, "unit": "bytes/s",
                  "setting": {"area_bytes": area, "block_bytes": 64,
                              "threads": 1},
                  "samples": [rate], "why": None}
                 for area, rate in ((4096, 9e10), (1 << 28, 25.6e9))]
        with open(f"{machine}/characterisation.jsonl", "w",
                  encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        return [answers.read(each) for each in (record, weak, machine)]


@functools.lru_cache
def whole():
    """All documents, without a record."""
    return report.make(Programs(str(unit.ROOT / "bin")),
                       report.claims.names(), [])


class Records(unittest.TestCase):
    def of(self, *wanted):
        return [Answers(None, sources()).of(each) for each in wanted]

    def test_a_time_is_the_references(self):
        found = self.of(claim(ours={
            "by": "measured", "measure": "time", "scenario": "cache",
            "statistic": "mean"}))[0]
        self.assertEqual(1, len(found))
        self.assertAlmostEqual(40.1, found[0].value, delta=0.1)
        self.assertIn("sweep, 1 node, 12 trials", found[0].words)

    def test_an_effect_is_the_arms_less_the_references(self):
        found = self.of(effect("mtu", 75, "mtu=1500"))[0]
        self.assertAlmostEqual(20, found[0].value, delta=0.1)

    def test_an_effect_more_than_another_scenario(self):
        wanted = effect("overhead", 30, "")
        del wanted["ours"]["arm"]
        wanted["ours"]["less"] = "cache"
        found = self.of(wanted)[0]
        self.assertEqual(1, len(found))
        self.assertAlmostEqual(17, found[0].value, delta=0.1)
        self.assertTrue(found[0].shown)

    def test_an_effect_in_per_cent(self):
        found = self.of(effect("mtu", 5, "mtu=1500") | {"unit": "%"})[0]
        self.assertAlmostEqual(100 * 20 / 57, found[0].value, delta=0.1)

    def test_an_effect_of_a_part_of_the_cluster(self):
        """Two of sixteen nodes, each with as many records as there."""
        def of(**design):
            source = copy.deepcopy(sources()[0])
            source.study.design.update(design)
            return Answers(None, [source]).of(effect("mtu", 75, "mtu=1500"))

        found = of(records=125_000, hosts=["a", "b"])
        self.assertAlmostEqual(20, found[0].value, delta=0.1)
        self.assertIn("1 node of 16, 12 trials", found[0].words)
        self.assertEqual([], of(records=125_000, hosts=["a", "b", "c"]))
        self.assertEqual([], of(records=125_000, hosts=None))

    def test_no_record_has_the_arm(self):
        wanted = effect("msi", 1, "msi=off")
        self.assertEqual([[]], self.of(wanted))
        self.assertEqual("needs trials: platter with msi=off",
                         claims_table.cells(report.Answered(wanted, []))[0][2])

    def test_a_member_of_sorts_is_of_the_record_with_most(self):
        wanted = claim(unit="nodes", value=2, ours={
            "by": "measured", "measure": "sort", "scenario": "cache",
            "member": "trial", "statistic": "maximum"})
        found = self.of(wanted)[0]
        trials = [trial["trial"] for trial in sources()[0].study.run.trials
                  if trial["scenario"] == "cache"]
        self.assertEqual([max(trials)], [answer.value for answer in found])
        self.assertIn(f"sweep, {len(trials)} trials", found[0].words)

    def test_the_control_shows_no_effect(self):
        found = self.of(effect("control", 1, "control"))[0]
        self.assertEqual("no effect shown", verdict.of(
            effect("control", 1, "control"), found[0]))

    def test_a_machine_by_its_setting(self):
        found = self.of(claim(unit="MB/s", value=12800, ours={
            "by": "measured", "measure": "machine", "part": "memory",
            "what": "read", "setting": {"area_bytes": 1 << 28}}))[0]
        self.assertEqual([25600], [answer.value for answer in found])

    def test_figures_with_ours(self):
        found = figures.pictures(report.Report(
            whole().documents, sources(), whole().programs))
        names = [picture.name for picture in found]
        self.assertEqual(len(names), len(set(names)))
        for name in ("tritonsort-1", "tritonsort-9", "depsort-3",
                     "spsort-2-rates",
                     "datamation-2011-4-sweep", "psort-2011-1", "psort-2011-2",
                     "psort-2011-3", "figure-11-weak-cache"):
            self.assertIn(name, names)
        for picture in found:
            self.assertIn(picture.title, picture.svg())

    def test_records_with_little_in_them(self):
        spread = claim(ours={"by": "measured", "measure": "time",
                             "scenario": "cache", "statistic": "sd"})
        for options, names in (
                ({"most": 0, "sweep_text": SWEEP}, set()),
                ({"trials": 1, "sweep_text": SWEEP}, {
                    "datamation-2011-4-record", "psort-2011-2"}),
                ({"records": 0, "sweep_text": "ranks.count 1 | 2 4\n"
                  "scaling weak\n"}, {"psort-2011-2",
                                      "figure-4-record-cache",
                                      "figure-11-record-cache"})):
            with self.subTest(options), tempfile.TemporaryDirectory() as at:
                trial_samples.make_record(f"{at}/record", **{
                    "scenarios": ("cache",), "records": benchmark.RECORDS,
                    "trials": 3} | options)
                found = [answers.read(f"{at}/record")]
                drawn = figures.pictures(report.Report(
                    whole().documents, found, whole().programs))
                self.assertEqual(names, {
                    picture.name for picture in drawn
                    if "record" in picture.title})
                for picture in drawn:
                    picture.svg()
                self.assertEqual([], Answers(None, found).of(spread))

    def test_a_table_of_claims(self):
        ours = Answer("measured", "", {"b": 3})
        group = [report.Answered(claim(
            id=name, values={"a": 1000, "b": 2}, figure="8"), found)
            for name, found in (("stage-time", []), ("stage-size", [ours]))]
        self.assertEqual([(
            "Figure 8", "|>time, ms|>size, ms|>ours",
            [("a", "1,000", "1,000", ""), ("b", "2", "2", "3")])],
            figures.tables(group))
        self.assertEqual([], figures.tables(group[:1]))

    def test_figures_far_apart_have_plain_numbers_on_their_axis(self):
        rows = [dot_plot.Row("a", 0.4, [20]), dot_plot.Row("b", 2000, [3])]
        drawn = Picture("far", "Far", "Far.", "", lambda width_px:
                        dot_plot.draw(rows, "ms", width_px)).svg()
        self.assertIn(">1,000<", drawn)
        self.assertNotIn("$", drawn)

    def test_passes_of_a_record(self):
        trials = [{"whole_ns": 1, "ranks": [{"external": {"passes": [
            {"pass": "runs", "ns": ns, "read_bytes": 8 * ns,
             "written_bytes": 6 * ns},
            {"pass": "merges", "ns": 0, "read_bytes": 0, "written_bytes": 0},
            {"pass": "output", "ns": 3 * ns, "read_bytes": 6 * ns,
             "written_bytes": 9 * ns}]}}]} for ns in (10**9, 2 * 10**9)]
        found = passes_plot.of_group(types.SimpleNamespace(
            sample_trials=trials))
        self.assertEqual([
            ("input read", 0, 1.5, 8e9), ("scratch written", 0, 1.5, 6e9),
            ("scratch read", 1.5, 6, 2e9), ("output written", 1.5, 6, 3e9)],
            [(level.name, level.begin_s, level.end_s, level.bytes_per_s)
             for level in found])
        self.assertEqual([], passes_plot.of_group(types.SimpleNamespace(
            sample_trials=[{"whole_ns": 1, "ranks": [{}]}])))

    def test_the_order_of_effects(self):
        wanted = [effect("mtu", 75, "mtu=1500"),
                  effect("read-ahead", 80, "read-ahead=0"),
                  effect("nothing", 1, "control")]
        orders = report.orders([report.Answered(each, found) for each, found
                                in zip(wanted, self.of(*wanted))])
        self.assertEqual([["read-ahead", "mtu", "nothing"]],
                         [order.published for order in orders])
        self.assertEqual([["mtu", "read-ahead", "nothing"]],
                         [order.ours for order in orders])
        self.assertAlmostEqual(0.5, orders[0].correlation)


class Documents(unittest.TestCase):
    def setUp(self):
        self.found = whole()
        self.text = claims_table.text(self.found)

    def test_every_claim_is_there_once(self):
        lines = self.text.splitlines()
        for document, answered in self.found.documents:
            self.assertIn(document["document"], lines)
            for each in answered:
                self.assertTrue(any(line.split(" ")[0] == each.claim["id"]
                                    for line in lines), each.claim["id"])

    def test_a_terminal_is_wide_enough(self):
        self.assertLessEqual(max(map(len, self.text.splitlines())), 80)

    def test_claims_are_counted_once(self):
        self.assertEqual(sum(self.found.counts().values()), sum(
            len(document["claims"]) for document, _ in self.found.documents))

    def test_the_page_has_all_documents(self):
        page = Page(claims_page.render(self.found))
        self.assertEqual([], page.missing_references())
        self.assertEqual([], page.outside())
        for document, _ in self.found.documents:
            self.assertIn(document["document"], page.ids)

    def test_figures_without_figures_are_named(self):
        self.assertIn("Figures 2 to 7 are diagrams",
                      claims_page.render(self.found))

    def test_curves_of_the_model(self):
        """They are as the documents' figures are."""
        rates = [spread.middle for _, spread in model_curves.merging(
            self.found.programs).points]
        self.assertGreater(rates[0], 1.2 * rates[-1])
        for curve in model_curves.receiving(self.found.programs):
            self.assertTrue(all(spread.middle < 1.25e9
                                for _, spread in curve.points), curve.name)
        few, *_, many = model_curves.by_roles(
            self.found.programs, report.claims.find("depsort", "rate")[
                "ours"]["arguments"])
        self.assertGreater(few.points[0][1].middle,
                           1.2 * many.points[-1][1].middle)

    def test_a_member_that_no_plan_has(self):
        wanted = claim(ours={"by": "modelled", "member": "nothing",
                             "arguments": ["--suppose=2:1000",
                                           "--link-rate=1G"]})
        with self.assertRaisesRegex(Failure, "no nothing in the plan"):
            Answers(Programs(str(unit.ROOT / "bin")), []).of(wanted)


class Words(unittest.TestCase):
    def test_verdicts(self):
        for members, value, wanted in (
                ({"value": 40}, 40, "equal"), ({"value": 40}, 41, "the same"),
                ({"value": 40}, 80.0, "2 times"),
                ({"value": 40}, 20.0, "0.5 times"),
                ({"value": 1e6}, 100.0, "1/10,000"),
                ({"statistic": "difference", "value": 8}, 2.0, "0.25 times"),
                ({"statistic": "difference", "value": 8}, -1.0,
                 "opposite sign"),
                ({"statistic": "difference", "value": 8, "bound": "below"},
                 -1.0, "within the bound"),
                ({"statistic": "difference", "value": 8, "bound": "below"},
                 16.0, "2 times"),
                ({"statistic": "difference", "value": 0, "bound": "about"},
                 1.0, "effect shown"),
                ({"statistic": "difference", "value": 0, "bound": "above"},
                 1.0, "same sign"),
                ({"statistic": "difference", "value": 0, "bound": "above"},
                 -1.0, "opposite sign"),
                ({"value": "7a19cff467438"}, "7a19cff467438", "equal"),
                ({"value": None, "values": {"a": 4, "b": 4.01}},
                 {"a": 4, "b": 4}, "the same"),
                ({"value": None, "values": {"a": 2, "b": 4}},
                 {"a": 4, "b": 4}, "1 to 2 times")):
            self.assertEqual(wanted, verdict.of(
                claim(**members), Answer("measured", "", value)), members)

    def test_all_figures_of_a_claim_are_told(self):
        several = claim(values={"a": 2, "b": 1600})
        self.assertIn("a: 2; b: 1,600 ms (III)", claims_table.what(several))

    def test_ours_has_four_digits(self):
        for value, by, wanted in (
                (1.23456, "measured", "1.235 ms"),
                (35664.2, "measured", "35,664 ms"),
                (6.25, "checked", "6.25 ms"),
                ({"a": 3.0, "b": 3.0}, "modelled", "3 ms"),
                ({"a": 3.0, "b": 4.0}, "modelled", "2 figures")):
            self.assertEqual(wanted, claims_table.ours(
                claim(), Answer(by, "", value)))

    def test_units(self):
        for value, unit_, wanted, result in (
                (1.5e6, "ns", "ms", 1.5), (60e9, "ns", "min", 1),
                (1.25e9, "bytes/s", "Gbit/s", 10), (3600, "J", "Wh", 1),
                (2, "", "nodes", 2)):
            self.assertAlmostEqual(result, quantity.in_unit(
                value, unit_, wanted))
        with self.assertRaises(ValueError):
            quantity.in_unit(1, "ns", "MB/s")
        for member, wanted in (("a.elapsed_ns", "ns"),
                               ("rate_bytes_per_s", "bytes/s"),
                               ("whole_bytes", "bytes"), ("batches", ""),
                               ("passes.0.ns", "ns"),
                               ("phases_ns.order", "ns")):
            self.assertEqual(wanted, quantity.base_of(member))

    def test_files_beside_records_are_passed_over(self):
        self.assertIsNone(answers.read(str(unit.ROOT / "README.md")))


if __name__ == "__main__":
    unit.main()
