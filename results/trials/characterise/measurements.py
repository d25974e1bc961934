"""What the parts of the machine take, before its sorts are compared:
blinktrial-characterise(7) lists them.

DIR/characterisation.jsonl has a line for each measurement, all of one form:

    {"schema": "blinktrial-measure-1", "part": "memory", "what": "random",
     "host": null, "setting": {"area_bytes": 65536, ...}, "unit": "bytes/s",
     "samples": [...], "why": null}

What can't be measured has a line, too: no samples, and why.  Disks are only
read, unless `writes` is set; then a file of ours is written.  The machine
before and after is in DIR/environment.json, as beside trials.
"""

import contextlib
import itertools
import json
import os
import random
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from typing import Callable

from trials.base import documents
from trials.base.failure import FILE, RESOURCES, Failure, naming
from trials.characterise import extents, fio
from trials.machine import disks, environment
from trials.record import schema, store

SCHEMA = schema.MEASURE
FILE_NAME = "characterisation.jsonl"

KIB, MIB = 1 << 10, 1 << 20
POSITION_SPAN_BYTES = 64 * MIB
POSITION_BLOCK_BYTES = MIB
DRIVE_ROUNDS = 3
# Transfers of a sort beyond memory, and how many of a kind are under way.
STREAM_BLOCK_BYTES = 2 * MIB
STREAM_DEPTH = 8
# Random reads at a place go so far from it, which no drive's cache holds.
SURFACE_SPAN_BYTES = 1 << 30
STREAM_WAYS = {"stream read": ("read",), "stream write": ("write",),
               "stream both": ("read", "write")}


@dataclass(frozen=True)
class Scale:
    """The amounts that are measured."""

    # The sizes go from within the first-level cache to far beyond the last one.
    areas_bytes: tuple = (16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB,
                          16 * MIB, 64 * MIB, 256 * MIB)
    blocks_bytes: tuple = (64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, MIB)
    blocks_area_bytes: int = 256 * MIB
    transfers_bytes: tuple = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB,
                              4 * MIB)
    # A disk turns some dozen times within this.
    disk_seconds: float = 0.5
    positions: int = 17
    # The largest one takes many times as long as a disk's head to its place.
    surface_bytes: tuple = (16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB,
                            16 * MIB)
    surface_places: int = 9
    # Writes go to so many files by turns, each of the size of the largest one.
    spread_bytes: tuple = (MIB, 5 * MIB, 10 * MIB, 20 * MIB, 40 * MIB,
                           80 * MIB)
    spread_files: int = 300
    # The size of the file that is read where the disk itself may not be.
    file_bytes: int = 256 * MIB
    # The area in the memory of one NUMA node.
    nodes_area_bytes: int = 256 * MIB
    starts: int = 1000
    memory_options: tuple = ()
    codec_options: tuple = ("--bytes=16M",)


# A quick run shows that all of it works; its figures are not to be believed.
QUICK = Scale(areas_bytes=(16 * KIB, MIB), blocks_bytes=(64, 4 * KIB),
              blocks_area_bytes=4 * MIB, nodes_area_bytes=4 * MIB,
              transfers_bytes=(4 * KIB, MIB),
              disk_seconds=0.05, positions=3, surface_bytes=(4 * KIB, MIB),
              surface_places=2, spread_bytes=(64 * KIB, 256 * KIB),
              spread_files=20, file_bytes=32 * MIB, starts=10,
              memory_options=("--bytes=1M", "--rounds=2"),
              codec_options=("--bytes=1M", "--rounds=2"))


@dataclass
class Job:
    """The parts to characterise, and the programs and folders for it."""

    programs: object
    out: str
    work: str
    hosts: str | None = None
    key: str | None = None
    files: list[str] = field(default_factory=list)
    writes: bool = False
    scale: Scale = Scale()
    say: Callable[[str], None] = lambda text: None
    facts: dict = field(default_factory=dict)


class Measures:
    """The file of measurements."""

    def __init__(self, folder):
        self.path = os.path.join(folder, FILE_NAME)
        with naming(self.path):
            os.makedirs(folder, exist_ok=True)
            try:
                self.file = open(self.path, "x", encoding="utf-8")
            except FileExistsError:
                raise Failure(self.path, "is there already", FILE) from None

    def add(self, part, what, setting, unit, samples, host=None, why=None):
        line = {"schema": SCHEMA, "part": part, "what": what, "host": host,
                "setting": setting, "unit": unit, "samples": samples,
                "why": why}
        self.file.write(json.dumps(line, allow_nan=False) + "\n")
        self.file.flush()

    def refuse(self, part, what, why, setting=None):
        self.add(part, what, setting or {}, None, [], why=str(why))

    @contextlib.contextmanager
    def measuring(self, part, what, setting=None):
        """If the measurement within fails, a line says why."""
        try:
            yield
        except (Failure, ValueError) as failure:
            self.refuse(part, what, failure, setting)

    def close(self):
        os.fsync(self.file.fileno())
        self.file.close()


