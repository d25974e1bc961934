"""One HTML page that holds all that a characterisation shows.

What stands first is what a reader compares machines by; then what could not be
measured.  A topic without figures has the reason in its place.
"""

from datetime import datetime, timezone

from trials.base import units
from trials.characterise import (headline_figures, machine_profile,
                                 profile_plots, text_format)
from trials.report import frame, machine_facts, markup
from trials.report.markup import Column

_TITLE = "blinksort: what this machine takes"
_METHOD = (
    "A time of memory is that of going over an area again and again, all "
    "threads at once; areas are each thread's own. Rates count each byte that "
    "is gone over once, of a copy each byte copied.",
    "Disks are read by fio, one transfer at a time, with O_DIRECT. A drive, "
    "an array or the host of a virtual machine may still serve them from a "
    "cache of its own, a file that was just written most of all.",
    "No sample is left out. All of them are in characterisation.jsonl, and "
    "blinkreport --format=csv has a row for each.",
)


def render(folder) -> str:
    found = machine_profile.read(folder)
    pictures = {p.name: p for p in profile_plots.pictures(found)}
    return frame.document(_TITLE, "".join((
        _header(found), _headline_figures(found), _doubts(found),
        *[_topic(found, name, pictures.get(name))
          for name in machine_profile.TOPICS],
        frame.environment(found.environment,
                          "the machine, before the last session"),
        markup.section("method", "Method",
                       *map(markup.paragraph, _METHOD)))))


# --- what stands first --------------------------------------------------------

def _header(found):
    known = machine_facts.summary(machine_facts.before(found.environment))
    sessions = machine_facts.sessions(found.environment)
    words = [known] if known else []
    if sessions:
        when = datetime.fromtimestamp(
            sessions[-1]["begin_unix_ns"] // 10**9, timezone.utc)
        words.append(f"{when:%Y-%m-%d %H:%M} UTC")
    words.append(f"{len(found.lines)} measurements")
    return (f"<header>\n<h1>{markup.text(_TITLE)}</h1>\n"
            f"{markup.paragraph(', '.join(words), 'muted')}</header>\n")


def _headline_figures(found):
    return markup.table(
        headline_figures.title(found), [Column("what"), Column("found", True)],
        [list(row) for row in headline_figures.rows(found)])


def _doubts(found):
    if not found.refusals:
        return ""
    lines = dict.fromkeys(f"{r.what}: {r.why}" for r in found.refusals)
    return ('<div class="doubt">\n<p>Not measured:</p>\n'
            f"{markup.items(lines)}</div>\n")


# --- topics -------------------------------------------------------------------

def _topic(found, name, picture):
    reasons = [f"{r.what}: {r.why}" for r in found.reasons(name)]
    if not picture and not reasons:
        reasons = ["was not asked for" if name == "files"
                   else "no measurement of it is there"]
    body = frame.figure(picture) if picture else ""
    if reasons:
        body += f'<div class="doubt">\n{markup.items(reasons)}</div>\n'
    return markup.section(name, profile_plots.TITLES[name], body,
                          _TABLES[name](found))


def _curve_tables(x_heading, groups, unit=None, figures=text_format.SAMPLES):
    """Of each (title, curves) a row for each size."""
    made = []
    for title, group in groups:
        size, name = unit or text_format.rate_unit(text_format.largest(group))
        known = [dict(curve.points) for curve in group]
        rows = [[text_format.size_words(at),
                 *[spread_text(points.get(at), size) for points in known]]
                for at in sorted(set().union(*known))]
        made.append(markup.table(
            f"{title}: {name}, {figures}",
            [Column(x_heading)] + [Column(c.name, True) for c in group],
            rows))
    return markup.details("in figures", "".join(made)) if made else ""


def spread_text(spread, unit) -> str:
    if spread is None:
        return "–"
    return (f"{units.digits(spread.middle / unit)} "
            f"[{units.digits(spread.low / unit)}, "
            f"{units.digits(spread.high / unit)}]")


def _memory_table(found):
    return _curve_tables("area", found.memory_by_threads())


def _blocks_table(found):
    groups = [("random blocks", found.blocks)] if found.blocks else []
    return _curve_tables("block", groups)


def _access_table(found):
    groups = [("one access", found.access)] if found.access else []
    return _curve_tables("area", groups, (1, "ns"))


def _transfers_table(found):
    return _curve_tables("transfer", found.transfers.items(), (1e6, "MB/s"),
                         text_format.TRANSFERS)


def _positions_table(found):
    if not found.positions:
        return ""
    unit, _, _ = profile_plots.rate_range(found)
    ends = found.position_ends
    return markup.details("in figures", markup.table(
        f"{found.device or 'disk'}: {unit[1]}, {text_format.TRANSFERS}",
        [Column("from"), Column("length", True), Column("rate", True)],
        [[text_format.precise(p.offset_bytes, ends), units.size(p.length_bytes),
          spread_text(p.spread, unit[0])] for p in found.positions]))


def _files_table(found):
    return markup.table(
        "files", [Column("file"), Column("device"), Column("where")],
        [[f.path, f.device or "unknown", text_format.file_words(f)]
         for f in found.files])


def _series_table(series):
    def shown(value):
        return units.digits(value / 1e3)

    rows = []
    for each in series:
        spread = each.spread
        quartiles = ("–" if spread.first_quartile is None else
                     f"{shown(spread.first_quartile)} to "
                     f"{shown(spread.third_quartile)}")
        p95, p99 = machine_profile.percentiles(each, (95, 99))
        rows.append([each.name, str(spread.count), shown(spread.low),
                     quartiles, shown(spread.middle), shown(p95), shown(p99),
                     shown(spread.high)])
    return markup.table("times, µs", [
        Column("of"), Column("n", True), Column("min", True),
        Column("quartiles", True), Column("median", True),
        Column("p95", True), Column("p99", True), Column("max", True)], rows)


def _throughput_table(found):
    return markup.table(
        "throughput", [Column("node"), Column("rate", True),
                       Column("arrived", True)],
        [[s.name, text_format.rate_words(s.spread.middle),
          text_format.arrived_words(s) or "–"]
         for s in found.throughputs])


_TABLES = {
    "memory": _memory_table, "blocks": _blocks_table,
    "access": _access_table, "transfers": _transfers_table,
    "positions": _positions_table, "files": _files_table,
    "start": lambda found: _series_table(found.starts),
    "round-trip": lambda found: _series_table(found.round_trips),
    "throughput": _throughput_table,
}
