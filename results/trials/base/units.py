"""Figures, and foreign texts, as people read them.

Four digits, which is more than any figure here is worth: a reader can then
tell two times apart that differ by a thousandth.
"""

DURATIONS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))
SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"),
         (1, "bytes"))
# A value that would round up to the next unit is written in that.
ROUNDED_UP = 0.99995


def printable(text) -> str:
    """The text on one line, without what a terminal or XML would obey."""
    return "".join(sign if sign.isprintable() else "\ufffd"
                   for sign in str(text))


def shortened(text: str) -> str:
    """The text, or of a very long one the beginning and the end, as the C
    programs shorten it: what follows it in a message then stands."""
    return text if len(text) <= 200 else f"{text[:100]}...{text[-100:]}"


def digits(value: float) -> str:
    """Four significant digits, and never an exponent: 1.234, 23.71, 912."""
    for decimals, limit in ((3, 9.9995), (2, 99.995), (1, 999.95)):
        if abs(value) < limit:
            return f"{value:.{decimals}f}"
    return f"{value:.0f}"


def unit_of(value: float, units, least=1.0) -> tuple:
    """The first (size, name) of these units, the largest first, that the value
    is at least that part of; else the last."""
    return next((each for each in units if value >= least * each[0]),
                units[-1])


def _scaled(value, units):
    size, name = unit_of(abs(value), units, ROUNDED_UP)
    if size == 1 and value == int(value):
        return f"{int(value)} {name}"
    return f"{digits(value / size)} {name}"


def duration(ns: float) -> str:
    """23712345 -> "23.71 ms"; whole nanoseconds below a microsecond."""
    return _scaled(ns, DURATIONS)


def size(count_bytes: float) -> str:
    """100000000 -> "95.37 MiB"."""
    return _scaled(count_bytes, SIZES)


def with_interval(value, interval, show=digits, unit="") -> str:
    """"1.234 s [1.200, 1.301]"; "-" of no value."""
    if value is None:
        return "-"
    return show(value) + unit + (
        f" [{show(interval.low)}, {show(interval.high)}]" if interval else "")


def milliseconds(ns: float) -> str:
    """The number alone, for columns whose heading has the unit."""
    return digits(ns / 1e6)


def change(ratio: float) -> str:
    """1.0234 -> "+2.34 %": how much more than one a ratio is."""
    return f"{(ratio - 1) * 100:+.2f} %"
