"""All scenarios of the reference on one time axis, with what was published.

The figures of 2011 are those of P. Bertasi, M. Bonazza, M. Bressan and
E. Peserico, "Datamation: A Quarter of a Century and Four Orders of Magnitude
Later", IEEE CLUSTER 2011, doi 10.1109/CLUSTER.2011.75: a million records of
100 bytes on 16 nodes.  They are another machine's, and say so.
"""

from dataclasses import dataclass

import numpy as np
from matplotlib.ticker import MaxNLocator

from trials.base import units
from trials.drawing import labels, overflow, points, style
from trials.drawing.histogram import FOOT_PX, LEFT_PX, RIGHT_PX

_PANEL_PX = 84
# Pixels that a bin is wide: as narrow as can still be told apart.
_BIN_PX = 4


@dataclass(frozen=True)
class Published:
    scenario: str
    words: str
    min_ns: float
    median_ns: float


PUBLISHED = (
    Published("cache", "cache to cache", 40.5e6, 40.8e6),
    Published("platter", "platter to platter", 55e6, 57e6),
)


def published(study):
    """What may stand beside this record's times: only the same amount of
    data, which is the benchmark's."""
    same = (study.design["records"], study.design["record_bytes"])
    return PUBLISHED if same == (1_000_000, 100) else ()


class Overview:
    """A panel whose height is known before it is drawn."""

    def __init__(self, study, groups, width_px):
        self.study, self.groups = study, groups
        self.published = published(study)
        parts = [overflow.split(g.samples_ns) for g in groups]
        self.inside = [part[0] for part in parts]
        self.beyond = np.sort(np.concatenate([part[1] for part in parts]))
        strip_px = overflow.STRIP_PX if len(self.beyond) else 0
        self.panel_px = width_px - LEFT_PX - RIGHT_PX - strip_px
        largest = max([s.max() for s in self.inside]
                      + [p.median_ns for p in self.published])
        self.scale, self.unit = style.time_scale(largest)
        self.limits = (0, largest * 1.06 / self.scale)
        self.labels = self._labels(width_px)
        self.head_px = 8 + labels.place(width_px, self.labels, self.limits,
                                        self.panel_px)
        self.height_px = self.head_px + _PANEL_PX + FOOT_PX

    def _labels(self, width_px):
        made = [labels.Label(
            g.summary.median_ns / self.scale,
            f"{self.study.label(g.scenario)} "
            + units.duration(g.summary.median_ns),
            colour=style.colour_of(self.study.scenarios, g.scenario),
            bold=True)
            for g in self.groups]
        for figure in self.published:
            short = f"2011 {figure.scenario}: {figure.median_ns / 1e6:g} ms"
            text = (f"2011, another machine, 16 nodes, {figure.words}: "
                    f"{figure.min_ns / 1e6:g} min., "
                    f"{figure.median_ns / 1e6:g} ms median")
            made.append(labels.Label(
                figure.median_ns / self.scale,
                text if width_px > style.NARROW else short, style.MUTED))
        return made

    def draw(self, figure, top):
        axes = style.panel(figure, LEFT_PX, top + self.head_px,
                           self.panel_px, _PANEL_PX)
        style.only_ticks(axes, "left", "bottom")
        axes.set_xlim(self.limits)
        bins = np.linspace(*self.limits, int(self.panel_px / _BIN_PX))
        for group, inside in zip(self.groups, self.inside):
            counts, _ = np.histogram(inside / self.scale, bins)
            colour = style.colour_of(self.study.scenarios, group.scenario)
            # One behind another shows through.
            axes.stairs(100 * counts / group.count, bins, fill=True,
                        color=colour, alpha=0.35, linewidth=0)
            axes.stairs(np.where(counts, 100 * counts / group.count, np.nan),
                        bins, color=colour, linewidth=0.9)
            points.rug(axes, inside / self.scale, -0.14, -0.04, color=colour)
        axes.set_ylim(0)
        for mark in self.published:
            for value, line in ((mark.min_ns, ":"), (mark.median_ns, "-")):
                axes.axvline(value / self.scale, color=style.MUTED,
                             linewidth=0.8, linestyle=line)
        axes.tick_params(axis="x", pad=12)
        axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.set_ylabel("trials, %")
        axes.set_xlabel(f"time of a whole run, {self.unit}")
        labels.draw(axes, self.labels, _PANEL_PX)
        if len(self.beyond):
            overflow.strip(figure, LEFT_PX + self.panel_px,
                           top + self.head_px, _PANEL_PX, self.beyond)
