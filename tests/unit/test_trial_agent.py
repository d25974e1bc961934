#!/usr/bin/python3
"""What trials ask of nodes: trials/run/agent.py, by itself and through
blinksh."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import unit
from trials.base.failure import FAILED, FILE, NETWORK, USAGE, Failure
from trials.base.programs import Programs
from trials.run import agent
from trials.scenario import conditions, residency

BIN = os.environ.get("BIN") or str(unit.ROOT / "bin")
# Not a user's, nor that of another run of this.
PORT = str(17300 + os.getpid() % 4000)


@contextlib.contextmanager
def printed():
    """What a node prints, here instead of on standard output."""
    out = io.StringIO()
    with unittest.mock.patch.object(agent, "print_text", out.write):
        yield out


def has_programs():
    return os.path.exists(f"{BIN}/blinksort")


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="blinksort-test.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.programs = Programs(BIN)

    def do(self, *arguments):
        """The one document that a node prints."""
        with printed() as out:
            self.assertEqual(agent.main(
                [f"--programs={BIN}", *map(str, arguments)]), 0)
        self.assertEqual(out.getvalue().count("\n"), 1)
        return json.loads(out.getvalue())

    def refused(self, *arguments):
        with printed() as out, \
                self.assertRaises(Failure) as caught:
            agent.main(list(map(str, arguments)))
        self.assertEqual(out.getvalue(), "")
        return caught.exception


class TestNode(Folder):
    def test_usage(self):
        path = f"{self.folder}/in"
        for arguments in (
                [], ["dance"], ["--what", "remove"], ["make", "1", "0/1"],
                ["make", "1x", "0/1", "ascii", path],
                ["make", "-1", "0/1", "ascii", path],
                ["make", "1", "1/1", "ascii", path],
                ["make", "1", "1", "ascii", path],
                ["make", "1", "0/1", "text", path],
                ["counters"], ["environment", "/", "/"], ["noise", "/"],
                ["prepare", "floppy", path, path]):
            self.assertEqual(self.refused(*arguments).status, USAGE,
                             arguments)
        self.assertEqual(os.listdir(self.folder), [])

    def test_counters(self):
        answer = self.do("counters", self.folder)
        self.assertEqual(answer["schema"], agent.SCHEMA)
        self.assertIn("context_switches", answer["counters"])

    def test_one_after_the_other(self):
        path = f"{self.folder}/said"
        with open(path, "w", encoding="utf-8") as file:
            file.write("text")
        answer = self.do("said", path, agent.THEN, "remove", path, agent.THEN,
                         "counters", self.folder)
        self.assertEqual(answer["text"], "text")
        self.assertEqual(answer["removed"], 1)
        self.assertIn("counters", answer)
        # Nothing is done of what is not all right.
        open(path, "wb").close()
        for wrong in (["dance"], [], ["counters"]):
            self.assertEqual(self.refused("remove", path, agent.THEN,
                                          *wrong).status, USAGE)
        self.assertTrue(os.path.exists(path))

    def test_noise(self):
        answer = self.do("noise")
        self.assertEqual(answer["noise"]["probe"], "noise")
        self.assertIsNone(answer["message"])
        # A node without the probe answers, and says so.
        with printed() as out, \
                unittest.mock.patch.dict(os.environ, {"PATH": "/"}):
            agent.main([f"--programs={self.folder}", "noise"])
        answer = json.loads(out.getvalue())
        self.assertIsNone(answer["noise"])
        self.assertIn("blinkprobe: neither in", answer["message"])

    def test_environment(self):
        answer = self.do("environment", self.folder)
        self.assertIn("cpu", answer["environment"])

    def test_remove(self):
        paths = [f"{self.folder}/{name}" for name in ("a", "b", "c")]
        for path in paths[:2]:
            with open(path, "wb"):
                pass
        self.assertEqual(self.do("remove", *paths)["removed"], 2)
        self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual(self.do("remove")["removed"], 0)
        self.assertEqual(self.refused("remove", self.folder).status, FILE)

    def test_missing_input(self):
        self.assertEqual(self.refused(
            "prepare", "pagecache", "/nowhere/x", "/nowhere/y").status, FILE)

    @unittest.skipUnless(has_programs(), "no programs")
    def test_trial_of_parts(self):
        """Three ranks' parts, sorted as the cluster would."""
        checksums, whole = [], f"{self.folder}/whole"
        for rank in range(3):
            made = self.do("make", 1000, f"{rank}/3", "ascii",
                           f"{self.folder}/in.{rank}")
            self.assertEqual(made["bytes"], 100 * made["records"])
            checksums.append(made["checksum"])
        one = self.do("make", 1000, "0/1", "ascii", whole)
        self.assertEqual(agent.join_checksums(checksums), one["checksum"])
        # All to rank 0 and 2: a rank may get nothing.
        self.programs.must_call(
            "blinksort", *[f"{self.folder}/in.{rank}" for rank in range(3)],
            "-o", f"{self.folder}/out.0", "-o", f"{self.folder}/out.2")
        with open(f"{self.folder}/out.1", "wb"):
            pass
        checks = self.check_all()
        done = agent.join_check(checks, self.programs)
        self.assertEqual(done.returncode, 0)
        self.assertIn("Records: 1000\n", done.stderr)
        self.assertIn(f"Checksum: {one['checksum']}\n", done.stderr)
        # Each in order, but not all as one.
        done = agent.join_check(checks[::-1], self.programs)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("ERROR", done.stderr)
        self.assertEqual(
            [name for name in os.listdir(self.folder) if "summary" in name],
            [])

    def check_all(self):
        return [{"host": f"n{rank}", **self.do(
            "check", "pagecache", f"{self.folder}/in.{rank}",
            f"{self.folder}/out.{rank}")} for rank in range(3)]

    @unittest.skipUnless(has_programs(), "no programs")
    def test_wrong_outputs(self):
        path = f"{self.folder}/out.0"
        for size_bytes in (None, 150):
            if size_bytes:
                with open(path, "wb") as file:
                    file.write(b"x" * size_bytes)
                with open(f"{path}.summary", "wb") as file:
                    file.write(b"an older one")
            with open(f"{self.folder}/in.0", "wb") as file:
                file.write(b"x" * 100)
            answer = self.do("check", "pagecache", f"{self.folder}/in.0",
                             path)
            done = agent.join_check([{"host": "n0", **answer}],
                                    self.programs)
            self.assertEqual(done.returncode, FAILED)
            self.assertTrue(done.stderr.startswith("ERROR - n0: "), done)

    @unittest.skipUnless(has_programs(), "no programs")
    def test_conditions_before_the_sum(self):
        # blinkval reads the output into the page cache.
        for name in ("in", "out"):
            with open(f"{self.folder}/{name}", "wb") as file:
                file.write(b"a" * 4096 * 100)
        if residency.evict(f"{self.folder}/out") != 0.0:
            self.skipTest("files in memory only")
        answer = self.do("check", "pagecache", f"{self.folder}/in",
                         f"{self.folder}/out")
        self.assertEqual(answer["conditions"][0]["found"], "0 %")


