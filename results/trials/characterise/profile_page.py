"""One HTML page that holds all that a characterisation shows.

What stands first is what a reader compares machines by; then what could not be
measured.  A topic without figures has the reason in its place.
"""

from trials.base import units
from trials.characterise import (headline_figures, machine_profile,
                                 profile_plots, profile_table)
from trials.report import frame, machine_facts, markup

_TITLE = "blinksort: what this machine takes"
# The tables of these stand below a summary, to be unfolded.
_FOLDED = ("memory", "threads", "blocks", "access", "transfers", "positions",
           "surface")
_METHOD = (
    "A time of memory is that of going over an area again and again, all "
    "threads at once; areas are each thread's own. Rates count each byte that "
    "is gone over once, of a copy each byte copied.",
    "Disks are read by fio, one transfer at a time, with O_DIRECT. A drive, "
    "an array or the host of a virtual machine may still serve them from a "
    "cache of its own, a file that was just written most of all.",
    "No sample is left out. All of them are in characterisation.jsonl, and "
    "blinkreport --format=csv has a row for each.",
)


def render(found) -> str:
    pictures = {p.name: p for p in profile_plots.pictures(found)}
    return frame.document(
        _TITLE, machine_facts.begun_unix_ns(found.environment),
        ", ".join(filter(None, (
            machine_facts.summary(machine_facts.before(found.environment)),
            f"{len(found.lines)} measurements"))),
        _headline_figures(found), _doubts(found),
        *[_topic(found, name, pictures.get(name))
          for name in machine_profile.TOPICS],
        frame.environment(found.environment),
        markup.section("method", "Method",
                       *map(markup.paragraph, _METHOD)))


# --- what stands first --------------------------------------------------------

def _headline_figures(found):
    return markup.table(
        headline_figures.title(found), "what|>found",
        headline_figures.rows(found))


def _doubts(found):
    lines = dict.fromkeys(f"{r.what}: {r.why}" for r in found.refusals)
    return markup.doubt("<p>Not measured:</p>\n", markup.items(lines)) \
        if lines else ""


# --- topics -------------------------------------------------------------------

def _topic(found, name, picture):
    reasons = [f"{r.what}: {r.why}" for r in found.reasons(name)]
    tables = _tables(found, name)
    if not picture and not tables and not reasons:
        reasons = ["was not asked for" if name == "files"
                   else "no measurement of it is there"]
    return markup.section(
        name, profile_plots.TITLES[name],
        frame.figure(picture) if picture else "",
        markup.doubt(markup.items(reasons)), tables)


def _tables(found, name):
    body = "".join(markup.table(*each) for each in profile_table.Tables(
        found, units.digits, "–").of(name))
    return markup.details("in figures", body) if body and name in _FOLDED \
        else body
