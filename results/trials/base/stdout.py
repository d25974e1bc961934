"""The standard output of the programs in Python."""

import errno
import os
import sys

from trials.base.failure import FILE, ReaderLeft, of_file


def print_text(text: str, descriptor: int = 1) -> None:
    """All of it, or a Failure, such as ReaderLeft: Python's own streams may
    fail too late."""
    data = text.encode("utf-8", "replace")
    try:
        # If it was closed, a file of ours may have its descriptor now.
        if descriptor == 1 and sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        while data:
            data = data[os.write(descriptor, data):]
    except BrokenPipeError as error:
        raise ReaderLeft("standard output", error.strerror, FILE) from None
    except OSError as error:
        raise of_file("standard output", error) from None
