"""What a sort costs, in a report of made records: figures, formulas, and what
is said of what was not measured."""

import csv
import io
import json
import tempfile
import unittest
from pathlib import Path

import trial_samples
import unit
from trials.base import text_table
from trials.cost import penny
from trials.record import claims, schema, store
from trials.report import cost, page, plots, table
from trials.report.study import Study

# A cent buys 1000 s.
PRICE = {"file": "/prices.csv", "currency": "USD", "total": "946.08",
         "seconds_per_cent": 1000.0, "parts": [
             {"part": "machine", "count": 2, "price": "473.04"}],
         "penny_sort": {
             "why_not": None, "memory_bytes": 1 << 30, "disk_rates": [
                 {"read": 1, "write": 1, "both": 1}] * 6,
             "records": [10**9 * n for n in (3, 1, 2, 6, 5, 4)],
             "room_bytes": 10**12, "disk_bytes": 10**13}}
INTEL = ["package-0", "package-0/core", "package-0/dram", "psys"]


def steady(_scenario, name, block, _rng):
    """20 ms of the reference, a little more or less; threads=1: twice that."""
    return (20_000_000 + 1000 * block) * (2 if name == "threads=1" else 1)


def uses(domains_uj, span_ns=None):
    """Each run takes so much."""
    def alter(trial):
        trial["energy"] = {
            "counter_span_ns": span_ns or trial["whole_ns"],
            "domains_uj": dict(domains_uj)}
    return alter


def measured(*domains, meter_times=None, why_not=(), meter_error=None):
    return {"domains": list(domains), "meter_times": meter_times,
            "meter_error": meter_error, "why_not": list(why_not)}


def memo(name):
    """What the JouleSort of 2011 says, of each run if it does."""
    claim = claims.find("psort-2011", name)
    return claim.get("value", list(claim.get("values", {}).values()))


