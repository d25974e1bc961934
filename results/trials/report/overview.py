"""All scenarios of the reference on one time axis, with what was published.

Two documents of 2011 have times of a million records of 100 bytes, on the same
16 nodes with other systems: a paper has means, a memo medians.  They are of
another machine, and say so.
"""

from trials.base import units
from trials.drawing import labels, style
from trials.drawing.histogram import Axis, Row, Samples, draw_rows
from trials.record import claims

# The document, what it is, and its claims that are marked.
PUBLISHED = (
    ("datamation-2011", "paper", ("cache-mean", "platter-mean")),
    ("psort-2011", "memo", ("cache-median", "platter-median")),
)


def published(study):
    """(what it is of, the claim) that may stand beside this record's times:
    only the same amount of data, which is the benchmark's."""
    same = (study.design["records"], study.design["record_bytes"])
    return [(kind, claims.find(document, name))
            for document, kind, names in PUBLISHED for name in names
            ] if same == (1_000_000, 100) else []


def draw(study, width_px):
    groups = study.references
    axis = Axis(*(g.samples_ns for g in groups), least_ns=0)
    return draw_rows([
        Row(Samples(study.label(g.scenario), g.samples_ns,
                    style.colour_of(study.scenarios, g.scenario),
                    _figures(g), marks=_marks(study, g, axis)),
            axis, width_px, tall=False) for g in groups], width_px, "trials")


def _figures(group):
    middle = f"median {units.duration(group.summary.median_ns)}"
    return f"{middle} of {group.count} trials", middle


def _marks(study, group, axis):
    return [labels.Label(claim["value"] * 1e6 / axis.scale,
                         f"2011, {kind}: {claims.words(claim)}", style.MUTED)
            for kind, claim in published(study)
            if claim["ours"]["scenario"] == group.scenario
            and claim["value"] * 1e6 <= axis.limit_ns]
