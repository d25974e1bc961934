"""What is measured of ranks beyond memory: rows, inputs and figures."""

import functools
import statistics
from dataclasses import dataclass

import link_row
import rank_jobs
import wave_row
from external_inputs import Kind
from external_run import TIMEOUT_S_PER_GB, alternate, rows, summary
from programs import Failed, Skip
from rank_inputs import ASCII, Parts
from report import ratio_of, ratio_words

RANKS, MANY = 4, 16
# Of the whole size: the outputs of the ranks and of the one process, scratch.
FILES = 3.2
# (name, make_shape's shape, how it is cut)
SHAPES = (("uniform", "uniform", "even"), ("zipf", "zipf", "even"),
          ("all-equal", "all-equal", "even"),
          ("common-prefix", "common-prefix", "even"),
          ("next-range", "uniform", "next-range"),
          ("two-empty", "uniform", "two-empty"))
RECORD_SIZES = (16, 100, 4096)
# Of what a rank's passes say and what the kernel has counted; below the size,
# what a file system writes for itself may be more.
AGREE_SHARE, AGREE_BYTES = 0.01, 1 << 20
WAYS = ("read_bytes", "written_bytes")


@dataclass
class Config:
    """What the environment has asked for.  A part is what one rank has of the
    input, and memory what one rank may take."""
    part_bytes: int
    memory_bytes: int
    late_bytes_per_s: int
    many_part_bytes: int
    many_memory_bytes: int
    shapes_bytes: int  # of all ranks together
    shapes_memory_bytes: int
    links_part_bytes: int
    links_memory_bytes: int
    links_mbit: int
    links_mtu: int
    wave_rounds: int
    place: object
    inputs: object


def run_jobs(bench, config, name, contestants, size_bytes):
    """Alternately; those that did not fail."""
    for one in contestants:
        one.timeout_s += TIMEOUT_S_PER_GB * size_bytes / 1e9

    def dropped(contestant, reason):
        bench.note("skipped" if isinstance(reason, Skip) else "failed",
                   f"{name}: {contestant.name}", reason)
    try:
        return alternate(contestants, config.place, bench.rounds, dropped)
    finally:
        for path in config.place.folder.glob("out.*"):
            path.unlink()


def record(bench, config, name, left, size_bytes, lines=(), **more):
    found = summary(left, size_bytes)
    result = {"rounds": bench.rounds, "size_bytes": size_bytes,
              "contestants": found, **more}
    lines = list(lines)
    if len(left) == 2:
        result["ratio"] = ratio_of(*([s["elapsed_ns"] for s in one.samples]
                                     for one in left))
        lines.append(f"  ratio {ratio_words(result['ratio'])}")
    bench.record(config.place, name, result,
                 "\n".join([rows(name, found), *lines]))


def peak_line(job):
    """The most that each rank has taken in any round, and its limit."""
    def most(rank):
        peaks = [sample["ranks"][rank]["peak_bytes"] for sample in job.samples]
        peaks = [peak for peak in peaks if peak is not None]
        return f"{max(peaks) / 1e6:.1f}" if peaks else "-"
    each = " ".join(most(rank) for rank in range(len(job.steps)))
    return (f"  peak MB of {job.name}: {each}; limit "
            f"{job.limit_bytes / 1e6:.1f}")


# --- against one process ------------------------------------------------------

def against_one(parts_of, told_of):
    """A row; parts and memory are functions of the Config."""
    def measure(bench, config, name):
        parts, told_bytes = parts_of(config), told_of(config)
        inputs = config.inputs.get(parts, FILES)
        options = parts.kind.options
        left = run_jobs(bench, config, name, rank_jobs.checked(
            rank_jobs.ranks(config.place, inputs, told_bytes, options),
            rank_jobs.one_process(config.place, inputs, told_bytes, options),
            parts.kind), parts.size_bytes)
        if left:
            record(bench, config, name, left, parts.size_bytes,
                   map(peak_line, left), cut=parts.cut)
    return measure


def ascii_parts(config):
    return Parts(ASCII, RANKS, RANKS * config.part_bytes)


def many_parts(config):
    return Parts(ASCII, MANY, MANY * config.many_part_bytes)


def shape_parts(shape, record_bytes, cut, config):
    return Parts(Kind(shape, record_bytes), RANKS, config.shapes_bytes, cut)


# --- a late rank --------------------------------------------------------------

def first_pass_ns(job):
    """The median over the rounds of the longest that a rank took."""
    return statistics.median(
        max(rank["passes"][0]["ns"] for rank in sample["ranks"])
        for sample in job.samples)


