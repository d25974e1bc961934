"""Where the input of all trials lies, and where their outputs go: in files of a
folder, or on two block devices."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """The folder of the input and that of the output; or the devices, of each
    of which the first device_bytes are the records."""
    input: str
    output: str
    device_bytes: int | None = None

    @classmethod
    def folder(cls, work: str) -> "Place":
        """Files in one folder."""
        return cls(work, work)

    @property
    def paths(self) -> tuple[str, ...]:
        """Each once."""
        return tuple(dict.fromkeys((self.input, self.output)))
