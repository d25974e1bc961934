"""The energy of timed runs: by the processor's own counters, by a meter, or
both.  It is all that was taken during a run: that of an idle machine, too, as
JouleSort counts it (sortbenchmark.org)."""

import contextlib
import math

from trials.cost import powercap
from trials.cost.meter import Growing

METER = "meter"
# How often the counters are read where passes are to be told apart.
PASSES_PERIOD_S = 0.1


class Energy:
    """The measurement around each run; nothing if there is nothing to measure.
    """

    def __init__(self, zones=(), log: Growing | None = None):
        self._counter = powercap.Counter(list(zones)) if zones else None
        self._log = log

    @contextlib.contextmanager
    def around(self, has_passes=False):
        """The figures of the counters are those of this block."""
        self._counted = None, {}
        if not self._counter:
            yield
            return
        try:
            self._counter.begin(PASSES_PERIOD_S if has_passes else math.inf)
            yield
            self._counted = self._counter.end()
        finally:
            self._counter.abandon()

    def of(self, timed, whole_ns: int, ranks=()) -> dict | None:
        """The energy of the run that was in the last around(), as it is
        recorded: of a process, and of the time in its end that counts; and of
        each pass of these ranks.  Raises Failure if the meter has not covered
        it."""
        if not self._counter and not self._log:
            return None
        span_ns, domains_uj = self._counted
        if self._log:
            end_ns = timed.begin_unix_ns + timed.whole_ns
            domains_uj[METER] = self._log.microjoules(
                (end_ns - whole_ns) / 1e9, end_ns / 1e9)
        return {"counter_span_ns": span_ns, "domains_uj": domains_uj,
                "passes": [{"pass": name, "ns": end_ns - begin_ns,
                            "domains_uj": self._between(timed, begin_ns,
                                                        end_ns)}
                           for name, begin_ns, end_ns
                           in passes_of(ranks, timed.whole_ns)]}

    def _between(self, timed, begin_ns, end_ns):
        """What each domain took between two times of a process."""
        found = {}
        if self._counter:
            before, after = (self._counter.sums_uj(
                timed.begin_monotonic_ns + at_ns)
                for at_ns in (begin_ns, end_ns))
            found = {domain: after[domain] - before[domain]
                     for domain in after}
        if self._log:
            found[METER] = self._log.microjoules(
                *((timed.begin_unix_ns + at_ns) / 1e9
                  for at_ns in (begin_ns, end_ns)))
        return found


def passes_of(ranks, whole_ns: int) -> list[tuple[str, int, int]]:
    """(pass, begin, end) in ns of the process of a sort beyond memory, from its
    start to its end, cut where a pass begins, as those of psort's JouleSort
    are.  The ms between the start of the process and of the sort is ignored."""
    rank = ranks[0] if ranks else {}
    commit_ns = (rank.get("phases_ns") or {}).get("commit")
    if None in (commit_ns, rank.get("elapsed_ns"), rank.get("external")):
        return []
    begin_ns, end_ns, found = rank["elapsed_ns"] - commit_ns, whole_ns, []
    taken = [one for one in rank["external"]["passes"] if one["ns"]]
    for one in reversed(taken):
        begin_ns = begin_ns - one["ns"] if one is not taken[0] else 0
        found.insert(0, (one["pass"], begin_ns, end_ns))
        end_ns = begin_ns
    # A sorter may say anything of itself.
    return found if all(begin < end for _, begin, end in found) else []


def open_sources(options, wanted=None) -> tuple[Energy, dict | None]:
    """What the options ask for, and what of it is recorded in the design: the
    domains, and why there are no others.  None: nothing was asked for.  Of the
    counters, only those of the wanted domains are read, if these are given.
    Raises Failure if the meter's file is wrong."""
    if not options.energy and not options.meter:
        return Energy(), None
    zones, why_not = [], []
    log = Growing(options.meter) if options.meter else None
    if options.energy and options.hosts:
        why_not = ["the nodes' own counters are not read"]
    elif options.energy:
        try:
            zones, why_not = powercap.find(
                options.powercap or powercap.FOLDER)
        except powercap.Unavailable as reason:
            why_not = [str(reason)]
    if wanted is not None:
        zones = [zone for zone in zones if zone.domain in wanted]
    domains = [zone.domain for zone in zones]
    return Energy(zones, log), {
        "domains": domains + ([METER] if log else []),
        "meter_times": log.log.kind if log else None,
        "meter_error": options.meter_error and dict(zip(
            ("percent", "watts"), map(float, options.meter_error.split(",")))),
        "why_not": why_not}


def headline(domains) -> list[str]:
    """The domains that together are what a sort took: those that the meter
    has, else those of the packages and their memory."""
    return [METER] if METER in domains else powercap.whole_of(domains)
