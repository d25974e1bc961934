"""HTML, in which nothing of a record can be more than text."""

from html import escape
from typing import NamedTuple

from trials.base import units


class Cell(NamedTuple):
    """A cell that should be seen: "bad", "doubtful", "good"."""

    text: str
    kind: str


def text(value) -> str:
    """The value as HTML text on one line."""
    return escape(units.printable(value))


def lines(value) -> str:
    """The text as it is, in its lines: for what stands in <pre>."""
    return "\n".join(text(line) for line in str(value).splitlines())


def paragraph(words, kind="") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f"<p{attribute}>{text(words)}</p>\n"


def section(name, title, *parts) -> str:
    body = "".join(parts)
    if not body:
        return ""
    return (f'<section id="{name}" aria-labelledby="{name}-title">\n'
            f'<h2 id="{name}-title">{text(title)}</h2>\n{body}</section>\n')


def items(words) -> str:
    body = "".join(f"<li>{text(word)}</li>\n" for word in words)
    return f"<ul>\n{body}</ul>\n" if body else ""


def doubt(*parts) -> str:
    """What a reader must know before believing the rest."""
    body = "".join(parts)
    return f'<div class="doubt">\n{body}</div>\n' if body else ""


def details(summary, body) -> str:
    return f"<details><summary>{text(summary)}</summary>\n{body}</details>\n"


def pre(value) -> str:
    return f"<pre>{lines(value)}</pre>\n"


def table(caption, headings, rows) -> str:
    """Scrolls in a box of its own where it is wider than the page.  The first
    column names the row.  `headings` is as "name|>n": the columns that begin
    with > hold figures, which stand to the right to be compared."""
    if not rows:
        return ""
    columns = headings.split("|")
    heads = "".join(
        f'<th scope="col"{_kind(column)}>{text(column.lstrip(">"))}</th>'
        for column in columns)
    body = "".join(_row(columns, row) for row in rows)
    label = f' role="region" tabindex="0" aria-label="{text(caption)}"'
    return (f'<div class="scroll"{label}>\n<table>\n'
            f"<caption>{text(caption)}</caption>\n"
            f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody>\n"
            "</table>\n</div>\n")


def _row(columns, row):
    cells = []
    for number, (column, cell) in enumerate(zip(columns, row)):
        mark = _kind(column, cell)
        words = text(cell.text if isinstance(cell, Cell) else cell)
        cells.append(f'<th scope="row"{mark}>{words}</th>' if number == 0
                     else f"<td{mark}>{words}</td>")
    return f"<tr>{''.join(cells)}</tr>\n"


def _kind(column, cell=None):
    kinds = ["figures"] if column.startswith(">") else []
    if isinstance(cell, Cell):
        kinds.append(cell.kind)
    return f' class="{" ".join(kinds)}"' if kinds else ""
