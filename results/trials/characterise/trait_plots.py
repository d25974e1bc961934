"""The pictures of a characterisation: one for each topic that was measured."""

from trials.base import units
from trials.characterise import curves, spectra, streams, surface, wording
from trials.characterise.curves import Panel, Plot
from trials.drawing import picture
from trials.drawing.picture import Picture

TITLES = {
    "memory": "Memory: rates by area",
    "blocks": "Memory: random rates by block",
    "access": "Memory: the time of one access",
    "transfers": "Disk: rates by size of transfer",
    "positions": "Disk: rates by place",
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


def pictures(traits) -> list:
    """In a report's order; a topic without figures has none."""
    makers = (_memory, _blocks, _access, _transfers, _positions, _files,
              _start, _round_trips, _throughput)
    return [made for made in (make(traits) for make in makers) if made]


def write_pngs(traits, folder) -> list:
    return picture.write_pngs(pictures(traits), folder)


def _picture(topic, caption, description, draw):
    return Picture(topic, TITLES[topic], caption, description, draw)


def _of_curves(topic, plot, caption):
    return _picture(
        topic, caption,
        "; ".join(f"{panel.title}: {wording.curve_words(curve, plot.unit)}"
                  for panel in plot.panels for curve in panel.curves),
        lambda width_px: curves.draw(plot, width_px))


# --- memory -------------------------------------------------------------------

def _memory(traits):
    if not traits.memory:
        return None
    plot = Plot([Panel(*each) for each in traits.memory_by_threads()],
                "area of each thread, bytes", "rate",
                wording.rate_unit(wording.largest(traits.memory)))
    return _of_curves("memory", plot, (
        "How fast memory is gone over in order, and in lines of 64 bytes in "
        f"any order, by how much of it there is. {_SPREAD}"))


def _blocks(traits):
    if not traits.blocks:
        return None
    area = wording.size_words(traits.blocks_area_bytes)
    plot = Plot([Panel(f"area of {area}", traits.blocks)],
                "block, bytes", "rate",
                wording.rate_unit(wording.largest(traits.blocks)))
    return _of_curves("blocks", plot, (
        f"Blocks in any order of an area of {area} for each thread: how large "
        f"one must be before its place does not matter. {_SPREAD}"))


def _access(traits):
    if not traits.access:
        return None
    caches = traits.caches()
    plot = Plot([Panel("one line after the other", traits.access)],
                "area of each thread, bytes", "time", (1, "ns"), caches)
    more = (" Dashed lines are the caches' sizes, as the system has them."
            if caches else "")
    return _of_curves("access", plot, (
        "How long a line takes when its address was in the line before: each "
        f"step is the end of a cache. {_SPREAD}{more}"))


# --- disk ---------------------------------------------------------------------

def _transfers(traits):
    if not traits.transfers:
        return None
    found = [curve for each in traits.transfers.values() for curve in each]
    device = traits.device or "device"
    titles = {"the device": device, "a file on it": f"a file on {device}"}
    plot = Plot([Panel(titles[name], each)
                 for name, each in traits.transfers.items()],
                "transfer, bytes", "rate",
                wording.rate_unit(wording.largest(found)))
    return _of_curves("transfers", plot, (
        f"One transfer at a time, past the page cache. {_TRANSFER_SPREAD}"))


def rate_range(traits):
    """(the unit of rates by place, the place of the highest, of the lowest)"""
    places = sorted(traits.positions, key=lambda p: p.spread.middle)
    unit = wording.rate_unit(max(p.spread.high for p in places))
    return unit, places[-1], places[0]


def _positions(traits):
    if not traits.positions:
        return None
    (size, name), fast, slow = rate_range(traits)
    words = "; ".join(
        f"{what} {units.digits(place.spread.middle / size)} {name} at "
        f"{units.size(place.offset_bytes)}"
        for what, place in (("fastest", fast), ("slowest", slow)))
    what = ("Extents of a file, each as wide as it is: the device itself may "
            "not be read." if traits.by_extents else
            "Read in any order of time, so that what drifts is not taken for "
            "a slope of the disk.")
    return _picture(
        "positions", f"{what} {_TRANSFER_SPREAD}",
        f"{traits.device or 'the disk'}: {words}",
        lambda width_px: surface.draw_rates(traits, (size, name), width_px))


def _files(traits):
    files = [file for file in traits.files if file.placed]
    if not files:
        return None
    unknown = any(not file.device_bytes for file in files)
    return _picture(
        "files",
        "The bar is the whole device from its first byte on, and blue what "
        "the file takes of it; the lower bar is its span, larger." + (
            " Where the device's size is not known the bar ends, dashed, "
            "with the file." if unknown else ""),
        "; ".join(f"{file.path}: {wording.file_words(file)}"
                  for file in files),
        lambda width_px: surface.draw_files(files, width_px))


# --- programs and nodes -------------------------------------------------------

def _of_series(topic, series, of_what, caption):
    words = "; ".join(map(wording.series_words, series))
    return _picture(topic, caption, words,
                    lambda width_px: spectra.draw(series, of_what, width_px))


def _start(traits):
    return traits.starts and _of_series(
        "start", traits.starts, "starts",
        "From before a process is made until its end has been waited for: of "
        f"a program that does nothing, and of the sorter. {_TIMES}")


def _round_trips(traits):
    if not traits.round_trips:
        return None
    payload = traits.round_trips[0].setting.get("payload_bytes")
    of_size = f" of {payload} bytes" if payload else ""
    return _of_series(
        "round-trip", traits.round_trips, "round trips",
        f"A datagram{of_size} to the other and back. {_TIMES}"
        + (_LOOPBACK if traits.loopback else ""))


def _throughput(traits):
    series = traits.throughputs
    if not series:
        return None
    unit = wording.rate_unit(max(s.samples.max() for s in series))
    return _picture(
        "throughput",
        "Datagrams as fast as they can be sent, to one at a time: what "
        "arrived, by the time in which it did."
        + (_LOOPBACK if traits.loopback else ""),
        "; ".join(f"{s.name}: {units.digits(s.spread.middle / unit[0])} "
                  f"{unit[1]}, {wording.arrived_words(s)}" for s in series),
        lambda width_px: streams.draw(series, unit, width_px))
