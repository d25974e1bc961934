"""Programs that make bench has run by turns: their times against cp's."""

import numpy as np
from matplotlib.ticker import FixedLocator, NullLocator

from trials.base import units
from trials.base.text_table import as_lines, grid
from trials.drawing import points, style
from trials.drawing.picture import Picture
from trials.record.bench import BASELINE
from trials.statistics.descriptive import median_interval

_NAMES_PX, _FIGURES_PX, _ROW_PX, _TITLE_PX, _FOOT_PX = 90, 92, 21, 34, 38
_TICKS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def text(bench) -> str:
    parts = [f"machine    {bench.machine}\nblinksort  {bench.version}\n"
             f"rounds     {bench.rounds}, by turns"]
    for series in bench.series:
        rows = [[name, *map(units.milliseconds, (min(times), np.median(times))),
                 _median_words(series.ratios(name))]
                for name, times in series.times_ns.items()]
        parts.append(f"{series.place}: times in ms\n" + grid(
            ("program", "min", "median", f"time of {BASELINE} = 1 [95 %]"),
            rows))
    return as_lines("\n\n".join(parts) + "\n")


def _median_words(ratios):
    interval = median_interval(ratios)
    return f"{np.median(ratios):.2f}" + (
        f" [{interval.low:.2f}, {interval.high:.2f}]" if interval else "")


def pictures(bench) -> list:
    return [Picture(
        "peers", f"Times of programs against {BASELINE}",
        f"The bar goes to the median of the ratios to {BASELINE}'s time in the "
        "same round; each tick is a round.",
        "; ".join(f"{series.place}: " + ", ".join(
            f"{name} {np.median(series.ratios(name)):.2f}"
            for name in series.programs) for series in bench.series),
        lambda width_px: _draw(bench, width_px))]


def _draw(bench, width_px):
    heights = [_TITLE_PX + _ROW_PX * len(series.programs)
               for series in bench.series]
    figure = style.canvas(width_px, sum(heights) + _FOOT_PX)
    ratios = [ratio for series in bench.series for name in series.programs
              for ratio in series.ratios(name)]
    limits = min(ratios) / 1.1, max(ratios) * 1.1
    top = 0
    for series, height in zip(bench.series, heights):
        axes = _draw_series(figure, top, width_px, series, limits)
        top += height
    axes.tick_params(axis="x", labelbottom=True)
    axes.set_xlabel(f"time of {BASELINE} = 1; each tick is a round")
    return figure


def _draw_series(figure, top, width_px, series, limits):
    style.title(figure, 0, top + 6, f"on {series.place}")
    panel_px = width_px - _NAMES_PX - _FIGURES_PX
    axes = style.panel(figure, _NAMES_PX, top + _TITLE_PX, panel_px,
                       _ROW_PX * len(series.programs))
    style.only_ticks(axes, "bottom")
    axes.set_xscale("log")
    axes.set_xlim(limits)
    axes.set_ylim(len(series.programs) - 0.5, -0.5)
    axes.xaxis.set_major_locator(FixedLocator(
        [tick for tick in _TICKS if limits[0] <= tick <= limits[1]]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda ratio, _: f"{ratio:g}")
    axes.tick_params(axis="x", labelbottom=False)
    for row, name in enumerate(series.programs):
        _draw_program(axes, row, name, series, panel_px)
    axes.axvline(1, color=style.INK, linewidth=1)
    axes.text(1, -0.6, BASELINE, ha="center", va="bottom",
              fontsize=style.TEXT_PX)
    return axes


def _draw_program(axes, row, name, series, panel_px):
    ratios = series.ratios(name)
    middle, own = np.median(ratios), row == 0
    tint, weight = (style.BLUE, "bold") if own else (style.MUTED, "normal")
    settings = {"transform": axes.get_yaxis_transform(), "fontweight": weight,
                "va": "center_baseline", "fontsize": style.TEXT_PX}
    axes.barh(row, middle - 1, left=1, height=0.6, color=tint, alpha=0.4,
              linewidth=0)
    ends = np.column_stack([np.full(len(ratios), row - 0.3),
                            np.full(len(ratios), row + 0.3)])
    points.strokes(axes, np.column_stack([ratios, ratios]), ends, color=tint,
                   linewidth=0.9, alpha=0.8)
    axes.text(-6 / panel_px, row, style.shortened(
        axes.figure, name, _NAMES_PX - 6, fontsize=style.TEXT_PX), ha="right",
        color=style.BLUE if own else style.INK, **settings)
    for right_px, figure in (
            (34, f"{middle:.{2 if middle < 9.995 else 1}f}"),
            (_FIGURES_PX, f"{np.median(series.times_ns[name]) / 1e6:.0f} ms")):
        axes.text(1 + right_px / panel_px, row, figure, ha="right", **settings)
