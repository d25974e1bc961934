"""Prices, counters of energy and meters: what is read, what is refused, and
what comes out of figures that others have published."""

import json
import os
import shutil
import tempfile
import time
import unittest
from types import SimpleNamespace
from unittest import mock

import numpy as np

import unit
from trials.base.failure import FILE, Failure
from trials.cost import energy, meter, penny, powercap, price
from trials.record import claims
from trials.report.cost import Estimate

MACHINES = unit.ROOT / "tests/data/machines"


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="blinksort-cost.")
        self.addCleanup(shutil.rmtree, self.folder)

    def put(self, text, name="file"):
        path = f"{self.folder}/{name}"
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def refused(self, call, *arguments):
        with self.assertRaises(Failure) as caught:
            call(*arguments)
        self.assertEqual(caught.exception.status, FILE)
        text = str(caught.exception)
        self.assertNotIn("\n", text)
        return text


HEAD = "part,count,price,currency\n"


def memo(name):
    """What the memo of 2011 says."""
    claim = claims.find("psort-2011", name)
    return claim.get("values", claim.get("value"))


def sums(*names):
    """Of each run in its table, the sum of these columns."""
    columns = [memo(name) for name in names]
    return [sum(column[run] for column in columns) for run in columns[0]]


class Price(Case):
    def read(self, text):
        return price.read(self.put(text))

    def test_example(self):
        found = price.read(str(unit.ROOT / "results/prices-example.csv"))
        self.assertEqual((found["currency"], found["total"]),
                         ("USD", "540.75"))
        self.assertEqual(found["parts"][2], {
            "part": "memory 16 GiB", "count": 2, "price": "42.25"})

    def test_sum_is_exact(self):
        found = self.read(HEAD + "a,3,0.1,EUR\n\n# b\nc, 1 , 1.0001 ,EUR")
        self.assertEqual(found["total"], "1.3001")
        self.assertEqual(len(found["parts"]), 2)
        self.assertAlmostEqual(found["seconds_per_cent"],
                               94_608_000 / 130.01)

    def test_columns_in_any_order(self):
        found = self.read("\ufeffCurrency,note,price,Part,count\r\n"
                          'CHF,"cheap, used",7,"a, b",2\r\n')
        self.assertEqual(found["parts"], [
            {"part": "a, b", "count": 2, "price": "7"}])
        self.assertEqual((found["currency"], found["total"]), ("CHF", "14"))

    def test_refused(self):
        for text, why in (
                ("", "file: has no price"),
                ("# nothing\n", "file: has no price"),
                (HEAD, "file: has no price"),
                ("part,count,price\na,1,2\n", ":1: has no column currency"),
                ("a,1,2,USD\n", ":1: has no column part"),
                (HEAD.replace("part", "part,part"),
                 ":1: has several columns part"),
                (HEAD + "a,1,2,\n", ":2: has no currency"),
                (HEAD + "a,1,2\n", ":2: has no currency"),
                (HEAD + ",1,2,USD\n", ":2: has no part"),
                (HEAD + "a,1,2,USD\nb,1,2,EUR\n",
                 ":3: is in EUR, and lines before it in USD"),
                (HEAD + "a,1,2,$\n", ":2: currency '$' is not a code"),
                (HEAD + "a,1,-2,USD\n", ":2: price '-2' is not a number"),
                (HEAD + "a,1,nan,USD\n", ":2: price 'nan' is not a number"),
                (HEAD + "a,1,1e9,USD\n", ":2: price '1e9' is not a number"),
                (HEAD + "a,1,inf,USD\n", ":2: price 'inf' is not a number"),
                (HEAD + "a,1,\u0661,USD\n", " is not a number"),
                (HEAD + "a,0,2,USD\n", ":2: count '0' is not a number"),
                (HEAD + "a,1.5,2,USD\n", ":2: count '1.5' is not a number"),
                (HEAD + "a,1,1,200,USD\n", ":2: has 5 fields, for 4 columns"),
                (HEAD + "a,1,0,USD\n", "file: has a total of 0"),
                (HEAD + 'a,1,"2,USD\n', ":2: is no line of CSV"),
                (b"part\xff\n", ":1: is not text in UTF-8"),
                ("part,count\ra,1\r", ":1: has a carriage return"),
                (HEAD + f"{'a' * 4096},1,2,USD\n",
                 ":2: is longer than 4096 bytes"),
                (HEAD + f"a,{'1' * 999},2,USD\n", "1' is not a number from 1"),
                (HEAD + f"a,1,{'x' * 999},USD\n", "x' is not a number such"),
                (HEAD + f"a,1,2,{'x' * 999}\n", "x' is not a code")):
            with self.subTest(text):
                said = self.refused(self.read, text)
                self.assertIn(why, said)
                self.assertLess(len(said), 200)
        self.assertIn("is not a regular", self.refused(price.read, "/dev/null"))
        self.assertIn("No such file", self.refused(
            price.read, f"{self.folder}/missing"))
        self.assertIn("is longer than", self.refused(
            self.read, HEAD + "#\n" * (1 << 20)))