def measure_late(bench, config, name):
    parts = ascii_parts(config)
    inputs = config.inputs.get(parts, FILES)
    jobs = [rank_jobs.ranks(config.place, inputs, config.memory_bytes,
                            name=one, shared=one == "shared input")
            for one in ("shared input", "own inputs")]
    for job in jobs:
        job.late_rate = config.late_bytes_per_s
        job.check = functools.partial(check_job, job, parts.kind)
    left = run_jobs(bench, config, name, jobs, parts.size_bytes)
    if not left:
        return
    lines = [f"  the last rank reads {config.late_bytes_per_s / 1e6:.0f} MB/s"]
    for job in left:
        read = " ".join(
            f"{statistics.median(values) / 1e6:.0f}" for values in zip(*(
                [rank["passes"][0]["read_bytes"] for rank in sample["ranks"]]
                for sample in job.samples)))
        lines.append(f"  {job.name}: first pass "
                     f"{first_pass_ns(job) / 1e9:.2f} s; MB read {read}")
    record(bench, config, name, left, parts.size_bytes, lines,
           first_pass_ns={job.name: first_pass_ns(job) for job in left},
           late_bytes_per_s=config.late_bytes_per_s)


# --- bytes --------------------------------------------------------------------

def middle(job, rank, *keys):
    """The median over the rounds of a count of this rank."""
    values = []
    for sample in job.samples:
        value = sample["ranks"][rank]
        for key in keys:
            value = value[key]
        values.append(value)
    return round(statistics.median(values))


def compared(job, rank, input_bytes):
    """What the kernel has counted and what the rank says, of each way."""
    found = {"input_bytes": input_bytes,
             "source": job.samples[-1]["ranks"][rank]["disk"]["source"]}
    for way in WAYS:
        counted, told = (middle(job, rank, of, way) for of in ("disk", "told"))
        found[way] = {"counted": counted, "told": told,
                      "process": middle(job, rank, "disk", f"process_{way}"),
                      "counted_by_input": round(counted / input_bytes, 4)}
    return found


def agree(job):
    """In each round, of each rank and way."""
    return all(
        abs(one["disk"][way] - one["told"][way]) <= max(
            AGREE_SHARE * one["disk"][way], AGREE_BYTES)
        for sample in job.samples for one in sample["ranks"] for way in WAYS)


BYTES_HEADING = (f"  {'':8}{'read, MB':>22}{'% off':>7}{'/ input':>8}"
                 f"{'written, MB':>24}{'% off':>7}{'/ input':>8}\n"
                 f"  {'':8}{'counted':>11}{'told':>11}{'':15}"
                 f"{'counted':>13}{'told':>11}")


def bytes_line(rank, found):
    text = f"  rank {rank:<3}"
    for way in WAYS:
        one = found[way]
        off = 100 * (one["told"] / one["counted"] - 1) if one["counted"] else 0
        text += (f"{one['counted'] / 1e6:11.2f}{one['told'] / 1e6:11.2f}"
                 f"{off:7.2f}{one['counted_by_input']:8.3f}  ")
    return text.rstrip()


def measure_bytes(bench, config, name):
    parts = ascii_parts(config)
    inputs = config.inputs.get(parts, FILES - 1)
    job = rank_jobs.ranks(config.place, inputs, config.memory_bytes)
    # Without a contestant there is nothing to compare the output with.
    job.check = functools.partial(check_job, job, parts.kind)
    if not run_jobs(bench, config, name, [job], parts.size_bytes):
        return
    found = [compared(job, rank, path.stat().st_size)
             for rank, path in enumerate(inputs)]
    record(bench, config, name, [job], parts.size_bytes, [
        f"  counted by {found[0]['source']}", BYTES_HEADING,
        *(bytes_line(rank, one) for rank, one in enumerate(found))],
        bytes=found)
    if not agree(job):
        raise Failed("what the kernel has counted and what the ranks say "
                     "differ by more than 1 %")


def check_job(job, kind, _output):
    rank_jobs.check_sorted(job.outputs, job.inputs, kind)


def table():
    """name -> a function of Bench, Config and the name, in the order in which
    inputs are used again"""
    found = {
        "one-process": against_one(ascii_parts, lambda c: c.memory_bytes),
        "bytes": measure_bytes,
        "late-rank": measure_late,
        "many-ranks": against_one(many_parts, lambda c: c.many_memory_bytes)}
    for name, shape, cut in SHAPES:
        for size in RECORD_SIZES:
            found[f"shape-{name}-{size}"] = against_one(
                functools.partial(shape_parts, shape, size, cut),
                lambda c: c.shapes_memory_bytes)
    found["links"] = link_row.measure
    found["one-wave"] = wave_row.measure_disk
    found["one-wave-shm"] = wave_row.measure_shm
    return found
