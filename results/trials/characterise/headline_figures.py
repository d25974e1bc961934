"""The figures that a reader compares machines by, in a few lines."""

from trials.base import units
from trials.characterise import text_format


def title(profile) -> str:
    """The words of the heading that hold for all rows."""
    sizes = {curve.points[-1][0] for curve in profile.memory}
    if not sizes:
        return "medians"
    return "medians; of memory, " + (
        text_format.size_words(*sizes) if len(sizes) == 1
        else "the largest areas")


def rows(profile) -> list:
    """(what, figure) of each part."""
    return [*_memory(profile), *_starts(profile), *_disk(profile),
            *_streams(profile), *_network(profile)]


# A rate from which on it is no longer worth a thread.
_NEARLY_ALL = 0.9
_NEARLY = f"{100 * _NEARLY_ALL:.0f} % of the most"


def _memory(profile):
    ends = {profile.thread_counts[i] for i in (0, -1)} \
        if profile.thread_counts else ()
    for curve in profile.memory:
        if curve.threads not in ends:
            continue
        _, spread = curve.points[-1]
        if curve.name in ("read", "random lines"):
            yield (f"{curve.name}, {profile.threads_words(curve.threads)}",
                   text_format.rate_words(spread.middle))
    for curve in profile.thread_rates:
        if curve.name == "read":
            most = max(spread.middle for _, spread in curve.points)
            yield f"read, {_NEARLY}", _least(curve, most, lambda threads: (
                "1 thread" if threads == 1 else f"{threads} threads"))
    for curve in profile.access:
        (_, near), (_, far) = curve.points[0], curve.points[-1]
        yield (f"one access, {curve.name}",
               f"{units.digits(near.middle)} to {units.digits(far.middle)} ns")


def _least(curve, most, words):
    """From where on the curve has nearly all of the most."""
    return next((f"from {words(at)} on" for at, spread in curve.points
                 if spread.middle >= _NEARLY_ALL * most),
                f"not by {words(curve.points[-1][0])}")


def _starts(profile):
    return [(f"start of {s.name}", text_format.time_words(s.spread.middle))
            for s in profile.starts]


def _disk(profile):
    rates = [place.spread.middle for place in profile.positions]
    if rates:
        yield ("disk, in order, by place",
               text_format.rate_words(max(rates), min(rates)))
    yield from _surface(profile)
    if profile.drives:
        (slowest, least), (_, most) = profile.drives[0], profile.drives[-1]
        yield ("slowest drive", f"{slowest}: "
               + text_format.rate_words(least.middle) + ", the fastest "
               + text_format.rate_words(most.middle))
    for name, group in profile.transfers.items():
        for curve in group:
            if curve.name == "random read":
                size, spread = curve.points[0]
                yield (f"{name}, random {text_format.size_words(size)}",
                       text_format.rate_words(spread.middle))
            if curve.name == "write by turns":
                most = max(spread.middle for _, spread in curve.points)
                yield (f"{name}, writes by turns, {_NEARLY}",
                       _least(curve, most, text_format.size_words))


def _surface(profile):
    """How large random reads must be, at the ends of the device."""
    for end, words in (0, "first"), (-1, "last"):
        if profile.surface:
            curve = profile.surface[end]
            most = max([spread.middle for _, spread in curve.points]
                       + [p.spread.middle for p in profile.positions[end:][:1]])
            yield (f"disk, random, {_NEARLY}, {words} place",
                   _least(curve, most, text_format.size_words))


# A disk that serves more small reads than this in a second, one at a time, has
# no arm: several under way cost it less.
_ARM_REQUESTS = 1000


def _streams(profile):
    if not profile.stream_rates:
        return
    words = [f"{rate / 2**20:.0f}M" for rate in profile.stream_rates]
    requests = [spread.middle / size for group in profile.transfers.values()
                for curve in group if curve.name == "random read"
                for size, spread in curve.points[:1]]
    if requests and 1 <= requests[-1] < _ARM_REQUESTS:
        words.append(f"{requests[-1]:.0f}")
    yield "blinksort --disk-rates", ":".join(words)


def _network(profile):
    where = "on loopback" if profile.loopback \
        else f"{len(profile.round_trips)} nodes"
    trips = [s.spread.middle for s in profile.round_trips]
    if trips:
        low, high = map(text_format.time_words, (min(trips), max(trips)))
        yield (f"round trip, {where}",
               low if low == high else f"{low} to {high}")
    for words, series in (("throughput", profile.throughputs),
                          ("TCP throughput", profile.tcp_throughputs)):
        rates = [s.spread.middle for s in series]
        if rates:
            yield (f"{words}, {where}",
                   text_format.rate_words(min(rates), max(rates)))
