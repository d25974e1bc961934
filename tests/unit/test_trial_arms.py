"""trials.run.arms: from a command line to the commands of a design."""

import unittest
from types import SimpleNamespace

import unit
from trials.base.failure import Failure
from trials.record import design as designs, sweep as sweeps
from trials.report import arms as report
from trials.run import arms, arms_table, options

ENVIRONMENT = {"IN": "in"}


def arms_of(*arguments):
    return arms.of_options(options.parse(list(arguments)), ENVIRONMENT)


def names_of(*arguments):
    return [arm.name for arm in arms_of(*arguments)]


class Arms(unittest.TestCase):
    def refused(self, why, *arguments):
        with self.assertRaisesRegex(Failure, why) as caught:
            arms_of(*arguments)
        self.assertEqual(caught.exception.status, 2)

    def test_words(self):
        found = arms_of("sort $IN -o 'a b'", "--shell=bash", "true")
        self.assertEqual(found[0].words, ("bash", "-c", "sort $IN -o 'a b'"))
        found = arms_of("sort $IN -o 'a b'")
        self.assertEqual(found[0].words, ("sort", "in", "-o", "a b"))
        # The command is no value of the option.
        self.assertEqual(arms_of("--shell", "a | b")[0].words,
                         ("/bin/sh", "-c", "a | b"))

    def test_values(self):
        found = arms_of("-L", "n", "1,2", "-L", "m", "x,y", "a {n} {m} {o}",
                        "b", "--setup=s {n}", "-n", "first {n}{m}")
        self.assertEqual(
            [arm.name for arm in found],
            ["first 1x", "first 1y", "first 2x", "first 2y",
             "b", "b (2)", "b (3)", "b (4)"])
        self.assertEqual(found[3].setup, "s 2")
        self.assertEqual(found[3].values, {"n": "2", "m": "y"})

    def test_scan(self):
        self.assertEqual(names_of("-P", "n", "1", "3", "a {n}"),
                         ["a 1", "a 2", "a 3"])
        self.assertEqual(
            names_of("-P", "n", "0", "0.2", "-D", "0.1", "a {n}"),
            ["a 0", "a 0.1", "a 0.2"])
        for least, most in (("1", "x"), ("3", "1"), ("nan", "1"),
                            ("1", "inf"), ("1", "5000"),
                            ("1", "1e999999999"), ("1e99", "1e99")):
            self.refused("--parameter-scan", "-P", "n", least, most, "a")
        self.refused("--parameter-scan", "-P", "n", "1", "2", "-D", "0", "a")
        self.refused("twice", "-L", "n", "1", "-P", "n", "1", "2", "a")
        self.refused("no name", "-L", "1", "1", "a")
        self.refused("more than", *(word for name in "abcd" for word in (
            "-L", name, ",".join(map(str, range(10))))), "a")

    def test_reference(self):
        """It comes first; names and what is prepared stay with their
        commands."""
        found = arms_of("a", "b", "--reference=b", "-n", "A", "-n", "B",
                        "-p", "pa", "-p", "pb")
        self.assertEqual([(arm.name, arm.text, arm.prepare) for arm in found],
                         [("B", "b", "pb"), ("A", "a", "pa")])
        self.assertEqual(names_of("a", "--reference=c"), ["c", "a"])
        self.assertEqual(names_of("--reference=c"), ["c"])

    def test_names(self):
        """Each of one command with all values, or of one arm."""
        variable = ("-L", "n", "1,2", "a {n}", "b {n}")
        self.assertEqual(names_of(*variable, "-n", "x{n}"),
                         ["x1", "x2", "b 1", "b 2"])
        self.assertEqual(names_of(*variable, "-nw", "-nx", "-ny"),
                         ["w", "x", "y", "b 2"])

    def test_reference_among_values(self):
        """It is the one with these values, and one that is added runs once."""
        variable = ("-L", "n", "1,2", "a {n}", "-nA{n}")
        self.assertEqual(names_of(*variable, "--reference=a 2"), ["A2", "A1"])
        self.assertEqual(names_of(*variable, "--reference=a {n}"),
                         ["A1", "A2"])
        self.assertEqual(names_of(*variable, "--reference=b"),
                         ["b", "A1", "A2"])

    def test_shell_in_words_of_hyperfine(self):
        for none in ("-N", "--shell=none", "-Snone"):
            self.assertEqual(arms_of("a b", none)[0].words, ("a", "b"))
        self.assertEqual(arms_of("a | b", "-Sdefault")[0].words,
                         ("/bin/sh", "-c", "a | b"))

    def test_name_can_be_recorded(self):
        found = arms_of("a \udcff", "a \udcfe")
        self.assertEqual([arm.name for arm in found], ["a ?", "a ? (2)"])
        self.assertEqual(found[0].words, ("a", "\udcff"))

    def test_files_of_hyperfine_have_hints(self):
        self.refused("--stdin", "a", "--input=null")
        for where in ("null", "pipe", "inherit"):
            self.refused("--show-output", "a", f"--output={where}")

    def test_w_of_hyperfine_has_a_hint(self):
        self.refused("-w: .*--warmup", "a", "-w", "3")

    def test_hooks(self):
        self.assertEqual([arm.prepare for arm in arms_of("a", "b", "-p", "x")],
                         ["x", "x"])
        self.assertEqual([arm.prepare for arm in arms_of(
            "a", "a", "-p", "x", "-p", "y")], ["x", "y"])
        self.assertEqual([(arm.text, arm.prepare) for arm in arms_of(
            "a", "b", "-p", "x", "-p", "y", "-p", "z", "--reference=c")],
            [("c", "x"), ("a", "y"), ("b", "z")])
        self.refused("--conclude: is given 2 times for 3 commands",
                     "a", "b", "c", "-C", "x", "-C", "y")
        self.refused("--command-name: is given 2 times for 1",
                     "a", "-n", "x", "-n", "y")

    def test_of_sorts_only(self):
        for option in ("--records=5", "--ascii", "-wn1", "--work=/w", "--keep",
                       "--input-device=/d", "--price=/p"):
            with self.assertRaises(Failure):
                options.parse(["a", option])
        for option in ("--shell", "-pa", "--warmup=1", "--input=x", "-i"):
            with self.assertRaisesRegex(Failure, "needs a command"):
                options.parse(["--scenario=cache", "--trials=1", "--out=o",
                               option])

    def test_command_of_a_record(self):
        """The command of a record asks for the same."""
        asked = options.complete(options.parse(
            ["a b", "-c x", "-L", "n", "1,2", "--prepare=-x",
             "-P", "m", "1", "2",
             "--shell", "-i", "--warmup=2", "--input=/i", "--output=/o",
             "--stdin=/s", "--trials=3", "--out=/r", "-n", "N"]))
        again = options.of_command(options.command_of(asked))
        for name in options.LASTING:
            self.assertEqual(getattr(again, name), getattr(asked, name), name)


