#!/usr/bin/python3
"""Sort a file of fixed-size records as users of Python would.

USAGE: sort_peer.py numpy|polars|duckdb u64|f64 INPUT OUTPUT

u64: records of 16 bytes, by the 64-bit number in the first 8; stable.
f64: records of 8 bytes, each a double.
Whole processes are compared, so only what is needed is imported.
"""

import sys

import numpy as np


def read(kind, path):
    if kind == "f64":
        return np.fromfile(path, "<f8")
    return np.fromfile(path, "<u8").reshape(-1, 2)


def by_numpy(kind, records):
    if kind == "f64":
        records.sort()
        return records
    return records[np.argsort(records[:, 0], kind="stable")]


def by_polars(kind, records):
    import polars
    if kind == "f64":
        return polars.Series(records).sort().to_numpy()
    frame = polars.DataFrame({"key": records[:, 0], "rest": records[:, 1]})
    return frame.sort("key", maintain_order=True).to_numpy(order="c")


def by_duckdb(kind, records):
    import duckdb
    import pyarrow
    if kind == "f64":
        keys = pyarrow.table({"key": records})  # noqa: F841
        return duckdb.sql("from keys order by key").fetchnumpy()["key"]
    edges = pyarrow.table({"key": records[:, 0].copy(),  # noqa: F841
                           "rest": records[:, 1].copy()})
    found = duckdb.sql("from edges order by key").fetchnumpy()
    return np.stack([found["key"], found["rest"]], axis=1)


def main(peer, kind, source, target):
    sort = {"numpy": by_numpy, "polars": by_polars, "duckdb": by_duckdb}[peer]
    sort(kind, read(kind, source)).tofile(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
