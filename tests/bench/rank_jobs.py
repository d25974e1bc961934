"""Jobs of ranks that are started without daemons, each within a limit of
memory of its own, and what each has moved to and from the disk."""

import contextlib
import itertools
import os
import time
from dataclasses import dataclass, field

import external_run
from disk_counts import RankCgroup, disk_of
from external_run import Contestant, settle
from files import drop_cached
from programs import Failed, Skip, program
from rank_inputs import check_equal, check_sorted
from trials.base.documents import loads
from trials.machine.memory_cgroup import KERNEL_BYTES, Unavailable

# A rank does not answer while it waits for a disk that others use, too.
DEADLINE_S = 60
PASS_COUNTS = ("read_bytes", "written_bytes", "sent_bytes", "received_bytes")
serial_numbers = itertools.count()


@dataclass
class Job(Contestant):
    """The steps run at the same time, a process each within limit_bytes: the
    ranks of a job, or one process."""
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    told_bytes: int = 0     # --memory of each
    together: bool = False  # the steps are ranks that sort together
    late_rate: int | None = None  # at which the last rank reads, in bytes/s

    def __post_init__(self):
        self.enter = RankCgroup.command

    def run(self, place):
        for path in self.outputs:
            path.unlink(missing_ok=True)
        for path in self.inputs:
            drop_cached(path)()
        settle(self.limit_bytes * len(self.steps))
        with contextlib.ExitStack() as stack:
            try:
                disk = disk_of(place.folder)
            except Unavailable:
                disk = None
            try:
                cgroups = [stack.enter_context(
                    RankCgroup(self.limit_bytes, disk)) for _ in self.steps]
            except Unavailable as reason:
                raise Skip(f"no limit of memory: {reason}") from None
            try:
                if self.late_rate:
                    cgroups[-1].limit_reads(self.late_rate)
            except Unavailable as reason:
                raise Skip(f"no limit of reads: {reason}") from None
            return run_ranks(self, cgroups, place.folder)


def command(inputs, output, told_bytes, scratch, options):
    return [program("blinksort"), *map(str, inputs), "-o", str(output),
            "--sync", "--json", f"--memory={told_bytes}",
            f"--temporary-directory={scratch}", *options]


def ranks(place, inputs, told_bytes, options=(), name=None, shared=False):
    """A rank for each input; shared: each reads all inputs, with the others."""
    outputs = [place.folder / f"out.{rank}" for rank in range(len(inputs))]
    if shared:
        options = ["--shared-input", *options]
    steps = [[command(
        inputs if shared else [source], output, told_bytes, place.folder,
        [f"--nodes=127.0.0.[2-{len(inputs) + 1}]", f"--rank={rank}",
         f"--deadline={DEADLINE_S}", *options])]
        for rank, (source, output) in enumerate(zip(inputs, outputs))]
    return Job(name or f"{len(inputs)} ranks", steps,
               told_bytes + KERNEL_BYTES, inputs=inputs, outputs=outputs,
               told_bytes=told_bytes, together=True)


def one_process(place, inputs, told_bytes, options=()):
    """All inputs, with the memory of all ranks."""
    output = place.folder / "out.one"
    steps = [[command(inputs, output, told_bytes * len(inputs), place.folder,
                      options)]]
    return Job("one process", steps, told_bytes * len(inputs) + KERNEL_BYTES,
               inputs=inputs, outputs=[output],
               told_bytes=told_bytes * len(inputs))


def checked(job, alone, kind):
    """The outputs of both are checked when they are there."""
    job.check = lambda _: check_sorted(job.outputs, job.inputs, kind)

    def check_alone(_):
        check_sorted(alone.outputs, alone.inputs, kind)
        if all(path.exists() for path in job.outputs):
            check_equal(job.outputs, alone.outputs[0])
    alone.check = check_alone
    return [job, alone]


# --- one run ------------------------------------------------------------------

def run_ranks(job, cgroups, folder):
    """The sample."""
    # Of a job without a key, the name must not be another run's.
    names = [f"--job=bench-{os.getpid()}-{next(serial_numbers)}"] \
        if job.together else []
    with contextlib.ExitStack() as stack:
        said = [stack.enter_context(open(folder / f"said.{rank}", "w+b"))
                for rank in range(len(job.steps))]
        errors = stack.enter_context(open(folder / "errors", "w+b"))
        started = []
        begin_ns = time.monotonic_ns()
        try:
            for [words], cgroup, file in zip(job.steps, cgroups, said):
                started += external_run.start(job, cgroup, [words + names],
                                              file, errors)
            used = external_run.wait(started, job, errors)
        except BaseException:
            external_run.end(one for one in started if one.returncode is None)
            raise
        elapsed_ns = time.monotonic_ns() - begin_ns
        documents = [read_document(file) for file in said]
    found = [rank_sample(*each) for each in zip(documents, cgroups, used)]
    return {
        "elapsed_ns": elapsed_ns,
        "user_ns": round(sum(one.ru_utime for one in used) * 1e9),
        "system_ns": round(sum(one.ru_stime for one in used) * 1e9),
        "peak_bytes": max((one["peak_bytes"] for one in found
                           if one["peak_bytes"] is not None), default=None),
        "killed": sum(one["killed"] for one in found),
        "external": {"spilled_bytes": sum(one["spilled_bytes"]
                                          for one in found)},
        "ranks": found}


def read_document(file):
    file.seek(0)
    document = loads(file.read(external_run.SAID_BYTES))
    if not isinstance(document, dict):
        raise Failed("blinksort: its document is no object")
    return document


def passes_of(document):
    """Of one process: rank 0's document has those of all ranks, too."""
    if "rank" in document:
        own = [one for one in document["ranks"]
               if one["rank"] == document["rank"]]
        return own[0]["passes"] or []
    return (document["external"] or {}).get("passes", [])


def pass_sums(passes):
    return {key: sum(one.get(key, 0) for one in passes)
            for key in PASS_COUNTS}


def rank_sample(document, cgroup, usage):
    passes = passes_of(document)
    return {"peak_bytes": cgroup.memory.peak_bytes(),
            "killed": cgroup.memory.killed(),
            "spilled_bytes": (document["external"] or {}).get(
                "spilled_bytes", 0),
            "disk": cgroup.moved(usage),
            "told": pass_sums(passes),
            "passes": passes}
