"""What a sort costs: records for a cent, and for a joule, as PennySort and
JouleSort count them, with the formulas they come from."""

import statistics
from dataclasses import dataclass
from decimal import Decimal

from trials.base import units
from trials.cost.energy import METER, headline
from trials.cost.price import LIFE_S
from trials.report import external
from trials.statistics.descriptive import Interval, median_interval

PRICE_HEADINGS = "configuration|>n|>sorts/cent|>records/cent [95 %]"
ENERGY_HEADINGS = ("configuration|domain|>n|>energy [95 %]|>watts|"
                   ">records/J [95 %]")
# The name of several domains together.
ALL = "all"
PARTS_HEADINGS = "part|>count|>price|>sum"
# Processors write their counters anew about as often.
COUNTER_STEP_NS = 1e6
_SCALES = ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k"), (1, ""))
_JOULES = ((1e3, " kJ"), (1, " J"), (1e-3, " mJ"))


@dataclass(frozen=True)
class Estimate:
    """A median, and what it lies in; None: of too few."""

    middle: float
    interval: Interval | None

    def over(self, numerator) -> "Estimate | None":
        """numerator / this: the ends change places.  None: of nothing."""
        if not self.middle:
            return None
        found = self.interval
        return Estimate(
            numerator / self.middle,
            Interval(numerator / found.high, numerator / found.low,
                     found.confidence) if found and found.low else None)


def estimate(values) -> Estimate | None:
    values = list(values)
    if not values:
        return None
    return Estimate(statistics.median(values), median_interval(values))


def price(study) -> dict | None:
    return study.design.get("price")


def domains(study) -> list:
    return (study.design.get("energy") or {"domains": []})["domains"]


# --- figures ------------------------------------------------------------------


def records_per_cent(study, group) -> Estimate | None:
    """The number of records that a cent buys in sorts of this size, one after
    the other."""
    if not price(study) or not group.count:
        return None
    summary = group.summary
    return Estimate(summary.median_ns, summary.median_interval_ns).over(
        study.design["records"] * price(study)["seconds_per_cent"] * 1e9)


def sorts_per_cent(study, group) -> float:
    return price(study)["seconds_per_cent"] * 1e9 / group.summary.median_ns


def joules(group, wanted, name=None) -> Estimate | None:
    """The energy of these domains together, over the trials that have them, or
    over their passes of that name."""
    return estimate(sum(one["domains_uj"][domain] for domain in wanted) / 1e6
                    for one in _taken(group, wanted, name))


def watts(group, wanted, name=None) -> float | None:
    """The mean power, of each domain over the time that it was measured."""
    found = [sum(one["domains_uj"][domain] * 1e3 / (
        domain != METER and one.get("counter_span_ns") or one["ns"])
        for domain in wanted) for one in _taken(group, wanted, name)]
    return statistics.median(found) if found else None


def meter_error_joules(study, group, wanted, name=None) -> float | None:
    """The most by which that energy is wrong; None: that is not known."""
    error = (study.design.get("energy") or {}).get("meter_error")
    taken = _taken(group, wanted, name)
    if not error or wanted != [METER] or not taken:
        return None
    return (error["percent"] / 100 * joules(group, wanted, name).middle
            + error["watts"] * statistics.median(
                one["ns"] for one in taken) / 1e9)


def _passes(trial) -> list:
    return (trial.get("energy") or {}).get("passes", [])


def _taken(group, wanted, name) -> list:
    """The energy of each trial, or of its pass of that name."""
    return [one for trial in _with(group, wanted) for one in (
        {**trial["energy"], "pass": None, "ns": trial["whole_ns"]},
        *_passes(trial)) if one["pass"] == name
        and set(wanted) <= set(one["domains_uj"])]


def _with(group, wanted):
    return [trial for trial in group.sample_trials
            if wanted and (energy := trial.get("energy"))
            and set(wanted) <= set(energy["domains_uj"])
            and (energy["counter_span_ns"] or wanted == [METER])]


# --- tables -------------------------------------------------------------------


def short(value) -> str:
    """72,920,000,000 -> "72.92 G"."""
    return _cell(Estimate(value, None), _SCALES)


def _cell(found, scales) -> str:
    """"23.71 mJ [22.90, 25.12]": one unit for all of it."""
    if found is None:
        return "-"
    size, name = units.unit_of(found.middle, scales, units.ROUNDED_UP)
    return units.with_interval(found.middle, found.interval,
                               lambda value: units.digits(value / size), name)


def tables(study, scenario) -> list:
    """(title, headings, rows) of each table."""
    return [("price", PRICE_HEADINGS, price_rows(study, scenario)),
            ("energy of a run", ENERGY_HEADINGS,
             energy_rows(study, scenario))]


def price_rows(study, scenario) -> list:
    if not price(study):
        return []
    return [[group.name, str(group.count),
             short(sorts_per_cent(study, group)),
             _cell(records_per_cent(study, group), _SCALES)]
            for group in study.of(scenario) if group.count]


def energy_rows(study, scenario) -> list:
    """The rows of each configuration: what counts, each pass of that, and then
    each domain."""
    if not domains(study):
        return []
    whole = headline(domains(study))
    each = [([domain], None) for domain in domains(study) if [domain] != whole]
    return [_energy_row(study, group, wanted, name)
            for group in study.of(scenario) if group.count
            for wanted, name in [(whole, None), *(
                (whole, name) for name in dict.fromkeys(
                    one["pass"] for trial in _with(group, whole)
                    for one in _passes(trial))), *each]]


