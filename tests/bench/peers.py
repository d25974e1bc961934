"""Programs that sort the benchmark's records from file to file, as well as we
know how to use them, and cp beside them."""

import functools
from pathlib import Path

from duel import Contestant
from files import check_sorted
from programs import BUILD, PYTHON, ROOT, Skip, built_by_gxx, quiet, tool

SCRIPT = ROOT / "tests/bench/sort_peer.py"
# Each peer imports these modules; the first one has the version.
MODULES = {"numpy": "numpy", "polars": "polars", "duckdb": "duckdb, pyarrow"}


@functools.cache
def version(name):
    found = quiet([PYTHON, "-c", f"import {MODULES[name]}; "
                   f"print({name}.__version__)"])
    if found is None:
        raise Skip(f"{Path(PYTHON).name} has no {MODULES[name]} (make "
                   "bench-deps, or BENCH_PYTHON)")
    return found


def by_python(place, name, kind, check, title=None):
    """Sort by a library of Python's."""
    found = version(name)
    return Contestant(
        f"{title} {found}" if title else name,
        [PYTHON, str(SCRIPT), name, kind, str(place.input),
         str(place.output)], check=check)


def gnu_sort(place):
    said = quiet([tool("sort"), "--version"]) or ""
    return Contestant(
        f"GNU sort {said.partition(chr(10))[0].rpartition(' ')[2]}",
        [tool("sort"), "--parallel=2", "-S", "2G", "-o", str(place.output),
         str(place.input)], check=check_sorted(place.input))


def vqsort(place):
    made = built_by_gxx("bench_vqsort", BUILD, "libhwy-dev", "-O3",
                        "-lhwy_contrib", "-lhwy")
    return Contestant(f"VQSort {quiet([made, '--version'])}",
                      [made, str(place.input), str(place.output)],
                      check=check_sorted(place.input))


def peers(place):
    check = check_sorted(place.input)
    return [vqsort(place),
            by_python(place, "polars", "ascii", check, "polars"),
            by_python(place, "duckdb", "ascii", check, "DuckDB"),
            gnu_sort(place)]
