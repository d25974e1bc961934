"""Ranks with memory enough and -S: what it costs that they could have sorted
beyond memory."""

import contextlib
import os
import tempfile
from pathlib import Path

from bench_cluster import Job
from cluster import Cluster
from duel import Spawner, duel
from links import make_inputs
from places import Place, shm_place
from programs import Failed, must_run, program
from report import HEADING, ratio_of, ratio_words, row, summary

RANKS = 4
RECORDS = 62_500  # of each rank
MEMORY = "1G"
PLACE_BYTES = 1 << 26


@contextlib.contextmanager
def environment(changed):
    """With these variables, for what is started within the block."""
    saved = dict(os.environ)
    os.environ.update(changed)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(saved)


def make_files(folder):
    """in-RANKS.0 ... and sorted, as bench_cluster's Job wants them."""
    make_inputs(folder, RANKS, RANKS * RECORDS)
    inputs = [folder / f"in.{rank}" for rank in range(RANKS)]
    must_run(program("blinksort"), *map(str, inputs), "-o",
             str(folder / "sorted"))
    for rank, path in enumerate(inputs):
        path.rename(folder / f"in-{RANKS}.{rank}")
    os.sync()


def measure(bench, config, name, place):
    make_files(place.folder)
    with tempfile.TemporaryDirectory(dir=config.place.folder) as scratch, \
            Cluster(RANKS) as cluster, environment(cluster.environment), \
            contextlib.ExitStack() as stack:
        spawner = Spawner(Path(scratch))
        stack.callback(spawner.close)
        limited = Job(cluster, place, RANKS, f"--memory={MEMORY}",
                      f"--temporary-directory={scratch}", name="-S")
        plain = Job(cluster, place, RANKS, name="default")
        duel(spawner, place.output, config.wave_rounds, [limited, plain])
    for job in (limited, plain):
        if job.report["external"]:
            raise Failed(f"{job.name}: has sorted beyond memory")
    result = {**summary([limited, plain]),
              "ratio": ratio_of(limited.elapsed_ns, plain.elapsed_ns)}
    for shown, job in zip(result["contestants"], (limited, plain)):
        shown.update(elapsed_ns=job.elapsed_ns, client_ns=job.client_ns,
                     phases_ns=job.phases_ns)
    bench.record(place, name, {"rounds": config.wave_rounds, **result},
                 f"{HEADING}\n{row(name, result)}\n"
                 f"  ratio {ratio_words(result['ratio'])}")


def measure_disk(bench, config, name):
    with tempfile.TemporaryDirectory(dir=config.place.folder) as folder:
        measure(bench, config, name, Place("disk", folder))


def measure_shm(bench, config, name):
    with shm_place(None, PLACE_BYTES) as place:
        measure(bench, config, name, place)
