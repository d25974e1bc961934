"""A picture of a report: what it shows, and how it is drawn.

A picture is drawn anew for each width, wide for a page and narrow for a phone,
rather than scaled: text keeps its size.
"""

import io
from dataclasses import dataclass
from typing import Callable

from trials.drawing import style, svg

# Dots per inch of PNG: what journals ask of line art at this size.
_PNG_DPI = 300


@dataclass(frozen=True)
class Picture:
    name: str
    title: str
    # The caption says what is drawn.  The description repeats its figures in
    # words: a screen reader reads it aloud in place of the picture.
    caption: str
    description: str
    draw: Callable

    def svg(self, width_px: int = style.WIDE) -> str:
        """SVG text whose ids no other picture and width has."""
        with style.applied():
            return svg.text(self.draw(width_px), f"{self.name}-{width_px}",
                            self.title, self.description)

    def data(self, kind: str) -> bytes:
        """A file of this kind, png or svg."""
        if kind == "svg":
            return svg.alone(self.svg(style.NARROW)).encode()
        file = io.BytesIO()
        with style.applied():
            self.draw(style.WIDE).savefig(file, format="png", dpi=_PNG_DPI,
                                          metadata={"Software": None})
        return file.getvalue()
