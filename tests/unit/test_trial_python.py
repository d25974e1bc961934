"""All Python is what Python 3.10 reads, as README says; an older one is told so
in one line."""

import ast
import io
import subprocess
import sys
import unittest

import unit

LEAST = (3, 10)
LAUNCHERS = [unit.ROOT / "results" / name
             for name in ("blinkreport", "blinktrial")]
# ast.parse() takes a newer Python's grammar in a few places.
STARRED = "a star in a subscript, without parentheses, is of Python 3.11"


def sources():
    found = [path for folder in ("results", "tests", "src", "shell", "tune")
             for path in sorted((unit.ROOT / folder).rglob("*.py"))]
    return [*found, *LAUNCHERS]


def newer(text: str):
    """What Python 3.10 can't read: (line, why) of the first, or None."""
    try:
        tree = ast.parse(text, feature_version=LEAST)
    except SyntaxError as error:
        return error.lineno, error.msg
    lines = io.StringIO(text).readlines()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Subscript):
            continue
        parts = node.slice
        if not isinstance(parts, ast.Tuple) or not any(
                isinstance(part, ast.Starred) for part in parts.elts):
            continue
        # The tree of one in parentheses is the same, but begins with them.
        begins = lines[parts.lineno - 1].encode()[parts.col_offset:]
        if not begins.startswith(b"("):
            return node.lineno, STARRED
    return None


class Version(unittest.TestCase):
    def test_all_is_of_the_least(self):
        found = sources()
        self.assertGreater(len(found), 100)
        for path in found:
            self.assertIsNone(newer(path.read_text()), path)

    def test_newer_is_found(self):
        for text in ("a[b, *c] = 1\n", "try:\n    a\nexcept* b:\n    c\n"):
            self.assertIsNotNone(newer(text), text)
        self.assertIsNone(newer("a[(b, *c)] = 1\n"))

    def test_older_is_told(self):
        """Also a Python that can't read the modules."""
        for path in LAUNCHERS:
            # What the launcher itself has is of 3.6.
            ast.parse(path.read_text(), feature_version=(3, 6))
            done = subprocess.run(
                [sys.executable, "-c",
                 "import runpy, sys\n"
                 "sys.version_info = (3, 9, 18)\n"
                 "runpy.run_path(sys.argv[1], run_name='__main__')", path],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (
                5, "", f"{path.name}: Python: 3.10 or newer is needed, and "
                "this is 3.9\n"))


if __name__ == "__main__":
    unit.main()