def node(rank, stdout="", **other):
    return {"host": f"n{rank}", "rank": rank, "state": "exited", "status": 0,
            "stdout": stdout, "stdout_total_bytes": len(stdout.encode()),
            "stderr": "", **other}


def answer(rank):
    return node(rank, json.dumps({"schema": agent.SCHEMA, "verb": "make",
                                  "records": rank}))


class TestClient(unittest.TestCase):
    def failure(self, *nodes):
        with self.assertRaises(Failure) as caught:
            agent.answers({"nodes": list(nodes)})
        return caught.exception.status, str(caught.exception)

    def test_answers_in_order(self):
        found = agent.answers({"nodes": [answer(2), answer(0), answer(1)]})
        self.assertEqual([(one["host"], one["records"]) for one in found],
                         [("n0", 0), ("n1", 1), ("n2", 2)])

    def test_failures_name_the_node(self):
        refused = node(1, status=FILE, stderr="blinktrial: /x: no such file\n"
                       "more\n")
        self.assertEqual(self.failure(answer(0), refused),
                         (FILE, "n1: /x: no such file"))
        self.assertEqual(
            self.failure(node(0, state="lost", status=127)),
            (NETWORK, "n0: lost"))
        self.assertEqual(
            self.failure(node(0, state="exited", status=99)),
            (NETWORK, "n0: exited"))
        self.assertEqual(
            self.failure(node(0, state="killed", status=137)),
            (NETWORK, "n0: killed"))

    def test_the_cancelled_are_not_to_blame(self):
        self.assertEqual(self.failure(
            node(0, state="cancelled", status=137),
            node(1, status=USAGE, stderr="blinktrial: x: y\n")),
            (USAGE, "n1: x: y"))

    def test_answers_that_are_none(self):
        cut = node(0, "...}")
        cut["stdout_total_bytes"] = 70000
        self.assertEqual(self.failure(cut),
                         (NETWORK, "n0: the answer is too long"))
        for text in ("", "{", '{"schema": "other"}'):
            self.assertEqual(self.failure(node(0, text))[0], NETWORK)

    def test_conditions_of_all(self):
        def one(met, found):
            return [conditions.condition("input-resident", "100 %", found,
                                         met)]

        for found, met, said in (
                ({"a": one(True, "100 %"), "b": one(True, "100 %")}, True,
                 "100 %"),
                ({"a": one(True, "100 %"), "b": one(False, "3.00 %")}, False,
                 "b: 3.00 %"),
                ({"a": one(None, "unknown"), "b": one(True, "100 %")}, None,
                 "a: unknown"),
                ({"a": one(None, "unknown"), "b": one(False, "0 %"),
                  "c": one(False, "1.00 %")}, False, "b: 0 %, c: 1.00 %")):
            self.assertEqual(agent.join_conditions(found), [
                {"name": "input-resident", "wanted": "100 %", "found": said,
                 "met": met}])

    def test_checksums(self):
        self.assertEqual(agent.join_checksums(["ff", "1"]), "100")


