"""All that is shown of a characterisation, computed once from its lines.

Measurements of one kind are a Curve, a list of Places or a list of Series;
each has all that was measured, as median and spread.  What could not be
measured is in `refusals`, under the topic in whose place the reason stands.
"""

import os
from dataclasses import dataclass, field

import numpy as np

from trials.base import units
from trials.characterise import measurements, text_format
from trials.record import store
from trials.report import machine_facts

# Parts of a characterisation that a report has a place for, in its order.
TOPICS = ("memory", "threads", "blocks", "access", "nodes", "codec",
          "transfers", "positions", "surface", "files", "start", "round-trip",
          "throughput")
ORDERLY = ("read", "write", "copy")
# The blocks of what goes by area: those that blinkprobe takes unless told.
AREA_BLOCKS = {"read": 4096, "write": 4096, "copy": 4096, "random": 64}
TRANSFER_WORDS = {"read": "sequential read", "randread": "random read",
                  "write": "sequential write", "randwrite": "random write",
                  "spread write": "write by turns"}
BLOCK_WORDS = {"read": "sequential read", "random": "random read",
               "write": "sequential write", "random-write": "random write"}


@dataclass(frozen=True)
class Spread:
    """The middle of samples, and how far they are apart."""

    count: int
    low: float
    # The quartiles are None where there are too few samples to have any.
    first_quartile: float | None
    middle: float
    third_quartile: float | None
    high: float

    @classmethod
    def of(cls, samples) -> "Spread":
        low, first, middle, third, high = np.percentile(
            samples, (0, 25, 50, 75, 100)).tolist()
        few = len(samples) < 4
        return cls(len(samples), low, None if few else first, middle,
                   None if few else third, high)

    @classmethod
    def of_transfers(cls, rate, block_bytes, setting) -> "Spread":
        """A disk's rate is one figure; its transfers have a spread: from the
        99th percentile of their times to the shortest, as rates."""
        ends = [block_bytes * 1e9 / ns for ns in (
            setting.get("transfer_p99_ns"), setting.get("transfer_min_ns"))
            if ns]
        return cls(setting.get("transfers") or 1, min([rate, *ends]), None,
                   rate, None, max([rate, *ends]))


@dataclass
class Curve:
    """A figure by area, block or transfer size, or by number of threads."""

    name: str
    threads: int = 1
    # (bytes or threads, Spread), in ascending order.
    points: list = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """The rate at a place of a disk."""

    offset_bytes: int
    length_bytes: int
    spread: Spread


@dataclass
class NodePair:
    """The rates that CPUs of one NUMA node have of the memory of one."""

    cpu_node: int
    memory_node: int
    # The distance that the firmware tells; None: it does not.
    distance: int | None
    area_bytes: int
    # CPUs of the node, of the rates; None: these were not measured.
    threads: int | None = None
    # Spreads, or None.
    read: Spread | None = None
    copy: Spread | None = None
    access: Spread | None = None
    # The least part of the memory that lay there; None: the kernel does not
    # tell.
    placed: float | None = None


@dataclass(frozen=True)
class FilePlaces:
    """The places of a file on its device; pieces in the file's order."""

    path: str
    device: str | None
    # Offset None: the file system does not tell.
    pieces: list
    device_bytes: int | None

    @property
    def placed(self):
        return [p for p in self.pieces if p["physical_bytes"] is not None]


@dataclass(frozen=True)
class Series:
    """Samples of one program or one other node."""

    name: str
    samples: np.ndarray
    setting: dict

    @property
    def spread(self):
        return Spread.of(self.samples)


@dataclass(frozen=True)
class Refusal:
    topic: str
    what: str
    why: str


def is_one(folder) -> bool:
    """A characterisation, and no record of trials?"""
    return (os.path.exists(os.path.join(folder, measurements.FILE_NAME))
            and not os.path.exists(os.path.join(folder, store.DESIGN)))


