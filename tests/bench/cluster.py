"""Daemons on this machine, for the time of a with block."""

import os
import shutil
import subprocess
import tempfile

from programs import BIN, ROOT, Skip


class Cluster:
    """tests/cluster, and the environment in which blinksh finds it."""

    def __init__(self, nodes, *options):
        self.folder = tempfile.mkdtemp(prefix="blinksort-bench.", dir="/tmp")
        self.environment = dict(os.environ, BIN=str(BIN), BLINK_PORT="27300",
                                BLINK_CLUSTER=f"{self.folder}/cluster")
        self.arguments = [str(nodes), *options]
        self.hosts = []

    def __enter__(self):
        try:
            self.call("up", *self.arguments)
        except subprocess.CalledProcessError as reason:
            shutil.rmtree(self.folder)
            why = reason.stderr.strip().splitlines() or ["failed"]
            raise Skip(f"tests/cluster: {why[-1]}") from None
        except BaseException:
            # What was interrupted has made a part of the cluster.
            self.__exit__()
            raise
        for line in self.call("env").splitlines():
            name, value = line.removeprefix("export ").split("=", 1)
            self.environment[name] = value
        with open(self.environment["WCOLL"], encoding="ascii") as file:
            self.hosts = file.read().split()
        return self

    def __exit__(self, *_):
        self.call("down")
        shutil.rmtree(self.folder)

    def call(self, *arguments):
        return subprocess.run(
            [ROOT / "tests/cluster", *arguments], check=True, text=True,
            env=self.environment, capture_output=True).stdout

    def first(self, count):
        """The first so many hosts, as blinksh takes them."""
        return ",".join(self.hosts[:count])