def read(folder) -> list[dict]:
    """All measurements of a folder, of which there is one at least; raises
    Failure."""
    path = os.path.join(folder, FILE_NAME)
    texts, rest = documents.read_lines(path)
    lines = [line for _, line in schema.parsed(path, SCHEMA, texts)]
    if rest:
        raise Failure(f"{path}:{len(lines) + 1}", "was never finished", FILE)
    if not lines:
        raise Failure(path, "has no measurement", FILE)
    return lines


def run(job: Job) -> None:
    for path in job.files:
        if not os.path.isfile(path):
            raise Failure(path, "is not a file", FILE)
    measures = Measures(job.out)
    begin_unix_ns = time.time_ns()
    with contextlib.closing(measures), naming(job.work):
        os.makedirs(job.work, exist_ok=True)
        before = _describe(job)
        store.write_environment(job.out, before, None, [], begin_unix_ns)
        for part in (_memory, _codecs, _starts, _disk, _extents, _network):
            part(job, measures)
        after = _describe(job)
        store.write_environment(job.out, before, after,
                                environment.changes(before, after),
                                begin_unix_ns)


def _describe(job):
    return environment.with_facts(
        environment.describe([job.work], job.programs), job.facts)


# --- memory ------------------------------------------------------------------

# blinkprobe takes no more threads.
PROBE_THREADS_MAX = 256
# These patterns show where memory saturates between one thread and one for each
# CPU.
THREAD_PATTERNS = ("read", "write", "copy", "random")
BLOCK_PATTERNS = ("read", "write", "random", "random-write")
NODE_PATTERNS = ("read", "copy", "chase")
# At least this part of an area must lie on the node that it was made for.
PLACED_PART = 0.99


def _memory(job, measures):
    job.say("memory")
    cpus = len(os.sched_getaffinity(0))
    for threads in sorted({1, cpus}):
        for pattern in (*THREAD_PATTERNS, "chase"):
            for area in job.scale.areas_bytes:
                _memory_probe(job, measures, pattern, area, None, threads)
        for pattern in BLOCK_PATTERNS:
            for block in job.scale.blocks_bytes:
                _memory_probe(job, measures, pattern,
                              job.scale.blocks_area_bytes, block, threads)
    for threads in thread_counts(cpus)[1:-1]:
        for pattern in THREAD_PATTERNS:
            _memory_probe(job, measures, pattern, job.scale.areas_bytes[-1],
                          None, threads)
    _memory_by_node(job, measures)


def thread_counts(cpus) -> list:
    """1, 2, 4 ... and one for each CPU."""
    return [1 << i for i in range((cpus - 1).bit_length())] + [cpus]


def _memory_by_node(job, measures):
    """Measure from each node's CPUs, all of them, to each node's memory: one
    pair where there is one node."""
    nodes = []
    with measures.measuring("memory", "nodes"):
        nodes = _probe(job, "memory", f"--area={64 * KIB}", "--bytes=0",
                       "--threads=1", "--rounds=1")["nodes"]
    for cpu, (to, memory) in itertools.product(nodes, enumerate(nodes)):
        if not cpu["cpus"] or not memory["has_memory"]:
            continue
        distance = cpu["distances"][to]
        setting = {"cpu_node": cpu["node"], "memory_node": memory["node"]}
        if distance is not None:
            setting["distance"] = distance
        for pattern in NODE_PATTERNS:
            threads = 1 if pattern == "chase" \
                else min(cpu["cpus"], PROBE_THREADS_MAX)
            _memory_probe(job, measures, pattern, job.scale.nodes_area_bytes,
                          None, threads, setting)


