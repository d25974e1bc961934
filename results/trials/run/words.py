"""A command line as the words that a shell would make of it, without a shell.

Quotes, backslashes and $NAME mean what they mean to sh(1).  Whatever else a
shell would do, such as a pipe, is refused: between the clock and the command
there is no shell, unless it is asked for.
"""

import os
import re
from typing import Mapping

from trials.base.failure import USAGE, Failure

_NAME = re.compile(
    r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")
# What a shell does of these, unless they stand in quotes.
_SHELL = {"|": "a pipe", "&": "a job behind", ";": "a second command",
          "<": "a redirection", ">": "a redirection", "(": "a subshell",
          ")": "a subshell", "`": "the output of a command",
          "*": "a pattern", "?": "a pattern", "[": "a pattern",
          "\n": "a second command"}
# A bracket without its end in the same word is no pattern: it names test(1).
_BRACKETS = re.compile(r"\[[^ \t\n]*\]")
# What a backslash takes the meaning of between double quotes.
_ESCAPED_IN_QUOTES = '$`"\\\n'
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


class _Splitter:
    """Goes through the text once.  `word` is None between two words."""

    def __init__(self, text: str, environment: Mapping[str, str]):
        self.text = text
        self.environment = environment
        self.at = 0
        self.word = None
        self.words: list[str] = []

    def add(self, text: str) -> None:
        self.word = (self.word or "") + text

    def end_word(self) -> None:
        if self.word is not None:
            self.words.append(self.word)
        self.word = None

    def refuse(self, what: str) -> None:
        raise Failure(self.text, f"{what} needs a shell; give --shell", USAGE)

    def incomplete(self, what: str) -> None:
        raise Failure(self.text, f"{what} without its end", USAGE)

    def split(self) -> list[str]:
        while self.at < len(self.text):
            self.step(self.text[self.at])
        self.end_word()
        if self.words and _ASSIGNMENT.match(self.words[0]):
            self.refuse("a variable before the command")
        return self.words

    def step(self, letter: str) -> None:
        if letter in " \t":
            self.end_word()
            self.at += 1
        elif letter == "'":
            self.single_quotes()
        elif letter == '"':
            self.double_quotes()
        elif letter == "\\":
            self.backslash()
        elif letter == "$":
            self.bare_variable()
        elif letter in _SHELL and (
                letter != "[" or _BRACKETS.match(self.text, self.at)):
            self.refuse(f"'{letter}', {_SHELL[letter]},"
                        if letter != "\n" else "a second line")
        elif letter == "#" and self.word is None:
            self.refuse("'#', a comment,")
        elif letter == "~" and self.word is None:
            self.home()
        else:
            self.add(letter)
            self.at += 1

    def single_quotes(self) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            self.incomplete("a quote")
        self.add(self.text[self.at + 1:end])
        self.at = end + 1

    def double_quotes(self) -> None:
        self.add("")
        self.at += 1
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == '"':
                self.at += 1
                return
            self.quoted_step(letter)
        self.incomplete("a quote")

    def quoted_step(self, letter: str) -> None:
        if letter == "$":
            self.add(self.variable())
        elif letter == "`":
            self.refuse(f"'`', {_SHELL['`']},")
        elif letter == "\\" and self.text[self.at + 1:self.at + 2] in \
                tuple(_ESCAPED_IN_QUOTES):
            self.backslash()
        else:
            self.add(letter)
            self.at += 1

    def backslash(self) -> None:
        following = self.text[self.at + 1:self.at + 2]
        if not following:
            self.incomplete("a backslash")
        # A line may go on behind a backslash.
        if following != "\n":
            self.add(following)
        self.at += 2

    def variable(self) -> str:
        """The value of the variable that begins here; a dollar alone is
        itself."""
        found = _NAME.match(self.text, self.at)
        if not found:
            following = self.text[self.at + 1:self.at + 2]
            if following and following in "{(*@#?$!-0123456789":
                self.refuse(f"'${following}'")
            self.at += 1
            return "$"
        name = found[1] or found[2]
        if name not in self.environment:
            raise Failure(self.text, f"${name} is not set", USAGE)
        self.at = found.end()
        return self.environment[name]

    def bare_variable(self) -> None:
        """Without quotes, blanks in the value are between words."""
        value = self.variable()
        parts = value.split()
        if value[:1].isspace():
            self.end_word()
        for number, part in enumerate(parts):
            if number:
                self.end_word()
            self.add(part)
        if parts and value[-1].isspace():
            self.end_word()

    def home(self) -> None:
        name = re.compile("[^/ \t]*").match(self.text, self.at)[0]
        self.add(os.path.expanduser(name))
        self.at += len(name)


def split(text: str, environment: Mapping[str, str]) -> list[str]:
    """The words.  Failure: there is none, or a shell is needed for them."""
    words = _Splitter(text, environment).split()
    if not words or not words[0]:
        raise Failure(repr(text), "names no command", USAGE)
    return words
