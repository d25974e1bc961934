"""A forecast as a whole: made once, shown as text or as a page."""

from dataclasses import dataclass, field, replace

from trials.base.failure import FILE, Failure
from trials.forecast import exchange, measured, rates, stages
from trials.forecast.wanted import LINK_BITS_PER_S, Wanted
from trials.record import store
from trials.report import machine_facts


@dataclass
class Report:
    folder: str
    environment: dict
    wanted: Wanted
    rates: rates.Rates
    # The terms of the exchange's model, as blinkprobe prints them.
    model: dict
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
        link = measured.rate_words(self.model["link_bits_per_s"])
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
    model, forecasts = {}, {}
    for records in wanted.records:
        model = _exchanges(programs, known, wanted, records)
        forecasts[records] = [
            stages.of(known, model, one, wanted.scenario)
            for one in model["forecasts"]]
    comparison = measured.Comparison(programs, known, folder)
    for run in runs:
        comparison.add(run)
    if not runs:
        comparison.add_beside(folder)
    return Report(folder, store.read_environment(folder), wanted, known, model,
                  forecasts, comparison.rows,
                  [*known.notes, *comparison.notes, *(
                      note for each in forecasts.values()
                      for note in stages.notes(known, each))])


def _exchanges(programs, known, wanted, records):
    link = known.link_options
    link["link"] = (wanted.link_bits_per_s or link["link"]
                    or LINK_BITS_PER_S)
    return exchange.predict(
        programs, wanted.nodes, records, wanted.record_bytes,
        mtu=wanted.mtu_bytes, senders=wanted.cpus[0],
        receivers=wanted.cpus[1], **link)
