"""Trials of several folders, and ranks of nodes that an mpirun starts."""

import argparse
import os
import subprocess
import tempfile
import unittest

import unit
from trials.base.failure import Failure
from trials.base.programs import Programs
from trials.record import sweep
from trials.run import mpirun
from trials.run.places import Places

SWEEP = """\
machine.chunk 64 | 128 256
  work 128 /b
  skip no
machine.net a | b
  nodes b 10.0.0.1
sort.threads 1 | 2
"""


class Target:
    """Notes what is asked of it."""

    hosts = ["node"]

    def __init__(self, options, _programs, _supervisor, _sweep):
        self.work = options.work
        self.asked = []
        options.made.append(self)

    def __getattr__(self, name):
        def ask(*arguments):
            self.asked.append(name)
            return self.work
        return ask


class InPlaces(unittest.TestCase):
    def setUp(self):
        self.made = []
        options = argparse.Namespace(work="/a", made=self.made)
        self.places = Places(Target, options, None, None, sweep.parse(SWEEP))

    def test_a_trial_is_in_its_place(self):
        self.assertEqual([target.work for target in self.made], ["/a", "/b"])
        for value, work in (("64", "/a"), ("128", "/b"), ("64", "/a")):
            of = {"parameters": {"machine.chunk": value, "machine.net": "b"}}
            self.assertEqual(self.places.rehearse("cache", of), work)
            self.assertEqual(self.places.prepare("cache", of), work)
            self.assertEqual(self.places.run("cache", of), work)
            self.assertEqual(self.places.finish("cache", of, None), work)

    def test_all_are_made_and_closed(self):
        self.places.check(True)
        self.places.make_inputs(False)
        self.places.end_rehearsals()
        self.places.close(False)
        for target in self.made:
            self.assertEqual(target.asked, ["check", "make_inputs",
                                            "end_rehearsals", "close"])

    def test_the_rest_is_the_first_ones(self):
        self.assertEqual(self.places.hosts, ["node"])
        self.assertEqual(self.places.describe(), "/a")


class Launching(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        path = f"{self.folder}/blinksh"
        with open(path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\nprintf '%s|' \"$@\"\n")
        os.chmod(path, 0o755)

    def launcher(self, hosts):
        return mpirun.Launcher(Programs(self.folder), self.folder,
                               ["-w", "all", "--key-file", "/k y"], hosts)

    def test_a_command_goes_to_its_node(self):
        launcher = self.launcher(["127.0.0.2:7301", "127.0.0.3"])
        for name, host in (("127.0.0.2", "127.0.0.2:7301"),
                           ("127.0.0.3", "127.0.0.3")):
            done = subprocess.run(
                [f"{self.folder}/launcher", "-x", name, "A=1;", "run", "%h"],
                check=True, capture_output=True, text=True)
            self.assertEqual(done.stdout, "-N|-q|--key-file|/k y|-w|"
                             f"{host}|--|/bin/sh|-c|A=1; run %%h|")
        launcher.remove()
        self.assertEqual(os.listdir(self.folder), ["blinksh"])

    def test_options_name_hosts_without_ports(self):
        launcher = self.launcher(["127.0.0.2:7301", "127.0.0.3"])
        found = launcher.options("mpich")
        self.assertEqual(found[-1], "127.0.0.2,127.0.0.3")
        self.assertIn("127.0.0.1", found)
        found = launcher.options("openmpi")
        self.assertEqual(found[-1], "127.0.0.2,127.0.0.3")
        self.assertIn("127.0.0.2/31", found)

    def test_nodes_of_one_name_are_refused(self):
        with self.assertRaisesRegex(Failure, "two nodes have one name"):
            self.launcher(["a:1", "a:2"])

    def test_the_smallest_network(self):
        for addresses, network in ((["10.1.0.2"], "10.1.0.2/32"),
                                   (["10.1.0.2", "10.1.0.17"], "10.1.0.0/27"),
                                   (["10.1.0.2", "11.0.0.1"], "10.0.0.0/7")):
            self.assertEqual(mpirun.network_of(addresses), network)

    def test_what_nodes_can_not(self):
        self.assertIsNone(mpirun.why_not_on_nodes("exchange", "mpi-tcp"))
        self.assertIsNone(mpirun.why_not_on_nodes("mpirun", "mpich"))
        for name, value in (("count", "2"), ("exchange", "mpi-shared"),
                            ("exchange", "by-reference")):
            self.assertTrue(mpirun.why_not_on_nodes(name, value))


if __name__ == "__main__":
    unit.main()
