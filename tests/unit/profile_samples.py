"""Made-up characterisations, for the tests of what shows them.

They are written as characterise writes them; figures are such as a machine's
with a rotating disk may be.

    make(folder, hosts=("a:7300", "b:7300"), without=("disk",), files=(...))
"""

import json
import os
import random

import unit  # noqa: F401: results/ on the path
from trials.characterise import measurements

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
AREAS = tuple(16 * KIB << (2 * i) for i in range(8))
BLOCKS = (64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, MIB)
TRANSFERS = (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
# GB/s in the first cache and in memory.
RATES = {"read": (180, 14), "write": (95, 9), "copy": (80, 6),
         "random": (40, 2.5)}
DEVICE, DEVICE_BYTES = "/dev/sda", 1000 * 10**9
# A disk's turn, and how far its head goes on average.
TURN_NS, SEEK_NS = 8_333_333, 8_500_000


def _falling(first, last, step, steps, rng):
    share = step / (steps - 1)
    return first ** (1 - share) * last ** share * rng.uniform(0.97, 1.03)


def _memory(add, rng):
    for threads in (1, 16):
        gain = 1 if threads == 1 else 9
        for what, (first, last) in RATES.items():
            for step, area in enumerate(AREAS):
                rate = gain * _falling(first, last, step, len(AREAS), rng)
                add("memory", what, {
                    "area_bytes": area, "threads": threads,
                    "block_bytes": 64 if what == "random" else 4 * KIB},
                    "bytes/s", [round(rate * 1e9 * rng.uniform(0.93, 1.02))
                                for _ in range(7)])
        for area, ns in zip(AREAS, (1.1, 3, 3.2, 9, 11, 40, 85, 92)):
            add("memory", "chase", {"area_bytes": area, "block_bytes": 64,
                                    "threads": threads}, "ns/access",
                [round(ns * rng.uniform(1, 1.15), 3) for _ in range(7)])
        for step, block in enumerate(BLOCKS):
            rate = gain * _falling(2.5, 13, step, len(BLOCKS), rng)
            add("memory", "random", {
                "area_bytes": AREAS[-1], "block_bytes": block,
                "threads": threads}, "bytes/s",
                [round(rate * 1e9 * rng.uniform(0.95, 1.05))
                 for _ in range(7)])


def _memory_blocks(add, rng):
    """Of all but random reading."""
    for threads in (1, 16):
        gain = 1 if threads == 1 else 9
        for what, first, last in (("read", 13, 14), ("write", 9, 9),
                                  ("random-write", 1.5, 9)):
            for step, block in enumerate(BLOCKS):
                rate = gain * _falling(first, last, step, len(BLOCKS), rng)
                add("memory", what, {
                    "area_bytes": AREAS[-1], "block_bytes": block,
                    "threads": threads}, "bytes/s",
                    [round(rate * 1e9 * rng.uniform(0.95, 1.05))
                     for _ in range(7)])


def _codecs(add, rng):
    for codec, part, rates in (("lz4", 0.41, (500e6, 2.4e9)),
                               ("zstd", 0.29, (350e6, 1.1e9))):
        for records, what, rate, left in (
                ("ascii", "compress", rates[0], part),
                ("ascii", "decompress", rates[1], part),
                ("binary", "compress", 4e9, 1)):
            add("codec", what, {
                "codec": codec, "records": records, "block_bytes": 262100,
                "plain_bytes": 16 * MIB, "stored_bytes":
                round(16 * MIB * left)}, "bytes/s", [
                    round(rate * rng.uniform(0.9, 1)) for _ in range(7)])


# Of 16 CPUs; memory has hardly more for more than eight.
THREADS = {2: 1.9, 4: 3.6, 8: 8.8}
# (CPUs' node, memory's): ns of an access, part of the local rate.
NODES = {(0, 0): (92, 1), (0, 1): (141, 0.6), (1, 0): (143, 0.6),
         (1, 1): (93, 1)}


def _memory_saturation(add, rng):
    for threads, gain in THREADS.items():
        for what, (_, last) in RATES.items():
            add("memory", what, {
                "area_bytes": AREAS[-1], "threads": threads,
                "block_bytes": 64 if what == "random" else 4 * KIB},
                "bytes/s", [round(gain * last * 1e9 * rng.uniform(0.97, 1.02))
                            for _ in range(7)])


def _memory_by_node(add, rng):
    for (cpu, memory), (ns, part) in NODES.items():
        shared = {"area_bytes": 256 * MIB, "cpu_node": cpu,
                  "memory_node": memory, "distance": 10 + 11 * (cpu != memory)}
        for what in ("read", "copy"):
            rate = part * RATES[what][1] * 4e9
            add("memory", what, shared | {
                "block_bytes": 4 * KIB, "threads": 8,
                "placed_bytes": 8 * 256 * MIB}, "bytes/s",
                [round(rate * rng.uniform(0.95, 1.02)) for _ in range(7)])
        add("memory", "chase", shared | {
            "block_bytes": 64, "threads": 1, "placed_bytes": 256 * MIB},
            "ns/access", [round(ns * rng.uniform(1, 1.1), 3)
                          for _ in range(7)])


def _transfer(block, rate_mb, moved_ns):
    """(setting, rate) of transfers that begin after the head has moved."""
    ns = block * 1e3 / rate_mb + moved_ns
    return {"transfers": max(1, round(5e8 / ns)),
            "transfer_median_ns": round(ns),
            "transfer_p99_ns": round(ns * 1.2 + moved_ns),
            "transfer_min_ns": round(max(ns - moved_ns * 0.8, ns * 0.9))
            }, round(block * 1e9 / ns)


def _disk(add, rng):
    for of_file in (False, True):
        for what in ("read", "randread") + (("write",) if of_file else ()):
            for block in TRANSFERS:
                moved = SEEK_NS + TURN_NS / 2 if what == "randread" else 60e3
                found, rate = _transfer(block, 100, moved)
                add("disk", what, {"device": DEVICE, "file": of_file,
                                   "transfer_bytes": block} | found,
                    "bytes/s", [rate])
    for block in (MIB, 5 * MIB, 10 * MIB, 20 * MIB, 40 * MIB, 80 * MIB):
        found, rate = _transfer(block, 90, SEEK_NS + TURN_NS / 2)
        add("disk", "spread write", {
            "device": DEVICE, "file": True, "files": 300,
            "transfer_bytes": block} | found, "bytes/s", [rate])
    for what, rate in (("stream read", 700), ("stream write", 500),
                       ("stream both", 900)):
        add("disk", what, {"device": DEVICE, "file": True, "under_way": 8,
                           "transfer_bytes": 2 * MIB}, "bytes/s",
            [rate * MIB])
    order = list(range(17))
    rng.shuffle(order)
    last = DEVICE_BYTES - 64 * MIB
    for i in order:
        found, rate = _transfer(MIB, (100 - 50 * i / 16) *
                                rng.uniform(0.99, 1.01), 60e3)
        add("disk", "position", {"device": DEVICE, "offset_bytes":
                                 last * i // 16 // MIB * MIB,
                                 "device_bytes": DEVICE_BYTES} | found,
            "bytes/s", [rate])


def _surface(add, rng):
    for place in range(9):
        for block in (16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB):
            found, rate = _transfer(block, (100 - 50 * place / 8) *
                                    rng.uniform(0.99, 1.01), TURN_NS / 2)
            add("disk", "surface", {
                "device": DEVICE, "transfer_bytes": block,
                "offset_bytes": (DEVICE_BYTES - GIB) * place // 8,
                "device_bytes": DEVICE_BYTES} | found, "bytes/s", [rate])


def extents(pieces):
    """Of (physical offset or None, length), one after the other."""
    found, logical = [], 0
    for physical, length in pieces:
        found.append({"logical_bytes": logical, "physical_bytes": physical,
                      "length_bytes": length})
        logical += length
    return found


FILES = (("/data/in", [(21 * GIB, 96 * MIB)]),
         ("/data/pieces", [(700 * GIB + 37 * MIB * i, 8 * MIB)
                           for i in range(12)] + [(400 * GIB, 4 * MIB)]))


def _files(add, files):
    for path, pieces in files:
        add("extents", path, {"device": DEVICE, "extents": extents(pieces)},
            "extents", [len(pieces)])


def _starts(add, rng):
    for what, ns in (("nothing", 310_000), ("blinksort --version", 402_000)):
        add("start", what, {}, "ns", [
            round(ns + rng.expovariate(1 / 12_000)
                  + (3e6 if rng.random() < 0.004 else 0))
            for _ in range(1000)])


def _network(add, rng, hosts):
    for rank, host in enumerate(hosts or ["127.0.0.2"], 1):
        shared = {"rank": rank, "loopback": not hosts}
        add("network", "round trip", shared | {"payload_bytes": 64,
                                               "lost": rank % 3 // 2},
            "ns", [round(31_000 + 900 * rank + rng.expovariate(1 / 2_500))
                   for _ in range(200)], host=host)
        add("network", "throughput", shared | {
            "payload_bytes": 8928, "sent_bytes": 64 * MIB,
            "arrived_bytes": 64 * MIB - 8928 * 7 * (rank - 1)}, "bytes/s",
            [round(1.17e9 * rng.uniform(0.9, 1.0))], host=host)
        add("network", "tcp throughput", shared | {
            "sent_bytes": 64 * MIB, "arrived_bytes": 64 * MIB}, "bytes/s",
            [1_180_000_000 + rank], host=host)


def make(folder, hosts=(), without=(), files=FILES, seed=1):
    """A characterisation of all parts but those `without`, which have a line
    that says why."""
    measures = measurements.Measures(folder)
    rng = random.Random(seed)

    def add(part, what, *rest, host=None):
        if part not in without:
            measures.add(part, what, *rest, host=host)

    _memory(add, rng)
    _memory_blocks(add, random.Random(seed))
    _memory_saturation(add, random.Random(seed))
    _memory_by_node(add, random.Random(seed))
    _codecs(add, random.Random(seed))
    _starts(add, rng)
    _disk(add, rng)
    _surface(add, random.Random(seed))
    _files(add, files)
    _network(add, rng, hosts)
    for part, what, why in (
            ("memory", "read", "no memory for the areas"),
            ("disk", "rate", "fio is not installed"),
            ("extents", "/data/in", "the file system does not tell"),
            ("network", "round trip", "node b:7300: no answer")):
        if part in without:
            measures.refuse(part, what, why)
    measures.close()
    return folder


def add_environment(folder, **before):
    """As a session of trials notes it."""
    document = {"schema": "blinktrial-environment-1", "sessions": [{
        "begin_unix_ns": 1_795_000_000_000_000_000, "before": before,
        "after": None, "changed": []}]}
    path = os.path.join(folder, "environment.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
