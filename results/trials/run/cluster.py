"""A cluster as the target of trials: a rank on each node sorts, and what is
prepared and checked is so on all of them, by `blinktrial node`."""

import contextlib
import json
import os

from trials.base.failure import NETWORK, USAGE, Failure, naming
from trials.base.programs import Programs, first_line
from trials.machine import counters, environment, noise
from trials.record.sweep import NODES, Sweep, ranks_of, sort_arguments
from trials.run import agent, mpirun, output_check, sorter
from trials.run.machine import REHEARSAL_RECORDS
from trials.run.options import default_work
from trials.run.supervisor import Supervisor
from trials.run.target import Ending, Target
from trials.scenario import conditions
from trials.scenario.place import Place


class Cluster(Target):
    """The nodes that -w names.  The folder for work is there on each."""

    def __init__(self, options, programs: Programs, supervisor: Supervisor,
                 sweep: Sweep | None = None):
        self._programs = programs
        self._supervisor = supervisor
        self._work = options.work
        self._made_folder = False
        self._own_folder = options.work == default_work(options.out)
        if options.input_device:
            raise Failure("--input-device", "is for one machine, not for -w",
                          USAGE)
        if conditions.BeyondMemory.name in options.scenarios:
            raise Failure(conditions.BeyondMemory.name,
                          "is for one machine, not for -w", USAGE)
        self._scenarios = {
            name: conditions.scenario(name, Place.folder(options.work),
                                      options)
            for name in options.scenarios}
        self._records = options.records
        self._kind = "ascii" if options.ascii else "binary"
        self._agent_options = [f"--cache-bytes={options.cache_bytes}"] \
            if options.cache_bytes else []
        folder = literal(options.work)
        self._input, self._output = f"{folder}/in.%r", f"{folder}/out.%r"
        self._rehearsal = f"{folder}/rehearsal.%r"
        self._said = f"{folder}/said.%r"
        # Values that are had by other addresses of the nodes.
        self._addresses = sweep.places(NODES) if sweep else {}
        self._launcher = None
        self._shell = ["-w", options.hosts, "--key-file", key_of(options)]
        self._watched = list(self._shell)
        self.hosts = self._ping()
        self._checksum = None
        self._rehearsing = False

    def _ping(self) -> list[str]:
        """All hosts, in the order of ranks."""
        done = self._programs.call("blinksh", *self._shell, "--json", "ping")
        try:
            nodes = json.loads(done.stdout)["nodes"]
        except (ValueError, KeyError):
            raise Failure("blinksh", first_line(done.stderr) or "says nothing",
                          done.returncode or NETWORK) from None
        for node in nodes:
            if not node["answered"]:
                raise Failure(node["host"], "does not answer", NETWORK)
        return [node["host"] for node in nodes]

    def _ask(self, verb: str, *arguments, options=()) -> list[dict]:
        return agent.ask(self._programs, self._shell, verb, *arguments,
                         options=[*self._agent_options, *options])

    def check(self, refuse_unverified: bool) -> None:
        for name in self._scenarios:
            found = joined(self._ask("examine", name, literal(self._work)))
            for one in found:
                if refuse_unverified and one["met"] is not True:
                    raise Failure(f"{name}: {one['name']}",
                                  f"{one['found']} (wanted: {one['wanted']})")

    def make_inputs(self, reuse: bool) -> None:
        """Each node its part: together they are what one machine sorts."""
        with naming(self._work):
            # The folder made here serves all nodes that share it; else each has
            # to have it.
            self._made_folder = not os.path.isdir(self._work)
            os.makedirs(self._work, exist_ok=True)
        # An output that is replaced would cost the time of its removal.
        self.remove_output()
        made = self._ask("make", self._records, "%r/%n", self._kind,
                         self._input, options=["--reuse"] if reuse else [])
        self._checksum = agent.join_checksums(
            [one["checksum"] for one in made])
        # Nodes that are on one machine would watch each other's probes.
        machines = {one["boot_id"]: one["host"] for one in reversed(made)}
        self._watched[1] = ",".join(machines.values())

    def rehearse(self, scenario: str, configuration: dict) -> str | None:
        """Sort a few records off the record.  None, or why that fails."""
        if not self._rehearsing:
            self._rehearsing = True
            self._ask("make", REHEARSAL_RECORDS, "%r/%n", self._kind,
                      self._rehearsal)
        try:
            _, result = self._sort(scenario, configuration, self._rehearsal)
        except Failure as reason:
            return str(reason)
        self.remove_output()
        return result.message or "fails" if result.failed else None

    def end_rehearsals(self) -> None:
        if self._rehearsing:
            self._rehearsing = False
            self._ask("remove", self._rehearsal)

    def noise(self) -> list[dict]:
        """Watched on all machines at once."""
        found = agent.ask(self._programs, self._watched, "noise")
        return [noise.place(node, node["host"]) for node in found]

    def prepare(self, scenario: str, _configuration: dict) -> tuple:
        found = self._ask("prepare", scenario, self._input, self._output,
                          agent.THEN, "counters", literal(self._work))
        return joined(found), counted(found)

    def difference(self, before: dict, after: dict) -> dict:
        old, new = dict(before), dict(after)
        old_nodes, new_nodes = old.pop("nodes"), new.pop("nodes")
        return {**counters.difference(old, new), "nodes": {
            host: counters.difference(old_nodes[host], new_nodes[host])
            for host in old_nodes}}

    def run(self, scenario: str, configuration: dict):
        return self._sort(scenario, configuration, self._input)

    def _sort(self, scenario, configuration, source):
        parameters = configuration["parameters"]
        timeout_s = sorter.timeout_s_of(self._records)
        words = [source, "-o", self._output, "--json",
                 *self._scenarios[scenario].sort_options(),
                 *sort_arguments(parameters)]
        ranks = ranks_of(parameters)
        if ranks and ranks["exchange"] in mpirun.WITH_MPI:
            return self._sort_by_mpi(ranks, words, timeout_s)
        return sorter.run_cluster(
            [self._programs.path("blinksh"), *self._shell, "--json",
             f"--timeout={timeout_s:.0f}", "--",
             self._programs.path("blinksort"), *self._ranks_at(parameters),
             *words], self._supervisor, timeout_s)

    def _ranks_at(self, parameters: dict) -> list[str]:
        """How each rank learns of the others: by the addresses that blinksh
        has, or by others of the same nodes."""
        nodes = next((nodes for (name, value), nodes in self._addresses.items()
                      if parameters.get(name) == value), None)
        return [f"--nodes={nodes}" if nodes else "--cluster"]

    def _sort_by_mpi(self, ranks, words, timeout_s):
        """An mpirun starts the ranks, by way of our daemons.  The time is that
        of mpirun, and each rank's JSON is fetched behind it."""
        self._launcher = self._launcher or mpirun.Launcher(
            self._programs, self._work, self._shell, self.hosts)
        command = mpirun.command(
            self._programs, ranks["mpirun"], ranks["exchange"],
            len(self.hosts), self._said.removesuffix(".%r").replace("%%", "%"),
            words, self._launcher.options(ranks["mpirun"]))
        return sorter.run_ranks(
            command, self._supervisor, timeout_s, self.hosts,
            lambda: [node["text"] for node in self._ask("said", self._said)])

    def finish(self, scenario: str, _configuration: dict,
               result: sorter.Result) -> Ending:
        """The conditions and the check only of a run that has not failed."""
        work = literal(self._work)
        remove = [agent.THEN, "remove", self._output, self._said]
        if result.failed:
            return Ending(counted(self._ask("counters", work, *remove)), [],
                          None)
        found = self._ask("counters", work, agent.THEN, "check", scenario,
                          self._input, self._output, *remove)
        conditions = joined(found) + agent.join_conditions({
            host: self._scenarios[scenario].verify_run(document)
            for host, document in zip(self.hosts, result.documents)})
        return Ending(counted(found), conditions, output_check.of_report(
            agent.join_check(found, self._programs), self._records,
            self._checksum))

    def remove_output(self) -> None:
        self._ask("remove", self._output, self._said)

    def describe(self) -> dict:
        nodes = self._ask("environment", literal(self._work))
        return {**environment.describe([self._work], self._programs),
                "nodes": {node["host"]: node["environment"]
                          for node in nodes}}

    def close(self, keep: bool) -> None:
        """Remove what was made, but for what keep asks to leave."""
        if self._checksum is not None:
            self.end_rehearsals()
            self.remove_output()
            if self._launcher:
                self._launcher.remove()
            if not keep:
                self._ask("remove", self._input, f"{self._input}.filler")
        if not keep and (self._made_folder or self._own_folder):
            # The folder stays if there is something else in it.
            with contextlib.suppress(OSError):
                os.rmdir(self._work)


def joined(answers: list[dict]) -> list[dict]:
    return agent.join_conditions({answer["host"]: answer["conditions"]
                                  for answer in answers})


def counted(answers: list[dict]) -> dict:
    return {**counters.read(), "nodes": {answer["host"]: answer["counters"]
                                         for answer in answers}}


def key_of(options) -> str:
    """blinksh gets no environment of ours in a timed run."""
    key = options.key_file or os.environ.get("BLINK_KEY")
    if not key:
        raise Failure("--key-file", "is missing, and so is BLINK_KEY", USAGE)
    return os.path.abspath(key)


def literal(path: str) -> str:
    """The path with each % doubled: blinksh replaces %r by the rank."""
    return path.replace("%", "%%")
