"""The constants that the first page of results/NOTES.md lists have these values
in the sources, and come from entries that are there."""

import re
import unittest

import unit

NOTES = unit.ROOT / "results" / "NOTES.md"
ROW = re.compile(r"\| `([^`]+)` `(\w+)` \| ([^|]+) \| [^|]+ \| ([^|]+) \|$",
                 re.M)
DEFINITION = r"^(?:#define {0}\s+|{0} = )(.+?)\s*(?:/\*.*|#.*)?$"
# Constants of src/base/base.h and of time, which others are made of
KNOWN = {"KIB": 1 << 10, "MIB": 1 << 20, "NS_PER_MS": 10**6, "NS_PER_S": 10**9}
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "ms": 10**6, "s": 10**9}


def first_page(text: str) -> str:
    return text.split("\n## What holds today\n")[1].split("\n## ")[0]


def in_source(path: str, name: str) -> float:
    text = (unit.ROOT / path).read_text()
    found = re.search(DEFINITION.format(name), text, re.M)
    if not found:
        raise AssertionError(f"{path} has no {name}")
    number = re.sub(r"\(uint64_t\)|(?<=\d)u\b", "", found.group(1))
    return eval(number, {"__builtins__": {}}, KNOWN)


def in_table(text: str, name: str) -> float:
    number, _, unit_name = text.partition(" ")
    value = float(number) * UNITS.get(unit_name, 1)
    return value / 10**6 if name.endswith("_MS") else value


def wrong_rows(text: str) -> list:
    headings = re.findall(r"^## (\d.*)$", text, re.M)
    wrong = []
    for path, name, value, entry in ROW.findall(first_page(text)):
        if in_source(path, name) != in_table(value, name):
            wrong.append(f"{name}: {value}, in {path} "
                         f"{in_source(path, name)}")
        if not any(heading.startswith(entry) for heading in headings):
            wrong.append(f"{name}: no entry: {entry}")
    return wrong


class WhatHolds(unittest.TestCase):
    def test_values(self):
        self.assertEqual(wrong_rows(NOTES.read_text()), [])

    def test_all_rows_are_read(self):
        page = first_page(NOTES.read_text())
        rows = [line for line in page.splitlines() if line.startswith("| `")]
        self.assertGreaterEqual(len(rows), 20)
        self.assertEqual(len(rows), len(ROW.findall(page)))

    def test_wrong_ones_are_found(self):
        text = NOTES.read_text()
        for right, wrong in (("| 104 |", "| 105 |"), ("| 2 s |", "| 2 ms |"),
                             ("| 50 ms |", "| 50 s |"),
                             ("| 2026-11-26 How often", "| 2026-11-25 How")):
            self.assertIn(right, text)
            self.assertEqual(len(wrong_rows(text.replace(right, wrong))), 1)


if __name__ == "__main__":
    unit.main()
