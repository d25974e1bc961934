"""A histogram of times: every sample is a tick under it, percentiles are
labelled, and samples far beyond the others stand in a strip of their own.
"""

from dataclasses import dataclass
from typing import Any, Sequence

import numpy as np

from trials.base import units
from trials.drawing import labels, overflow, points, style

LEFT_PX, RIGHT_PX, FOOT_PX = 50, 12, 40
_TITLE_PX, _PANEL_PX, _LOW_PANEL_PX, _RUG_PX, _GAP_PX = 20, 96, 34, 14, 12
_SHARES_PX, _SHARES_GAP_PX = 190, 64
# Fewer samples have no such percentile worth a line.
_LEAST_COUNTS = {5: 20, 95: 20, 99: 100}


@dataclass
class Samples:
    """The samples of a row, and what it shows of them."""

    name: str
    values_ns: np.ndarray
    tint: str
    # Texts for beside the name; the first that has room is taken.
    figures: tuple = ()
    # The interval of the median, in ns.
    interval: Any = None
    # Labels of other figures.
    marks: Sequence = ()


class Axis:
    """A time axis that rows may share: it ends where none has its bulk, and
    begins at least_ns if that is given."""

    def __init__(self, *sets_ns, least_ns=None):
        inside = [overflow.split(values)[0] for values in sets_ns]
        largest = max(each.max() for each in inside)
        self.scale, self.unit = style.time_scale(largest)
        self.limits = [end / self.scale for end in overflow.limits(
            (min(each.min() for each in inside), largest))]
        if least_ns is not None:
            self.limits[0] = least_ns / self.scale
        self.limit_ns = max(largest, self.limits[1] * self.scale)
        beyond = any((values > self.limit_ns).any() for values in sets_ns)
        self.strip_px = overflow.STRIP_PX if beyond else 0


