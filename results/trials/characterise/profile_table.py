"""A characterisation as tables: text for a terminal, CSV for other programs.

text()   the main figures, a table of each topic, and what was not measured
csv()    a row for each sample, for each extent of a file, and for each
         measurement that could not be made
Tables   of the topics, as they also stand in the page
"""

import textwrap

import numpy as np

from trials.base import units
from trials.base.text_table import grid, width, wrapped
from trials.characterise import headline_figures, machine_profile, text_format
from trials.report import machine_facts
from trials.report.table import as_csv


def text(found) -> str:
    before = machine_facts.before(found.environment)
    known = [textwrap.fill(units.printable(f"{name:9}{words}"), width(),
                           subsequent_indent=" " * 9)
             for name, words in (("machine", machine_facts.summary(before)),
                                 ("facts", machine_facts.told(before)))
             if words]
    parts = ["\n".join(known)] if known else []
    parts.append(grid(f"{headline_figures.title(found)}|>",
                      headline_figures.rows(found)))
    tables = Tables(found, figure)
    for topic in machine_profile.TOPICS:
        if topic == "files":
            parts += _files(found)
        else:
            parts += [f"{caption}\n{grid(headings, rows)}"
                      for caption, headings, rows in tables.of(topic)]
    if found.refusals:
        lines = dict.fromkeys(f"{r.what}: {r.why}" for r in found.refusals)
        parts.append("Not measured:\n" + "\n".join(map(wrapped, lines)))
    return "\n\n".join(parts) + "\n"


