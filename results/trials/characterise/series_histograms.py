"""Times of many alike things on one axis: a histogram for each series.

Every sample is a tick under its histogram; those far beyond the others are in a
strip of their own, with their figures.
"""

import numpy as np
from matplotlib.ticker import MaxNLocator

from trials.base import units
from trials.characterise import curves, text_format
from trials.drawing import labels, overflow, points, style
from trials.report import histogram

_LEFT_PX, _RIGHT_PX, _TITLE_PX, _FOOT_PX, _GAP_PX = 50, 12, 20, 46, 12
_PANEL_PX, _LOW_PANEL_PX, _RUG_PX = 84, 34, 14
# More series than this are drawn low, and their figures stand beside names.
_MOST_TALL = 4
_LEAST_COUNTS = {5: 20, 95: 20, 99: 100}


class Row:
    """One series, whose height is known before it is drawn."""

    def __init__(self, series, tall, axis, width_px):
        self.series, self.tall, self.axis = series, tall, axis
        values = series.samples
        self.inside = values[values <= axis.limit_ns]
        self.beyond = np.sort(values[values > axis.limit_ns])
        self.panel_px = width_px - _LEFT_PX - _RIGHT_PX - axis.strip_px
        self.labels = self._labels() if tall else []
        rows = labels.place(style.canvas(width_px, 10), self.labels,
                            axis.limits, self.panel_px) if tall else 0
        self.plot_px = _PANEL_PX if tall else _LOW_PANEL_PX
        self.head_px = _TITLE_PX + rows * labels.ROW_PX + 8
        self.height_px = self.head_px + self.plot_px + _RUG_PX + _GAP_PX

    def _labels(self):
        made = []
        for percent, least in {50: 1, **_LEAST_COUNTS}.items():
            value = np.percentile(self.series.samples, percent)
            if len(self.series.samples) < least or value > self.axis.limit_ns:
                continue
            value /= self.axis.scale
            made.append(labels.Label(
                value, f"median {units.digits(value)} {self.axis.unit}",
                bold=True) if percent == 50 else labels.Label(
                value, f"p{percent} {units.digits(value)}",
                colour=style.MUTED))
        return made

    def _figures(self):
        """Figures for beside the name: all, or fewer where there is less
        room."""
        samples, lost = self.series.samples, self.series.setting.get("lost")
        count = f"{len(samples)} samples" + (f", {lost} lost" if lost else "")
        middle = f"median {text_format.time_words(np.median(samples))}"
        if self.tall:
            ends = (f"from {text_format.time_words(samples.min())} to "
                    f"{text_format.time_words(samples.max())}")
            return f"{count}, {ends}", count
        return (text_format.series_figures(self.series), f"{middle}, {count}",
                middle)

    def _percentiles_beyond(self):
        values = [(percent, np.percentile(self.series.samples, percent))
                  for percent, least in _LEAST_COUNTS.items()
                  if len(self.series.samples) >= least]
        return "".join(f"\np{percent} {text_format.time_words(value)}"
                       for percent, value in values
                       if value > self.axis.limit_ns and self.tall)

    def draw(self, figure, top, tint):
        name = self.series.name
        width_px = figure.get_figwidth() * 72
        bold = {"fontweight": "bold", "fontsize": style.TEXT_PX + 1}
        style.write(figure, _LEFT_PX, top, name, color=tint, **bold)
        left = _LEFT_PX + style.text_width(figure, name, **bold) + 6
        small = {"fontsize": style.SMALL_PX}
        style.write(figure, left, top + 1, curves.fitting(
            figure, self._figures(), width_px - left - _RIGHT_PX, **small),
            color=style.MUTED, **small)
        top += self.head_px
        axes = style.panel(figure, _LEFT_PX, top, self.panel_px,
                           self.plot_px)
        self._bars(axes, tint)
        labels.draw(axes, self.labels, self.plot_px)
        if len(self.beyond):
            overflow.strip(figure, _LEFT_PX + self.panel_px, top,
                           self.plot_px, self.beyond, tint,
                           self._percentiles_beyond())
        return axes

    def _bars(self, axes, tint):
        style.only_ticks(axes, "left", "bottom")
        axes.set_xlim(self.axis.limits)
        values = self.inside / self.axis.scale
        bins = histogram.bin_edges(values, self.axis.limits)
        counts, _ = np.histogram(values, bins)
        axes.stairs(counts, bins, fill=True, color=tint, alpha=0.35,
                    linewidth=0)
        axes.stairs(counts, bins, color=tint, linewidth=0.9)
        for label in self.labels:
            axes.axvline(label.value, color=label.colour,
                         linewidth=1.4 if label.bold else 0.8)
        axes.set_ylim(0, max(counts.max(), 1) * 1.05)
        axes.yaxis.set_major_locator(MaxNLocator(
            4 if self.tall else 2, integer=True, steps=[1, 2, 5, 10]))
        axes.tick_params(axis="x", pad=12, labelbottom=False)
        points.rug(axes, values, -12 / self.plot_px, -3 / self.plot_px,
                   color=tint)


class Axis:
    """That all series share: it ends where none has its bulk."""

    def __init__(self, series):
        inside = [overflow.split(s.samples)[0] for s in series]
        self.limit_ns = max(each.max() for each in inside)
        self.scale, self.unit = style.time_scale(self.limit_ns)
        low = min(each.min() for each in inside)
        self.limits = [end / self.scale for end in overflow.limits(
            (low, self.limit_ns))]
        self.limit_ns = max(self.limit_ns, self.limits[1] * self.scale)
        beyond = any((s.samples > self.limit_ns).any() for s in series)
        self.strip_px = overflow.STRIP_PX if beyond else 0


def draw(series, words_of_samples, width_px):
    axis = Axis(series)
    rows = [Row(each, len(series) <= _MOST_TALL, axis, width_px)
            for each in series]
    figure = style.canvas(width_px, sum(row.height_px for row in rows)
                          + _FOOT_PX + 4 - _GAP_PX)
    top = 4
    for number, row in enumerate(rows):
        axes = row.draw(figure, top, style.SERIES[number % 2])
        if row.tall:
            axes.set_ylabel(words_of_samples)
        top += row.height_px
    axes.tick_params(axis="x", labelbottom=True)
    axes.xaxis.set_major_locator(MaxNLocator(
        10 if width_px > style.NARROW else 5, steps=[1, 2, 5, 10]))
    axes.set_xlabel(f"time, {axis.unit}")
    return figure
