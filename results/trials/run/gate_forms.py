"""The result of a gate as text, JSON, JUnit XML and Markdown."""

import json
from dataclasses import asdict
from xml.sax.saxutils import quoteattr

from trials.base import units
from trials.base.text_table import as_lines, grid, wrapped
from trials.base.units import printable
from trials.statistics import verdict

SCHEMA = "blinktrial-gate-1"
NOT_ITSELF = ("the commit before differs from itself by {}: something beside "
              "the commits has an effect")
HEADINGS = "command|>blocks|>before|>after|>change [95 %]|>again|verdict"


def text(result) -> str:
    """What a terminal of 80 columns or the log of a CI service shows."""
    # The names of commands need no heading, and it would take their room.
    lines = [f"before  {result.before}", f"after   {result.after}",
             f"margin  {result.margin_percent:g} %", "",
             grid(HEADINGS.removeprefix("command"),
                  [cells(each) for each in result.judged])]
    notes = [f"{each.name}: {reason(each, result)}" for each in result.judged
             if reason(each, result)]
    if notes:
        lines += ["", *map(wrapped, notes)]
    count = sum(each.verdict == result.verdict for each in result.judged)
    lines += ["", f"{result.verdict}: {count} of {len(result.judged)}"]
    return as_lines("\n".join(lines) + "\n")


def cells(each) -> list:
    if each.change is None or each.change.ratio is None:
        return [each.name, str(each.blocks), "-", "-", "-", "-", each.verdict]
    return [each.name, str(each.blocks), units.duration(each.before_ns),
            units.duration(each.after_ns), change_words(each.change),
            units.change(each.again.ratio), each.verdict]


def change_words(change) -> str:
    return units.with_interval(change.ratio, change.interval, lambda ratio:
                               f"{100 * (ratio - 1):+.2f}", " %")


def reason(each, result) -> str | None:
    """Why the verdict is what it is, where the table does not tell."""
    if each.why:
        return each.why
    if each.verdict != verdict.INCONCLUSIVE or each.again is None:
        return None
    if each.again.differs(result.margin_percent / 100,
                          verdict.level(len(result.judged))):
        return NOT_ITSELF.format(units.change(each.again.ratio))
    return ("neither a change by more than the margin nor its absence was "
            "shown: more trials, or a quieter machine, would tell")


def json_of(change) -> dict | None:
    if change is None or change.ratio is None:
        return None
    return {"pairs": change.pairs, "ratio": change.ratio,
            "low": change.interval and change.interval.low,
            "high": change.interval and change.interval.high,
            "p_value": change.p_value}


def document(result) -> dict:
    return {"schema": SCHEMA, "verdict": result.verdict,
            "status": result.status, "before": result.before,
            "after": result.after, "margin_percent": result.margin_percent,
            "commands": [{
                **{name: value for name, value in asdict(each).items()
                   if name not in ("again", "change")},
                "again": json_of(each.again), "change": json_of(each.change)}
                for each in result.judged]}


def json_text(result) -> str:
    return json.dumps(document(result), indent=1, ensure_ascii=False) + "\n"


def junit(result) -> str:
    """A test case for each command, as CI services read it: slower and failed
    are failures, and inconclusive is skipped."""
    words = [each.verdict for each in result.judged]
    failures = sum(word in ("slower", "failed") for word in words)
    suite = (f'<testsuite name="blinktrial gate" tests="{len(words)}" '
             f'failures="{failures}" errors="0" '
             f'skipped="{words.count("inconclusive")}">')
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>",
                      suite, *(case(each, result) for each in result.judged),
                      "</testsuite>", "</testsuites>", ""])


def case(each, result) -> str:
    seconds = (each.after_ns or 0) / 1e9
    head = (f"<testcase classname=\"gate\" name={attribute(each.name)} "
            f'time="{seconds:.9f}"')
    said = each.verdict
    if each.change is not None and each.change.ratio is not None:
        said += f": {change_words(each.change)}"
    if reason(each, result):
        said += f": {reason(each, result)}"
    element = {"slower": "failure", "failed": "failure",
               "inconclusive": "skipped"}.get(each.verdict)
    if element is None:
        return f"{head}/>"
    return f"{head}><{element} message={attribute(said)}/></testcase>"


def attribute(words: str) -> str:
    return quoteattr(printable(words))


def markdown(result) -> str:
    """A summary as CI services show it."""
    sign = {"same": "✅", "faster": "✅", "inconclusive": "❔"}.get(
        result.verdict, "❌")
    heads = HEADINGS.replace(">", "").split("|")
    rows = [[f"`{each.name}`", *cells(each)[1:]] for each in result.judged]
    lines = [f"### {sign} {result.verdict}", "",
             f"{escaped(result.before)} → {escaped(result.after)}, margin "
             f"{result.margin_percent:g} %", "",
             f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}",
             *(f"| {' | '.join(map(escaped, row))} |" for row in rows)]
    lines += [f"\n{escaped(each.name)}: {escaped(reason(each, result))}"
              for each in result.judged if reason(each, result)]
    return "\n".join(lines) + "\n"


def escaped(words: str) -> str:
    return printable(words).replace("|", "\\|").replace("<", "&lt;")
