"""Curves over sizes that double: rates and times by area, block or transfer.

Each point has its spread: the thin line goes from the least sample to the
largest, the thick one from quartile to quartile.  A curve's name stands at its
end.
"""

from dataclasses import dataclass, field
from typing import Callable

import numpy as np
from matplotlib.ticker import (FixedLocator, FuncFormatter, LogLocator,
                               NullLocator)

from trials.base import units
from trials.characterise import text_format
from trials.drawing import style
from trials.drawing.picture import Picture

_LEFT_PX, _TITLE_PX, _PANEL_PX, _FOOT_PX, _GAP_PX = 54, 24, 230, 44, 14
_LABEL_GAP_PX, _LABEL_ROW_PX = 8, 13
# Pixels that neighbouring curves' points are apart, lest spreads cover each
# other; and that all of them are.
_BESIDE_PX, _ASIDE_PX = 3.5, 14
# An axis begins at 0 if the ratio of its ends is below this.
_LOG_RATIO = 8
_COLOURS = {"read": style.BLUE, "write": style.VERMILION, "copy": style.GREEN,
            "random lines": style.PURPLE, "sequential read": style.BLUE,
            "random read": style.PURPLE, "sequential write": style.VERMILION,
            "random write": style.ORANGE}


@dataclass
class Panel:
    title: str
    curves: list
    # (place, value) of points with a ring
    ringed: list = field(default_factory=list)


@dataclass
class Plot:
    """Panels that share both axes."""

    panels: list
    x_words: str
    # "rate" or "time", and the unit: (its size, its name); None: that of rates.
    y_words: str = "rate"
    unit: tuple | None = None
    # (name, place) of places to be marked.
    marks: list = field(default_factory=list)
    # {name of a curve: how its line is drawn} of those that are not as usual.
    lines: dict = field(default_factory=dict)
    # Writes what stands on the x axis.
    place: Callable = text_format.short_size

    def __post_init__(self):
        self.unit = self.unit or text_format.rate_unit(
            text_format.largest(self.curves))

    @property
    def curves(self):
        return [curve for panel in self.panels for curve in panel.curves]

    def line(self, number, curve) -> dict:
        return {"color": _COLOURS.get(
            curve.name, style.SERIES[number % len(style.SERIES)]),
            "linewidth": 1.1, **self.lines.get(curve.name, {})}


def picture(name, title, caption, plot) -> Picture:
    """It is described by the ends of each curve."""
    return Picture(
        name, title, caption,
        "; ".join(f"{panel.title}: {text_format.curve_words(curve, plot)}"
                  for panel in plot.panels for curve in panel.curves),
        lambda width_px: draw(plot, width_px))


