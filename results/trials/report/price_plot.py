"""What a machine costs, part by part: the dearest is on top."""

from decimal import Decimal

from trials.drawing import style

_ROW_PX, _NAMES_PX, _FIGURES_PX, _PAD_PX = 22, 170, 150, 8


def parts_of(price) -> list:
    """(name, cost of all of them) of a price list as designs have it."""
    return [(f"{part['count']} x {part['part']}" if part["count"] > 1
             else part["part"], float(part["count"] * Decimal(part["price"])))
            for part in price["parts"]]


def words(parts, currency) -> str:
    return "; ".join(f"{name} {cost:.2f} {currency}" for name, cost in parts)


def draw(parts, currency, width_px):
    parts = sorted(parts, key=lambda part: -part[1])
    whole = sum(cost for _, cost in parts)
    beside = width_px > style.NARROW
    names_px = _NAMES_PX if beside else 110
    figures_px = _FIGURES_PX if beside else 110
    bars_px = width_px - names_px - figures_px - _PAD_PX
    figure = style.canvas(width_px, _ROW_PX * len(parts) + 2 * _PAD_PX)
    axes = style.rows(figure, [name for name, _ in parts], names_px, _PAD_PX,
                      bars_px, _ROW_PX)
    style.only_ticks(axes)
    axes.set_xlim(0, parts[0][1] or 1)
    axes.barh(range(len(parts)), [cost for _, cost in parts], 0.66,
              color=style.BLUE, linewidth=0)
    for row, (_, cost) in enumerate(parts):
        axes.text(1 + _PAD_PX / bars_px, row,
                  f"{cost:.2f} {currency}, {100 * cost / whole:.0f} %",
                  transform=axes.get_yaxis_transform(), va="center_baseline",
                  fontsize=style.SMALL_PX)
    return figure
