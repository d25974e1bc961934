"""The pictures of a characterisation: one for each topic that was measured."""

from trials.base import units
from trials.characterise import (curves, disk_map, series_histograms,
                                 text_format, throughput_bars)
from trials.characterise.curves import Panel, Plot
from trials.drawing.picture import Picture

TITLES = {
    "memory": "Memory: rates by area",
    "threads": "Memory: rates by number of threads",
    "nodes": "Memory: from each NUMA node to each",
    "codec": "Compression of records",
    "blocks": "Memory: rates by block, in order and at random",
    "access": "Memory: the time of one access",
    "transfers": "Disk: rates by size of transfer",
    "positions": "Disk: rates by place",
    "surface": "Disk: rates by place and size of transfer",
    "files": "Where files lie on their disk",
    "start": "Starting a program",
    "round-trip": "Network: round trips",
    "throughput": "Network: throughput",
}
_SPREAD = ("Dots are medians; the thin line goes from the least sample to the "
           "largest, the thick one from quartile to quartile.")
_TRANSFER_SPREAD = ("Dots are rates over all of a measurement; the line goes "
                    "from the 99th percentile of its transfers' times to the "
                    "shortest, as rates.")
_TIMES = ("Every sample is a tick under the axis; those beyond a broken axis "
          "are in order, not to scale.")
_LOOPBACK = " Two processes of this machine: a bound, not a network."


def pictures(profile) -> list:
    """The pictures in a report's order; a topic without figures has none."""
    makers = (_memory, _threads, _blocks, _access, _codec, _transfers,
              _positions, _surface, _files, _start, _round_trips, _throughput)
    return [made for made in (make(profile) for make in makers) if made]


def _picture(topic, caption, description, draw):
    return Picture(topic, TITLES[topic], caption, description, draw)


def _of_curves(topic, panels, x_words, caption, *axis):
    """`panels`: (title, curves) of each; `axis`: as Plot takes them, unless it
    is one of rates."""
    panels = [Panel(title, group) for title, group in panels if group]
    return curves.picture(topic, TITLES[topic], caption, Plot(
        panels, x_words, *axis)) if panels else None


# --- memory -------------------------------------------------------------------

def _memory(profile):
    return _of_curves(
        "memory", profile.by_threads(profile.memory),
        "area of each thread, bytes",
        "How fast memory is gone over in order, and in lines of 64 bytes in "
        f"any order, by how much of it there is. {_SPREAD}")


def _threads(profile):
    area = text_format.size_words(profile.thread_area_bytes or 0)
    return _of_curves(
        "threads", [(f"area of {area} for each thread", profile.thread_rates)],
        "threads",
        "All threads at once, each on a CPU of its own: where a curve is flat "
        f"more threads have no more of the memory. {_SPREAD}")


def _blocks(profile):
    area = text_format.size_words(profile.blocks_area_bytes or 0)
    return _of_curves(
        "blocks", profile.by_threads(profile.blocks), "block, bytes",
        f"Blocks of an area of {area} for each thread, one behind the other "
        "and in any order: how large one must be before its place does not "
        f"matter. {_SPREAD}")


def _access(profile):
    caches = profile.caches()
    more = (" Dashed lines are the caches' sizes, as the system has them."
            if caches else "")
    return _of_curves(
        "access", [("one line after the other", profile.access)],
        "area of each thread, bytes",
        "How long a line takes when its address was in the line before: each "
        f"step is the end of a cache. {_SPREAD}{more}",
        "time", (1, "ns"), caches)


def _codec(profile):
    return _bars("codec", profile.codecs, (
        "Records as blinkgen makes them, in order, by one thread, each block "
        "by itself: bytes of records by the time, and what becomes of them."))


# --- disk ---------------------------------------------------------------------

def _transfers(profile):
    device = profile.device or "device"
    return _of_curves(
        "transfers", [
            (name.replace("the device", device).replace("on it",
                                                        f"on {device}"), each)
            for name, each in profile.transfers.items()], "transfer, bytes",
        "One transfer at a time, past the page cache; of many files, each "
        "write is to the next one, and nothing of them was written before. "
        f"{_TRANSFER_SPREAD}")


def _positions(profile):
    if not profile.positions:
        return None
    size, name = profile.rate_unit
    slow, fast = (pick(profile.positions, key=lambda p: p.spread.middle)
                  for pick in (min, max))
    words = "; ".join(
        f"{what} {units.digits(place.spread.middle / size)} {name} at "
        f"{units.size(place.offset_bytes)}"
        for what, place in (("fastest", fast), ("slowest", slow)))
    what = ("Extents of a file, each as wide as it is: the device itself may "
            "not be read." if profile.by_extents else
            "Read in any order of time, so that what drifts is not taken for "
            "a slope of the disk.")
    return _picture(
        "positions", f"{what} {_TRANSFER_SPREAD}",
        f"{profile.device or 'the disk'}: {words}",
        lambda width_px: disk_map.draw_rates(profile, (size, name), width_px))


def _surface(profile):
    return _of_curves(
        "surface", [(profile.device or "device", profile.surface)],
        "transfer, bytes",
        "Reads in any order, one at a time, from each place on: the first is "
        "at the rim of a rotating disk, the last at the spindle. How large a "
        "transfer must be before the way to it does not matter. "
        f"{_TRANSFER_SPREAD}")


def _files(profile):
    files = [file for file in profile.files if file.placed]
    if not files:
        return None
    unknown = any(not file.device_bytes for file in files)
    return _picture(
        "files",
        "The bar is the whole device from its first byte on, and blue what "
        "the file takes of it; the lower bar is its span, larger." + (
            " Where the device's size is not known the bar ends, dashed, "
            "with the file." if unknown else ""),
        "; ".join(f"{file.path}: {text_format.file_words(file)}"
                  for file in files),
        lambda width_px: disk_map.draw_files(files, width_px))


# --- programs and nodes -------------------------------------------------------

def _of_series(topic, series, of_what, caption):
    return _picture(
        topic, caption,
        "; ".join(f"{each.name}: {text_format.series_figures(each)}"
                  for each in series),
        lambda width_px: series_histograms.draw(series, of_what, width_px))


def _start(profile):
    return profile.starts and _of_series(
        "start", profile.starts, "starts",
        "From before a process is made until its end has been waited for: of "
        f"a program that does nothing, and of the sorter. {_TIMES}")


def _round_trips(profile):
    if not profile.round_trips:
        return None
    payload = profile.round_trips[0].setting.get("payload_bytes")
    of_size = f" of {payload} bytes" if payload else ""
    return _of_series(
        "round-trip", profile.round_trips, "round trips",
        f"A datagram{of_size} to the other and back. {_TIMES}"
        + (_LOOPBACK if profile.loopback else ""))


def _bars(topic, series, caption):
    if not series:
        return None
    unit = text_format.rate_unit(max(s.samples.max() for s in series))
    return _picture(
        topic, caption,
        "; ".join(f"{s.name}: {units.digits(s.spread.middle / unit[0])} "
                  f"{unit[1]}, {text_format.part_words(s)}" for s in series),
        lambda width_px: throughput_bars.draw(series, unit, width_px))


def _throughput(profile):
    return _bars(
        "throughput", profile.throughputs + profile.tcp_throughputs,
        "Datagrams as fast as they can be sent, and then one TCP connection, "
        "to one node at a time: what arrived, by the time in which it did."
        + (_LOOPBACK if profile.loopback else ""))
