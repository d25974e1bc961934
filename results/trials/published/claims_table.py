"""Claims and answers as text, 80 columns wide."""

import textwrap

from trials.base import units
from trials.base.text_table import as_lines
from trials.published import report, verdict

_WIDTH = 80
_NAME, _PUBLISHED, _OURS = 28, 18, 14
LEGEND = (
    "x2: ours is twice the published figure; x1/2: half of it; the same: "
    "within 5 %. All figures of ours are of other machines than the "
    "document's.")
# Longer numbers have an exponent.
_LONG = 1e10
_BOUNDS = {"below": "< ", "above": "> ", "about": "~ "}


def text(found) -> str:
    parts = [_document(document, answered)
             for document, answered in found.documents]
    return as_lines("\n\n".join([
        *parts, "\n".join(_wrapped(LEGEND, "")),
        "\n".join(line for words in summary(found)
                  for line in _wrapped(words, ""))])) + "\n"


def summary(found) -> list:
    """How the claims are answered, and those that nothing is built for."""
    counts = found.counts()
    unbuilt = [each.claim["id"] for each in found.answered
               if each.by == "not built"]
    return [f"{sum(counts.values())} claims: " + ", ".join(
        f"{number} {by}" for by, number in counts.items()),
        *(["not built: " + ", ".join(unbuilt)] if unbuilt else [])]


def cited(document) -> str:
    """Authors, title, where and when, as far as its text tells."""
    authors = document["authors"]
    parts = [", ".join(authors[:4]) + (" and others" if len(authors) > 4
                                       else ""),
             document["title"], document["venue"],
             document["year"] if str(document["year"] or "")
             not in (document["venue"] or "") else None,
             f"doi {document['doi']}" if document["doi"] else None]
    return ", ".join(str(part) for part in parts if part)


def _document(document, answered):
    lines = [document["document"], *_wrapped(cited(document), "  "),
             *_wrapped(document["machine"], "  "), "",
             _row("claim", "published", "ours", "verdict")]
    for each in answered:
        lines += _claim(each)
    for order in report.orders(answered):
        lines += ["", *_order(order)]
    return "\n".join(lines)


def order_words(order) -> str:
    correlation = ("" if order.correlation is None else
                   f", Spearman's {order.correlation:.2f}")
    return (f"order of {len(order.ours)} effects by {order.statistic}, "
            f"{order.scenario}, in {order.record}{correlation}")


def _order(order):
    return [*_wrapped(order_words(order), ""),
            *_wrapped("published: " + " > ".join(order.published), "  "),
            *_wrapped("ours: " + " > ".join(order.ours), "  ")]


def _claim(each):
    claim = each.claim
    first, *more = each.answers or [None]
    rows = [_row(claim["id"], published(claim), ours(claim, first),
                 _verdict(each, first)), *_wrapped(what(claim), "  ")]
    rows += _wrapped(source(first), "    ") if first else []
    for answer in more:
        rows.append(_row("", "", ours(claim, answer),
                         verdict.of(claim, answer)))
        rows += _wrapped(source(answer), "    ")
    return rows


def _verdict(each, answer):
    return verdict.of(each.claim, answer) if answer else each.by


def what(claim) -> str:
    conditions = f", {claim['conditions']}" if "conditions" in claim else ""
    statistic = f"{claim['statistic']}: " if _is_told(claim) else ""
    return f"{statistic}{claim['what']}{conditions} ({claim['place']})"


def _is_told(claim):
    return claim.get("statistic") in (
        "mean", "median", "minimum", "maximum", "sd")


def source(answer) -> str:
    return f"{answer.by}: {answer.words}" if answer.words else ""


def published(claim) -> str:
    """The figure, or of several how many there are."""
    if "values" in claim:
        return f"{len(claim['values'])} figures"
    if "value" not in claim:
        return ""
    return (_BOUNDS.get(claim.get("bound"), "")
            + _figure(claim, claim["value"]))


def ours(claim, answer) -> str:
    if answer is None or answer.value is None:
        return ""
    if isinstance(answer.value, dict):
        return f"{len(answer.value)} figures"
    return _figure(claim, answer.value)


def _figure(claim, value):
    """Four digits of ours, and all of what a document prints."""
    if isinstance(value, str):
        return value
    exact = value == claim.get("value") or value == int(value)
    number = (f"{value:.4g}" if abs(value) >= _LONG
              else f"{value:,.12g}" if exact else units.digits(value))
    sign = "+" if claim.get("statistic") == "difference" and value > 0 else ""
    unit = "" if claim["unit"] == "x" else f" {claim['unit']}"
    return f"{sign}{number}{unit}"


def _row(name, *cells):
    # A long cell takes of the room of the next.
    line = name.ljust(_NAME)
    for cell, end in zip(cells, (_NAME + _PUBLISHED,
                                 _NAME + _PUBLISHED + _OURS)):
        line += cell.rjust(max(end - len(line), len(cell) + bool(cell)))
    return f"{line}  {cells[-1]}".rstrip()


def _wrapped(words, indent):
    return textwrap.wrap(units.printable(words), _WIDTH, initial_indent=indent,
                         subsequent_indent=indent, break_on_hyphens=False)
