"""Made-up records of trials, for the tests of what reads records.

They are made through the package's own modules, so that they are what
blinktrial writes: make_record(path) has a reader's whole input.

    make_record(path, sweep_text=SWEEP, trials=20,
                times=lambda scenario, name, block, rng: rng.gauss(2e7, 1e5))
"""

import copy
import random

import unit  # noqa: F401: results/ on the path
from trials.machine import noise
from trials.record import design as designs, sweep
from trials.record.store import Record

SWEEP = """\
sort.threads  default | 1 4
  because  a second thread may not be worth its start
  source   ours
sort.kernel   default | scalar
machine.raid-chunk  64K | 1M
  skip     a new array destroys what is on the disks
"""

_ONE_MACHINE = {"prepare": 0.2, "bucket": 0.3, "order": 0.4, "commit": 0.05}
_CLUSTER = {"open": 0.03, "join": 0.05, "bucket": 0.2, "sample": 0.02,
            "arrange": 0.1, "exchange": 0.3, "order": 0.2, "finish": 0.03,
            "meet": 0.01, "commit": 0.02}
_COUNTERS = ("udp_rcvbuf_errors", "udp_in_errors", "softnet_dropped",
             "context_switches", "interrupts", "steal_ns", "throttle_events",
             "disk_read_bytes", "disk_written_bytes", "swapped_pages")


def ordinary_times(_scenario, _configuration, _block, rng):
    """About 23.7 ms, with the tail to the right that such times have."""
    return 23_700_000 + rng.expovariate(1 / 400_000)


def _rank(number, hosts, whole_ns, rng):
    """A cluster's ranks have an exchange and a clock of their own."""
    process_ns = round(whole_ns * (0.97 if hosts else 1))
    elapsed_ns = round(process_ns * rng.uniform(0.93, 0.97))
    shares = _CLUSTER if hosts else _ONE_MACHINE
    exchange = None
    if hosts:
        exchange = {
            "sent_bytes": 6_000_000, "sent_datagrams": 4200,
            "received_bytes": 6_000_000, "received_datagrams": 4200,
            "resent_datagrams": 0, "duplicate_datagrams": 0,
            "damaged_datagrams": 0,
            "round_wait_ns": round(elapsed_ns * rng.uniform(0.01, 0.1))}
    return {
        "rank": number, "host": hosts[number] if hosts else None,
        "exit_status": 0, "process_ns": process_ns, "elapsed_ns": elapsed_ns,
        "user_ns": elapsed_ns, "system_ns": elapsed_ns // 2,
        "max_rss_bytes": 120_000_000, "minor_faults": 2100,
        "major_faults": 0, "voluntary_switches": rng.randrange(20),
        "involuntary_switches": rng.randrange(5), "threads": 2, "io": "mmap",
        "begin_ns": rng.randrange(100_000) if number else 0,
        "clock_bound_ns": 9000 if hosts else None,
        "phases_ns": {name: int(elapsed_ns * share)
                      for name, share in shares.items()},
        "exchange": exchange}


def _counters(rng, hosts):
    counters = {name: 0 for name in _COUNTERS}
    counters.update(context_switches=rng.randrange(40, 90),
                    interrupts=rng.randrange(200, 400), throttle_events=None)
    if hosts:
        counters["nodes"] = None
    return counters


def measures(rng, **changes):
    """Of a process, on a machine that counts no cache misses."""
    return {"user_ns": rng.randrange(4_000_000, 6_000_000),
            "system_ns": rng.randrange(1_000_000, 2_000_000),
            "max_rss_bytes": 3 << 20, "minor_faults": rng.randrange(100, 120),
            "major_faults": 0, "voluntary_switches": 2,
            "involuntary_switches": rng.randrange(5), "read_bytes": 0,
            "written_bytes": 4096, "left_processes": 0,
            "counters": {"instructions": rng.randrange(1_000_000, 1_100_000),
                         "cycles": 2_000_000, "cache_misses": None,
                         "branch_misses": 500}, **changes}


