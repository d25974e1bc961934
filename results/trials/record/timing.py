"""What a design tells of all its timed runs; older records tell nothing.

The events that trials may count are the instructions, cycles and misses of the
processor (src/probe/event_counters.h).
"""

from trials.base import units


def counts_events(design: dict) -> bool:
    """True if trials count events of the processor."""
    timing = design.get("timing") or {}
    return timing.get("counted_in") is not None


def sentences(design: dict) -> list[str]:
    """What a start takes here, and what is not counted."""
    timing = design.get("timing")
    if not timing:
        return []
    low, median, high = (units.duration(timing["start_ns"][name]) for name in (
        "lower_quartile", "median", "upper_quartile"))
    return [f"Starting a program that ends at once takes {median} here (half "
            f"of the starts {low} to {high}); each time includes that.",
            *_counted(timing)]


def _counted(timing) -> list[str]:
    why, place = timing["not_counted"], timing["counted_in"]
    if place is None:
        return [f"Instructions and cycles are not counted: {why}."]
    words = [f"Not all events of the processor are counted: {why}."] \
        if why else []
    if place == "user space":
        words.append("Instructions and cycles are counted in user space only: "
                     "the kernel permits no more.")
    return words
