"""The input and the output of one trial on this machine: files, or two block
devices."""

import os
from dataclasses import dataclass

from trials.scenario import residency
from trials.scenario.cache_filler import CacheFiller, DeviceFiller
from trials.scenario.place import Place

# The end of the name of a file of other data, beside its input.
FILLER = ".filler"
# udev looks at a device when a program has written to it: at a few places.
LOOK_OF_UDEV_BYTES = 1 << 20


@dataclass(frozen=True)
class Context:
    """Files; others are the inputs of further ranks, which are prepared
    likewise."""
    input: str
    output: str
    others: tuple = ()
    # The records on a device are this many of its first bytes.
    device_bytes: int | None = None

    # Other programs may have read this much of the output by themselves.
    looked_at_bytes = 0

    @property
    def inputs(self) -> tuple:
        return (self.input, *self.others)

    def size_bytes(self, path: str) -> int:
        """The bytes of the records in the input or the output."""
        return os.path.getsize(path)

    def part_resident(self, path: str) -> float | None:
        """What part of the records is in the page cache; None, too, if there
        is no such file."""
        if not os.path.exists(path):
            return None
        return residency.fraction(path, self.device_bytes)

    def load(self, path: str) -> float | None:
        return residency.load(path, self.device_bytes)

    def evict(self, path: str) -> float | None:
        return residency.evict(path, self.device_bytes)

    def settle(self) -> None:
        """Write what is dirty beside the input."""
        residency.settle(self.input)

    def clear_output(self) -> None:
        """A file is made anew."""

    def filler(self, size_bytes: int) -> CacheFiller:
        """Other data on the disks of the input; a file for each rank."""
        return CacheFiller(self.input + FILLER, size_bytes)


@dataclass(frozen=True)
class DeviceContext(Context):
    """Two devices."""

    looked_at_bytes = LOOK_OF_UDEV_BYTES

    @classmethod
    def at(cls, place: Place) -> "DeviceContext":
        return cls(place.input, place.output, (), place.device_bytes)

    def size_bytes(self, path: str) -> int:
        return self.device_bytes

    def settle(self) -> None:
        """Does nothing, since evicting either device writes what is dirty."""

    def clear_output(self) -> None:
        """The page cache has what was read to check the last trial."""
        self.evict(self.output)

    def filler(self, size_bytes: int) -> CacheFiller:
        """The bytes behind the records."""
        return DeviceFiller(self.input, size_bytes, self.device_bytes)
