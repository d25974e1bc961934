"""The noise before trials: in words, and as a table."""

from statistics import median

from trials.base import units
from trials.record.noise import Look, first_of_blocks
from trials.report import markup
from trials.report.markup import Cell


def percent(value) -> str:
    """4.20 %, 42.0 %"""
    if value is None:
        return "–"
    return f"{value:.{1 if value >= 9.995 else 2}f} %"


# --- in words -----------------------------------------------------------------

def words(study) -> str:
    """Words for what was lost before the trials, and the waiting; "" of old
    records."""
    if not study.looks:
        return ""
    known = study.noise_percents
    parts = ["not known"]
    if known:
        parts = [f"before a trial the worst CPU lost {percent(median(known))} "
                 f"of its time at the median, {percent(max(known))} at most"]
    waited = [look.noise["waited_ns"] for look in study.looks
              if look.noise["waited_ns"]]
    if waited:
        parts.append(f"waited {units.duration(sum(waited))} before "
                     f"{len(waited)} of {len(first_of_blocks(study.looks))} "
                     "blocks")
    return "; ".join(parts)


def dependence_words(group) -> str:
    """Words for how the times of a group go with the noise."""
    found = group.dependence
    if found is None:
        return "too few trials, or too little that differs, to tell"
    direction = "longer" if found.rho > 0 else "shorter"
    shown = (f"the noisier, the {direction}" if found.found
             else "no dependence found")
    p_value = "<0.0001" if found.p_value < 0.0001 else f"{found.p_value:.4f}"
    return f"{shown} (rank correlation {found.rho:+.2f}, p {p_value})"


# --- the table ----------------------------------------------------------------

_HEAD = ("block|>first trial|>worst trial|>mean of CPUs|>gaps|>longest gap|"
         ">stolen|>frequency|>balloon pages|>waited|remarks")


def table(study) -> str:
    """A row for each block; folded up, since there are many."""
    rows = [_row(look, study.looks) for look in first_of_blocks(study.looks)]
    if not rows:
        return ""
    caption = ("the worst CPU's noise before the first trial of a block, and "
               "before the worst of its trials; the other figures are of the "
               "first trial and of all CPUs that sort. Stolen: time that a "
               "host took, in ticks of 10 ms; balloon pages: given to the "
               "host meanwhile; –: not told by the system, or none")
    return markup.paragraph("Noise: " + words(study) + ".") + markup.details(
        "the noise before each block", markup.table(caption, _HEAD, rows))


def _row(look: Look, looks: list) -> list:
    places = look.noise["places"]
    cpus = [cpu for place in places for cpu in place["cpus"]]
    lost = [cpu["lost_percent"] for cpu in cpus]
    stolen = _known(cpu["steal_ns"] for cpu in cpus)
    clocks = _known(cpu["frequency_khz"] for cpu in cpus)
    pages = _known(place["balloon_inflated_pages"] for place in places)
    waited_ns = look.noise["waited_ns"]
    return [
        str(look.block), percent(look.percent),
        percent(max(_known(other.percent for other in looks
                           if other.block == look.block), default=None)),
        percent(sum(lost) / len(lost) if lost else None),
        str(sum(cpu["count"] for cpu in cpus)) if cpus else "–",
        units.duration(look.longest_ns) if cpus else "–",
        units.duration(sum(stolen)) if stolen else "–",
        _clock(clocks), str(sum(pages)) if pages else "–",
        units.duration(waited_ns) if waited_ns else "–", _remark(look)]


def _known(values) -> list:
    return [value for value in values if value is not None]


def _clock(clocks_khz) -> str:
    if not clocks_khz:
        return "–"
    low, high = (f"{khz / 1e6:.2f}" for khz in (min(clocks_khz),
                                                max(clocks_khz)))
    return f"{low} GHz" if low == high else f"{low} to {high} GHz"


def _remark(look):
    if look.messages:
        return Cell("; ".join(look.messages), "doubtful")
    limit = look.noise["limit_percent"]
    if look.noise["over_limit"]:
        return Cell(f"above {limit:g} %", "bad")
    return "" if limit is None else f"limit {limit:g} %"
