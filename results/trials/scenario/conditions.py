"""What a scenario asks of the machine, brought about and measured.

A condition is a dict {"name", "wanted", "found", "met"}: met is True or False
by what was measured, None where nothing here can tell.  No result gets a
scenario's name unless all its conditions are met.  blinktrial(1) says what each
scenario is; as-is asks for nothing: a command finds its files as the last one
has left them.

A command that is not the sorter reads and writes as it likes.  So what is asked
is how it finds its input; and the flush of its output is a part of its time
where the sorter flushes by itself.
"""


from trials.base.failure import USAGE, Failure
from trials.machine import disks, memory_cgroup
from trials.machine.memory_cgroup import MemoryCgroup
from trials.record.design import AS_IS
from trials.scenario import residency
from trials.scenario.cache_filler import CacheFiller
from trials.scenario.context import Context, DeviceContext
from trials.scenario.place import Place

NAMES = ("pagecache", "cache", "platter", "beyond-memory")
# This much is read if a drive does not tell the size of its cache: more than
# the cache of any drive of today.
UNKNOWN_CACHE_BYTES = 256 << 20
# Mount options that keep flushes from drives.
NO_BARRIER = ("nobarrier", "barrier=0")
# The sorter takes its first look at the input by a plain read, which the kernel
# makes larger.
LOOK_BYTES = 1 << 20
# The sorter's memory unless --memory says another.
DEFAULT_MEMORY_BYTES = 256 << 20
# The end of an output is no whole block of the file system.
REST_BYTES = residency.PAGE_BYTES


def condition(name: str, wanted: str, found: str,
              met: bool | None) -> dict:
    return {"name": name, "wanted": wanted, "found": found, "met": met}


def all_met(conditions: list[dict]) -> bool | None:
    """False if any is not met; None if any can't be told."""
    return worst(found["met"] for found in conditions)


def percent(fraction: float | None) -> str:
    """Never rounded to a whole that it is not."""
    if fraction is None:
        return "unknown"
    if fraction in (0.0, 1.0):
        return f"{fraction * 100:.0f} %"
    return f"{min(max(fraction * 100, 0.01), 99.99):.2f} %"


def resident(name: str, part: float | None, wanted: float) -> dict:
    """The condition that this part of a file is in the page cache."""
    return condition(name, percent(wanted), percent(part),
                     None if part is None else part == wanted)


def farthest(parts, of) -> float | None:
    """The least or the most, by `of`, of the parts of several files; None if
    one is unknown."""
    parts = list(parts)
    return None if None in parts else of(parts)


def mebibytes(count_bytes: int) -> str:
    return f"{count_bytes / (1 << 20):g} MiB"


def on_off(state: bool | None) -> str:
    return {True: "on", False: "off", None: "unknown"}[state]


def worst(verdicts) -> bool | None:
    verdicts = list(verdicts)
    if False in verdicts:
        return False
    return None if None in verdicts else True


class Scenario:
    """pagecache, and what the others share.

    options may have the attributes cache_bytes, of each drive's cache;
    memory, of the sorter in bytes; and root, where /sys and /proc are."""

    name = "pagecache"
    # The time of a command ends when its output is on the medium.
    flushes = False

    def __init__(self, place: Place, options=None):
        self.place = place
        self.cache_bytes = getattr(options, "cache_bytes", None)
        self.root = getattr(options, "root", None) or "/"

    def sort_options(self) -> list[str]:
        # --io=auto is blinksort's default, and a sweep may set another; but by
        # that it writes to a device past the page cache.
        return [] if self.place.device_bytes is None else ["--io=mmap"]

    def command(self, words: list[str]) -> list[str]:
        """The command that is run for the sorter's."""
        return words

    def survey(self) -> list[dict]:
        """The conditions that can be told before any trial."""
        return []

    def check(self, refuse_unverified: bool = True) -> list[dict]:
        """survey(), and a Failure if a condition is not met or unknown."""
        found = self.survey()
        for one in found:
            if refuse_unverified and one["met"] is not True:
                self._refuse(one)
        return found

    def _refuse(self, one: dict) -> None:
        raise Failure(f"{self.name}: {one['name']}",
                      f"{one['found']} (wanted: {one['wanted']})")

    def prepare(self, context: Context) -> list[dict]:
        """Bring the conditions about before a trial; how they are then."""
        context.clear_output()
        part = farthest(map(context.load, context.inputs), min)
        return [resident("input-resident", part, 1.0)]

    def verify_files(self, context: Context) -> list[dict]:
        """The conditions that the output tells after the run."""
        part = context.part_resident(context.output)
        return [resident("output-resident", part, 1.0)]

    def verify_run(self, document: dict | None) -> list[dict]:
        """The conditions that the sorter's own JSON tells; document is None if
        it failed."""
        return []

    def verify(self, context: Context,
               document: dict | None) -> list[dict]:
        return self.verify_files(context) + self.verify_run(document)

    def verify_command(self) -> list[dict]:
        """The conditions that hold after a command that is not the sorter."""
        return []

    def close(self) -> None:
        """Remove what the scenario has made."""