class Profile:
    """The figures of the machine in the lines of one characterisation."""

    def __init__(self, lines, environment=None):
        self.lines = lines
        self.environment = environment or {}
        made = [line for line in lines if line["samples"]]
        by_node = [x for x in made if x["part"] == "memory"
                   and _is_by_node(x)]
        memory = [x for x in made if x["part"] == "memory"
                  and not _is_by_node(x)]
        disk = [x for x in made if x["part"] == "disk"]
        self.thread_counts = sorted({x["setting"]["threads"]
                                     for x in memory})
        self.node_pairs = _node_pairs(by_node)
        self.memory = _memory_curves(memory)
        self.thread_area_bytes, self.thread_rates = _thread_curves(memory)
        self.blocks_area_bytes, self.blocks = _block_curves(memory)
        self.access = _access_curves(memory, self.threads_words)
        self.transfers = _transfer_curves(disk)
        self.stream_rates = _stream_rates(disk)
        self.positions, self.by_extents = _positions(disk)
        self.surface = _surface_curves(disk)
        self.drives = _drives(disk)
        self.device_bytes = next((x["setting"]["device_bytes"] for x in disk
                                  if x["what"] == "position"), None)
        self.files = [self._file(x) for x in made if x["part"] == "extents"]
        self.codecs = _series(made, "codec",
                              name="{codec}, {records} records: {of}")
        self.starts = _series(made, "start")
        self.round_trips = _series(made, "network", "round trip")
        self.throughputs = _series(made, "network", "throughput", "{of}, UDP")
        self.tcp_throughputs = _series(made, "network", "tcp throughput",
                                       "{of}, TCP")
        self.refusals = _refusals(lines)

    @property
    def device(self):
        """The device whose rates by position were measured."""
        return next((x["setting"].get("device") for x in self.lines
                     if x["part"] == "disk" and x["setting"].get("device")),
                    None)

    @property
    def loopback(self):
        return any(s.setting.get("loopback")
                   for s in self.round_trips + self.throughputs)

    @property
    def position_ends(self):
        """The whole device; of a file's extents, what they take."""
        if self.device_bytes and not self.by_extents:
            return 0, self.device_bytes
        return (min(p.offset_bytes for p in self.positions),
                max(p.offset_bytes + p.length_bytes for p in self.positions))

    @property
    def rate_unit(self):
        """The unit of the rates by place."""
        return text_format.rate_unit(
            max(p.spread.high for p in self.positions))

    def reasons(self, topic) -> list:
        """The reasons why there is nothing, or not all, of a topic."""
        return [r for r in self.refusals if r.topic == topic]

    def threads_words(self, threads):
        """The largest number is that of the CPUs."""
        if threads == 1:
            return "1 thread"
        return f"all {threads} CPUs" if threads == self.thread_counts[-1] \
            else f"{threads} threads"

    def by_threads(self, curves) -> list:
        """(words, curves) of one thread, and of one for each CPU; those
        between have the largest area only."""
        groups = [(self.threads_words(threads),
                   [c for c in curves if c.threads == threads])
                  for threads in sorted({*self.thread_counts[:1],
                                         *self.thread_counts[-1:]})]
        return [(words, group) for words, group in groups if group]

    def _file(self, line):
        setting = line["setting"]
        device = setting.get("device")
        size = None
        if device:
            size = (self.device_bytes if device == self.device
                    else None) or self._drive_bytes(device)
        return FilePlaces(units.printable(line["what"]), device,
                          setting["extents"], size)

    def _drive_bytes(self, device):
        drive = machine_facts.at(machine_facts.before(self.environment),
                                 f"storage.drives.{os.path.basename(device)}")
        return machine_facts.at(drive, "size_bytes")

    def caches(self) -> list:
        """(name, bytes) of the processor's caches, as far as the environment
        has them: [{"level": 1, "type": "Data", "size_bytes": 32768}]."""
        at = machine_facts.at
        known = at(machine_facts.before(self.environment), "cpu.caches")
        return [(f"L{at(cache, 'level')}", at(cache, "size_bytes"))
                for cache in known or []
                if at(cache, "type") != "Instruction"
                and at(cache, "size_bytes")]


def read(folder) -> Profile:
    """Raises Failure if it is damaged or not there."""
    return Profile(measurements.read(folder), store.read_environment(folder))


