"""results/published: each document is as its schema says, what it leads to is
there, and its figures agree with each other."""

import re
import unittest

import unit
from trials.record import claims, design as designs, sweep

# A page, and an option, a section or a word of it
PAGE = re.compile(r"(blink[a-z-]+)\(([157])\)"
                  r"(?: (-[A-Za-z-]+|[A-Z]+(?: [A-Z]+)*\b|[\w-]+$))?")
# Of all documents
NOT_BUILT_MAX = 10


def every():
    """(document: id, claim) of all."""
    for name in claims.names():
        for claim in claims.load(name)["claims"]:
            yield f"{name}: {claim['id']}", claim


def missing(where):
    """What is not there of the pages that a text names, with what stands
    behind each; or of the file that it begins with.  None: all is."""
    pages = PAGE.findall(where)
    if not pages:
        path = where.split()[0].rstrip(":")
        return None if (unit.ROOT / path).is_file() else "no such file"
    return next(filter(None, (not_on(*page) for page in pages)), None)


def not_on(name, section, word):
    found = list(unit.ROOT.glob(f"[!b]*/**/{name}.{section}"))
    if not found:
        return "no such page"
    text = found[0].read_text()
    if word.startswith("-"):
        there = re.search(rf"\bFl {re.escape(word[1:])}\b", text)
    else:
        # Pages do not name the settings of blinktune.
        there = word in text or (
            unit.ROOT / f"tune/knobs/{word}.sh").is_file()
    return None if there else f"the page has no {word}"


def is_named(claim, text):
    """By its name, or by what it has in common with others of its row."""
    return claim in text or f'"{claim.rpartition("-")[0]}"' in text


def arms_of(path):
    """The configurations of a sweep, as designs name them."""
    design = designs.make(["cache"], sweep.load(str(path)), 1, 1)
    return {each["name"] for each in design["configurations"]}


class Files(unittest.TestCase):
    def test_there_are_some(self):
        self.assertLessEqual({"datamation-2011", "psort-2011"},
                             set(claims.names()))

    def test_each_is_as_its_schema_says(self):
        for name in claims.names():
            with self.subTest(name):
                self.assertEqual(claims.load(name)["document"], name)

    def test_ids_are_unique(self):
        names = [name for name, _ in every()]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_what_they_lead_to_is_there(self):
        wrong = []
        for name, claim in every():
            ours = claim["ours"]
            if not (unit.ROOT / ours.get("test", "tests/run")).is_file():
                wrong.append(f"{name}: no {ours['test']}")
            why = missing(ours.get("where", "README.md"))
            if why:
                wrong.append(f"{name}: {ours['where']}: {why}")
        self.assertEqual("", "\n".join(wrong))

    def test_what_is_checked_is_named_there(self):
        wrong = [name for name, claim in every()
                 if claim["ours"].get("test", "").endswith(".py")
                 and claim["ours"]["by"] == "checked" and not is_named(
                     claim["id"],
                     (unit.ROOT / claim["ours"]["test"]).read_text())]
        self.assertEqual("", "\n".join(wrong))

    def test_sweeps_have_the_arms(self):
        known = {"reference"}.union(*map(
            arms_of, (unit.ROOT / "results").glob("*.sweep")))
        wrong = [name for name, claim in every() if "arm" in claim["ours"]
                 and not known.intersection(
                     [claim["ours"]["arm"]]
                     if isinstance(claim["ours"]["arm"], str)
                     else claim["ours"]["arm"])]
        self.assertEqual("", "\n".join(wrong))

    def test_what_is_not_there_is_found(self):
        for where in ("README.txt", "blinksort(7)", "blinksort(1) --nothing",
                      "blinksort(1) --k", "blinktune(1) no-such-knob",
                      "README.md and blinksort(1) NO SECTION: words"):
            self.assertIsNotNone(missing(where), where)

    def test_few_are_not_built(self):
        names = [name for name, claim in every()
                 if claim["ours"]["by"] == "not built"]
        self.assertLessEqual(len(names), NOT_BUILT_MAX, names)

    def test_an_unknown_claim(self):
        with self.assertRaises(KeyError):
            claims.find("psort-2011", "nothing")


