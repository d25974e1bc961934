"""The pictures of a report: which there are, and their forms.

To add one, give it a function that draws a study on a canvas of a given width,
and list it here.
"""

from trials.base import units
from trials.drawing.picture import Picture
from trials.report import (bars, distribution, noise, noise_plot, overview,
                           price_plot, run_sequence, timeline)


def pictures(study) -> list:
    """The pictures for which the record has data, in a report's order."""
    found = []
    if not any(g.count for g in study.groups.values()):
        return found
    if study.references:
        found += [_overview(study), _distribution(study)]
    if len(study.groups) > len(study.scenarios):
        found.append(_sweep(study))
    if timeline.shown(study):
        found.append(_phases(study))
    found.append(_run_sequence(study))
    if noise_plot.shown(study):
        found.append(_noise(study))
    if study.design.get("price"):
        found.append(price(study))
    return found


def _figures(study, groups, words):
    """"pagecache: words of its group; platter: ..." """
    return "; ".join(f"{study.label(g.scenario)}: {words(g)}" for g in groups)


def _overview(study):
    caption = (
        "The times of the reference in all scenarios. Every trial is a tick "
        "under the axis; those beyond a broken axis are in order, not to "
        "scale.")
    if overview.published(study):
        caption += (" Of the 2011 figures the paper's are means and the memo's "
                    "medians; both are another machine's, of 16 nodes.")
    return Picture("overview", "Times of the reference", caption,
                   _range_words(study),
                   lambda width_px: overview.draw(study, width_px))


def _distribution(study):
    return Picture(
        "distribution", "Times of the reference, by scenario",
        "A histogram, and the share of trials that took no longer. The grey "
        "band is the 95 % interval of the median; trials beyond a broken axis "
        "are in order, not to scale.", _range_words(study),
        lambda width_px: distribution.draw(study, width_px))


def _range_words(study):
    return _figures(study, study.references, lambda g: (
        f"{g.count} trials from {units.duration(g.summary.min_ns)} to "
        f"{units.duration(g.summary.max_ns)}, median "
        f"{units.duration(g.summary.median_ns)}"))


def _sweep(study):
    groups = [g for g in study.groups.values() if g.comparison]
    return Picture(
        "sweep", "Configurations, by their ratio to the reference",
        "Left, minimum and median, with its 95 % interval. Right, the time "
        "divided by the reference's in the same block, estimated over all "
        "blocks, with its 95 % interval, and the verdict: "
        "▲ slower, ▼ faster, ~ no difference shown, ? too few trials to tell, "
        "↔ with a wider spread, →← a narrower one; "
        "an arrow stands for a ratio beyond the axis. The order is that of the "
        "ratios, of which those with ~ may be in any. "
        "The control is the reference again, under another name.",
        "; ".join(f"{study.label(g.scenario)}, {g.name}: {g.verdict}"
                  + _times_reference(g.comparison.main)
                  + f", spread: {g.spread_verdict}" for g in groups),
        lambda width_px: bars.draw(study, width_px))


def _times_reference(analysis):
    return "" if analysis.ratio is None \
        else f", {analysis.ratio:.3f} times the reference"


def _phases(study):
    return Picture(
        "phases", "Where the median trial's time goes",
        "The trial nearest to the median. Beside each name is the longest of "
        "the ranks. Start and exit of a process are known only together, and "
        "are drawn at its end; the whole run is drawn from the start of rank "
        "0, though on a cluster it began somewhat earlier.",
        _figures(study, timeline.shown(study), timeline.words_of(study)),
        lambda width_px: timeline.draw(study, width_px))


def _run_sequence(study):
    return Picture(
        "run-sequence", "Times in the order of the run",
        "Each trial is a dot, each line a running median: coloured the "
        "reference, dashed the control, grey the others. Vertical lines are "
        "boundaries between blocks (of long runs, some of them).",
        f"{len(study.run.trials)} trials, {len(study.failures)} of them "
        f"failed, {1 + len(study.sessions)} sessions",
        lambda width_px: run_sequence.draw(study, width_px))


def _noise(study):
    references = [g for g in study.references if g.noise_trials]
    return Picture(
        "noise", "Times against noise",
        "Each trial is a dot: coloured the reference, grey the others. Noise "
        "is the share of its time that the CPU that lost most lost to others, "
        "watched just before the trial; a dashed line is a limit.",
        _figures(study, references, noise.dependence_words)
        or noise.words(study),
        lambda width_px: noise_plot.draw(study, width_px))


def price(study) -> Picture:
    """The breakdown, as the study of 2011 has one of its cluster."""
    found = study.design["price"]
    parts, currency = price_plot.parts_of(found), found["currency"]
    return Picture(
        "price", "What the machine costs",
        f"{found['total']} {currency} in all, by the list that was given.",
        price_plot.words(parts, currency),
        lambda width_px: price_plot.draw(parts, currency, width_px))
