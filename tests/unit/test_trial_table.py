"""Tables of made records: what stands there, and that it is true."""

import csv
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import unit
import trial_samples
from trials.base import text_table
from trials.record import store
from trials.report import page, table
from trials.report.study import Study

MACHINE = {"cpu": {"model_name": "A CPU of 2 GHz", "online": "0-1",
                   "frequency": {"governor": "powersave"}},
           "kernel": {"release": "6.1.0"}}


def noise(_scenario, name, _block, rng):
    """3 % of noise; threads=1 is 2 % slower."""
    slower = 1.02 if name == "threads=1" else 1
    return 23_700_000 * slower * rng.lognormvariate(0, 0.03)


class TableTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "record"

    def study(self, times=noise, machine=MACHINE, **options):
        # A seed by which the control does not differ: one in 20 does.
        settings = {"sweep_text": trial_samples.SWEEP, "trials": 30,
                    "seed": 2, **options}
        trial_samples.make_record(self.path, times=times, **settings)
        path = self.path / "environment.json"
        environment = json.loads(path.read_text())
        environment["sessions"][0]["before"] = machine
        path.write_text(json.dumps(environment))
        return Study(store.read(str(self.path)))

    def line(self, text, pattern):
        found = re.findall(pattern, text, re.MULTILINE)
        self.assertEqual(len(found), 1, f"{pattern} in\n{text}")
        return found[0]

    def test_heading(self):
        text = table.text(self.study(records=250_000))
        self.line(text, r"^machine +A CPU of 2 GHz, CPUs 0-1, "
                        r"governor powersave, Linux 6.1.0$")
        self.line(text, r"^blinksort +0123abc$")
        self.line(text, r"^input +250,000 records of 100 bytes, binary$")
        self.line(text, r"^trials +150 in order of blocks, seed 2$")
        self.line(text, r"^pagecache: times in ms$")

    def test_machine_not_recorded(self):
        text = table.text(self.study(machine={}, trials=2))
        self.line(text, r"^machine +not recorded$")

    def test_rows(self):
        study = self.study(trials=200)
        text = table.text(study)
        s = study.reference("pagecache").summary
        row = self.line(text, r"^reference +200 +0 .*$").split()
        self.assertEqual(row[3], f"{s.min_ns / 1e6:.2f}")
        self.assertEqual(row[4], f"{s.median_ns / 1e6:.2f}")
        self.assertEqual(row[-1], f"{s.percentiles_ns['99'] / 1e6:.2f}")
        self.assertIn("±", row)
        self.line(text, r"^reference +-( .*)?$")
        row = self.line(text, r"^threads=1 +1\.0.*$")
        self.assertIn("slower", row)
        self.assertIn("<0.0001", row)
        for name in "control", "threads=4", "kernel=scalar":
            row = self.line(text, rf"^{name} +[01]\..*$")
            self.assertIn(" ~", row)
            self.assertNotIn("slower", row)
            group = study.groups["pagecache", name]
            found = group.comparison
            shown = (found.blocked.p_value, found.two_sample.p_value) \
                if name == "control" else (group.p_holm,
                                           group.two_sample_p_holm)
            self.assertRegex(row, " {} .* ~ +{}( |$)".format(
                *map(table.p_text, shown)))
        self.line(text, r"^verdicts   by the blocked test: .*ratios")
        self.assertIn("below 1 where it is faster", " ".join(text.split()))
        self.line(text, r"^sweep      reference: threads=default, "
                        r"kernel=default")
        self.line(text, r"^A/A        the control is the reference again")
        self.line(text, r"^Not run:$")
        self.line(text, r"raid-chunk=1M: a new array destroys what is on the")
        self.assertNotIn("A/A control differs", text)

    def test_spread(self):
        """Beside the times, of an arm that is no slower."""
        study = self.study(lambda _scenario, name, _block, rng:
                           23_700_000 * rng.lognormvariate(
                               0, 0.09 if name == "threads=1" else 0.03),
                           trials=60)
        text = table.text(study)
        group = study.groups["pagecache", "threads=1"]
        found = group.spread
        self.assertEqual(group.spread_verdict, "wider")
        self.assertEqual(group.spread_p_holm, min(1, 3 * found.p_value))
        row = self.line(text, r"^threads=1 .* wider$").split()
        self.assertEqual(row[1:4], [
            f"{100 * group.summary.deviation_ratio:.3f}", "%",
            f"{found.ratio:.3f}"])
        self.assertEqual(row[4:6], [f"[{found.interval.low:.3f},",
                                    f"{found.interval.high:.3f}]"])
        self.line(text, r"^reference +[\d.]+ % +-$")
        for name in "control", "threads=4", "kernel=scalar":
            self.line(text, rf"^{name} +[\d.]+ % .* ~$")
        rows = {row["configuration"]: row for row in csv.DictReader(
            io.StringIO(table.csv_summary(study)))}
        for key, wanted in (
                ("deviation_ratio", group.summary.deviation_ratio),
                ("spread_ratio", found.ratio),
                ("spread_ratio_low", found.interval.low),
                ("spread_p_value", found.p_value),
                ("spread_p_holm", group.spread_p_holm)):
            self.assertEqual(float(rows["threads=1"][key]), wanted)
        self.assertEqual([row["spread_verdict"] for row in rows.values()],
                         ["", "no difference shown", "wider",
                          *2 * ["no difference shown"]])
        shown = page.render(study)
        self.assertIn("Of their spreads, 1 wider.", shown)
        self.assertIn('<td class="slower">wider</td>', shown)
        self.assertIn(">↔<", shown)

    def test_width(self):
        def times(scenario, name, block, rng):
            return 100 * noise(scenario, name, block, rng)

        factors = ("sort.threads 1 | 2 12345678901234567890\n"
                   "sort.io auto | 12345678901234567890123456\n"
                   "sort.kernel auto | 1234567890123456789012345\n"
                   "factorial sort.threads sort.io sort.kernel\n"
                   "racing off\n")
        study = self.study(times, sweep_text=factors, trials=6)
        text = table.text(study)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)
        for group in study.groups.values():
            self.assertEqual(
                len(re.findall(rf"^{group.name}( |$)", text, re.MULTILINE)),
                3)

    def test_width_of_the_terminal(self):
        self.addCleanup(setattr, text_table, "_width", text_table.width())
        for columns, wanted in (("80", 80), ("1", 40), ("9999", 160)):
            with mock.patch.dict(os.environ, {"COLUMNS": columns}):
                text_table.follow_terminal()
            self.assertEqual(text_table.width(), wanted)
            self.assertLessEqual(len(text_table.wrapped(99 * "word ")
                                     .splitlines()[0]), wanted)

    def test_signs_are_explained(self):
        text = " ".join(table.text(self.study()).split())
        self.assertIn("~: no difference shown; ?: too few trials to tell", text)

    def test_unit_follows_the_times(self):
        for factor, unit_name in ((1e-4, "us"), (1e-7, "ns"), (1e3, "s")):
            study = self.study(
                lambda *where, f=factor: f * noise(*where), trials=6)
            self.line(table.text(study), rf"^pagecache: times in {unit_name}$")
            for path in self.path.iterdir():
                path.unlink()

    def test_control_that_differs(self):
        text = table.text(self.study(
            lambda scenario, name, block, rng: noise(scenario, name, block, rng)
            * (1.1 if name == "control" else 1)))
        self.line(text, r"!!! A/A control differs: pagecache: ")
        self.assertIn("slower", self.line(text, r"^control +1\.\d{4} .*$"))

    def test_failed_and_wrong(self):
        def alter(trial):
            if trial["configuration"] == "threads=4" and trial["block"] == 4:
                trial["outcome"] = "wrong"

        text = table.text(self.study(
            lambda scenario, name, block, rng: None
            if (name, block) == ("threads=1", 7)
            else noise(scenario, name, block, rng), alter=alter))
        self.line(text, r"^threads=1 +29 +1 ")
        self.line(text, r"^threads=4 +29 +1 ")
        self.line(text, r"pagecache, threads=1: 1 of 30 trials failed")
        self.line(text, r"!!! pagecache, threads=4: wrong output in 1 of 30")

    def test_nothing_succeeded(self):
        text = table.text(self.study(lambda *_: None, trials=3))
        self.line(text, r"^reference +0 +3 +- +-$")
        self.assertNotIn("passes", text)

    def test_too_few_to_tell(self):
        text = table.text(self.study(trials=3))
        # No interval either.
        self.assertIn(" ?", self.line(text, r"^control +[01]\.\d+  .*$"))

    def test_not_verified(self):
        study = self.study(
            scenarios=("pagecache", "platter"), trials=3,
            alter=lambda trial: trial.update(scenario_met=None)
            if trial["scenario"] == "platter" else None)
        text = table.text(study)
        self.line(text, r"^platter \(unverified\): times in ms$")
        self.line(text, r"^pagecache: times in ms$")
        self.line(text, r"conditions of platter were not all verified")
        rows = list(csv.DictReader(io.StringIO(table.csv_summary(study))))
        self.assertEqual({(row["scenario"], row["verified"]) for row in rows},
                         {("pagecache", "true"), ("platter", "false")})

    def test_measures(self):
        """Medians; what no machine has, and what is of no arm, is left out."""
        def alter(trial):
            trial["measures"] = trial_samples.measures(
                rng, user_ns=(trial["block"] + 1) * 10**6,
                minor_faults=1000, major_faults=7,
                left_processes=left if trial["block"] else 0)
        rng, left = random.Random(1), 0
        text = table.text(self.study(trials=3, alter=alter))
        self.line(text, r"^pagecache: what a process takes with all that it "
                  "starts, medians$")
        self.line(text, r"^configuration +user +system +peak memory "
                  r"+page faults +switches +read +written +instructions "
                  r"+cycles +branch misses$")
        self.line(text, r"^reference +2\.000 ms .* 3\.000 MiB +1,007 .* "
                  r"2,000,000 +500$")
        shutil.rmtree(self.path)
        left = 2
        study = self.study(trials=3, alter=alter)
        self.line(table.text(study), r"written +left behind +instructions")
        self.assertIn("what a process takes with all that it starts",
                      page.render(study))
        shutil.rmtree(self.path)
        self.assertNotIn("a process takes", table.text(self.study(trials=3)))

    def test_timing(self):
        timing = {"start_ns": {"lower_quartile": 180_000, "median": 190_000,
                               "upper_quartile": 210_000}, "starts": 50,
                  "counted_in": "user space", "not_counted": None}
        study = self.study(trials=3)
        self.assertNotIn("Starting a program", table.text(study))
        study.design["timing"] = timing
        words = " ".join(table.text(study).split())
        self.assertIn("start Starting a program that ends at once takes 190.0 "
                      "us here (half of the starts 180.0 us to 210.0 us);",
                      words)
        self.assertIn("are counted in user space only: the kernel", words)
        self.assertNotIn("not counted", words)
        self.assertIn("Starting a program that ends", page.render(study))
        timing.update(counted_in=None, not_counted="why")
        self.assertIn("Instructions and cycles are not counted: why.",
                      table.text(study))
        timing.update(counted_in="user space and kernel")
        self.assertIn("Not all events of the processor are counted: why.",
                      table.text(study))

    def test_beyond_memory(self):
        def alter(trial):
            trial["ranks"][0]["external"] = {
                "spilled_bytes": 3 << 30, "predicted_ns": trial["whole_ns"],
                "passes": [
                    {"pass": "runs", "ns": 10**9, "predicted_ns": 8 * 10**8,
                     "read_bytes": 4 << 30, "written_bytes": 3 << 30,
                     "stages": [
                         {"stage": "bucket", "workers": 2, "units": 8,
                          "bytes": 8 << 20, "busy_ns": 1 << 30,
                          "median_ns": 120_000, "waits": {
                              "read": {"ns": 9_000_000, "count": 1200}}},
                         {"stage": "put", "workers": None, "units": 0,
                          "bytes": 0, "busy_ns": None, "median_ns": None,
                          "waits": {"write": {"ns": None, "count": None}}}]},
                    {"pass": "merges", "ns": 0, "predicted_ns": None},
                    {"pass": "output", "ns": 2 * 10**9,
                     "predicted_ns": None}]}
        study = self.study(trials=3, alter=alter)
        text = table.text(study)
        self.line(text, r"^pagecache: passes of sorts beyond memory, medians$")
        self.line(text, r"^reference +all .* 1\.00 .* 3\.000 GiB spilled$")
        self.line(text, r"^reference +runs +1\.000 s +800\.0 ms +0\.80 "
                  r"+4\.000 GiB +3\.000 GiB$")
        self.line(text, r"^reference +output +2\.000 s +- +- +- +-$")
        self.assertNotIn(" merges ", text)
        self.line(text, r"^reference +runs +bucket +1\.000 MiB +120\.0 us +2 "
                  r"+14\.90 MiB/s +1\.074 s$")
        self.line(text, r"^reference +runs +put +- +- +- +- +-$")
        self.line(text, r"^reference +runs +bucket +read +9\.000 ms +1,200$")
        self.line(text, r"^reference +runs +put +write +- +-$")
        written = page.render(study)
        for words in ("stages of these passes", "waits of all threads",
                      "14.90 MiB/s", "1,200"):
            self.assertIn(words, written)

    def test_transports(self):
        """MPI_Init and MPI_Finalize are taken off, trial by trial, and the
        rest is beside UDP under the same mpirun with as many ranks."""
        def alter(trial):
            parameters = next(
                one["parameters"] for one in design["configurations"]
                if one["name"] == trial["configuration"])
            mpi = parameters["ranks.exchange"] == "mpi-tcp"
            ranks = [dict(trial["ranks"][0]) for _ in range(3)]
            for number, rank in enumerate(ranks):
                rank.update(rank=number, elapsed_ns=(number + 1) * 10**6,
                            mpi_init_ns=mpi and (1, 6, 7)[number] * 10**6
                            or None,
                            mpi_finalize_ns=mpi and 2 * 10**6 or None)
            trial["ranks"] = ranks
            trial["whole_ns"] = 10**6 * (
                (28 if mpi else 10)
                * int(parameters["ranks.count"]) // 2 + trial["block"])

        text = ("ranks.exchange udp | mpi-tcp\nranks.count 2 | 16\n"
                "factorial ranks.exchange ranks.count\nracing off\n")
        design = trial_samples.make_design(sweep_text=text)
        found = self.study(trials=3, sweep_text=text, alter=alter)
        text = table.text(found)
        self.line(text, "^pagecache: MPI_Init and MPI_Finalize apart, medians;")
        # Whole 29, 6 and 2 off; and 20 / 10, 21 / 11, 22 / 12.
        self.line(text, r"^2 +openmpi +mpi-tcp +3 +29\.00 ms +6\.000 ms "
                        r"+2\.000 ms +21\.00 ms +1\.91 +3\.000 ms$")
        self.line(text, r"^2 +openmpi +udp +3 +11\.00 ms +- +- +11\.00 ms +- "
                        r"+3\.000 ms$")
        # 216 / 80 and so on: as many ranks, not the reference.
        self.line(text, r"^16\* +openmpi +mpi-tcp .* 2\.68 +3\.000 ms$")
        self.line(text, "16 ranks are more than the 2 CPUs of the machine")
        self.assertNotIn("2* ", text)
        rendered = page.render(found)
        self.assertIn("MPI_Init and MPI_Finalize apart", rendered)
        self.assertIn("16*", rendered)
        self.assertIn("16 ranks are more than the 2 CPUs", rendered)

    def test_not_complete(self):
        text = table.text(self.study(most=17))
        self.line(text, r"stopped in block 4 of 30, after 17 trials")

    def test_environment_changed(self):
        text = table.text(self.study(trials=2, changed=[
            {"key": "cpu.governor", "before": "a", "after": "b"}]))
        self.line(text, r"environment changed during the run: cpu.governor")

    def test_signs(self):
        def times(scenario, name, block, rng):
            time = noise(scenario, name, block, rng)
            if name == "threads=4":
                time *= 1 + block / 1500
            return 3 * time if (name, block) == ("control", 5) else time

        text = table.text(self.study(times, trials=200))
        row = self.line(text, r"^threads=4 +1\..*$")
        self.assertRegex(row, r"slower +[<0-9.]+ +drift")
        self.line(text, r"threads=4: the times drift by \+1\d\.\d\d % over")
        self.assertRegex(self.line(text, r"^control +[01]\..*$"),
                         r"~ +[0-9.]+ +[1-9] outlier")

    def test_signs_without_a_sweep(self):
        text = table.text(self.study(
            lambda scenario, name, block, rng: noise(scenario, name, block, rng)
            * (5 if block == 9 else 1), sweep_text=None))
        self.line(text, r"^reference +30 .* 1 outlier$")
        # No second table of nothing.
        self.assertNotIn("p (Holm)", text)

    def test_csv_of_trials(self):
        study = self.study(
            lambda scenario, name, block, rng: None if block == 1
            else noise(scenario, name, block, rng), trials=3, ranks=4)
        rows = list(csv.DictReader(io.StringIO(table.csv_trials(study))))
        self.assertEqual(len(rows), 15)
        for row, trial in zip(rows, study.run.trials):
            self.assertEqual(row["trial"], str(trial["trial"]))
            self.assertEqual(row["configuration"], trial["configuration"])
            self.assertEqual(row["outcome"], trial["outcome"])
            self.assertEqual(row["scenario_met"], "true")
            whole_ns = trial["whole_ns"]
            self.assertEqual(row["whole_ns"], str(whole_ns or ""))
            if whole_ns is None:
                self.assertEqual((row["ranks"], row["user_ns"]), ("0", ""))
                self.assertIn("Input/output error", row["message"])
                continue
            ranks = trial["ranks"]
            self.assertEqual(row["user_ns"],
                             str(sum(rank["user_ns"] for rank in ranks)))
            self.assertEqual(row["max_rss_bytes"], "120000000")
            self.assertEqual(row["phase_exchange_ns"],
                             str(ranks[0]["phases_ns"]["exchange"]))
            self.assertEqual(row["counter_interrupts"],
                             str(trial["counters"]["interrupts"]))
            self.assertEqual(row["counter_throttle_events"], "")
            self.assertEqual(row["runner_check_ns"], "90000000")

    def test_csv_has_no_formulas(self):
        """A record may be anybody's, and a spreadsheet obeys some cells."""
        def alter(trial):
            trial["message"] = "=HYPERLINK(1)"
        text = table.csv_trials(self.study(alter=alter, trials=2))
        self.assertEqual({row["message"] for row in csv.DictReader(
            io.StringIO(text))}, {"'=HYPERLINK(1)"})
        # Numbers stay numbers.
        self.assertEqual(table.as_csv([{"a": -1, "b": -0.5}], ["a", "b"]),
                         "a,b\n-1,-0.5\n")

    def test_csv_of_no_trials(self):
        lines = table.csv_trials(self.study(most=0)).splitlines()
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].startswith("trial,block,position,scenario,"))

    def test_csv_summary(self):
        study = self.study(trials=200)
        rows = {row["configuration"]: row for row in csv.DictReader(
            io.StringIO(table.csv_summary(study)))}
        self.assertEqual(list(rows), [g.name for g in study.groups.values()])
        group = study.groups["pagecache", "threads=1"]
        row = rows["threads=1"]
        blocked = group.comparison.blocked
        two_sample = group.comparison.two_sample
        for key, wanted in (
                ("median_ns", group.summary.median_ns),
                ("p99.9_ns", group.summary.percentiles_ns["99.9"]),
                ("median_low_ns", group.summary.median_interval_ns.low),
                ("mean_high_ns", group.summary.mean_interval_ns.high),
                ("blocked_ratio", blocked.ratio),
                ("blocked_ratio_low", blocked.ratio_interval.low),
                ("blocked_cliffs_delta", blocked.cliffs_delta),
                ("blocked_p_holm", group.p_holm),
                ("two_sample_ratio", two_sample.ratio),
                ("two_sample_ratio_high", two_sample.ratio_interval.high),
                ("two_sample_shift_high_ns",
                 two_sample.shift_interval_ns.high),
                ("two_sample_p_holm", group.two_sample_p_holm)):
            self.assertEqual(float(row[key]), wanted)
        self.assertEqual((row["verdict"], row["role"], row["n"]),
                         ("slower", "variant", "200"))
        self.assertEqual((row["analysis"], row["blocked_pairs"]),
                         ("blocked", "200"))
        self.assertEqual(rows["reference"]["blocked_p_value"], "")
        self.assertEqual(rows["reference"]["analysis"], "")

    def test_no_matplotlib(self):
        self.study(trials=2)
        code = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                "from trials.record import store\n"
                "from trials.report import changes, export, study, table\n"
                "found = study.Study(store.read(sys.argv[2]))\n"
                "table.text(found), table.csv_trials(found)\n"
                "assert 'matplotlib' not in sys.modules\n")
        subprocess.run([sys.executable, "-B", "-c", code,
                        str(unit.ROOT / "results"), str(self.path)],
                       check=True)


