"""Which NUMA nodes have CPUs and memory that a process may use.

Where the system does not tell, or not of each CPU, all is of one node, as
blinksort takes it to be.
"""

from dataclasses import dataclass, field
from typing import Iterable

from trials.machine.environment import Tree

FOLDER = "sys/devices/system/node"
# blinkprobe can tell this many nodes apart.
NODES_MAX = 64


@dataclass(frozen=True)
class Nodes:
    """Numbers of nodes, ascending."""

    # node: how many of its CPUs may be used, 1 at least
    cpus: dict
    memory: list
    # (from node, to node): as the firmware has it, 10 is a node to itself
    distances: dict = field(default_factory=dict)


def numbers(text) -> list:
    """The numbers of a list such as "0-2,5"; none where the text is no list."""
    found = []
    try:
        for part in (text or "").strip().split(","):
            first, dash, last = part.partition("-")
            found += range(int(first), int(last if dash else first) + 1)
    except ValueError:
        return []
    return found


def read(tree: Tree, cpus: Iterable[int]) -> Nodes:
    """The nodes of these CPUs, and of the memory that this process may have."""
    cpus = set(cpus)
    online = [node for node in numbers(tree.text(f"{FOLDER}/online"))
              if node < NODES_MAX]
    counts = {node: len(cpus.intersection(
        numbers(tree.text(f"{FOLDER}/node{node}/cpulist"))))
        for node in online}
    if sum(counts.values()) != len(cpus):
        return Nodes({0: len(cpus)}, [0])
    having = numbers(tree.text(f"{FOLDER}/has_memory")) or online
    allowed = _allowed(tree) or having
    return Nodes({node: count for node, count in counts.items() if count},
                 [node for node in online if node in having
                  and node in allowed], _distances(tree, online))


def _allowed(tree):
    """Memory, by a cpuset."""
    lines = (tree.text("proc/self/status") or "").splitlines()
    return next((numbers(line.partition(":")[2]) for line in lines
                 if line.startswith("Mems_allowed_list:")), [])


def _distances(tree, online):
    """A node's line has a number for each node that is online, in order."""
    found = {}
    for node in online:
        words = (tree.text(f"{FOLDER}/node{node}/distance") or "").split()
        if len(words) == len(online) and all(map(str.isdecimal, words)):
            found |= {(node, to): int(word)
                      for to, word in zip(online, words)}
    return found
