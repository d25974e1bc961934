"""The counters of energy that processors have (RAPL), as the kernel's powercap
shows them.

    intel-rapl:0        name "package-0", energy_uj, max_energy_range_uj
    intel-rapl:0:0      name "core" (or uncore, dram): of package-0
    intel-rapl:1        name "psys": what supplies the processor, and more

AMD's processors stand there under the same name.  intel-rapl-mmio:0 is the
same package again, read in another way.  Since Linux 5.10 only root may read
energy_uj.

A counter wraps around after max_energy_range_uj, some 65 or 262 kJ: a minute,
at 1 kW.  It is read so often during a run that it can't wrap twice unseen.
"""

import bisect
import math
import re
import threading
import time
from dataclasses import dataclass

from trials.base import documents
from trials.base.failure import FILE, Failure
from trials.machine.disks import names_in

FOLDER = "/sys/class/powercap"
# No domain of any machine takes as much.
DOMAIN_WATTS_MAX = 1000
UJ_PER_J = 1_000_000
_PACKAGE = re.compile(r"package-[0-9]+(-die-[0-9]+)?")
_COUNTER = re.compile("[0-9]{1,19}")
# No file of a zone is longer.
_FILE_BYTES = 4096


class Unavailable(Exception):
    """Why there is no counter of a package."""


@dataclass(frozen=True)
class Zone:
    """A domain of energy: "package-0", "package-0/dram", "psys"."""
    domain: str
    folder: str
    range_uj: int

    def read_uj(self) -> int:
        path = f"{self.folder}/energy_uj"
        text = _text(path)
        if not _COUNTER.fullmatch(text):
            raise Failure(path, f"'{text:.20}' is no count of energy", FILE)
        return int(text)


def _text(path: str) -> str:
    """A small file, stripped; raises Failure.  A pipe or a device that lies in
    a folder of the user's would never end."""
    with documents.open_regular(path) as file:
        return file.read(_FILE_BYTES).decode("utf-8", "replace").strip()


def whole_of(domains) -> list[str]:
    """The ones of these domains that may be added up: packages and their
    memory.  core and uncore are parts of a package, psys covers all."""
    return [domain for domain in domains
            if _PACKAGE.fullmatch(domain.removesuffix("/dram"))]


def find(folder: str = FOLDER) -> tuple[list[Zone], list[str]]:
    """The zones that can be read, and why others can't be.  Raises
    Unavailable if no package is among them."""
    zones, refused, names = [], [], {}
    for entry in names_in(folder):
        if not re.fullmatch("intel-rapl:[0-9]+(:[0-9]+)?", entry):
            continue
        at = f"{folder}/{entry}"
        try:
            name = _name(f"{at}/name")
        except Failure as failure:
            refused.append(str(failure))
            continue
        names[entry] = name
        parent = names.get(entry.rpartition(":")[0])
        domain = f"{parent}/{name}" if parent else name
        # Each of several processors may have a psys: number them.
        same = sum(zone.domain.partition("#")[0] == domain for zone in zones)
        try:
            zones.append(_zone(f"{domain}#{same}" if same else domain, at))
        except Failure as failure:
            refused.append(str(failure))
    if not any(_PACKAGE.fullmatch(zone.domain) for zone in zones):
        raise Unavailable(refused[0] if refused else
                          f"no powercap zone in {folder}")
    return zones, refused


def _name(path):
    text = _text(path)
    if not re.fullmatch("[a-z0-9-]{1,40}", text):
        raise Failure(path, f"'{text:.20}' is no name of a zone", FILE)
    return text


def _zone(domain, folder):
    path = f"{folder}/max_energy_range_uj"
    text = _text(path)
    if not _COUNTER.fullmatch(text) or not int(text):
        raise Failure(path, "can't be read as a number", FILE)
    zone = Zone(domain, folder, int(text))
    zone.read_uj()
    return zone


class Counter:
    """Counts of the zones between begin() and end(), and up to any time in
    between."""

    def __init__(self, zones: list[Zone]):
        self.zones = zones
        # Twice in the time in which one could wrap around.
        self.period_s = min((zone.range_uj for zone in zones), default=0) / (
            2 * UJ_PER_J * DOMAIN_WATTS_MAX)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = None
        self._failure = None
        self._last_uj = []
        # (monotonic ns, microjoules of each zone since the first one)
        self._readings = []

    def begin(self, period_s: float = math.inf) -> None:
        """Counters are read at least once in each period."""
        with self._lock:
            self._failure = None
            self._ended.clear()
            self._thread = threading.Thread(
                target=self._watch, args=(min(period_s, self.period_s),),
                daemon=True)
            self._thread.start()
            self._readings = [(time.monotonic_ns(), [0] * len(self.zones))]
            self._last_uj = [zone.read_uj() for zone in self.zones]

    def end(self) -> tuple[int, dict[str, int]]:
        """(ns since begin(), microjoules by domain).  Raises Failure if a
        counter could not be read at any time in between."""
        try:
            with self._lock:
                self._advance()
        finally:
            self.abandon()
        end_ns = self._readings[-1][0]
        return end_ns - self._readings[0][0], self.sums_uj(end_ns)

    def sums_uj(self, at_ns: int) -> dict[str, int]:
        """Microjoules by domain from begin() to a time before end().  Between
        two readings power is taken to be even."""
        after = max(1, bisect.bisect(self._readings, (at_ns,)))
        (left_ns, left), (right_ns, right) = self._readings[
            after - 1:after + 1]
        share = (at_ns - left_ns) / (right_ns - left_ns)
        return {zone.domain: low + round(share * (high - low))
                for zone, low, high in zip(self.zones, left, right)}

    def abandon(self) -> None:
        """Ends the thread; more than once does no harm."""
        self._ended.set()
        if self._thread:
            self._thread.join()
            self._thread = None

    def _watch(self, period_s):
        while not self._ended.wait(period_s):
            with self._lock:
                try:
                    self._advance()
                except Failure as failure:
                    self._failure = failure
                    return

    def _advance(self):
        if self._failure:
            raise self._failure
        sums_uj = list(self._readings[-1][1])
        for at, zone in enumerate(self.zones):
            now_uj = zone.read_uj()
            more_uj = now_uj - self._last_uj[at]
            if more_uj < 0:
                more_uj += zone.range_uj
            sums_uj[at] += max(0, more_uj)
            self._last_uj[at] = now_uj
        self._readings.append((time.monotonic_ns(), sums_uj))
