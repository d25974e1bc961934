#!/usr/bin/python3
"""The medians and ratios of records, a line for each command of each record.

usage: tests/bench/table.py RECORD...
"""

import csv
import io
import subprocess
import sys
from pathlib import Path

REPORT = Path(__file__).resolve().parents[2] / "results/blinkreport"


def rows_of(record):
    """What blinkreport tells of each command."""
    done = subprocess.run([REPORT, "--format=csv-summary", record], text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return list(csv.DictReader(io.StringIO(done.stdout)))


def line(row):
    if not row["median_ns"]:
        return f"  {row['configuration']}: no trial has succeeded"
    text = f"  {float(row['median_ns']) / 1e6:10.3f} ms"
    if row["blocked_ratio"]:
        text += f"{float(row['blocked_ratio']):8.3f}"
        if row["blocked_ratio_low"]:
            text += (f" [{float(row['blocked_ratio_low']):.3f}, "
                     f"{float(row['blocked_ratio_high']):.3f}]")
    return f"{text:46}{row['configuration']}"


if __name__ == "__main__":
    print("\n".join(line(row) for record in sys.argv[1:]
                    for row in rows_of(record)))
