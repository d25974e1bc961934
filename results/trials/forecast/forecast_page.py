"""One HTML page that holds all that a forecast shows."""

from trials.forecast import forecast_plots, forecast_table, measured
from trials.report import frame, machine_facts, markup

_TITLE = "blinksort: what a cluster of such machines would take"
_METHOD = (
    "Nothing here was measured on a cluster of such machines. Rates of memory, "
    "disk and start are those of the characterisation; the exchange is an "
    "alpha-beta model (link, CPU time of datagrams, messages, "
    "STATUS), by the functions that blinksort chooses its schedule by. "
    "blinksort --explain --suppose prints all of it.",
    "Shares are equal, and all nodes are alike and begin at once. What slow "
    "nodes, lost datagrams and queues of switches cost is not in it.",
    *forecast_table.LEGEND,
)


def render(report) -> str:
    pictures = {p.name: p for p in forecast_plots.pictures(report)}
    return frame.document(
        _TITLE, machine_facts.begun_unix_ns(report.environment),
        report.machine or "a machine", _forecasts(report), markup.doubt(
            markup.items([*measured.summary(report.compared),
                          *report.notes])),
        *(frame.topic(pictures[name]) for name in ("exchange", "stages")
          if name in pictures),
        _measured(report, pictures.get("measured")),
        markup.section("rates", "What the forecast is made of", markup.table(
            "the machine's rates",
            "what|>figure", forecast_table.rates(report))),
        frame.environment(report.environment),
        markup.section("method", "Method",
                       *map(markup.paragraph, _METHOD)))


def _forecasts(report):
    return "".join(
        markup.table(f"{report.title(records)}: ms", forecast_table.HEADINGS,
                     forecast_table.rows(forecasts))
        for records, forecasts in report.forecasts.items())


def _measured(report, picture):
    if not picture:
        return ""
    (caption, headings, rows), sorts = forecast_table.comparisons(report)
    notes = [row.note for row in report.compared if row.limit]
    return frame.topic(
        picture,
        markup.table(caption, f"{headings}|what it was",
                     [[*row, note] for row, note in zip(rows, notes)]),
        markup.table(*sorts))