class Design(unittest.TestCase):
    def design(self, sweep=None):
        found = arms_of("a", "b")
        return designs.make(
            ["as-is"], sweep and sweeps.parse(sweep), 10, 1,
            arms=[(arm.name, arm.document()) for arm in found], commands={})

    def test_roles(self):
        self.assertEqual(
            [(c["name"], c["role"]) for c in self.design()["configurations"]],
            [("a", "reference"), ("a (control)", "control"),
             ("b", "variant")])

    def test_settings(self):
        """Each command under each setting; one reference of all."""
        found = self.design("tune.x 1 | 2\n")["configurations"]
        self.assertEqual(
            [(c["name"], c["role"]) for c in found],
            [("a", "reference"), ("a (control)", "control"),
             ("a, x=2", "variant"), ("b", "variant"), ("b, x=2", "variant")])
        self.assertEqual([c["tuning"]["knobs"]["x"] for c in found],
                         ["1", "1", "2", "1", "2"])


class Report(unittest.TestCase):
    def design(self, *arguments):
        return designs.make(
            ["as-is"], None, 10, 1, commands={},
            arms=[(arm.name, arm.document()) for arm in arms_of(*arguments)])

    def test_what_names_do_not_tell(self):
        self.assertEqual(report.lines(self.design("a", "b")), [])
        design = self.design("a", "b", "-n", "A", "--setup=s", "-p", "x",
                             "-p", "y")
        self.assertEqual(report.lines(design), [
            ("command", "A: a"), ("setup", "s"), ("prepare", "A: x"),
            ("prepare", "b: y")])

    def test_table(self):
        design = self.design("a", "b", "-n", "A", "--cleanup=c")
        self.assertEqual(report.table(design), (
            "configuration|command|cleanup",
            [["A", "a", "c"], ["b", "b", "c"]]))


class Table(unittest.TestCase):
    def trial(self, number, configuration, percent):
        return {"trial": number, "block": number // 2, "scenario": "as-is",
                "configuration": configuration, "whole_ns": 10**6 + number,
                "outcome": "ok", "exit_status": 0, "scenario_met": True,
                "noise": {"places": [{"worst_percent": percent}],
                          "over_limit": None}}

    def table(self, percent):
        design = designs.make(
            ["as-is"], None, 10, 1, commands={},
            arms=[(arm.name, arm.document()) for arm in arms_of("a")])
        trials = [self.trial(number, ("a", "a (control)")[number % 2], percent)
                  for number in range(20)]
        return arms_table.text(SimpleNamespace(design=design,
                                               trials=lambda: trials))

    def test_a_busy_machine_is_told_of(self):
        self.assertIn("Others took 50 % of a CPU", self.table(50.0))
        self.assertNotIn("Others took", self.table(1.0))


if __name__ == "__main__":
    unit.main()
