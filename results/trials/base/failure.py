"""What ends a program: one line for people, one status for scripts."""

import contextlib
import os
import re
import signal
import sys

from trials.base.units import printable, shortened

FAILED = 1
USAGE = 2
FILE = 3
NETWORK = 4
RESOURCES = 5

# A word in a reason, or what it quotes, that hides the rest of it.
LONG_WORD = re.compile(r"'[^']{201,}'|\S{201,}")


class Failure(Exception):
    """Raised anywhere, caught by ended() alone.

    `what` is the thing that is wrong, a path or an option; `why` the reason.
    The program prints "program: what: why" and ends with `status`.
    """

    def __init__(self, what: object, why: object, status: int = FAILED):
        super().__init__(what, why, status)
        self.what = str(what)
        self.why = str(why)
        self.status = status

    def __str__(self):
        # The system's words, or a file's, may hold an end of line, or what a
        # terminal obeys; the message may not.
        what = shortened(" ".join(self.what.splitlines()))
        why = LONG_WORD.sub(lambda word: shortened(word[0]),
                            " ".join(self.why.splitlines()))
        return printable(f"{what}: {why}")


class ReaderLeft(Failure):
    """Nobody reads the standard output any more: ended() ends the program by
    SIGPIPE, after all that was begun has been cleared away."""


def of_module(error: ModuleNotFoundError) -> Failure:
    """A module that is not installed, as a failure that names its package."""
    package = f"python3-{(error.name or 'numpy').split('.')[0]}"
    return Failure(error.name, f"this Python module is not installed "
                   f"(Debian's package {package})", RESOURCES)


def of_import(error: ImportError) -> Failure:
    """A module that is there and can't be loaded: the last line says why.
    numpy gives advice there: what the loader has said is in the cause."""
    why = (str(error).strip() or "can't be loaded").splitlines()[-1]
    cause: BaseException | None = error
    while cause:
        if isinstance(cause, MemoryError) or "failed to map" in str(cause) or \
                "annot allocate" in str(cause):
            return Failure("memory", "there is not enough", RESOURCES)
        cause = cause.__cause__ or cause.__context__
    return Failure(error.name or "Python module", why, RESOURCES)


def of_system(error: OSError) -> Failure:
    """The system has refused something, and no caller has said what it was."""
    if error.filename:
        return Failure(error.filename, error.strerror, FILE)
    try:
        os.getcwd()
    except OSError:
        return Failure("current folder", "it was removed: change to another",
                       FILE)
    return Failure("system", error.strerror, FILE)


def ended(program: str, main, arguments: list) -> int:
    """Runs a program's main; its exit status, after a line on stderr if it has
    failed."""
    if sys.stderr is None:
        # It is closed: print() would take standard output instead.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")
    try:
        return main(arguments)
    except ReaderLeft:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)
    except Failure as error:
        failure = error
    except ModuleNotFoundError as error:
        failure = of_module(error)
    except ImportError as error:
        failure = of_import(error)
    except OSError as error:
        failure = of_system(error)
    except MemoryError:
        failure = Failure("memory", "there is not enough", RESOURCES)
    print(f"{program}: {failure}", file=sys.stderr)
    return failure.status


def of_file(path: object, error: OSError) -> Failure:
    """The system's refusal, as a failure of the file `path`."""
    reason = os.strerror(error.errno) if error.errno else error
    return Failure(path, reason, FILE)


@contextlib.contextmanager
def naming(path: object):
    """What the system refuses within is a failure of the file `path`."""
    try:
        yield
    except OSError as error:
        raise of_file(path, error) from None
