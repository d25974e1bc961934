"""Every format of blinkreport, of records with little or nothing in them, and
of those in results/runs."""

import importlib.machinery
import importlib.util
import tempfile
import unittest
from pathlib import Path

import trial_samples
import unit
from trials.record import store
from trials.report import changes
from trials.report.study import Study

RUNS = unit.ROOT / "results" / "runs"


def program():
    """The file blinkreport as a module: it knows its formats."""
    path = str(unit.ROOT / "results" / "blinkreport")
    loader = importlib.machinery.SourceFileLoader("blinkreport", path)
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("blinkreport", loader))
    loader.exec_module(module)
    return module


BLINKREPORT = program()


def failing(*names):
    """Times of a sweep in which these configurations fail each time."""
    def times(scenario, name, block, rng):
        if name in names or "all" in names:
            return None
        return trial_samples.ordinary_times(scenario, name, block, rng)
    return times


def failed_rank(trial):
    """What blinktrial writes of a rank that has failed."""
    if trial["trial"] == 1:
        trial.update(outcome="failed", exit_status=4, whole_ns=None)
        for rank in trial["ranks"]:
            rank.update(exit_status=4, phases_ns=None, elapsed_ns=None)


SMALL = {
    "no trial": {"most": 0}, "one trial": {"most": 1},
    "two trials": {"most": 2},
    "all failed": {"times": failing("all")},
    "reference failed": {"times": failing("reference")},
    "variants failed": {"times": failing("threads=1", "threads=4",
                                         "kernel=scalar")},
    "all equal": {"times": lambda *_: 20_000_000},
    "a rank failed": {"alter": failed_rank, "ranks": 2},
}


class Formats(unittest.TestCase):
    def render(self, folder, what):
        study = Study(store.read(str(folder)))
        for kind, function in BLINKREPORT.FORMATS["report"].items():
            with self.subTest(record=what, format=kind):
                self.assertTrue(BLINKREPORT.made_into(
                    study, "report", function).endswith("\n"))
        with self.subTest(record=what, format="compare"):
            result = changes.compare(study, study)
            self.assertTrue(changes.text(result))
            changes.document(result)

    def test_little_in_them(self):
        with tempfile.TemporaryDirectory() as folder:
            for what, options in SMALL.items():
                for sweep_text in (None, trial_samples.SWEEP):
                    path = Path(folder, f"{what} {bool(sweep_text)}")
                    trial_samples.make_record(
                        path, **{"trials": 6, "sweep_text": sweep_text,
                                 **options})
                    self.render(path, path.name)

    def test_recorded(self):
        folders = sorted(path.parent for path in RUNS.glob("*/design.json"))
        self.assertTrue(folders)
        for folder in folders:
            self.render(folder, folder.name)


if __name__ == "__main__":
    unit.main()
