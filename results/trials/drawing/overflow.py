"""Where an axis ends when some samples are far beyond the others.

An axis that reaches to the worst sample would show all others as one line; one
that ends before it would hide it.  So the axis ends where the bulk does, and
what lies beyond is drawn, each sample, in a strip of its own, with its figures.
"""

import numpy as np

from trials.base import units
from trials.drawing import points, style

STRIP_PX = 74
# A gap of many times the bulk's spread, far beyond what any axis needs to be
# readable.
_FENCE_SPREADS = 5


def fence(samples) -> float:
    """The value beyond which samples go to the strip; inf if none does."""
    samples = np.sort(np.asarray(samples, dtype=float))
    if len(samples) < 5:
        return np.inf
    low, middle, high = np.percentile(samples, [2, 50, 90])
    limit = high + _FENCE_SPREADS * max(high - low, 0.01 * middle)
    beyond = samples > limit
    # Many far samples are not outliers but a second peak: show it as one.
    if not beyond.any() or beyond.mean() > 0.08:
        return np.inf
    return limit


def split(samples):
    """(those on the axis, those beyond it, sorted)."""
    samples = np.asarray(samples, dtype=float)
    limit = fence(samples)
    return samples[samples <= limit], np.sort(samples[samples > limit])


def limits(samples, margin=0.04):
    """Ends of an axis for these samples, with a margin on both sides."""
    low, high = float(np.min(samples)), float(np.max(samples))
    pad = max((high - low) * margin, abs(high) * 0.002, 1e-9)
    return max(0.0, low - pad), high + pad


def words(beyond_ns) -> str:
    """3 up to 412 ms"""
    beyond = f"{len(beyond_ns)} beyond"
    largest = units.duration(beyond_ns[-1])
    return f"{beyond}\nto {largest}" if len(beyond_ns) > 1 else (
        f"{beyond}\n{largest}")


def strip(figure, left, top, height, beyond_ns, colour=style.INK,
          note=""):
    """Right of a panel's end: a tick for each sample beyond, in order but not
    to scale, as the break in the axis says.  The note follows the figures."""
    axes = style.panel(figure, left, top, STRIP_PX, height)
    style.only_ticks(axes)
    axes.set_xlim(0, STRIP_PX)
    axes.set_ylim(0, 1)
    axes.patch.set_visible(False)
    for at in (4, 8):
        axes.plot([at - 2, at + 2], [-5 / height, 5 / height],
                  color=style.MUTED, linewidth=0.8, clip_on=False)
    axes.plot([12, STRIP_PX - 2], [0, 0], color=style.MUTED, linewidth=0.6,
              clip_on=False)
    places = 14 + (STRIP_PX - 18) * (np.arange(len(beyond_ns)) + 0.5) / len(
        beyond_ns)
    points.rug(axes, places, -10 / height - 0.04, -0.04, color=colour,
               alpha=0.9)
    axes.text(12, 4 / height, words(beyond_ns) + note, fontsize=style.SMALL_PX,
              va="bottom", linespacing=1.3)
