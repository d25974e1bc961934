"""Rows of published figures, each with ours on the same axis."""

from dataclasses import dataclass

from trials.drawing import style

_ROW_PX, _FOOT_PX, _NAMES_PX, _RIGHT_PX = 20, 40, 300, 16
# Figures this far apart have a logarithmic axis.
_LOG_RATIO = 20


@dataclass(frozen=True)
class Row:
    name: str
    published: float
    ours: list


def draw(rows, unit, width_px):
    beside = width_px > style.NARROW
    names_px = _NAMES_PX if beside else 8
    row_px = _ROW_PX if beside else 2 * _ROW_PX - 6
    figure = style.canvas(width_px, 8 + row_px * len(rows) + _FOOT_PX)
    axes = style.rows(figure, [row.name for row in rows], names_px, 8,
                      width_px - names_px - _RIGHT_PX, row_px,
                      0 if beside else 0.25)
    _scale(axes, [value for row in rows for value in (row.published,
                                                      *row.ours)])
    shift = 0 if beside else 0.2
    for number, row in enumerate(rows):
        _row(axes, number + shift, row)
    axes.set_xlabel(unit if unit != "x" else "times")
    return figure


def _scale(axes, values):
    low, high = min(values), max(values)
    if low > 0 and high / low > _LOG_RATIO:
        axes.set_xscale("log")
        axes.set_xlim(low / 1.5, high * 1.5)
        axes.minorticks_off()
    else:
        room = 0.04 * (high - min(low, 0) or 1)
        axes.set_xlim(min(low - room, 0), high + room)
        style.ticks(axes.xaxis, 6)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")


def _row(axes, at, row):
    ends = [row.published, *row.ours]
    axes.plot([min(ends), max(ends)], [at, at], color=style.FAINT,
              linewidth=1.5, zorder=1)
    axes.plot(row.ours, [at] * len(row.ours), "o", color=style.BLUE,
              markersize=5)
    axes.plot([row.published], [at], "D", markerfacecolor=style.PAPER,
              markeredgecolor=style.INK, markersize=5)
