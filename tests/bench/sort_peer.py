#!/usr/bin/python3
"""Sort a file of fixed-size records as users of Python would.

USAGE: sort_peer.py numpy|polars|duckdb u64|f64|ascii INPUT OUTPUT [head]

With head, polars and DuckDB write the first 1,000 records of ascii only.

u64: records of 16 bytes, by the 64-bit number in the first 8; stable.
f64: records of 8 bytes, each a double.
ascii: records of 100 bytes, by the first 10, which are sorted as two numbers
       with the record's own.  To read and write lines takes these libraries
       longer.
Whole processes are compared, so only what is needed is imported.
"""

import sys

import numpy as np

HEAD = 1000


def read(kind, path):
    if kind == "f64":
        return np.fromfile(path, "<f8")
    if kind == "ascii":
        return np.fromfile(path, "u1").reshape(-1, 100)
    return np.fromfile(path, "<u8").reshape(-1, 2)


def columns(records):
    """The first 8 bytes of each record and the next 2, as numbers, and which
    record it is."""
    return {"high": records[:, :8].copy().view(">u8").ravel().astype("u8"),
            "low": records[:, 8:10].copy().view(">u2").ravel().astype("u2"),
            "number": np.arange(len(records), dtype="u4")}


def by_numpy(kind, records):
    if kind == "ascii":
        found = columns(records)
        return records[np.lexsort((found["low"], found["high"]))]
    if kind == "f64":
        records.sort()
        return records
    return records[np.argsort(records[:, 0], kind="stable")]


def by_polars(kind, records):
    import polars
    if kind == "f64":
        return polars.Series(records).sort().to_numpy()
    if kind == "ascii":
        frame = polars.DataFrame(columns(records)).sort("high", "low")
        return records[frame["number"].to_numpy()]
    frame = polars.DataFrame({"key": records[:, 0], "rest": records[:, 1]})
    return frame.sort("key", maintain_order=True).to_numpy(order="c")


def by_duckdb(kind, records):
    import duckdb
    import pyarrow
    if kind == "f64":
        keys = pyarrow.table({"key": records})  # noqa: F841
        return duckdb.sql("from keys order by key").fetchnumpy()["key"]
    if kind == "ascii":
        keys = pyarrow.table(columns(records))  # noqa: F841
        return records[duckdb.sql("select number from keys order by high, low")
                       .fetchnumpy()["number"]]
    edges = pyarrow.table({"key": records[:, 0].copy(),  # noqa: F841
                           "rest": records[:, 1].copy()})
    found = duckdb.sql("from edges order by key").fetchnumpy()
    return np.stack([found["key"], found["rest"]], axis=1)


def head_by_polars(records):
    import polars
    frame = polars.DataFrame(columns(records))
    first = frame.lazy().sort("high", "low").head(HEAD).collect()
    return records[first["number"].to_numpy()]


def head_by_duckdb(records):
    import duckdb
    import pyarrow
    keys = pyarrow.table(columns(records))  # noqa: F841
    return records[duckdb.sql("select number from keys order by high, low "
                              f"limit {HEAD}").fetchnumpy()["number"]]


def main(peer, kind, source, target, head=None):
    if head:
        sort = {"polars": head_by_polars, "duckdb": head_by_duckdb}[peer]
        sort(read(kind, source)).tofile(target)
        return
    sort = {"numpy": by_numpy, "polars": by_polars, "duckdb": by_duckdb}[peer]
    sort(kind, read(kind, source)).tofile(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