class GridTest(unittest.TestCase):
    def test_columns(self):
        self.assertEqual(
            text_table.grid("name|>n|verdict",
                            [["a", "1", "~"], ["long one", "100", "slower"]]),
            "name        n  verdict\n"
            "a           1  ~\n"
            "long one  100  slower")

    def test_name_that_is_too_long(self):
        lines = text_table.grid(
            "name|>n", [["x" * 120, "5"], ["y", "66"]]).splitlines()
        self.assertEqual(lines[1], "x" * 120)
        self.assertEqual(lines[2], " " * 96 + "   5")
        self.assertEqual(lines[3], "y" + " " * 95 + "  66")

    def test_a_cell_is_one_line(self):
        self.assertEqual("name  of\na\ufffdb    1", text_table.grid(
            "name|>of", [["a\nb", "1"]]))

    def test_no_rows(self):
        self.assertEqual(text_table.grid("figures|>", []), "figures")

    def test_signs_are_broken_into_lines(self):
        lines = text_table.grid(
            "name|signs",
            [["x" * 70, "unverified, autocorrelated, 12 outliers"]]
        ).splitlines()
        self.assertEqual(lines[1:], [
            "x" * 70 + "  unverified, autocorrelated,",
            " " * 72 + "12 outliers"])

    def test_p(self):
        self.assertEqual([table.p_text(p) for p in (0.00009, 0.0123, 1)],
                         ["<0.0001", "0.0123", "1.0000"])


if __name__ == "__main__":
    unit.main()
