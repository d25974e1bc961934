"""The pictures of a report: which there are, and their forms.

A picture is drawn anew for each width, wide for a page and narrow for a phone,
rather than scaled: text keeps its size.  To add one, give it a function that
draws a study on a canvas of a given width, and list it here.
"""

from dataclasses import dataclass
from typing import Callable

from trials import (bars, course, histogram, overview, style, svg,
                    timeline, units)

# Dots per inch of PNG: what journals ask of line art at this size.
_PNG_DPI = 300


@dataclass(frozen=True)
class Picture:
    name: str
    title: str
    # What is drawn, for those who read it; and in figures, for those who
    # can't see it.
    caption: str
    description: str
    draw: Callable

    def svg(self, width_px: int = style.WIDE) -> str:
        """SVG text whose ids no other picture and width has."""
        with style.applied():
            return svg.text(self.draw(width_px), f"{self.name}-{width_px}",
                            self.title, self.description)

    def write_png(self, path, width_px: int = style.WIDE):
        with style.applied():
            self.draw(width_px).savefig(path, format="png", dpi=_PNG_DPI,
                                        metadata={"Software": None})


def pictures(study) -> list:
    """Those that the record has something for, in a report's order."""
    found = []
    if any(g.count for g in map(study.reference, study.scenarios) if g):
        found.append(_distribution(study))
    if len(study.groups) > len(study.scenarios):
        found.append(_sweep(study))
    if timeline.shown(study):
        found.append(_phases(study))
    if any(g.count for g in study.groups.values()):
        found.append(_course(study))
    return found


def write_pngs(study, folder) -> list:
    """folder/NAME.png for each; returns the paths."""
    paths = []
    for picture in pictures(study):
        paths.append(folder / f"{picture.name}.png")
        picture.write_png(paths[-1])
    return paths


def _figures(study, groups, words):
    """"pagecache: words of its group; platter: ..." """
    return "; ".join(f"{study.label(g.scenario)}: {words(g)}" for g in groups)


def _references(study):
    return [g for g in map(study.reference, study.scenarios)
            if g is not None and g.count]


def _distribution(study):
    caption = (
        "Above, all scenarios on one time axis; below, each by itself, beside "
        "the share of trials that took no longer. Every trial is a tick under "
        "the axis. The grey band is the 95 % interval of the median; trials "
        "beyond a broken axis are in order, not to scale.")
    if overview.published(study):
        caption += (" The 2011 figures (dotted: minimum, solid: median) are "
                    "another machine's, of 16 nodes.")
    return Picture(
        "distribution", "Times of the reference", caption,
        _figures(study, _references(study), lambda g: (
            f"{g.count} trials from {units.duration(g.summary.min_ns)} to "
            f"{units.duration(g.summary.max_ns)}, median "
            f"{units.duration(g.summary.median_ns)}")),
        lambda width_px: histogram.draw(study, width_px))


def _sweep(study):
    groups = [g for g in study.groups.values() if g.comparison]
    return Picture(
        "sweep", "Configurations, slowest first",
        "Left, minimum, mean and standard deviation. Right, the median "
        "divided by the reference's, with its 95 % interval, and the verdict: "
        "▲ slower, ▼ faster, = no difference shown, ? too few trials to tell. "
        "The control is the reference again, under another name.",
        "; ".join(f"{study.label(g.scenario)}, {g.name}: {g.verdict}, "
                  f"{g.comparison.ratio:.3f} times the reference"
                  for g in groups),
        lambda width_px: bars.draw(study, width_px))


def _phases(study):
    return Picture(
        "phases", "Where the median trial's time goes",
        "The trial nearest to the median. Beside each name is the longest of "
        "the ranks. Start and exit of a process are known only together, and "
        "are drawn at its end; the whole run is drawn from the start of rank "
        "0, though on a cluster it began somewhat earlier.",
        _figures(study, timeline.shown(study), timeline.words_of(study)),
        lambda width_px: timeline.draw(study, width_px))


def _course(study):
    return Picture(
        "course", "Times in the order of the run",
        "Each trial is a dot, each line a running median: coloured the "
        "reference, dashed the control, grey the others. Vertical lines are "
        "boundaries between blocks (of long runs, some of them).",
        f"{len(study.run.trials)} trials, {len(study.failures)} of them "
        f"failed, {1 + len(study.sessions)} sessions",
        lambda width_px: course.draw(study, width_px))
