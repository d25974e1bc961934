"""Ranks beyond memory on rate-limited links: how long they exchange, and what
compression gains."""

import statistics
from dataclasses import dataclass, field

from cluster import Cluster
from external_run import TIMEOUT_S_PER_GB, settle
from files import drop_cached
from links import HEADER_BYTES_UDP, counted, exchange_ns, sort, wire_ms
from rank_inputs import ASCII, Parts, check_sorted
from report import ratio_of, ratio_words

NODES = 4
QUEUE_KIB = 128
TIMEOUT_S = 120
DEADLINE_S = 60
# The last one is what the others are compared with.
CODECS = ("lz4", "auto", "none")
# Of the whole size: the output and scratch.
FILES = 2.2
HEADING = (f"  {'':14}{'job':>8}{'of none':>8}{'exchange':>10}{'link':>8}"
           f"{'ratio':>7}{'wire':>8}{'ratio':>7}{'dropped':>9}{'resent':>8}\n"
           f"  {'':14}{'s':>8}{'':8}{'s':>10}{'s':>8}{'':7}{'s':>8}")


@dataclass
class Codec:
    """The job with this --compress."""
    how: str
    samples: list = field(default_factory=list)

    @property
    def name(self):
        return f"compress={self.how}"

    def run(self, cluster, config, inputs, timeout_s):
        for path in inputs:
            drop_cached(path)()
        settle(NODES * config.links_memory_bytes)
        before = [counted(cluster, key) for key in ("drops", "bytes")]
        said, whole_ns = sort(
            cluster, config.place.folder, "--sync",
            f"--compress={self.how}", f"--memory={config.links_memory_bytes}",
            f"--temporary-directory={config.place.folder}",
            f"--deadline={DEADLINE_S}", timeout_s=timeout_s)
        drops, wire_bytes = (counted(cluster, key) - value for key, value in
                             zip(("drops", "bytes"), before))
        self.samples.append(sample(said, whole_ns, config.links_mbit, drops,
                                   wire_bytes))


def sample(said, whole_ns, mbit, drops, wire_bytes):
    moved = [{key: sum(one[key] for one in rank["passes"])
              for key in ("sent_bytes", "received_bytes")}
             for rank in said["ranks"]]
    busiest_bytes = max(max(one.values()) for one in moved)
    return {
        "elapsed_ns": whole_ns, "exchange_ns": exchange_ns(said),
        # The busiest link's blocks of records, in full datagrams.
        "link_ns": round(1e6 * wire_ms(busiest_bytes, said["payload_bytes"],
                                       HEADER_BYTES_UDP, mbit)),
        # All that came through the switch's ports, by the mean of them.
        "wire_ns": round(wire_bytes / NODES * 8e3 / mbit),
        "wire_bytes": wire_bytes, "dropped_packets": drops,
        "resent_datagrams": sum(rank["resent_datagrams"]
                                for rank in said["ranks"]),
        "compress": said["external"]["compress"],
        "payload_bytes": said["payload_bytes"],
        "schedule": said["schedule"], "moved": moved}


def result_of(one, last):
    def median(key):
        return statistics.median(s[key] for s in one.samples)

    def ratio(key):
        return round(statistics.median(
            s["exchange_ns"] / s[key] for s in one.samples), 4)
    return {
        "name": one.name, "median_ns": round(median("elapsed_ns")),
        "exchange_ns": round(median("exchange_ns")),
        "link_ns": round(median("link_ns")), "link_ratio": ratio("link_ns"),
        "wire_ns": round(median("wire_ns")), "wire_ratio": ratio("wire_ns"),
        "dropped_packets": median("dropped_packets"),
        "resent_datagrams": median("resent_datagrams"),
        "ratio": None if one is last else ratio_of(
            *([s["elapsed_ns"] for s in each.samples]
              for each in (one, last))),
        "samples": one.samples}


def lines_of(found):
    yield HEADING
    for one in found:
        of_last = f"{one['ratio']['median']:8.3f}" if one["ratio"] else " " * 8
        yield (f"  {one['name']:14}{one['median_ns'] / 1e9:8.3f}{of_last}"
               f"{one['exchange_ns'] / 1e9:10.3f}{one['link_ns'] / 1e9:8.3f}"
               f"{one['link_ratio']:7.3f}{one['wire_ns'] / 1e9:8.3f}"
               f"{one['wire_ratio']:7.3f}{one['dropped_packets']:9.0f}"
               f"{one['resent_datagrams']:8.0f}")
    for one in found:
        if one["ratio"]:
            yield (f"  {one['name']} to {found[-1]['name']}: "
                   f"{ratio_words(one['ratio'])}")


def measure(bench, config, name):
    parts = Parts(ASCII, NODES, NODES * config.links_part_bytes)
    inputs = config.inputs.get(parts, FILES)
    outputs = [config.place.folder / f"out.{rank}" for rank in range(NODES)]
    timeout_s = TIMEOUT_S + round(TIMEOUT_S_PER_GB * parts.size_bytes / 1e9)
    codecs = [Codec(how) for how in CODECS]
    try:
        with Cluster(NODES, "--netns", f"--rate={config.links_mbit}",
                     f"--mtu={config.links_mtu}",
                     f"--queue={QUEUE_KIB}") as cluster:
            for number in range(bench.rounds):
                for one in codecs:
                    for path in outputs:
                        path.unlink(missing_ok=True)
                    one.run(cluster, config, inputs, timeout_s)
                    if number == bench.rounds - 1:
                        check_sorted(outputs, inputs, parts.kind)
    finally:
        for path in outputs:
            path.unlink(missing_ok=True)
    found = [result_of(one, codecs[-1]) for one in codecs]
    bench.record(config.place, name, {
        "rounds": bench.rounds, "size_bytes": parts.size_bytes,
        "nodes": NODES, "mbit": config.links_mbit,
        "mtu": config.links_mtu, "queue_kib": QUEUE_KIB,
        "contestants": found}, "\n".join([name, *lines_of(found)]))
