#!/usr/bin/python3
"""Sort the benchmark's ascii records by DuckDB, from file to file.

USAGE: duckdb_lines.py INPUT OUTPUT SCRATCH MEMORY_BYTES THREADS [HEAD]

HEAD: only so many lines.  Lines in, lines out: DuckDB drops the CR before the
end of each line.
"""

import sys

import duckdb

# In no record: a line is one column.
SIGN = "\x01"


def main(source, target, scratch, memory_bytes, threads, head=None):
    base = duckdb.connect()
    base.execute(f"set memory_limit='{memory_bytes}B'")
    base.execute(f"set threads={threads}")
    base.execute(f"set temp_directory='{scratch}'")
    # Else it keeps more in memory, and gains nothing here.
    base.execute("set preserve_insertion_order=false")
    base.execute(f"""
        copy (select line from read_csv(
                  '{source}', columns={{'line': 'VARCHAR'}}, delim='{SIGN}',
                  header=false, quote='', escape='', auto_detect=false,
                  new_line='\\r\\n')
              order by line[1:10] {f"limit {head}" if head else ""})
        to '{target}' (format csv, header false, quote '', escape '',
                       delimiter '{SIGN}')""")


if __name__ == "__main__":
    main(*sys.argv[1:])
