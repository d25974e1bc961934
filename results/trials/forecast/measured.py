"""What was measured, and what is predicted of the same.

A run is a record of trials, or a file of exchanges
(results/schema/blinkreport-exchanges-1.schema.json).  Of trials only the
reference is compared, since configurations differ in what the forecast knows
nothing of.
"""

import os
import statistics
from dataclasses import dataclass

from trials.base import documents, units
from trials.base.failure import Failure
from trials.forecast import stages, wanted
from trials.record import design as designs, schema, store, sweep
from trials.report import machine_facts

SCHEMA = "blinkreport-exchanges-1"
# No more runs beside a characterisation are looked at.
_RUNS_MAX = 1000
# Facts that a machine is recognised by.
_MACHINE = ("cpu.model_name", "cpu.family", "cpu.model", "cpu.online")
# Phases of a rank, by the stage that they are compared with.
_STAGES = (("launch", ("prepare", "open", "join")),
           ("read, bucket", ("bucket", "sample", "arrange")),
           ("exchange", ("exchange",)),
           ("sort, write", ("order", "finish", "meet", "commit")))
_WHOLE = "whole"


@dataclass(frozen=True)
class Row:
    run: str
    # The stage of a sort, or the schedule of an exchange.
    stage: str
    predicted_ns: float
    measured_ns: float
    note: str
    # The limit of an exchange; None: this is a stage of a sort.
    limit: str | None = None

    @property
    def error(self):
        return self.predicted_ns / self.measured_ns - 1


class Comparison:
    """Rows, and notes of what is not in them."""

    def __init__(self, programs, rates, machine_folder):
        self.programs, self.rates = programs, rates
        self.environment = machine_facts.before(
            store.read_environment(machine_folder))
        self.rows, self.notes = [], []

    def add(self, path):
        """Raises Failure if the path is no run."""
        if os.path.isdir(path):
            self._add_trials(path, store.read(path))
        else:
            self._add_exchanges(path)

    def add_beside(self, machine_folder):
        """The records and files in the same folder, of the same machine."""
        whole = os.path.realpath(machine_folder)
        folder = os.path.dirname(whole)
        others = 0
        for name in sorted(os.listdir(folder))[:_RUNS_MAX]:
            path = os.path.join(folder, name)
            try:
                if os.path.isfile(os.path.join(path, store.DESIGN)):
                    others += not self._add_of_this_machine(path)
                elif name.endswith(".json") and _is_exchanges(path):
                    self._add_exchanges(path)
            except Failure as failure:
                self.notes.append(f"Not compared: {failure}.")
        if others:
            self.notes.append("Not compared: trials of other machines, "
                              f"beside this one's: {others}.")

    def _add_of_this_machine(self, path):
        """False: it is of another machine, and was not added."""
        run = store.read(path)
        found = machine_facts.before(run.environment)
        for key in _MACHINE:
            if machine_facts.at(found, key) != machine_facts.at(
                    self.environment, key):
                return False
        self._add_trials(path, run)
        return True

    # --- trials ---------------------------------------------------------------

    def _add_trials(self, path, run):
        name = os.path.basename(os.path.realpath(path))
        if designs.of_commands(run.design):
            self.notes.append(f"Not compared: {name}: commands are timed "
                              "there, and no sorts.")
            return
        configuration = next(c for c in run.design["configurations"]
                             if c["role"] == "reference")
        if (sweep.ranks_of(configuration["parameters"])
                and not run.design["hosts"]):
            self.notes.append(f"Not compared: {name}: an mpirun has started "
                              "its ranks.")
            return
        reference = configuration["name"]
        for scenario in run.design["scenarios"]:
            trials = [t for t in run.trials if t["scenario"] == scenario
                      and t["configuration"] == reference
                      and t["outcome"] in ("ok", "unchecked")
                      and all(rank["phases_ns"] and rank["elapsed_ns"]
                              for rank in t["ranks"])]
            if scenario not in wanted.SCENARIOS:
                self.notes.append(f"Not compared: {name}, {scenario}: the "
                                  "sorter predicts its passes itself.")
            elif trials:
                self._add_scenario(name, run.design, scenario, trials)

    def _add_scenario(self, name, design, scenario, trials):
        if scenario != "pagecache" and not self.rates.disk_read:
            self.notes.append(f"Not compared: {name}, {scenario}: the "
                              "characterisation has no rates of a disk.")
            return
        hosts = design["hosts"] or []
        one = stages.predict(
            self.programs, max(1, len(hosts)), design["records"],
            design["record_bytes"], **self._network(hosts),
            **self.rates.supposed(scenario, trials[0]["ranks"][0]["threads"]))
        predicted = (one.launch, one.first, one.exchange, one.last)
        measured = _measured(trials)
        words = (f"{name}, {scenario}, {design['records']:,} "
                 "records")
        for (stage, _), ns in zip(_STAGES, predicted):
            if measured[stage] and ns:
                self.rows.append(Row(words, stage, ns, measured[stage],
                                     f"{len(trials)} trials"))
        self.rows.append(Row(words, _WHOLE, one.whole, measured[_WHOLE],
                             f"{len(trials)} trials"))

    def _network(self, hosts):
        """Options of the model for ranks on one machine, or on several."""
        if hosts and all(host.startswith("127.") for host in hosts):
            return self._loopback()
        return self.rates.link_options

    def _loopback(self):
        """Options for ranks that share the machine's CPUs."""
        rate = self.rates.loopback or wanted.LINK_BITS_PER_S / 8
        return {"link": round(min(8 * rate, wanted.LINK_MAX)), "mtu": 65535,
                "overhead": 0, "shared_cpus": self.rates.cpus}

    # --- exchanges ------------------------------------------------------------

    def _add_exchanges(self, path):
        for one in schema.read(path, SCHEMA)["exchanges"]:
            self._add_exchange(one)

    def _add_exchange(self, one):
        if one["link_bits_per_s"] is None:
            options = self._loopback()
        else:
            options = {"link": one["link_bits_per_s"]}
        options |= {"mtu": one["mtu_bytes"],
                    "overhead": one["overhead_bytes"],
                    "shared_cpus": one["shared_cpus"]}
        found = stages.predict(self.programs, one["nodes"], one["records"],
                               one["record_bytes"], **options)
        self.rows.append(Row(
            _exchange_words(one), one["schedule"], found.by(one["schedule"]),
            one["exchange_ns"], one["note"],
            one["limit"].replace("cpus", "CPUs")))


