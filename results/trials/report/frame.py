"""What all pages have in common: the head, figures, the environment.

A page needs nothing else: no script, no font, no picture from anywhere.
"""

import json
from datetime import datetime, timezone

from trials.drawing import style
from trials.machine import environment as machine
from trials.report import machine_facts, markup, stylesheet


def document(title, unix_ns, words, *parts) -> str:
    """`unix_ns`: when, or None; `words` stand below the title."""
    if unix_ns is not None:
        when = datetime.fromtimestamp(unix_ns // 10**9, timezone.utc)
        words = f"{when:%Y-%m-%d %H:%M} UTC, {words}"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n'
        '<meta charset="utf-8">\n<meta name="viewport" '
        'content="width=device-width, initial-scale=1">\n'
        f"<title>{markup.text(title)}</title>\n"
        f"<style>{stylesheet.TEXT}</style>\n</head>\n<body>\n<main>\n"
        f"<header>\n<h1>{markup.text(title)}</h1>\n"
        f"{markup.paragraph(words, 'muted')}</header>\n"
        f"{''.join(parts)}</main>\n</body>\n</html>\n")


def figure(picture) -> str:
    """The picture in both widths, of which the page shows one."""
    images = "".join(
        f'<div class="{kind}">\n{picture.svg(width)}</div>\n'
        for kind, width in (("wide", style.WIDE), ("narrow", style.NARROW)))
    return (f"<figure>\n{images}<figcaption>{markup.text(picture.caption)}"
            "</figcaption>\n</figure>\n")


def topic(picture, *parts) -> str:
    """A section of a picture and what belongs to it."""
    return markup.section(picture.name, picture.title, figure(picture), *parts)


# --- the machine --------------------------------------------------------------

def environment(document, *parts, of="") -> str:
    """What a reader asks first, then all that is known.  `of`: which machine it
    is, if there are several."""
    before = machine_facts.before(document)
    short = markup.table(
        f"the machine {of}before the last session", "what|found",
        [[words, shown(value)]
         for words, value in machine_facts.shown(before)])
    whole = "".join(
        markup.details(f"all that is known, session {number}",
                       _whole(f"session {number}, before",
                              session["before"]))
        for number, session in enumerate(machine_facts.sessions(document), 1))
    return markup.section(
        "environment", "Environment", *parts,
        f'<div class="environment">\n{short}</div>\n' if short else "",
        whole)


def shown(value) -> str:
    """A value of an environment, on a line."""
    if value is None:
        return "unknown"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _whole(caption, described) -> str:
    body = markup.table(caption, "what|found", [
        [key, shown(value)]
        for key, value in machine.flatten(described).items()])
    return f'<div class="environment">\n{body}</div>\n'