class TestThroughTheShell(Folder):
    """Two daemons of our own."""

    def cluster(self, verb, *arguments):
        done = subprocess.run(
            [str(unit.ROOT / "tests/cluster"), verb, *arguments],
            capture_output=True, text=True, check=False, env=self.environment)
        return done.stdout

    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "BIN": BIN, "BLINK_PORT": PORT,
                            "BLINK_CLUSTER": f"{self.folder}/cluster"}
        self.addCleanup(self.cluster, "down")
        said = self.cluster("up", "2", "--",
                            f"--allow={unit.ROOT / 'results'}")
        names = dict(word.split("=", 1) for word in said.split()
                     if "=" in word)
        if "WCOLL" not in names or not os.path.exists(f"{BIN}/blinktrial"):
            self.skipTest("no cluster here")
        patcher = unittest.mock.patch.dict(os.environ, {
            name: value.strip("'\"") for name, value in names.items()})
        patcher.start()
        self.addCleanup(patcher.stop)

    def test_there_and_back(self):
        source, output = f"{self.folder}/in.%r", f"{self.folder}/out.%r"
        made = agent.ask(self.programs, [], "make", 1000, "%r/%n", "ascii",
                         source)
        self.assertEqual([one["rank"] for one in made], [0, 1])
        self.assertEqual(sum(one["records"] for one in made), 1000)
        prepared = agent.ask(self.programs, [], "prepare", "pagecache", source,
                             output)
        self.assertTrue(conditions.all_met(agent.join_conditions(
            {one["host"]: one["conditions"] for one in prepared})))
        self.programs.must_call(
            "blinksh", "--", self.programs.path("blinksort"), "--cluster",
            source, "-o", output)
        checks = agent.ask(self.programs, [], "check", "pagecache", source,
                           output)
        done = agent.join_check(checks, self.programs)
        self.assertEqual(done.returncode, 0, done.stderr)
        checksum = agent.join_checksums([one["checksum"] for one in made])
        self.assertIn(f"Checksum: {checksum}\n", done.stderr)
        described = agent.ask(self.programs, [], "environment", self.folder)
        self.assertEqual(len(described), 2)
        with self.assertRaises(Failure) as caught:
            agent.ask(self.programs, [], "make", 1, "%r/%n", "ascii",
                      "/nowhere/x")
        self.assertEqual(caught.exception.status, FILE)
        self.assertIn("/nowhere/x", str(caught.exception))
        agent.ask(self.programs, [], "remove", source, output)
        self.assertEqual(os.listdir(self.folder), ["cluster"])

    def test_no_such_hosts(self):
        with self.assertRaises(Failure) as caught:
            agent.ask(self.programs, ["-w", "127.0.0.9:1"], "counters", "/")
        self.assertEqual(caught.exception.status, NETWORK)


if __name__ == "__main__":
    sys.exit(unit.main())
