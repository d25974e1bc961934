"""Imports in results/trials never go up: see trial_floors.txt."""

import ast
import tempfile
import unittest
from pathlib import Path

import unit

TABLE = unit.ROOT / "tests" / "unit" / "trial_floors.txt"
PACKAGE = "trials"


def read_floors(text):
    pairs = [line.split() for line in text.splitlines()
             if line.strip() and not line.startswith("#")]
    return {name: int(floor) for floor, name in pairs}


def imported(tree):
    """Names of the package's own modules, wherever they are imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                module = f"{PACKAGE}.{module}".rstrip(".")
            names = [module]
            if module == PACKAGE:
                names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == PACKAGE and len(parts) > 1:
                yield parts[1]


def complaints(folder, floors):
    found = []
    for path in sorted(folder.glob("*.py")):
        name = path.stem
        others = sorted(set(imported(ast.parse(path.read_text()))))
        if name == "__init__":
            found += [f"__init__: imports {other}" for other in others]
            continue
        if name not in floors:
            found.append(f"{name}: has no floor")
            continue
        for other in others:
            if other not in floors:
                found.append(f"{name}: imports {other}, that has no floor")
            elif floors[other] > floors[name]:
                found.append(f"{name}, floor {floors[name]}: imports {other}, "
                             f"floor {floors[other]}")
    return found


class Layers(unittest.TestCase):
    def test_package_keeps_to_its_floors(self):
        floors = read_floors(TABLE.read_text())
        self.assertEqual(complaints(unit.ROOT / "results" / PACKAGE, floors),
                         [])

    def test_floors_say_what_is_wrong(self):
        floors = {"low": 0, "high": 1}
        for source, wanted in (
                ("import os\nfrom trials import low\n", []),
                ("import trials.high\n",
                 ["low, floor 0: imports high, floor 1"]),
                ("def f():\n    from trials.high import x\n",
                 ["low, floor 0: imports high, floor 1"]),
                ("from . import high\n",
                 ["low, floor 0: imports high, floor 1"]),
                ("from .high import x\n",
                 ["low, floor 0: imports high, floor 1"]),
                ("from trials import new\n",
                 ["low: imports new, that has no floor"])):
            with self.subTest(source), tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "low.py").write_text(source)
                self.assertEqual(complaints(Path(folder), floors), wanted)

    def test_floors_know_every_module(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "stray.py").write_text("")
            self.assertEqual(complaints(Path(folder), {}),
                             ["stray: has no floor"])


if __name__ == "__main__":
    unit.main()
