"""The command line, also of a record that is resumed; checks of outputs; how
far a run is; and what came out of it."""

import io
import os
import subprocess
import types
import unittest
from unittest import mock

import unit
from trials.base import programs
from trials.base.failure import Failure
from trials.run import noise, options, output_check, progress, summary

GOOD = ["--scenario=pagecache,cache", "--trials=3", "--out=/r/record"]


class Options(unittest.TestCase):
    def refused(self, arguments):
        with self.assertRaises(Failure) as caught:
            options.parse(arguments)
        self.assertEqual(caught.exception.status, 2)
        return str(caught.exception)

    def test_defaults(self):
        found = options.complete(options.parse(GOOD))
        self.assertEqual(found.scenarios, ["pagecache", "cache"])
        self.assertEqual((found.records, found.order), (1_000_000, "blocks"))
        self.assertEqual(found.work, "/r/record/work")
        self.assertIsNone(found.ascii)
        other = options.complete(options.parse(GOOD))
        self.assertNotEqual(found.seed, other.seed)

    def test_numbers(self):
        for text in ("0", "-1", "1e3", "", " 1", "1.0", "\u0661", "9" * 19):
            self.assertIn("--trials: ", self.refused(
                [*GOOD, f"--trials={text}"]))
        for text in ("0", "M", "1Mb", "1B", "1 M", "-1"):
            self.assertIn("--cache-bytes: ", self.refused(
                [*GOOD, f"--cache-bytes={text}"]))
        for text in ("64M", "64m", "64MB", "64MiB", "67108864"):
            found = options.parse([*GOOD, f"--cache-bytes={text}"])
            self.assertEqual(found.cache_bytes, 64 << 20)

    def test_nothing_given(self):
        """"--out=$DIR" of a variable that is not set"""
        paths = ["--out", "--work", "--key-file"]
        for name in (*paths, "--scenario", "--sweep", "--price", "--meter",
                     "--powercap", "--input-device", "--output-device"):
            self.assertEqual(f"{name}: is empty", self.refused(
                [*GOOD, f"{name}="]))
        self.assertEqual("-w: is empty", self.refused([*GOOD, "-w", ""]))
        for name in (*paths, "--file"):
            with self.assertRaisesRegex(Failure, f"{name}: is empty"):
                options.parse_characterise(["--out=/r", f"{name}="])

    def test_no_look_before_the_end(self):
        command = ["--until=1", "true"]
        self.assertIn("--max-trials: is below 20, the fewest that tell",
                      self.refused(["--max-trials=19", *command]))
        self.assertEqual(options.parse(["--max-trials=20",
                                        *command]).max_trials, 20)

    def test_older_spelling(self):
        found = options.parse([*GOOD, "-w", "a", "--key=/k"])
        self.assertEqual(found.key_file, "/k")
        self.assertIn("--key-file=/k", options.command_of(found))
        self.assertEqual("--key-file: is empty",
                         self.refused([*GOOD, "--key="]))

    def test_names_are_whole(self):
        self.assertIn("--rec=5", self.refused([*GOOD, "--rec=5"]))

    def test_parameters_are_for_sweeps(self):
        self.assertEqual("--threads=2: is for a sweep, as sort.threads; see "
                         "--sweep", self.refused([*GOOD, "--threads=2"]))

    def test_command_asks_for_the_same(self):
        given = options.complete(options.parse([
            *GOOD, "-w", "n[1-3]", "--key-file=k", "--ascii", "--sweep=s",
            "--work=/w", "--seed=7", "--order=sequence", "--unverified",
            "--cache-bytes=1M", "--noise-limit=2.5%,refuse",
            "--noise-wait=1", "--keep", "--quiet"]))
        again = options.of_command(options.command_of(given))
        for name, value in vars(given).items():
            if name not in ("keep", "quiet"):
                self.assertEqual(getattr(again, name), value, name)

    def test_command_has_numbers_of_one(self):
        given = options.complete(options.parse(
            ["--scenario=cache", "--trials=1", "--records=1", "--seed=1",
             "--out=/r"]))
        command = options.command_of(given)
        self.assertIn("--trials=1", command)
        self.assertEqual(vars(options.of_command(command)), vars(given))

    def test_devices_come_in_pairs(self):
        one, other = "--input-device=/dev/a", "--output-device=/dev/b"
        self.assertEqual("--input-device: needs --output-device",
                         self.refused([*GOOD, one]))
        self.assertEqual("--output-device: needs --input-device",
                         self.refused([*GOOD, other]))
        given = options.complete(options.parse([*GOOD, one, other]))
        command = options.command_of(given)
        self.assertEqual(vars(options.of_command(command)), vars(given))
        # One of them again is no more than that.
        found = options.resumed(options.parse(
            ["--resume", "--out=/r/record", other]), command)
        self.assertEqual((found.input_device, found.output_device),
                         ("/dev/a", "/dev/b"))

    def test_meter_error(self):
        for text in ("", "-1", "101", "1,", "1,x", "1,-2", "nan", "1,2,3"):
            self.assertIn("--meter-error: ", self.refused(
                [*GOOD, "--meter=/m", f"--meter-error={text}"]))
        self.assertEqual("--meter-error: needs --meter",
                         self.refused([*GOOD, "--meter-error=1"]))
        for text, wanted in (("0.5%", "0.5,0"), ("0.5,0.06", "0.5,0.06")):
            given = options.complete(options.parse(
                [*GOOD, "--meter=/m", f"--meter-error={text}"]))
            again = options.of_command(options.command_of(given))
            self.assertEqual(again.meter_error, wanted)

    def test_fact(self):
        for text in ("", "a", "=b", "a=", "1=b", "a.b=c", "a=b\nc", "a=\udc80",
                     f"{'a' * 41}=b", f"a={'b' * 201}"):
            self.assertIn("--fact: ", self.refused([*GOOD, f"--fact={text}"]))
        found = options.complete(options.parse(
            [*GOOD, "--fact=GPU=a=b", "--fact=a b=µ"]))
        self.assertEqual(found.facts, [("GPU", "a=b"), ("a b", "µ")])
        # They say what a machine is, and ask for nothing.
        command = options.command_of(found)
        self.assertNotIn("GPU", " ".join(command))
        found = options.resumed(options.parse(
            ["--resume", "--out=/r/record", "--fact=a=b"]), command)
        self.assertEqual(found.facts, [("a", "b")])

    def test_noise_limit(self):
        for text in ("", "-1", "101", "5,", "5,stop", "refuse", "1e1", "5%%"):
            self.assertIn("--noise-limit: ", self.refused(
                [*GOOD, f"--noise-limit={text}"]))
        for text in ("", "-1", "86401", "1s"):
            self.assertIn("--noise-wait: ", self.refused(
                [*GOOD, f"--noise-wait={text}"]))
        found = options.complete(options.parse([*GOOD, "--noise-limit=5%"]))
        self.assertEqual((found.noise_limit, found.noise_wait),
                         (noise.Limit(5.0, False), 60))

    def test_noise_limit_of_a_session(self):
        command = options.command_of(options.complete(options.parse(
            [*GOOD, "--noise-limit=5,refuse", "--noise-wait=9"])))
        for more, limit, wait_s in (
                ([], noise.Limit(5.0, True), 9),
                (["--noise-limit=7"], noise.Limit(7.0, False), 9),
                (["--noise-wait=0"], noise.Limit(5.0, True), 0)):
            found = options.resumed(options.parse(
                ["--resume", "--out=/r/record", *more]), command)
            self.assertEqual((found.noise_limit, found.noise_wait),
                             (limit, wait_s))

    def test_resumed_as_it_was_begun(self):
        command = options.command_of(options.complete(options.parse(
            [*GOOD, "--ascii", "--unverified", "--seed=7"])))
        found = options.resumed(options.parse(
            ["--resume", "--out=/elsewhere", "--quiet"]), command)
        self.assertEqual(found.work, "/elsewhere/work")
        self.assertEqual(found.out, "/elsewhere")
        self.assertEqual((found.seed, found.ascii, found.unverified,
                          found.quiet), (7, True, True, True))

    def test_resumed_with_what_differs(self):
        command = options.command_of(options.complete(options.parse(
            [*GOOD, "--seed=7", "--work=/w"])))
        for other, why in (
                ("--trials=4", "--trials: is 4, but 3 in the record"),
                ("--scenario=cache", "is cache, but pagecache,cache"),
                ("--seed=8", "--seed: is 8, but 7"),
                ("--ascii", "--ascii: is given, but absent"),
                ("--work=/v", "--work: is /v, but /w"),
                ("--input-device=/v", "--input-device: is /v, but absent"),
                ("--sweep=/s", "--sweep: is /s, but absent")):
            with self.assertRaises(Failure) as caught:
                options.resumed(options.parse(
                    ["--resume", "--out=/r/record", other]), command)
            self.assertIn(why, str(caught.exception))
            self.assertEqual(caught.exception.status, 2)


