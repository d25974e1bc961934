"""JSON from files that are not trusted.

The programs read their own records with this, and records that were sent, cut
short or edited.  What is no JSON, or can't be what the programs
write, is refused in words, and before it takes much memory.
"""

import codecs
import contextlib
import json
import math
import os
import stat

from trials.base.failure import FILE, Failure, naming

# The most bytes of one document or line: a trial of 10,000 ranks takes a fourth
# of it.
MOST_BYTES = 64 << 20
# The programs nest 6 deep; far below what Python's recursion takes.
MOST_DEPTH = 64
# Whole numbers are below this: 64 bits, which counters of the kernel have.
LIMIT = 2**64
_LIMIT_DIGITS = len(str(LIMIT))
_TOO_DEEP = "it is nested too deeply"


def loads(data: bytes):
    """The document; ValueError says in words what is wrong with it.

    Unlike json.loads this refuses what is not UTF-8, NaN and infinities,
    numbers that no column could hold, a key that stands there twice, and
    nesting that would be too much for the code that looks at the document.
    """
    if data.startswith(codecs.BOM_UTF8):
        raise ValueError("it begins with a byte order mark, as some editors "
                         "write it: save it as UTF-8 without one")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8 text") from None
    try:
        document = _DECODER.decode(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    # Few documents have so many brackets that their depth is looked at.
    if text.count("[") + text.count("{") > MOST_DEPTH:
        _check_depth(document, MOST_DEPTH)
    return document


def _check_depth(value, most):
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return
    if not most:
        raise ValueError(_TOO_DEEP)
    for each in value:
        _check_depth(each, most - 1)


def _no_constant(name):
    raise ValueError(f"{name} is not JSON")


def _whole(text):
    # The length is looked at before int(), which takes the square of the digits
    # in time.
    if len(text) > _LIMIT_DIGITS or abs(int(text)) >= LIMIT:
        raise ValueError(f"a number of {len(text.lstrip('-'))} digits is too "
                         "large")
    return int(text)


def _fraction(text):
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is too large a number")
    return value


def _object(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"{key!r:.99} stands there twice")
            seen.add(key)
    return found


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_int=_whole,
                            parse_float=_fraction, object_pairs_hook=_object)


@contextlib.contextmanager
def open_regular(path):
    """The file, for reading bytes; raises Failure, also if it is no regular
    one."""
    # O_NONBLOCK: or a pipe would wait here for its writer.
    with naming(path), open(path, "rb", opener=lambda name, flags: os.open(
            name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Failure(path, "is not a regular file", FILE)
        yield file


def read(path):
    """The document that a file is; raises Failure."""
    with open_regular(path) as file:
        data = file.read(MOST_BYTES + 1)
    _check_length(path, data)
    try:
        return loads(data)
    except ValueError as error:
        raise Failure(path, f"is not JSON: {error}", FILE) from None


def read_lines(path) -> tuple[list[bytes], int]:
    """The lines that are complete, without their ends, and how many bytes of
    another one follow; raises Failure."""
    lines = []
    with open_regular(path) as file:
        while line := file.readline(MOST_BYTES + 1):
            _check_length(f"{path}:{len(lines) + 1}", line)
            if not line.endswith(b"\n"):
                return lines, len(line)
            lines.append(line[:-1])
    return lines, 0


def _check_length(where, data):
    if len(data) > MOST_BYTES:
        raise Failure(where, f"is longer than {MOST_BYTES >> 20} MiB", FILE)