def _memory_probe(job, measures, pattern, area, block, threads, on=None):
    """`on`: the setting of a pair of nodes."""
    on = on or {}
    options = [f"--pattern={pattern}", f"--area={area}",
               f"--threads={threads}", *job.scale.memory_options]
    if block:
        options.append(f"--block={block}")
    if on:
        options += [f"--cpu-node={on['cpu_node']}",
                    f"--memory-node={on['memory_node']}"]
    with measures.measuring("memory", pattern, {
            "area_bytes": area, "block_bytes": block, "threads": threads} | on):
        found = _probe(job, "memory", *options)
        setting = {key: found[key]
                   for key in ("area_bytes", "block_bytes", "threads")
                   } | on | _placed(found)
        if pattern == "chase":
            count = found["thread_accesses"]
            measures.add("memory", pattern, setting, "ns/access",
                         [round(ns / count, 3) for ns in found["samples_ns"]])
        else:
            moved = found["thread_bytes"] * threads
            measures.add("memory", pattern, setting, "bytes/s", [
                round(moved * 1e9 / ns) for ns in found["samples_ns"]])


def _placed(found) -> dict:
    """The part of the area that lies on the node that was asked for.  A figure
    of memory that lies elsewhere is none of this node; where the kernel does
    not tell, it is taken on trust."""
    if not found["numa"]:
        return {}
    node, area = found["memory_node"], found["area_bytes"]
    wanted = area * found["threads"]
    placed = sum(each["memory_bytes"] for each in found["numa"]
                 if each["node"] == node)
    if placed < PLACED_PART * wanted:
        raise Failure(f"node {node}", f"has only {placed} of {wanted} bytes",
                      RESOURCES)
    return {"placed_bytes": placed}


def _probe(job, *arguments):
    return job.programs.document("blinkprobe", *arguments)


# --- compression -------------------------------------------------------------

CODECS = ("lz4", "zstd")
RECORDS = ("ascii", "binary")


def _codecs(job, measures):
    job.say("codecs")
    for codec, records in itertools.product(CODECS, RECORDS):
        setting = {"codec": codec, "records": records}
        with measures.measuring("codec", codec, setting):
            found = _probe(job, "codec", f"--codec={codec}",
                           *["--binary"] * (records == "binary"),
                           *job.scale.codec_options)
            _codec(measures, found, setting | {key: found[key] for key in (
                "block_bytes", "plain_bytes", "stored_bytes")})


def _codec(measures, found, setting):
    for what in ("compress", "decompress"):
        if what == "decompress" and \
                found["stored_bytes"] == found["plain_bytes"]:
            measures.refuse("codec", what, f"{setting['records']} records do "
                            f"not become smaller by {setting['codec']}",
                            setting)
            continue
        measures.add("codec", what, setting, "bytes/s", [
            round(found["plain_bytes"] * 1e9 / ns)
            for ns in found[f"{what}_ns"]])


# --- starting a program ------------------------------------------------------

def _starts(job, measures):
    job.say("process start")
    sorter = job.programs.path("blinksort")
    for what, command in (("nothing", []),
                          ("blinksort --version", ["--", sorter,
                                                   "--version"])):
        with measures.measuring("start", what):
            found = _probe(job, "spawn", f"--rounds={job.scale.starts}",
                           *command)
            measures.add("start", what, {}, "ns", found["samples_ns"])


# --- disk --------------------------------------------------------------------

@dataclass
class Disk:
    """What rates are measured with."""

    program: str
    scale: Scale
    measures: Measures
    device: str | None

    def rate(self, what, setting, path, pattern, block, times=1, **options):
        """Measure one, in so many times the usual time, and note it."""
        setting = {"device": self.device} | setting
        with self.measures.measuring("disk", what, setting):
            found = fio.rate(self.program, path, pattern, block,
                             times * self.scale.disk_seconds, **options)
            rate = found.pop("bytes_per_s")
            self.measures.add("disk", what, setting | found, "bytes/s", [rate])

    def transfers(self, path, patterns, setting, **options):
        """Measure the rates by transfer size."""
        for pattern in patterns:
            for block in self.scale.transfers_bytes:
                self.rate(pattern, setting | {"transfer_bytes": block}, path,
                          pattern, block, **options)


def _disk(job, measures):
    job.say("disk")
    program = job.programs.find("fio")
    if not program:
        measures.refuse("disk", "rate", "fio is not installed")
        return
    device, why = _device_of(job.work)
    disk = Disk(program, job.scale, measures, device)
    if device and _may_read(device):
        disk.transfers(device, ("read", "randread"), {"file": False})
        _positions(disk)
        _drives(disk, disks.of_path(job.work).drives)
    else:
        measures.refuse("disk", "position",
                        why or f"{device} may not be read directly")
    path = os.path.join(job.work, "characterise.tmp")
    _file_rates(disk, path, job.writes)
    if job.writes:
        _spread_writes(disk, path)


