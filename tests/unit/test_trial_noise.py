"""Noise: what the probe says, what a limit makes of it, what a record has."""

import json
import subprocess
import unittest
from unittest import mock

import unit
from trial_samples import NOISE as DOCUMENT, noise_place as place
from trials.base.failure import FAILED, Failure
from trials.machine import noise as machine
from trials.record import noise as recorded, schema
from trials.run import noise as run


class Programs:
    def __init__(self, stdout="", status=0, stderr=""):
        self.done = subprocess.CompletedProcess([], status, stdout, stderr)

    def must_call(self, name, *arguments):
        assert (name, arguments[0]) == ("blinkprobe", "noise")
        self.asked = arguments[1:]
        if self.done.returncode:
            raise Failure(name, self.done.stderr, FAILED)
        return self.done


class Probe(unittest.TestCase):
    def test_places_are_as_the_schema_says(self):
        properties = schema.validator(schema.TRIAL).schema["properties"]
        item = properties["noise"]["properties"]["places"]["items"]
        validator = type(schema.validator(schema.TRIAL))(item)
        for one in (place(4.0), place(4.0, "n1"), place(None), place(0),
                    place(100)):
            self.assertEqual(list(validator.iter_errors(one)), [])

    def test_worst_cpu_is_the_machine_s(self):
        found = place(4.0, "n1")
        self.assertEqual((found["worst_percent"], found["mean_percent"]),
                         (4.0, 2.5))
        self.assertEqual(found["host"], "n1")
        self.assertEqual([cpu["cpu"] for cpu in found["cpus"]], [0, 3])
        self.assertNotIn("readings", found["cpus"][0])

    def test_probe_is_read(self):
        found = machine.watch(Programs(json.dumps(DOCUMENT)))
        self.assertEqual(found, {"noise": DOCUMENT, "message": None})

    def test_it_is_watched_for_as_long_as_is_asked_for(self):
        programs = Programs(json.dumps(DOCUMENT))
        for times, asked in (((), "50"), ((5,), "5")):
            machine.watch(programs, *times)
            self.assertEqual(programs.asked, (f"--time-ms={asked}",))

    def test_probe_that_fails_leaves_a_message(self):
        for programs, why in (
                (Programs("", 1, "5 threads"), "blinkprobe: 5 threads"),
                (Programs("noise"), "blinkprobe: prints no JSON"),
                (Programs("{}"), "blinkprobe: prints something else"),
                (Programs("[]"), "blinkprobe: prints something else"),
                (Programs(json.dumps({**DOCUMENT, "cpus": []})),
                 "blinkprobe: prints something else"),
                (Programs(json.dumps({**DOCUMENT, "cpus": [
                    {**DOCUMENT["cpus"][0], "lost_percent": 101}]})),
                 "blinkprobe: prints something else"),
                (Programs(json.dumps({**DOCUMENT, "cpus": [
                    {**DOCUMENT["cpus"][0], "lost_percent": "much"}]})),
                 "blinkprobe: prints something else")):
            found = machine.place(machine.watch(programs))
            self.assertEqual(found["message"], why)
            self.assertIsNone(found["worst_percent"])
            self.assertEqual(found["cpus"], [])


class Nothing:
    signal = 0

    def __init__(self):
        self.told = []

    def wait(self, why):
        self.told.append(why)

    remark = wait


