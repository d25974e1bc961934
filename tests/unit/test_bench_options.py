#!/usr/bin/python3
"""The benchmarks' command lines: --help is answered, unknown words are refused,
and neither starts anything."""

import os
import subprocess
import tempfile
import unittest

import unit

SCRIPTS = [unit.ROOT / "tests/bench" / name for name in (
    "cluster.sh", "external.sh", "files.sh", "timers.py")]


class Options(unittest.TestCase):
    def call(self, script, *words):
        """Of a run that must not leave anything in its folder."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [script, *words], cwd=folder, text=True, timeout=60,
                stdin=subprocess.DEVNULL, capture_output=True, check=False)
            self.assertEqual([], os.listdir(folder))
        return done

    def test_help(self):
        for script in SCRIPTS:
            with self.subTest(script.name):
                done = self.call(script, "--help")
                self.assertEqual((0, ""), (done.returncode, done.stderr))
                self.assertRegex(done.stdout, rf"(?m)^usage: .*{script.name}")
                # Also what the benchmark measures, not the options alone.
                self.assertGreater(done.stdout.count("\n"), 6)

    def test_unknown_words(self):
        for script in SCRIPTS:
            for words in ("--no-such",), ("--no-such", "20", "word"):
                with self.subTest(script.name, words=words):
                    done = self.call(script, *words)
                    self.assertEqual((2, ""), (done.returncode, done.stdout))
                    self.assertIn("usage: ", done.stderr)


if __name__ == "__main__":
    unit.main()
