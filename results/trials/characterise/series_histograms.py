"""Times of many alike things on one axis: a histogram for each series."""

import numpy as np

from trials.characterise import text_format
from trials.drawing import style
from trials.drawing.histogram import Axis, Row, Samples, draw_rows

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
    return draw_rows([
        Row(Samples(each.name, each.samples, style.SERIES[number % 2],
                    _figures(each, tall)), axis, width_px, tall)
        for number, each in enumerate(series)], width_px,
        words_of_samples if tall else "")
