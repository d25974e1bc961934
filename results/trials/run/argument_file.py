"""Further arguments from a file, for the word @FILE, as blinksort takes them
(src/base/argument_file.h)."""

from trials.base.failure import FILE, Failure, naming

BYTES_AT_MOST = 1 << 20


def expand(words: list[str]) -> list[str]:
    """The words, with the lines of files in the place of their names."""
    end = words.index("--") if "--" in words else len(words)
    found = []
    for word in words[:end]:
        found += lines_of(word[1:]) if word[:1] == "@" and word != "@" \
            else [word]
    return found + words[end:]


def lines_of(path: str) -> list[str]:
    """A line is an argument; empty ones and those of comments are none."""
    with naming(path), open(path, "rb") as file:
        data = file.read(BYTES_AT_MOST + 1)
    if len(data) > BYTES_AT_MOST:
        raise Failure(path, f"more than {BYTES_AT_MOST} bytes of arguments",
                      FILE)
    if b"\0" in data:
        raise Failure(path, "a byte 0 is no part of an argument", FILE)
    text = data.decode("utf-8", "surrogateescape")
    # Windows ends a line by two bytes.
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return [line for line in lines if line and not line.startswith("#")]