def draw(plot, width_px):
    probe = style.canvas(width_px, 10)
    label_px = _LABEL_GAP_PX + 6 + max(
        style.text_width(probe, curve.name, fontsize=style.SMALL_PX,
                         fontweight="bold")
        for curve in plot.curves)
    columns = min(len(plot.panels), 2 if width_px > style.NARROW else 1)
    rows = -(-len(plot.panels) // columns)
    panel_px = ((width_px - _GAP_PX * (columns - 1)) / columns
                - _LEFT_PX - label_px)
    height = _TITLE_PX + _PANEL_PX + _FOOT_PX + (14 if plot.marks else 0)
    figure = style.canvas(width_px, rows * height + 4)
    for number, panel in enumerate(plot.panels):
        row, column = divmod(number, columns)
        left = column * (_LEFT_PX + panel_px + label_px + _GAP_PX)
        _panel(figure, plot, panel, left + _LEFT_PX, 4 + row * height,
               panel_px)
    return figure


def _panel(figure, plot, panel, left, top, panel_px):
    style.title(figure, left, top, panel.title)
    top += _TITLE_PX + (14 if plot.marks else 0)
    axes = style.panel(figure, left, top, panel_px, _PANEL_PX)
    _x_axis(axes, plot, panel_px)
    _y_axis(axes, plot)
    _marks(axes, plot)
    beside_px = min(_BESIDE_PX, _ASIDE_PX / len(panel.curves)) if any(
        spread.low < spread.high for curve in panel.curves
        for _, spread in curve.points) else 0
    for number, curve in enumerate(panel.curves):
        _curve(axes, curve, plot.line(number, curve), plot.unit[0],
               (number - (len(panel.curves) - 1) / 2) * beside_px)
    for place, value in panel.ringed:
        axes.plot([np.log2(place)], [value / plot.unit[0]], "o", markersize=9,
                  markerfacecolor="none", markeredgecolor=style.INK,
                  markeredgewidth=1)
    _names(axes, plot, panel.curves)


# --- axes ---------------------------------------------------------------------

def _x_axis(axes, plot, panel_px):
    sizes = sorted({size for curve in plot.curves
                    for size, _ in curve.points})
    low, high = np.log2(sizes[0]), np.log2(sizes[-1])
    margin = max(0.04 * (high - low), 0.3)
    axes.set_xlim(low - margin, high + margin)
    every = 1 + int(len(sizes) * 32 / panel_px)
    axes.xaxis.set_major_locator(FixedLocator(np.log2(sizes[::every])))
    axes.xaxis.set_major_formatter(FuncFormatter(
        lambda power, _: plot.place(2**power)))
    axes.set_xlabel(plot.x_words)


def _y_axis(axes, plot):
    unit, name = plot.unit
    spreads = [spread for curve in plot.curves for _, spread in curve.points]
    low = min(spread.low for spread in spreads) / unit
    high = max(spread.high for spread in spreads) / unit
    if low > 0 and high / low > _LOG_RATIO:
        make_logarithmic(axes.yaxis, low, high)
    else:
        axes.set_ylim(0, high * 1.05 or 1)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.10g}"))
    axes.grid(axis="y", color=style.FAINT, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.set_ylabel(f"{plot.y_words}, {name}")
    axes.yaxis.set_label_coords((15 - _LEFT_PX)
                                / axes.get_window_extent().width, 0.5)


def make_logarithmic(axis, low, high):
    """Make it an axis for values from low to high, with round figures."""
    axes, name = axis.axes, axis.axis_name
    axes.set(**{f"{name}scale": "log", f"{name}lim": (low / 1.15, high * 1.15)})
    axis.set_major_locator(LogLocator(
        subs=(1, 2, 5) if high / low < 2000 else (1,)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))


def _marks(axes, plot):
    """Places by their names, as the sizes that a machine says it has."""
    low, high = axes.get_xlim()
    for name, size in plot.marks:
        power = np.log2(size)
        if not low < power < high:
            continue
        axes.axvline(power, color=style.MUTED, linewidth=0.8,
                     linestyle=(0, (4, 3)))
        axes.annotate(f"{name} {plot.place(size)}", (power, 1),
                      xytext=(0, 3), textcoords="offset points",
                      xycoords=axes.get_xaxis_transform(), ha="center",
                      va="bottom", fontsize=style.SMALL_PX,
                      color=style.MUTED)


# --- curves -------------------------------------------------------------------

def _curve(axes, curve, line, unit, aside_px):
    low, high = axes.get_xlim()
    aside = aside_px / axes.get_window_extent().width * (high - low)
    at = [np.log2(size) + aside for size, _ in curve.points]
    spreads = [spread for _, spread in curve.points]
    axes.plot(at, [s.middle / unit for s in spreads], marker="o",
              markersize=3.6, zorder=3, **line)
    for place, spread in zip(at, spreads):
        if spread.low < spread.high:
            axes.plot([place] * 2, [spread.low / unit, spread.high / unit],
                      color=line["color"], linewidth=0.8, zorder=2)
        if spread.first_quartile is not None:
            axes.plot([place] * 2, [spread.first_quartile / unit,
                                    spread.third_quartile / unit],
                      color=line["color"], linewidth=2.8, alpha=0.5, zorder=2,
                      solid_capstyle="butt")


def _names(axes, plot, curves):
    """Write the names at the ends of the curves, in the order of the ends and
    apart from each other."""
    width = axes.get_window_extent().width
    ends = []
    for number, curve in enumerate(curves):
        size, spread = curve.points[-1]
        across, up = axes.transAxes.inverted().transform(
            axes.transData.transform((np.log2(size),
                                      spread.middle / plot.unit[0])))
        ends.append((up * _PANEL_PX, across, number))
    ends.sort()
    heights = apart([end[0] for end in ends], _LABEL_ROW_PX, _PANEL_PX)
    for (_, across, number), height in zip(ends, heights):
        axes.text(across + (_LABEL_GAP_PX + 4) / width, height / _PANEL_PX,
                  units.printable(curves[number].name),
                  transform=axes.transAxes, va="center_baseline",
                  fontsize=style.SMALL_PX, fontweight="bold",
                  color=plot.line(number, curves[number])["color"])


def apart(heights, gap, top) -> list:
    """Ascending heights moved as little as leaves a gap between them, within
    0 and top as far as they fit."""
    placed = []
    for height in heights:
        placed.append(max(height, placed[-1] + gap) if placed else height)
    over = max(0.0, placed[-1] - top) if placed else 0.0
    # The upper ones go back, and push those below.
    for i in range(len(placed) - 1, -1, -1):
        limit = (placed[i + 1] - gap) if i + 1 < len(placed) \
            else placed[i] - over
        placed[i] = min(placed[i], limit)
    return placed
