"""Where the programs are, ours and the system's."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("BUILD", "build")
BIN = Path(os.environ.get("BIN", ROOT / "bin"))
# Where an older build's programs are, or None.
AGAINST = os.environ.get("BENCH_AGAINST") and Path(
    os.environ["BENCH_AGAINST"]).resolve()
# One that has numpy, polars, duckdb and pyarrow, which are in no Debian
# package: make bench-deps makes it.
PYTHON = os.environ.get("BENCH_PYTHON") or next(
    (str(path) for path in [BUILD / "peers/bin/python"] if path.exists()),
    "/usr/bin/python3")


class Skip(Exception):
    """This cannot be measured here; the reason."""


class Failed(Exception):
    """A program failed or its output is wrong."""


def tool(name):
    """Path of a program of the system, searched off the clock."""
    path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not path:
        raise Skip(f"there is no {name}")
    return path


def built(name):
    """Path of a test program, the one that a user's build would be first."""
    for variant in ("musl", "dyn"):
        for room in ("bench", "programs"):
            path = BUILD / variant / "tests" / room / name
            if path.exists():
                return str(path)
    raise Skip(f"{name} is not built")


@functools.cache
def built_by_gxx(name, folder, package, *options):
    """Path of tests/bench/NAME.cc, compiled into the folder: the project itself
    needs neither C++ nor the library that it is about."""
    made = Path(folder) / name
    source = ROOT / f"tests/bench/{name}.cc"
    # The libraries among the options come after the source.
    if quiet([tool("g++"), "-w", "-fopenmp", "-o", str(made), str(source),
              *options]) is None:
        raise Skip(f"{name}.cc can't be compiled (make bench-deps installs "
                   f"{package})")
    return str(made)


def program(name):
    return str(BIN / name)


def older(word):
    """A word of a command: of one of our programs, that of the older build."""
    path = Path(word)
    return str(AGAINST / path.name) if path.parent == BIN else word


def quiet(command):
    """Run off the clock; its output, or None when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def must_run(*command):
    """Run off the clock; the bytes of its output."""
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        why = done.stderr.decode("utf-8", "replace").strip()[-200:]
        raise Failed(f"{Path(command[0]).name}: status {done.returncode}: "
                     f"{why}")
    return done.stdout