class OtherPrograms(unittest.TestCase):
    def test_named_as_this_one_was(self):
        """Trials of commands that are resumed have gone to another folder."""
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(unit.ROOT / "results")
        for called, wanted in (("./blinktrial", "./blinkreport x"),
                               ("blinktrial", "./blinkreport x"),
                               ("../bin/blinktrial", "../bin/blinkreport x")):
            found = programs.Programs.beside(called)
            os.chdir(unit.ROOT)
            self.assertEqual(found.words("blinkreport", "x"), wanted)
            os.chdir(unit.ROOT / "results")
        with mock.patch.dict(os.environ, PATH=str(unit.ROOT / "results")):
            self.assertEqual(found.words("blinkreport", "x"), "blinkreport x")


class OutputChecks(unittest.TestCase):
    def judge(self, text, status=0):
        return output_check.of_report(
            subprocess.CompletedProcess([], status, "", text), 5, "abc")

    def test_good(self):
        found = self.judge("Records: 5\nChecksum: abc\nDuplicate keys: 0\n"
                           "SUCCESS - all records are in order\n")
        self.assertEqual(found, output_check.OutputCheck(True, None, "abc"))

    def test_other_records(self):
        found = self.judge("Records: 5\nChecksum: abd\nDuplicate keys: 0\n")
        self.assertFalse(found.good)
        self.assertEqual(found.message, "checksum abd, abc of the input")

    def test_fewer_records(self):
        found = self.judge("Records: 4\nChecksum: abc\n")
        self.assertFalse(found.good)

    def test_no_order(self):
        found = self.judge(
            "First unordered record is record 1\nRecords: 5\nChecksum: abc\n"
            "ERROR - there are 2 unordered records\n", 1)
        self.assertEqual(found, output_check.OutputCheck(
            False, "there are 2 unordered records", "abc"))

    def test_no_output(self):
        found = self.judge("blinkval: out: No such file or directory\n", 3)
        self.assertEqual(found, output_check.OutputCheck(
            False, "blinkval: out: No such file or directory", None))

    def test_nothing_said(self):
        self.assertFalse(self.judge("", 0).good)
        self.assertFalse(self.judge("", 1).good)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Progress(unittest.TestCase):
    def test_one_line(self):
        stream = Terminal()
        shown = progress.Progress(300, stream=stream)
        shown.show(1, 0)
        shown.show(2, 1)
        shown.close()
        text = stream.getvalue()
        self.assertNotIn("\n", text)
        self.assertIn("trial 2 of 300, ", text)
        self.assertNotIn("\033", text)
        self.assertTrue(text.rstrip("\r ").endswith(" left, 1 failed"))
        line = text.split("\r")[2]
        self.assertTrue(text.endswith("\r" + " " * len(line) + "\r"))

    def test_line_is_no_wider_than_the_terminal(self):
        for columns, wanted in ((30, 29), (0, 79)):
            stream = Terminal()
            stream.fileno = lambda: 1
            with mock.patch("os.get_terminal_size",
                            return_value=os.terminal_size((columns, 9))):
                shown = progress.Progress(300, stream=stream)
                shown.wait("noise " * 99)
            self.assertEqual(len(stream.getvalue()), 1 + wanted)

    def test_a_wait_is_told(self):
        stream = Terminal()
        shown = progress.Progress(300, stream=stream)
        shown.wait("CPU 1 loses 50 % of its time")
        self.assertIn("CPU 1 loses 50 % of its time", stream.getvalue())
        shown.close()
        self.assertTrue(stream.getvalue().endswith("time\r" + 28 * " " + "\r"))

    def test_no_line_elsewhere(self):
        for stream, quiet in ((io.StringIO(), False), (Terminal(), True)):
            shown = progress.Progress(300, quiet, stream)
            shown.show(1, 0)
            shown.wait("noise")
            shown.close()
            self.assertEqual(stream.getvalue(), "")

    def test_trials_and_time_are_told_where_no_line_is(self):
        told = []
        with mock.patch("time.monotonic_ns") as clock:
            clock.return_value = 0
            shown = progress.Progress(300, stream=io.StringIO(),
                                      tell=told.append,
                                      precision=self.precision(10**12))
            shown.begin(100)
            self.assertEqual(told, ["at most 200 trials to run\n"])
            for trial in range(101, 110):
                clock.return_value += 3 * 10**9
                shown.show(trial, 0)
        self.assertEqual(told[1:], [
            "trial 104 of at most 300, about 9:48 left\n"])
        for stream, quiet in ((io.StringIO(), True), (Terminal(), False)):
            shown = progress.Progress(300, quiet, stream, told.clear)
            shown.begin(0)

    def precision(self, left_ns, known=None):
        """What --until knows of a run."""
        return types.SimpleNamespace(left_ns=left_ns, known=known)

    def test_time_and_width_of_until(self):
        stream = Terminal()
        with mock.patch("time.monotonic_ns") as clock:
            clock.return_value = 0
            shown = progress.Progress(300, stream=stream, precision=(
                self.precision(6e9, "±1.8 %, 1 % wanted")))
            clock.return_value = 10**9
            shown.show(1, 2)
        self.assertEqual(stream.getvalue(),
                         "\rtrial 1 of at most 300, 0:06 left, "
                         "±1.8 %, 1 % wanted, 2 failed")

    def test_a_reader_that_has_left_ends_no_trials(self):
        def tell(_text):
            raise Failure("", "nobody reads", 3)
        progress.Progress(1, stream=io.StringIO(), tell=tell).begin(0)

    def test_remark_is_a_line_of_its_own(self):
        for stream, said in (
                (io.StringIO(), "blinktrial: so\n"),
                (Terminal(), "no noise\r" + 8 * " "
                 + "\rblinktrial: so\n")):
            shown = progress.Progress(300, stream=stream)
            shown.wait("no noise")
            shown.remark("so")
            shown.close()
            self.assertTrue(stream.getvalue().endswith(said))
        stream = Terminal()
        progress.Progress(300, True, stream).remark("so")
        self.assertEqual(stream.getvalue(), "")

    def test_clock(self):
        for seconds, text in ((0, "0:00"), (59.6, "1:00"), (61, "1:01"),
                              (3599, "59:59"), (7325, "2:02:05")):
            self.assertEqual(progress.clock(seconds * 1e9), text)


