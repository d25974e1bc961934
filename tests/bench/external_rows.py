"""What is measured of sorts beyond memory: rows, inputs, contestants."""

import functools
import json
from dataclasses import dataclass

import external_inputs
from external_inputs import Kind, check_size, check_sorted
from external_run import Contestant
from files import check_copied, drop_cached
from programs import (PYTHON, ROOT, Skip, built, built_by_gxx, must_run,
                      program, quiet, tool)
from slow_disks import SlowDisks
from trials.machine.memory_cgroup import KERNEL_BYTES

# DuckDB takes more than its limit: 1.14 GB where 1 GB was allowed.
DUCKDB_SHARE = 0.8
# GNU sort and STXXL take a little more than their limits, too.
PEER_SHARE = 0.9
CURVE_STEPS = 10
# Of a file system, beside its files.
FORMAT_BYTES = 64 << 20
ASCII, BINARY = Kind("ascii"), Kind("binary")
# (row, its record size, its key)
SIZES = (("1", 1, "0:1"), ("16", 16, "0:10"), ("100", 100, "0:10"),
         ("4096", 4096, "0:10"), ("1m", 1 << 20, "0:10"),
         ("key-last", 100, "90:10"))


@dataclass
class Config:
    """What the environment has asked for."""
    size_bytes: int
    memory_bytes: int
    small_bytes: int       # of memory, for the row memory-small
    curve_least_bytes: int
    pipe_bytes_per_s: int
    disk_bytes_per_s: int  # of the fast one of two
    place: object
    inputs: object
    stack: object = None   # what a row has opened, closed behind it


@dataclass
class Row:
    kinds: tuple
    # A function of a Config: a list of such functions, each for one of the
    # contestants; the last one is what the others are compared with.
    contestants: object
    # Files of the input's size that it needs beside its inputs: the output,
    # and scratch.
    files: float = 2.2


