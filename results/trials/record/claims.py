"""The claims of a document, as results/published has them.

All figures of others that a page or a test shows are read here.
"""

import functools
import os

from trials.base.failure import USAGE, Failure
from trials.base.spelling import meant
from trials.record import schema

FOLDER = os.path.realpath(os.path.join(os.path.dirname(__file__),
                                       "../../published"))
SCHEMA = "blinkreport-published-1"


def names() -> list[str]:
    """The documents that there are."""
    return sorted(name.removesuffix(".json") for name in os.listdir(FOLDER)
                  if name.endswith(".json"))


@functools.cache
def load(name: str) -> dict:
    """A document: results/schema says what it has.  Raises Failure."""
    if name not in names():
        near = meant(name, names())
        raise Failure(name, "is neither a record nor a document, which are "
                      + ", ".join(names())
                      + (f"; is {near} meant?" if near else ""), USAGE)
    return schema.read(os.path.join(FOLDER, f"{name}.json"), SCHEMA)


def find(document: str, claim: str) -> dict:
    """The claim of that id; raises KeyError."""
    for each in load(document)["claims"]:
        if each["id"] == claim:
            return each
    raise KeyError(f"{document} has no claim {claim}")


def bound(claim: dict) -> str:
    return {"below": "< ", "above": "> ", "about": "~ "}.get(
        claim.get("bound"), "")


def words(claim: dict) -> str:
    """The figure with its bound: "< 39.8 ms"."""
    return f"{bound(claim)}{claim['value']:g} {claim['unit']}"
