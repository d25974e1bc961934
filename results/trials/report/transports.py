"""Ranks that an mpirun has started, here or on nodes: what the whole took, what
of it was the start and the end of MPI, and how the rest compares with UDP.

Of MPI_Init, and of MPI_Finalize, a trial's figure is the median over its ranks:
those that begin first wait for the others in it, as ranks without MPI do in
their own time.  The rest is compared block by block with that of the ranks
that the same mpirun has started, as many, which exchange by UDP.  "sort" is
what the slowest rank says of itself, without start and end of its process.
"""

from trials.base import units
from trials.record.sweep import ranks_of
from trials.report import machine_facts
from trials.report.external import median, shown

TITLE = ("MPI_Init and MPI_Finalize apart, medians; / UDP: of what is left, "
         "block by block, under the same mpirun; sort: what the slowest rank "
         "says of itself")
HEADINGS = ("ranks|mpirun|exchange|>n|>whole|>MPI_Init|>MPI_Finalize|"
            ">less both|>/ UDP|>sort")
WITHOUT_MPI = "udp"


def cpu_count(environment) -> int | None:
    """The number of CPUs in the machine's "0-1,4"; None if that is not known.
    """
    online = machine_facts.at(machine_facts.before(environment), "cpu.online")
    if not online:
        return None
    ends = [part.split("-") for part in online.split(",")]
    return sum(int(part[-1]) - int(part[0]) + 1 for part in ends)


def count_of(study, group) -> int:
    """The number of ranks: one on each node, or as many as were asked for."""
    hosts = study.design["hosts"]
    return len(hosts) if hosts else int(ranks_of(group.parameters)["count"])


def crowded(study, group) -> bool:
    """True if there are more ranks than CPUs of their one machine: what ranks
    wait for is a CPU, too."""
    cpus = cpu_count(study.run.environment)
    return not study.design["hosts"] and cpus is not None and bool(
        ranks_of(group.parameters)) and count_of(study, group) > cpus


def uses_mpi(group) -> bool:
    return ranks_of(group.parameters)["exchange"].startswith("mpi-")


def part_ns(trial: dict, name: str) -> float | None:
    """The median over the ranks that have it."""
    return median(rank.get(name) for rank in trial["ranks"])


def rest_ns(trial: dict) -> float:
    """The whole less what MPI takes to begin and to end."""
    return trial["whole_ns"] - sum(
        part_ns(trial, name) or 0
        for name in ("mpi_init_ns", "mpi_finalize_ns"))


def sort_ns(trial: dict) -> int | None:
    """The time of the slowest rank, from its first look at its input to its
    end."""
    return max((rank["elapsed_ns"] for rank in trial["ranks"]
                if rank["elapsed_ns"] is not None), default=None)


def without_mpi(study, group):
    """The group that differs from this one in that alone."""
    wanted = {**group.parameters, "ranks.exchange": WITHOUT_MPI}
    return next((other for other in study.of(group.scenario)
                 if other.parameters == wanted), None)


def ratio(group, other) -> float | None:
    """The median of the ratios of their rests, of blocks that have both."""
    if other is None or other is group:
        return None
    others = {trial["block"]: rest_ns(trial) for trial in other.sample_trials}
    return median(rest_ns(trial) / others[trial["block"]]
                  for trial in group.sample_trials if trial["block"] in others)


def rows(study, scenario) -> list:
    """Rows by number of ranks, without the control; of nodes, where a sweep
    varies much else, only the reference and the groups with MPI."""
    groups = [group for group in study.of(scenario)
              if ranks_of(group.parameters) and group.count
              and group.role != "control"
              and (not study.design["hosts"] or group.role == "reference"
                   or uses_mpi(group))]
    return [_row(study, group) for group in sorted(
        groups, key=lambda group: count_of(study, group))]


def _row(study, group):
    def duration(values):
        return shown(median(values), units.duration)

    trials = group.sample_trials
    ranks = ranks_of(group.parameters)
    return [f"{count_of(study, group)}{'*' * crowded(study, group)}",
            ranks["mpirun"],
            ranks["exchange"], str(group.count),
            duration(trial["whole_ns"] for trial in trials),
            *(duration(part_ns(trial, name) for trial in trials)
              for name in ("mpi_init_ns", "mpi_finalize_ns")),
            duration(map(rest_ns, trials)),
            shown(ratio(group, without_mpi(study, group)), "{:.2f}".format),
            duration(map(sort_ns, trials))]


def notes(study) -> list:
    """Notes on the rows that are marked."""
    counts = dict.fromkeys(count_of(study, group) for group
                           in study.groups.values() if crowded(study, group))
    return [f"{count} ranks are more than the "
            f"{cpu_count(study.run.environment)} CPUs of the machine "
            "(*): their times are also those of waiting for a CPU."
            for count in counts]