def sort_memory(limit_bytes):
    """What blinksort is told, of what its cgroup may take."""
    return limit_bytes - min(KERNEL_BYTES, limit_bytes // 10)


def blinksort(config, name="blinksort", kind=ASCII, options=(), memory=None,
              told=None, scratch=None, enter=None):
    """memory is its cgroup's limit, told what --memory says."""
    memory = memory or config.memory_bytes
    told = told or sort_memory(memory)
    source = config.inputs.get(kind)
    folders = scratch or [config.place.folder]
    return Contestant(
        name, [[[program("blinksort"), str(source), "-o",
                 str(config.place.output), "--sync", "--json",
                 f"--memory={told}",
                 *(f"--temporary-directory={folder}" for folder in folders),
                 *kind.options, *options]]],
        memory, before=drop_cached(source), check=check_sorted(source, kind),
        enter=enter)


def copy(config, kind=ASCII, memory=None):
    source = config.inputs.get(kind)
    return Contestant(
        "copy", [[[built("bench_copy"), str(source),
                   str(config.place.output)]]],
        memory or config.memory_bytes, before=drop_cached(source),
        check=check_copied(source))


def cp_sync(config, kind=ASCII, memory=None):
    source, output = config.inputs.get(kind), str(config.place.output)
    return Contestant(
        "cp+sync", [[[tool("cp"), "--reflink=never", str(source), output]],
                    [[tool("sync"), output]]],
        memory or config.memory_bytes, before=drop_cached(source),
        check=check_copied(source))


# --- peers --------------------------------------------------------------------

def gnu_sort(config):
    source, output = config.inputs.get(ASCII), str(config.place.output)
    memory = round(config.memory_bytes * PEER_SHARE)
    return Contestant(
        "GNU sort", [[[tool("sort"), "-S", f"{memory}b", "--parallel=2",
                       "-T", str(config.place.folder), "-o", output,
                       str(source)]], [[tool("sync"), output]]],
        config.memory_bytes, before=drop_cached(source),
        check=check_sorted(source, ASCII), peer=True)


def duckdb(config):
    if quiet([PYTHON, "-c", "import duckdb"]) is None:
        raise Skip("this Python has no duckdb (BENCH_PYTHON)")
    source, output = config.inputs.get(ASCII), str(config.place.output)
    lines = config.inputs.size_bytes // ASCII.record_bytes
    return Contestant(
        "DuckDB", [[[PYTHON, str(ROOT / "tests/bench/duckdb_lines.py"),
                     str(source), output, str(config.place.folder),
                     str(round(config.memory_bytes * DUCKDB_SHARE)), "2"]],
                   [[tool("sync"), output]]],
        config.memory_bytes, before=drop_cached(source),
        check=check_size(lines * (ASCII.record_bytes - 1)), peer=True)


def stxxl(config):
    """STXXL sorts a file in its place: the copy of the input is off the
    clock.  By default STXXL writes its logs to the current folder."""
    source, output = config.inputs.get(ASCII), config.place.output

    def before():
        must_run(built("bench_copy"), str(source), str(output))
        drop_cached(output)()
    memory = round(config.memory_bytes * PEER_SHARE)
    return Contestant(
        "STXXL", [[[tool("env"), "STXXLLOGFILE=/dev/null",
                    "STXXLERRLOGFILE=/dev/null",
                    built_by_gxx("bench_stxxl", config.place.folder,
                                 "libstxxl-dev", "-O2", "-lstxxl", "-pthread"),
                    str(output),
                    str(config.place.folder / "scratch.stxxl"),
                    str(memory)]], [[tool("sync"), str(output)]]],
        config.memory_bytes, before=before,
        check=check_sorted(source, ASCII), peer=True)


# --- rows ---------------------------------------------------------------------

def against_peers(_config):
    return [blinksort, gnu_sort, duckdb, stxxl, cp_sync, copy]


def with_memory(bytes_of):
    def contestants(config):
        memory = bytes_of(config)
        return [functools.partial(make, memory=memory)
                for make in (blinksort, cp_sync, copy)]
    return contestants


def edge(config):
    """Memory that just suffices to sort at once, and 1 % less."""
    source = config.inputs.get(ASCII)
    # A cached input would be mapped, and take no memory.
    said = must_run(program("blinksort"), "--io=direct", "--json", str(source),
                    "-o", str(config.place.output))
    config.place.output.unlink()
    enough = json.loads(said)["memory_bytes"]
    return [functools.partial(
        blinksort, name=name, told=told, memory=told + KERNEL_BYTES,
        options=["--io=direct"])
        for name, told in (("1 % less", enough * 99 // 100),
                           ("enough", enough))]


def compressed(kind):
    def contestants(_config):
        if "--compress" not in (quiet([program("blinksort"), "--help"]) or ""):
            raise Skip("this blinksort has no --compress")
        return [functools.partial(blinksort, options=[f"--compress={how}"],
                                  name=f"compress={how}", kind=kind)
                for how in ("auto", "none")] + [
            functools.partial(copy, kind=kind)]
    return contestants


def shaped(kind, uniform):
    def contestants(_config):
        return [functools.partial(blinksort, name=kind.shape, kind=kind),
                functools.partial(blinksort, name="uniform", kind=uniform)]
    return contestants


def sized(kind):
    def contestants(_config):
        return [functools.partial(blinksort, kind=kind),
                functools.partial(copy, kind=kind)]
    return contestants


def curve_memories(config):
    """From the least to a tenth more than the input: equal ratios."""
    least, most = config.curve_least_bytes, config.size_bytes * 11 // 10
    step = (most / least) ** (1 / (CURVE_STEPS - 1))
    return [round(least * step ** number) for number in range(CURVE_STEPS)]


def curve(config):
    return [functools.partial(blinksort, name=f"memory={memory}",
                              memory=memory)
            for memory in curve_memories(config)] + [copy]


def two_scratches(config):
    """The slow one has a quarter of the fast one's rate."""
    disks = config.stack.enter_context(SlowDisks(
        config.place.folder, config.size_bytes * 3 // 2 + FORMAT_BYTES,
        {"fast": config.disk_bytes_per_s,
         "slow": config.disk_bytes_per_s // 4}))
    return [functools.partial(blinksort, name=name, scratch=[
        disks.folders[which] for which in used], enter=disks.enter)
        for name, used in (("fast and slow", ("fast", "slow")),
                           ("fast alone", ("fast",)))]


# --- pipes --------------------------------------------------------------------

def throttled(config):
    return [str(ROOT / "tests/bench/throttle.py"),
            str(config.pipe_bytes_per_s)]


def piped(slow=None):
    """cat INPUT | one of them | cat >OUTPUT; slow: "writer" or "reader" has a
    limited rate.  Only the one in the middle has its memory limited."""
    def make(config, name):
        source, output = config.inputs.get(ASCII), config.place.output
        middle = [tool("cat")] if name == "cat" else [
            program("blinksort"), "-", "-o", "-",
            f"--memory={sort_memory(config.memory_bytes)}",
            f"--temporary-directory={config.place.folder}"]
        pipeline = [[tool("cat"), str(source)],
                    *([throttled(config)] if slow == "writer" else []),
                    middle,
                    *([throttled(config)] if slow == "reader" else []),
                    [tool("cat")], output]
        return Contestant(
            name, [pipeline, [[tool("sync"), str(output)]]],
            config.memory_bytes, before=drop_cached(source),
            check=check_copied(source) if name == "cat"
            else check_sorted(source, ASCII), limited=pipeline.index(middle))

    def contestants(_config):
        return [functools.partial(make, name=name)
                for name in ("blinksort", "cat")]
    return contestants


def table():
    """name -> Row, in the order in which inputs are used again"""
    found = {
        "memory": Row((ASCII,), against_peers),
        "memory-small": Row((ASCII,), with_memory(lambda c: c.small_bytes)),
        "memory-half": Row((ASCII,), with_memory(
            lambda c: c.size_bytes // 2)),
        "memory-edge": Row((ASCII,), edge),
        "memory-curve": Row((ASCII,), curve),
        "compress-ascii": Row((ASCII,), compressed(ASCII)),
        "pipes": Row((ASCII,), piped()),
        "pipes-slow-writer": Row((ASCII,), piped("writer")),
        "pipes-slow-reader": Row((ASCII,), piped("reader")),
        "scratch-two": Row((ASCII,), two_scratches, files=4.2),
        "shape-skew": Row((ASCII, Kind("skew")),
                          shaped(Kind("skew"), ASCII)),
        "compress-binary": Row((BINARY,), compressed(BINARY)),
    }
    found.update({f"shape-{shape}": Row(
        (BINARY, Kind(shape)), shaped(Kind(shape), BINARY))
        for shape in external_inputs.SHAPES})
    for name, record_bytes, key in SIZES:
        kind = Kind("uniform", record_bytes, key)
        found[f"size-{name}"] = Row((kind,), sized(kind))
    return found