class Published(unittest.TestCase):
    """What sortbenchmark.org's entries say of themselves, from what they had
    and took."""

    def test_penny_sort(self):
        # psort 2009: a PC of 427.86 USD had 2211 s; it sorted 67 * 2^25
        # records (Daytona, 224.8 GB) and 74 * 2^25 (Indy, 248.3 GB).
        seconds = 94_608_000 / 42_786
        self.assertEqual(int(seconds), 2211)
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/prices.csv"
            with open(path, "w", encoding="ascii") as file:
                file.write(HEAD + "PC,1,427.86,USD\n")
            found = price.read(path)
        self.assertEqual(int(found["seconds_per_cent"]), 2211)
        for records, gigabytes in ((67 << 25, 224.8), (74 << 25, 248.3)):
            a_cent = Estimate(2211e9, None).over(
                records * found["seconds_per_cent"] * 1e9)
            self.assertAlmostEqual(a_cent.middle * 100 / 1e9, gigabytes,
                                   delta=0.1)

    def test_penny_sort_of_a_list(self):
        lines = [f"{part},1,{total:.2f},USD\n"
                 for part, total in memo("price-list").items()]
        lines.append(f"assembly,1,{memo('price-assembly'):.2f},USD\n")
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/prices.csv"
            with open(path, "w", encoding="ascii") as file:
                file.write(HEAD + "".join(lines))
            found = price.read(path)
        self.assertEqual(len(lines), 9)
        self.assertEqual(float(found["total"]), memo("price"))
        self.assertEqual(int(found["seconds_per_cent"]), memo("budget"))

    def test_joule_sort(self):
        joules, seconds = memo("joule-energy"), round(memo("joule-time"))
        log = meter.Log("log")
        log.add(b"time,watts")
        for second in range(seconds + 3):
            log.add(b"%d,%.5f" % (1000 + second, joules / seconds))
        found_uj = log.microjoules(1000.5, 1000.5 + seconds)
        self.assertAlmostEqual(found_uj / 1e6, joules, delta=0.1)

    def test_joule_sort_of_five_runs(self):
        """Both passes of each, and what the text says of all."""
        seconds = sums("joule-first-pass-time", "joule-second-pass-time")
        self.assertEqual(round(np.mean(seconds)), memo("joule-time"))
        for parts, whole in zip(
                sums("joule-first-pass-energy", "joule-second-pass-energy"),
                sums("joule-energy-wh")):
            self.assertAlmostEqual(parts, whole, delta=0.0002)
        joules = sums("joule-energy-j")
        for watt_hours, each in zip(sums("joule-energy-wh"), joules):
            self.assertAlmostEqual(watt_hours * 3600, each, delta=0.5)
        self.assertEqual(round(np.mean(joules)), memo("joule-energy"))
        # The table is rounded.
        self.assertAlmostEqual(np.std(joules, ddof=1), memo("joule-sd"),
                               delta=0.1)

    def test_joule_sort_of_seconds_and_watts(self):
        # FAWNSort 2010: 21.2 s at 104.9 W; published 2228 J (of unrounded
        # figures) and 44,884 records a joule.
        log = meter.Log("log")
        for line in ("time,watts", "0,104.9", "4,104.9", "8,104.9", "12,104.9",
                     "16,104.9", "20,104.9", "24,104.9"):
            log.add(line.encode())
        joules = log.microjoules(1, 22.2) / 1e6
        self.assertAlmostEqual(joules / 2228, 1, delta=0.002)
        self.assertAlmostEqual(1e8 / joules / 44_884, 1, delta=0.002)


