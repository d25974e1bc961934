#!/usr/bin/python3
"""trials/base/documents.py: JSON of files that are not trusted."""

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import trial_samples
import unit
from trials.base import documents
from trials.base.failure import FILE, Failure
from trials.record import design, schema, store
from trials.report import changes, export, page, table
from trials.report.study import Study
from trials.statistics import comparison, descriptive

NAMES = ("design.json", "environment.json", "trials.jsonl")
# What may stand where a program expects something else.
STRANGE = (None, True, False, -1, 0, 1, 2**53, 2**63, 10**30, 1.5, 20.0, -1e308,
           1e308, "", "9", "x" * 300, "\ud800\x1b[2J\n", [], {}, [[]], [None],
           ["a"], {"a": 1})
MUTATIONS = 120


class Loads(unittest.TestCase):
    def refused(self, data, words):
        with self.assertRaisesRegex(ValueError, words):
            documents.loads(data)

    def test_what_the_programs_write(self):
        written = {"a": [1, -2, 2.5, 1e-300, 2**64 - 1, None, True],
                   "b": {"ä": "\u20ac"}}
        for text in (json.dumps(written),
                     json.dumps(written, ensure_ascii=False)):
            self.assertEqual(documents.loads(text.encode()), written)

    def test_nesting_without_end(self):
        for depth in 100, 990, 3000, 1_000_000:
            for opening, closing in (b"[", b"]"), (b'{"a":', b"}"):
                self.refused(opening * depth + b"1" + closing * depth,
                             "nested too deeply")
                self.refused(opening * depth, "nested too deeply|Expecting")
        documents.loads(b"[" * documents.MOST_DEPTH
                        + b"]" * documents.MOST_DEPTH)

    def test_numbers_that_are_none_or_too_large(self):
        for text in b"NaN", b"[Infinity]", b'{"a": -Infinity}':
            self.refused(text, "is not JSON")
        for text in b"1e999", b"[-1e400]":
            self.refused(text, "e[0-9]+ is too large a number")
        for text in b"18446744073709551616", b"-1" + b"0" * 40, b"7" * 10**6:
            self.refused(text, "a number of [0-9]+ digits is too large")

    def test_a_key_twice(self):
        self.refused(b'[{"a": 1, "b": 2, "a": 3}]', "'a' stands there twice")

    def test_no_text(self):
        self.refused(b'"\xff"', "is not UTF-8 text")
        self.refused('["a"]'.encode("utf-16"), "is not UTF-8 text")
        self.refused('["a"]'.encode("utf-8-sig"), "a byte order mark, as")
        self.refused(b"\0\0\0", "Expecting value")
        self.refused(b"", "Expecting value")


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "file"

    def test_lines(self):
        for data, lines, rest in ((b"", [], 0), (b"a\n\nb\n", [b"a", b"", b"b"],
                                  0), (b"a\nbc", [b"a"], 2)):
            self.path.write_bytes(data)
            self.assertEqual(documents.read_lines(self.path), (lines, rest))

    def test_a_line_and_a_document_of_a_gigabyte(self):
        """They are refused before they are in memory; the file is a hole."""
        self.path.write_bytes(b"{}\n")
        os.truncate(self.path, 2**30)
        with self.assertRaisesRegex(Failure, ":2: is longer than 64 MiB") as (
                caught):
            documents.read_lines(self.path)
        self.assertEqual(caught.exception.status, FILE)
        with self.assertRaisesRegex(Failure, "file: is longer than 64 MiB"):
            documents.read(self.path)


