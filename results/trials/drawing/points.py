"""Samples as points and ticks: each is drawn, and all of them are one path.

Thousands of samples as elements of their own would make a page slow and large.
A dot is a line without length and with round ends.
"""

import numpy as np
from matplotlib.patches import PathPatch
from matplotlib.path import Path

# Long enough for every renderer to draw its ends; rounds to nothing in SVG.
_DOT_PX = 0.004


def _segments(begins, ends):
    vertices = np.empty((2 * len(begins), 2))
    vertices[0::2], vertices[1::2] = begins, ends
    codes = np.tile([Path.MOVETO, Path.LINETO], len(begins))
    return Path(vertices, codes)


def rug(axes, values, bottom, top, **settings):
    """A tick for each value, from bottom to top in parts of the height."""
    if not len(values):
        return
    begins = np.column_stack([values, np.full(len(values), bottom)])
    ends = np.column_stack([values, np.full(len(values), top)])
    settings = {"linewidth": 0.7, "alpha": 0.55, "capstyle": "butt",
                "clip_on": False, **settings}
    axes.add_patch(PathPatch(_segments(begins, ends), fill=False,
                             transform=axes.get_xaxis_transform(), **settings))


def dots(axes, x, y, size_px, **settings):
    """A dot for each point.  The limits of the axes must have been set."""
    if not len(x):
        return
    places = axes.transData.transform(np.column_stack([x, y]))
    begins = axes.transAxes.inverted().transform(places)
    ends = axes.transAxes.inverted().transform(places + [_DOT_PX, 0])
    axes.add_patch(PathPatch(
        _segments(begins, ends), fill=False, transform=axes.transAxes,
        linewidth=size_px, capstyle="round", clip_on=False, **settings))