class Meter(Case):
    def log(self, *lines, head="time,watts"):
        log = meter.Log("m.csv")
        for line in (head, *lines):
            log.add(line.encode())
        return log

    def test_trapezoids(self):
        log = self.log("10,100", "11,200", "12,0", "13,0")
        for begin_s, end_s, joules in (
                (10, 13, 250), (10, 11, 150), (10.5, 11.5, 162.5),
                (10.25, 10.75, 75), (12, 13, 0), (11, 11, 0)):
            self.assertEqual(log.microjoules(begin_s, end_s), joules * 10**6)

    def test_columns_and_times(self):
        log = self.log("5,2026-11-25T21:48:22.5Z",
                       "7,2026-11-25T22:48:23.5+01:00", "# pause", "",
                       head="Watts,Time")
        self.assertEqual(log.times_s, [1795643302.5, 1795643303.5])
        self.assertEqual(log.watts, [5, 7])
        self.assertEqual(log.kind, "ISO 8601")
        self.assertEqual(self.log("1.5e0,1").kind, "seconds since 1970")
        # Columns that are not used may have one name, or none.
        self.assertEqual(self.log("1,230,231,7,,", head="time,volts,volts,"
                                  "watts,,").watts, [7])

    def test_does_not_cover(self):
        log = self.log("10,1", "11,1")
        for begin_s, end_s in ((9.9, 10.5), (10.5, 11.1)):
            self.assertIn("m.csv: does not cover a run", self.refused(
                log.microjoules, begin_s, end_s))
        self.refused(self.log().microjoules, 10, 11)

    def test_hole(self):
        """It is no harm to runs before and behind it, of which a log that is
        kept for long has some."""
        log = self.log("10,1", "11,1", "16.5,1", "17.5,1", "22.5,1")
        for begin_s, end_s in ((10, 11), (10.5, 11), (16.5, 17), (17, 22)):
            self.assertEqual(log.microjoules(begin_s, end_s),
                             (end_s - begin_s) * 10**6)
        for begin_s, end_s in ((10, 17), (10.5, 12), (12, 13), (16, 16.5),
                               (11, 16.5)):
            self.assertIn("m.csv: has a hole during a run: no reading from "
                          "11.000 to 16.500, which is more than 5 s",
                          self.refused(log.microjoules, begin_s, end_s))

    def test_refused(self):
        for lines, why in (
                (("1,5", "1,5"), ":3: its time is not after"),
                (("2,5", "1,5"), ":3: its time is not after"),
                (("1,-5",), ":2: watts '-5' is not a number"),
                (("1,nan",), ":2: watts 'nan' is not a number"),
                (("1,1e99",), ":2: watts '1e99' is not a number"),
                (("1,",), ":2: watts '' is not a number"),
                (("nan,1",), ":2: time 'nan' is neither"),
                (("-1,1",), ":2: time '-1' is neither"),
                (("99999999999,1",), ":2: time '99999999999' is not in"),
                (("10:00:00,1",), ":2: time '10:00:00' is neither"),
                (("2026-11-25T21:48:22,1",), ":2: time '2026-11-25T21:48:22' "
                                             "has no zone"),
                (("2026-11-25T21:48:22Z,1", "1795643303,1"),
                 ":3: time '1795643303' is not of the kind"),
                (("1,2,3",), ":2: has 3 fields, for 2 columns"),
                (("1",), ":2: has 1 fields, for 2 columns"),
                (("1," + "5" * 5000,), ":2: is longer than")):
            with self.subTest(lines):
                self.assertIn(why, self.refused(self.log, *lines))
        for head, why in (("1,5", "has no column time"),
                          ("time,volts", "has no column watts"),
                          ("time,time,watts", "has several columns time")):
            self.assertIn(f":1: {why}", self.refused(
                lambda head=head: self.log(head=head)))

    def lines(self, *behind_s):
        return "".join(f"{time.time() - one:.3f},5\n" for one in behind_s)

    def test_growing(self):
        path = self.put("time,watts\n" + self.lines(2, 1) + "17")
        log = meter.Growing(path)
        self.assertEqual(len(log.log.times_s), 2)
        end_s = log.log.times_s[-1] + 1

        def write(_):
            """What the meter does while one waits for it."""
            with open(path, "r+b") as file:
                file.seek(-2, 2)
                file.write(f"{end_s - .5:.3f},5\n{end_s + .5:.3f},5\n".encode())

        with mock.patch.object(meter.time, "sleep", write):
            self.assertEqual(log.microjoules(end_s - 1, end_s), 5_000_000)

    def test_does_not_grow(self):
        for text, why in (
                ("", "has no reading"), ("time,watts\n", "has no reading"),
                ("time,watts\n" + self.lines(3605, 3600),
                 "its last time is 3600 s ago: a meter that is running"),
                ("time,watts\n" + self.lines(-3600), "s from now")):
            self.assertIn(why, self.refused(meter.Growing, self.put(text)))
        with open(f"{self.folder}/file", "ab") as file:
            file.truncate(65 << 20)
        self.assertIn("is longer than 64 MiB", self.refused(
            meter.Growing, f"{self.folder}/file"))
        self.refused(meter.Growing, f"{self.folder}/missing")
        os.mkfifo(f"{self.folder}/pipe")
        self.refused(meter.Growing, f"{self.folder}/pipe")

    def test_stops(self):
        path = self.put("time,watts\n" + self.lines(2, 1))
        log = meter.Growing(path)
        with mock.patch.object(meter, "PATIENCE_S", 0.01):
            self.assertIn("does not cover", self.refused(
                log.microjoules, log.log.times_s[0], time.time() + 100))
        self.put("time,watts\n")
        self.assertIn("became shorter", self.refused(
            log.microjoules, 1, 2))


