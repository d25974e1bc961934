"""A command line as the words that a shell would make of it, without a shell.

Quotes, backslashes and $NAME mean what they mean to sh(1).  Whatever else a
shell would do, such as a pipe, is refused: between the clock and the command
there is no shell, unless it is asked for.
"""

import os
import re
from typing import Mapping

from trials.base.failure import USAGE, Failure

# What a shell does of these, unless they stand in quotes.
_SHELL = {"|": "a pipe", "&": "a job behind", ";": "a second command",
          "<": "a redirection", ">": "a redirection", "(": "a subshell",
          ")": "a subshell", "`": "the output of a command",
          "*": "a pattern", "?": "a pattern", "[": "a pattern"}
# What only begins something, if it stands alone.
_OPEN = {"'": "a quote", '"': "a quote", "\\": "a backslash"}
_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_ASSIGNMENT = re.compile(_NAME + "=")
_DOLLAR = (rf"(?P<dollar>\$(?:(?P<name>{_NAME})|\{{(?P<braced>{_NAME})\}}"
           r"|(?P<special>[{(*@#?$!0-9-]))?)")
# What stands between double quotes beside plain text.
_IN_QUOTES = re.compile(rf'\\(?P<escaped>[$`"\\])|(?P<joint>\\\n)|{_DOLLAR}'
                        '|(?P<shell>`)')
# A bracket without its end in the same word is no pattern: it names test(1).
_PIECES = (r"(?P<blanks>[ \t]+)|(?P<joint>\\\n)|'(?P<single>[^']*)'"
           r'|"(?P<double>(?:\\.|[^"\\])*)"|\\(?P<escaped>.)|' + _DOLLAR
           + r"|(?P<shell>[|&;<>()`*?\n]|\[(?=[^ \t\n]*\]))|(?P<plain>.)")
_PIECE = re.compile(_PIECES, re.DOTALL)
_FIRST_PIECE = re.compile(rf"(?P<comment>#)|(?P<home>~[^/ \t]*)|{_PIECES}",
                          re.DOTALL)


class _Splitter:
    """Goes through the text once.  `word` is None between two words."""

    def __init__(self, text: str, environment: Mapping[str, str]):
        self.text = text
        self.environment = environment
        self.word = None
        self.words: list[str] = []

    def end_word(self) -> None:
        if self.word is not None:
            self.words.append(self.word)
        self.word = None

    def refuse(self, what: str) -> None:
        raise Failure(self.text, f"{what} needs a shell; give --shell", USAGE)

    def split(self) -> list[str]:
        at = 0
        while at < len(self.text):
            piece = (_FIRST_PIECE if self.word is None else _PIECE).match(
                self.text, at)
            if piece["blanks"]:
                self.end_word()
            elif piece["dollar"]:
                self.add_bare(self.meant(piece))
            elif not piece["joint"]:
                self.word = (self.word or "") + self.meant(piece)
            at = piece.end()
        self.end_word()
        if self.words and _ASSIGNMENT.match(self.words[0]):
            self.refuse("a variable before the command")
        return self.words

    def meant(self, piece: re.Match) -> str:
        """The text that a piece stands for."""
        kind, found = piece.lastgroup, piece[piece.lastgroup]
        if kind == "shell":
            self.refuse(f"'{found}', {_SHELL[found]}," if found != "\n"
                        else "a second line")
        if kind == "comment":
            self.refuse("'#', a comment,")
        if kind == "home":
            return os.path.expanduser(found)
        if kind == "dollar":
            return self.variable(piece)
        if kind == "double":
            return _IN_QUOTES.sub(self.meant, found)
        if kind == "joint":  # where a line goes on
            return ""
        if kind == "plain" and found in _OPEN:
            raise Failure(self.text, f"{_OPEN[found]} without its end", USAGE)
        return found

    def variable(self, piece: re.Match) -> str:
        """The value of the variable; a dollar alone is itself."""
        if piece["special"]:
            self.refuse(f"'{piece['dollar']}'")
        name = piece["name"] or piece["braced"]
        if not name:
            return "$"
        if name not in self.environment:
            raise Failure(self.text, f"${name} is not set", USAGE)
        return self.environment[name]

    def add_bare(self, value: str) -> None:
        """Without quotes, blanks in the value are between words."""
        first, *others = re.split(r"\s+", value)
        if first:
            self.word = (self.word or "") + first
        for other in others:
            self.end_word()
            self.word = other or None


def split(text: str, environment: Mapping[str, str]) -> list[str]:
    """The words.  Failure: there is none, or a shell is needed for them."""
    words = _Splitter(text, environment).split()
    if not words or not words[0]:
        raise Failure(repr(text), "names no command", USAGE)
    return words
