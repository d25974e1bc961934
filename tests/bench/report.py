"""Samples as figures, as rows of a table, and as a file."""

import datetime
import json
import os
import re
import statistics
import sys

from programs import BUILD, ROOT


def quartiles_of(ratios):
    lower, median, upper = statistics.quantiles(
        ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return {"lower_quartile": round(lower, 4), "median": round(median, 4),
            "upper_quartile": round(upper, 4)}


def ratio_of(first_ns, second_ns):
    """Of the first against the second, pair by pair: the quartiles, and an
    interval of the median that holds for any distribution, null for less than
    six pairs."""
    ratios = [a / b for a, b in zip(first_ns, second_ns)]
    return {**quartiles_of(ratios), "interval": interval_of(ratios)}


def interval_of(ratios):
    # To import it takes a second, which is more than some benchmarks take.
    sys.path.insert(0, str(ROOT / "results"))
    try:
        from trials.statistics.descriptive import median_interval
    except ImportError:
        return {"missing": "python3-numpy and python3-scipy"}
    finally:
        sys.path.pop(0)
    found = median_interval(ratios)
    return found and {"low": round(found.low, 4), "high": round(found.high, 4),
                      "confidence": round(found.confidence, 4)}


def ratio_words(ratio):
    text = (f"{ratio['median']:.3f}, quartiles {ratio['lower_quartile']:.3f} "
            f"to {ratio['upper_quartile']:.3f}")
    interval = ratio["interval"]
    if interval and "missing" in interval:
        return f"{text}; no interval without {interval['missing']}"
    return text if not interval else (
        f"{text}, {100 * interval['confidence']:.1f} % interval of the median "
        f"{interval['low']:.3f} to {interval['high']:.3f}")


def summary(contestants):
    """Of one contestant, or of the first against the second."""
    ratio = None
    if len(contestants) == 2:
        ratio = ratio_of(*(c.elapsed_ns for c in contestants))
    return {
        "contestants": [{
            "name": c.name,
            "median_ns": round(statistics.median(c.elapsed_ns)),
            "min_ns": min(c.elapsed_ns),
        } for c in contestants],
        "ratio": ratio,
    }


NAME_WIDTH = 27
HEADING = (f"{'':{NAME_WIDTH}}{'median':>7}{'min':>6}  {'':7}{'median':>7}"
           f"{'min':>6}{'ratio':>6}{'quartiles':>12}\n"
           f"{'':{NAME_WIDTH}}{'ms':>7}{'ms':>6}  {'against':7}{'ms':>7}"
           f"{'ms':>6}")


def ms(ns):
    text = f"{ns / 1e6:.2f}"
    return text if len(text) <= 5 else f"{ns / 1e6:.1f}"


def row(name, result):
    first, *second = result["contestants"]
    text = (f"{name:{NAME_WIDTH}}{ms(first['median_ns']):>7}"
            f"{ms(first['min_ns']):>6}")
    if second:
        ratio = result["ratio"]
        quartiles = (f"{ratio['lower_quartile']:.2f}-"
                     f"{ratio['upper_quartile']:.2f}")
        text += (f"  {second[0]['name']:7}{ms(second[0]['median_ns']):>7}"
                 f"{ms(second[0]['min_ns']):>6}{ratio['median']:6.2f}"
                 f"{quartiles:>12}")
    return text


def rows(name, contestants, result):
    """A line; of more than two, one for each, against the last."""
    if len(contestants) <= 2:
        return row(name, result)
    *others, last = contestants
    return "\n".join([name] + [row(f"  {one.name}", summary([one, last]))
                               for one in others])


def slower_rows(results):
    """Of our programs against older ones: where they are slower."""
    intervals = [(result["name"], result["ratio"]["interval"] or {})
                 for result in results if result.get("ratio")]
    known = [(name, interval) for name, interval in intervals
             if "low" in interval]
    slower = [f"{name}: {interval['low']:.3f} to {interval['high']:.3f}"
              for name, interval in known if interval["low"] > 1]
    lines = [f"{len(known)} compared; the interval of the median ratio lies "
             f"above 1.00 in {len(slower)}", *slower]
    if len(known) < len(intervals):
        lines.append(f"{len(intervals) - len(known)} without an interval, "
                     "which takes six rounds, python3-numpy and python3-scipy")
    return "\n".join(lines)


def memory_row(name, result):
    def mib(key):
        return f"{result[key] / 2**20:.1f}"
    return (f"{name:{NAME_WIDTH}}{mib('own_peak_bytes'):>7} MiB peak, without "
            f"{mib('mapped_input_bytes')} mapped; "
            f"{mib('planned_bytes')} planned")


def record_path(label, complete):
    """A name that is free: a result is never written over."""
    folder = ROOT / "results" if complete else BUILD
    stem = f"bench-{datetime.date.today().isoformat()}-{label}"
    path = folder / f"{stem}.json"
    number = 2
    while path.exists():
        path = folder / f"{stem}-{number}.json"
        number += 1
    return path


def write_record(path, document):
    text = json.dumps(document, indent=1)
    # Lists of plain values on one line: a contestant's samples, a command.
    text = re.sub(r"\[\s+([^][{}]*?)\s+\]", lambda found: "[" + re.sub(
        r",\s+", ", ", found.group(1)) + "]", text)
    path.write_text(text + "\n", encoding="ascii")


def record_results(bench, document, label, complete, path=None):
    """To a file of its own, or to this one.  Returns the exit status."""
    document.update(results=bench.results, skipped=bench.skipped,
                    failed=bench.failed)
    path = path or record_path(label, complete)
    write_record(path, document)
    print(f"recorded in {os.path.relpath(path, ROOT)}")
    return 1 if bench.failed else 0
