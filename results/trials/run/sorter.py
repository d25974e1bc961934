"""What a sorter says of its timed run, or the ranks of a cluster: the documents
that they print, as a record has them."""

import json
from dataclasses import dataclass, field

from trials.base.programs import first_line
from trials.run.supervisor import Supervisor
from trials.run.timed import TIMEOUT_S, Timed, message_of, time_command

# No way of sorting takes as long for a record.
TIMEOUT_S_PER_RECORD = 10e-6
# blinksh has a timeout itself, and tells which node it was.
CLUSTER_GRACE_S = 10.0
# Phases that a rank of a cluster spends its time with, in the order of time.
CLUSTER_PHASES = ("open", "join", "bucket", "sample", "arrange", "exchange",
                  "order", "finish", "meet", "commit")
EXCHANGE_COUNTERS = (
    "sent_bytes", "sent_datagrams", "received_bytes", "received_datagrams",
    "resent_datagrams", "duplicate_datagrams", "damaged_datagrams",
    "round_wait_ns")
# Measures of a process that sorts alone.
USAGE = ("user_ns", "system_ns", "max_rss_bytes", "minor_faults",
         "major_faults", "voluntary_switches", "involuntary_switches")
# Figures of a sort beyond memory; each may be missing.
EXTERNAL_FIGURES = (
    "batches", "runs", "resident_runs", "merges", "pieces", "spilled_bytes",
    "reread_bytes", "scratch_peak_bytes", "predicted_ns")
# Figures of a rank whose records go by MPI.
MPI_FIGURES = ("mpi_init_ns", "mpi_finalize_ns")
PASS_FIGURES = ("ns", "read_bytes", "written_bytes")
STAGE_FIGURES = ("workers", "units", "bytes", "median_ns", "busy_ns")


@dataclass
class Result:
    """The outcome of a run, of one process or of a cluster."""
    whole_ns: int
    exit_status: int
    message: str | None
    records: int | None = None
    bytes: int | None = None
    ranks: list = field(default_factory=list)
    # The document that each rank has printed; None for one that has not.
    documents: list = field(default_factory=list)
    # Its time counts, however it has ended.
    ignored: bool = False

    @property
    def failed(self) -> bool:
        return self.exit_status != 0 and not self.ignored


def timeout_s_of(records: int) -> float:
    return TIMEOUT_S + records * TIMEOUT_S_PER_RECORD


def run(command: list[str], supervisor: Supervisor,
        timeout_s: float = TIMEOUT_S) -> tuple[Timed, Result]:
    """Run a sorter on this machine; it prints its JSON."""
    timed = time_command(command, supervisor, timeout_s)
    said = parse(timed.stdout)
    result = Result(timed.whole_ns, timed.exit_status, message_of(timed),
                    said.get("records"), said.get("bytes"))
    result.ranks.append(process_rank(timed, said))
    result.documents.append(said or None)
    return timed, result


def run_cluster(command: list[str], supervisor: Supervisor,
                timeout_s: float = TIMEOUT_S) -> tuple[Timed, Result]:
    """Run blinksh --json, which runs a rank on each node.  The time is what
    blinksh says, from its first datagram to the last reply: its own start is
    not timed."""
    timed = time_command(command, supervisor, timeout_s + CLUSTER_GRACE_S)
    report = parse(timed.stdout)
    nodes = report.get("nodes") or []
    first = parse(nodes[0].get("stdout") or "") if nodes else {}
    records = first.get("whole_records")
    result = Result(
        report.get("whole_ns", timed.whole_ns),
        timed.exit_status, cluster_message(timed, nodes), records,
        None if records is None else records * first["record_size"],
        node_ranks(nodes, first.get("ranks") or []),
        [parse(node.get("stdout") or "") or None for node in nodes])
    # They are those of blinksh.
    timed.measures = None
    return timed, result


