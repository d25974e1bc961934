"""What a record says of the noise before its trials; older records have none.
"""

from statistics import median
from typing import NamedTuple

# A machine that loses this much at the median is not free for trials.
LOADED_PERCENT = 10


class Look(NamedTuple):
    """The noise just before a trial."""

    trial: int
    block: int
    noise: dict

    @property
    def percent(self) -> float | None:
        return percent(self.noise)

    @property
    def longest_ns(self) -> int:
        return max((cpu["longest_ns"] for place in self.noise["places"]
                    for cpu in place["cpus"]), default=0)

    @property
    def messages(self) -> list[str]:
        """The reason for each place where the noise is not known."""
        return [": ".join(filter(None, (place["host"], place["message"])))
                for place in self.noise["places"] if place["message"]]


def percent(noise: dict) -> float | None:
    """The noise of the worst CPU of all places; None unless all are known."""
    found = [place["worst_percent"] for place in noise["places"]]
    return None if None in found or not found else max(found)


def looks(trials: list[dict]) -> list[Look]:
    return [Look(trial["trial"], trial["block"], trial["noise"])
            for trial in trials if trial.get("noise")]


def first_of_blocks(found: list[Look]) -> list[Look]:
    """The looks before which there was time to wait."""
    return [look for at, look in enumerate(found)
            if at == 0 or found[at - 1].block != look.block]


def over_limit(noise: dict, limit_percent: float) -> bool | None:
    """Is any place above the limit?  None: none is, but not all are known."""
    found = [place["worst_percent"] for place in noise["places"]]
    if any(each is not None and each > limit_percent for each in found):
        return True
    return None if None in found or not found else False


def notes(found: list[Look]) -> list[str]:
    """Sentences on what makes the times doubtful."""
    says = []
    known = [look.percent for look in found if look.percent is not None]
    if known and median(known) >= LOADED_PERCENT:
        says.append(f"Others took {median(known):.0f} % of a CPU before the "
                    "median trial: the times are those of a machine that was "
                    "busy with something else.")
    limits = [look.noise["limit_percent"] for look in found
              if look.noise["over_limit"]]
    if limits:
        says.append(
            f"{len(limits)} of {len(found)} trials began above the noise limit "
            f"of {' or '.join(f'{each:g}' for each in sorted({*limits}))} %; "
            "their times are in the figures.")
    if len(known) < len(found):
        says.append(f"The noise before {len(found) - len(known)} of "
                    f"{len(found)} trials is not known.")
    return says
