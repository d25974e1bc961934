"""A run-sequence plot: each time in the order in which it was taken.

The plot shows what an average hides: a machine that became slower, a load that
began on the same host, trials that failed.  The reference is coloured, the
others are grey; lines are running medians.
"""

import numpy as np

from trials.base import units
from trials.drawing import overflow, points, style
from trials.report.study import CONTROL
from trials.statistics.racing import is_sample

_LEFT_PX, _RIGHT_PX, _TITLE_PX, _PANEL_PX, _FOOT_PX = 54, 12, 20, 150, 40
_STRIP_PX = 22
# Trials that a running median covers, at most; fewer than the least have none.
_WINDOW = 15
_LEAST_COUNT = 12
# Boundaries of blocks that can still be told apart.
_MOST_BLOCKS = 60


def running_median(values, window=_WINDOW):
    """The median of each value and its neighbours on both sides; at the ends,
    of the neighbours that exist."""
    reach = min(window, max(1, len(values) // 4)) // 2
    return np.array([np.median(values[max(0, at - reach):at + reach + 1])
                     for at in range(len(values))])


class RunSequence:
    """The panel of one scenario."""

    def __init__(self, study, scenario, width_px):
        self.study, self.scenario, self.width_px = study, scenario, width_px
        self.reference = study.reference(scenario)
        self.groups = [g for g in study.of(scenario) if g.count]
        self.tint = style.colour_of(study.scenarios, scenario)
        inside = np.concatenate([overflow.split(g.samples_ns)[0]
                                 for g in self.groups])
        inside = inside[inside <= self._shown_ns(inside)]
        self.scale, self.unit = style.time_scale(inside.max())
        self.limits = [end / self.scale for end in overflow.limits(inside)]
        self.beyond = [
            (trial["trial"], trial["whole_ns"]) for g in self.groups
            for trial in g.sample_trials
            if trial["whole_ns"] > self.limits[1] * self.scale]
        self.failed = [t["trial"] for g in study.of(scenario)
                       for t in g.trials if not is_sample(t)]
        self.words = self._words()
        self.head_px = _TITLE_PX + 15 * len(self.words) + (
            _STRIP_PX if self.beyond or self.failed else 4) + (
            14 if study.sessions else 0)
        self.height_px = self.head_px + _PANEL_PX + _FOOT_PX

    def _shown_ns(self, inside):
        """The time where the axis ends at the latest: the reference is to be
        seen, not a flat line below configurations that are far slower.  At most
        a fifth of the dots is beyond."""
        if self.reference is None or not self.reference.count:
            return inside.max()
        low, high = np.percentile(self.reference.samples_ns, [0, 90])
        return max(high + 4 * (high - low), np.percentile(inside, 80))

    def _words(self):
        """What the order of the reference's times says, and what the marks
        over the panel are."""
        return ["reference: " + "; ".join(self._order_words())
                ] + self._strip_words()

    def _order_words(self):
        words = []
        flags = self.reference.flags if self.reference else None
        if flags is None or flags.drift is None:
            return ["too few trials to look for drift"]
        if "drift" in flags.words:
            words.append("drifts, "
                         f"{100 * flags.drift.change_ratio:+.1f} % from the "
                         "first trial to the last")
        if "step" in flags.words:
            trial = self.reference.sample_trials[flags.step.index]["trial"]
            words.append(f"jumps at trial {trial}, "
                         f"{100 * flags.step.change_ratio:+.1f} %")
        if "autocorrelated" in flags.words:
            words.append("neighbouring trials resemble each other")
        return words or ["no drift found"]

    def _strip_words(self):
        words = []
        if self.beyond:
            slowest = max(time for _, time in self.beyond)
            words.append(f"| {len(self.beyond)} beyond the axis, up to "
                         + units.duration(slowest))
        if self.failed:
            words.append(f"× {len(self.failed)} failed")
        return words

    def draw(self, figure, top):
        style.title(figure, _LEFT_PX, top, self.study.label(self.scenario),
                    self.tint)
        for number, words in enumerate(self.words):
            style.write(figure, _LEFT_PX, top + 18 + 15 * number, words,
                        color=style.MUTED, fontsize=style.SMALL_PX)
        axes = style.panel(
            figure, _LEFT_PX, top + self.head_px,
            self.width_px - _LEFT_PX - _RIGHT_PX, _PANEL_PX)
        axes.set_xlim(-0.5, max(1, len(self.study.run.trials)) - 0.5)
        axes.set_ylim(self.limits)
        self._boundaries(axes)
        self._samples(axes)
        self._strip(axes)
        self._sessions(axes)
        ticks = 8 if self.width_px > style.NARROW else 4
        style.ticks(axes.xaxis, ticks, integer=True)
        if len(self.study.run.trials) == 1:
            axes.set_xticks([0])
        style.ticks(axes.yaxis, 5)
        axes.set_ylabel(f"time, {self.unit}")
        axes.set_xlabel("trial, in order of time")

    def _boundaries(self, axes):
        starts = [t["trial"] for t in self.study.run.trials
                  if t["position"] == 0 and t["trial"] > 0]
        every = 1 + len(starts) // _MOST_BLOCKS
        if len(self.study.groups) > 1:
            points.rug(axes, np.array(starts[every - 1::every]) - 0.5, 0, 1,
                       color=style.FAINT, alpha=1, linewidth=0.5, zorder=0)

    def _samples(self, axes):
        count = len(self.study.run.trials)
        size = 5 if count < 100 else 3 if count < 1000 else 2
        # The reference covers the others.
        for group in sorted(self.groups, key=lambda g: g is self.reference):
            chosen = group is self.reference
            order = np.array([t["trial"] for t in group.sample_trials])
            times = group.samples_ns / self.scale
            inside = times <= self.limits[1]
            colour = self.tint if chosen else "#6e6e6e"
            points.dots(axes, order[inside], times[inside],
                        size if chosen else size * 0.8, color=colour,
                        alpha=0.65 if chosen else 0.5)
            if group.count >= _LEAST_COUNT:
                axes.plot(order, running_median(times), color=colour,
                          linewidth=1.6 if chosen else 0.6,
                          linestyle="--" if group.role == CONTROL else "-")

    def _strip(self, axes):
        """Draw above the panel what is beyond its end, and what failed."""
        high = 1 + 6 / _PANEL_PX
        points.rug(axes, [trial for trial, _ in self.beyond], high,
                   1 + 13 / _PANEL_PX, color=style.INK, alpha=0.9,
                   linewidth=1)
        place = axes.get_xaxis_transform()
        if self.failed:
            axes.plot(self.failed, [1 + 9.5 / _PANEL_PX] * len(self.failed),
                      "x", color=style.RED, markersize=5, clip_on=False,
                      markeredgewidth=1.1, transform=place)

    def _sessions(self, axes):
        for start in self.study.sessions:
            axes.plot([start - 0.5] * 2, [0, 1 + 28 / _PANEL_PX],
                      color=style.PURPLE, linewidth=1, clip_on=False,
                      linestyle=(0, (4, 2)),
                      transform=axes.get_xaxis_transform())
            late = start > 0.8 * axes.get_xlim()[1]
            axes.annotate("resumed", (start - 0.5, 1 + 18 / _PANEL_PX),
                          xytext=(-4 if late else 4, 0), va="bottom",
                          textcoords="offset points",
                          ha="right" if late else "left",
                          xycoords=axes.get_xaxis_transform(),
                          color=style.PURPLE, fontsize=style.SMALL_PX,
                          annotation_clip=False)


def draw(study, width_px):
    return style.stacked(width_px, [
        RunSequence(study, scenario, width_px) for scenario in study.scenarios
        if any(g.count for g in study.of(scenario))])[0]