class AsIs(Scenario):
    """No conditions."""

    name = AS_IS

    def prepare(self, context: Context) -> list[dict]:
        return []


class Direct(Scenario):
    """Conditions of all scenarios but pagecache, which read and write past the
    page cache."""

    output_rest_bytes = REST_BYTES

    def __init__(self, place: Place, options=None):
        super().__init__(place, options)
        self.input_disks = disks.of_path(place.input, self.root)
        self.output_disks = disks.of_path(place.output, self.root)
        # Commands, so asked once: sysfs is read before every trial.
        self.hdparm_write_cache = {
            drive: disks.write_cache_in(disks.ask_hdparm("-W", drive))
            for drive in self.output_disks.drives}

    def check(self, refuse_unverified: bool = True) -> list[dict]:
        # No mode of reading gets past the page cache there.
        for path, placement in ((self.place.input, self.input_disks),
                                (self.place.output, self.output_disks)):
            if placement.memory:
                raise Failure(f"{self.name}: {path}", placement.why)
        return super().check(refuse_unverified)

    def sort_options(self) -> list[str]:
        return ["--io=direct"]

    def write_caches(self) -> dict:
        """Is the write cache of each drive of the output on?  None if that is
        unknown, or if sysfs and hdparm contradict each other."""
        states = {}
        for drive in self.output_disks.drives:
            said = disks.write_cache(drive, self.root)
            told = self.hdparm_write_cache[drive]
            states[drive] = None if said is not told and told is not None \
                else said
        return states

    def write_cache_condition(self, wanted: str, met_by) -> dict:
        states = self.write_caches()
        if not states:
            return condition("write-cache", wanted,
                             self.output_disks.why or "unknown", None)
        found = ", ".join(f"{on_off(state)} ({drive})"
                          for drive, state in states.items())
        return condition("write-cache", wanted, found,
                         worst(None if state is None else met_by(state)
                               for state in states.values()))

    def prepare(self, context: Context) -> list[dict]:
        context.settle()
        context.clear_output()
        part = farthest(map(context.evict, context.inputs), max)
        return [resident("input-not-resident", part, 0.0)]

    def verify_files(self, context: Context) -> list[dict]:
        return [passed_by("input-passed-by", context, context.input,
                          LOOK_BYTES),
                passed_by("output-passed-by", context, context.output,
                          max(self.output_rest_bytes,
                              context.looked_at_bytes))]

    def verify_run(self, document: dict | None) -> list[dict]:
        if document is None:
            return [condition("direct-io", "direct, direct", "unknown", None)]
        modes = (document.get("io"), document.get("output_io"))
        return [condition("direct-io", "direct, direct",
                          ", ".join(str(mode) for mode in modes),
                          modes == ("direct", "direct"))]


class Cache(Direct):
    name = "cache"

    def survey(self) -> list[dict]:
        return [self.write_cache_condition("on", lambda state: state)]

    def prepare(self, context: Context) -> list[dict]:
        return super().prepare(context) + self.survey()


