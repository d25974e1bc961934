"""trials.run.words: a command line as a shell would split it, and what a shell
is needed for."""

import subprocess
import unittest

import unit
from trials.base.failure import Failure
from trials.run import words

ENVIRONMENT = {"A": "one", "TWO": " b  c ", "EMPTY": "", "STAR": "*",
               "HOME": "/home/x"}


class Words(unittest.TestCase):
    def test_as_sh_does(self):
        """The reference is /bin/sh itself, which prints the words."""
        for text in ("a b", "  a\t b  ", "'a b' c", '"a b"c', r"a\ b", r"\'",
                     "''", "a ''", '"$A"', "$A", "${A}x", "x$TWO", "$TWO",
                     "x $TWO y",
                     '"$TWO"', "$EMPTY a", "a$EMPTY", '"$EMPTY"', "'$A'",
                     r'"\$A \" \\ \a"', r"\$A", "a'b'\"c\"d", '"a\\\nb"',
                     "a\\\nb", "x a=b", "a#b", "a~b",
                     "{a,b}", '"*"', "'|'", r"\;", '"a;b"', "$", "a$ b",
                     '"$"', "%", "x!", "a]", "[ a ]", "a[", "[[ b", "'['"):
            with self.subTest(text):
                said = subprocess.run(
                    ["/bin/sh", "-c", "printf '%s\\0' x " + text],
                    env=ENVIRONMENT, capture_output=True, check=True).stdout
                wanted = said.decode().split("\0")[1:-1]
                self.assertEqual(words.split("x " + text, ENVIRONMENT)[1:],
                                 wanted)

    def test_shell_needed(self):
        for text in ("a | b", "a & b", "a; b", "a > b", "a < b", "(a)",
                     "`a`", "a *", "a?", "[ab]", "a[b]c", "$(a)", "${A:-b}",
                     "$1", "$?", "$$", '"$(a)"', '"`a`"', "a # b", "a\nb",
                     "A=b c"):
            with self.subTest(text):
                with self.assertRaisesRegex(Failure, "--shell") as caught:
                    words.split(text, ENVIRONMENT)
                self.assertEqual(caught.exception.status, 2)

    def test_refused(self):
        for text, why in (("", "names no command"), ("  ", "no command"),
                          ("'' a", "no command"), ("$EMPTY", "no command"),
                          ("'a", "without its end"), ('"a', "without its end"),
                          ("a\\", "without its end"), ("$B", "not set"),
                          ('"${B}"', "not set")):
            with self.subTest(text):
                with self.assertRaisesRegex(Failure, why) as caught:
                    words.split(text, ENVIRONMENT)
                self.assertEqual(caught.exception.status, 2)

    def test_a_value_is_not_split_again(self):
        """What a variable holds means nothing to the splitter."""
        self.assertEqual(words.split("a $STAR", ENVIRONMENT), ["a", "*"])


if __name__ == "__main__":
    unit.main()
