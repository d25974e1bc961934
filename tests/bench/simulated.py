#!/usr/bin/python3
"""simulated.py - make the exchanges that blinkreport simulated shows

USAGE: simulated.py PROBE EXCHANGES

Print a line of PROBE (bin/blinkprobe) simulate for each exchange of EXCHANGES
(results/runs/exchanges.json) whose link had a rate, and then for each number of
ranks, link and number of records below.  A simulation that fails, or takes more
CPU time than LIMIT_S, is left out, and named at the end.  Each CPU simulates
one exchange at a time.
"""

import json
import os
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

RECORD_BYTES = 100
RANKS = tuple(1 << power for power in range(1, 11))
LINKS = 10 * 10**9, 25 * 10**9, 100 * 10**9
RECORDS = 10**6, 10**7, 10**8
# CPU time; 512 ranks and more that send all at once do not end in it.
LIMIT_S = int(os.environ.get("LIMIT", 300))


def wanted(measured):
    """(ranks, bytes of a message, link, schedule), each once."""
    found = [(one["nodes"],
              one["records"] * one["record_bytes"] // one["nodes"]**2,
              one["link_bits_per_s"], one["schedule"]) for one in measured
             if one["link_bits_per_s"] and one["mtu_bytes"] == 1500
             and "beyond memory" not in one["note"]]
    found += [(ranks, records * RECORD_BYTES // ranks**2, link, "auto")
              for records in RECORDS for link in LINKS for ranks in RANKS]
    return list(dict.fromkeys(found))


def simulate(probe, point):
    """The line, or None: it took too long."""
    ranks, message_bytes, link, schedule = point
    run = subprocess.run(
        [probe, "simulate", f"--nodes={ranks}", f"--link={link}",
         f"--message={message_bytes}", f"--schedule={schedule}", "--json"],
        check=False, text=True, stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU,
                                              (LIMIT_S, LIMIT_S)))
    return run.stdout if run.returncode == 0 else None


def main(probe, exchanges):
    with open(exchanges, encoding="utf-8") as file:
        points = wanted(json.load(file)["exchanges"])
    late = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for point, line in zip(points, threads.map(
                lambda point: simulate(probe, point), points)):
            if line:
                print(line, end="", flush=True)
            else:
                late.append(point)
    for point in late:
        print("left out:", *point, file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
