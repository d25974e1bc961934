"""A sweep: minimum and median of each configuration, and how much longer each
takes than the reference, which also gives the order.

Bars begin at 0 and show what matters on the whole; the second panel shows
differences of per cents, which bars can't, with the interval of each.  Its axis
ends where one that is far slower would press all others together.
"""

from statistics import median

from matplotlib.ticker import FuncFormatter

from trials.base import units
from trials.drawing import overflow, style
from trials.report.study import CONTROL, REFERENCE
from trials.statistics.comparison import NOT_SHOWN, TOO_FEW
from trials.statistics.spread import NARROWER, WIDER

_ROW_PX, _TITLE_PX, _FOOT_PX, _KEY_PX = 17, 22, 40, 18
# The axis of ratios reaches this many times as far from 1 as the middle one of
# the intervals' ends, and no less than to the least.
_REACH, _LEAST_REACH = 4, 0.02
_VERDICTS = {"slower": ("▲", style.VERMILION), "faster": ("▼", style.BLUE),
             NOT_SHOWN: ("~", style.MUTED), TOO_FEW: ("?", style.MUTED)}
_SPREADS = {WIDER: ("↔", style.VERMILION), NARROWER: ("→←", style.BLUE)}


class Layout:
    """The places of the columns.  On a narrow page the name of a configuration
    stands above its bar, and no column of figures is beside."""

    def __init__(self, width_px):
        self.beside = width_px > style.NARROW
        self.names_px = 210 if self.beside else 8
        self.figures_px = 128 if self.beside else 0
        self.ratio_px = 226 if self.beside else 136
        self.gap_px = 26 if self.beside else 18
        self.bars_px = (width_px - self.names_px - self.figures_px
                        - self.ratio_px - self.gap_px - 12)
        self.row_px = _ROW_PX if self.beside else 2 * _ROW_PX - 4

    def height_px(self, rows):
        return _TITLE_PX + rows * self.row_px + _FOOT_PX


def ordered(study, scenario):
    """The greatest ratio first, as it is read from above: that of medians,
    where no block has both."""
    groups = [g for g in study.of(scenario) if g.count]
    return sorted(groups, key=lambda g: -_place(g))


def _place(group):
    if group.comparison is None:
        return 1.0
    main = group.comparison.main
    return main.ratio or group.comparison.two_sample.ratio


def draw(study, width_px):
    layout = Layout(width_px)
    parts = [(scenario, ordered(study, scenario))
             for scenario in study.scenarios]
    parts = [(scenario, groups) for scenario, groups in parts if groups]
    heights = [layout.height_px(len(groups)) for _, groups in parts]
    figure = style.canvas(width_px, sum(heights) + _KEY_PX + 4)
    top = _KEY_PX + 4
    for (scenario, groups), height in zip(parts, heights):
        style.title(figure, 8, top, study.label(scenario),
                    style.colour_of(study.scenarios, scenario))
        _draw_bars(figure, layout, top + _TITLE_PX, groups)
        _draw_ratios(figure, layout, top + _TITLE_PX, groups)
        top += height
    _key(figure, layout)
    return figure


def _key(figure, layout):
    """Draw a key to the parts of a bar: those of the first."""
    handles, words = figure.axes[0].get_legend_handles_labels()
    parts = dict(zip(words[:3], handles[:3]))
    figure.legend(
        parts.values(), parts.keys(), ncols=3, loc="upper left", frameon=False,
        bbox_to_anchor=(layout.names_px / (72 * figure.get_figwidth()), 1),
        borderpad=0, borderaxespad=0.2, columnspacing=1.2, handlelength=1.4,
        fontsize=style.SMALL_PX)


def colour(group):
    """The arms that are no candidates stand out."""
    return {REFERENCE: style.INK, CONTROL: style.MUTED}.get(
        group.role, style.BLUE)


