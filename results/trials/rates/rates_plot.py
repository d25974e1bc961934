"""Rates over time, a panel for each flow, as a picture and on a page."""

import numpy as np

from trials.base import units
from trials.characterise import text_format
from trials.drawing import style
from trials.drawing.picture import Picture
from trials.rates import rates
from trials.report import frame, markup

_TITLE = "blinksort: rates over time"
_LEFT_PX, _RIGHT_PX, _PANEL_PX, _TITLE_PX, _FOOT_PX = 46, 14, 96, 22, 44
_GAP_PX = 8
# Pixels of a step: finer ones hide how rates go.
_STEP_PX = 6
# Lines of more ranks than this could not be told apart.
_MOST_LINES = 64
_TINTS = dict(zip(rates.FLOWS, (style.BLUE, style.VERMILION, style.GREEN,
                                style.PURPLE)))


def pictures(found) -> list:
    return [picture(found)]


def picture(found) -> Picture:
    count = max(map(len, found.flows.values()))
    return Picture(
        "rates", "Rates over time",
        "Bytes a second that were read from files, written to them, sent and "
        "received, as far as there were any."
        + (f" The area is the sum of {count} processes, and each line is one "
           "of them." if 1 < count <= _MOST_LINES else ""),
        "; ".join(", ".join(row[:2]) for row in rates.rows(found)
                  if row[0].endswith(", all") or count == 1),
        lambda width_px: _draw(found, width_px))


def _draw(found, width_px):
    each = [rate for rates in found.flows.values() for rate in rates.values()]
    begin, end = (pick(0, *(rate.times_ns[place] for rate in each))
                  for pick, place in ((min, 0), (max, -1)))
    panel_px = width_px - _LEFT_PX - _RIGHT_PX
    edges = np.linspace(begin, end, 2 + int(panel_px / _STEP_PX))
    unit, name = style.time_scale(end)
    row_px = _TITLE_PX + _PANEL_PX + _GAP_PX
    figure = style.canvas(width_px, 4 + _FOOT_PX + len(found.flows) * row_px)
    for number, (flow, of_flow) in enumerate(found.flows.items()):
        top = 4 + number * row_px
        axes = style.panel(figure, _LEFT_PX, top + _TITLE_PX, panel_px,
                           _PANEL_PX)
        moved = sum(rate.moved_bytes for rate in of_flow.values())
        style.title(figure, _LEFT_PX, top, f"{flow}: {units.size(moved)}",
                    _TINTS[flow])
        axes.tick_params(labelbottom=number == len(found.flows) - 1)
        _steps(axes, edges, unit, _TINTS[flow], list(of_flow.values()))
        axes.set_xlim(begin / unit, end / unit)
        axes.set_ylim(0)
        style.ticks(axes.yaxis, 4)
    axes.set_xlabel(f"time, {name}")
    return figure


def _steps(axes, edges, unit, tint, of_flow):
    steps = [np.diff(rate.until(edges)) * 1e9 / np.diff(edges)
             for rate in of_flow]
    total = sum(steps)
    size, name = text_format.rate_unit(max(total))
    axes.stairs(total / size, edges / unit, fill=True, color=tint, alpha=0.3)
    for line in steps if len(steps) <= _MOST_LINES else [total]:
        axes.stairs(line / size, edges / unit, baseline=None, color=tint,
                    linewidth=0.7)
    axes.set_ylabel(name)
    axes.yaxis.set_label_coords((13 - _LEFT_PX)
                                / axes.get_window_extent().width, 0.5)


def render(found) -> str:
    return frame.document(_TITLE, None, found.path, markup.section(
        "rates", "Rates over time", frame.figure(picture(found)),
        markup.table("what was moved", rates.HEADINGS, rates.rows(found))))
