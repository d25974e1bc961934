"""What is measured: the contestants, their input, and its place."""

import json

from duel import Contestant
from files import (RECORD_BYTES, SHAPES, check_copied, check_sorted,
                   drop_cached, make_input)
from memory import back_memory, settle_memory
from places import PLACES
from peers import MODULES, by_python, gnu_sort, peers
from programs import must_run, program, tool
from typed_keys import blinksort_typed, check_in_order, make_numbers


def blinksort(place, *options, name="blinksort", source=None, before=None):
    source = source or place.input
    return Contestant(
        name, [program("blinksort"), *options, str(source), "-o",
               str(place.output)],
        before=before, check=check_sorted(source))


def copy(place, sync=False, before=None):
    commands = [[tool("cp"), "--reflink=never", str(place.input),
                 str(place.output)]]
    if sync:
        commands.append([tool("sync"), str(place.output)])
    return Contestant("cp+sync" if sync else "cp", *commands, before=before,
                      check=check_copied(place.input))


def cached(kind, count, before=None):
    def contest(place):
        make_input(place.input, kind, count)
        return [blinksort(place, before=before), copy(place, before=before)]
    return contest


def against_sort(place):
    make_input(place.input, "-a", 1_000_000)
    return [blinksort(place), gnu_sort(place)]


def against_peers(place):
    """cp is the last one: what the others are compared with."""
    contestants = [blinksort(place), *peers(place), copy(place)]
    for contestant in contestants:
        contestant.before = settle_memory
    make_input(place.input, "-a", 1_000_000)
    return contestants


def cold(*options, sync=False):
    """sync: the copy ends on the disk, too."""
    def contest(place):
        make_input(place.input, "-a", 1_000_000)
        drop = drop_cached(place.input)
        return [blinksort(place, *options, before=drop),
                copy(place, sync, before=drop)]
    return contest


def shaped(kind):
    """Against uniform keys of the same alphabet."""
    def contest(place):
        uniform = place.folder / "uniform"
        make_input(place.input, kind, 1_000_000)
        make_input(uniform, "-a" if "-a" in kind.split() else "", 1_000_000)
        return [blinksort(place),
                blinksort(place, name="uniform", source=uniform)]
    return contest


def typed(kind, other):
    """Uniform numbers, against cp or another program that sorts."""
    def contest(place):
        if other != "cp":
            rival = by_python(place, other, kind,
                              check_in_order(place.input, kind))
        make_numbers(place.input, {"u64": "uniform", "f64": "floats"}[kind])
        return [blinksort_typed(place, kind),
                copy(place) if other == "cp" else rival]
    return contest


def typed_skew(name):
    """Integers that are not uniform, against uniform ones."""
    def contest(place):
        uniform = place.folder / "uniform"
        make_numbers(place.input, name)
        make_numbers(uniform, "uniform")
        return [blinksort_typed(place, "u64"),
                blinksort_typed(place, "u64", name="uniform", source=uniform)]
    return contest


def typed_unique(place):
    """Duplicates dropped, against all records kept."""
    make_numbers(place.input, "million")
    return [blinksort_typed(place, "u64", "--unique"),
            blinksort_typed(place, "u64", name="all")]


def generate(place):
    return [Contestant("blinkgen", [program("blinkgen"), "-a", "1000000",
                                    str(place.output)])]


def generate_checksum(_place):
    return [Contestant("blinkgen", [program("blinkgen"), "-a", "-c", "1000000",
                                    "/dev/null"])]


def validate(place):
    make_input(place.folder / "unsorted", "-a", 1_000_000)
    must_run(program("blinksort"), str(place.folder / "unsorted"), "-o",
             str(place.input))
    return [Contestant("blinkval", [program("blinkval"), "-q",
                                    str(place.input)])]


def contests(full):
    """name -> (places, a function that makes the input and returns the
    contestants)"""
    everywhere = tuple(PLACES)
    table = {
        "cached-ascii-1": (("shm",), cached("-a", 1)),
        "cached-ascii-1m": (everywhere, cached("-a", 1_000_000)),
        "cached-binary-1m": (everywhere, cached("", 1_000_000)),
        "cached-ascii-62500": (everywhere, cached("-a", 62_500)),
        "cached-binary-62500": (everywhere, cached("", 62_500)),
        "sort-ascii-1m": (everywhere, against_sort),
        "peers-ascii-1m": (("shm", "disk"), against_peers),
        "cold-ascii-1m": (("disk",), cold()),
        "cold-direct-ascii-1m": (("disk",), cold("--io=direct", sync=True)),
        "cold-sync-ascii-1m": (
            ("disk",), cold("--io=direct", "--sync", sync=True)),
        "shape-skew-binary": (("disk",), shaped("-s")),
        "shape-skew-ascii": (("disk",), shaped("-a -s")),
        "blinkgen-file": (("shm",), generate),
        "blinkgen-checksum": (("shm",), generate_checksum),
        "blinkval": (("shm",), validate),
    }
    table.update({f"shape-{shape}": (("disk",), shaped(shape))
                  for shape in SHAPES})
    table.update({f"keys-{kind}-{other}": (("shm",), typed(kind, other))
                  for kind in ("u64", "f64") for other in ("cp", *MODULES)})
    table.update({f"keys-{name}": (("shm",), typed_skew(name))
                  for name in ("small", "million", "zipf", "bursts",
                               "sorted")})
    table["keys-unique"] = (("shm",), typed_unique)
    if full:
        # The output, and as much again.
        back = back_memory(2 * 10_000_000 * RECORD_BYTES)
        table["cached-ascii-10m"] = (everywhere,
                                     cached("-a", 10_000_000, back))
        table["cached-binary-10m"] = (everywhere,
                                      cached("", 10_000_000, back))
    return table


MEMORY_RUNS = {
    "memory-mmap-1m": ("mmap", 1_000_000),
    "memory-direct-1m": ("direct", 1_000_000),
    "memory-buffered-1m": ("buffered", 1_000_000),
    "memory-mmap-62500": ("mmap", 62_500),
}


def measure_memory(spawner, place, mode, count):
    """A mapped input counts as resident though the pages are the page cache's
    own, so it is taken off."""
    make_input(place.input, "-a", count)
    contestant = blinksort(place, f"--io={mode}", "--json")
    contestant.run(spawner, place.output, counted=True)
    document = json.loads(spawner.output.read_text())
    place.output.unlink()
    peak_bytes = contestant.max_rss_kib[0] * 1024
    mapped_bytes = count * RECORD_BYTES if document["io"] == "mmap" else 0
    return {"io": document["io"], "peak_rss_bytes": peak_bytes,
            "mapped_input_bytes": mapped_bytes,
            "own_peak_bytes": max(0, peak_bytes - mapped_bytes),
            "planned_bytes": document["memory_bytes"]}