def make_trial(design, planned, whole_ns, begin_ns, rng, **changes):
    """The line of one planned trial; a failed one if whole_ns is None."""
    hosts = design["hosts"]
    failed = whole_ns is None
    ranks = len(hosts) if hosts else 1
    tuning = designs.configuration(design, planned.configuration)["tuning"]
    trial = {
        "schema": "blinktrial-trial-1", **planned._asdict(),
        "seed": designs.block_seed(design, planned.block),
        "begin_unix_ns": 1_795_000_000_000_000_000 + begin_ns,
        "begin_monotonic_ns": begin_ns,
        "whole_ns": None if failed else round(whole_ns),
        "outcome": "failed" if failed else "ok",
        "exit_status": 3 if failed else 0,
        "message": "blinksort: in: Input/output error" if failed else None,
        "records": design["records"],
        "bytes": design["records"] * design["record_bytes"],
        "checksum": None if failed else "7a19cff467438",
        "ranks": [] if failed else [_rank(number, hosts, whole_ns, rng)
                                    for number in range(ranks)],
        "measures": None,
        "counters": _counters(rng, hosts),
        "conditions": [{"name": "input-resident", "wanted": "100 %",
                        "found": "100 %", "met": True}],
        "scenario_met": True,
        "runner": {"user_ns": 300_000, "system_ns": 500_000,
                   "prepare_ns": 4_000_000, "check_ns": 90_000_000,
                   "tuning_ns": 150_000_000 if tuning else 0,
                   "overhead_ns": 2_000_000},
        "tuning": {"profile": tuning.get("profile"),
                   "journal_sha256": "0" * 64} if tuning else None,
        "energy": None,
        "noise": None}
    return {**trial, **changes}


# As blinkprobe prints it.
NOISE = {
    "program": "blinkprobe", "version": "0123abc", "probe": "noise",
    "time_ns": 50_000_000, "threshold_ns": 5000,
    "histogram_below_ns": [10000, 100000, 1000000, 10000000, None],
    "cpus": [{"cpu": cpu, "watched_ns": 50_000_100, "readings": 1_000_000,
              "lost_ns": 500_000, "lost_percent": percent, "count": 3,
              "longest_ns": 300_000, "histogram": [1, 1, 1, 0, 0],
              "steal_ns": 10_000_000, "frequency_khz": None}
             for cpu, percent in ((0, 1.0), (3, 4.0))],
    "balloon_inflated_pages": None, "balloon_deflated_pages": 0,
    "memory_change_bytes": 0}


def noise_place(percent, host=None):
    """Of a machine whose CPU 3 loses so much, and the other a fourth; None:
    not known."""
    if percent is None:
        return noise.place({"noise": None, "message": "no probe"}, host)
    document = copy.deepcopy(NOISE)
    for cpu, part in zip(document["cpus"], (0.25, 1)):
        cpu["lost_percent"] = percent * part
    return noise.place({"noise": document, "message": None}, host)


def noise_look(*percents, limit=None, over=None, waited_ns=0, hosts=None):
    """"noise" of a trial, of machines that lose so much."""
    return {"limit_percent": limit, "over_limit": over,
            "waited_ns": waited_ns, "looks": 1 + bool(waited_ns),
            "places": [noise_place(percent, host) for percent, host
                       in zip(percents, hosts or [None] * len(percents))]}


def make_design(*, scenarios=("pagecache",), sweep_text=None, trials=20,
                seed=1, ranks=1, command=("blinktrial",), **options):
    hosts = [f"node{number:02}:7300" for number in range(ranks)]
    return designs.make(
        list(scenarios), sweep.parse(sweep_text) if sweep_text else None,
        trials, seed, hosts=hosts if ranks > 1 else None,
        command=command, program_version="0123abc", **options)


def environment(governor="performance"):
    return {"cpu": {"model": "a CPU", "governor": governor}, "nodes": {}}


def fill(record, times=ordinary_times, alter=None, most=None):
    """Appends what the design still wants, at most `most` trials.

    alter(trial) may change a trial before it is appended: conditions, ranks.
    """
    begin_ns = 1_000_000_000 * (1 + len(record.trials()))
    while (planned := record.next()) is not None and most != 0:
        rng = random.Random(f"{record.design['seed']}:{planned.trial}")
        whole_ns = times(planned.scenario, planned.configuration,
                         planned.block, rng)
        trial = make_trial(record.design, planned, whole_ns, begin_ns, rng)
        if alter:
            alter(trial)
        record.append(trial)
        begin_ns += 1_000_000_000
        most = None if most is None else most - 1


def make_record(path, *, times=ordinary_times, alter=None, most=None,
                changed=(), **design_options):
    """A whole record in the new folder `path`; returns its design.

    `times` is a function of scenario, configuration, block and a generator of
    random numbers: nanoseconds, or None for a trial that failed.  `ranks` above
    1 makes it a cluster's.  `most` trials, and the run has been stopped.
    """
    design = make_design(**design_options)
    with Record.create(str(path), design) as record:
        record.begin_session(environment())
        fill(record, times, alter, most)
        if most is None:
            record.end_session(environment(), list(changed))
    return design
