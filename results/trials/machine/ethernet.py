"""What ethtool tells of a network interface, as numbers and words."""

import re

from trials.machine import disks


def numbers_in(text: str) -> dict[str, int]:
    """Lines "name: 12"; those that a driver does not have are left out."""
    return {name.strip(): int(value) for name, value in
            re.findall(r"^([\w -]+):\s+(\d+)\s*$", text, re.MULTILINE)}


def coalescing(interface: str) -> dict | None:
    text = disks.output_of("ethtool", "-c", interface)
    if text is None:
        return None
    found: dict = numbers_in(text)
    for way in ("RX", "TX"):
        adaptive = re.search(rf"Adaptive.*\b{way}: (on|off)", text)
        found[f"adaptive-{way.lower()}"] = adaptive[1] if adaptive else None
    return found


def rings(interface: str) -> dict | None:
    """The sizes of the rings; ethtool prints their maximums above them."""
    text = disks.output_of("ethtool", "-g", interface)
    if text is None:
        return None
    return numbers_in(text.rpartition("Current hardware settings:")[2])


def offloads(interface: str) -> dict | None:
    text = disks.output_of("ethtool", "-k", interface)
    if text is None:
        return None
    return {name.strip(): state for name, state in
            re.findall(r"^\s*([\w-]+): (on|off)", text, re.MULTILINE)}
