"""Tables and notes for a terminal."""

import shutil
import textwrap

from trials.base.units import printable

# Columns of a file or a pipe, so that a record always gives the same report.
_width = 100
_NARROWEST, _WIDEST = 40, 160
# A column of signs is broken into lines, but not narrower than this.
_LEAST_SIGNS = 20


def width() -> int:
    return _width


def follow_terminal(otherwise=_width):
    """Make tables as wide as the terminal, or as $COLUMNS says, or else so many
    columns, from now on."""
    global _width
    columns = shutil.get_terminal_size((otherwise, 0)).columns
    _width = min(max(columns, _NARROWEST), _WIDEST)


def as_lines(text):
    """The text without what a terminal obeys: names come from a record, which
    is not trusted."""
    return "\n".join(map(printable, text.split("\n")))


def wrapped(line):
    return textwrap.fill(line, _width, initial_indent="  ",
                         subsequent_indent="      ")


def grid(headings, rows):
    """Columns as wide as they need be.  `headings` is as "name|>n": the columns
    that begin with > hold figures, which stand to the right.

    When the table would be wider than a terminal, signs are broken into lines,
    and a name that is still too long has a line to itself."""
    columns = headings.split("|")
    rows = [list(map(printable, row)) for row in (
        [column.lstrip(">") for column in columns], *rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    if columns[-1] == "signs":
        excess = sum(widths) + 2 * (len(widths) - 1) - _width
        widths[-1] = max(widths[-1] - max(0, excess),
                         min(widths[-1], _LEAST_SIGNS))
    rest = sum(widths[1:]) + 2 * (len(widths) - 1)
    widths[0] = min(widths[0], max(len(columns[0]), _width - rest))
    lines = []
    for row in (each for row in rows for each in _broken(row, widths[-1])):
        name = row[0]
        if len(name) > widths[0]:
            lines.append(name)
            name = ""
        cells = [name.ljust(widths[0])]
        cells += [cell.rjust(width) if column.startswith(">")
                  else cell.ljust(width) for column, cell, width
                  in zip(columns[1:], row[1:], widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _broken(row, width):
    """The row, and further ones with what of its last cell does not fit."""
    # A sign of two words, as "8 outliers", stays together.
    signs = ", ".join(sign.replace(" ", "\u00a0")
                      for sign in row[-1].split(", "))
    lines = [line.replace("\u00a0", " ")
             for line in textwrap.wrap(signs, max(1, width)) or [""]]
    return [[*row[:-1], lines[0]],
            *([*[""] * (len(row) - 1), line] for line in lines[1:])]