class Watch(unittest.TestCase):
    """A clock that only the waiting moves."""

    def setUp(self):
        self.now_ns, self.begins_block = 0, True
        clock = mock.patch.object(run, "time", mock.Mock(
            monotonic_ns=lambda: self.now_ns, sleep=self.sleep))
        clock.start()
        self.addCleanup(clock.stop)
        self.supervisor, self.progress = Nothing(), Nothing()

    def sleep(self, seconds):
        self.now_ns += round(seconds * 1e9)

    def watch(self, *percents, limit=None, wait_s=60):
        """The last of the percents stays."""
        left = list(percents)

        def look():
            found = left.pop(0) if len(left) > 1 else left[0]
            return found if isinstance(found, list) else [place(found)]
        return run.NoiseWatch(look, limit, wait_s, self.supervisor,
                              self.progress)

    def look(self, *percents, **options):
        return self.watch(*percents, **options).before_trial(
            self.begins_block)

    def test_without_a_limit_nothing_is_waited_for(self):
        found = self.look(99.0)
        self.assertEqual((found["over_limit"], found["limit_percent"],
                          found["waited_ns"], found["looks"]),
                         (None, None, 0, 1))
        self.assertEqual(recorded.percent(found), 99.0)

    def test_still_machine_is_not_waited_for(self):
        found = self.look(5.0, limit=run.Limit(5.0, True))
        self.assertEqual((found["over_limit"], found["limit_percent"],
                          found["waited_ns"], found["looks"]),
                         (False, 5.0, 0, 1))
        self.assertEqual(self.progress.told, [])

    def test_waits_until_it_is_still(self):
        found = self.look(50.0, 9.0, 5.1, 2.0, 77.0, limit=run.Limit(5.0))
        self.assertEqual((found["over_limit"], found["waited_ns"],
                          found["looks"]), (False, 1_500_000_000, 4))
        self.assertEqual(recorded.percent(found), 2.0)
        self.assertEqual(self.progress.told[0],
                         "CPU 3 loses 50 % of its time; waiting for 5 %")

    def test_waits_no_longer_than_asked(self):
        for wait_s, looks in ((0, 1), (1, 3), (1.2, 4), (60, 121)):
            found = self.look(50.0, limit=run.Limit(5.0), wait_s=wait_s)
            self.assertEqual((found["over_limit"], found["waited_ns"],
                              found["looks"]), (True, wait_s * 1e9, looks))

    def test_refuses_when_asked(self):
        with self.assertRaises(Failure) as caught:
            self.look([place(1.0, "n1"), place(50.0, "n2")],
                      limit=run.Limit(5.0, True), wait_s=1)
        self.assertEqual(str(caught.exception),
                         "noise: CPU 3 on n2 loses 50 % of its time after a "
                         "wait of 1.000 s, the limit is 5 %")
        self.assertEqual(caught.exception.status, FAILED)

    def test_unknown_is_not_below_a_limit(self):
        found = self.look(None, limit=run.Limit(5.0))
        self.assertEqual((found["over_limit"], found["looks"]), (None, 1))
        with self.assertRaisesRegex(
                Failure, "noise: can't be watched, .*: no probe"):
            self.look(None, limit=run.Limit(5.0, True))
        # One node above the limit is above it, whatever the other is.
        found = self.look([place(None, "n1"), place(50.0, "n2")], wait_s=0,
                          limit=run.Limit(5.0))
        self.assertIs(found["over_limit"], True)
        self.assertIsNone(recorded.percent(found))

    def test_unknown_is_said_once(self):
        watch = self.watch([place(None, "n1")])
        watch.before_trial(True)
        watch.before_trial(False)
        self.assertEqual(self.progress.told,
                         ["the noise is not known: n1: no probe"])

    def test_within_a_block_it_only_labels(self):
        self.begins_block = False
        for percent, over in ((50.0, True), (5.0, False), (None, None)):
            found = self.look(percent, limit=run.Limit(5.0, True))
            self.assertEqual(
                (found["over_limit"], found["waited_ns"], found["looks"]),
                (over, 0, 1))

    def test_signal_ends_the_waiting(self):
        self.supervisor.signal = 15
        found = self.look(50.0, limit=run.Limit(5.0, True))
        self.assertEqual(found["looks"], 1)
        # And the probe's own end by it is not told.
        self.look(None, limit=run.Limit(5.0, True))
        self.assertEqual(self.progress.told, [])


class Recorded(unittest.TestCase):
    @staticmethod
    def trial(number, block, percent=None, **noise):
        found = {"trial": number, "block": block}
        if percent is not None:
            found["noise"] = {"places": [place(percent)], **noise}
        return found

    def test_first_of_blocks(self):
        looks = recorded.looks([
            self.trial(0, 0), self.trial(1, 0, 1.0), self.trial(2, 1, 4.0),
            self.trial(3, 1, 7.0), self.trial(4, 2, 2.0)])
        self.assertEqual([(look.trial, look.percent) for look in looks],
                         [(1, 1.0), (2, 4.0), (3, 7.0), (4, 2.0)])
        self.assertEqual([look.trial for look
                          in recorded.first_of_blocks(looks)], [1, 2, 4])
        self.assertEqual(recorded.first_of_blocks([]), [])

    def test_look(self):
        look = recorded.Look(0, 0, {"places": [
            place(1.5), place(None, "n2"), place(3.0)]})
        self.assertIsNone(look.percent)
        self.assertEqual(look.longest_ns, 300_000)
        self.assertEqual(look.messages, ["n2: no probe"])


if __name__ == "__main__":
    unit.main()
