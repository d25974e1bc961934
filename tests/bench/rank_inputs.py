"""Inputs of ranks that sort together, and whether their outputs are right."""

import os
from dataclasses import dataclass

import external_inputs
from external_inputs import Inputs, Kind
from links import make_inputs
from programs import Failed, must_run, program

PIECE_BYTES = 1 << 20
ASCII = Kind("ascii")


@dataclass(frozen=True)
class Parts:
    """size_bytes of records of this kind, cut for so many ranks.

    even        equal parts
    next-range  equal parts, and the records of each are all of the range of
                keys that the next rank writes
    two-empty   every other rank has nothing
    """
    kind: Kind
    ranks: int
    size_bytes: int
    cut: str = "even"

    def counts(self):
        """Records of each rank."""
        records = self.size_bytes // self.kind.record_bytes
        step = 2 if self.cut == "two-empty" else 1
        having = range(0, self.ranks, step)
        counts = [0] * self.ranks
        for number, rank in enumerate(having):
            first = records * number // len(having)
            counts[rank] = records * (number + 1) // len(having) - first
        return counts


def copy_range(source, path, begin, size_bytes):
    with open(path, "wb") as file:
        while size_bytes > 0:
            done = os.sendfile(file.fileno(), source.fileno(), begin,
                               size_bytes)
            if done == 0:
                raise Failed(f"{path.name}: the input is too short")
            begin, size_bytes = begin + done, size_bytes - done


class RankInputs:
    """in.0, in.1, ... in a folder.  Those of a row stay for the next one if it
    wants the same."""

    def __init__(self, folder):
        self.folder = folder
        self.made = None

    def paths(self, parts):
        return [self.folder / f"in.{rank}" for rank in range(parts.ranks)]

    def get(self, parts, files):
        """The paths; with room for so many more files of their whole size."""
        if self.made != parts:
            self.remove()
            Inputs(self.folder, parts.size_bytes).expect_room(files + 1)
            self._make(parts)
            self.made = parts
        Inputs(self.folder, parts.size_bytes).expect_room(files)
        return self.paths(parts)

    def remove(self):
        self.made = None
        for path in self.folder.glob("in.*"):
            path.unlink()

    def _make(self, parts):
        if parts.kind == ASCII and parts.cut == "even":
            make_inputs(self.folder, parts.ranks,
                        parts.size_bytes // parts.kind.record_bytes)
            return
        whole = self.folder / "whole"
        try:
            external_inputs.make(whole, parts.kind, sum(parts.counts()))
            if parts.cut == "next-range":
                must_run(program("blinksort"), str(whole), "-o", str(whole),
                         *parts.kind.options)
            self._cut(whole, parts)
        finally:
            whole.unlink(missing_ok=True)

    def _cut(self, whole, parts):
        paths, begin = self.paths(parts), 0
        if parts.cut == "next-range":
            paths = paths[-1:] + paths[:-1]
        with open(whole, "rb") as source:
            for path, count in zip(paths, parts.counts()):
                size_bytes = count * parts.kind.record_bytes
                copy_range(source, path, begin, size_bytes)
                begin += size_bytes


def check_sorted(outputs, inputs, kind):
    """blinkval must find the outputs in order, one after the other, and in them
    the records of all inputs."""
    must_run(program("blinkval"), "-q", *kind.options,
             *(f"--against={path}" for path in inputs), *map(str, outputs))


def check_equal(outputs, whole):
    """The outputs, one after the other, are the file byte for byte."""
    with open(whole, "rb") as wanted:
        for path in outputs:
            with open(path, "rb") as got:
                while data := got.read(PIECE_BYTES):
                    if wanted.read(len(data)) != data:
                        raise Failed(f"{path.name}: not what one process "
                                     "writes")
        if wanted.read(1):
            raise Failed("records are missing that one process writes")
