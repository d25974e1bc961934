"""Pictures of simulated exchanges and their sorts, and the page of them."""

from trials.base import units
from trials.characterise import curves
from trials.characterise.curves import Panel, Plot
from trials.characterise.machine_profile import Curve, Spread
from trials.drawing import style
from trials.drawing.picture import Picture
from trials.forecast import measured
from trials.report import frame, markup
from trials.simulated import simulated

_TITLE = "blinksort: exchanges in simulated time"
_MS = (1e6, "ms")
_TINTS = (style.BLUE, style.GREEN, style.PURPLE)
_PUBLISHED = "2011: 40.5 ms"
_RINGS = {"color": style.VERMILION, "linestyle": "none",
          "markerfacecolor": "none"}
_SLOW = {"color": style.MUTED, "linestyle": ":"}
_FILES = {"pagecache": "files in the page cache", "platter": "files on a disk"}


def pictures(report) -> list:
    return [_exchanges(report), _jobs(report)]


def render(report) -> str:
    tables = [markup.table(*table) for table in simulated.tables(report)]
    count = len(report.records)
    exchange, job = pictures(report)
    return frame.document(
        _TITLE, None, f"rates of {report.machine}",
        frame.topic(job, *tables[count:-1]),
        frame.topic(exchange, *tables[:count]),
        markup.section("measured", "Simulated beside measured", tables[-1]),
        markup.section("method", "Method",
                       *map(markup.paragraph, simulated.LEGEND)))


# --- the exchange ------------------------------------------------------------

def _exchanges(report):
    lines = _lines(report)
    panels = [Panel(f"{measured.short_count(records)} records", [
        *(_curve(measured.rate_words(link), (
            (point.nodes, point.ns)
            for point in report.by_nodes(records, link)))
          for link in report.links),
        *_measured(report, records, lines)]) for records in report.records]
    return _picture("exchange", "The exchange", (
        "Simulated time from the first rank's beginning until the last one "
        "has all, by the schedule that auto takes. Rings: measured in "
        "namespaces with slower links, where these were the limit; dotted: "
        "simulated with these."),
        panels, lines)


def _measured(report, records, lines):
    """A curve for each slow link, and rings of what was measured there."""
    for link in sorted({point.link_bits_per_s for point in report.slow}):
        name = measured.rate_words(link)
        lines[name] = _SLOW
        yield _curve(name, sorted(
            (point.nodes, point.ns)
            for point in report.by_nodes(records, link, report.slow)
            if point.schedule == "rounds"))
    lines[""] = _RINGS
    yield _curve("", [(point.nodes, one["exchange_ns"])
                      for one, point in report.measured
                      if point.records == records and one["limit"] == "link"])


# --- the sort ----------------------------------------------------------------

def _jobs(report):
    panels = []
    for scenario in report.scenarios:
        made = {link: jobs for (of, link), jobs in report.jobs.items()
                if of == scenario}
        panels.append(Panel(_FILES[scenario], [
            *(_curve(measured.rate_words(link), (
                (job.nodes, job.whole) for job in jobs))
              for link, jobs in made.items()),
            _curve("launch", ((job.nodes, job.launch)
                              for job in max(made.values(), key=len))),
            _curve(_PUBLISHED, [simulated.DATAMATION])]))
    lines = _lines(report) | {
        "launch": {"color": style.ORANGE, "linestyle": "--"},
        _PUBLISHED: {"color": style.VERMILION, "linestyle": "none"}}
    return _picture("sort", "A million records, start and files included", (
        "The exchange is simulated; launch, files and order are predicted "
        "from one machine's rates. 2011: the best of 200 runs on 16 nodes "
        "with 10 Gbit/s, from the disks' caches to them."), panels, lines)


def _lines(report):
    return {measured.rate_words(link): {"color": tint}
            for link, tint in zip(report.links, _TINTS)}


def _curve(name, points):
    return Curve(name, points=[(place, Spread.of([value]))
                               for place, value in points])


def _picture(name, title, caption, panels, lines):
    for panel in panels:
        panel.curves = [curve for curve in panel.curves if curve.points]
    plot = Plot(panels, "nodes", "time", _MS, lines=lines,
                place=lambda nodes: f"{nodes:.0f}")
    words = "; ".join(f"{panel.title}: " + ", ".join(
        f"{curve.name} {units.duration(curve.points[-1][1].middle)} on "
        f"{curve.points[-1][0]} nodes" for curve in panel.curves if curve.name)
        for panel in panels)
    return Picture(name, title, caption, words,
                   lambda width_px: curves.draw(plot, width_px))
