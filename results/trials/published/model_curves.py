"""Curves of blinksort's model, for figures that need machines of their own."""

import functools

from trials.characterise.machine_profile import Curve, Spread
from trials.forecast import stages

# TritonSort's Figure 1 is of so many records, of a disk of 100 MB/s that turns
# 120 times a second and reads from as many places.  More runs are merged where
# there is less memory.
_MERGED_RECORDS = 2_000_000_000
_DISK_RATES = "100000000:100000000:100000000:120"
_MEMORIES = tuple(1 << power for power in range(26, 33))
# Its Figure 9 is of links of 10 Gbit/s; each node has so many records.
_LINK_BITS_PER_S = 10**10
_NODE_RECORDS = 10_000_000
_NODES = (2, 4, 8, 16, 32, 52)
# DEPSort's Figure 3 is of 16 GiB of integers, and of 4 nodes that compute.
_INTEGERS = 1 << 32
_COMPUTING = 4
_DATA_NODES = (1, 2, 4)


@functools.cache
def explained(programs, *arguments) -> dict:
    """The plan for these machines; it is asked for once."""
    return programs.document("blinksort", "--explain", "--json", *arguments)


def merging(programs) -> Curve:
    """The rate of a merge by the number of runs."""
    points = {}
    for memory_bytes in _MEMORIES:
        plan = explained(
            programs, f"--suppose=1:{_MERGED_RECORDS}", "-S", memory_bytes,
            "--threads=8", f"--disk-rates={_DISK_RATES}")
        if not plan["refused"]:
            points[plan["runs"]] = Spread.of([plan["bytes"] * 1e9 / sum(
                one["ns"] for one in plan["predicted_passes"]
                if one["pass"] != "runs")])
    return Curve("blinksort", points=sorted(points.items()))


def receiving(programs) -> list:
    """Bytes a second that each node receives, by the number of nodes: a curve
    for each schedule."""
    found = [stages.predict(programs, nodes, nodes * _NODE_RECORDS, 100,
                            link=_LINK_BITS_PER_S) for nodes in _NODES]
    return [Curve(name, points=[
        (one.nodes, Spread.of([100e9 * _NODE_RECORDS * (1 - 1 / one.nodes)
                               / one.by(name)]))
        for one in found if one.by(name)]) for name in stages.SCHEDULES]


def by_roles(programs, arguments) -> list:
    """The time of a sort by the number of nodes that keep runs: a curve for
    each number of those at the storage.  `arguments` are those of a plan for
    such nodes, of which the first is --suppose."""
    storage = arguments[0].rpartition(",")[2]
    return [Curve(f"{readers} at the storage", points=[
        (keepers, Spread.of([explained(
            programs, f"--suppose={_COMPUTING + readers + keepers}:{_INTEGERS},"
            f"readers={readers},keepers={keepers},{storage}",
            *arguments[1:])["predicted_ns"]])) for keepers in _DATA_NODES])
            for readers in _DATA_NODES]