class Powercap(Case):
    def tree(self, machine):
        shutil.copytree(MACHINES / machine / "sys/class/powercap",
                        f"{self.folder}/powercap")
        return f"{self.folder}/powercap"

    def add(self, zone, more_uj):
        """Counts on, and begins anew, as the processor does."""
        folder = f"{self.folder}/powercap/{zone}"
        numbers = [int(unit.Path(folder, name).read_text())
                   for name in ("energy_uj", "max_energy_range_uj")]
        # Whole at any time, as the kernel's.
        unit.Path(folder, "new").write_text(
            f"{(numbers[0] + more_uj) % numbers[1]}\n")
        os.rename(f"{folder}/new", f"{folder}/energy_uj")

    def test_intel(self):
        zones, refused = powercap.find(self.tree("intel-desktop"))
        self.assertEqual([zone.domain for zone in zones], [
            "package-0", "package-0/core", "package-0/uncore",
            "package-0/dram", "psys"])
        self.assertEqual(refused, [])
        self.assertEqual(energy.headline([zone.domain for zone in zones]),
                         ["package-0", "package-0/dram"])

    def test_amd(self):
        zones, _ = powercap.find(self.tree("amd-server"))
        self.assertEqual([zone.domain for zone in zones], [
            "package-0", "package-0/core", "package-1", "package-1/core"])
        self.assertEqual(energy.headline([zone.domain for zone in zones]),
                         ["package-0", "package-1"])

    def test_counts(self):
        counter = powercap.Counter(powercap.find(
            self.tree("intel-desktop"))[0])
        counter.begin()
        self.add("intel-rapl:0", 5_000_000)
        self.add("intel-rapl:0:2", 7)
        self.add("intel-rapl-mmio:0", 1000)
        span_ns, found = counter.end()
        self.assertGreater(span_ns, 0)
        self.assertEqual(found, {
            "package-0": 5_000_000, "package-0/core": 0, "package-0/uncore": 0,
            "package-0/dram": 7, "psys": 0})
        counter.begin()
        self.assertEqual(counter.end()[1]["package-0"], 0)

    def test_begins_anew(self):
        counter = powercap.Counter(powercap.find(self.tree("amd-server"))[0])
        counter.begin()
        self.add("intel-rapl:0", 800_000_000)
        self.assertEqual(counter.end()[1]["package-0"], 800_000_000)
        self.assertLess(int(unit.Path(
            self.folder, "powercap/intel-rapl:0/energy_uj").read_text()),
            800_000_000)

    def test_begins_anew_twice(self):
        """A long run: the counter is read meanwhile."""
        counter = powercap.Counter(powercap.find(self.tree("amd-server"))[0])
        self.assertAlmostEqual(counter.period_s, 32.8, delta=0.1)
        counter.period_s = 0.001
        counter.begin()
        for _ in range(4):
            self.add("intel-rapl:0", 40_000_000_000)
            self.wait_until_seen(counter)
        self.assertEqual(counter.end()[1]["package-0"], 160_000_000_000)

    def wait_until_seen(self, counter):
        now = int(unit.Path(self.folder,
                            "powercap/intel-rapl:0/energy_uj").read_text())
        give_up = time.monotonic() + 60
        while counter._last_uj[0] != now and time.monotonic() < give_up:
            time.sleep(0.001)

    def test_between(self):
        """What was counted up to a time, if they were read meanwhile."""
        counter = powercap.Counter(powercap.find(self.tree("amd-server"))[0])
        counter.begin(period_s=0.001)
        times_ns = []
        for more_uj in 3_000_000, 5_000_000:
            self.add("intel-rapl:0", more_uj)
            self.wait_until_seen(counter)
            with counter._lock:
                times_ns.append(counter._readings[-1][0])
        counter.end()
        self.assertEqual([counter.sums_uj(at_ns)["package-0"]
                          for at_ns in times_ns], [3_000_000, 8_000_000])
        counter._readings = [(100, [0] * 4), (200, [10, 0, 0, 7])]
        self.assertEqual(list(counter.sums_uj(130).values()), [3, 0, 0, 2])

    def test_not_read_for_a_while(self):
        """What is counted meanwhile can't be known."""
        counter = powercap.Counter(powercap.find(self.tree("amd-server"))[0])
        path = unit.Path(self.folder, "powercap/intel-rapl:0/energy_uj")
        counter.period_s = 0.001
        counter.begin()
        # Whole at any time
        unit.Path(self.folder, "new").write_text("none")
        os.rename(f"{self.folder}/new", path)
        give_up = time.monotonic() + 60
        while not counter._failure and time.monotonic() < give_up:
            time.sleep(0.001)
        path.write_text("5\n")
        self.assertIn("'none' is no count of energy",
                      self.refused(counter.end))

    def test_two_of_a_name(self):
        folder = self.tree("intel-desktop")
        shutil.copytree(f"{folder}/intel-rapl:1", f"{folder}/intel-rapl:2")
        zones, _ = powercap.find(folder)
        self.assertEqual([zone.domain for zone in zones[-2:]],
                         ["psys", "psys#1"])

    def test_not_readable(self):
        def refuse(zone):
            raise Failure(f"{zone.folder}/energy_uj", "Permission denied", FILE)

        folder = self.tree("intel-desktop")
        with mock.patch.object(powercap.Zone, "read_uj", refuse):
            with self.assertRaisesRegex(
                    powercap.Unavailable,
                    "intel-rapl:0/energy_uj: Permission denied"):
                powercap.find(folder)

    def test_some_not_readable(self):
        folder = self.tree("intel-desktop")
        unit.Path(folder, "intel-rapl:1/energy_uj").unlink()
        unit.Path(folder, "intel-rapl:0:0/max_energy_range_uj").write_text("?")
        unit.Path(folder, "intel-rapl:0:1/name").unlink()
        zones, refused = powercap.find(folder)
        self.assertEqual([zone.domain for zone in zones],
                         ["package-0", "package-0/dram"])
        self.assertEqual(len(refused), 3)

    def test_no_regular_files(self):
        """What would never end is not read."""
        for name in ("energy_uj", "max_energy_range_uj", "name"):
            with self.subTest(name):
                folder = self.tree("intel-desktop")
                for zone, make in (("0", os.mkfifo),
                                   ("1", lambda at: os.symlink("/dev/zero",
                                                               at))):
                    path = f"{folder}/intel-rapl:{zone}/{name}"
                    os.unlink(path)
                    make(path)
                with self.assertRaisesRegex(powercap.Unavailable,
                                            f"{name}: is not a regular file"):
                    powercap.find(folder)
                shutil.rmtree(folder)

    def test_none(self):
        for folder in (self.folder, f"{self.folder}/missing"):
            with self.assertRaisesRegex(powercap.Unavailable,
                                        "no powercap zone in"):
                powercap.find(folder)

    def test_lost_in_between(self):
        counter = powercap.Counter(powercap.find(self.tree("amd-server"))[0])
        counter.begin()
        unit.Path(self.folder, "powercap/intel-rapl:1/energy_uj").write_text(
            "none")
        self.assertIn("'none' is no count of energy",
                      self.refused(counter.end))