class Mutated(unittest.TestCase):
    """A record that was changed by hand or by chance is reported on, or is
    refused in words; nothing else happens."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        racing = ("sort.threads default | 1\nracing first_block=2 every=1 "
                  "alpha=0.01 margin_ratio=1.02\n")
        trial_samples.make_record(
            self.folder / "good", scenarios=("pagecache", "platter"),
            sweep_text=racing, trials=4)
        self.texts = {name: (self.folder / "good" / name).read_text()
                      for name in NAMES}
        self.good = Study(store.read(str(self.folder / "good")))
        self.bad = self.folder / "bad"
        self.bad.mkdir()

    def write(self, **changed):
        for name, text in self.texts.items():
            text = changed.get(name.partition(".")[0], text)
            (self.bad / name).write_text(text)

    def shown(self):
        """Every text of the record; the pages take too long for each."""
        study = Study(store.read(str(self.bad)))
        yield table.text(study)
        yield table.csv_trials(study)
        yield table.csv_summary(study)
        yield export.hyperfine(study)
        yield export.benchfmt(study)
        yield changes.text(changes.compare(self.good, study))
        yield json.dumps(changes.document(changes.compare(study, self.good)),
                         allow_nan=False)

    def mutated(self, rng):
        name = rng.choice(NAMES)
        if name != "trials.jsonl":
            changed = mutation(json.loads(self.texts[name]), rng)
            return {name.partition(".")[0]: json.dumps(changed)}
        lines = self.texts[name].splitlines()
        at = rng.randrange(len(lines))
        lines[at] = json.dumps(mutation(json.loads(lines[at]), rng))
        return {"trials": "\n".join(lines) + "\n"}

    @mock.patch.object(comparison, "RESAMPLES", 9)
    @mock.patch.object(descriptive, "RESAMPLES", 9)
    def test_values_of_any_kind(self):
        rng = random.Random(1)
        refused = 0
        for number in range(MUTATIONS):
            self.write(**self.mutated(rng))
            schema.validate(str(self.bad))
            try:
                list(self.shown())
                if number % 50 == 0:
                    page.render(Study(store.read(str(self.bad))))
            except Failure as failure:
                self.assertEqual(failure.status, FILE)
                self.assertEqual(len(str(failure).splitlines()), 1)
                refused += 1
        # The others are as good as the record was.
        self.assertGreater(refused, MUTATIONS // 2)
        self.assertLess(refused, MUTATIONS)

    def test_a_time_is_a_time(self):
        trials = self.texts["trials.jsonl"].splitlines(keepends=True)
        for value in 0, -5, True, 1e7, "7", 2**60:
            trial = json.loads(trials[0])
            trial["whole_ns"] = value
            self.write(trials="".join([json.dumps(trial) + "\n", *trials[1:]]))
            with self.assertRaisesRegex(
                    Failure, "trials.jsonl:1: is damaged: whole_ns: "):
                store.read(str(self.bad))

    def test_the_program_says_it_in_a_line(self):
        deep = '{"schema":' * 3000 + "1" + "}" * 3000 + "\n"
        for changed in ({"trials": deep}, {"design": deep},
                        {"environment": deep}):
            self.write(**changed)
            for program, verb in (("blinkreport", []),
                                  ("blinktrial", ["validate"])):
                done = subprocess.run(
                    [sys.executable, "-B", unit.ROOT / "results" / program,
                     *verb, self.bad], capture_output=True, text=True)
                self.assertEqual(done.returncode, 1 if verb else 3)
                first, *others = done.stderr.splitlines()
                self.assertRegex(first, f"^{program}: .*: .*nested too deeply")
                self.assertEqual(others if not verb else [], [])

    def report(self, *options):
        done = subprocess.run(
            [sys.executable, "-B", unit.ROOT / "results/blinkreport",
             *options, self.bad], capture_output=True)
        return done.returncode, (done.stdout + done.stderr).decode()

    def test_a_terminal_obeys_no_record(self):
        trials = self.texts["trials.jsonl"].replace(
            '"message":null', r'"message":"\ud800\u001b[2J"')
        design_text = self.texts["design.json"].replace(
            "0123abc", r"\ud800\u001b[2J")
        self.write(trials=trials, design=design_text)
        status, text = self.report()
        self.assertEqual(status, 0)
        self.assertIn("\nblinksort  \ufffd\ufffd[2J\n", text)
        # For programs, which may want it: all but what is no character.
        self.assertEqual(self.report("--format=csv")[0], 0)
        self.write(design=design_text.replace(
            '"seed"', r'"\u001b[2J": 1, "seed"'))
        status, text = self.report()
        self.assertEqual(status, 3)
        self.assertIn("[2J' was unexpected", text)
        self.assertNotIn("\x1b", text)

    def test_a_design_of_fractions(self):
        changed = json.loads(self.texts["design.json"])
        changed["trials"] = 4.0
        self.write(design=json.dumps(changed))
        with self.assertRaisesRegex(Failure, "design.json: "):
            store.read(str(self.bad))
        self.assertTrue(schema.validate(str(self.bad)))

    def test_configurations_of_one_name(self):
        changed = json.loads(self.texts["design.json"])
        changed["configurations"][2]["name"] = design.CONTROL
        self.write(design=json.dumps(changed))
        with self.assertRaisesRegex(Failure, "two configurations have one"):
            store.read(str(self.bad))


def paths_of(value, path=()):
    yield path
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from paths_of(value[key], (*path, key))


def mutation(document, rng):
    """One or two places of it changed."""
    for _ in range(rng.choice((1, 1, 2))):
        *path, last = rng.choice([p for p in paths_of(document) if p])
        place = document
        for key in path:
            place = place[key]
        kind = rng.random()
        if kind < 0.1:
            del place[last]
        elif kind < 0.15 and isinstance(place, dict):
            place["new"] = rng.choice(STRANGE)
        else:
            place[last] = rng.choice(STRANGE)
    return document


if __name__ == "__main__":
    unit.main()
