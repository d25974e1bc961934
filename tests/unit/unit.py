"""Runs the unittest cases of the calling script, as tests/run wants them.

A test_NAME.py of this folder ends with

    if __name__ == "__main__":
        unit.main()

Each test method prints one line that tests/run counts: "ok CASE", "FAIL CASE"
or "skip CASE: why", CASE being the method's name without "test_".  What it says
when it fails goes before that line.  Names on the command line choose cases.
The modules under test are found as they are by the programs: results/ is on
the path.
"""

import sys
import traceback
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "results"))
sys.dont_write_bytecode = True


def run_case(case):
    name = case._testMethodName.removeprefix("test_")
    result = unittest.TestResult()
    case.run(result)
    for _, text in result.failures + result.errors:
        sys.stdout.write(text)
    for _, why in result.skipped:
        print(f"skip {name}: {why}")
        return True
    good = result.wasSuccessful()
    print(f"{'ok' if good else 'FAIL'} {name}", flush=True)
    return good


def cases_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases_of(item)
        else:
            yield item


def main():
    wanted = sys.argv[1:]
    suite = unittest.defaultTestLoader.loadTestsFromModule(
        sys.modules["__main__"])
    good = True
    try:
        for case in cases_of(suite):
            if not wanted or case._testMethodName[5:] in wanted:
                good &= run_case(case)
    except Exception:
        traceback.print_exc()
        good = False
    sys.exit(0 if good else 1)