def rank(elapsed_ns, commit_ns, **passes_ns):
    """The only one, as a trial has it."""
    return {"elapsed_ns": elapsed_ns, "phases_ns": {"commit": commit_ns},
            "external": {"passes": [{"pass": name, "ns": ns} for name, ns
                                    in passes_ns.items()]}}


def options(**given):
    return SimpleNamespace(**{
        "energy": None, "meter": None, "hosts": None, "powercap": None,
        "meter_error": None,
        **given})


class Energy(Case):
    def test_nothing_asked_for(self):
        found, recorded = energy.open_sources(options())
        with found.around():
            pass
        self.assertIsNone(recorded)
        self.assertIsNone(found.of(None, 1))

    def test_counters_and_meter(self):
        now_s = time.time()
        path = self.put(f"time,watts\n{now_s - 1:.6f},9\n{now_s:.6f},9\n")
        found, recorded = energy.open_sources(options(
            energy=True, meter=path, meter_error="0.5,0", powercap=str(
                MACHINES / "amd-server/sys/class/powercap")))
        self.assertEqual(recorded, {
            "domains": ["package-0", "package-0/core", "package-1",
                        "package-1/core", "meter"],
            "meter_times": "seconds since 1970",
            "meter_error": {"percent": 0.5, "watts": 0}, "why_not": []})
        with found.around():
            pass
        trial = found.of(SimpleNamespace(
            begin_unix_ns=int((now_s - 0.75) * 1e9), whole_ns=600_000_000),
            500_000_000)
        self.assertGreater(trial["counter_span_ns"], 0)
        self.assertAlmostEqual(trial["domains_uj"]["meter"], 4.5e6, delta=9)
        self.assertEqual(list(trial["domains_uj"]), recorded["domains"])
        self.assertEqual(energy.headline(recorded["domains"]), ["meter"])
        self.assertEqual(trial["passes"], [])

    def test_passes(self):
        """Of 10 W in the first pass, and 20 W in the second one."""
        now_s = time.time()
        path = self.put("time,watts\n" + "".join(
            f"{now_s - 2 + at:.6f},{watts}\n" for at, watts in (
                (0, 10), (1, 10), (1.001, 20), (3, 20))))
        found, _ = energy.open_sources(options(
            energy=True, meter=path, powercap=str(
                MACHINES / "amd-server/sys/class/powercap")))
        with found.around(has_passes=True):
            timed = SimpleNamespace(
                begin_unix_ns=int((now_s - 1.5) * 1e9),
                begin_monotonic_ns=time.monotonic_ns(), whole_ns=1_500_000_000)
        # As if the counters had been read in the middle of the run.
        counter = found._counter
        begin_ns = timed.begin_monotonic_ns
        counter._readings = [
            (begin_ns - 1, [0] * 4), (begin_ns + 500_000_000, [7, 0, 5, 0]),
            (begin_ns + 1_600_000_000, [18, 0, 16, 0])]
        trial = found.of(timed, timed.whole_ns, [rank(
            elapsed_ns=1_490_000_000, commit_ns=90_000_000,
            runs=450_000_000, merges=0, output=900_000_000)])
        self.assertEqual([(one["pass"], one["ns"])
                          for one in trial["passes"]],
                         [("runs", 500_000_000), ("output", 1_000_000_000)])
        for one, joules, packages in zip(trial["passes"], (5, 20),
                                         ((7, 5), (10, 10))):
            self.assertAlmostEqual(one["domains_uj"].pop("meter") / 1e6,
                                   joules, delta=0.02)
            self.assertEqual(one["domains_uj"], {
                "package-0": packages[0], "package-0/core": 0,
                "package-1": packages[1], "package-1/core": 0})

    def test_passes_of(self):
        self.assertEqual(energy.passes_of([rank(
            elapsed_ns=100, commit_ns=10, runs=30, merges=25, output=20)],
            110), [("runs", 0, 45), ("merges", 45, 70), ("output", 70, 110)])
        self.assertEqual(energy.passes_of([rank(100, 0, runs=90)], 110),
                         [("runs", 0, 110)])
        for said in ([], [{"external": None}], [rank(100, 10)],
                     [rank(100, None, runs=30, output=30)],
                     [rank(None, 10, runs=30, output=30)],
                     [rank(100, 10, runs=30, output=95)],
                     [rank(900, 0, runs=30, output=1)]):
            self.assertEqual(energy.passes_of(said, 110), [])

    def test_not_to_be_had(self):
        found, recorded = energy.open_sources(options(
            energy=True, powercap=self.folder))
        self.assertEqual(recorded["domains"], [])
        self.assertIn("no powercap zone", recorded["why_not"][0])
        self.assertIsNone(found.of(None, 1))

    def test_not_of_nodes(self):
        _, recorded = energy.open_sources(options(energy=True, hosts="n[1-2]"))
        self.assertEqual(recorded["domains"], [])
        self.assertIn("nodes", recorded["why_not"][0])


