"""Times of many alike things on one axis: a histogram for each series."""

import numpy as np

from trials.characterise import text_format
from trials.drawing import style
from trials.drawing.histogram import FOOT_PX, Axis, Row, Samples

# More series than this are drawn low, and their figures stand beside names.
_MOST_TALL = 4


def _figures(series, tall):
    """Figures for beside the name: all, or fewer where there is less room."""
    samples, lost = series.samples, series.setting.get("lost")
    words = text_format.time_words
    count = f"{len(samples)} samples" + (f", {lost} lost" if lost else "")
    if tall:
        return (f"{count}, from {words(samples.min())} to "
                f"{words(samples.max())}", count)
    middle = f"median {words(np.median(samples))}"
    return text_format.series_figures(series), f"{middle}, {count}", middle


def draw(series, words_of_samples, width_px):
    axis = Axis(*(each.samples for each in series))
    tall = len(series) <= _MOST_TALL
    rows = [Row(Samples(each.name, each.samples, style.SERIES[number % 2],
                        _figures(each, tall)), axis, width_px, tall)
            for number, each in enumerate(series)]
    figure, drawn = style.stacked(width_px, rows, below_px=FOOT_PX)
    for axes in drawn if tall else ():
        axes.set_ylabel(words_of_samples)
    rows[-1].show_axis(drawn[-1], 10 if width_px > style.NARROW else 5)
    return figure
