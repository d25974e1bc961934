"""trials.statistics.verdict: slower, faster, same or inconclusive; and the
forms of a gate's result."""

import json
import os
import unittest
import xml.etree.ElementTree as xml
from unittest import mock

import numpy as np
import unit
from trials.base import text_table
from trials.record import schema
from trials.run import gate, gate_forms
from trials.statistics import verdict

BLOCKS = 60


class Verdicts(unittest.TestCase):
    def arms(self, *ratios, spread=0.02, blocks=BLOCKS, seed=1):
        """Beside the first one, of times of this spread."""
        rng = np.random.default_rng(seed)
        before, *others = (1e7 * ratio * (1 + spread * rng.standard_normal(
            blocks)) for ratio in (1, *ratios))
        numbers = (list(range(blocks)),) * 2
        return [verdict.change(before, other, numbers) for other in others]

    def test_words(self):
        for ratios, wanted in (((1, 1.05), verdict.SLOWER),
                               ((1, 0.95), verdict.FASTER),
                               ((1, 1), verdict.SAME),
                               # A difference that the first one has, too
                               ((1.05, 1.05), verdict.INCONCLUSIVE),
                               ((1.05, 1), verdict.INCONCLUSIVE)):
            self.assertEqual(verdict.judge(*self.arms(*ratios), 0.015), wanted)

    def test_margin(self):
        found = self.arms(1, 1.03, spread=0.005)
        self.assertEqual(verdict.judge(*found, 0.02), verdict.SLOWER)
        self.assertEqual(verdict.judge(*found, 0.05), verdict.SAME)
        self.assertEqual(verdict.judge(*found, 0.031), verdict.INCONCLUSIVE)

    def test_too_few_or_too_wide(self):
        self.assertEqual(verdict.judge(*self.arms(1, 1.5, blocks=5), 0.01),
                         verdict.INCONCLUSIVE)
        self.assertEqual(verdict.judge(*self.arms(1, 1, spread=0.3), 0.01),
                         verdict.INCONCLUSIVE)

    def test_many_are_judged(self):
        """A level for all of them together."""
        found = self.arms(1, 1.5, blocks=10)
        self.assertEqual(verdict.judge(*found, 0.01), verdict.SLOWER)
        self.assertEqual(verdict.judge(*found, 0.01, 10),
                         verdict.INCONCLUSIVE)

    def test_shortest_run_of_a_block(self):
        found = verdict.change([100, 200, 100, 900], [210, 200, 200, 400],
                               ([0, 0, 1, 1], [0, 0, 1, 1]))
        self.assertAlmostEqual(found.ratio, 2)


class Forms(unittest.TestCase):
    NAME = 'a "b" <c> & `d` | e\x1b'

    def result(self, *words):
        again, after = Verdicts().arms(1, 1.05)
        judged = [gate.Judged(self.NAME, word, "why <it>" if word == "failed"
                              else None, 60, 1e7, 1.05e7, again, after)
                  for word in words]
        return gate.Result("1a2b one", "3c4d two", 1.0, judged)

    def test_worst_decides(self):
        for words, wanted, status in (
                (("same", "slower", "inconclusive"), "slower", 1),
                (("same", "failed"), "failed", 1), (("same",), "same", 0),
                (("faster", "same"), "faster", 6),
                (("faster", "inconclusive"), "inconclusive", 7)):
            result = self.result(*words)
            self.assertEqual((result.verdict, result.status), (wanted, status))

    def test_junit(self):
        suite = xml.fromstring(gate_forms.junit(self.result(
            "same", "slower", "failed", "inconclusive")).encode())[0]
        self.assertEqual((suite.get("tests"), suite.get("failures"),
                          suite.get("skipped")), ("4", "2", "1"))
        self.assertEqual([[each.tag for each in case] for case in suite],
                         [[], ["failure"], ["failure"], ["skipped"]])
        self.assertIn("+", suite[1][0].get("message"))
        self.assertEqual(suite[0].get("name"), self.NAME[:-1] + "\ufffd")

    def test_json(self):
        found = json.loads(gate_forms.json_text(self.result("slower")))
        self.assertEqual((found["schema"], found["verdict"], found["status"]),
                         ("blinktrial-gate-1", "slower", 1))
        self.assertEqual(found["commands"][0]["name"], self.NAME)
        self.assertGreater(found["commands"][0]["change"]["low"], 1)
        self.assertIsNone(schema.complaint(gate_forms.SCHEMA, found))
        found["commands"].append(gate_forms.document(gate.Result(
            "b", "a", 1.0, [gate.Judged("x", "failed", "why")]))["commands"][0])
        self.assertIsNone(schema.complaint(gate_forms.SCHEMA, found))
        del found["commands"][0]["name"]
        self.assertIsNotNone(schema.complaint(gate_forms.SCHEMA, found))

    def test_markdown(self):
        """A name ends no cell of the table."""
        lines = gate_forms.markdown(self.result("slower")).splitlines()
        row = next(line for line in lines if line.startswith("| `"))
        self.assertEqual(row.replace("\\|", "").count("|"),
                         1 + len(gate_forms.HEADINGS.split("|")))
        self.assertNotIn("<c>", row)

    def test_text(self):
        with mock.patch.dict(os.environ, COLUMNS=""):
            text_table.follow_terminal(otherwise=80)
        said = gate_forms.text(self.result("inconclusive", "failed"))
        self.assertIn("more trials, or a quieter machine", said.replace(
            "\n      ", " "))
        self.assertIn("why <it>", said)
        self.assertLessEqual(max(map(len, said.splitlines())), 80)
        self.assertNotIn("\x1b", said)


if __name__ == "__main__":
    unit.main()