class Sorter:
    """A blinksort that sorts no faster than its disk, in two passes."""

    def __init__(self, reads=(100, 100, 100, 100, 100, 200),
                 refused_from=1 << 62):
        self.memory_records = 1000
        self.refused_from = refused_from
        self.reads = list(reads)

    def call(self, name, *arguments):
        given = dict(one.split("=", 1) for one in map(str, arguments)
                     if one.startswith("--") and "=" in one)
        document = {"fits": False, "memory_bytes": 5, "refused": None,
                    "disk_rates": None, "predicted_ns": None}
        if name == "blinkgen":
            with open(arguments[-1], "wb"):
                pass
        elif "--suppose" in given:
            records = int(given["--suppose"].split(":")[1])
            document.update(fits=records <= self.memory_records,
                            bytes=100 * records, scratch_bytes=99 * records,
                            refused="too many"
                            if records >= self.refused_from else None)
            if "--disk-rates" in given:
                read = int(given["--disk-rates"].split(":")[0])
                document["predicted_ns"] = round(2e11 * records / read)
        elif self.reads:
            read = self.reads.pop(0)
            document["disk_rates"] = {"read": read, "write": 1, "both": 1}
        return SimpleNamespace(
            returncode=0, stdout=json.dumps(document), stderr="disk: why not\n"
            if document["disk_rates"] is None else "")


