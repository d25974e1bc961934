"""All scenarios of the reference on one time axis, with what was published.

The figures of 2011 are those of P. Bertasi, M. Bonazza, M. Bressan and
E. Peserico, "Datamation: A Quarter of a Century and Four Orders of Magnitude
Later", IEEE CLUSTER 2011, doi 10.1109/CLUSTER.2011.75: a million records of
100 bytes on 16 nodes.  They are another machine's, and say so.
"""

from dataclasses import dataclass

from trials.base import units
from trials.drawing import labels, style
from trials.drawing.histogram import FOOT_PX, Axis, Row, Samples


@dataclass(frozen=True)
class Published:
    scenario: str
    median_ns: float


PUBLISHED = (
    Published("cache", 40.8e6),
    Published("platter", 57e6),
)


def published(study):
    """What may stand beside this record's times: only the same amount of
    data, which is the benchmark's."""
    same = (study.design["records"], study.design["record_bytes"])
    return PUBLISHED if same == (1_000_000, 100) else ()


def draw(study, width_px):
    groups = study.references
    axis = Axis(*(g.samples_ns for g in groups), least_ns=0)
    rows = [Row(Samples(study.label(g.scenario), g.samples_ns,
                        style.colour_of(study.scenarios, g.scenario),
                        _figures(g), marks=_marks(study, g, axis)),
                axis, width_px, tall=False) for g in groups]
    figure, drawn = style.stacked(width_px, rows, below_px=FOOT_PX)
    for axes in drawn:
        axes.set_ylabel("trials")
    rows[-1].show_axis(drawn[-1], 10 if width_px > style.NARROW else 5)
    return figure


def _figures(group):
    middle = f"median {units.duration(group.summary.median_ns)}"
    return f"{middle} of {group.count} trials", middle


def _marks(study, group, axis):
    return [labels.Label(mark.median_ns / axis.scale,
                         f"2011: {mark.median_ns / 1e6:g} ms", style.MUTED)
            for mark in published(study) if mark.scenario == group.scenario
            and mark.median_ns <= axis.limit_ns]