def _exchange_words(one):
    link = "loopback" if one["link_bits_per_s"] is None else \
        rate_words(one["link_bits_per_s"])
    mtu = f", MTU {one['mtu_bytes']}" if one["mtu_bytes"] != 1500 and \
        one["link_bits_per_s"] else ""
    return (f"{one['date']}, {one['nodes']} x {link}{mtu}, "
            f"{short_count(one['records'])}")


def short_count(number):
    """The number as an option has it: "1M", "2500k", "62500"."""
    for size, letter in ((10**12, "T"), (10**9, "G"), (10**6, "M"),
                         (10**3, "k")):
        if number >= size and number % size == 0:
            return f"{number // size}{letter}"
    return str(number)


def rate_words(bits_per_s):
    """"10 Gbit/s", "300 Mbit/s" """
    size, name = units.unit_of(bits_per_s, (
        (1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"),
        (1, "bit/s")))
    return f"{bits_per_s / size:.4g} {name}"


def _is_exchanges(path):
    try:
        document = documents.read(path)
    except Failure:
        return False
    return isinstance(document, dict) and document.get("schema") == SCHEMA


def _measured(trials):
    """Medians: of the ranks in a trial, and then of the trials."""
    found = {stage: statistics.median(statistics.median(
        sum(rank["phases_ns"].get(phase, 0) for phase in phases)
        for rank in trial["ranks"]) for trial in trials)
        for stage, phases in _STAGES}
    # The part of a process before and after the sorter's own clock.
    found["launch"] += statistics.median(
        trial["whole_ns"] - max(rank["elapsed_ns"] for rank in trial["ranks"])
        for trial in trials)
    found[_WHOLE] = statistics.median(t["whole_ns"] for t in trials)
    return found


def summary(rows) -> list:
    """Sentences that say how far off the model is, where it claims to hold."""
    found = []
    links = [row for row in rows if row.limit == "link"]
    wholes = [row for row in rows if row.stage == _WHOLE]
    for words, group in (("exchanges that their links limited", links),
                         ("whole sorts", wholes)):
        if group:
            errors = sorted(abs(row.error) for row in group)
            found.append(f"Error of {words}, in {len(group)} of them: "
                         f"{100 * statistics.median(errors):.1f} % at the "
                         f"median, {100 * errors[-1]:.1f} % at most.")
    return found