class Report(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "record"

    def study(self, alter=None, **options):
        trial_samples.make_record(self.path, times=steady, alter=alter, **{
            "sweep_text": "sort.threads default | 1\n", "trials": 9,
            **options})
        self.assertEqual(schema.validate(str(self.path)), [])
        return Study(store.read(str(self.path)))

    def rows(self, study):
        return list(csv.DictReader(io.StringIO(table.csv_summary(study))))

    def test_nothing_was_asked_for(self):
        study = self.study()
        for text in (table.text(study), page.render(study)):
            self.assertNotIn("/cent", text)
            self.assertNotIn("energy", text.lower())
        self.assertNotIn("energy", table.csv_trials(study))
        self.assertEqual(self.rows(study)[0]["records_per_cent"], "")

    def test_older_record(self):
        study = self.study()
        before = table.text(study), page.render(study)
        design = json.loads((self.path / "design.json").read_text())
        del design["price"], design["energy"]
        (self.path / "design.json").write_text(json.dumps(design))
        lines = [json.loads(line) for line in
                 (self.path / "trials.jsonl").read_text().splitlines()]
        for line in lines:
            del line["energy"]
        (self.path / "trials.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in lines))
        self.assertEqual(schema.validate(str(self.path)), [])
        study = Study(store.read(str(self.path)))
        self.assertEqual((table.text(study), page.render(study)), before)

    def test_records_per_cent(self):
        study = self.study(price=PRICE)
        picture = plots.pictures(study)[-1]
        self.assertEqual(("price", "2 x machine 946.08 USD"),
                         (picture.name, picture.description))
        self.assertIn(">946.08 USD, 100 %<", picture.svg())
        summary = study.reference("pagecache").summary
        row = self.rows(study)[0]
        # 1,000,000 records in 20.004 ms, of 1000 s.
        self.assertEqual(summary.median_ns, 20_004_000)
        self.assertAlmostEqual(float(row["records_per_cent"]) / 1e9,
                               1 / 0.020004)
        interval = summary.median_interval_ns
        self.assertAlmostEqual(float(row["records_per_cent_low"]) / 1e9,
                               1e9 / interval.high)
        self.assertAlmostEqual(float(row["records_per_cent_high"]) / 1e9,
                               1e9 / interval.low)
        self.assertEqual(float(row["records_per_cent_confidence"]),
                         interval.confidence)
        text = table.text(study)
        self.assertRegex(text, r"(?m)^reference +9 +49\.99 k +49\.99 G \[")
        self.assertRegex(text, r"(?m)^threads=1 +9 +25\.00 k +25\.00 G \[")
        self.assertIn("/ 94,608 = 1000 s",
                      text.replace("\n      ", " "))
        self.assertIn("473.04", page.render(study))

    def test_penny_sort(self):
        found = cost.penny_records(self.study(price=PRICE))
        self.assertEqual(found.middle, 3.5e9)
        self.assertEqual((found.interval.low, found.interval.high),
                         (1e9, 6e9))
        self.assertEqual(found.interval.confidence, 1 - 2 / 2**6)

    def test_penny_sort_in_words(self):
        study = self.study(price=PRICE)
        for text in (table.text(study).replace("\n      ", " "),
                     page.render(study)):
            self.assertIn("PennySort by the model: 3.500 G [1.000, 6.000] "
                          "records (96.9 %), 350.0 GB, in one sort of 1000 s",
                          text)
            self.assertNotIn("more than the", text)
        study.design["price"]["penny_sort"]["disk_bytes"] = 10**11
        self.assertIn("needs 1.000 TB for input, scratch files and output, "
                      "more than the 100.0 GB",
                      table.text(study).replace("\n      ", " "))

    def test_penny_sort_not_predicted(self):
        study = self.study(price={
            **PRICE, "penny_sort": penny.unpredicted("the moon is full")})
        for text in (table.text(study), page.render(study)):
            self.assertIn("PennySort: not predicted: the moon is full.", text)

    def test_energy(self):
        study = self.study(uses({
            "package-0": 2_000_000, "package-0/core": 1_500_000,
            "package-0/dram": 500_000, "psys": 4_000_000}),
            energy=measured(*INTEL))
        text = table.text(study)
        # 2.5 J in 20.004 ms are 125 W.
        self.assertRegex(text, r"(?m)^reference +all +9 +2\.500 J "
                               r"\[2\.500, 2\.500\] +125\.0 +400\.0 k "
                               r"\[400\.0, 400\.0\]$")
        self.assertRegex(text, r"(?m)^reference +psys +9 +4\.000 J ")
        self.assertIn("Energy is that of package-0 + package-0/dram (all): ",
                      text)
        self.assertIn("was 0.00 % longer than the run",
                      text.replace("\n      ", " "))
        row = self.rows(study)[0]
        self.assertEqual(row["energy_domains"], "package-0 package-0/dram")
        self.assertEqual(float(row["joules"]), 2.5)
        self.assertEqual(float(row["records_per_joule"]), 400_000)
        first = next(csv.DictReader(io.StringIO(table.csv_trials(study))))
        self.assertEqual(first["energy_psys_uj"], "4000000")
        self.assertIn("4.000 J", page.render(study))

    def test_energy_of_a_meter(self):
        study = self.study(uses({"package-0": 10, "meter": 1_000_000},
                                40_000_000),
                           energy=measured("package-0", "meter",
                                           meter_times="ISO 8601"))
        text = table.text(study)
        self.assertRegex(text, r"(?m)^reference +meter +9 +1\.000 J .* 49\.99 "
                               r"+1\.000 M \[1\.000, 1\.000\]$")
        self.assertIn("Energy is that of the meter, by the trapezoid rule; its "
                      "log has times in ISO 8601.",
                      text.replace("\n      ", " "))

    def test_joule_sort(self):
        """The table of 2011, and the largest error of its energy."""
        seconds, watt_hours = (
            [memo(f"joule-{which}-pass-{what}")
             for which in ("first", "second")] for what in ("time", "energy"))

        def alter(trial):
            trial["begin_monotonic_ns"] = trial["trial"] * 3000 * 10**9
            each = [{"pass": name, "ns": round(s[trial["block"]] * 1e9),
                     "domains_uj": {"meter": round(
                         wh[trial["block"]] * 3600e6)}}
                    for name, s, wh in zip(("runs", "output"), seconds,
                                           watt_hours)]
            trial["energy"] = {
                "counter_span_ns": None, "passes": each, "domains_uj": {
                    "meter": sum(one["domains_uj"]["meter"]
                                 for one in each)}}
        # Its range is not told: the mean power itself, at the least.
        of_reading, of_range = memo("meter-error")
        watts = memo("joule-energy") / memo("joule-time")
        trial_samples.make_record(
            self.path, trials=5, alter=alter,
            times=lambda _scenario, _name, block, _rng: 1e9 * (
                seconds[0][block] + seconds[1][block]),
            energy=measured("meter", meter_times="ISO 8601", meter_error={
                "percent": of_reading, "watts": of_range / 100 * watts}))
        self.assertEqual(schema.validate(str(self.path)), [])
        study = Study(store.read(str(self.path)))
        text = table.text(study)
        for row in (r"reference +meter +5 +2.121 kJ ± 16\.9\d J +",
                    r"reference +meter, runs +5 +1.098 kJ ± 9\.0\d+ J +0\.768 ",
                    r"reference +meter, output +5 +1.022 kJ ± 7\.9\d+ J "):
            self.assertRegex(text, f"(?m)^{row}")
        self.assertIn("error (±) is 0.5 % of the energy and 0.00246",
                      text.replace("\n      ", " "))
        self.assertIn("± 16.9", page.render(study))
        rows = list(csv.DictReader(io.StringIO(table.csv_trials(study))))
        self.assertEqual(rows[2]["energy_runs_meter_uj"], str(round(
            watt_hours[0][int(rows[2]["block"])] * 3600e6)))
        self.assertEqual(rows[2]["energy_output_ns"], str(
            seconds[1][int(rows[2]["block"])] * 10**9))
        error = float(self.rows(study)[0]["joules_meter_error"])
        self.assertLessEqual(error, memo("joule-error"))
        self.assertEqual(round(error), memo("joule-error"))

    def test_a_pass_that_lacks_a_domain(self):
        study = self.study(uses({"package-0": 10, "package-0/dram": 1}),
                           energy=measured("package-0", "package-0/dram"))
        study.reference("pagecache").sample_trials[0]["energy"]["passes"] = [
            {"pass": "runs", "ns": 1, "domains_uj": {"package-0": 1}}]
        self.assertRegex(table.text(study),
                         r"(?m)^reference +all, runs +0 +- +- +-$")

    def test_energy_of_nothing(self):
        """Runs shorter than the counter's step."""
        study = self.study(uses({"package-0": 0}),
                           energy=measured("package-0"))
        self.assertRegex(table.text(study), r"(?m)^reference +package-0 +9 "
                         r"+0\.000 mJ \[0\.000, 0\.000\] +0\.000 +-$")

    def test_energy_not_measured(self):
        study = self.study(energy=measured(why_not=["no zone", "no <moon>"]))
        text = table.text(study)
        self.assertIn("Energy: not measured: no zone.", text)
        self.assertNotIn("energy of a run", text)
        self.assertIn("not measured: no &lt;moon&gt;.", page.render(study))

    def test_width(self):
        domains = {f"package-{n}{part}": 123_456_789
                   for n in range(4) for part in ("", "/core", "/dram")}
        study = self.study(uses(domains), energy=measured(*domains),
                           price=PRICE)
        text = table.text(study)
        self.assertLessEqual(max(map(len, text.splitlines())),
                             text_table.width())

    def test_wrong_record(self):
        study = self.study(uses({"psys": 1}), energy=measured("psys"),
                           price=PRICE)
        design = json.loads((self.path / "design.json").read_text())
        for change, why in (
                ({"energy": measured("psys", meter_error={
                    "percent": 101, "watts": 0})},
                 "101 is greater than the maximum"),
                ({"energy": measured("psys", "moon")},
                 "energy is not that of the design's domains"),
                ({"price": {**PRICE, "total": "1"}},
                 "the prices of all parts are not 1 in all"),
                ({"price": {**PRICE, "seconds_per_cent": 0}},
                 "price.seconds_per_cent: 0 is"),
                ({"price": {**PRICE, "total": "1e5"}}, "price.total: '1e5'")):
            (self.path / "design.json").write_text(
                json.dumps({**design, **change}))
            self.assertIn(why, " ".join(schema.validate(str(self.path))))
        self.assertEqual(len(study.strays), 0)


if __name__ == "__main__":
    unit.main()
