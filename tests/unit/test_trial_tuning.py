"""Settings are held for as long as trials want the same, and always taken
back; a program of a few lines stands for blinktune."""

import os
import tempfile
import unittest

import unit
from trials.base.failure import Failure
from trials.base.programs import Programs
from trials.scenario import tuning

HEAD = """#!/bin/bash
case $1 in status) echo '{"journal_sha256": "abc"}'; exit ;; esac
log=${BASH_SOURCE[0]%/*}/log
echo "$*" >>"$log"
"""
GOOD = 'echo "[#] echo 1 >x"; echo held; read -r _; echo reverted >>"$log"\n'


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        # No other may be found in PATH.
        path = os.environ["PATH"]
        self.addCleanup(os.environ.update, PATH=path)
        os.environ["PATH"] = "/usr/bin:/bin"

    def tuning(self, script, *arguments):
        path = f"{self.folder}/blinktune"
        with open(path, "w", encoding="ascii") as file:
            file.write(HEAD + script)
        os.chmod(path, 0o755)
        found = tuning.Tuning(Programs(self.folder), *arguments)
        self.addCleanup(found.close)
        return found

    def log(self):
        try:
            with open(f"{self.folder}/log", encoding="ascii") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def test_nothing_is_asked_for_nothing(self):
        found = tuning.Tuning(Programs(self.folder))
        self.assertIsNone(found.want(None))
        found.close()

    def test_held_until_another_is_wanted(self):
        found = self.tuning(GOOD)
        knobs = {"knobs": {"mtu": "9000", "read-ahead": "128"}}
        self.assertEqual(found.want(knobs), {
            "profile": "mtu=9000,read-ahead=128", "journal_sha256": "abc"})
        self.assertEqual(found.want(dict(knobs)), found.want(knobs))
        held = ["hold mtu=9000,read-ahead=128"]
        self.assertEqual(self.log(), held)
        found.want({"profile": "reference"})
        self.assertEqual(self.log(), held + ["reverted", "hold reference"])
        self.assertIsNone(found.want(None))
        self.assertEqual(self.log()[-1], "reverted")
        found.close()
        self.assertEqual(len(self.log()), 4)

    def test_on_nodes_it_is_told_which(self):
        found = self.tuning(GOOD, "a,b", "/key")
        found.want({"profile": "network"})
        self.assertEqual(self.log()[0], "-w a,b --key-file /key hold network")

    def test_not_found(self):
        found = tuning.Tuning(Programs(self.folder))
        with self.assertRaisesRegex(tuning.Unavailable,
                                    "^blinktune: not found$"):
            found.want({"profile": "reference"})

    def test_what_is_refused_has_a_reason(self):
        found = self.tuning('echo "blinktune: mtu: denied" >&2; exit 4\n')
        with self.assertRaisesRegex(tuning.Unavailable,
                                    "^blinktune: mtu: denied$"):
            found.want({"knobs": {"mtu": "9000"}})
        self.assertIsNone(found.want(None))

    def test_what_it_does_is_no_reason(self):
        found = self.tuning('echo "+ echo 1 >x" >&2\n'
                            'echo "conflict  x: 1, not 2" >&2\n'
                            'echo "blinktune: mtu: failed" >&2; exit 4\n')
        with self.assertRaisesRegex(tuning.Unavailable, "mtu: failed$"):
            found.want({"profile": "reference"})
        self.assertEqual(tuning.reason_in("+ x\nconflict  x: 1, not 2\n"),
                         "conflict  x: 1, not 2")
        self.assertIsNone(tuning.reason_in("+ x\n"))

    def test_also_without_a_word(self):
        for script, why in (("exit 4\n", "ended with status 4"),
                            ("exit 0\n", "ended with status 0"),
                            ("kill -KILL $$\n", "killed by signal 9")):
            found = self.tuning(script)
            with self.assertRaisesRegex(tuning.Unavailable, why):
                found.want({"profile": "reference"})

    def test_what_cannot_be_taken_back_ends_the_trials(self):
        found = self.tuning('echo held; read -r _\n'
                            'echo "blinktune: mtu: conflict" >&2; exit 3\n')
        found.want({"profile": "network"})
        with self.assertRaises(Failure) as caught:
            found.want(None)
        self.assertEqual(str(caught.exception), "blinktune: mtu: conflict")
        self.assertEqual(caught.exception.status, 5)

    def test_without_a_journal_to_be_told_of(self):
        path = f"{self.folder}/blinktune"
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/bash\n[ $1 = hold ] && echo held && read -r _\n"
                       "true\n")
        os.chmod(path, 0o755)
        found = tuning.Tuning(Programs(self.folder))
        self.addCleanup(found.close)
        self.assertEqual(found.want({"profile": "x"}),
                         {"profile": "x", "journal_sha256": None})


if __name__ == "__main__":
    unit.main()
