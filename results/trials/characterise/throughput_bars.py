"""Rates as bars: of what arrives at each other node, and of codecs."""

from trials.base import units
from trials.characterise import text_format
from trials.drawing import style

_ROW_PX, _FOOT_PX, _RIGHT_PX = 34, 46, 14


def draw(series, rate_unit, width_px):
    unit, name = rate_unit
    figure = style.canvas(width_px, 8 + _ROW_PX * len(series) + _FOOT_PX)
    names = [each.name for each in series]
    axes = style.rows(figure, names, _RIGHT_PX, 8, width_px - 2 * _RIGHT_PX,
                      _ROW_PX, 0.22, names)
    highest = max(s.samples.max() for s in series) / unit
    axes.set_xlim(0, highest * 1.03 or 1)
    for row, each in enumerate(series):
        spread = each.spread
        axes.barh(row + 0.2, spread.middle / unit, 0.4, linewidth=0,
                  color=style.BLUE, alpha=0.8)
        if spread.count > 1:
            axes.plot([spread.low / unit, spread.high / unit],
                      [row + 0.2] * 2, color=style.INK, linewidth=1)
        text = f"{units.digits(spread.middle / unit)} {name}"
        more = text_format.part_words(each)
        axes.text(1, row - 0.22, f"{text}, {more}" if more else text,
                  transform=axes.get_yaxis_transform(), ha="right",
                  va="center_baseline", fontsize=style.SMALL_PX)
    style.ticks(axes.xaxis, 8 if width_px > style.NARROW else 5)
    axes.set_xlabel(f"rate, {name}")
    return figure