def run_ranks(command: list[str], supervisor: Supervisor, timeout_s: float,
              hosts: list, said) -> tuple[Timed, Result]:
    """Run an mpirun that starts ranks, one on each of the hosts (None: here);
    said() is then what each of them has printed.  The time is that of mpirun,
    from before its start to after its end."""
    timed = time_command(command, supervisor, timeout_s)
    # The nodes look as in blinksh's document, but for what its daemons measure.
    nodes = [{"rank": rank, "host": host, "stdout": text}
             for rank, (host, text) in enumerate(zip(hosts, said()))]
    documents = [parse(node["stdout"]) or None for node in nodes]
    first = documents[0] or {}
    records = first.get("whole_records")
    return timed, Result(
        timed.whole_ns, timed.exit_status, message_of(timed), records,
        None if records is None else records * first["record_size"],
        node_ranks(nodes, first.get("ranks") or []), documents)


def process_rank(timed: Timed, said: dict) -> dict:
    return {
        "rank": 0, "host": None, "exit_status": timed.exit_status,
        "process_ns": timed.whole_ns, "elapsed_ns": said.get("elapsed_ns"),
        **figures(timed.measures, USAGE),
        "threads": said.get("threads"), "io": said.get("io"),
        "begin_ns": 0, "clock_bound_ns": None,
        "phases_ns": said.get("phases_ns"), "exchange": None,
        "external": external_of(said.get("external"))}


def external_of(said: dict | None) -> dict | None:
    """What a sort beyond memory says of itself, each pass beside what was
    predicted of it; None of a sort in memory."""
    if not said:
        return None
    predicted = {one["pass"]: one["ns"]
                 for one in said.get("predicted_passes") or ()}
    return {**figures(said, EXTERNAL_FIGURES), "passes": [
        {"pass": one["pass"], **figures(one, PASS_FIGURES),
         "predicted_ns": predicted.get(one["pass"]), "stages": [
             {"stage": stage["stage"], **figures(stage, STAGE_FIGURES),
              "waits": stage["waits"]} for stage in one["stages"]]}
        for one in said["passes"]]}


def figures(said: dict, names) -> dict:
    """These members of a document; None for one that it lacks."""
    return {name: said.get(name) for name in names}


def node_ranks(nodes: list[dict], reported: list[dict]) -> list[dict]:
    """An entry for each node: what its daemon has measured, what its rank has
    printed, and what rank 0 has heard from it."""
    by_rank = {rank["rank"]: rank for rank in reported}
    return [node_rank(node, parse(node.get("stdout") or ""),
                      by_rank.get(node["rank"], {})) for node in nodes]


def node_rank(node: dict, said: dict, reported: dict) -> dict:
    return {
        "rank": node["rank"], "host": node["host"],
        "exit_status": node.get("status"),
        "process_ns": node.get("elapsed_ns"),
        "elapsed_ns": said.get("elapsed_ns"),
        # Daemons measure the first three.
        **figures(node, USAGE[:3]), **figures(said, USAGE[3:]),
        **figures(said, ("threads", "io", *MPI_FIGURES)),
        **figures(reported, ("begin_ns", "clock_bound_ns")),
        "external": external_of(said.get("external")),
        "phases_ns": cluster_phases(reported),
        "exchange": {key: reported[key] for key in EXCHANGE_COUNTERS}
        if reported else None}


def cluster_phases(reported: dict) -> dict | None:
    """Phases that do not overlap: bucket_ns includes sampling, which is done
    while the keys are read."""
    if not reported:
        return None
    phases_ns = {phase: reported[f"{phase}_ns"] for phase in CLUSTER_PHASES}
    phases_ns["bucket"] -= phases_ns["sample"]
    return phases_ns


def cluster_message(timed: Timed, nodes: list[dict]) -> str | None:
    """The message of the first node that failed itself and was not
    cancelled because of another."""
    for node in nodes:
        if node.get("status") and node["state"] != "cancelled":
            said = first_line(node.get("stderr") or "") or node["state"]
            return f"{node['host']}: {said}"
    return message_of(timed)


def parse(text: str) -> dict:
    """The JSON object in the text; {} if there is none, as after a failure."""
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
