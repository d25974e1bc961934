#!/usr/bin/python3
"""Time ranks that sort together what does not fit into their memory.

USAGE: tests/bench/bench_cluster_external.py [--label LABEL] [--list]
                                       (make bench-cluster-external LABEL=...)

As root, all ranks on this machine.  Each rank is a process in a memory cgroup
of its own, whose limit is the rank's --memory and 16 MiB for the kernel; it
keeps its scratch files beside its output, on the same disk.  Before each run
the inputs' pages are dropped from the page cache and as much free memory as all
ranks may take is touched, so that a virtual machine has it from its host
already.  The contestants of a row run alternately, round by round.  A time is
that of all processes, from the first one's start until the last one has ended,
and the outputs are on the medium then.  After the last round all outputs are
checked: blinkval finds them in order, with the records of the inputs; and those
of the ranks equal that of one process, byte for byte.

ROWS (--list prints their names)
  one-process   4 ranks, against one process that sorts the same files with the
                memory of all ranks; 1.5 times its time is what may be reached
  many-ranks    16 small ranks, likewise
  bytes         4 ranks: what the kernel has counted that each has read from the
                disk and written to it, and what the rank's passes say of that;
                the row fails if they differ by more than 1 %
  late-rank     4 ranks, of which the last one reads the disk slowly: one input
                that all of them share, against an input for each
  shape-*       4 ranks with little memory, against one process: keys and cuts
                (rank_inputs.py), records of 16, 100 and 4096 bytes; the peak
                memory of each rank
  links         4 ranks in network namespaces, whose links have a rate and a
                switch with queues of 128 KiB: the time of the exchange, against
                what the links need for the blocks that are sent, headers
                included ("link"), and for all that was sent ("wire"); what the
                queues have dropped; --compress=lz4, auto and none in turn
  one-wave      4 ranks of 62,500 records with --memory=1G, which is enough,
                and -T, against the same without either; started by blinksh;
                files on the disk
  one-wave-shm  the same, files on /dev/shm

ENVIRONMENT (bytes are those of one rank, unless it says otherwise)
  BENCH_CLUSTER_PART           input, for one-process, bytes and late-rank
                               (1000000000)
  BENCH_CLUSTER_MEMORY         memory, for these (104857600)
  BENCH_CLUSTER_LATE_RATE      of the late rank, in bytes a second (50000000)
  BENCH_CLUSTER_MANY_PART      input, for many-ranks (250000000)
  BENCH_CLUSTER_MANY_MEMORY    memory, for many-ranks (33554432)
  BENCH_CLUSTER_SHAPES         input of all ranks, for shape-* (1000000000)
  BENCH_CLUSTER_SHAPES_MEMORY  memory, for shape-* (26214400)
  BENCH_CLUSTER_LINKS_PART     input, for links (250000000)
  BENCH_CLUSTER_LINKS_MEMORY   memory, for links (104857600)
  BENCH_CLUSTER_LINKS_MBIT     rate of a link, in Mbit/s (300)
  BENCH_CLUSTER_LINKS_MTU      its MTU (1500)
  BENCH_CLUSTER_WAVE_ROUNDS    rounds of one-wave (61)
  BENCH_CLUSTER_FOLDER  where the files are, a new folder in there (build/)
  BENCH_ROUNDS          rounds of all other rows (5)
  BENCH_ONLY            words; only rows whose name holds one of them; a word
                        with = before it is a row's whole name

The kernel's counts are those of the blkio controller (cgroups of version 1), of
io.stat (version 2), or else of /proc/PID/io; the row bytes says which.

All samples and a description of the machine go to
results/bench-DATE-cluster-external-LABEL.json; to build/ instead when not all
rows were run, or in less than 5 rounds.
"""

import sys

import cluster_external_rows
import external_bench
from external_bench import number
from rank_inputs import RankInputs


def read_config(parser, place):
    def whole(name, default):
        return round(number(parser, f"BENCH_CLUSTER_{name}", default))
    return cluster_external_rows.Config(
        part_bytes=whole("PART", 10**9),
        memory_bytes=whole("MEMORY", 100 << 20),
        late_bytes_per_s=whole("LATE_RATE", 50 * 10**6),
        many_part_bytes=whole("MANY_PART", 250 * 10**6),
        many_memory_bytes=whole("MANY_MEMORY", 32 << 20),
        shapes_bytes=whole("SHAPES", 10**9),
        shapes_memory_bytes=whole("SHAPES_MEMORY", 25 << 20),
        links_part_bytes=whole("LINKS_PART", 250 * 10**6),
        links_memory_bytes=whole("LINKS_MEMORY", 100 << 20),
        links_mbit=whole("LINKS_MBIT", 300),
        links_mtu=whole("LINKS_MTU", 1500),
        wave_rounds=whole("WAVE_ROUNDS", 61),
        place=place, inputs=RankInputs(place.folder))


def settings(config):
    return {key: value for key, value in vars(config).items()
            if key not in ("place", "inputs")}


def run_row(bench, config, name, row):
    row(bench, config, name)


if __name__ == "__main__":
    sys.exit(external_bench.run(external_bench.Benchmark(
        __doc__, "cluster-external", "BENCH_CLUSTER_FOLDER",
        cluster_external_rows.table(), read_config, settings, run_row)))
