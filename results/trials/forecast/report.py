"""A forecast as a whole: made once, shown as text or as a page."""

from dataclasses import dataclass, field, replace

from trials.base.failure import FILE, Failure
from trials.forecast import measured, rates, stages
from trials.forecast.wanted import LINK_BITS_PER_S, Wanted
from trials.record import store
from trials.report import machine_facts


@dataclass
class Report:
    folder: str
    environment: dict
    wanted: Wanted
    rates: rates.Rates
    link_bits_per_s: int
    # {records: [stages.Forecast of each number of nodes]}
    forecasts: dict
    compared: list
    notes: list = field(default_factory=list)

    @property
    def machine(self):
        return machine_facts.summary(machine_facts.before(self.environment))

    def title(self, records):
        """The title of a table of these records."""
        wanted = self.wanted
        link = measured.rate_words(self.link_bits_per_s)
        return (f"{measured.short_count(records)} records of "
                f"{wanted.record_bytes} bytes, links of {link}, packets of "
                f"{wanted.mtu_bytes} bytes, {wanted.scenario}")


def make(programs, folder, wanted, runs) -> Report:
    """`runs`: what to compare with; none: what stands beside the folder."""
    known = rates.of(folder)
    if wanted.scenario is None:
        wanted = replace(wanted, scenario="platter" if known.disk_read
                         else "pagecache")
    if wanted.scenario != "pagecache" and not known.disk_read:
        raise Failure(folder, "has no rates of a disk: give "
                      "--scenario=pagecache", FILE)
    network = known.link_options | {
        "mtu": wanted.mtu_bytes, "senders": wanted.cpus[0],
        "receivers": wanted.cpus[1]}
    network["link"] = (wanted.link_bits_per_s or network["link"]
                       or LINK_BITS_PER_S)
    forecasts = {
        records: [stages.predict_any(
            programs, nodes, records, wanted.record_bytes,
            memory_bytes=known.memory_bytes, **network,
            **known.supposed(wanted.scenario)) for nodes in wanted.nodes]
        for records in wanted.records}
    made = sum(forecasts.values(), [])
    comparison = measured.Comparison(programs, known, folder)
    for run in runs:
        comparison.add(run)
    if not runs:
        comparison.add_beside(folder)
    return Report(folder, store.read_environment(folder), wanted, known,
                  network["link"], forecasts, comparison.rows,
                  [*known.notes, *comparison.notes, *stages.notes(made)])
