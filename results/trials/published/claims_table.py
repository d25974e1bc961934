"""Claims and answers as text, 80 columns wide."""

import textwrap

from trials.base import units
from trials.base.text_table import as_lines
from trials.published import answers, report, verdict
from trials.record import claims

_WIDTH = 80
_NAME, _PUBLISHED, _OURS = 26, 18, 14
LEGEND = (
    "2 times: ours is twice the published figure; the same: it differs by at "
    "most 5 %. Ours are of other machines than the document's, whose sections "
    "and figures stand in parentheses. See blinkreport-published(7).")
# Longer numbers have an exponent.
_LONG = 1e10


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
             *_wrapped(document["machine"], "  ")]
    for name, members in report.groups(answered):
        lines += ["", _row(name.upper(), "published", "ours", "verdict")]
        for each in members:
            lines += _claim(each)
    for order in report.orders(answered):
        lines += ["", *_order(order)]
    return "\n".join(lines)


def order_words(order) -> str:
    return (f"order of {len(order.ours)} effects by {order.statistic}, "
            f"{order.scenario}, in {order.record}; Spearman's correlation "
            f"{order.correlation:.2f}")


def _order(order):
    return [*_wrapped(order_words(order), ""),
            *_wrapped("published: " + " > ".join(order.published), "  "),
            *_wrapped("ours: " + " > ".join(order.ours), "  ")]


def _claim(each):
    claim = each.claim
    (figure, words, how), *more = cells(each)
    rows = [_row(claim["id"], published(claim), figure, words),
            *_wrapped(what(claim), "  "), *_wrapped(how, "    ")]
    for figure, words, how in more:
        rows += [_row("", "", figure, words), *_wrapped(how, "    ")]
    return rows


def cells(each) -> list:
    """(ours, verdict, how it was got) of each answer, or of there being none.
    """
    if not each.answers:
        return [("", each.by, f"needs {answers.needed(each.claim)}")]
    found = []
    for answer in each.answers:
        words = verdict.of(each.claim, answer)
        by = "" if words == answer.by else f"{answer.by}: "
        found.append((ours(each.claim, answer), words, by + answer.words))
    return found


def what(claim) -> str:
    """With all its figures, if it has several."""
    statistic = f"{claim['statistic']}: " if _is_told(claim) else ""
    conditions = f", {claim['conditions']}" if "conditions" in claim else ""
    values = "; ".join(f"{label}: {value:,.12g}" for label, value
                       in claim.get("values", {}).items())
    return (f"{statistic}{claim['what']}{conditions}"
            + (f": {values} {claim['unit']}" if values else "")
            + f" ({claim['place']})")


def _is_told(claim):
    """Unless the words tell it."""
    return claim.get("statistic") in (
        "mean", "median", "minimum", "maximum", "sd") \
        and not claim["what"].startswith(("large", "mean", "most", "spread"))


def published(claim) -> str:
    """The figure, or of several how many there are."""
    if "values" in claim:
        return f"{len(claim['values'])} figures"
    if "value" not in claim:
        return ""
    if claim["statistic"] == "difference" and claim["value"] == 0:
        return "more" if claim.get("bound") == "above" else "no effect"
    return claims.bound(claim) + _figure(claim, claim["value"], True)


def ours(claim, answer) -> str:
    values = answer.value
    if isinstance(values, dict):
        if len(set(values.values())) > 1:
            return f"{len(values)} figures"
        values = next(iter(values.values()))
    return "" if values is None else _figure(
        claim, values, answer.by not in ("measured", "modelled"))


def _figure(claim, value, is_exact):
    """Four digits of what is measured, and all of what a document prints."""
    if isinstance(value, str):
        return value
    if abs(value) >= _LONG:
        number = f"{value:.4g}"
    elif is_exact or value == int(value):
        number = f"{value:,.12g}"
    else:
        number = f"{value:,.0f}" if abs(value) >= 1000 else units.digits(value)
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
