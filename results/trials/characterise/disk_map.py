"""A disk from its first byte to its last: rates by place, and where files lie.

On a rotating disk the first bytes are at the rim, where a turn passes the most
of them.
"""

import os

import numpy as np
from matplotlib.ticker import MaxNLocator

from trials.base import units
from trials.characterise import text_format
from trials.drawing import style

_LEFT_PX, _RIGHT_PX, _PANEL_PX, _FOOT_PX = 50, 14, 200, 44
_TITLE_PX, _BAR_PX, _LENS_PX, _ZOOM_PX, _ENDS_PX = 20, 12, 16, 12, 18
# A file's span is drawn again, larger, if it is below this part of the device.
_SMALL_PART = 0.25
_LEAST_PX = 1.5


# --- rates --------------------------------------------------------------------

def draw_rates(profile, rate_unit, width_px):
    figure = style.canvas(width_px, 12 + _PANEL_PX + _FOOT_PX)
    axes = style.panel(figure, _LEFT_PX, 12,
                       width_px - _LEFT_PX - _RIGHT_PX, _PANEL_PX)
    unit, name = rate_unit
    places = profile.positions
    _place_axis(axes, *_ends(profile))
    high = max(place.spread.high for place in places) / unit
    axes.set_ylim(0, high * 1.12 or 1)
    axes.grid(axis="y", color=style.FAINT, linewidth=0.5)
    axes.set_axisbelow(True)
    for place in places:
        _rate(axes, place, unit)
    middles = [(p.offset_bytes + p.length_bytes / 2) for p in places]
    rates = [place.spread.middle / unit for place in places]
    if not profile.by_extents:
        axes.plot(middles, rates, "-", color=style.BLUE, linewidth=0.9)
    axes.plot(middles, rates, "o", color=style.BLUE, markersize=3.8,
              clip_on=False)
    _extremes(axes, middles, rates, name)
    axes.set_ylabel(f"rate, {name}")
    return figure


def _ends(profile):
    """The whole device; of a file's extents, what they take."""
    first, last = profile.position_ends
    if not profile.by_extents:
        return first, last
    margin = max((last - first) * 0.04, 1)
    return max(0, first - margin), last + margin


def _place_axis(axes, low, high):
    unit, name = text_format.size_scale(high)
    # Round figures of the unit, not of bytes.
    steps = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(
        low / unit, high / unit)
    decimals = max(0, int(np.ceil(-np.log10((high - low) / unit / 6))))
    axes.set_xticks([step * unit for step in steps],
                    [f"{step:.{decimals}f}" for step in steps])
    axes.set_xlim(low, high)
    axes.set_xlabel(f"place on the disk, {name}")


def _rate(axes, place, unit):
    spread = place.spread
    middle = place.offset_bytes + place.length_bytes / 2
    axes.plot([middle] * 2, [spread.low / unit, spread.high / unit],
              color=style.BLUE, linewidth=0.8, alpha=0.7, clip_on=False)
    axes.plot([place.offset_bytes, place.offset_bytes + place.length_bytes],
              [spread.middle / unit] * 2, color=style.BLUE, linewidth=2,
              solid_capstyle="butt", alpha=0.6)


def _extremes(axes, middles, rates, name):
    """The fastest place and the slowest, in figures."""
    low, high = axes.get_xlim()
    for index, words, up in ((int(np.argmax(rates)), "fastest", 1),
                             (int(np.argmin(rates)), "slowest", -1)):
        right = middles[index] > (low + high) / 2
        axes.annotate(
            f"{words} {units.digits(rates[index])} {name}",
            (middles[index], rates[index]), xytext=(-7 if right else 7,
                                                    9 * up),
            textcoords="offset points", ha="right" if right else "left",
            va="bottom" if up > 0 else "top", fontsize=style.SMALL_PX,
            fontweight="bold", zorder=5,
            bbox={"facecolor": style.PAPER, "edgecolor": "none",
                  "pad": 0.5, "alpha": 0.8})


# --- files --------------------------------------------------------------------

