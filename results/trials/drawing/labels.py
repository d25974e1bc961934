"""Labels that don't cover each other.

A picture says what a line is beside the line, not in a legend; where lines are
close their labels go to different rows.
"""

from dataclasses import dataclass

from trials.base import units
from trials.drawing import style

ROW_PX = 14
GAP_PX = 8


@dataclass
class Label:
    """A text for a place on the time axis."""

    value: float
    text: str
    # In its place where there is no room for all texts; none: the same.
    short: str = ""
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


def place(figure, labels, limits, width_px) -> int:
    """Gives each label its row and its place; returns the number of rows.

    Rows count from the picture upwards.  A label stands right of its line, or
    left of it, so that it covers no other and neither lies in the way of the
    other's line; in as few rows as that takes.
    """
    low, high = limits
    ordered = sorted(labels, key=lambda label: -label.value)
    for label in ordered:
        label.at_px = (label.value - low) / (high - low) * width_px
    rows = _arrange(figure, ordered, width_px)
    if rows == 0:
        for label in ordered:
            label.text = label.short or label.text
        rows = _arrange(figure, ordered, width_px)
    if rows == 0:
        # Lines will pass behind texts, but each text has a row for itself.
        rows = len(ordered)
        for row, label in enumerate(ordered):
            label.row = row
            label.left_px = _sides(label, width_px)[0]
    return rows


def _arrange(figure, ordered, width_px) -> int:
    """The number of rows that it takes; 0 when it can't be done."""
    for label in ordered:
        label.width_px = style.text_width(figure, label.text, **label.settings)
    return next((rows for rows in range(1, len(ordered) + 1)
                 if _assign(ordered, 0, rows, width_px)), 0)


def _sides(label, width_px):
    room = width_px - label.width_px
    sides = [left for left in (label.at_px + 3,
                               label.at_px - 3 - label.width_px)
             if 0 <= left <= room]
    return sides or [min(max(0, room), label.at_px + 3)]


def _assign(ordered, index, rows, width_px) -> bool:
    """Finds places for the labels from this one on; there are few."""
    if index == len(ordered):
        return True
    label = ordered[index]
    for label.row in range(rows):
        for label.left_px in _sides(label, width_px):
            if not any(_collide(label, other) for other in ordered[:index]) \
                    and _assign(ordered, index + 1, rows, width_px):
                return True
    return False


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
