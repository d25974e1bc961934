"""One HTML page that holds all that a record shows.

The page needs nothing else: no script, no font, no picture from anywhere.  The
same record gives the same bytes.  The result stands first, in words; whatever
makes it doubtful stands right below.
"""

import shlex

from trials.base import units
from trials.record import claims, design as designs, timing
from trials.report import (arms, cost, frame, machine_facts, markup, noise,
                           page_tables, plots, table, transports)
from trials.report.study import COMMANDS
from trials.statistics.comparison import NOT_SHOWN, TOO_FEW
from trials.statistics.spread import NARROWER, WIDER


def render(study) -> str:
    design = study.design
    return frame.document(
        _title(study), design["created_unix_ns"],
        f"blinksort {design['program_version']}, run {design['run_id']}",
        _results(study), _doubts(study),
        *map(frame.topic, plots.pictures(study)),
        markup.section("statistics", "Statistics", *[
            page_tables.statistics(study, s) for s in study.scenarios], *[
            markup.table(*each) for s in study.scenarios
            for each in table.beside(study, s)]),
        markup.section("comparisons", "Comparisons", *[
            page_tables.comparisons(study, s) for s in study.scenarios],
            page_tables.skipped(study)),
        _costs(study), _circumstances(study),
        _environment(study), _reproduction(study), _method(study))


# --- what stands first --------------------------------------------------------

def _title(study):
    what = "Times of commands" if designs.of_commands(study.design) else \
        "blinksort trials"
    labels = ", ".join(map(study.label, study.scenarios))
    return what if labels == COMMANDS else f"{what}: {labels}"


def _machines(study):
    """The machines that sorted, in a line; on a cluster each kind of node once.
    """
    before = machine_facts.before(study.run.environment)
    nodes = before.get("nodes") or {}
    hosts = study.design["hosts"]
    if not hosts:
        return machine_facts.summary(before)
    kinds = dict.fromkeys(machine_facts.summary(nodes.get(host))
                          for host in hosts)
    return "; ".join(filter(None, kinds))


def _results(study):
    design = study.design
    where = f"{len(design['hosts'])} nodes" if design["hosts"] \
        else "one machine"
    known = _machines(study)
    doing = (f"Commands in {design['commands']['directory']}, on"
             if designs.of_commands(design) else
             f"Sorting {designs.input_words(design)}, "
             f"{designs.route(design)}, on")
    setting = (f"{doing} {where}"
               + (f": {known}" if known else "")
               + (f"; {table.memory_words(design)}"
                  if design.get("memory_bytes") else "") + ".")
    return markup.paragraph(setting) + "".join(
        '<p class="result">' + _result(study, scenario) + " "
        + markup.text(_verdicts(study, scenario)) + "</p>\n"
        for scenario in study.scenarios)


def _label(study, scenario):
    """What the first figure is of: the first of several commands, or a sort."""
    label = study.label(scenario)
    group = study.reference(scenario)
    if not designs.of_commands(study.design) or group is None:
        return label
    return group.name if label == COMMANDS \
        else f"{group.name}, {label}"


def _result(study, scenario):
    """The result as HTML: the median is what a reader looks for."""
    group = study.reference(scenario)
    label = markup.text(_label(study, scenario))
    if group is None or not group.count:
        return f"<b>{label}</b>: no time of the reference."
    summary = group.summary
    words = f"median of {summary.n} trials" if summary.n > 1 else "one trial"
    interval = summary.median_interval_ns
    if interval:
        words += (f" ({100 * interval.confidence:.1f} % interval "
                  f"{units.milliseconds(interval.low)} to "
                  f"{units.milliseconds(interval.high)} ms)")
    if summary.n > 1:
        words += (f", minimum {units.duration(summary.min_ns)}, maximum "
                  + units.duration(summary.max_ns))
    median = markup.text(units.duration(summary.median_ns))
    return f"<b>{label}: {median}</b>, {markup.text(words)}."


def _verdicts(study, scenario):
    """Counts of verdicts on variants, and whether the method can tell."""
    verdicts = [g.verdict for g in study.variants(scenario) if g.comparison]
    if not verdicts:
        return ""
    counts = [f"{verdicts.count(word)} {words}" for word, words in (
        ("slower", "slower"), ("faster", "faster"),
        (NOT_SHOWN, "without a difference shown"),
        (TOO_FEW, "with too few trials to tell"))
        if verdicts.count(word)]
    variants = "1 variant" if len(verdicts) == 1 else \
        f"{len(verdicts)} variants"
    words = f"Of {variants} beside the reference, {', '.join(counts)}."
    spreads = [g.spread_verdict for g in study.variants(scenario)]
    spreads = [f"{spreads.count(word)} {word}" for word in (WIDER, NARROWER)
               if word in spreads]
    if spreads:
        words += f" Of their spreads, {', '.join(spreads)}."
    control = study.control(scenario)
    if control and control.verdict in ("slower", "faster"):
        words += (f" But the control, which is the reference again, is "
                  f"{control.verdict} too: don't trust differences that "
                  "small.")
    return words


def _doubts(study):
    """The doubts that a reader must know before believing any of it."""
    wrong = sum(trial["outcome"] == "wrong" for trial in study.failures)
    words = markup.items([*transports.notes(study), *study.notes])
    if wrong:
        words = markup.paragraph(f"The output of {wrong} trials was wrong.",
                                 "bad") + words
    return markup.doubt(words)


# --- tables -------------------------------------------------------------------