class Record:
    """As much of one as a summary asks for."""

    def __init__(self, trials, skipped=None):
        self.design = {"scenarios": ["cache"], "configurations": [
            {"name": "reference", "skipped": None},
            {"name": "io=x", "skipped": skipped}]}
        self._trials = trials

    def trials(self):
        return self._trials


def trial(whole_ns, outcome="ok", met=True):
    return {"scenario": "cache", "configuration": "reference",
            "whole_ns": whole_ns, "outcome": outcome, "scenario_met": met}


class Summary(unittest.TestCase):
    def row(self, *trials):
        return summary.text(Record(trials, "no disk")).splitlines()[1].split()

    def test_figures(self):
        self.assertEqual(
            self.row(trial(3_000_000), trial(1_000_000), trial(2_000_000)),
            "cache reference 3 0 1.000 ms 2.000 ms".split())

    def test_failures_have_no_part(self):
        self.assertEqual(
            self.row(trial(3_000_000), trial(None, "failed", None),
                     trial(1_000, "wrong", None)),
            "cache reference 3 2 3.000 ms 3.000 ms".split())
        self.assertEqual(self.row(trial(None, "failed", None)),
                         "cache reference 1 1 - -".split())

    def test_no_name_without_verification(self):
        for met in (None, False):
            self.assertEqual(
                self.row(trial(1_000_000), trial(1_000_000, met=met))[:2],
                ["cache", "(unverified)"])

    def test_skipped_ones_are_told(self):
        text = summary.text(Record([trial(1)], "no disk"))
        self.assertEqual(text.splitlines()[-1], "skipped: io=x: no disk")

    def test_noise_is_told_where_it_mattered(self):
        def noisy(waited_ns, over_limit, block=0):
            return {**trial(1), "trial": 0, "block": block, "noise": {
                "waited_ns": waited_ns, "over_limit": over_limit,
                "places": []}}
        still = [trial(1), noisy(0, False), noisy(0, None)]
        self.assertEqual(len(summary.text(Record(still)).splitlines()), 2)
        text = summary.text(Record([
            noisy(2_000_000_000, False), trial(1),
            noisy(1_000_000_000, True, 1), noisy(0, False, 2)]))
        self.assertEqual(
            text.splitlines()[-1], "noise: waited 3.000 s before 2 of 3 "
            "blocks; 1 of 3 trials began above the limit")


if __name__ == "__main__":
    unit.main()
