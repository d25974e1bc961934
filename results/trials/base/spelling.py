"""What a user may have meant by a word that no program knows."""

import difflib
from typing import Iterable


def meant(word: str, known: Iterable[str]) -> str | None:
    """The known word that this one begins, as blinksort tells it of options,
    or else one that differs by a slip or two."""
    known = list(known)
    for each in known:
        if word and each.startswith(word):
            return each
    return next(iter(difflib.get_close_matches(word, known, 1, 0.8)), None)


def no_such_option(word: str, known: Iterable[str]) -> str:
    """Why "--name=value" is refused."""
    name = meant(word.partition("=")[0],
                 (each for each in known if each.startswith("--")))
    # "--" alone, or a letter, begins too many.
    if name and word.startswith("--") and len(word) > 2:
        return f"no such option; is {name} meant?"
    return "no such option; see --help"
