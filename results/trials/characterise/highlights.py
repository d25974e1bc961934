"""The figures that a reader compares machines by, in a few lines."""

from trials.base import units
from trials.characterise import wording


def title(traits) -> str:
    """What holds for all rows."""
    sizes = {curve.points[-1][0] for curve in traits.memory}
    if not sizes:
        return "medians"
    return "medians; of memory, " + (
        wording.size_words(*sizes) if len(sizes) == 1 else "the largest areas")


def rows(traits) -> list:
    """(what, figure) of each part."""
    return [*_memory(traits), *_starts(traits), *_disk(traits),
            *_network(traits)]


def _memory(traits):
    for curve in traits.memory:
        _, spread = curve.points[-1]
        if curve.name in ("read", "random lines"):
            yield (f"{curve.name}, {traits.threads_words(curve.threads)}",
                   wording.rate_words(spread.middle))
    for curve in traits.access:
        (_, near), (_, far) = curve.points[0], curve.points[-1]
        yield (f"one access, {curve.name}",
               f"{units.digits(near.middle)} to {units.digits(far.middle)} ns")


def _starts(traits):
    return [(f"start of {s.name}", wording.time_words(s.spread.middle))
            for s in traits.starts]


def _disk(traits):
    rates = [place.spread.middle for place in traits.positions]
    if rates:
        yield ("disk, in order, by place",
               wording.rate_words(max(rates), min(rates)))
    for name, group in traits.transfers.items():
        for curve in group:
            if curve.name == "random read":
                size, spread = curve.points[0]
                yield (f"{name}, random {wording.size_words(size)}",
                       wording.rate_words(spread.middle))


def _network(traits):
    where = "on loopback" if traits.loopback \
        else f"{len(traits.round_trips)} nodes"
    trips = [s.spread.middle for s in traits.round_trips]
    if trips:
        low, high = map(wording.time_words, (min(trips), max(trips)))
        yield (f"round trip, {where}",
               low if low == high else f"{low} to {high}")
    rates = [s.spread.middle for s in traits.throughputs]
    if rates:
        yield (f"throughput, {where}",
               wording.rate_words(min(rates), max(rates)))
