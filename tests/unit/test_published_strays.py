"""A figure of a published document that the tree names is one of its claims.

Where a line names a document, each figure with a unit is that of a claim, or
in OTHERS.  A constant of C that begins with the name of a document is named
after the claim, and after the label if the claim has several values.
"""

import re
import unittest
from pathlib import Path

import unit
from trials.record import claims

# By which names texts mean a document, or one of two
NAMES = (
    ("of 2011|CLUSTER|Datamation|Bertasi", "datamation-2011 psort-2011"),
    ("DEPSort", "depsort"),
    ("SPsort|Wyllie", "spsort"),
    ("TritonSort|Rasmussen", "tritonsort"))
FIGURE = re.compile(
    r"(?<![\w.,/-])(\d[\d,]*(?:\.\d+)?)"
    r" ?(?:[mun]?s|min|minutes?|[kMGTKB]i?B?(?:/s)?|[MG]bit/s|%|times"
    r"|(?:sorting )?nodes|passes)\b")
CONSTANT = re.compile(r"#define ([A-Z0-9_]+) ([0-9.]+)$", re.M)
# Documents and records, which have figures of their own
APART = re.compile(r"results/(published|runs|schema)/|tests/data/")
# Figures that are not the document's: the file, and the text of the figure
OTHERS = {
    ("results/NOTES.md", "3444"),  # of another sort, as a later entry says
    ("results/NOTES.md", "10"),    # ms of a seek
    ("results/NOTES.md", "514"),   # MB that blinksort keeps
}


def slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def figures(document: str) -> dict:
    """All numbers of a document: by claim, or by claim and label."""
    found = {}
    for claim in claims.load(document)["claims"]:
        if isinstance(claim.get("value"), (int, float)):
            found[claim["id"]] = claim["value"]
        for label, value in claim.get("values", {}).items():
            found[f"{claim['id']}-{slug(label)}"] = value
    return found


def is_among(text: str, values) -> bool:
    """Is it one of the values, as exactly as it is written?"""
    written = float(text.replace(",", ""))
    decimals = len(text.partition(".")[2])
    return any(round(value, decimals) == written for value in values)


def strays(path: str, text: str) -> list:
    found = []
    for line in text.splitlines():
        for names, documents in NAMES:
            if not re.search(names, line):
                continue
            values = [value for document in documents.split()
                      for value in figures(document).values()]
            found += [f"{path}: {figure}: is no figure of {documents}: {line}"
                      for figure in FIGURE.findall(line)
                      if (path, figure) not in OTHERS
                      and not is_among(figure, values)]
    for constant, value in CONSTANT.findall(text):
        for document in claims.names():
            if constant.startswith(slug(document).replace("-", "_").upper()
                                   + "_"):
                claim = slug(constant)[len(document) + 1:]
                if figures(document).get(claim) != float(value):
                    found.append(f"{path}: {constant} {value}: is not claim "
                                 f"{claim} of {document}")
    return found


def texts():
    """Each text of the tree with its path, but this one"""
    for place in ("NEWS", "README.md", "src", "shell", "tune", "results",
                  "tests"):
        for file in [unit.ROOT / place, *(unit.ROOT / place).rglob("*")]:
            path = str(file.relative_to(unit.ROOT))
            if file.is_file() and not APART.match(path) \
                    and file.name != Path(__file__).name:
                yield path, file.read_text(errors="replace")


class Strays(unittest.TestCase):
    def test_tree(self):
        found = [each for path, text in texts()
                 for each in strays(path, text)]
        self.assertEqual(found, [])

    def test_are_found(self):
        for text in ("TritonSort sorted at 0.92 TB a minute, with 24 GB",
                     "DEPSort: 71 MB/s of 162 MB/s, 88 %",
                     "#define SPSORT_SORTING_TIME 872\n"
                     "#define TRITONSORT_STAGE_TOTAL_WRITER 601"):
            self.assertEqual(strays("a", text), [])
        for text in ("TritonSort: 0.93 TB/min", "SPsort took 873 s",
                     "DEPSort, 4.5 times as fast",
                     "#define SPSORT_SORTING_TIME 873",
                     "#define SPSORT_SORTING 872"):
            self.assertEqual(len(strays("a", text)), 1, text)


if __name__ == "__main__":
    unit.main()
