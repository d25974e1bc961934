"""Each measured figure of README.md is a link to its record; here each one is
computed anew from the samples of that record."""

import json
import re
import unittest
from statistics import median

import unit
from trials.base.programs import Programs
from trials.published import report
from trials.record import claims

PAGES = ("README.md", "src/README.md", "CONTRIBUTING.md")
RECORD = re.compile(r"(?<!!)\[([^]]*)\]\((results/[^)]*\.jsonl)\)")
# What is measured has one of these units, or is a ratio, which has decimals.
MEASURED = re.compile(
    r"\d[\d.,]*\s*(?:[mun]?s|[KMG]i?B/s|%|times)(?!\w)|\d+\.\d+")
# Versions, which are not measured
VERSIONS = {"3.10", "1.5"}


def blocks(record: str) -> list:
    """The times of each block of a record of blinktrial, by command"""
    found: dict = {}
    for line in (unit.ROOT / record).read_text().splitlines():
        trial = json.loads(line)
        if "configuration" in trial:
            found.setdefault(trial["block"], {})[
                trial["configuration"]] = trial["whole_ns"]
    return list(found.values())


def arm_ratio(first: str, second: str):
    return lambda record: median(
        block[first] / block[second] for block in blocks(record))


def arm_s(name: str):
    return lambda record: median(
        block[name] for block in blocks(record)) / 1e9


def worst_shape(record: str) -> float:
    """Of all keys that are not uniform, the time to that of uniform ones"""
    return max(arm_ratio(name, "binary")(record) for name in blocks(record)[0]
               if not name.startswith("binary"))


def trial_ms(scenario: str):
    def of(record: str) -> float:
        lines = (unit.ROOT / record).read_text().splitlines()
        trials = [trial for trial in map(json.loads, lines)
                  if trial.get("scenario") == scenario]
        return median(trial["whole_ns"] for trial in trials) / 1e6
    return of


PEERS_IN_MEMORY = "results/runs/2026-11-27-peers/trials.jsonl"
EXT4 = "results/runs/2026-11-27-ext4/trials.jsonl"
EXTERNAL = "results/runs/2026-11-27-external/trials.jsonl"
SHAPES = "results/runs/2026-11-27-shapes/trials.jsonl"
TRIALS = "results/runs/2026-11-22-zen4-1/trials.jsonl"
# In the order of README.md
FIGURES = [
    (PEERS_IN_MEMORY, "{:.2f}", arm_ratio("blinksort", "cp")),
    (EXT4, "{:.2f}", arm_ratio("blinksort in -o out",
                               "cp --reflink=never in out")),
    (EXTERNAL, "{:.0f} s", arm_s("blinksort")),
    (EXTERNAL, "{:.1f}", arm_ratio("blinksort", "copy")),
    (EXTERNAL, "{:.1f}", arm_ratio("STXXL", "blinksort")),
    (EXTERNAL, "{:.1f}", arm_ratio("GNU sort", "blinksort")),
    (EXTERNAL, "{:.1f}", arm_ratio("DuckDB", "blinksort")),
    (TRIALS, "{:.1f} ms", trial_ms("pagecache")),
    (TRIALS, "{:.0f} ms", trial_ms("cache")),
    (TRIALS, "{:.0f} ms", trial_ms("platter")),
    (SHAPES, "{:.1f}", worst_shape),
]


def figures_of(text: str) -> list:
    """(record, figure) of each link to a record"""
    return [(record, " ".join(figure.split()))
            for figure, record in RECORD.findall(text)]


def without_record(text: str) -> list:
    """Figures that are no links"""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"!?\[[^]]*\]\([^)]*\)|`[^`]*`", "", text)
    return [found for found in MEASURED.findall(text)
            if found not in VERSIONS]


def computed() -> list:
    return [(record, text.format(compute(record)))
            for record, text, compute in FIGURES]


class Figures(unittest.TestCase):
    def test_readme(self):
        text = (unit.ROOT / "README.md").read_text()
        self.assertEqual(figures_of(text), computed())

    def test_claims_are_counted(self):
        """README.md says how many claims are answered in which way."""
        sentence = re.search(r"answers their.*?\.\n", (
            unit.ROOT / "README.md").read_text(), re.S)[0]
        runs = sorted(map(str, (unit.ROOT / "results/runs").iterdir()))
        counts = report.make(Programs(str(unit.ROOT / "bin")), claims.names(),
                             runs).counts()
        counts["measured"] += counts.pop("recorded", 0)
        self.assertEqual(sorted([sum(counts.values()), *counts.values()]),
                         sorted(map(int, re.findall(r"\d+", sentence))))

    def test_no_other_figures(self):
        for page in PAGES:
            text = (unit.ROOT / page).read_text()
            self.assertEqual(without_record(text), [], page)
            if page != "README.md":
                self.assertEqual(figures_of(text), [], page)

    def test_wrong_ones_are_found(self):
        text = (unit.ROOT / "README.md").read_text()
        wrong = text.replace(f"[{figures_of(text)[0][1]}]", "[0 s]")
        self.assertNotEqual(figures_of(wrong), computed())
        for figure in ("12 s", "1.05", "5 % of it", "0.6 to 1.1", "3 times",
                       "31 ms"):
            self.assertTrue(without_record(f"It takes {figure}."), figure)
        self.assertEqual(without_record("`1.5`, 8 GB, [2 ms](results/a.jsonl)"),
                         [])

    def test_links_lead_to_files(self):
        for page in PAGES:
            path = unit.ROOT / page
            for link in re.findall(r"\]\(([^)#]+)", path.read_text()):
                if "://" not in link:
                    self.assertTrue((path.parent / link).exists(),
                                    f"{page}: {link}")


if __name__ == "__main__":
    unit.main()
