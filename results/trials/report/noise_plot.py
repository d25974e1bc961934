"""Times against noise: each trial is a dot over the noise before it."""

from statistics import median

import numpy as np

from trials.base import units
from trials.drawing import overflow, points, style
from trials.report.noise import dependence_words

_LEFT_PX, _RIGHT_PX, _TITLE_PX, _WORDS_PX = 54, 12, 20, 20
_PANEL_PX, _FOOT_PX = 150, 40
# The axis is linear below this many per cent, so that it can begin at 0.
_LEAST_DECADE = 0.1


class Panel:
    """The times of one scenario over the noise of their blocks."""

    height_px = _TITLE_PX + _WORDS_PX + _PANEL_PX + _FOOT_PX

    def __init__(self, study, scenario, width_px):
        self.study, self.scenario, self.width_px = study, scenario, width_px
        self.reference = study.reference(scenario)
        self.groups = [g for g in study.of(scenario) if g.noise_trials]
        self.tint = style.colour_of(study.scenarios, scenario)
        times = np.concatenate([g.noise_samples_ns for g in self.groups])
        inside, self.beyond = overflow.split(times)
        self.scale, self.unit = style.time_scale(inside.max())
        self.limits = [end / self.scale for end in overflow.limits(inside)]

    def draw(self, figure, top):
        style.title(figure, _LEFT_PX, top, self.study.label(self.scenario),
                    self.tint)
        said = []
        if self.reference and self.reference.noise_trials:
            said = ["reference: " + dependence_words(self.reference)]
        if len(self.beyond):
            said.append(f"{len(self.beyond)} beyond the axis, up to "
                        + units.duration(self.beyond[-1]))
        small = {"fontsize": style.SMALL_PX}
        style.write(figure, _LEFT_PX, top + 18, style.fitting(
            figure, ["; ".join(said)],
            self.width_px - _LEFT_PX - _RIGHT_PX, **small),
            color=style.MUTED, **small)
        axes = style.panel(
            figure, _LEFT_PX, top + _TITLE_PX + _WORDS_PX,
            self.width_px - _LEFT_PX - _RIGHT_PX, _PANEL_PX)
        label = self._show_noise_axis(axes)
        axes.set_ylim(self.limits)
        self._limits(axes)
        self._samples(axes)
        style.ticks(axes.yaxis, 5)
        axes.set_ylabel(f"time, {self.unit}")
        axes.set_xlabel(label)

    def _show_noise_axis(self, axes):
        """Draw the axis from 0 on; or by decades, where one would press all
        others into a corner.  Returns what to call it."""
        known = self.study.noise_percents
        lowest, highest = min(known), max(known)
        wide = self.width_px > style.NARROW
        label = "noise before the trial" + (
            ", % of the worst CPU's time" if wide else ", %")
        if highest <= 10 * median(known):
            axes.set_xlim(0, highest * 1.04)
            style.ticks(axes.xaxis, 8 if wide else 4)
            return label
        limits = lowest / 1.2, highest * 1.2
        if lowest >= _LEAST_DECADE:
            axes.set_xscale("log")
        else:
            axes.set_xscale("symlog", linthresh=_LEAST_DECADE)
            limits = 0, highest * 1.2
        axes.set_xlim(limits)
        axes.set_xticks([tick for tick in (0, _LEAST_DECADE, 1, 2, 5, 10, 20,
                                           50, 100)
                         if limits[0] <= tick <= limits[1]])
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()
        return label

    def _limits(self, axes):
        for limit in {look.noise["limit_percent"] for look
                      in self.study.looks} - {None}:
            axes.axvline(limit, color=style.PURPLE, linewidth=1,
                         linestyle=(0, (4, 2)))

    def _samples(self, axes):
        for group in sorted(self.groups, key=lambda g: g is self.reference):
            chosen = group is self.reference
            times = group.noise_samples_ns / self.scale
            inside = times <= self.limits[1]
            points.dots(axes, np.array(group.noise_percents)[inside],
                        times[inside], 5 if chosen else 4,
                        color=self.tint if chosen else "#6e6e6e",
                        alpha=0.65 if chosen else 0.5)


def shown(study) -> list:
    """The scenarios in which times and noise are known, and differ."""
    if len(set(study.noise_percents)) < 2:
        return []
    return [scenario for scenario in study.scenarios
            if any(g.noise_trials for g in study.of(scenario))]


def draw(study, width_px):
    return style.stacked(width_px, [Panel(study, scenario, width_px)
                                    for scenario in shown(study)])[0]
