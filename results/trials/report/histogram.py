"""The distribution of the reference's times.

Above, all scenarios on one time axis (overview.py); below, each by itself: a
histogram, every sample as a tick under it, the percentiles, and beside it the
share of trials that took no longer.
"""

import numpy as np
from matplotlib.ticker import MaxNLocator

from trials.base import units
from trials.drawing import labels, overflow, points, style
from trials.report.overview import Overview

_LEFT_PX, _RIGHT_PX, _TITLE_PX, _PANEL_PX, _FOOT_PX = 46, 12, 20, 104, 50
_ECDF_PX, _ECDF_GAP_PX = 190, 64
# Fewer samples have no such percentile worth a line.
_LEAST_COUNTS = {"5": 20, "95": 20, "99": 100}


class Detail:
    """One scenario's panel, whose height is known before it is drawn."""

    def __init__(self, study, group, width_px):
        self.group = group
        self.title = study.label(group.scenario)
        self.colour = style.colour_of(study.scenarios, group.scenario)
        self.inside, self.beyond = overflow.split(group.samples_ns)
        self.beside = width_px > style.NARROW
        ends = [*self.inside, group.summary.median_ns]
        self.scale, self.unit = style.time_scale(max(ends))
        low, high = overflow.limits(ends)
        self.limits = low / self.scale, high / self.scale
        self.panel_px = width_px - _LEFT_PX - _RIGHT_PX
        if self.beside:
            self.panel_px -= _ECDF_PX + _ECDF_GAP_PX
        if len(self.beyond):
            self.panel_px -= overflow.STRIP_PX
        self.labels = self._labels()
        probe = style.canvas(width_px, 10)
        rows = labels.place(probe, self.labels, self.limits, self.panel_px)
        self.head_px = _TITLE_PX + rows * labels.ROW_PX + 8
        self.height_px = self.head_px + _PANEL_PX + _FOOT_PX
        if not self.beside:
            self.height_px += _PANEL_PX * 0.6 + 44

    def _labels(self):
        summary = self.group.summary
        text = f"median {units.duration(summary.median_ns)}"
        interval = summary.median_interval_ns
        if interval and self.beside:
            text += (f" [{units.milliseconds(interval.low)}, "
                     f"{units.milliseconds(interval.high)}]")
        made = [labels.Label(summary.median_ns / self.scale, text, bold=True)]
        for percent, least in _LEAST_COUNTS.items():
            value = summary.percentiles_ns[percent] / self.scale
            if self.group.count >= least and value <= self.limits[1]:
                made.append(labels.Label(
                    value, f"p{percent} {units.digits(value)}",
                    colour=style.MUTED))
        return made

    def _percentiles_beyond(self):
        values = [(percent, self.group.summary.percentiles_ns[percent])
                  for percent, least in _LEAST_COUNTS.items()
                  if self.group.count >= least]
        return "".join(f"\np{percent} {units.duration(value)}"
                       for percent, value in values
                       if value / self.scale > self.limits[1])

    def draw(self, figure, top):
        style.write(figure, _LEFT_PX, top, self.title, fontweight="bold",
                    color=self.colour, fontsize=style.TEXT_PX + 1)
        axes = style.panel(figure, _LEFT_PX, top + self.head_px,
                           self.panel_px, _PANEL_PX)
        self._bars(axes)
        labels.draw(axes, self.labels, _PANEL_PX)
        if len(self.beyond):
            overflow.strip(figure, _LEFT_PX + self.panel_px,
                           top + self.head_px, _PANEL_PX, self.beyond,
                           self.colour, self._percentiles_beyond())
        if self.beside:
            place = (figure.get_figwidth() * 72 - _RIGHT_PX - _ECDF_PX,
                     top + self.head_px, _ECDF_PX, _PANEL_PX)
        else:
            place = (_LEFT_PX, top + self.head_px + _PANEL_PX + _FOOT_PX,
                     self.panel_px, _PANEL_PX * 0.6)
        self._shares(style.panel(figure, *place))

    def _bars(self, axes):
        style.only_ticks(axes, "left", "bottom")
        axes.set_xlim(self.limits)
        bins = bin_edges(self.inside / self.scale, self.limits)
        counts, _ = np.histogram(self.inside / self.scale, bins)
        interval = self.group.summary.median_interval_ns
        if interval:
            axes.axvspan(interval.low / self.scale, interval.high / self.scale,
                         color=style.INK, alpha=0.12, linewidth=0)
        axes.stairs(counts, bins, fill=True, color=self.colour, alpha=0.45,
                    linewidth=0)
        axes.stairs(counts, bins, color=self.colour, linewidth=0.9)
        for label in self.labels:
            axes.axvline(label.value, color=label.colour,
                         linewidth=1.4 if label.bold else 0.8)
        axes.set_ylim(0, max(counts.max(), 1) * 1.05)
        axes.yaxis.set_major_locator(MaxNLocator(
            4, integer=True, steps=[1, 2, 5, 10]))
        axes.set_ylabel("trials")
        axes.tick_params(axis="x", pad=14)
        axes.xaxis.set_major_locator(MaxNLocator(
            8 if self.beside else 5, steps=[1, 2, 5, 10]))
        axes.set_xlabel(f"time, {self.unit}")
        points.rug(axes, self.inside / self.scale, -0.14, -0.04,
                   color=self.colour)

    def _shares(self, axes):
        style.only_ticks(axes, "left", "bottom")
        ordered = np.sort(self.group.samples_ns) / self.scale
        shares = 100 * np.arange(1, len(ordered) + 1) / len(ordered)
        axes.step([self.limits[0], *ordered], [0, *shares], where="post",
                  color=self.colour, linewidth=1.2)
        axes.set_xlim(self.limits)
        axes.set_ylim(0, 100)
        axes.set_yticks([0, 50, 100])
        axes.grid(axis="y", color=style.FAINT, linewidth=0.5)
        axes.set_axisbelow(True)
        axes.xaxis.set_major_locator(MaxNLocator(
            4, steps=[1, 2, 5, 10]))
        axes.set_ylabel("share, %")
        axes.set_xlabel(f"time, {self.unit}")


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


def draw(study, width_px):
    groups = [g for g in map(study.reference, study.scenarios)
              if g is not None and g.count]
    parts = [Overview(study, groups, width_px)]
    parts += [Detail(study, group, width_px) for group in groups]
    figure = style.canvas(width_px, sum(p.height_px + 10 for p in parts))
    top = 4
    for part in parts:
        part.draw(figure, top)
        top += part.height_px + 10
    return figure
