"""Samples as points and ticks: each is drawn, and all of them are one path.

Thousands of samples as elements of their own would make a page slow and large.
A dot is a line without length and with round ends.
"""

import numpy as np

# Long enough for every renderer to draw its ends; rounds to nothing in SVG.
_DOT_PX = 0.004


def strokes(axes, x, y, **settings):
    """Lines apart from each other; x and y have the ends of each in a row."""
    gaps = np.full((len(x), 1), np.nan)
    x, y = (np.hstack([ends, gaps]).ravel() for ends in (x, y))
    axes.plot(x, y, clip_on=False, **settings)


def rug(axes, values, bottom, top, **settings):
    """A tick for each value, from bottom to top in parts of the height."""
    settings = {"linewidth": 0.7, "alpha": 0.55, "solid_capstyle": "butt",
                **settings}
    strokes(axes, np.column_stack([values, values]),
            np.tile([bottom, top], (len(values), 1)),
            transform=axes.get_xaxis_transform(), **settings)


def dots(axes, x, y, size_px, **settings):
    """A dot for each point.  The limits of the axes must have been set."""
    width = _DOT_PX * np.ptp(axes.get_xlim()) / axes.get_window_extent().width
    strokes(axes, np.column_stack([x, x + width]), np.column_stack([y, y]),
            linewidth=size_px, solid_capstyle="round", **settings)
