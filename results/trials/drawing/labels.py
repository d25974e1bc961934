"""Labels that don't cover each other.

A picture says what a line is beside the line, not in a legend; where lines are
close their labels go to different rows.
"""

from dataclasses import dataclass
from itertools import product

from trials.base import units
from trials.drawing import style

ROW_PX = 14
GAP_PX = 8


@dataclass
class Label:
    """A text for a place on the time axis."""

    value: float
    text: str
    colour: str = style.INK
    bold: bool = False
    row: int = 0
    # Pixels from the panel's left side: of the line, and of the text.
    at_px: float = 0.0
    left_px: float = 0.0
    width_px: float = 0.0

    @property
    def right_px(self):
        return self.left_px + self.width_px

    @property
    def settings(self):
        return {"fontsize": style.SMALL_PX, "color": self.colour,
                "fontweight": "bold" if self.bold else "normal"}


def place(page_px, labels, limits, width_px) -> float:
    """Gives each label its row and its place; returns the rows' height.

    Rows count from the picture upwards.  From the right to the left, each
    label takes the lowest row where it stands right of its line, or else left
    of it, so that it covers no other and neither lies in the way of the other's
    line.  Where there is no such row, lines pass behind texts, but the label
    has a row for itself.
    """
    figure, (low, high) = style.canvas(page_px, 10), limits
    ordered = sorted(labels, key=lambda label: -label.value)
    for index, label in enumerate(ordered):
        label.at_px = (label.value - low) / (high - low) * width_px
        label.width_px = style.text_width(figure, label.text, **label.settings)
        for label.left_px, label.row in product(
                _sides(label, width_px), range(index + 1)):
            if not any(_collide(label, other) for other in ordered[:index]):
                break
        else:
            label.row = index
    return ROW_PX * (1 + max((label.row for label in labels), default=-1))


def _sides(label, width_px):
    room = width_px - label.width_px
    sides = [left for left in (label.at_px + 3,
                               label.at_px - 3 - label.width_px)
             if 0 <= left <= room]
    return sides or [min(max(0, room), label.at_px + 3)]


def _collide(a, b) -> bool:
    if a.row == b.row:
        return (min(a.left_px, a.at_px) < max(b.right_px, b.at_px) + GAP_PX
                and min(b.left_px, b.at_px) < max(a.right_px, a.at_px)
                + GAP_PX)
    below, above = (a, b) if a.row < b.row else (b, a)
    return below.left_px - 2 < above.at_px < below.right_px + 2


def draw(axes, labels, height_px):
    """Leader lines and texts above a panel of this height."""
    for label in labels:
        top = 1 + (4 + ROW_PX * label.row) / height_px
        axes.plot([label.value] * 2, [1, top + 8 / height_px],
                  transform=axes.get_xaxis_transform(), clip_on=False,
                  color=label.colour, linewidth=0.8)
        width = axes.get_window_extent().width
        axes.text(label.left_px / width, top, units.printable(label.text),
                  transform=axes.transAxes, va="bottom", ha="left", zorder=5,
                  bbox={"facecolor": style.PAPER, "edgecolor": "none",
                        "pad": 0.5}, **label.settings)
