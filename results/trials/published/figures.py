"""The documents' figures, drawn with ours.

What a document's text tells of a figure is in its claims; its drawings' points
are not.  What was published is a hollow sign, and what is ours a full one.
"""

import os
from dataclasses import replace

import numpy as np

from trials.characterise import curves, profile_plots
from trials.characterise.curves import Panel, Plot
from trials.characterise.machine_profile import Curve, Spread
from trials.drawing import histogram, labels, style
from trials.drawing.picture import Picture
from trials.published import (dot_plot, effects_plot, model_curves,
                              passes_plot, quantity)
from trials.record import design as designs
from trials.report import plots, price_plot
from trials.report.study import CONTROL

# Figures without figures, and what stands for them.
DIAGRAMS = {
    "tritonsort": "Figures 2 to 7 are diagrams of the stages; the table of "
                  "stages, by Figure 8, stands for them.",
    "depsort": "Figures 1 and 2 are diagrams of the nodes and their switches; "
               "--roles, in the claims, says what each rank does.",
    "spsort": "Figure 1 is a diagram of the machine; the arguments of "
              "--suppose, in the claims that are modelled, describe it."}


def by_document(found) -> dict:
    """{name: the pictures of this document}."""
    made = {}
    for document, answered in found.documents:
        name = document["document"]
        made[name] = [*(make(answered, found.programs)
                        for make in _MODELLED.get(name, ())),
                      *(picture for make in _FORMS.get(name, ())
                        for picture in make(answered, found.sources))]
        drawn = {picture.name for picture in made[name]}
        made[name] += _beside(name, answered, drawn)
    return made


def pictures(found) -> list:
    return [picture for made in by_document(found).values()
            for picture in made]


# --- any figure: what was published beside ours -------------------------------

def _beside(name, answered, drawn):
    """A picture of each figure and unit that is not drawn, with the claims to
    which there is a figure of ours."""
    rows = {}
    for each in answered:
        claim = each.claim
        ours = [answer.value for answer in each.answers
                if answer.value is not None]
        if ours and "figure" in claim and "value" in claim:
            rows.setdefault((claim["figure"], claim["unit"]), []).append(
                dot_plot.Row(claim["id"], claim["value"], ours))
    for (figure, unit), found in rows.items():
        if f"{name}-{figure}" not in drawn:
            yield Picture(
                f"{name}-{figure}-{unit}".lower().replace("/", "-per-"),
                f"{title(figure)}, {unit}",
                f"{title(figure)}. Hollow: what was published; full: ours, of "
                "another machine. A line leads from one to the other.",
                "; ".join(f"{row.name}: published {row.published:g} {unit}, "
                          f"ours {', '.join(f'{v:g}' for v in row.ours)}"
                          for row in found),
                lambda width_px, found=found, unit=unit: dot_plot.draw(
                    found, unit, width_px))


def title(figure) -> str:
    """The documents number their figures, and name their tables."""
    return f"{'Figure' if figure.isdigit() else 'Table'} {figure}"


# --- figures in the form of their own ----------------------------------------

def _effects(_, sources):
    """Figure 4: minimum, average and standard deviation of each configuration.
    """
    for source in sources:
        if source.study and effects_plot.has_effects(source.study):
            yield Picture(
                f"datamation-2011-4-{source.name}",
                f"Figure 4, in {source.name}",
                f"Figure 4, in {source.name}. {effects_plot.CAPTION}"
                + effects_plot.where(source),
                effects_plot.words(source.study),
                lambda width_px, study=source.study: effects_plot.draw(
                    study, width_px))


def _breakdown(_, sources):
    """Figure 3, of records that know what their machine costs."""
    for source in sources:
        if source.study and source.study.design.get("price"):
            found = plots.price(source.study)
            yield replace(found, name=f"datamation-2011-3-{source.name}",
                          caption=f"Figure 3, in {source.name}: "
                          + found.caption)


def _claim(answered, name):
    return next(each.claim for each in answered if each.claim["id"] == name)


