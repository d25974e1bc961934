"""results/published: each document is as its schema says, what it leads to is
there."""

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
                 if claim["ours"]["by"] == "checked"
                 and claim["ours"]["test"].endswith(".py")
                 and claim["id"] not in (
                     unit.ROOT / claim["ours"]["test"]).read_text()]
        self.assertEqual("", "\n".join(wrong))

    def test_sweeps_have_the_arms(self):
        known = {"reference"}.union(*map(
            arms_of, (unit.ROOT / "results").glob("*.sweep")))
        wrong = [name for name, claim in every() if "arm" in claim["ours"]
                 and not known.intersection(claim["ours"]["arm"])]
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


class Stages(unittest.TestCase):
    """Rows of TritonSort's Figure 8 are copied right: a rate is the bytes of a
    unit of work over its time."""

    def test_rates(self):
        rows = [figure("tritonsort", f"stage-{name}") for name in
                ("bytes", "time", "rate", "workers", "total")]
        for stage in rows[0]:
            mb, ms, rate, workers, total = (row[stage] for row in rows)
            found = mb / ms * 1000
            self.assertLess(abs(found / rate - 1), 0.01, stage)
            self.assertLess(abs(found * workers / total - 1), 0.01, stage)


if __name__ == "__main__":
    unit.main()