def figure(document, claim):
    found = claims.find(document, claim)
    return found.get("values", found.get("value"))


class Datamation(unittest.TestCase):
    """Figures of the paper that follow from others of it."""

    def value(self, claim):
        return figure("datamation-2011", claim)

    def checked(self, claim):
        return claims.find("datamation-2011", claim)["ours"]["value"]

    def test_gains(self):
        for before, gain, per_ms in (("record-before", "record-gain", 1),
                                     ("first-time", "first-gain", 1000)):
            ratio = self.value(before) * per_ms / self.value("cache-mean")
            self.assertGreater(ratio, self.value(gain))
            self.assertAlmostEqual(self.checked(gain) / ratio, 1, 3)

    def test_machine(self):
        clock_ghz = 3.06
        self.assertAlmostEqual(self.value("cpu-flops"),
                               self.value("cpu-cores") * 4 * clock_ghz)
        self.assertEqual(self.value("memory-peak"),
                         8 * self.value("memory-clock"))
        turn_ms = 60_000 / self.value("disk-speed")
        self.assertAlmostEqual(self.value("disk-latency"), turn_ms / 2, 2)
        self.assertGreater(self.value("disks") * self.value("disk-rim"),
                           self.value("chipset-limit"))
        # The shortest packet is 84 bytes of the link.
        self.assertAlmostEqual(self.checked("network-1g-packets"),
                               1e9 / 8 / 84 / 1e6, 3)

    def test_shares(self):
        records = self.value("benchmark-records") / self.value("nodes")
        self.assertEqual(self.value("records-per-node"), records)
        self.assertEqual(self.checked("received-bytes"),
                         records * self.value("benchmark-record") / 1e6)

    def test_scenarios(self):
        overhead = self.value("platter-mean") - self.value("cache-mean")
        self.assertGreater(overhead, self.value("platter-overhead"))
        self.assertAlmostEqual(self.checked("platter-overhead"), overhead)


class Memo(unittest.TestCase):
    """Figures of the memo that follow from others of it.  Those of PennySort
    and JouleSort are in test_trial_cost.py."""

    def value(self, claim):
        return figure("psort-2011", claim)

    def checked(self, claim):
        return claims.find("psort-2011", claim)["ours"]["value"]

    def test_disks(self):
        turn_ms = 60_000 / figure("datamation-2011", "disk-speed")
        self.assertAlmostEqual(self.checked("revolution"), turn_ms, 2)
        track_mb = turn_ms * self.value("disk-peak") / 1000
        self.assertAlmostEqual(self.checked("track"), track_mb, 2)
        self.assertGreater(track_mb, self.value("track"))
        read_ms = self.value("seek") + turn_ms
        self.assertAlmostEqual(self.checked("track-read"), read_ms, 1)
        self.assertLess(read_ms, self.value("track-read"))
        for end, access_ms in self.value("cache-access").items():
            self.assertAlmostEqual(
                access_ms + 6 / self.value("chipset-limit") * 1000,
                self.value("cache-transfer")[end], delta=0.3)

    def test_shares(self):
        nodes = figure("datamation-2011", "nodes")
        self.assertEqual(self.value("sets-per-node"),
                         self.value("sets") / nodes)
        self.assertEqual(self.value("rounds"), nodes - 1)
        disk_mb = figure("datamation-2011", "received-bytes") / 6
        self.assertGreaterEqual(disk_mb, self.value("data-per-disk"))

    def test_gain(self):
        before_ms = figure("datamation-2011", "record-before")
        self.assertGreater(before_ms / self.value("cache-median"),
                           self.value("record-gain"))

    def test_a_run_fits_into_memory(self):
        self.assertLess(100 * self.value("daytona-run-records") / 1e9,
                        self.value("penny-memory"))

    def test_the_meter_runs_too_long(self):
        share = self.value("meter-bound-time") / (40 * 60)
        self.assertAlmostEqual(self.checked("meter-bound"), 100 * share, 3)
        self.assertLess(100 * share, self.value("meter-bound"))
        self.assertGreater(self.value("joule-time"), 40 * 60)


if __name__ == "__main__":
    unit.main()