def figure(value) -> str:
    """Three digits: in a terminal there is no room for more."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"


def _files(found):
    if found.files:
        lines = [wrapped(f"{file.path}: {text_format.file_words(file)}")
                 for file in found.files]
        yield "\n".join(["where files lie", *lines])


class Tables:
    """`figure` writes a number, `none` stands where there is no figure."""

    def __init__(self, found, write_figure, none="-"):
        self.found, self.figure, self.none = found, write_figure, none

    def of(self, topic) -> list:
        """(caption, headings as markup.table() takes them, rows) of each."""
        return [table for table in getattr(
            self, f"_{topic.replace('-', '_')}")() if table[2]]

    def _spread(self, spread, unit):
        """median [least, most]"""
        if spread is None:
            return self.none
        return units.with_interval(spread.middle, spread,
                                   lambda value: self.figure(value / unit))

    def _curves(self, title, heading, group, unit=None,
                figures=text_format.SAMPLES, place=text_format.size_words):
        """unit: (its size, its name); place(x) writes a row's first word"""
        if not group:
            return
        size, name = unit or text_format.rate_unit(text_format.largest(group))
        known = [dict(curve.points) for curve in group]
        yield (f"{title}: {name}, {figures}",
               "|>".join([heading, *(curve.name for curve in group)]),
               [[place(at),
                 *[self._spread(points.get(at), size) for points in known]]
                for at in sorted(set().union(*known))])

    def _memory(self):
        for words, group in self.found.by_threads(self.found.memory):
            yield from self._curves(f"memory, {words}", "area", group)

    def _threads(self):
        area = text_format.size_words(self.found.thread_area_bytes or 0)
        return self._curves(f"memory, {area} for each thread", "threads",
                            self.found.thread_rates, place=str)

    def _blocks(self):
        area = text_format.size_words(self.found.blocks_area_bytes or 0)
        for words, group in self.found.by_threads(self.found.blocks):
            yield from self._curves(f"memory, blocks of {area}, {words}",
                                    "block", group)

    def _access(self):
        return self._curves("memory, one access", "area", self.found.access,
                            (1, "ns"))

    def _nodes(self):
        """A row for each pair; one unit for all rates."""
        pairs = self.found.node_pairs
        if not pairs:
            return
        rates = [rate.high for pair in pairs
                 for rate in (pair.read, pair.copy) if rate]
        size, name = text_format.rate_unit(max(rates, default=1))
        yield (f"memory by NUMA node: {text_format.SAMPLES}; one access by "
               "one CPU",
               f"CPUs|>memory of|>distance|>one access, ns|>read, {name}|"
               f">copy, {name}|>placed",
               [[f"{self._or_none(p.threads)} of node {p.cpu_node}",
                 f"node {p.memory_node}", self._or_none(p.distance),
                 self._spread(p.access, 1), self._spread(p.read, size),
                 self._spread(p.copy, size),
                 self.none if p.placed is None
                 else f"{100 * p.placed:.4g} %"]
                for p in pairs])

    def _or_none(self, value):
        return self.none if value is None else str(value)

    def _codec(self):
        series = self.found.codecs
        size, name = text_format.rate_unit(
            max((s.spread.high for s in series), default=0))
        yield (f"compression, one thread: {name}, {text_format.SAMPLES}",
               "of|>rate|>becomes",
               [[s.name, self._spread(s.spread, size),
                 text_format.part_words(s)] for s in series])

    def _transfers(self):
        for name, group in self.found.transfers.items():
            # All have one unit, from a rotating disk's single blocks to
            # megabytes.
            yield from self._curves(f"disk, {name}", "transfer", group,
                                    (1e6, "MB/s"), text_format.TRANSFERS)

    def _positions(self):
        places = self.found.positions
        if places:
            (size, name), ends = self.found.rate_unit, self.found.position_ends
            what = "extents of a file" if self.found.by_extents else "places"
            yield (f"disk, {what}: {name}, {text_format.TRANSFERS}",
                   "from|>length|>rate",
                   [[text_format.precise(p.offset_bytes, ends),
                     units.size(p.length_bytes), self._spread(p.spread, size)]
                    for p in places])
        yield ("disk, drives of the array one by one: MB/s, "
               + text_format.SAMPLES, "drive|>rate",
               [[name, self._spread(spread, 1e6)]
                for name, spread in self.found.drives])

    def _surface(self):
        known = [(curve.name, dict(curve.points))
                 for curve in self.found.surface]
        sizes = sorted(set().union(*(points for _, points in known)))
        yield ("disk, random, by place and transfer: MB/s",
               "|>".join(["place", *map(text_format.size_words, sizes)]),
               [[name, *[self.figure(points[size].middle / 1e6)
                         if size in points else self.none for size in sizes]]
                for name, points in known])

    def _files(self):
        yield "files", "file|device|where", [
            [f.path, f.device or "unknown", text_format.file_words(f)]
            for f in self.found.files]

    def _start(self):
        return self._times("start, µs", self.found.starts)

    def _round_trip(self):
        return self._times("round trip, µs", self.found.round_trips)

    def _times(self, title, series):
        yield title, "of|>n|>lost|>min|>quartiles|>median|>p95|>p99|>max", [
            self._times_row(each) for each in series]

    def _times_row(self, series):
        low, first, middle, third, p95, p99, high = (
            self.figure(ns / 1e3) for ns in np.percentile(
                series.samples, (0, 25, 50, 75, 95, 99, 100)))
        few = series.spread.first_quartile is None
        return [series.name, str(len(series.samples)),
                str(series.setting.get("lost", "")), low,
                self.none if few else f"{first} to {third}", middle, p95, p99,
                high]

    def _throughput(self):
        yield "throughput", "node, protocol|>rate|>arrived", [
            [s.name, text_format.rate_words(s.spread.middle),
             text_format.part_words(s) or self.none]
            for s in self.found.throughputs + self.found.tcp_throughputs]


# --- CSV ----------------------------------------------------------------------

_PLAIN = ("part", "what", "host", "unit", "sample", "value", "why")


def csv(found) -> str:
    rows = [row for line in found.lines for row in _rows(line)]
    settings = dict.fromkeys(key for row in rows for key in row
                             if key not in _PLAIN)
    return as_csv(rows, [*_PLAIN, *settings])


def _rows(line):
    """A row for each sample; each has what the samples of a line share."""
    shared = {key: line[key] for key in ("part", "what", "host", "unit",
                                         "why")}
    shared |= {key: value for key, value in line["setting"].items()
               if not isinstance(value, (dict, list))}
    if line["part"] == "extents" and line["samples"]:
        return [shared | {"unit": "bytes", "sample": number,
                          "value": extent["length_bytes"],
                          "logical_bytes": extent["logical_bytes"],
                          "physical_bytes": extent["physical_bytes"]}
                for number, extent in enumerate(line["setting"]["extents"])]
    return [shared | {"sample": number, "value": value}
            for number, value in enumerate(line["samples"])] or [shared]
