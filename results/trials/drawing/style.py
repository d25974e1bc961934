"""One typographic system for all pictures.

Lengths are in CSS pixels throughout: a figure is laid out at 72 dots per inch,
where matplotlib's point, its pixel and the pixel of the SVG are the same thing.
Colours are Okabe and Ito's, which readers with colour-blindness can tell apart,
some darkened so that text in them can be read on white.  Nothing relies on a
colour alone.
"""

import warnings
from bisect import bisect_left
from contextlib import contextmanager

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from trials.base import units

# A page's column, and a phone's.
WIDE, NARROW = 880, 358

INK, MUTED, FAINT, PAPER = "#1a1a1a", "#5c5c5c", "#d9d9d9", "#ffffff"
BLUE, VERMILION, GREEN, ORANGE = "#0072b2", "#c85200", "#00805e", "#e69f00"
SKY, PURPLE, RED = "#56b4e9", "#a8508a", "#b3001b"
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
# Colours that take their place on a dark page.
DARK = {INK: "#e6e6e6", MUTED: "#a5a5a5", FAINT: "#3a3d40", BLUE: "#6db9ee",
        VERMILION: "#ff9a5c", GREEN: "#5fc9a5", PURPLE: "#dd9ad0",
        RED: "#ff7b85"}

TEXT_PX, SMALL_PX = 11, 10

_SETTINGS = {
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": TEXT_PX,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.unicode_minus": True,
    "figure.dpi": 72,
    "figure.facecolor": PAPER,
    "font.family": ["DejaVu Sans"],
    "font.size": TEXT_PX,
    "path.simplify": False,
    "path.snap": False,
    "svg.fonttype": "none",
    "text.color": INK,
    # A name from a record may hold dollars; it is no formula.
    "text.parse_math": False,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": SMALL_PX,
    "xtick.major.size": 3,
    "xtick.major.width": 0.6,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": SMALL_PX,
    "ytick.major.size": 3,
    "ytick.major.width": 0.6,
}


@contextmanager
def applied():
    """Draw and save within: no setting of the user's has a say."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A sign that the layout's font lacks is the browser's to find.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def canvas(width: float, height: float) -> Figure:
    """A figure with a canvas that can tell how wide a text is."""
    figure = Figure(figsize=(width / 72, height / 72))
    FigureCanvasAgg(figure)
    return figure


def panel(figure, left, top, width, height):
    """Axes whose box is given in pixels from the upper left corner."""
    across, down = figure.get_size_inches() * 72
    return figure.add_axes((left / across, 1 - (top + height) / down,
                            width / across, height / down))


def rows(figure, names, left, top, width, row_px, above=0, bold=()):
    """A panel with a row for each name, the first on top.  Names stand left of
    it; or, as there is no room on a narrow page, in it, so many rows above the
    middle of their own."""
    axes = panel(figure, left, top, width, row_px * len(names))
    only_ticks(axes, "bottom")
    axes.set_ylim(len(names) - 0.5, -0.5)
    for row, name in enumerate(names):
        font = {"fontsize": SMALL_PX,
                "fontweight": "bold" if name in bold else "normal"}
        text = shortened(figure, name, width if above else left - 16, **font)
        axes.text(0 if above else -8 / width, row - above, text, color=INK,
                  ha="left" if above else "right", va="center_baseline",
                  transform=axes.get_yaxis_transform(), **font)
    return axes


def box(figure, left, top, width, height, **settings):
    """A rectangle at a place in pixels from the upper left corner."""
    across, down = figure.get_size_inches() * 72
    figure.add_artist(Rectangle(
        (left / across, 1 - (top + height) / down), width / across,
        height / down, transform=figure.transFigure, **settings))


def write(figure, left, top, text, **settings):
    """Text at a place in pixels from the upper left corner."""
    across, down = figure.get_size_inches() * 72
    settings.setdefault("va", "top")
    return figure.text(left / across, 1 - top / down, units.printable(text),
                       **settings)


def title(figure, left, top, text, colour=INK):
    """Write the title of a panel above it."""
    return write(figure, left, top, text, fontweight="bold", color=colour,
                 fontsize=TEXT_PX + 1)


def stacked(width_px, parts, gap_px=0, below_px=0):
    """A figure of parts, one below the other, and what each draw() returns.
    A part knows its height_px before it is drawn."""
    figure = canvas(width_px, 4 + below_px + sum(
        part.height_px + gap_px for part in parts))
    drawn, top = [], 4
    for part in parts:
        drawn.append(part.draw(figure, top))
        top += part.height_px + gap_px
    return figure, drawn


def ticks(axis, count, integer=False):
    """Put at most this many ticks at round figures."""
    axis.set_major_locator(MaxNLocator(count, steps=[1, 2, 5, 10],
                                       integer=integer))


def text_width(figure, text, **settings) -> float:
    """Pixels that a text takes.  The layout's font is a wide one, so that the
    reader's will hardly take more."""
    probe = figure.text(0, 0, units.printable(text), **settings)
    width = probe.get_window_extent(figure.canvas.get_renderer()).width
    probe.remove()
    return width


def shortened(figure, text, width, **settings) -> str:
    """The text, its middle left out when it is wider than this."""
    text = units.printable(text)

    def without_middle(kept):
        head = (kept + 1) // 2
        return text[:head] + "…" + text[len(text) - (kept - head):]

    def is_too_wide(text):
        return text_width(figure, text, **settings) > width

    # A text with more characters than pixels is too wide unmeasured: drawing a
    # long one takes seconds.
    most = min(len(text), int(width))
    if most == len(text) and not is_too_wide(text):
        return text
    kept = 1 + bisect_left(range(2, most), True,
                           key=lambda kept: is_too_wide(without_middle(kept)))
    return without_middle(kept) if kept > 1 else "…"


def fitting(figure, texts, width_px, **settings):
    """The first of them that is not wider; the last, shortened, if none is."""
    return next((text for text in texts if text_width(
        figure, text, **settings) <= width_px), None) or shortened(
            figure, texts[-1], width_px, **settings)


def time_scale(largest_ns: float):
    """(nanoseconds in the unit, its name) for an axis up to this."""
    return units.unit_of(largest_ns / 10, (
        (1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")))


def colour_of(scenarios, scenario) -> str:
    """A scenario has the same colour in all pictures of a report."""
    known = {"pagecache": BLUE, "cache": VERMILION, "platter": GREEN,
             "beyond-memory": PURPLE}
    if scenario in known:
        return known[scenario]
    return SERIES[(3 + list(scenarios).index(scenario)) % len(SERIES)]


def only_ticks(axes, *sides):
    """Axes with these sides; the others have neither line nor tick."""
    for side, spine in axes.spines.items():
        spine.set_visible(side in sides)
    if "left" not in sides:
        axes.tick_params(left=False, labelleft=False)
    if "bottom" not in sides:
        axes.tick_params(bottom=False, labelbottom=False)
