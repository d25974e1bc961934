"""results/trials is layered: an import may only point to the same folder or to
one on a lower layer."""

import ast
import tempfile
import unittest
from pathlib import Path

import unit

# From the lowest layer up.  Each folder is a layer of its own.
LAYERS = ("base", "statistics", "record", "machine", "scenario", "cost", "run",
          "drawing", "report", "characterise", "forecast", "rates", "simulated",
          "published")


def imported(tree):
    """The modules that are imported anywhere, as trials.FOLDER.NAME."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (f"{module}.{alias.name}" for alias in node.names)


def upward(root):
    """FILE: IMPORT for each import below root that the layers do not allow."""
    found = []
    for path in sorted(root.glob("**/*.py")):
        folder = path.relative_to(root).parts[0]
        level = LAYERS.index(folder) if folder in LAYERS else -1
        allowed = LAYERS[:level + 1]
        for name in imported(ast.parse(path.read_text())):
            package, _, module = name.partition(".")
            if package in ("", root.name) \
                    and module.split(".")[0] not in allowed:
                found.append(f"{path.relative_to(root)}: {name}")
    return found


class Layers(unittest.TestCase):
    def test_imports_point_down(self):
        self.assertEqual(upward(unit.ROOT / "results" / "trials"), [])

    def test_each_folder_is_a_layer(self):
        folders = {path.parent.name for path
                   in (unit.ROOT / "results/trials").glob("*/*.py")}
        self.assertEqual(folders, set(LAYERS))

    def test_rule_finds_what_points_up(self):
        for folder, source, wanted in (
                ("base", "import os\nfrom trials.base import units\n", []),
                ("run", "from trials.base.failure import Failure\n", []),
                ("base", "import trials.run.agent\n", ["trials.run.agent"]),
                ("base", "def f():\n    from trials.run.agent import main\n",
                 ["trials.run.agent.main"]),
                ("base", "from trials import run\n", ["trials.run"]),
                ("run", "from ..base import units\n", ["..base.units"]),
                ("run", "from . import agent\n", ["..agent"]),
                ("run", "from trials import new\n", ["trials.new"]),
                ("new", "from trials.base import units\n",
                 ["trials.base.units"])):
            with self.subTest(source), tempfile.TemporaryDirectory() as folder_:
                root = Path(folder_) / "trials"
                (root / folder).mkdir(parents=True)
                (root / folder / "module.py").write_text(source)
                self.assertEqual(
                    upward(root),
                    [f"{folder}/module.py: {name}" for name in wanted])


if __name__ == "__main__":
    unit.main()