def _device_of(folder):
    """The block device that the file system is on, or None and why."""
    number = os.stat(folder).st_dev
    entry = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"
    if not os.path.exists(entry):
        return None, f"{folder}: not on a block device"
    return "/dev/" + os.path.basename(os.path.realpath(entry)), None


def _may_read(device):
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_DIRECT))
        return True
    except OSError:
        return False


def _device_bytes(device):
    with open(device, "rb") as file:
        return file.seek(0, os.SEEK_END)


def _positions(disk):
    """Measure places from the first bytes to the last; in random order, so that
    what drifts in time is not taken for a slope of the disk."""
    size = _device_bytes(disk.device)
    last = size - POSITION_SPAN_BYTES
    if last <= 0:
        disk.measures.refuse("disk", "position",
                             f"{disk.device} is too small")
        return
    order = list(range(disk.scale.positions))
    random.Random(0).shuffle(order)
    for i in order:
        offset = last * i // (len(order) - 1) // MIB * MIB
        disk.rate("position", {"offset_bytes": offset, "device_bytes": size},
                  disk.device, "read", POSITION_BLOCK_BYTES,
                  offset_bytes=offset, span_bytes=POSITION_SPAN_BYTES)
    _surface(disk, size)


def _surface(disk, size):
    """Measure transfers of each size at each place, again in random order.
    Before each transfer the head of a disk moves, within the place."""
    last = disk.scale.surface_places - 1
    span = min(SURFACE_SPAN_BYTES, size // (last + 1) // MIB * MIB)
    cells = list(itertools.product(range(last + 1), disk.scale.surface_bytes))
    random.Random(0).shuffle(cells)
    for place, block in cells:
        offset = (size - span) * place // last // MIB * MIB
        disk.rate("surface", {"offset_bytes": offset, "device_bytes": size,
                              "transfer_bytes": block},
                  disk.device, "randread", block, times=0.5,
                  offset_bytes=offset, span_bytes=span)


def _drives(disk, drives):
    """Measure the drives of an array one by one, from their first bytes on: it
    is as fast as the slowest of them.  By turns, so that what drifts in time is
    not taken for a drive's."""
    if len(drives) < 2:
        return
    for _ in range(DRIVE_ROUNDS):
        for drive in drives:
            disk.rate("drive", {"device": f"/dev/{drive}",
                                "transfer_bytes": POSITION_BLOCK_BYTES},
                      f"/dev/{drive}", "read", POSITION_BLOCK_BYTES,
                      span_bytes=POSITION_SPAN_BYTES)


def _file_rates(disk, path, writes):
    """Measure through the file system, with a file of ours."""
    try:
        with disk.measures.measuring("disk", "rate"), naming(path):
            _write_file(path, disk.scale.file_bytes)
            disk.transfers(path, ("read", "randread"), {"file": True})
            _extent_rates(disk, path)
            if writes:
                disk.transfers(path, ("write", "randwrite"), {"file": True},
                               writes=True)
                _stream_rates(disk, path)
    finally:
        if os.path.exists(path):
            os.unlink(path)


def _spread_writes(disk, folder):
    """Measure writes of each size that go to many files by turns, as those of
    a sort that distributes its records.  The files are allocated before, and
    take at most half of what is free."""
    room = max(disk.scale.spread_bytes)
    os.mkdir(folder)
    try:
        with disk.measures.measuring("disk", "spread write"), naming(folder):
            free = os.statvfs(folder)
            count = min(disk.scale.spread_files,
                        free.f_bavail * free.f_frsize // 2 // room)
            if count < 2:
                raise Failure(folder, "has no room for two files", RESOURCES)
            for block in disk.scale.spread_bytes:
                _allocate(folder, count, room)
                disk.rate("spread write", {
                    "file": True, "files": count, "transfer_bytes": block},
                    folder, "write", block, times=4, files=count,
                    span_bytes=count * room, writes=True)
    finally:
        shutil.rmtree(folder)


def _allocate(folder, count, size_bytes):
    """New files, of which nothing has been written."""
    for number in range(count):
        path = os.path.join(folder, str(number))
        if os.path.exists(path):
            os.unlink(path)
        with open(path, "xb") as file:
            os.posix_fallocate(file.fileno(), 0, size_bytes)


def _stream_rates(disk, path):
    """What --disk-rates of blinksort takes: in order, alone and both ways at
    once."""
    half = disk.scale.file_bytes // 2
    setting = {"device": disk.device, "file": True,
               "transfer_bytes": STREAM_BLOCK_BYTES,
               "under_way": STREAM_DEPTH}
    for what, ways in STREAM_WAYS.items():
        try:
            rate = fio.stream_rate(disk.program, path, ways,
                                   STREAM_BLOCK_BYTES, STREAM_DEPTH,
                                   disk.scale.disk_seconds, half)
        except Failure as failure:
            disk.measures.refuse("disk", what, failure, setting)
            return
        disk.measures.add("disk", what, setting, "bytes/s", [rate])


def _write_file(path, size_bytes):
    """Write random bytes, which no drive or host can compress."""
    with open(path, "wb") as file:
        for _ in range(size_bytes // MIB):
            file.write(random.randbytes(MIB))
        file.flush()
        os.fsync(file.fileno())


def _extent_rates(disk, path):
    """Rates by position as far as the file's own pieces tell."""
    try:
        pieces = extents.of_file(path)
    except extents.Unknown as why:
        disk.measures.refuse("disk", "extent", why)
        return
    for piece in pieces:
        if piece.physical_bytes is None or piece.length_bytes < 16 * MIB:
            continue
        disk.rate("extent", {"offset_bytes": piece.physical_bytes,
                             "length_bytes": piece.length_bytes},
                  path, "read", POSITION_BLOCK_BYTES,
                  offset_bytes=piece.logical_bytes,
                  span_bytes=piece.length_bytes)


# --- where files lie ---------------------------------------------------------

def _extents(job, measures):
    for path in job.files:
        try:
            with naming(path):
                found = extents.of_file(path)
        except extents.Unknown as why:
            measures.refuse("extents", path, why)
            continue
        device, _ = _device_of(os.path.dirname(os.path.abspath(path)))
        measures.add("extents", path, {
            "device": device, "extents": [
                {"logical_bytes": e.logical_bytes,
                 "physical_bytes": e.physical_bytes,
                 "length_bytes": e.length_bytes} for e in found]},
            "extents", [len(found)])


# --- network -----------------------------------------------------------------

def _network(job, measures):
    job.say("network")
    with measures.measuring("network", "round trip"):
        found = _between_nodes(job) if job.hosts else _on_loopback(job)
        for peer in found["peers"]:
            _peer(job, measures, found, peer)


def _peer(job, measures, found, peer):
    setting = {"rank": peer["rank"], "loopback": not job.hosts,
               "payload_bytes": found["ping_payload_bytes"],
               "lost": peer["lost_pings"]}
    measures.add("network", "round trip", setting, "ns",
                 peer["round_trip_ns"], host=peer["host"])
    for what, by, payload in (
            ("throughput", "", {"payload_bytes": peer["payload_bytes"]}),
            ("tcp throughput", "tcp_", {})):
        arrived, ns = peer[f"{by}arrived_bytes"], peer[f"{by}arrived_ns"]
        if ns:
            measures.add("network", what, {
                "rank": peer["rank"], "loopback": not job.hosts,
                "sent_bytes": found["stream_bytes"],
                "arrived_bytes": arrived} | payload, "bytes/s",
                [round(arrived * 1e9 / ns)], host=peer["host"])
    if peer["tcp_why"]:
        measures.refuse("network", "tcp throughput",
                        f"{peer['host']}: {peer['tcp_why']}")


def _between_nodes(job):
    keys = ["--key-file", job.key] if job.key else []
    done = job.programs.must_call(
        "blinksh", *keys, "-w", job.hosts, "--json", "--",
        job.programs.path("blinkprobe"), "network")
    return json.loads(json.loads(done.stdout)["nodes"][0]["stdout"])


def _on_loopback(job):
    """Two processes of this machine: a bound, not a network."""
    command = [job.programs.path("blinkprobe"), "network",
               "--nodes=127.0.0.1,127.0.0.2",
               f"--job={os.getpid()}.{time.monotonic_ns()}"]
    with subprocess.Popen(command + ["--rank=1"], text=True,
                          stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as answering:
        try:
            done = subprocess.run(command + ["--rank=0"], text=True,
                                  check=False, capture_output=True)
        finally:
            answering.kill()
    if done.returncode:
        raise Failure("blinkprobe", done.stderr.strip(), RESOURCES)
    return json.loads(done.stdout)
