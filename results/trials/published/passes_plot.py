"""Rates over the passes of a sort, in the form of SPsort's Figure 2: what is
read and written in each."""

from dataclasses import dataclass

from trials.characterise import text_format
from trials.drawing import style
from trials.published import quantity
from trials.report import external

_LEFT_PX, _RIGHT_PX, _TITLE_PX, _PANEL_PX, _FOOT_PX = 54, 12, 22, 130, 62
# What a pass reads and writes.
_FLOWS = {"runs": ("input read", "scratch written"),
          "merges": ("scratch read", "scratch written"),
          "output": ("scratch read", "output written")}
_TINTS = {"input read": style.BLUE, "scratch written": style.ORANGE,
          "scratch read": style.PURPLE, "output written": style.VERMILION}


@dataclass(frozen=True)
class Level:
    """A rate, from one time to another."""

    name: str
    begin_s: float
    end_s: float
    bytes_per_s: float


def of_document(answered) -> list:
    """The levels that SPsort's text tells; of reads of scratch it tells only
    the largest rate of a node."""
    claims = {each.claim["id"]: each.claim for each in answered}

    def of(name, unit):
        return quantity.in_unit(claims[name]["value"], claims[name]["unit"],
                                unit)

    middle_s = of("distribution-time", "s")
    return [Level("input read", 0, middle_s, of("global-rate", "bytes/s")),
            Level("scratch written", 0, middle_s,
                  of("local-rate", "bytes/s")),
            Level("scratch read", middle_s, of("local-read-end", "s"),
                  of("sorting-nodes", "nodes")
                  * of("local-read-peak", "bytes/s")),
            Level("output written", middle_s, of("output-end", "s"),
                  of("write-rate", "bytes/s"))]


def of_group(group) -> list:
    """Those of the median pass; of a sort in memory there is none."""
    passes, levels, begin_s = {}, [], 0.0
    for _, said in external.documents(group):
        for one in said["passes"]:
            if one["ns"] and one.get("read_bytes") is not None:
                passes.setdefault(one["pass"], []).append(one)
    for name, each in passes.items():
        end_s = begin_s + external.median(one["ns"] for one in each) / 1e9
        levels += [Level(flow, begin_s, end_s, external.median(
            one[key] * 1e9 / one["ns"] for one in each))
            for flow, key in zip(_FLOWS[name], ("read_bytes",
                                                "written_bytes"))]
        begin_s = end_s
    return levels


def words(levels) -> str:
    return ", ".join(
        f"{level.name} {text_format.rate_words(level.bytes_per_s)} from "
        f"{level.begin_s:.3g} to {level.end_s:.3g} s" for level in levels)


def draw(panels, width_px):
    """`panels`: (title, levels) of each."""
    height_px = _TITLE_PX + _PANEL_PX + _FOOT_PX
    figure = style.canvas(width_px, 4 + height_px * len(panels))
    for number, (title, levels) in enumerate(panels):
        top = 4 + number * height_px
        style.title(figure, _LEFT_PX, top, title)
        axes = style.panel(figure, _LEFT_PX, top + _TITLE_PX,
                           width_px - _LEFT_PX - _RIGHT_PX, _PANEL_PX)
        size, unit = text_format.rate_unit(
            max(level.bytes_per_s for level in levels))
        for name, tint in _TINTS.items():
            ends = [(level.begin_s, level.end_s, level.bytes_per_s / size)
                    for level in levels if level.name == name]
            axes.plot([at for begin, end, _ in ends for at in (
                begin, begin, end, end)],
                [at for *_, rate in ends for at in (0, rate, rate, 0)],
                color=tint, linewidth=1.4, label=name)
        axes.set_xlim(0, 1.02 * max(level.end_s for level in levels))
        axes.set_ylim(0)
        style.ticks(axes.yaxis, 4)
        axes.set_xlabel("time, s")
        axes.set_ylabel(f"rate, {unit}")
        axes.legend(loc="upper left", bbox_to_anchor=(0, -34 / _PANEL_PX),
                    ncols=4 if width_px > style.NARROW else 2, frameon=False,
                    borderpad=0, borderaxespad=0, fontsize=style.SMALL_PX)
    return figure