def _price_list(answered, _):
    """Figure 1 of the memo: its list, which has no savings."""
    claim = _claim(answered, "price-list")
    parts, currency = list(claim["values"].items()), claim["unit"]
    yield Picture("psort-2011-1", "Figure 1", "Figure 1, as published.",
                  price_plot.words(parts, currency),
                  lambda width_px: price_plot.draw(parts, currency, width_px))


def _distribution(scenario, figure):
    """The times of all trials, with what was published marked."""
    def make(answered, sources):
        groups = [(source.name, source.study.reference(scenario))
                  for source in sources if source.study
                  and scenario in source.study.scenarios]
        groups = [(name, group) for name, group in groups
                  if group and group.count]
        if not groups:
            return
        name, group = max(groups, key=lambda pair: pair[1].count)
        marks = [(each.claim["statistic"], each.claim["value"])
                 for each in answered if each.claim.get("figure") == figure
                 and each.claim.get("statistic") in ("minimum", "median")]
        yield Picture(
            f"psort-2011-{figure}", f"Figure {figure}, in {name}",
            f"Figure {figure}, in {name}: times of the sort; what the memo has "
            "is marked, of another machine.",
            f"{group.count} trials; " + "; ".join(
                f"published {what} {value:g} ms" for what, value in marks),
            lambda width_px: _draw_times(scenario, group, marks, width_px))
    return make


def _of_machines(figure, topic):
    """A picture of a characterisation, of all machines that have it."""
    def make(_, sources):
        for source in sources:
            if source.profile:
                for found in profile_plots.pictures(source.profile):
                    if found.name == topic:
                        yield replace(
                            found, name=f"{topic}-{figure}-{source.name}",
                            caption=f"Figure {figure}, in {source.name}. "
                            + found.caption)
    return make


def _scaling(figure):
    """Rates where each rank has as many records, by the number of ranks."""
    def make(answered, sources):
        for source in sources:
            if source.study and source.study.design.get("weak_scaling"):
                yield from _scaling_of(source, figure)
    return make


def _scaling_of(source, figure):
    study = source.study
    for scenario in study.scenarios:
        curve = Curve("measured", points=sorted(
            (designs.rank_count(study.design, group.name),
             Spread.of(_rates(study, group)))
            for group in study.of(scenario) if group.count
            and group.role != CONTROL))
        if len(curve.points) < 2:
            continue
        first = curve.points[0][1].middle / curve.points[0][0]
        even = Curve("in proportion", points=[
            (ranks, Spread.of([first * ranks])) for ranks, _ in curve.points])
        yield curves.picture(
            f"figure-{figure}-{source.name}-{scenario}",
            f"Figure {figure}, in {source.name}",
            f"Figure {figure}, in {source.name}: the rate of all ranks, each "
            "with as many records; ranks of one machine share its CPUs.",
            Plot([Panel(f"{study.label(scenario)}, {source.name}",
                        [curve, even])], "ranks"))


def _rates(study, group):
    """Bytes a second that each trial has sorted."""
    moved = (designs.records_of(study.design, group.name)
             * study.design["record_bytes"])
    return moved * 1e9 / group.samples_ns


def _draw_times(scenario, group, marks, width_px):
    ends_ns = [1e6 * value for _, value in marks]
    axis = histogram.Axis(group.samples_ns, np.array(ends_ns), least_ns=0)
    tint = style.colour_of((scenario,), scenario)
    row = histogram.Row(histogram.Samples(
        scenario, group.samples_ns, tint,
        marks=[labels.Label(1e6 * value / axis.scale,
                            f"2011: {what} {value:g} ms", style.MUTED)
               for what, value in marks]), axis, width_px, tall=False)
    return histogram.draw_rows([row], width_px, "trials")


def tables(answered) -> list:
    """(caption, heads, rows) of each figure or table of several claims whose
    values have the same names; beside each, ours if there are any."""
    found = {}
    for each in answered:
        if "figure" in each.claim and "values" in each.claim:
            found.setdefault(each.claim["figure"], []).append(each)
    return [_table(figure, group) for figure, group in found.items()
            if len(group) > 1]


