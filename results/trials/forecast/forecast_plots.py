"""The pictures of a forecast: exchanges and stages by the number of nodes, and
what was measured against what was predicted.

Both axes are logarithmic.  A curve's name stands at its end.
"""

from math import log2, log10

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from trials.base import units
from trials.characterise.curves import apart
from trials.drawing import style
from trials.drawing.picture import Picture
from trials.forecast import measured

_LEFT_PX, _TITLE_PX, _PANEL_PX, _FOOT_PX, _GAP_PX = 54, 24, 260, 44, 18
_LABEL_ROW_PX, _LABEL_GAP_PX, _LEGEND_ROW_PX = 13, 8, 18
# Curves that others may cover, which are drawn first and wider.
_WIDE = ("read", "bucket")
# Curves of what is a bound, and not a stage or a schedule.
_DASHED = ("link alone", "MPI, RDMA", "whole")
_SCHEDULES = (("rounds", style.BLUE), ("all-at-once", style.VERMILION),
              ("grid", style.GREEN))
_STAGES = (("launch", style.ORANGE), ("read", style.SKY),
           ("bucket", style.PURPLE), ("exchange", style.BLUE),
           ("sort", style.GREEN), ("write", style.VERMILION),
           ("whole", style.INK))
_LIMITS = {"link": (style.BLUE, "o", "link the limit"),
           "CPUs": (style.VERMILION, "s", "CPUs the limit"),
           "queues": (style.PURPLE, "^", "queues overflow"),
           None: (style.GREEN, "D", "sort, or a stage of it")}


def pictures(report) -> list:
    made = [_by_nodes(report, "exchange", "The exchange, by schedule",
                      _exchange_curves, (
                          "Time of the exchange of equal shares, by the "
                          "number of nodes. A ring is what auto takes. "
                          "Dashed: what the bytes take on the link alone, and "
                          "MPI over a fabric with RDMA at the same rate, by "
                          "published figures.")),
            _by_nodes(report, "stages", "The sort, stage by stage",
                      _stage_curves, (
                          "Time of each stage, by the number of nodes; the "
                          "exchange is that of auto. Dashed: the whole."))]
    if report.compared:
        made.append(_measured(report))
    return [picture for picture in made if picture]


# --- by the number of nodes ---------------------------------------------------

def _exchange_curves(forecasts):
    """{name: (colour, [(nodes, ns)])}, and points with a ring."""
    many = [one for one in forecasts if one.chosen]
    curves = {name: (colour, [(one.nodes, one.by(name))
                              for one in many])
              for name, colour in _SCHEDULES}
    curves["link alone"] = style.MUTED, [(one.nodes, one.by("link"))
                                         for one in many]
    curves["MPI, RDMA"] = style.ORANGE, [(one.nodes, one.by("rdma"))
                                         for one in many]
    return curves, [(one.nodes, one.exchange) for one in many]


def _stage_curves(forecasts):
    curves = {name: (colour, [(one.nodes, getattr(one, name))
                              for one in forecasts if getattr(one, name)])
              for name, colour in _STAGES}
    return curves, []


def _by_nodes(report, name, title, curves_of, caption):
    panels = [(report.title(records).partition(",")[0], *curves_of(forecasts))
              for records, forecasts in report.forecasts.items()]
    panels = [panel for panel in panels if any(
        points for _, points in panel[1].values())]
    if not panels:
        return None
    words = "; ".join(f"{panel[0]}: " + ", ".join(
        f"{curve} {units.duration(points[-1][1])} on {points[-1][0]} nodes"
        for curve, (_, points) in panel[1].items() if points)
        for panel in panels)
    return Picture(name, title, caption, words,
                   lambda width_px: _draw_panels(panels, width_px))


def _draw_panels(panels, width_px):
    beside = width_px > style.NARROW and len(panels) == 2
    label_px = _LABEL_GAP_PX + 4 + max((
        style.text_width(style.canvas(width_px, 10), curve,
                         fontsize=style.SMALL_PX, fontweight="bold")
        for panel in panels for curve in panel[1]), default=0)
    columns = 2 if beside else 1
    panel_px = ((width_px - _GAP_PX * (columns - 1)) / columns
                - _LEFT_PX - label_px)
    height = _TITLE_PX + _PANEL_PX + _FOOT_PX
    figure = style.canvas(width_px, 4 + height * (
        1 if beside else max(1, len(panels))))
    for number, panel in enumerate(panels):
        column, row = (number, 0) if beside else (0, number)
        left = column * (_LEFT_PX + panel_px + label_px + _GAP_PX)
        _draw_panel(figure, panel, left + _LEFT_PX, 4 + row * height, panel_px)
    return figure


def _draw_panel(figure, panel, left, top, panel_px):
    title, curves, ringed = panel
    style.title(figure, left, top, title)
    axes = style.panel(figure, left, top + _TITLE_PX, panel_px, _PANEL_PX)
    style.only_ticks(axes, "left", "bottom")
    points = [point for _, each in curves.values() for point in each]
    _nodes_axis(axes, sorted({nodes for nodes, _ in points}), panel_px)
    _time_axis(axes, axes.yaxis, [ns for _, ns in points], "time, ms",
               axes.set_ylim)
    axes.yaxis.set_label_coords((15 - _LEFT_PX) / panel_px, 0.5)
    for name, (colour, each) in curves.items():
        axes.plot([log2(nodes) for nodes, _ in each],
                  [log10(ns / 1e6) for _, ns in each], marker="o",
                  color=colour, markersize=3.6,
                  linewidth=3.5 if name in _WIDE else 1.3,
                  linestyle="--" if name in _DASHED else "-")
    for nodes, ns in ringed:
        axes.plot([log2(nodes)], [log10(ns / 1e6)], "o", markersize=9,
                  markerfacecolor="none", markeredgecolor=style.INK,
                  markeredgewidth=1)
    _names(axes, curves, panel_px)