class Platter(Direct):
    name = "platter"
    flushes = True

    def __init__(self, place: Place, options=None):
        super().__init__(place, options)
        self.known_cache_bytes = self._known_cache_bytes()
        drives = max(1, len(self.input_disks.drives))
        self.wanted_bytes = drives * (max(self.known_cache_bytes.values(),
                                          default=None)
                                      or UNKNOWN_CACHE_BYTES)
        self.filler: CacheFiller | None = None

    def _known_cache_bytes(self) -> dict:
        """The cache size of each drive of the input; 0 is unknown."""
        return {drive: self.cache_bytes
                or disks.cache_bytes_in(disks.ask_hdparm("-I", drive)) or 0
                for drive in self.input_disks.drives}

    def sort_options(self) -> list[str]:
        return ["--io=direct", "--sync"]

    def survey(self) -> list[dict]:
        return [self.defeat_condition(),
                self.write_cache_condition("on or off", lambda state: True),
                self.flush_condition()]

    def _refuse(self, one: dict) -> None:
        if one["name"] == "drive-cache-defeated":
            drives = " ".join(self.input_disks.drives) or self.place.input
            raise Failure(f"{self.name}: drive cache of {drives}",
                          one["found"])
        super()._refuse(one)

    def defeat_condition(self) -> dict:
        """The condition that reading other data takes the drives' caches."""
        why = self._why_not_defeated()
        return condition("drive-cache-defeated", "drives' caches of known "
                         "size", why or self._sizes(), None if why else True)

    def _sizes(self) -> str:
        return ", ".join(f"{mebibytes(size)} ({drive})" for drive, size
                         in self.known_cache_bytes.items())

    def _why_not_defeated(self) -> str | None:
        if not self.input_disks.drives:
            return self.input_disks.why or "drives unknown"
        unknown = [drive for drive, size in self.known_cache_bytes.items()
                   if size == 0]
        if unknown:
            return "size unknown (give --cache-bytes)"
        no_room = self._why_no_room()
        if no_room:
            return no_room
        for drive in self.input_disks.drives:
            virtual = disks.virtual(drive, self.root)
            if virtual:
                return f"{virtual}, the host may cache"
        if not self.input_disks.spread:
            return "several drives that are not read evenly"
        return None

    def _why_no_room(self) -> str | None:
        """The reason why a device has less behind the records than is to be
        read; None if it has as much."""
        if self.place.device_bytes is None:
            return None
        size_bytes = disks.size_bytes_of(self.place.input, self.root)
        filler = DeviceContext.at(self.place).filler(self.wanted_bytes)
        if size_bytes is not None and (
                size_bytes >= filler.offset_bytes + filler.size_bytes):
            return None
        return (f"less than {mebibytes(filler.size_bytes)} behind the records "
                f"on {self.place.input}")

    def flush_condition(self) -> dict:
        """The condition that a flush is passed on to the medium."""
        wanted = "passed on to the medium"
        mount = disks.mount_of(disks.existing(self.place.output), self.root)
        if mount and set(NO_BARRIER) & set(mount.options.split(",")):
            return condition("flush", wanted, "mounted without barriers",
                             False)
        for drive, state in self.write_caches().items():
            if state is None:
                return condition("flush", wanted,
                                 f"write cache of {drive} unknown", None)
            virtual = disks.virtual(drive, self.root)
            if virtual:
                return condition("flush", wanted,
                                 f"passed on to a host ({virtual})", None)
        if not self.output_disks.drives:
            return condition("flush", wanted, "drives unknown", None)
        return condition("flush", wanted, wanted, True)

    def prepare(self, context: Context) -> list[dict]:
        conditions = super().prepare(context)
        # A drive has in its cache what it has read last: so nothing else may be
        # read between this and the run.
        dropped = residency.drop_caches(self.root)
        read_bytes = self._read_filler(context)
        conditions[0] = self._evicted_again(context)
        return conditions + [
            condition("caches-dropped", "page cache",
                      f"our files only ({dropped})" if dropped
                      else "page cache", conditions[0]["met"]),
            condition("other-data-read", f">= {mebibytes(self.wanted_bytes)}",
                      mebibytes(read_bytes),
                      read_bytes >= self.wanted_bytes)] + self.survey()

    def _evicted_again(self, context: Context) -> dict:
        """The inputs as they are now, after all else was read."""
        part = farthest(map(context.part_resident, context.inputs), max)
        return resident("input-not-resident", part, 0.0)

    def _read_filler(self, context: Context) -> int:
        self.filler = context.filler(self.wanted_bytes)
        self.filler.make()
        return self.filler.read()

    def verify_run(self, document: dict | None) -> list[dict]:
        synced = None if document is None else document.get("synced")
        return super().verify_run(document) + [
            condition("synced", "true", str(synced).lower()
                      if synced is not None else "unknown", synced)]

    def verify_command(self) -> list[dict]:
        return [condition("synced", "true", "true", True)]

    def close(self) -> None:
        if self.filler is not None:
            self.filler.remove()


