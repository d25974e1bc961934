"""What is to be predicted: the options of blinkreport model."""

import argparse
import re
from dataclasses import dataclass

NODES_MAX = 65535
# No more numbers of nodes, or of records, are taken: one table has them all.
LIST_MAX = 64
RECORDS_MAX = 2**50
RECORD_BYTES_MAX = 2**20
LINK_MAX = 10**15
MTU_MIN, MTU_MAX = 576, 65535
CPUS_MAX = 4096
SCENARIOS = ("platter", "cache", "pagecache")
NODES, RECORDS = (16, 64, 256, 1024), (10**6, 10**8)
LINK_BITS_PER_S = 10**10
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}


@dataclass(frozen=True)
class Wanted:
    nodes: tuple = NODES
    records: tuple = RECORDS
    record_bytes: int = 100
    # If it is None, take what the record has measured between nodes, else 10
    # Gbit/s.
    link_bits_per_s: int | None = None
    mtu_bytes: int = 1500
    # CPUs of a node that send, and that receive.
    cpus: tuple = (1, 1)
    # If it is None, take platter if the record has rates of a disk, else
    # pagecache.
    scenario: str | None = None


def _refuse(text, what):
    raise argparse.ArgumentTypeError(f"'{text}' is not {what}")


def _scaled(text, most, what):
    """A whole number, with k, M, G or T of 1000."""
    found = re.fullmatch(r"([0-9]{1,16})([kKMGT]?)", text)
    number = int(found[1]) * 1000 ** _POWERS[found[2]] if found else 0
    return number if 1 <= number <= most else _refuse(text, what)


def _list(text, parts):
    """Ascending, each once."""
    numbers = sorted({number for part in text.split(",")
                      for number in parts(part)})
    return tuple(numbers) if len(numbers) <= LIST_MAX else _refuse(
        f"{text[:20]}...", f"a list of at most {LIST_MAX}")


def nodes(text):
    """16,64 or 16..4096, which stands for powers between them: of 4 if they
    lead from one to the other, else of 2."""
    what = (f"numbers of nodes from 1 to {NODES_MAX}, such as 16,64 or "
            "16..4096")

    def parts(part):
        low, dots, high = part.partition("..")
        low = _scaled(low, NODES_MAX, what)
        return _between(low, _scaled(high, NODES_MAX, what)) if dots else [low]
    return _list(text, parts)


def _between(low, high):
    for factor in 4, 2:
        found = [low]
        while found[-1] * factor <= high:
            found.append(found[-1] * factor)
        if found[-1] == high:
            return found
    return [*found, high] if low < high else _refuse(
        f"{low}..{high}", "from the fewer nodes to the more")


def records(text):
    what = "numbers of records, such as 1M,100M"
    return _list(text, lambda part: [_scaled(part, RECORDS_MAX, what)])


def record_bytes(text):
    return _scaled(text, RECORD_BYTES_MAX,
                   f"the bytes of a record, from 1 to {RECORD_BYTES_MAX}")


def link(text):
    return _scaled(text.removesuffix("bit"), LINK_MAX,
                   "bits a second, such as 10G")


def mtu(text):
    what = f"the bytes of a packet, from {MTU_MIN} to {MTU_MAX}"
    size = _scaled(text, MTU_MAX, what)
    return size if size >= MTU_MIN else _refuse(text, what)


def cpus(text):
    """SEND+RECEIVE"""
    what = "CPUs that send and that receive, such as 2+4"
    parts = text.split("+")
    if len(parts) != 2:
        _refuse(text, what)
    return tuple(_scaled(part, CPUS_MAX, what) for part in parts)