class Row:
    """One set of samples, whose height is known before it is drawn.

    A tall row has labels.  With `shares` it has the figures of its axis, and
    beside it, or below it on a narrow page, the share of the samples that took
    no longer."""

    def __init__(self, shown, axis, width_px, tall=True, shares=False):
        self.shown, self.axis, self.tall = shown, axis, tall
        self.shares, self.beside = shares, shares and width_px > style.NARROW
        values = shown.values_ns
        self.inside = values[values <= axis.limit_ns]
        self.beyond = np.sort(values[values > axis.limit_ns])
        self.panel_px = width_px - LEFT_PX - RIGHT_PX - axis.strip_px - (
            _SHARES_PX + _SHARES_GAP_PX if self.beside else 0)
        self.percentiles = {
            percent: np.percentile(values, percent)
            for percent, least in _LEAST_COUNTS.items()
            if tall and len(values) >= least}
        self.labels = [*(self._labels() if tall else ()), *shown.marks]
        self.head_px = _TITLE_PX + 8 + labels.place(
            width_px, self.labels, axis.limits, self.panel_px)
        self.plot_px = _PANEL_PX if tall else _LOW_PANEL_PX
        self.height_px = self.head_px + self.plot_px + _GAP_PX + (
            FOOT_PX if shares else _RUG_PX)
        if shares and not self.beside:
            self.height_px += 0.6 * self.plot_px + 44

    def _labels(self):
        scale, unit = self.axis.scale, self.axis.unit
        middle_ns = np.median(self.shown.values_ns)
        return [labels.Label(middle_ns / scale, "median " + units.with_interval(
            middle_ns, self.shown.interval if self.beside else None,
            lambda ns: units.digits(ns / scale), f" {unit}"), bold=True)] + [
            labels.Label(ns / scale, f"p{percent} {units.digits(ns / scale)}",
                         colour=style.MUTED)
            for percent, ns in self.percentiles.items()
            if ns <= self.axis.limit_ns]

    def draw(self, figure, top):
        width_px = figure.get_figwidth() * 72
        title = style.title(figure, LEFT_PX, top, self.shown.name,
                            self.shown.tint)
        if self.shown.figures:
            left = LEFT_PX + title.get_window_extent().width + 6
            small = {"fontsize": style.SMALL_PX}
            style.write(figure, left, top + 1, style.fitting(
                figure, self.shown.figures, width_px - left - RIGHT_PX,
                **small), color=style.MUTED, **small)
        top += self.head_px
        axes = style.panel(figure, LEFT_PX, top, self.panel_px, self.plot_px)
        self._bars(axes)
        labels.draw(axes, self.labels, self.plot_px)
        if len(self.beyond):
            note = "".join(
                f"\np{percent} {units.duration(ns)}"
                for percent, ns in self.percentiles.items()
                if ns > self.axis.limit_ns)
            overflow.strip(figure, LEFT_PX + self.panel_px, top, self.plot_px,
                           self.beyond, self.shown.tint, note)
        if self.shares:
            self.show_axis(axes, 8 if self.beside else 5)
            place = (width_px - RIGHT_PX - _SHARES_PX, top, _SHARES_PX,
                     self.plot_px) if self.beside else (
                LEFT_PX, top + self.plot_px + FOOT_PX, self.panel_px,
                0.6 * self.plot_px)
            self._draw_shares(style.panel(figure, *place))
        return axes

    def show_axis(self, axes, ticks):
        axes.tick_params(axis="x", labelbottom=True)
        style.ticks(axes.xaxis, ticks)
        axes.set_xlabel(f"time, {self.axis.unit}")

    def _bars(self, axes):
        axes.set_xlim(self.axis.limits)
        scale, tint = self.axis.scale, self.shown.tint
        bins = bin_edges(self.inside / scale, self.axis.limits)
        counts, _ = np.histogram(self.inside / scale, bins)
        if self.shown.interval:
            axes.axvspan(self.shown.interval.low / scale,
                         self.shown.interval.high / scale,
                         color=style.INK, alpha=0.12, linewidth=0)
        axes.stairs(counts, bins, fill=True, color=tint, alpha=0.4,
                    linewidth=0)
        axes.stairs(counts, bins, color=tint, linewidth=0.9)
        for label in self.labels:
            axes.axvline(label.value, color=label.colour,
                         linewidth=1.4 if label.bold else 0.8)
        axes.set_ylim(0, max(counts.max(), 1) * 1.05)
        style.ticks(axes.yaxis, 4 if self.tall else 2, integer=True)
        axes.tick_params(axis="x", pad=12, labelbottom=False)
        points.rug(axes, self.inside / scale, -12 / self.plot_px,
                   -3 / self.plot_px, color=tint)

    def _draw_shares(self, axes):
        ordered = np.sort(self.shown.values_ns) / self.axis.scale
        shares = 100 * np.arange(1, len(ordered) + 1) / len(ordered)
        axes.step([self.axis.limits[0], *ordered], [0, *shares], where="post",
                  color=self.shown.tint, linewidth=1.2)
        axes.set_xlim(self.axis.limits)
        axes.set_ylim(0, 100)
        axes.set_yticks([0, 50, 100])
        axes.grid(axis="y", color=style.FAINT, linewidth=0.5)
        axes.set_axisbelow(True)
        axes.set_ylabel("share, %")
        self.show_axis(axes, 4)


def draw_rows(rows, width_px, words):
    """A figure of rows that share an axis, which is under the last; `words` say
    what is counted."""
    figure, drawn = style.stacked(width_px, rows, below_px=FOOT_PX)
    for axes in drawn:
        axes.set_ylabel(words)
    rows[-1].show_axis(drawn[-1], 10 if width_px > style.NARROW else 5)
    return figure


def bin_edges(values, limits):
    """Freedman's and Diaconis' width; narrower where many samples would show
    more, since theirs hides a second peak."""
    low, high = float(np.min(values)), float(np.max(values))
    if low == high:
        return np.array([-0.02, 0.02]) * np.ptp(limits) + low
    spread = np.subtract(*np.percentile(values, [75, 25]))
    width = 2 * spread / len(values) ** (1 / 3)
    count = (high - low) / width if width > 0 else 0
    count = int(np.clip(max(count, len(values) / 6), 6, 60))
    return np.linspace(low, high, count + 1)