def draw_files(files, width_px):
    heights = [_height(file) for file in files]
    figure = style.canvas(width_px, sum(heights) + 4)
    top = 4
    for file, height in zip(files, heights):
        _draw_file(figure, file, top, width_px)
        top += height
    return figure


def _lens(file):
    first, end = text_format.span(file)
    return end - first < _SMALL_PART * _whole(file)


def _whole(file):
    """The bytes that the bar stands for: the device, else all up to the file's
    end."""
    return file.device_bytes or text_format.span(file)[1]


def _height(file):
    height = 2 * _TITLE_PX + _BAR_PX + _ENDS_PX + 14
    return height + (_LENS_PX + _ZOOM_PX if _lens(file) else 0)


def _draw_file(figure, file, top, width_px):
    panel_px = width_px - 2 * _RIGHT_PX
    name = style.shortened(figure, os.path.basename(file.path), panel_px,
                           fontweight="bold", fontsize=style.TEXT_PX + 1)
    style.write(figure, _RIGHT_PX, top, name, fontweight="bold",
                fontsize=style.TEXT_PX + 1)
    words = text_format.file_words(file)
    style.write(figure, _RIGHT_PX, top + _TITLE_PX - 2, style.fitting(
        figure, (words, words.partition(",")[0]), panel_px,
        fontsize=style.SMALL_PX), color=style.MUTED, fontsize=style.SMALL_PX)
    top += 2 * _TITLE_PX
    whole = _whole(file)
    _bar(figure, file, top, panel_px, _BAR_PX, (0, whole))
    top += _BAR_PX
    ends = (0, whole)
    if _lens(file):
        ends = text_format.span(file)
        _lines(figure, top, panel_px, [end / whole for end in ends])
        top += _LENS_PX
        _bar(figure, file, top, panel_px, _ZOOM_PX, ends)
        top += _ZOOM_PX
    for at, end, side in ((_RIGHT_PX, ends[0], "left"),
                          (width_px - _RIGHT_PX, ends[1], "right")):
        style.write(figure, at, top + 4, text_format.precise(end, ends),
                    ha=side, fontsize=style.SMALL_PX, color=style.MUTED)


def _bar(figure, file, top, panel_px, height_px, ends):
    axes = style.panel(figure, _RIGHT_PX, top, panel_px, height_px)
    style.only_ticks(axes, "left", "right", "bottom", "top")
    axes.tick_params(left=False, labelleft=False, bottom=False,
                     labelbottom=False)
    axes.set_facecolor("#efefef")
    axes.set_xlim(0, panel_px)
    axes.set_ylim(0, 1)
    if not file.device_bytes and ends[0] == 0:
        axes.spines["right"].set_linestyle((0, (2, 2)))
    runs = covered(file.placed, ends, panel_px)
    axes.broken_barh([(left, right - left) for left, right in runs], (0, 1),
                     facecolor=style.BLUE, linewidth=0)


def covered(pieces, ends, panel_px) -> list:
    """(left, right) in pixels of what the pieces take; those that could not
    be told apart are one, so that a file in a million is drawn as one too."""
    low, high = ends
    scale = panel_px / max(high - low, 1)
    runs = []
    for piece in sorted(pieces, key=lambda p: p["physical_bytes"]):
        left = (piece["physical_bytes"] - low) * scale
        right = max(left + piece["length_bytes"] * scale, left + _LEAST_PX)
        if runs and left - runs[-1][1] < 0.5:
            runs[-1][1] = max(runs[-1][1], right)
        else:
            runs.append([left, right])
    return [(min(left, panel_px - _LEAST_PX), min(right, panel_px))
            for left, right in runs]


def _lines(figure, top, panel_px, parts):
    """Draw lines from the span in the upper bar to the ends of the lower."""
    axes = style.panel(figure, _RIGHT_PX, top, panel_px, _LENS_PX)
    style.only_ticks(axes)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.patch.set_visible(False)
    axes.fill([parts[0], parts[1], 1, 0], [1, 1, 0, 0], color=style.FAINT,
              alpha=0.5, linewidth=0)
    for part, end in zip(parts, (0, 1)):
        axes.plot([part, end], [1, 0], color=style.MUTED, linewidth=0.6,
                  clip_on=False)
