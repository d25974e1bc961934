"""A forecast as tables: text for a terminal, and rows for a page."""

from trials.base import units
from trials.base.text_table import as_lines, grid, wrapped
from trials.forecast import measured, stages
from trials.forecast.measured import rate_words

HEADINGS = "|>".join(("nodes", "message", "launch", "read", "bucket",
                      *stages.SCHEDULES, "sort", "write", "whole"))
SORTS = "sort|stage|>predicted|>measured|>error"
EXCHANGES = "exchange, records|schedule|>predicted|>measured|>error|limit"
LEGEND = (
    "ms. * is what --schedule=auto takes. Read and bucket overlap, and so do "
    "sort and write; the whole has the longer of the two. In the page cache, "
    "sort writes.",
    "Rounds lose nothing. All-at-once with messages above 128 KiB is predicted "
    "without what the queues of switches drop.",
)


def text(report) -> str:
    parts = [f"machine  {report.machine}"] if report.machine else []
    parts += [f"{report.title(records)}\n" + grid(HEADINGS, rows(forecasts))
              for records, forecasts in report.forecasts.items()]
    parts.append("\n".join(map(wrapped, LEGEND)))
    parts += [f"{caption}\n{grid(headings, lines)}"
              for caption, headings, lines in comparisons(report) if lines]
    notes = [*measured.summary(report.compared), *report.notes]
    parts.append("\n".join(map(wrapped, notes)))
    return as_lines("\n\n".join(parts)) + "\n"


def rows(forecasts) -> list:
    return [_row(one) for one in forecasts]


def _row(one):
    """A stage that there is not has no time."""
    def ms(ns):
        return units.milliseconds(ns) if ns else "-"
    return [str(one.nodes),
            units.size(round(one.message_bytes)) if one.chosen else "-",
            *map(ms, (one.launch, one.read, one.bucket)),
            *(ms(one.by(name)) + (
                "*" if name == one.chosen else "")
              for name in stages.SCHEDULES),
            *map(ms, (one.sort, one.write, one.whole))]


def comparisons(report) -> list:
    """(caption, headings, rows) of exchanges, and of sorts."""
    exchanges = [row for row in report.compared if row.limit]
    sorts = [row for row in report.compared if not row.limit]
    return [("predicted beside measured, exchanges: ms", EXCHANGES,
             [[*_compared(row), row.limit] for row in exchanges]),
            ("predicted beside measured, sorts: ms", SORTS,
             [_compared(row) for row in sorts])]


def _compared(row):
    return [row.run, row.stage, units.milliseconds(row.predicted_ns),
            units.milliseconds(row.measured_ns), f"{100 * row.error:+.1f} %"]


def rates(report) -> list:
    """(what, figure) of all that a forecast takes from elsewhere."""
    known = report.rates
    _, read, copy = known.of_memory(known.cpus)

    def gigabytes(rate):
        return f"{units.digits(rate / 1e9)} GB/s" if rate else "not measured"
    return [
        ("memory, read in order, all CPUs", gigabytes(read)),
        ("memory, copied, all CPUs", gigabytes(copy)),
        ("disk, read", gigabytes(known.disk_read)),
        ("disk, written", gigabytes(known.disk_write)),
        ("start of a program", units.duration(known.start_ns)),
        ("CPUs", str(known.cpus)),
        ("link, each way", rate_words(report.link_bits_per_s)),
    ]
