"""How long each stage of a sort takes on so many nodes.

Rates of memory, disk and start are the machine's own.  Four costs are
constants, fitted to sorts of 1,000,000 records in the page cache of a machine
with Zen 4 (results/runs/2026-11-22-zen4-1-sweep): on another CPU they may be
off by as much as it is faster.
"""

from dataclasses import dataclass

from trials.forecast import exchange

# CPU time of a record: to find its bucket, and to bring a bucket into order.
BUCKET_NS, ORDER_NS = 8, 3.4
# A process takes this beside its start: files are opened, memory and threads
# are had and given back.
PROCESS_NS = 1.1e6
# A page of the page cache that is written anew takes this.
PAGE_BYTES, PAGE_NS = 4096, 430
# A share of input and what is made of it, in memory.
MEMORY_FACTOR = 1.2


@dataclass(frozen=True)
class Forecast:
    """The times for one number of nodes and records, in nanoseconds."""

    nodes: int
    records: int
    record_bytes: int
    message_bytes: float
    launch: float
    read: float
    bucket: float
    # The times that the bytes take on the link alone, and with each schedule;
    # {} of one node.
    link: float
    schedules: dict
    rdma: float
    chosen: str | None
    sort: float
    write: float
    # A disk works while the CPUs do; the page cache is their work.
    overlaps: bool

    @property
    def exchange(self):
        return self.schedules[self.chosen] if self.chosen else 0

    @property
    def first(self):
        """The time until each record is in its bucket."""
        return max(self.read, self.bucket) if self.overlaps \
            else self.read + self.bucket

    @property
    def last(self):
        """The time from the exchange to the end."""
        return max(self.sort, self.write) if self.overlaps \
            else self.sort + self.write

    @property
    def whole(self):
        return self.launch + self.first + self.exchange + self.last

    @property
    def share_bytes(self):
        return self.records * self.record_bytes / self.nodes


def launch_ns(rates, nodes, model):
    """A start.  Of a cluster, the client sends to each node and hears of it,
    and the ranks say hello to each other: one way, and back."""
    process = rates.start_ns + PROCESS_NS
    if nodes == 1:
        return process
    return (process + 4 * model["latency_ns"]
            + (2 * nodes + nodes - 1) * model["status_ns"])


def work_ns(rates, share_records, share_bytes, threads, scenario):
    """(read, bucket, sort, write) of a node's share."""
    known, read, copy = rates.of_memory(threads)
    bucket = share_bytes / read * 1e9 + share_records * BUCKET_NS / known
    sort = share_records * ORDER_NS / known + share_bytes / copy * 1e9
    if scenario == "pagecache":
        return 0, bucket, sort, share_bytes / PAGE_BYTES * PAGE_NS / known
    return (share_bytes / rates.disk_read * 1e9, bucket, sort,
            share_bytes / rates.disk_write * 1e9)


def of(rates, model, one, scenario, threads=None) -> Forecast:
    """`model` is blinkprobe's document, and `one` a forecast of it."""
    nodes, records = one["ranks"], model["records"]
    share_records = records / nodes
    read, bucket, sort, write = work_ns(
        rates, share_records, share_records * model["record_bytes"],
        threads or rates.cpus, scenario)
    alone = nodes == 1
    return Forecast(
        nodes, records, model["record_bytes"], one["message_bytes"],
        launch_ns(rates, nodes, model), read, bucket, one["link_ns"],
        {} if alone else {name: one[exchange.key(name)]
                          for name in exchange.SCHEDULES},
        one["rdma_ns"], None if alone else one["auto"], sort, write,
        scenario != "pagecache")


def notes(rates, forecasts) -> list:
    """Sentences about shares that do not fit into memory."""
    if not rates.memory_bytes:
        return []
    return [f"Of {one.records:,} records, a share of {one.nodes} "
            f"{'node does' if one.nodes == 1 else 'nodes does'} not fit into "
            "the machine's memory: blinksort --explain --suppose predicts "
            "such a sort." for one in forecasts
            if one.share_bytes * MEMORY_FACTOR > rates.memory_bytes]
