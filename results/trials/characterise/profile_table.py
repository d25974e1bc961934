"""A characterisation as tables: text for a terminal, CSV for other programs.

text()   the main figures, a table of each topic, and what was not measured
csv()    a row for each sample, for each extent of a file, and for each
         measurement that could not be made
"""

import csv as csv_module
import io
import textwrap

from trials.base import units
from trials.characterise import headline_figures, machine_profile, text_format
from trials.report import machine_facts

WIDTH = 100


def text(folder) -> str:
    found = machine_profile.read(folder)
    known = machine_facts.summary(machine_facts.before(found.environment))
    parts = [f"machine  {known}"] if known else []
    parts += [_grid((headline_figures.title(found), ""),
                    headline_figures.rows(found)),
              *_memory(found), *_by_threads(found), *_disk(found),
              *_files(found), *_times(found), *_throughput(found)]
    if found.refusals:
        lines = dict.fromkeys(f"{r.what}: {r.why}" for r in found.refusals)
        parts.append("Not measured:\n" + "\n".join(map(_wrapped, lines)))
    return "\n\n".join(parts) + "\n"


def _wrapped(line):
    return textwrap.fill(line, WIDTH, initial_indent="  ",
                         subsequent_indent="      ")


def _grid(head, rows) -> str:
    """The first column names the row; figures stand to the right.  A name
    that would make the table too wide has a line to itself."""
    rows = [list(head), *map(list, rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    rest = sum(widths[1:]) + 2 * (len(widths) - 1)
    widths[0] = min(widths[0], max(len(head[0]), WIDTH - rest))
    lines = []
    for name, *figures in rows:
        if len(name) > widths[0]:
            lines.append(name)
            name = ""
        lines.append("  ".join([name.ljust(widths[0])] + [
            cell.rjust(width) for cell, width in zip(figures, widths[1:])
        ]).rstrip())
    return "\n".join(lines)


def figure(value) -> str:
    """Three digits: in a terminal there is no room for more."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"


def spread_text(spread, unit) -> str:
    """median [least, most]"""
    if spread is None:
        return "-"
    return (f"{figure(spread.middle / unit)} [{figure(spread.low / unit)}, "
            f"{figure(spread.high / unit)}]")


def _curves(title, size_heading, group, unit, figures=text_format.SAMPLES):
    """unit: (its size, its name)"""
    size, name = unit
    known = [dict(curve.points) for curve in group]
    rows = [[text_format.size_words(at),
             *[spread_text(points.get(at), size) for points in known]]
            for at in sorted(set().union(*known))]
    return f"{title}: {name}, {figures}\n" + _grid(
        [size_heading] + [curve.name for curve in group], rows)


def _rates(title, size_heading, group):
    return _curves(title, size_heading, group,
                   text_format.rate_unit(text_format.largest(group)))


def _memory(found):
    for words, group in found.memory_by_threads():
        yield _rates(f"memory, {words}", "area", group)


def _by_threads(found):
    if found.blocks:
        area = text_format.size_words(found.blocks_area_bytes)
        yield _rates(f"memory, random blocks of {area}", "block",
                     found.blocks)
    if found.access:
        yield _curves("memory, one access", "area", found.access, (1, "ns"))


def _disk(found):
    for name, group in found.transfers.items():
        # One unit from a rotating disk's single blocks to megabytes.
        yield _curves(f"disk, {name}", "transfer", group,
                      (1e6, "MB/s"), text_format.TRANSFERS)
    if found.positions:
        size, name = text_format.rate_unit(max(p.spread.high
                                           for p in found.positions))
        what = "extents of a file" if found.by_extents else "places"
        yield (f"disk, {what}: {name}, "
               f"{text_format.TRANSFERS}\n") + _grid(
            ("from", "length", "rate"),
            [(text_format.precise(p.offset_bytes, found.position_ends),
              units.size(p.length_bytes), spread_text(p.spread, size))
             for p in found.positions])


def _files(found):
    if found.files:
        lines = [_wrapped(f"{file.path}: {text_format.file_words(file)}")
                 for file in found.files]
        yield "\n".join(["where files lie", *lines])


def _times(found):
    for title, series in (("start, µs", found.starts),
                          ("round trip, µs", found.round_trips)):
        if series:
            yield _grid((title, "n", "lost", "min", "quartiles", "median",
                         "p95", "p99", "max"),
                        [_times_row(each) for each in series])


def _times_row(series):
    spread = series.spread
    p95, p99 = machine_profile.percentiles(series, (95, 99))
    quartiles = "-" if spread.first_quartile is None else (
        f"{figure(spread.first_quartile / 1e3)} to "
        f"{figure(spread.third_quartile / 1e3)}")
    return [series.name, str(spread.count),
            str(series.setting.get("lost", "")), figure(spread.low / 1e3),
            quartiles, figure(spread.middle / 1e3), figure(p95 / 1e3),
            figure(p99 / 1e3), figure(spread.high / 1e3)]


def _throughput(found):
    if found.throughputs:
        yield _grid(("throughput", "rate", "arrived"),
                    [(s.name, text_format.rate_words(s.spread.middle),
                      text_format.arrived_words(s)) for s in found.throughputs])


# --- CSV ----------------------------------------------------------------------

_PLAIN = ("part", "what", "host", "unit", "sample", "value", "why")


def csv(folder) -> str:
    lines = machine_profile.read(folder).lines
    rows = [row for line in lines for row in _rows(line)]
    settings = dict.fromkeys(key for row in rows for key in row
                             if key not in _PLAIN)
    file = io.StringIO()
    writer = csv_module.DictWriter(file, [*_PLAIN, *settings],
                                   lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _cell(value) for key, value in row.items()})
    return file.getvalue()


def _rows(line):
    """What all samples of a line share stands in each row."""
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


def _cell(value):
    """As in JSON: true, false, and nothing for null; all digits there are."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value