# --- memory -------------------------------------------------------------------

def _curves(lines, name_of, x_key, spread_of) -> list:
    """Lines of one name and number of threads are a curve; those of the same
    place on it were measured twice, and are taken together."""
    curves, pooled = {}, {}
    for line in lines:
        setting = line["setting"]
        key = name_of(line), setting.get("threads", 1)
        curves.setdefault(key, Curve(*key))
        pooled.setdefault(key, {}).setdefault(setting[x_key], []).append(line)
    for key, curve in curves.items():
        curve.points = [(x, spread_of(each))
                        for x, each in sorted(pooled[key].items())]
    return list(curves.values())


def _all_samples(lines):
    return Spread.of(np.concatenate([line["samples"] for line in lines]))


def _memory_curves(memory):
    lines = [x for x in memory if x["setting"]["block_bytes"]
             == AREA_BLOCKS.get(x["what"])]
    return _curves(lines, lambda x: "random lines" if x["what"] == "random"
                   else x["what"], "area_bytes", _all_samples)


def _thread_curves(memory):
    """(area, curves) of the largest area, by number of threads; of one number
    there is none."""
    orderly = [x for x in memory if x["what"] in ORDERLY]
    area = max((x["setting"]["area_bytes"] for x in orderly or memory),
               default=None)
    lines = [x for x in memory if x["setting"]["area_bytes"] == area]
    curves = {}
    for curve in _memory_curves(lines):
        (_, spread), = curve.points
        curves.setdefault(curve.name, Curve(curve.name)).points.append(
            (curve.threads, spread))
    for curve in curves.values():
        curve.points.sort(key=lambda point: point[0])
    return area, [c for c in curves.values() if len(c.points) > 1]


def _is_by_node(line):
    return "cpu_node" in line["setting"]


def _node_pairs(lines) -> list:
    """The pairs of nodes in the order of the CPUs' nodes, and then of the
    memory's."""
    pairs = {}
    for line in lines:
        setting = line["setting"]
        key = setting["cpu_node"], setting["memory_node"]
        pair = pairs.setdefault(key, NodePair(
            *key, setting.get("distance"), setting["area_bytes"]))
        spread = Spread.of(line["samples"])
        if line["what"] == "chase":
            pair.access = spread
        elif line["what"] in ("read", "copy"):
            setattr(pair, line["what"], spread)
            pair.threads = setting["threads"]
        if "placed_bytes" in setting:
            part = setting["placed_bytes"] / (
                setting["area_bytes"] * setting["threads"])
            pair.placed = min(part, pair.placed or part)
    return [pairs[key] for key in sorted(pairs)]


def _block_curves(memory):
    """(area, curves) of the area of which there are the most blocks, and of
    the numbers of threads with more than one of these."""
    blocks = {}
    for line in memory:
        if line["what"] == "random":
            blocks.setdefault(line["setting"]["area_bytes"], set()).add(
                line["setting"]["block_bytes"])
    area = max(blocks, key=lambda each: len(blocks[each]), default=None)
    if area is None or len(blocks[area]) < 2:
        return None, []
    curves = _curves(
        [x for x in memory if x["what"] in BLOCK_WORDS
         and x["setting"]["area_bytes"] == area],
        lambda x: BLOCK_WORDS[x["what"]], "block_bytes", _all_samples)
    return area, [c for c in curves if len(c.points) > 1] or curves


def _access_curves(memory, name_of):
    return _curves([x for x in memory if x["what"] == "chase"],
                   lambda x: name_of(x["setting"]["threads"]), "area_bytes",
                   _all_samples)


# --- disk ---------------------------------------------------------------------

def _transfer_curves(disk) -> dict:
    """Curves of the device itself, of a file on it, and of many files."""
    lines = {}
    for line in disk:
        if line["what"] in TRANSFER_WORDS:
            setting = line["setting"]
            where = (f"{setting['files']} files on it" if "files" in setting
                     else "a file on it" if setting.get("file")
                     else "the device")
            lines.setdefault(where, []).append(line)
    return {where: _curves(each, lambda x: TRANSFER_WORDS[x["what"]],
                           "transfer_bytes", _transfers)
            for where, each in lines.items()}


