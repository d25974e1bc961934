"""The pictures of a forecast: exchanges and stages by the number of nodes, and
what was measured against what was predicted.
"""

from trials.base import units
from trials.characterise import curves
from trials.characterise.curves import Panel, Plot
from trials.characterise.machine_profile import Curve, Spread
from trials.drawing import style
from trials.drawing.picture import Picture
from trials.forecast import measured

_LEFT_PX, _FOOT_PX, _LEGEND_ROW_PX = 54, 44, 18
_MS = (1e6, "ms")
# The curves of schedules and of stages.  Dashed is what is a bound; wide, what
# others may cover, which is drawn first.
_SCHEDULES = {"rounds": {"color": style.BLUE},
              "all-at-once": {"color": style.VERMILION},
              "grid": {"color": style.GREEN},
              "link alone": {"color": style.MUTED, "linestyle": "--"}}
_STAGES = {"launch": {"color": style.ORANGE},
           "read": {"color": style.SKY, "linewidth": 3.5},
           "bucket": {"color": style.PURPLE, "linewidth": 3.5},
           "exchange": {"color": style.BLUE}, "sort": {"color": style.GREEN},
           "write": {"color": style.VERMILION},
           "whole": {"color": style.INK, "linestyle": "--"}}
_NAMES = {"link alone": "link"}
_LIMITS = {"link": (style.BLUE, "o", "link the limit"),
           "CPUs": (style.VERMILION, "s", "CPUs the limit"),
           "queues": (style.PURPLE, "^", "queues overflow"),
           "status": (style.ORANGE, "v", "what ranks tell each other"),
           None: (style.GREEN, "D", "sort, or a stage of it")}


def pictures(report) -> list:
    made = [_by_nodes(report, "exchange", "The exchange, by schedule",
                      _SCHEDULES, _exchange_panel, (
                          "Time of the exchange of equal shares, by the "
                          "number of nodes. A ring is what auto takes. "
                          "Dashed: what the bytes take on the link alone.")),
            _by_nodes(report, "stages", "The sort, stage by stage", _STAGES,
                      _stage_panel, (
                          "Time of each stage, by the number of nodes; the "
                          "exchange is that of auto. Dashed: the whole."))]
    if report.compared:
        made.append(_measured(report))
    return [picture for picture in made if picture]


# --- by the number of nodes ---------------------------------------------------

def _exchange_panel(title, forecasts):
    many = [one for one in forecasts if one.chosen]
    return Panel(title, _curves(_SCHEDULES, many, lambda one, name: one.by(
        _NAMES.get(name, name))), [(one.nodes, one.exchange) for one in many])


def _stage_panel(title, forecasts):
    return Panel(title, _curves(_STAGES, forecasts, getattr))


def _curves(names, forecasts, time_of) -> list:
    made = [Curve(name, points=[
        (one.nodes, Spread.of([time_of(one, name)]))
        for one in forecasts if time_of(one, name)]) for name in names]
    return [curve for curve in made if curve.points]


def _by_nodes(report, name, title, lines, panel_of, caption):
    panels = [panel_of(report.title(records).partition(",")[0], forecasts)
              for records, forecasts in report.forecasts.items()]
    panels = [panel for panel in panels if panel.curves]
    if not panels:
        return None
    words = "; ".join(f"{panel.title}: " + ", ".join(
        f"{curve.name} {units.duration(curve.points[-1][1].middle)} on "
        f"{curve.points[-1][0]} nodes" for curve in panel.curves)
        for panel in panels)
    plot = Plot(panels, "nodes", "time", _MS, lines=lines,
                place=lambda nodes: f"{nodes:.0f}")
    return Picture(name, title, caption, words,
                   lambda width_px: curves.draw(plot, width_px))


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
    times = [ns / 1e6 for row in rows
             for ns in (row.measured_ns, row.predicted_ns)]
    for axis, words in ((axes.xaxis, "measured, ms"),
                        (axes.yaxis, "predicted, ms")):
        curves.make_logarithmic(axis, min(times) / 1.2, max(times) * 1.2)
        axis.set_label_text(words)
    axes.grid(color=style.FAINT, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.yaxis.set_label_coords((15 - _LEFT_PX) / side, 0.5)
    ends = axes.get_xlim()
    for ratio, pattern in ((1, "-"), (2, ":"), (0.5, ":")):
        axes.plot(ends, [end * ratio for end in ends], pattern,
                  color=style.MUTED, linewidth=0.9, zorder=1)
    for limit, (colour, sign, words) in _LIMITS.items():
        found = [row for row in rows if row.limit == limit]
        axes.plot([row.measured_ns / 1e6 for row in found],
                  [row.predicted_ns / 1e6 for row in found], sign,
                  color=colour, markersize=5, markerfacecolor="none",
                  markeredgewidth=1.2, label=f"{words}: {len(found)}")
    axes.legend(loc="upper left", frameon=False, borderpad=0, handlelength=1,
                bbox_to_anchor=(1 + 24 / side, 1) if beside
                else (0, -_FOOT_PX / side), fontsize=style.SMALL_PX)
    return figure