class BeyondMemory(Platter):
    """The cgroup is made anew for each run, so that its peak is the run's."""

    name = "beyond-memory"
    # The end of each piece of the output is no whole block.
    output_rest_bytes = LOOK_BYTES

    def __init__(self, place: Place, options=None):
        super().__init__(place, options)
        self.memory_bytes = (getattr(options, "memory", None)
                             or DEFAULT_MEMORY_BYTES)
        self.limit_bytes = self.memory_bytes + memory_cgroup.KERNEL_BYTES
        self.cgroup: MemoryCgroup | None = None

    def sort_options(self) -> list[str]:
        # --io=direct is not needed: what does not fit is always read past the
        # page cache.
        return ["--sync", f"--memory={self.memory_bytes}"]

    def check(self, refuse_unverified: bool = True) -> list[dict]:
        # Nothing is beyond memory unless there is a limit.
        self._limited().close()
        return super().check(refuse_unverified)

    def command(self, words: list[str]) -> list[str]:
        self._leave()
        self.cgroup = self._limited()
        return self.cgroup.command(words)

    def _limited(self) -> MemoryCgroup:
        try:
            return MemoryCgroup(self.limit_bytes, self.root)
        except memory_cgroup.Unavailable as reason:
            raise Failure(f"{self.name}: limit of memory",
                          str(reason)) from None

    def prepare(self, context: Context) -> list[dict]:
        size_bytes = context.size_bytes(context.input)
        return super().prepare(context) + [condition(
            "input-beyond-memory", f"> {mebibytes(self.memory_bytes)}",
            mebibytes(size_bytes), size_bytes > self.memory_bytes)]

    def verify_run(self, document: dict | None) -> list[dict]:
        return super().verify_run(document) + [self._limit_condition()]

    def verify_command(self) -> list[dict]:
        return super().verify_command() + [self._limit_condition()]

    def _limit_condition(self) -> dict:
        """How much the run has taken; its cgroup goes."""
        peak_bytes = self.cgroup.peak_bytes() if self.cgroup else None
        self._leave()
        return condition(
            "memory-limited", f"<= {mebibytes(self.limit_bytes)}",
            "unknown" if peak_bytes is None else mebibytes(peak_bytes),
            None if peak_bytes is None else peak_bytes <= self.limit_bytes)

    def close(self) -> None:
        self._leave()
        super().close()

    def _leave(self) -> None:
        cgroup, self.cgroup = self.cgroup, None
        if cgroup:
            cgroup.close()


def passed_by(name: str, context: Context, path: str,
              most_bytes: int) -> dict:
    """The condition that no more of the input or the output than this is in the
    page cache."""
    wanted = f"<= {most_bytes >> 10} KiB"
    part = context.part_resident(path)
    if part is None:
        return condition(name, wanted, "unknown", None)
    pages = round(part * residency.page_count(context.size_bytes(path)))
    found_bytes = pages * residency.PAGE_BYTES
    return condition(name, wanted, f"{found_bytes >> 10} KiB",
                     found_bytes <= most_bytes)


def scenario(name: str, place: Place, options=None) -> Scenario:
    for kind in (Scenario, Cache, Platter, BeyondMemory):
        if kind.name == name:
            return kind(place, options)
    raise unknown(name, NAMES)


def unknown(name: str, names) -> Failure:
    return Failure(name, f"no scenario; there are {', '.join(names)}", USAGE)
