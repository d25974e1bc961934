"""The records that are sorted: made by blinkgen, known by their checksum."""

import contextlib
import os
import stat
from dataclasses import dataclass

from trials.base.failure import FAILED, FILE, Failure, naming
from trials.base.programs import end_of, first_line
from trials.scenario.residency import opened

RECORD_BYTES = 100
# A summary of blinkval (see its manual): the checksum is the fifth of its
# integers of 128 bits, as two of 64, little endian, the upper half first.
CHECKSUM_OFFSET = 4 * 16
FIRST_OFFSET = 5 * 16
# The ends of the names of temporary files beside an input or an output.
FIRST, SUMMARY = ".first", ".summary"


@dataclass(frozen=True)
class Input:
    path: str
    records: int
    checksum: str

    @property
    def bytes(self) -> int:
        return self.records * RECORD_BYTES


def share(records: int, rank: int, ranks: int) -> tuple:
    """First record and count of one rank's part: parts differ by one."""
    first = records * rank // ranks
    return first, records * (rank + 1) // ranks - first


def generate(path: str, records: int, ascii: bool, start: int, programs,
             **streams) -> str:
    """Write the records to path; returns their checksum."""
    options = ["-a"] if ascii else []
    done = programs.call("blinkgen", *options, "-c", f"-b{start}", records,
                         path, **streams)
    if done.returncode != 0:
        why = (first_line(done.stderr) or "").removeprefix("blinkgen: ")
        raise Failure("blinkgen", why or end_of(done.returncode),
                      max(done.returncode, FAILED))
    return done.stderr.strip()


def checksum_in(summary: bytes) -> str:
    upper = int.from_bytes(summary[CHECKSUM_OFFSET:CHECKSUM_OFFSET + 8],
                           "little")
    lower = int.from_bytes(summary[CHECKSUM_OFFSET + 8:CHECKSUM_OFFSET + 16],
                           "little")
    return f"{upper << 64 | lower:x}"


def validate(path: str, programs, *options, device_bytes=None):
    """Run blinkval over a file, or over the first bytes of a device."""
    if device_bytes is not None:
        options += (f"--device-bytes={device_bytes}",)
    return programs.call("blinkval", *options, path)


def summary_of(path: str, programs, name: str | None = None,
               device_bytes: int | None = None) -> tuple:
    """(summary, None), whether or not the records are in order; or (b"", why
    there is no verdict).  `name` is a temporary file, by default beside the
    records."""
    name = name or path + SUMMARY
    # An older verdict would stay if there were no new one.
    remove(name)
    try:
        done = validate(path, programs, "-q", "-o", name,
                        device_bytes=device_bytes)
        with open(name, "rb") as file:
            return file.read(), None
    except FileNotFoundError:
        return b"", done.stderr.strip().removeprefix("blinkval: ")
    finally:
        remove(name)


def first_record(ascii: bool, start: int, name: str, programs) -> bytes:
    """The first record of the input.  `name` is a temporary file; it is the
    same in each session, so that one left by a killed session is removed."""
    try:
        generate(name, 1, ascii, start, programs)
        with open(name, "rb") as file:
            return file.read()
    finally:
        remove(name)


def is_there(path: str, records: int, checksum: str, first: bytes,
             programs) -> bool:
    """The file has these records, and this one first: it is not their sorted
    order."""
    try:
        if os.path.getsize(path) != records * RECORD_BYTES:
            return False
    except OSError:
        return False
    summary, _ = summary_of(path, programs)
    return is_of(summary, checksum, first)


def is_of(summary: bytes, checksum: str, first: bytes) -> bool:
    return (checksum_in(summary) == checksum
            and summary[FIRST_OFFSET:FIRST_OFFSET + RECORD_BYTES] == first)


def make(path: str, records: int, ascii: bool, start: int, programs,
         reuse: bool = False) -> Input:
    """The input at path, on the medium when this returns, so that writing it
    is no part of a run."""
    if reuse and records > 0 and os.path.exists(path):
        checksum = generate("/dev/null", records, ascii, start, programs)
        first = first_record(ascii, start, path + FIRST, programs)
        if is_there(path, records, checksum, first, programs):
            return Input(path, records, checksum)
    checksum = generate(path, records, ascii, start, programs)
    flush(path)
    return Input(path, records, checksum)


def make_on_device(path: str, records: int, ascii: bool, programs) -> Input:
    """The input from the device's first byte on.  It is refused if another
    program uses it."""
    with opened(path, os.O_WRONLY | os.O_EXCL) as fd:
        checksum = generate("-", records, ascii, 0, programs, stdout=fd)
        os.fsync(fd)
    return Input(path, records, checksum)


def find_on_device(path: str, records: int, ascii: bool, programs,
                   beside: str) -> Input:
    """The input that was made there before; a Failure if it is not there.
    Temporary files lie beside `beside`."""
    checksum = generate("/dev/null", records, ascii, 0, programs)
    first = first_record(ascii, 0, beside + FIRST, programs)
    summary, _ = summary_of(path, programs, beside + SUMMARY,
                            records * RECORD_BYTES)
    if not is_of(summary, checksum, first):
        # The path may have become another file's.
        raise Failure(path, "does not have the records of this run any more",
                      FILE)
    return Input(path, records, checksum)


def flush(path: str) -> None:
    with opened(path) as fd:
        os.fsync(fd)


def expect_removable(path: str) -> None:
    """A device such as /dev/null, which root may unlink, is none of ours."""
    with naming(path), contextlib.suppress(FileNotFoundError):
        mode = os.lstat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise Failure(path, "is no regular file, and is not removed", FILE)


def remove(path: str) -> None:
    expect_removable(path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
