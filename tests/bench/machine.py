"""What the figures depend on: the machine and the programs."""

import os
import platform
import re
from pathlib import Path

from programs import ROOT, program, quiet

CPU_FLAGS = ("avx2", "bmi2", "pclmulqdq", "avx512f", "avx512bw", "avx512dq",
             "avx512vl", "vpclmulqdq", "hypervisor")


def read_line(path):
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None


def describe_machine():
    cpu = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="ascii").split("\n\n")[
            0].splitlines():
        key, _, value = line.partition(":")
        cpu[key.strip()] = value.strip()
    thp = "/sys/kernel/mm/transparent_hugepage/"
    memory_kib = int(re.search(r"MemTotal: *(\d+)", Path(
        "/proc/meminfo").read_text(encoding="ascii")).group(1))
    flags = cpu.get("flags", cpu.get("Features", "")).split()
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu_model": cpu.get("model name"),
        "cpu_family_model_stepping": [cpu.get(key) for key in (
            "cpu family", "model", "stepping")],
        "cpu_flags": [flag for flag in CPU_FLAGS if flag in flags],
        "cpus_online": os.cpu_count(),
        "cpus_allowed": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_kib * 1024,
        "thp_enabled": read_line(thp + "enabled"),
        "thp_defrag": read_line(thp + "defrag"),
        "thp_shmem_enabled": read_line(thp + "shmem_enabled"),
        "cpu_governor": read_line(
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "load_average_1min": os.getloadavg()[0],
    }


def describe_programs():
    changes = quiet(["git", "-C", str(ROOT), "status", "--porcelain"])
    return {
        "git_commit": quiet(["git", "-C", str(ROOT), "rev-parse", "HEAD"]),
        "git_clean": None if changes is None else changes == "",
        "blinksort_version": quiet([program("blinksort"), "--version"]),
        "cp_version": (quiet(["cp", "--version"]) or "").split("\n")[0],
        "sort_version": (quiet(["sort", "--version"]) or "").split("\n")[0],
    }
