"""One HTML page: claim by claim, with the documents' figures drawn beside
ours."""

import itertools

from trials.published import claims_table, figures, report
from trials.report import frame, markup

_TITLE = "What documents say of sorts, and blinksort's answers"
_HEADS = ("claim", ">published", ">ours", "verdict", "what", "how")
_KINDS = {"not built": "bad", "opposite sign": "doubtful",
          report.NO_RECORD: "doubtful"}


def render(found) -> str:
    pictures = figures.by_document(found)
    return frame.document(
        _TITLE, None, "; ".join(claims_table.summary(found)),
        markup.paragraph(claims_table.LEGEND),
        *(_document(document, answered, pictures)
          for document, answered in found.documents))


def _document(document, answered, pictures):
    name = document["document"]
    return markup.section(
        name, document["title"],
        markup.paragraph(claims_table.cited(document), "muted"),
        markup.paragraph(document["machine"]),
        *map(markup.paragraph, filter(None, [figures.DIAGRAMS.get(name)])),
        *map(frame.figure, pictures.get(name, ())),
        *(markup.table(*each) for each in figures.tables(answered)),
        *(_table(name, [row for each in members for row in _rows(each)])
          for name, members in report.groups(answered)),
        *(_order(order) for order in report.orders(answered)))


def _table(name, rows):
    """Without the columns that are empty."""
    filled = [any(row[column] for row in rows)
              for column in range(len(_HEADS))]
    return markup.table(
        name.capitalize(), "|".join(itertools.compress(_HEADS, filled)),
        [list(itertools.compress(row, filled)) for row in rows])


def _rows(each):
    claim = each.claim
    names = (claim["id"], claims_table.published(claim),
             claims_table.what(claim))
    for ours, words, how in claims_table.cells(each):
        if words in _KINDS:
            words = markup.Cell(words, _KINDS[words])
        yield [*names[:2], ours, words, names[2], how]
        names = "", "", ""


def _order(order):
    return markup.table(claims_table.order_words(order), "|published|ours", [
        [str(place), *pair] for place, pair
        in enumerate(zip(order.published, order.ours), 1)])
