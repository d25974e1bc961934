"""Disk rates, by fio: short jobs, past the page cache."""

import json
import subprocess

from trials.base.failure import RESOURCES, Failure


def rate(program, path, pattern, block_bytes, seconds, offset_bytes=0,
         span_bytes=None, writes=False, files=0) -> dict:
    """The rates of one job, one transfer at a time: read or randread; write or
    randwrite only where the caller says so.  They are bytes a second, and the
    time of a transfer.  With `files`, the path is that of a folder of so many
    that are named 0, 1 ...; each transfer is of the next one."""
    command = [*_command(program, block_bytes, seconds, writes),
               "--name=blinktrial", "--ioengine=psync", f"--rw={pattern}",
               f"--offset={offset_bytes}", "--randrepeat=1",
               "--norandommap=1"]
    if files:
        command += [f"--directory={path}", "--filename_format=$filenum",
                    f"--nrfiles={files}", "--file_service_type=roundrobin"]
    else:
        command.append(f"--filename={path}")
    if span_bytes:
        command.append(f"--size={span_bytes}")
    return _figures(_call(command), "write" if writes else "read")


def stream_rate(program, path, ways, block_bytes, depth, seconds,
                half_bytes) -> int:
    """Bytes a second, added up, of jobs that each go through a half of the
    file: the first is read, the second written.  The ways are read, write or
    both; each has `depth` transfers under way, as a sort has."""
    command = [*_command(program, block_bytes, seconds, "write" in ways),
               f"--filename={path}", "--ioengine=libaio",
               f"--iodepth={depth}", f"--size={half_bytes}"]
    for way in ways:
        offset = half_bytes if way == "write" else 0
        command += [f"--name={way}", f"--rw={way}", f"--offset={offset}"]
    text = _call(command)
    return sum(_job(text, number)[way]["bw_bytes"]
               for number, way in enumerate(ways))


def _command(program, block_bytes, seconds, writes):
    """The command with what all jobs have in common."""
    return [program, "--direct=1", f"--bs={block_bytes}", "--time_based=1",
            f"--runtime={round(1000 * seconds)}ms", "--allow_file_create=0",
            "--output-format=json", *([] if writes else ["--readonly"])]


def _call(command):
    done = subprocess.run(command, check=False, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        raise Failure("fio", _reason(done), RESOURCES)
    return done.stdout


def _job(text, number):
    try:
        # Notes may stand before the document.
        return json.loads(text[text.index("{"):])["jobs"][number]
    except (ValueError, KeyError, IndexError):
        raise _not_understood() from None


def _not_understood():
    return Failure("fio", "what it printed is not understood", RESOURCES)


def _reason(done):
    text = done.stderr + done.stdout
    lines = [line for line in text.splitlines() if line.startswith("fio:")]
    return lines[0].removeprefix("fio: ") if lines else \
        f"ended with status {done.returncode}"


def _figures(text, way):
    try:
        job = _job(text, 0)[way]
        times = job["clat_ns"]
        return {"bytes_per_s": job["bw_bytes"], "transfers": job["total_ios"],
                "transfer_median_ns": times["percentile"]["50.000000"],
                "transfer_p99_ns": times["percentile"]["99.000000"],
                "transfer_min_ns": times["min"]}
    except KeyError:
        raise _not_understood() from None