def _stream_rates(disk):
    """Bytes a second of reading, writing and both at once; or None."""
    rates = {x["what"]: x["samples"][-1] for x in disk
             if x["what"] in measurements.STREAM_WAYS}
    if len(rates) < len(measurements.STREAM_WAYS):
        return None
    return tuple(rates[what] for what in measurements.STREAM_WAYS)


def _transfers(lines):
    """The spread of a rate; of one that was measured twice, the last."""
    line = lines[-1]
    return Spread.of_transfers(line["samples"][-1],
                               line["setting"]["transfer_bytes"],
                               line["setting"])


def _positions(disk):
    """(places in order, are they extents of a file?)  Positions of the whole
    device if there are any."""
    for what in ("position", "extent"):
        places = sorted((_place(x) for x in disk if x["what"] == what),
                        key=lambda place: place.offset_bytes)
        if places:
            return places, what == "extent"
    return [], False


def _surface_curves(disk):
    """A curve by transfer size for each place, in order."""
    return _curves(
        sorted((x for x in disk if x["what"] == "surface"),
               key=lambda x: x["setting"]["offset_bytes"]),
        lambda x: "at " + text_format.precise(
            x["setting"]["offset_bytes"], (0, x["setting"]["device_bytes"])),
        "transfer_bytes", _transfers)


def _drives(disk) -> list:
    """(name, Spread) of each drive of an array, the slowest first."""
    rates = {}
    for line in disk:
        if line["what"] == "drive":
            rates.setdefault(line["setting"]["device"], []).extend(
                line["samples"])
    return sorted(((name, Spread.of(each)) for name, each in rates.items()),
                  key=lambda drive: drive[1].middle)


def _place(line):
    setting = line["setting"]
    length = setting.get("length_bytes") or measurements.POSITION_SPAN_BYTES
    return Place(setting["offset_bytes"], length, Spread.of_transfers(
        line["samples"][-1], measurements.POSITION_BLOCK_BYTES, setting))


# --- the rest -----------------------------------------------------------------

def _series(made, part, what=None, name="{of}"):
    """`name` may name what the setting has, and the host or `what` as of."""
    return [Series(units.printable(name.format(
        **line["setting"] | {"of": line["host"] or line["what"]})),
                   np.array(line["samples"], dtype=float), line["setting"])
            for line in made
            if line["part"] == part and what in (None, line["what"])]


def _topics(line) -> tuple:
    """The places in a report where a measurement is missed."""
    part, what = line["part"], line["what"]
    if part == "memory" and _is_by_node(line):
        return ("nodes",)
    if part == "memory" and what == "chase":
        return ("access",)
    if part == "memory":
        by_area = line["setting"].get("block_bytes") in (
            None, AREA_BLOCKS.get(what))
        return ("memory",) if by_area else ("blocks",)
    if part == "disk":
        return {"rate": ("transfers", "positions", "surface"),
                "position": ("positions", "surface"),
                "extent": ("positions",),
                "surface": ("surface",)}.get(what, ("transfers",))
    if part == "network":
        # Round trips and throughput come of one call.
        return ("throughput",) if what == "tcp throughput" \
            else ("round-trip", "throughput")
    return ({"extents": "files"}.get(part, part),)


def _refusals(lines) -> list:
    """The refusals, each reason once for all measurements that it holds for."""
    found = {}
    for line in lines:
        if line["samples"]:
            continue
        words = line["what"] if line["part"] in ("extents", "network") \
            else f"{line['part']} {line['what']}"
        if _is_by_node(line):
            words += (f" from node {line['setting']['cpu_node']} to "
                      f"{line['setting']['memory_node']}")
        key = units.printable(words), units.printable(line["why"])
        for topic in _topics(line):
            refused = (topic, *key)
            found[refused] = found.get(refused, 0) + 1
    return [Refusal(topic, words + (f", {count} measurements"
                                    if count > 1 else ""), why)
            for (topic, words, why), count in found.items()]
