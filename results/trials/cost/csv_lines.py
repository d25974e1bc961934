"""Lines of a CSV file that a user gives: fields, and where they stand.  The
first line names the columns, in any order and case."""

import csv

from trials.base import documents
from trials.base.failure import FILE, Failure

# A price list is written by hand; a larger file is not one.
MOST_BYTES = 1 << 20
LINE_BYTES_MAX = 4096


def fields_of(where: str, line: bytes) -> list[str]:
    """The fields of one line, without blanks around them; [] if it is empty or
    a comment.  Raises Failure if it is no text."""
    if len(line) > LINE_BYTES_MAX:
        raise Failure(where, f"is longer than {LINE_BYTES_MAX} bytes", FILE)
    try:
        text = line.decode("utf-8-sig").strip()
        if not text or text.startswith("#"):
            return []
        if "\r" in text:
            raise Failure(where, "has a carriage return: lines end in a line "
                          "feed", FILE)
        found = next(csv.reader([text], strict=True, skipinitialspace=True))
    except UnicodeDecodeError:
        raise Failure(where, "is not text in UTF-8", FILE) from None
    except csv.Error as error:
        raise Failure(where, f"is no line of CSV: {error}", FILE) from None
    return [field.strip() for field in found]


def read(path: str):
    """(where, fields) of each line that has fields: where is "FILE:LINE"."""
    with documents.open_regular(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise Failure(path, f"is longer than {MOST_BYTES >> 20} MiB", FILE)
    # The end of the last line may be missing.
    for number, line in enumerate(data.split(b"\n"), 1):
        where = f"{path}:{number}"
        found = fields_of(where, line)
        if found:
            yield where, found


def columns(where: str, head: list[str], wanted) -> list[str]:
    """The names in the first line, in small letters.  Raises Failure unless
    each of the wanted columns is there once."""
    names = [name.lower() for name in head]
    for name in wanted:
        if name not in names:
            raise Failure(where, f"has no column {name}: the first line names "
                          f"the columns, such as {','.join(wanted)}", FILE)
        if names.count(name) > 1:
            raise Failure(where, f"has several columns {name}", FILE)
    return names