def _energy_row(study, group, wanted, name):
    found = joules(group, wanted, name)
    error = meter_error_joules(study, group, wanted, name)
    domain = wanted[0] if len(wanted) == 1 else ALL
    return [group.name, f"{domain}, {name}" if name else domain,
            str(len(_taken(group, wanted, name))),
            _cell(found, _JOULES) + ("" if error is None else " ± " + _cell(
                Estimate(error, None), _JOULES)),
            external.shown(watts(group, wanted, name), units.digits),
            _cell(found.over(study.design["records"]) if found and not name
                  and study.design["records"] else None, _SCALES)]


def pass_cells(trial) -> dict:
    """The columns of its passes in a CSV."""
    return {f"energy_{one['pass']}_{key}": value for one in _passes(trial)
            for key, value in (("ns", one["ns"]), *(
                (f"{domain}_uj", taken_uj) for domain, taken_uj
                in one["domains_uj"].items()))}


def part_rows(study) -> list:
    """A row for each part, and the sum of all."""
    found = price(study)
    if not found:
        return []
    return [[part["part"], str(part["count"]), part["price"],
             str(part["count"] * Decimal(part["price"]))]
            for part in found["parts"]] + [
        ["all", "", "", f"{found['total']} {found['currency']}"]]


# --- words --------------------------------------------------------------------


def sentences(study) -> list:
    """What the figures are, and those that are of no configuration."""
    return _price_sentences(study) + _energy_sentences(study)


def _price_sentences(study):
    found = price(study)
    if not found:
        return []
    seconds = units.digits(found["seconds_per_cent"])
    return [
        f"The machine costs {found['total']} {found['currency']}. A cent buys "
        f"{LIFE_S:,} s (three years) / "
        f"{float(found['total']) * 100:,.0f} = {seconds} s of its time.",
        f"records/cent = records of a sort / median time x {seconds} s, if "
        "such sorts follow each other. Its interval is that of the median "
        "time.",
        *_penny_sentences(study, found["penny_sort"], seconds)]


def penny_records(study) -> Estimate | None:
    """The size of a PennySort, of all measurements of the disk."""
    return estimate(price(study)["penny_sort"]["records"])


def _penny_sentences(study, found, seconds):
    size = penny_records(study)
    if size is None:
        return [f"PennySort: not predicted: {found['why_not']}."]
    confidence = f" ({100 * size.interval.confidence:.1f} %)" \
        if size.interval else ""
    of = study.design["record_bytes"]
    words = [
        f"PennySort by the model: {_cell(size, _SCALES)} records{confidence}, "
        f"{short(size.middle * of)}B, in one sort of {seconds} s. It is the "
        "largest N for which blinksort --explain --suppose=1:N predicts no "
        "longer time, with "
        f"{units.size(found['memory_bytes'] or 0)} of memory and the rates of "
        "the work folder's disk: median and interval of "
        f"{len(found['records'])} measurements of the disk. The interval "
        "knows nothing of the model's own error."]
    room, disk = found["room_bytes"], found["disk_bytes"]
    if None not in (room, disk) and room > disk:
        words.append(
            f"The largest of these sorts needs {short(room)}B for input, "
            f"scratch files and output, more than the {short(disk)}B of the "
            "work folder's file system: with these disks it can't be run.")
    return words


def _energy_sentences(study):
    found = study.design.get("energy")
    if not found:
        return []
    words = [f"Energy: not measured: {why}." for why in found["why_not"]]
    whole = headline(found["domains"])
    if not whole:
        return words
    return [
        _energy_source(found, whole)
        + " What was taken during a run counts, even by what was idle, as in "
        "JouleSort.",
        "records/J = records of a sort / median energy of a run. Its interval "
        "is that of the median energy.",
        *_counter_sentences(study), *words]


def _energy_source(found, whole):
    if whole == [METER]:
        return ("Energy is that of the meter, by the trapezoid rule; its log "
                f"has times in {found['meter_times']}."
                + _error_words(found.get("meter_error")))
    together = f" ({ALL})" if len(whole) > 1 else ""
    return (f"Energy is that of {' + '.join(whole)}{together}: processors and "
            "memory, not disks, fans or power supply.")


def _error_words(error):
    return (f" The meter's largest error (±) is {error['percent']:g} % of the "
            f"energy and {error['watts']:g} W; no interval has it."
            if error else "")


def _counter_sentences(study):
    """Sentences that say how well the processor's counters can know a run."""
    trials = [trial for group in study.groups.values()
              for trial in _with(group, headline(domains(study)))
              if trial["energy"]["counter_span_ns"]]
    if not trials:
        return []
    longer = statistics.median(trial["energy"]["counter_span_ns"]
                               / trial["whole_ns"] for trial in trials)
    whole_ns = statistics.median(trial["whole_ns"] for trial in trials)
    return ["The counters were read right before and after each run: the time "
            f"between was {100 * (longer - 1):.2f} % longer than the run, at "
            "the median. Processors renew them about every millisecond, which "
            f"is {100 * COUNTER_STEP_NS / whole_ns:.3g} % of the median run."]
