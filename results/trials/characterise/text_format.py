"""The figures of a characterisation in words, alike in pictures and tables."""

import numpy as np

from trials.base import units

# Words that say which figures stand beside a name.
SAMPLES = "median [least, most]"
TRANSFERS = "rate [of its transfers: 99th percentile of times, shortest]"


def rate_unit(largest_bytes_per_s):
    """(bytes/s in the unit, its name): decimal units, as is usual for rates."""
    return units.unit_of(largest_bytes_per_s / 2, (
        (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")))


def largest(curves):
    return max(spread.high for curve in curves for _, spread in curve.points)


def short_size(count_bytes):
    """The size as it is written in the programs' options: "64K"."""
    size, name = units.unit_of(count_bytes, units.SIZES)
    return f"{count_bytes / size:.4g}{name[0].replace('b', '')}"


def size_words(count_bytes):
    """A size that the measurement chose, with as few digits as it needs:
    "256 MiB"."""
    size, name = units.unit_of(count_bytes, units.SIZES)
    return f"{count_bytes / size:.4g} {name}"


def rate_words(*rates):
    """"863.4 MB/s", "863.4 to 1097 MB/s": in one unit."""
    size, name = rate_unit(max(rates))
    figures = dict.fromkeys(units.digits(rate / size) for rate in rates)
    return f"{' to '.join(figures)} {name}"


def curve_words(curve, plot) -> str:
    """"read: 98.10 GB/s at 16K, 11.02 GB/s at 256M" """
    size, name = plot.unit
    ends = curve.points if len(curve.points) < 2 else (curve.points[0],
                                                       curve.points[-1])
    return f"{curve.name}: " + ", ".join(
        f"{units.digits(spread.middle / size)} {name} at {plot.place(at)}"
        for at, spread in ends)


def size_scale(count_bytes):
    """(bytes in the unit, its name) for an axis that ends at this size."""
    return units.unit_of(count_bytes / 2, units.SIZES[:-1])


def precise(end, ends):
    """One of the ends, with as many digits as tell both of them apart."""
    unit, name = size_scale(ends[1])
    width = (ends[1] - ends[0]) / unit
    decimals = int(np.ceil(-np.log10(width / 100))) if width else 0
    return f"{end / unit:.{max(1, decimals)}f} {name}" if end else "0"


def span(file):
    """(first byte, end) of the disk range that holds the file's extents."""
    return (min(p["physical_bytes"] for p in file.placed),
            max(p["physical_bytes"] + p["length_bytes"] for p in file.placed))


def file_words(file) -> str:
    count = len(file.pieces)
    total = sum(piece["length_bytes"] for piece in file.pieces)
    words = (f"{units.size(total)} in {count:,} "
             + ("extent" if count == 1 else "extents"))
    if not file.placed:
        return words + ", places not told"
    first, end = span(file)
    words += (f", from {precise(first, (first, end))} to "
              f"{precise(end, (first, end))}")
    if file.device_bytes:
        words += f" of {units.size(file.device_bytes)}"
    return words


def time_words(ns) -> str:
    return units.duration(ns).replace(" us", " µs")


def series_figures(series) -> str:
    p50, p99 = np.percentile(series.samples, (50, 99))
    lost = series.setting.get("lost")
    return (f"median {time_words(p50)}, minimum "
            f"{time_words(series.samples.min())}, "
            f"p99 {time_words(p99)}, maximum "
            f"{time_words(series.samples.max())}, "
            f"{len(series.samples)} samples"
            + (f", {lost} lost" if lost else ""))


def part_words(series) -> str:
    """"99.91 % of 64 MiB arrived", "41.5 % of 16 MiB stored" """
    for whole, part in (("sent", "arrived"), ("plain", "stored")):
        of = series.setting.get(f"{whole}_bytes")
        size = series.setting.get(f"{part}_bytes")
        if of and size is not None:
            share = f"{100 * size / of:.2f}".rstrip("0").rstrip(".")
            return f"{share} % of {units.size(of)} {part}"
    return ""