def _table(figure, group):
    """Columns are called by what is left of the claims' names."""
    heads, columns = [""], [list(group[0].claim["values"])]
    common = os.path.commonprefix([each.claim["id"] for each in group])
    for each in group:
        claim = each.claim
        heads.append(f">{claim['id'][len(common):]}, {claim['unit']}")
        columns.append([f"{claim['values'][name]:,.6g}"
                        for name in columns[0]])
        ours = [answer.value for answer in each.answers if answer.value]
        if ours:
            heads.append(">ours")
            columns.append([f"{ours[0][name]:,.6g}" if name in ours[0] else ""
                            for name in columns[0]])
    return title(figure), "|".join(heads), list(zip(*columns))


# --- figures of machines that are not at hand ---------------------------------

def _merging(answered, programs):
    return curves.picture(
        "tritonsort-1", "Figure 1",
        "Figure 1: the rate of merging 200 GB of a disk of 100 MB/s, by the "
        "number of files, as blinksort's model predicts it with less memory "
        "for more of them. Dashed: where the document's rate begins to fall.",
        Plot([Panel("200 GB of a disk", [model_curves.merging(programs)])],
             "files", marks=[("2011: falls from", _claim(
                 answered, "merge-files")["value"])], place="{:.0f}".format))


def _receiving(answered, programs):
    claim, nodes = (_claim(answered, name) for name in ("threads-rate",
                                                        "nodes"))
    told = Curve("2011: threads", points=[(nodes["value"], Spread.of([
        quantity.in_unit(claim["value"], claim["unit"], "bytes/s")]))])
    return curves.picture(
        "tritonsort-9", "Figure 9",
        "Figure 9: the rate at which each node receives, as the model "
        "predicts it of blinksort's schedules, each with one thread. Hollow: "
        "below this were the document's receivers with a thread for each node.",
        Plot([Panel("links of 10 Gbit/s",
                    [*model_curves.receiving(programs), told])],
             "nodes", "rate", (1.25e8, "Gbit/s"), lines={told.name: {
                 "color": style.INK, "markerfacecolor": style.PAPER}},
             place="{:.0f}".format))


def _by_roles(answered, programs):
    return curves.picture(
        "depsort-3", "Figure 3",
        "Figure 3: the time of a sort by the numbers of data nodes, as "
        "blinksort's model predicts it, which chooses what each node does.",
        Plot([Panel("16 GiB, 4 nodes that compute", model_curves.by_roles(
            programs, _claim(answered, "rate")["ours"]["arguments"]))],
            "nodes that keep runs", "time", (1e9, "s"),
            place="{:.0f}".format))


def _passes(answered, sources):
    """Figure 2 of SPsort, beside the passes of records."""
    panels = [("SPsort, 400 nodes", passes_plot.of_document(answered))] + [
        (source.name + ("" if group.verified else ", unverified"), levels)
        for source in sources if source.study
        for group in source.study.references
        if (levels := passes_plot.of_group(group))]
    yield Picture(
        "spsort-2-rates", "Figure 2",
        "Figure 2: rates over the two passes, those of all nodes as far as the "
        "document's text tells them; of reading scratch it tells the largest. "
        "Below them the mean rates of each pass of ours.",
        "; ".join(f"{title}: {passes_plot.words(levels)}"
                  for title, levels in panels),
        lambda width_px: passes_plot.draw(panels, width_px))


_MODELLED = {"tritonsort": (_merging, _receiving), "depsort": (_by_roles,)}
_FORMS = {
    "tritonsort": (_of_machines("10", "transfers"), _scaling("11")),
    "depsort": (_scaling("4"),), "spsort": (_passes,),
    "datamation-2011": (_of_machines("1", "blocks"),
                        _of_machines("2", "surface"), _breakdown, _effects),
    "psort-2011": (_price_list, _distribution("cache", "2"),
                   _distribution("platter", "3")),
}