def _draw_bars(figure, layout, top, groups):
    axes = style.rows(
        figure, [g.name for g in groups], layout.names_px, top, layout.bars_px,
        layout.row_px, 0 if layout.beside else 0.22,
        [g.name for g in groups if g.role in (REFERENCE, CONTROL)])
    largest = max(max(_median_ends(g)) for g in groups)
    scale, unit = style.time_scale(largest)
    axes.set_xlim(0, largest * 1.03 / scale)
    shift = 0 if layout.beside else 0.2
    height = 0.66 if layout.beside else 0.36
    for row, group in enumerate(groups):
        summary = group.summary
        axes.barh(row + shift, summary.median_ns / scale, height,
                  color=colour(group), alpha=0.35, linewidth=0, label="median")
        axes.barh(row + shift, summary.min_ns / scale, height * 0.56,
                  color=colour(group), linewidth=0, label="minimum")
        low, high = _median_ends(group)
        if low < high:
            axes.errorbar(
                summary.median_ns / scale, row + shift,
                xerr=[[(summary.median_ns - low) / scale],
                      [(high - summary.median_ns) / scale]],
                color=style.INK, capsize=2.5, linewidth=0.9, capthick=0.9,
                label="95 % interval of the median")
        if layout.beside:
            _figures(axes, row, group)
    style.ticks(axes.xaxis, 6 if layout.beside else 4)
    axes.set_xlabel(f"time of a whole run, {unit}")
    if layout.beside:
        axes.text(1 + 10 / layout.bars_px, -0.62, "median [95 %], ms",
                  transform=axes.get_yaxis_transform(), va="bottom",
                  fontsize=style.SMALL_PX, color=style.MUTED)


def _median_ends(group):
    """The ends of the median's interval; without one, the median twice."""
    interval = group.summary.median_interval_ns
    return ((interval.low, interval.high) if interval
            else (group.summary.median_ns,) * 2)


def _figures(axes, row, group):
    summary = group.summary
    axes.text(1 + 10 / axes.get_window_extent().width, row,
              units.with_interval(summary.median_ns,
                                  summary.median_interval_ns,
                                  units.milliseconds),
              transform=axes.get_yaxis_transform(), va="center_baseline",
              fontsize=style.SMALL_PX)


def _draw_ratios(figure, layout, top, groups):
    """The ratio with its interval; the sign is the verdict."""
    compared = [g.comparison.main for g in groups
                if g.comparison and g.comparison.main.ratio is not None]
    if not compared:
        return
    left = (layout.names_px + layout.bars_px + layout.figures_px
            + layout.gap_px)
    axes = style.panel(figure, left, top, layout.ratio_px - 32,
                       layout.row_px * len(groups))
    style.only_ticks(axes, "bottom")
    axes.set_xlim(overflow.limits(_shown_ends(compared), 0.06))
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.axvline(1, color=style.MUTED, linewidth=0.8)
    for row, group in enumerate(groups):
        if group.role == REFERENCE:
            axes.plot(1, row, "d", color=style.INK, markersize=4.5)
        if group.comparison:
            _ratio(axes, row, group)
    style.ticks(axes.xaxis, 4 if layout.beside else 3)
    axes.xaxis.set_major_formatter(FuncFormatter(
        lambda ratio, _: f"{ratio:.4g}"))
    axes.set_xlabel("time / reference's")


def _shown_ends(compared):
    """The ends that the axis has to show: all but what is far beyond the
    others."""
    ends = [end for found in compared for end in _ends(found)]
    reach = max(_REACH * median(abs(end - 1) for end in ends), _LEAST_REACH)
    return [1.0, *(min(max(end, 1 - reach), 1 + reach) for end in ends)]


def _ends(analysis):
    """The ends of the interval; without one, the ratio twice."""
    interval = analysis.ratio_interval
    return (interval.low, interval.high) if interval else (analysis.ratio,) * 2


def _ratio(axes, row, group):
    sign, tint = _VERDICTS[group.verdict]
    found = group.comparison.main
    if found.ratio is not None:
        axes.plot(_ends(found), [row, row], color=tint, linewidth=1.4,
                  solid_capstyle="butt")
        low, high = axes.get_xlim()
        if low <= found.ratio <= high:
            axes.plot(found.ratio, row, "o", color=tint, markersize=3.6)
        else:
            slow = found.ratio > high
            axes.text(high if slow else low, row,
                      f"{found.ratio:.3g} →" if slow
                      else f"← {found.ratio:.3g}", color=tint,
                      ha="right" if slow else "left", va="center_baseline",
                      fontsize=style.SMALL_PX, backgroundcolor=style.PAPER)
    for left_px, (sign, tint) in ((5, (sign, tint)), (
            16, _SPREADS.get(group.spread_verdict, ("", tint)))):
        axes.text(1 + left_px / axes.get_window_extent().width, row, sign,
                  color=tint, transform=axes.get_yaxis_transform(),
                  va="center_baseline", fontsize=style.SMALL_PX)
