"""What came out of trials of commands, for a terminal of 80 columns.

Each command has a number and stands in full above the table: a column is too
narrow for most.
"""

import statistics

from trials.base import units
from trials.base.text_table import as_lines, grid, wrapped
from trials.record import noise, timing
from trials.record.design import AS_IS, CONTROL, REFERENCE
from trials.statistics import comparison, descriptive
from trials.statistics.racing import is_sample

# What a row takes from a trial's measures.
_MEASURES = (("user", "user_ns", units.DURATIONS),
             ("system", "system_ns", units.DURATIONS),
             ("memory", "max_rss_bytes", units.SIZES))


class _Row:
    """An arm in a scenario; `number` is None for the control."""

    def __init__(self, number, configuration, found):
        self.number = number
        self.name = configuration["name"]
        self.role = configuration["role"]
        self.found = found
        self.trials = [trial for trial in found if is_sample(trial)]
        self.samples_ns = [trial["whole_ns"] for trial in self.trials]
        self.blocks = [trial["block"] for trial in self.trials]

    @property
    def label(self) -> str:
        return "1 again" if self.role == CONTROL else str(self.number)


def text(record) -> str:
    """The commands, a table for each scenario, and what is to be said of it."""
    design = record.design
    numbers = _numbers(design)
    parts = ["\n".join(map(wrapped, _commands(design, numbers)))]
    for scenario in design["scenarios"]:
        rows = [_Row(numbers.get(c["name"]), c,
                     [t for t in record.trials() if t["scenario"] == scenario
                      and t["configuration"] == c["name"]])
                for c in design["configurations"] if c["skipped"] is None]
        parts.append(_table(scenario, [row for row in rows if row.trials],
                            design["seed"]))
    parts += [f"skipped: {c['name']}: {c['skipped']}"
              for c in design["configurations"] if c["skipped"]]
    parts.append("\n".join(map(wrapped, (
        *noise.notes(noise.looks(record.trials())),
        *timing.sentences(design)))))
    return as_lines("\n\n".join(filter(None, parts)) + "\n")


def _commands(design, numbers) -> list[str]:
    """Each command with its number, and with its name if it has one."""
    texts = {c["name"]: c["command"]["text"] for c in design["configurations"]}
    return [f"{number}  {name}" + ("" if texts[name] in name
                                   else f": {texts[name]}")
            for name, number in numbers.items()]


def _numbers(design) -> dict:
    """Numbers of the commands by name, the reference first; the control has
    that of the reference."""
    names = [c["name"] for c in design["configurations"]
             if c["role"] != CONTROL and c["skipped"] is None]
    return {name: number for number, name in enumerate(names, 1)}


def _table(scenario, rows, seed) -> str:
    reference = next((row for row in rows if row.role == REFERENCE), None)
    if reference is None:
        return ""
    found = {row.name: comparison.compare(
        reference.samples_ns, row.samples_ns, seed,
        (reference.blocks, row.blocks)) for row in rows
        if row is not reference}
    measured = [(head, name, scales) for head, name, scales in _MEASURES
                if any(_measures(row, name) for row in rows)]
    counts = {len(row.trials) for row in rows}
    # A column of one number would not leave the others the width of a terminal.
    has_count = len(counts) > 1
    headings = "|>".join(["", *(["n"] if has_count else []), "median [95 %]",
                          "ratio to 1 [95 %]", *(head for head, _, _
                                                 in measured)])
    table = grid(headings, [_cells(row, has_count, found.get(row.name),
                                   measured, seed) for row in rows])
    title = ", ".join([*([] if scenario == AS_IS
                         else [_label(scenario, rows)]),
                       *([] if has_count else [_runs(*counts)])])
    return "\n".join([*([f"{title}:"] if title else []), table, "",
                      *_sentences(rows, found)]).rstrip()


def _runs(count) -> str:
    return "1 run of each" if count == 1 else f"{count} runs of each"


def _label(scenario, rows) -> str:
    """No result has a scenario's name whose conditions were not verified."""
    verified = all(trial["scenario_met"] is True
                   for row in rows for trial in row.trials)
    return scenario if verified else f"{scenario} (unverified)"


def _cells(row, has_count, compared, measured, seed) -> list:
    summary = descriptive.summarise(row.samples_ns, seed)
    return [row.label, *([str(len(row.trials))] if has_count else []),
            _scaled(summary.median_ns, units.DURATIONS,
                    summary.median_interval_ns),
            units.with_interval(compared.main.ratio,
                                compared.main.ratio_interval)
            if compared else "1",
            *(_scaled(statistics.median(_measures(row, name)), scales)
              if _measures(row, name) else "-"
              for _, name, scales in measured)]


def _measures(row, name) -> list:
    found = ((trial.get("measures") or {}).get(name) for trial in row.trials)
    return [value for value in found if value is not None]


def _scaled(value, scales, interval=None) -> str:
    """The value, and its interval, in the unit that suits the value."""
    size, name = units.unit_of(value, scales)
    return units.with_interval(value, interval,
                               lambda each: _digits(each / size), f" {name}")


def _digits(value) -> str:
    """Three digits: more would not fit, and ratios tell small differences."""
    if not value:
        return "0"
    return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f}"


def _sentences(rows, found) -> list:
    """What should make a reader careful."""
    says = []
    for row in rows:
        failed = len(row.found) - len(row.trials)
        if failed:
            says.append(wrapped(f"{row.label}: {failed} of {len(row.found)} "
                                "trials failed and are not in the figures."))
        ignored = sum(trial["exit_status"] != 0 for trial in row.trials)
        if ignored:
            says.append(wrapped(f"{row.label}: {ignored} of {len(row.trials)} "
                                "runs ended with another status than 0, and "
                                "are in the figures."))
        left = sum(count > 0 for count in _measures(row, "left_processes"))
        if left:
            says.append(wrapped(f"{row.label}: processes were left behind by "
                                f"{left} of {len(row.trials)} trials, and "
                                "ended."))
    control = next((row for row in rows if row.role == CONTROL), None)
    if control and found[control.name].verdict() in ("slower", "faster"):
        says.append(wrapped(
            "The first command differs from itself, which one run in 20 does "
            "by chance: something beside the commands has an effect, and other "
            "differences of this size mean nothing."))
    return says
