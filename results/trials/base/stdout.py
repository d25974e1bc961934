"""The standard output of the programs in Python."""

import errno
import os
import sys

from trials.base.failure import FILE, ReaderLeft, of_file


def print_text(text: str, descriptor: int = 1) -> None:
    """Write all of the text, or raise a Failure, such as ReaderLeft: Python's
    own streams may fail too late."""
    data = text.encode("utf-8", "replace")
    try:
        # A file of ours may have the descriptor of a standard output that was
        # closed.
        if descriptor == 1 and sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        while data:
            data = data[os.write(descriptor, data):]
    except BrokenPipeError as error:
        raise ReaderLeft("standard output", error.strerror, FILE) from None
    except OSError as error:
        raise of_file("standard output", error) from None
