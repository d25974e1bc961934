"""What make bench has recorded of programs that ran by turns."""

import os
from dataclasses import dataclass

from trials.base import documents
from trials.base.failure import FILE, Failure
from trials.base.units import printable

FILE_NAME = "bench.json"
# The program that the others of a series are compared with.
BASELINE = "cp"


@dataclass(frozen=True)
class Series:
    """Programs that did the same in the same place, round by round."""

    place: str
    times_ns: dict  # {program: its time in each round}

    @property
    def programs(self) -> list:
        """All but the baseline, in the order of the record."""
        return [name for name in self.times_ns if name != BASELINE]

    def ratios(self, program) -> list:
        """The times as ratios to the baseline, round by round."""
        return [own / other for own, other in zip(
            self.times_ns[program], self.times_ns[BASELINE])]


@dataclass(frozen=True)
class Bench:
    machine: str
    version: str
    rounds: int
    series: list


def is_one(folder) -> bool:
    return os.path.exists(os.path.join(folder, FILE_NAME))


def read(folder) -> Bench:
    """The series that have a baseline; raises Failure."""
    path = os.path.join(folder, FILE_NAME)
    document = documents.read(path)
    try:
        found = _bench(document)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Failure(path, "is no record of make bench", FILE) from None
    if not found.series:
        raise Failure(path, f"has no series of programs beside {BASELINE} "
                      "(peers-*)", FILE)
    return found


def _bench(document):
    rounds, machine = document["rounds"], document["machine"]
    series = [_series(result, document["places"], rounds)
              for result in document["results"]
              if len(result.get("contestants", ())) > 2]
    version = printable(document["blinksort_version"])
    return Bench(printable(f"{machine['cpu_model']}, "
                           f"{machine['cpus_allowed']} CPUs, "
                           f"Linux {machine['kernel']}"),
                 version.removeprefix("blinksort "), rounds, series)


def _series(result, places, rounds):
    times_ns = {printable(one["name"]): one["elapsed_ns"]
                for one in result["contestants"]}
    for times in times_ns.values():
        if not times or len(times) != rounds or not all(
                type(time) is int and time > 0 for time in times):
            raise ValueError
    if BASELINE not in times_ns or len(times_ns) < len(result["contestants"]):
        raise ValueError
    place = result["place"]
    return Series("/dev/shm" if place == "shm"
                  else printable(places[place]["fs_type"]), times_ns)
