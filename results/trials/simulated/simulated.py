"""Exchanges in simulated time, the same measured, and the sorts with them.

The lines are of `blinkprobe simulate --json`.  What the nodes do beside the
exchange is predicted by arithmetic from the rates of one machine.
"""

import os
from dataclasses import dataclass

from trials.base import documents, units
from trials.base.failure import FILE, Failure
from trials.base.text_table import as_lines, grid, wrapped
from trials.forecast import measured, rates, stages
from trials.record import schema

SCHEMA = "blinkprobe-simulate-1"
EXCHANGES = "exchanges.json"
RECORD_BYTES = 100
# Slower links are those of measurements.
LINK_MIN = 10**9
# Nodes and time of the sort of 2011 (results/published/psort-2011.json).
DATAMATION = (16, 40.5e6)
JOB_RECORDS = 10**6
MEASURED = "exchange|>simulated|>measured|>ratio|limit|note"
LEGEND = (
    "The exchange is simulated: blinkprobe simulate runs the code that "
    "blinksort runs, and each rank has one CPU. From the first rank's "
    "beginning until the last one has all. Launch, files and order are "
    "predicted from the machine's rates. ms.",
    "Measured: ranks that share two CPUs, in namespaces whose links have a "
    "rate. Only where the link was the limit is the simulation of the same.")


@dataclass(frozen=True)
class Point:
    nodes: int
    records: int
    link_bits_per_s: int
    schedule: str
    ns: int


@dataclass(frozen=True)
class Job:
    """A sort of which the exchange is simulated; ns."""

    nodes: int
    launch: float
    beside: float  # files and order
    exchange: float

    @property
    def whole(self):
        return self.launch + self.beside + self.exchange


@dataclass
class Report:
    machine: str
    # Both are [Point]; of the second, links are too slow for the first.
    points: list
    slow: list
    # [(the exchange of EXCHANGES, Point)]
    measured: list
    # {(scenario, link): [Job]}
    jobs: dict

    def by_nodes(self, records, link, points=None):
        return [point for point in points or self.points
                if (point.records, point.link_bits_per_s) == (records, link)]

    @property
    def scenarios(self):
        return list(dict.fromkeys(scenario for scenario, _ in self.jobs))

    @property
    def records(self):
        return sorted({point.records for point in self.points})

    @property
    def links(self):
        return sorted({point.link_bits_per_s for point in self.points})


def make(programs, path, machine) -> Report:
    """Raises Failure."""
    lines, torn = documents.read_lines(path)
    if torn or not lines:
        raise Failure(path, "is not complete", FILE)
    points = [_point(one) for _, one in schema.parsed(path, SCHEMA, lines)]
    fast = [one for one in points if one.link_bits_per_s >= LINK_MIN]
    if not fast:
        raise Failure(path, "has no link of 1 Gbit/s or more", FILE)
    report = Report(os.path.basename(os.path.realpath(machine)), fast, [
        one for one in points if one.link_bits_per_s < LINK_MIN], [], {})
    exchanges = os.path.join(os.path.dirname(os.path.realpath(path)),
                             EXCHANGES)
    if os.path.exists(exchanges):
        report.measured = _simulated_too(report.slow, schema.read(
            exchanges, measured.SCHEMA)["exchanges"])
    _add_jobs(programs, report, rates.of(machine))
    return report


def _point(one):
    """Messages are whole bytes: their sum is not quite that of the records."""
    records = one["nodes"]**2 * one["message_bytes"] / RECORD_BYTES
    return Point(one["nodes"], round(float(f"{records:.1g}")),
                 one["link_bits_per_s"], one["schedule"], one["max_ns"])


def _simulated_too(points, exchanges):
    known = {(one.nodes, one.records, one.link_bits_per_s, one.schedule): one
             for one in points}
    found = [(one, known.get((one["nodes"], one["records"],
                              one["link_bits_per_s"], one["schedule"])))
             for one in exchanges if one["mtu_bytes"] == 1500]
    return [(one, point) for one, point in found if point]


def _add_jobs(programs, report, known):
    for scenario in ("pagecache", *["platter"] * bool(known.disk_read)):
        for link in report.links:
            report.jobs[scenario, link] = [
                _job(programs, point, known.supposed(scenario))
                for point in report.by_nodes(JOB_RECORDS, link)]


def _job(programs, point, supposed):
    one = stages.predict(programs, point.nodes, point.records, RECORD_BYTES,
                         link=point.link_bits_per_s, **supposed)
    return Job(point.nodes, one.launch, one.first + one.last, point.ns)


# --- in words ----------------------------------------------------------------

def rows(report, records) -> list:
    found = {(point.nodes, link): units.milliseconds(point.ns)
             for link in report.links
             for point in report.by_nodes(records, link)}
    return [[str(nodes), *(found.get((nodes, link), "-")
                           for link in report.links)]
            for nodes in sorted({nodes for nodes, _ in found})]


def job_rows(report, scenario) -> list:
    found = {(job.nodes, link): job for link in report.links
             for job in report.jobs[scenario, link]}
    one_each = {nodes: job for (nodes, _), job in found.items()}
    return [[str(nodes), units.milliseconds(job.launch),
             units.milliseconds(job.beside),
             *(units.milliseconds(found[nodes, link].whole)
               if (nodes, link) in found else "-" for link in report.links)]
            for nodes, job in sorted(one_each.items())]


def measured_rows(report) -> list:
    return [[f"{point.nodes} x {measured.rate_words(point.link_bits_per_s)}, "
             f"{measured.short_count(point.records)}, {point.schedule}",
             units.milliseconds(point.ns),
             units.milliseconds(one["exchange_ns"]),
             f"{point.ns / one['exchange_ns']:.2f}", one["limit"], one["note"]]
            for one, point in report.measured]


def tables(report) -> list:
    """(caption, headings, rows)"""
    links = "|>".join(map(measured.rate_words, report.links))
    return [
        *((f"exchange of {measured.short_count(records)} records: ms",
           f"nodes|>{links}", rows(report, records))
          for records in report.records),
        *((f"sort of {measured.short_count(JOB_RECORDS)} records, {scenario}: "
           "ms", f"nodes|>launch|>files and order|>{links}",
           job_rows(report, scenario)) for scenario in report.scenarios),
        ("simulated beside measured: ms", MEASURED, measured_rows(report))]


def text(report) -> str:
    return as_lines("\n\n".join(
        [f"{caption}\n{grid(heads, lines)}"
         for caption, heads, lines in tables(report) if lines]
        + ["\n".join(map(wrapped, LEGEND))])) + "\n"
