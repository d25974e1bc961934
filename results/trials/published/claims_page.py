"""One HTML page: claim by claim, with the documents' figures drawn beside
ours."""

from trials.published import claims_table, figures, report, verdict
from trials.report import frame, markup

_TITLE = "blinksort: what five documents say, and what we find"
_HEADS = "claim|what|>published|>ours|verdict|how"


def render(found) -> str:
    pictures = figures.by_document(found)
    return frame.document(_TITLE, "".join((
        frame.header(_TITLE, None, "; ".join(claims_table.summary(found))),
        markup.paragraph(claims_table.LEGEND),
        *(_document(document, answered, pictures)
          for document, answered in found.documents))))


def _document(document, answered, pictures):
    name = document["document"]
    return markup.section(
        name, document["title"],
        markup.paragraph(claims_table.cited(document), "muted"),
        markup.paragraph(document["machine"]),
        *map(frame.figure, pictures.get(name, ())),
        *(markup.table(*each) for each in figures.tables(answered)),
        *(_order(order) for order in report.orders(answered)),
        markup.table("claim by claim", _HEADS,
                     [row for each in answered for row in _rows(each)]))


def _rows(each):
    claim = each.claim
    first, *more = each.answers or [None]
    yield [claim["id"], claims_table.what(claim),
           claims_table.published(claim), *_ours(each, first)]
    for answer in more:
        yield ["", "", "", *_ours(each, answer)]


def _ours(each, answer):
    if answer is None:
        return ["", markup.Cell(each.by, "doubtful"), ""]
    words = verdict.of(each.claim, answer)
    kind = {"not built": "bad", "opposite sign": "doubtful"}.get(words)
    return [claims_table.ours(each.claim, answer),
            markup.Cell(words, kind) if kind else words,
            claims_table.source(answer)]


def _order(order):
    return markup.table(claims_table.order_words(order), "|published|ours", [
        [str(place), *pair] for place, pair
        in enumerate(zip(order.published, order.ours), 1)])