def _nodes_axis(axes, nodes, panel_px):
    margin = max(0.04 * (log2(nodes[-1]) - log2(nodes[0])), 0.3)
    axes.set_xlim(log2(nodes[0]) - margin, log2(nodes[-1]) + margin)
    every = 1 + int(len(nodes) * 34 / panel_px)
    axes.xaxis.set_major_locator(FixedLocator(
        [log2(number) for number in nodes[::every]]))
    axes.xaxis.set_major_formatter(FuncFormatter(
        lambda power, _: f"{2**power:.0f}"))
    axes.set_xlabel("nodes")


def _time_axis(axes, axis, times_ns, words, set_limits):
    """Powers of ten of milliseconds: the axis itself is linear, so that what
    lies on it can be measured in its units."""
    low, high = (log10(pick(times_ns) / 1e6) for pick in (min, max))
    margin = max(0.05 * (high - low), 0.1)
    set_limits(low - margin, high + margin)
    step = 1 if high - low > 1.2 else 0
    marks = [power for power in range(int(low) - 2, int(high) + 3)]
    places = marks if step else [power + log10(part) for power in marks
                                 for part in (1, 2, 5)]
    axis.set_major_locator(FixedLocator(
        [at for at in places if low - margin <= at <= high + margin]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(
        lambda power, _: f"{float(f'{10.0**float(power):.3g}'):.10g}"))
    axis.set_label_text(words)
    axes.grid(axis=axis.axis_name, color=style.FAINT, linewidth=0.5)
    axes.set_axisbelow(True)


def _names(axes, curves, panel_px):
    low, high = axes.get_ylim()
    ends = sorted(((log10(each[-1][1] / 1e6) - low) / (high - low)
                   * _PANEL_PX, name, colour)
                  for name, (colour, each) in curves.items() if each)
    heights = apart([end[0] for end in ends], _LABEL_ROW_PX, _PANEL_PX)
    for (_, name, colour), height in zip(ends, heights):
        axes.text(1 + _LABEL_GAP_PX / panel_px, height / _PANEL_PX, name,
                  transform=axes.transAxes, va="center_baseline",
                  fontsize=style.SMALL_PX, fontweight="bold", color=colour)


# --- predicted beside measured ------------------------------------------------

def _measured(report):
    rows = report.compared
    return Picture(
        "measured", "Predicted beside measured",
        "Each run that was recorded. On the line the forecast is exact; dotted "
        "lines are at half and twice what was measured.",
        "; ".join([f"{row.run}, {row.stage}: {100 * row.error:+.1f} %"
                   for row in rows][:20] + measured.summary(rows)),
        lambda width_px: _draw_measured(rows, width_px))


def _draw_measured(rows, width_px):
    side = min(360, width_px - _LEFT_PX - 14)
    beside = width_px > style.NARROW
    legend_px = 0 if beside else _LEGEND_ROW_PX * len(_LIMITS)
    figure = style.canvas(width_px, 8 + side + _FOOT_PX + legend_px)
    axes = style.panel(figure, _LEFT_PX, 8, side, side)
    style.only_ticks(axes, "left", "bottom")
    times = [ns for row in rows for ns in (row.measured_ns, row.predicted_ns)]
    _time_axis(axes, axes.xaxis, times, "measured, ms", axes.set_xlim)
    _time_axis(axes, axes.yaxis, times, "predicted, ms", axes.set_ylim)
    axes.yaxis.set_label_coords((15 - _LEFT_PX) / side, 0.5)
    low, high = axes.get_xlim()
    for ratio, pattern in ((1, "-"), (2, ":"), (0.5, ":")):
        axes.plot([low, high], [low + log10(ratio), high + log10(ratio)],
                  pattern, color=style.MUTED, linewidth=0.9, zorder=1)
    left, top = (_LEFT_PX + side + 24, 16) if beside else (
        _LEFT_PX, 8 + side + _FOOT_PX)
    for number, (limit, (colour, sign, words)) in enumerate(_LIMITS.items()):
        found = [row for row in rows if row.limit == limit]
        signs = {"color": colour, "markersize": 5, "markerfacecolor": "none",
                 "markeredgewidth": 1.2, "linestyle": "none"}
        axes.plot([log10(row.measured_ns / 1e6) for row in found],
                  [log10(row.predicted_ns / 1e6) for row in found], sign,
                  **signs)
        _legend(figure, left, top + _LEGEND_ROW_PX * number, sign, signs,
                f"{words}: {len(found)}")
    return figure


def _legend(figure, left, top, sign, signs, words):
    mark = style.panel(figure, left, top, 12, 12)
    style.only_ticks(mark)
    mark.patch.set_visible(False)
    mark.plot([0], [0], sign, **signs)
    style.write(figure, left + 18, top - 1, words, fontsize=style.SMALL_PX)
