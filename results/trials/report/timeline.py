"""The median trial: what each rank did, when.

A rank's bar begins when its process was started.  Phases follow each other as
the sorter reported them; what it measured besides, and what the process took
beyond the sorter's own time (its start and its exit, which only the outside
sees, and only together), come after them.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import to_rgb

from trials.base import units
from trials.drawing import style

_LEFT_PX, _RIGHT_PX, _FOOT_PX, _GAP_PX = 46, 12, 40, 18
_KEY_ROW_PX = 16
# Phases are coloured by what they do: wait for others, read, compute, send,
# write.
COLOURS = {
    "open": "#c9c9c9", "prepare": "#c9c9c9", "join": "#f5d48a",
    "bucket": "#0072b2", "sample": "#f0b429", "arrange": "#56b4e9",
    "exchange": "#c85200", "order": "#00805e", "finish": "#7cc6a5",
    "meet": "#cc79a7", "commit": "#6b4c9a",
}
OTHER = ("#8c8c8c", "#b0765a", "#4f7f7f", "#9c9c3c")
REST, OUTSIDE = "other", "start and exit"


@dataclass
class Piece:
    name: str
    begin_ns: float
    length_ns: float


def pieces(rank) -> list:
    """The stretches of a rank's process from its start to its end, without
    gaps."""
    begin_ns = at_ns = rank["begin_ns"] or 0
    made = []
    for name, length_ns in rank["phases_ns"].items():
        made.append(Piece(name, at_ns, length_ns))
        at_ns += length_ns
    for name, end_ns in ((REST, rank["elapsed_ns"]),
                         (OUTSIDE, rank["process_ns"])):
        if end_ns is not None and begin_ns + end_ns > at_ns:
            made.append(Piece(name, at_ns, begin_ns + end_ns - at_ns))
            at_ns = begin_ns + end_ns
    return made


def colours(names) -> dict:
    """Colours in order of time: what every rank has after its phases comes
    last."""
    spare = itertools.cycle(OTHER)
    found = {name: COLOURS.get(name) or next(spare)
             for name in names if name not in (REST, OUTSIDE)}
    found.update((name, tint) for name, tint in (
        (REST, "#e6e6e6"), (OUTSIDE, style.PAPER)) if name in names)
    return found


class Timeline:
    """The panel of one scenario, whose height is known before it is drawn."""

    def __init__(self, study, group, width_px):
        self.trial = study.median_trial(group)
        self.ranks = [pieces(rank) for rank in self.trial["ranks"]]
        self.title = study.label(group.scenario)
        self.detail = (f"trial {self.trial['trial']}: "
                       + units.duration(self.trial["whole_ns"]))
        self.tint = style.colour_of(study.scenarios, group.scenario)
        names = dict.fromkeys(p.name for rank in self.ranks for p in rank)
        self.colours = colours(names)
        self.width_px = width_px
        self.key = self._key_places()
        self.row_px = max(9, min(30, 150 / len(self.ranks)))
        self.panel_px = self.row_px * len(self.ranks)
        self.head_px = 22 + _KEY_ROW_PX * (1 + self.key[-1][2]) + 20
        self.height_px = self.head_px + self.panel_px + _FOOT_PX + _GAP_PX

    def _key_places(self):
        """(name, left, row, text): lines of a key, in order of time."""
        probe = style.canvas(self.width_px, 10)
        places, left, row = [], _LEFT_PX, 0
        for name in self.colours:
            text = f"{name} {units.duration(longest(self.ranks, name))}"
            width = 14 + style.text_width(probe, text,
                                          fontsize=style.SMALL_PX)
            if left + width > self.width_px - _RIGHT_PX and left > _LEFT_PX:
                left, row = _LEFT_PX, row + 1
            places.append((name, left, row, text))
            left += width + 14
        return places

    def draw(self, figure, top):
        title = style.title(figure, _LEFT_PX, top, self.title, self.tint)
        style.write(figure, _LEFT_PX + 10 + title.get_window_extent().width,
                    top + 1, self.detail)
        for name, left, row, text in self.key:
            self._draw_key(figure, left, top + 22 + row * _KEY_ROW_PX, name,
                           text)
        axes = style.panel(figure, _LEFT_PX, top + self.head_px,
                           self.width_px - _LEFT_PX - _RIGHT_PX, self.panel_px)
        self._draw_ranks(axes)

    def _draw_key(self, figure, left, top, name, text):
        style.box(figure, left, top + 1, 10, 9, facecolor=self.colours[name],
                  edgecolor=style.MUTED,
                  linewidth=0.5 if name == OUTSIDE else 0)
        style.write(figure, left + 14, top, text, fontsize=style.SMALL_PX)

    def _draw_ranks(self, axes):
        axes.spines["left"].set_visible(False)
        first = min(rank[0].begin_ns for rank in self.ranks)
        last = max(rank[-1].begin_ns + rank[-1].length_ns
                   for rank in self.ranks)
        whole = self.trial["whole_ns"]
        scale, unit = style.time_scale(max(last, whole))
        axes.set_xlim(min(0, first) / scale, max(last, whole) * 1.01 / scale)
        axes.set_ylim(len(self.ranks) - 0.5, -0.5)
        for name, tint in self.colours.items():
            self._draw_pieces(axes, name, tint, scale)
        self._draw_whole(axes, whole / scale)
        axes.tick_params(left=False)
        if len(self.ranks) == 1:
            axes.set_yticks([])
            axes.set_xlabel(f"since the start of the process, {unit}")
            return
        axes.set_yticks(range(0, len(self.ranks),
                              1 if len(self.ranks) <= 8 else 4))
        axes.set_ylabel("rank")
        axes.set_xlabel(f"since the start of rank 0, {unit}")

    def _draw_pieces(self, axes, name, tint, scale):
        rows, begins, lengths = zip(*(
            (row, piece.begin_ns / scale, piece.length_ns / scale)
            for row, rank in enumerate(self.ranks)
            for piece in rank if piece.name == name))
        edge = {"edgecolor": style.MUTED, "linewidth": 0.5} \
            if name == OUTSIDE else {"linewidth": 0}
        axes.barh(rows, lengths, 0.8, begins, color=tint, **edge)
        if self.row_px >= 20:
            for place in zip(rows, begins, lengths):
                self._name_piece(axes, name, tint, *place)

    @staticmethod
    def _name_piece(axes, name, tint, row, begin, length):
        """Write the name into the bar, where there is room."""
        room_px = length * axes.get_window_extent().width / np.ptp(
            axes.get_xlim())
        settings = {"fontsize": style.SMALL_PX}
        if style.text_width(axes.figure, name, **settings) + 10 > room_px:
            return
        dark = np.dot(to_rgb(tint), (0.3, 0.59, 0.11)) < 0.5
        axes.text(begin + length / 2, row, units.printable(name), ha="center",
                  va="center_baseline", **settings,
                  color=style.PAPER if dark else style.INK)

    def _draw_whole(self, axes, whole):
        """A line over the ranks: the figure that everything else reports."""
        at = 1 + 7 / self.panel_px
        axes.annotate(
            "", xy=(0, at), xytext=(whole, at),
            xycoords=axes.get_xaxis_transform(), annotation_clip=False,
            arrowprops={"arrowstyle": "|-|,widthA=0.25,widthB=0.25",
                        "linewidth": 0.8, "color": style.INK,
                        "shrinkA": 0, "shrinkB": 0})
        axes.text(whole / 2, at, " the whole run "
                  + units.duration(self.trial["whole_ns"]) + " ",
                  transform=axes.get_xaxis_transform(), ha="center",
                  va="center", fontsize=style.SMALL_PX,
                  bbox={"facecolor": style.PAPER, "edgecolor": "none",
                        "pad": 1})


def words_of(study):
    """The sentence about a group in a picture's description."""
    def words(group):
        ranks = [pieces(r) for r in study.median_trial(group)["ranks"]]
        names = dict.fromkeys(p.name for rank in ranks for p in rank)
        return ", ".join(f"{name} {units.duration(longest(ranks, name))}"
                         for name in colours(names))
    return words


def longest(ranks, name) -> float:
    """The longest time that a rank spent in a phase."""
    return max(sum(piece.length_ns for piece in rank if piece.name == name)
               for rank in ranks)


def shown(study):
    """References whose median trial has ranks to show."""
    return [g for g in study.references if any(
        rank["phases_ns"] for rank in study.median_trial(g)["ranks"])]


def draw(study, width_px):
    return style.stacked(width_px, [Timeline(study, group, width_px)
                                    for group in shown(study)])[0]
