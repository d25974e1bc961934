#!/usr/bin/python3
"""Draw the time of a sort, and what it spills, by the memory that it may take.

USAGE: tests/bench/memory_curve.py BENCH.json PICTURE.svg|PICTURE.png

BENCH.json is a record of bench_external.py that has the row memory-curve.
"""

import json
import sys
from pathlib import Path
from statistics import median

from programs import ROOT

sys.path.insert(0, str(ROOT / "results"))

from trials.drawing import style  # noqa: E402
from trials.drawing.picture import Picture  # noqa: E402

ROW = "memory-curve"
LEFT_PX, RIGHT_PX, PANEL_PX, GAP_PX, FOOT_PX = 54, 16, 190, 44, 44


def points(row):
    """(memory bytes, seconds of each round, spilled bytes) of each limit; the
    seconds of the copy's rounds, which may be none."""
    found, copied = [], []
    for one in row["contestants"]:
        seconds = [s["elapsed_ns"] / 1e9 for s in one["samples"]]
        if one["name"] == "copy":
            copied = seconds
        else:
            found.append((one["limit_bytes"], seconds,
                          one["spilled_bytes"] or 0))
    return sorted(found), copied


def panel(figure, number, width_px, title):
    top = 24 + number * (PANEL_PX + GAP_PX)
    style.title(figure, LEFT_PX, top - 18, title)
    axes = style.panel(figure, LEFT_PX, top, width_px - LEFT_PX - RIGHT_PX,
                       PANEL_PX)
    style.only_ticks(axes, "left", "bottom")
    axes.set_xscale("log")
    return axes


def draw(row, width_px):
    found, copied = points(row)
    figure = style.canvas(width_px, 24 + 2 * PANEL_PX + GAP_PX + FOOT_PX)
    memory = [bytes_ / 1e6 for bytes_, _, _ in found]
    size_gb = row["size_bytes"] / 1e9
    time = panel(figure, 0, width_px,
                 f"time of a sort of {size_gb:g} GB, s (dots: each round)")
    time.plot(memory, [median(each) for _, each, _ in found],
              color=style.BLUE, linewidth=1.1)
    for place, (_, each, _) in zip(memory, found):
        time.plot([place] * len(each), each, "o", color=style.BLUE,
                  markersize=3, alpha=0.6)
    if copied:
        time.axhline(median(copied), color=style.MUTED, linewidth=0.8,
                     linestyle="--")
        time.annotate("a copy", (memory[0], median(copied)), (0, 3),
                      textcoords="offset points", color=style.MUTED,
                      fontsize=style.SMALL_PX)
    spilled = panel(figure, 1, width_px, "spilled, GB")
    spilled.plot(memory, [bytes_ / 1e9 for _, _, bytes_ in found], "-o",
                 color=style.VERMILION, linewidth=1.1, markersize=3)
    spilled.set_xlabel("limit of memory, MB")
    for axes in time, spilled:
        axes.set_ylim(bottom=0)
        axes.set_xticks(memory, [f"{place:.0f}" for place in memory])
        axes.set_xticks([], minor=True)
        axes.axvline(row["size_bytes"] / 1e6, color=style.FAINT, zorder=0)
    return figure


def main(record, picture):
    with open(record, encoding="ascii") as file:
        results = json.load(file)["results"]
    row = next((one for one in results if one["name"] == ROW), None)
    if row is None:
        sys.exit(f"memory_curve.py: {record}: has no row {ROW}")
    drawn = Picture(ROW, "Time and spilled bytes by memory", "", "",
                    lambda width_px: draw(row, width_px))
    picture = Path(picture)
    picture.write_bytes(drawn.data(picture.suffix[1:]))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
