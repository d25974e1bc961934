"""The distribution of the reference's times in each scenario: a histogram, and
beside it the share of trials that took no longer."""

from trials.drawing import style
from trials.drawing.histogram import Axis, Row, Samples


def draw(study, width_px):
    groups = study.references
    rows = [Row(Samples(study.label(g.scenario), g.samples_ns,
                        style.colour_of(study.scenarios, g.scenario),
                        interval=g.summary.median_interval_ns),
                Axis(g.samples_ns), width_px, shares=True) for g in groups]
    figure, drawn = style.stacked(width_px, rows, gap_px=6)
    for axes in drawn:
        axes.set_ylabel("trials")
    return figure
