"""What blinksort predicts of a sort, stage by stage: blinksort --explain is
asked what it supposes of such machines."""

from dataclasses import dataclass, field

from trials.base.failure import FAILED, Failure
from trials.forecast.wanted import LINK_BITS_PER_S

SCHEDULES = ("rounds", "all-at-once", "grid")
# More than any sort takes: it is in memory, if its records can be counted.
_ANY_MEMORY = 2**60


@dataclass(frozen=True)
class Forecast:
    """Of one number of nodes and records; nanoseconds."""

    nodes: int
    records: int
    # False: it is sorted beyond memory, in a first and a last pass.
    fits: bool
    # 0: it was not predicted.
    whole: float = 0
    launch: float = 0
    # The longer of read and bucket; so of sort and write.
    first: float = 0
    read: float = 0
    bucket: float = 0
    exchange: float = 0
    last: float = 0
    sort: float = 0
    write: float = 0
    # What the document says of the exchange of several nodes in memory, or {}.
    terms: dict = field(default_factory=dict)
    # Why blinksort would not sort that.
    refused: str = ""

    @property
    def chosen(self):
        return self.terms.get("schedule")

    @property
    def message_bytes(self):
        return self.terms.get("message_bytes", 0)

    def by(self, schedule):
        """The time of the exchange by one of SCHEDULES, or "link"."""
        return self.terms.get(f"{schedule.replace('-', '_')}_ns")


def predict(programs, nodes, records, record_bytes, *, link=None, threads=None,
            disk=None, memory_bytes=None, **supposed) -> Forecast:
    """`link`: bits a second; `disk`: the three of --disk-rates; `supposed`:
    what else --suppose may name, "latency_ns" for latency-ns.  None is left
    out."""
    words = [f"{nodes}:{records}", *(
        f"{name.replace('_', '-')}={value}"
        for name, value in supposed.items() if value is not None)]
    more = [f"--threads={threads}"] if threads else []
    if disk:
        more.append(f"--disk-rates={':'.join(map(str, disk))}")
    return _forecast(nodes, records, programs.document(
        "blinksort", "--explain", "--json", f"--suppose={','.join(words)}",
        f"--record-size={record_bytes}",
        f"--memory={memory_bytes or _ANY_MEMORY}",
        f"--link-rate={link or LINK_BITS_PER_S}bit", *more))


def _forecast(nodes, records, document):
    passes = {one["pass"]: one for one in document["predicted_passes"] or ()}
    fits = document["fits"]
    terms = document["exchange"] if fits and nodes > 1 else {}
    if not passes:
        return Forecast(nodes, records, fits, terms=terms)
    first, last = (passes[name] for name in (
        ("bucket", "order") if fits else ("runs", "output")))
    launch, exchange, merges = (passes.get(name, {"ns": 0})["ns"] for name in (
        "launch", "exchange", "merges"))
    return Forecast(
        nodes, records, fits, document["predicted_ns"], launch,
        first["ns"], first["disk_ns"], first["cpu_ns"], exchange,
        merges + last["ns"], last["cpu_ns"], last["disk_ns"], terms)


def predict_any(programs, nodes, records, *options, **more) -> Forecast:
    """Do as predict(), also of a share that no sort takes."""
    try:
        return predict(programs, nodes, records, *options, **more)
    except Failure as failure:
        if failure.status != FAILED:
            raise
        return Forecast(nodes, records, False, refused=failure.why)


def notes(forecasts) -> list:
    """Sentences about shares that do not fit into memory."""
    return [f"Of {one.records:,} records, a share of {one.nodes} "
            f"{'node' if one.nodes == 1 else 'nodes'} does not fit into the "
            "machine's memory: " + (
                f"blinksort refuses it ({one.refused})." if one.refused
                else "its sort is beyond memory, in two passes or more."
                if one.whole else "without rates of a disk nothing is "
                "predicted of its sort.")
            for one in forecasts if not one.fits]
