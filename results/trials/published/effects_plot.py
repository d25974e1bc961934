"""All configurations of a sweep in the form of the study of 2011's Figure 4:
the minimum of each scenario as a bar, and the average with the standard
deviation as a line across its end; the largest average is on top."""

from trials.drawing import style
from trials.published import benchmark
from trials.report import machine_facts

CAPTION = (
    "Bars are minima; a dot is the average, and its line the standard "
    "deviation to both sides. The configurations stand in the order of the "
    "average of the last scenario. ")
_NAMES_PX, _ROW_PX, _KEY_PX, _FOOT_PX = 230, 24, 20, 40
_NARROW_ROW_PX = 38


def has_effects(study) -> bool:
    """Times of a sweep over settings of a machine, of the benchmark's records?
    """
    return ((benchmark.is_whole(study) or benchmark.is_part(study))
            and bool(_rows(study))
            and any(name.startswith(("tune.", "machine."))
                    for configuration in study.design["configurations"]
                    for name in configuration["parameters"]))


def where(source) -> str:
    return machine_facts.summary(machine_facts.before(source.environment))


def words(study) -> str:
    """The figures as a text."""
    return "; ".join(
        f"{name}: " + ", ".join(
            f"{scenario} {group.summary.mean_ns / 1e6:.1f} ms"
            for scenario, group in groups.items())
        for name, groups in _rows(study))


def _rows(study):
    """(name, {scenario: group}), the largest average first."""
    rows = {}
    for scenario in study.scenarios:
        for group in study.of(scenario):
            if group.count:
                rows.setdefault(group.name, {})[scenario] = group
    last = study.scenarios[-1]
    return sorted(rows.items(), key=lambda row: -(
        row[1][last].summary.mean_ns if last in row[1] else 0))


def draw(study, width_px):
    rows = _rows(study)
    beside = width_px > style.NARROW
    names_px = _NAMES_PX if beside else 8
    row_px = _ROW_PX if beside else _NARROW_ROW_PX
    figure = style.canvas(
        width_px, _KEY_PX + row_px * len(rows) + _FOOT_PX)
    axes = style.rows(figure, [name for name, _ in rows], names_px, _KEY_PX,
                      width_px - names_px - 16, row_px, 0 if beside else 0.3)
    largest_ns = max(group.summary.mean_ns + (group.summary.sd_ns or 0)
                     for _, groups in rows for group in groups.values())
    scale, unit = style.time_scale(largest_ns)
    axes.set_xlim(0, 1.03 * largest_ns / scale)
    for number, (_, groups) in enumerate(rows):
        _row(axes, study, number, groups, scale, beside)
    style.ticks(axes.xaxis, 8 if beside else 4)
    axes.set_xlabel(f"time of a whole run, {unit}")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3,
                frameon=False, borderpad=0, borderaxespad=0.2,
                fontsize=style.SMALL_PX)
    return figure


def _row(axes, study, number, groups, scale, beside):
    height = (0.8 if beside else 0.5) / max(len(study.scenarios), 1)
    top = number - height * len(study.scenarios) / 2 + (
        0 if beside else 0.22)
    for place, scenario in enumerate(study.scenarios):
        group = groups.get(scenario)
        if group is None:
            continue
        at = top + (place + 0.5) * height
        summary = group.summary
        axes.barh(at, summary.min_ns / scale, 0.9 * height, linewidth=0,
                  color=style.colour_of(study.scenarios, scenario), alpha=0.6,
                  label=None if number else study.label(scenario))
        axes.errorbar(summary.mean_ns / scale, at,
                      xerr=(summary.sd_ns or 0) / scale, fmt="o",
                      color=style.INK, markersize=2.5, linewidth=0.9,
                      capsize=2)