class Penny(Case):
    def test_largest(self):
        found = penny.predict(Sorter(), self.folder, 7777)
        self.assertIsNone(found["why_not"])
        wanted = 7777 * 100 / 200
        for records, factor in zip(found["records"], (1, 1, 1, 1, 1, 2)):
            self.assertLessEqual(records, factor * wanted)
            self.assertGreater(records, factor * wanted * 0.999)
        self.assertEqual(found["memory_bytes"], 5)
        self.assertEqual(found["room_bytes"], 299 * max(found["records"]))
        self.assertEqual(os.listdir(self.folder), [])

    def test_refused(self):
        """What blinksort would not do is no PennySort, however fast."""
        found = penny.predict(Sorter(refused_from=3000), self.folder, 7777)
        self.assertLess(max(found["records"]), 3000)
        self.assertGreater(min(found["records"]), 2990)

    def test_endless(self):
        found = penny.predict(Sorter(), self.folder, 1e12)
        self.assertEqual(found["records"], [penny.RECORDS_MAX] * 6)

    def test_all_in_memory(self):
        found = penny.predict(Sorter(), self.folder, 7)
        self.assertIn("suffice for no sort beyond", found["why_not"])
        self.assertEqual(found["records"], [])

    def test_no_room(self):
        sorter = Sorter()
        with mock.patch.object(penny.inputs, "flush", side_effect=OSError(
                28, "No space left on device")):
            found = penny.predict(sorter, self.folder, 7777)
        self.assertIn("No space left", found["why_not"])
        self.assertEqual(os.listdir(self.folder), [])

    def test_no_disk(self):
        found = penny.predict(Sorter(reads=[100]), self.folder, 7777)
        self.assertEqual(found["why_not"], "disk: why not")
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unit.main()