def _costs(study):
    return markup.section(
        "cost", "Price and energy", markup.items(cost.sentences(study)),
        *[markup.table(*each) for s in study.scenarios
          for each in table.costs(study, s)],
        markup.table("the machine's parts", cost.PARTS_HEADINGS,
                     cost.part_rows(study)))


def _circumstances(study):
    return markup.section(
        "conditions", "Conditions",
        *[page_tables.conditions(study, s) for s in study.scenarios],
        page_tables.failures(study), page_tables.counters(study))


def _environment(study):
    return frame.environment(
        study.run.environment, page_tables.changes(study), noise.table(study),
        of="that started the nodes, " if study.design["hosts"] else "")


# --- words --------------------------------------------------------------------

def _reproduction(study):
    design = study.design
    given = [f"seed {design['seed']}",
             f"{design['trials']} trials of each configuration in each "
             f"scenario, order: {design['order']}",
             *([f"{design['kind']} records"] if design["kind"] else []),
             f"programs of version {design['program_version']}"]
    sweep = ""
    if design["sweep_text"]:
        sweep = markup.details("the sweep file",
                               markup.pre(design["sweep_text"]))
    return markup.section(
        "reproduction", "How to reproduce it",
        markup.pre(shlex.join(map(str, design["command"]))),
        markup.table("the commands", *arms.table(design)),
        markup.items(given), sweep)


_METHOD = (
    "A time is that of a whole run: on one machine from before the process is "
    "started until it has been reaped; on a cluster from the first datagram "
    "to the last reply. No time is left out; failed trials have none.",
    "The interval of the median is of order statistics and holds for any "
    "distribution, if trials do not depend on each other: where neighbours "
    "have the autocorrelation 0.3, those of 95 % hold the median in about 9 "
    "runs of 10, and with 0.8 in 6; that of the mean, which is in the "
    "csv-summary, in 8 and 5. Percentiles are interpolated (Hyndman and Fan's "
    "7).",
    "Verdicts are by blocks: each block in which both succeeded gives the "
    "ratio of the configuration's time to the reference's, so that what slows "
    "both is in neither verdict nor ratio. The test is Wilcoxon's, of signed "
    "ranks, two-sided; the ratio and its interval are Hodges' and Lehmann's, "
    "which belong to it; by simulation, intervals of 95 % hold the ratio in 93 "
    "to 97 % of runs, also where neighbours resemble each other. Beside it "
    "stands the two-sample U test, which takes all times of a configuration as "
    "one sample, with the ratio of medians and its bootstrap interval. Each p "
    "is corrected by Holm's method over the variants of a scenario; an "
    "interval is that of one comparison, so that one without 1 may stand "
    "beside “no difference shown”, which does not say that there is none.",
    "The spread of a configuration is the mean deviation of its times from "
    "their median, as a share of that: one that is slower by a factor has the "
    "same. The test exchanges the deviations of the two within blocks at "
    "random, in 4999 ways, two-sided and by Holm; the interval of the ratio is "
    "that of random subsets of the blocks (Hartigan), and stands on at least "
    "10. By simulation, it raises a false alarm in 4 to 6 of 100 comparisons, "
    "also of skewed times and where neighbours resemble each other. A stall "
    "now and then counts by its length; of those that fewer than six trials "
    "have, no test can tell.",
    "A scenario's name stands alone only where every condition of it was "
    "verified in every trial.",
)
_NOISE = (
    "Noise is watched just before each trial: a thread on each CPU reads the "
    "clock, and a gap of more than 5 µs between two readings is time lost to "
    "others. A trial's noise is that of the CPU that lost most. Its "
    "correlation with the times is Spearman's, of ranks; nothing is corrected "
    "by it.")
_ORDERS = {
    "blocks": "Each block holds every configuration in every scenario, in a "
              "random order that the seed fixes.",
    "sequence": "The configurations were run in a fixed order: what changed "
                "with time can look like a difference between them.",
}
_REPEATS = ("Each is run {} times in a block, and the shortest of these times "
            "is that of the block.")
_CONTROL = ("The control is the reference again under another name: what "
            "differs between them is noise.")


def _method(study):
    order = _ORDERS.get(study.design["order"], "")
    repeats = study.design.get("repeats") or 1
    if repeats > 1:
        order += " " + _REPEATS.format(repeats)
    if any(map(study.control, study.scenarios)):
        order += " " + _CONTROL
    return markup.section(
        "method", "Method",
        *map(markup.paragraph, (_METHOD[0], order, *_METHOD[1:],
                                *timing.sentences(study.design),
                                *([_NOISE] if study.looks else []))),
        _sources() if plots.overview.published(study) else "")


def _sources():
    """Whose the figures of 2011 are, and what they are of."""
    return markup.paragraph("The figures of 2011 are of 16 nodes, another "
                            "machine than this:") + "".join(
        f"<p>{_source(document, kind, names)}</p>\n"
        for document, kind, names in plots.overview.PUBLISHED)


def _source(name, kind, names):
    document = claims.load(name)
    doi = document["doi"]
    found = [claims.find(name, each) for each in names]
    figures = "; ".join(
        f"{claim['place']}: {claim['what']}, {claim['statistic']} "
        + claims.words(claim) for claim in found)
    return (markup.text(f"The {kind}: {', '.join(document['authors'])}, ")
            + f"<cite>{markup.text(document['title'])}</cite>, "
            + markup.text(document["venue"] or str(document["year"]))
            + (f', <a href="https://doi.org/{doi}">doi {doi}</a>' if doi
               else "") + markup.text(f". {figures}."))
