"""What the environment says of the machine, in a line and in a short table."""

from trials.base import units

# Facts that a reader asks for first; the rest of an environment is there in
# full.
_FACTS = (
    ("CPU", "cpu.model_name"), ("CPUs", "cpu.online"),
    ("SMT", "cpu.smt"), ("governor", "cpu.frequency.governor"),
    ("turbo", "cpu.frequency.turbo"), ("microcode", "cpu.microcode"),
    ("kernel", "kernel.release"),
    ("kernel command line", "kernel.command_line"),
    ("virtualisation", "virtualisation.product"),
    ("memory", "memory.total_bytes"),
    ("transparent huge pages", "memory.transparent_huge_pages.enabled"),
    ("NUMA nodes", "memory.numa_nodes"),
    ("clock source", "kernel.clock_source"),
    ("blinksort", "versions.blinksort"), ("tuning", "tuning"),
)
_DRIVE_FACTS = ("model", "virtual", "scheduler", "write_cache", "cache_bytes",
                "read_ahead_kib")


def at(described, path):
    """The value at a dotted path; None where there is none."""
    for key in path.split("."):
        if not isinstance(described, dict):
            return None
        described = described.get(key)
    return described


def sessions(environment) -> list:
    return (environment or {}).get("sessions") or []


def before(environment) -> dict:
    """The machine as the last session found it."""
    known = sessions(environment)
    return known[-1]["before"] if known else {}


def begun_unix_ns(environment):
    """When the last session began; None of no session."""
    return max((session["begin_unix_ns"] for session in sessions(environment)),
               default=None)


def summary(described) -> str:
    """"AMD EPYC, CPUs 0-1, Linux 6.18.0", of what is known."""
    cpus, kernel = at(described, "cpu.online"), at(described, "kernel.release")
    governor = at(described, "cpu.frequency.governor")
    parts = [at(described, "cpu.model_name") or at(described, "cpu.model"),
             f"CPUs {cpus}" if cpus else None,
             f"governor {governor}" if governor else None,
             f"Linux {kernel}" if kernel else None,
             "virtual" if at(described, "virtualisation.hypervisor")
             else None]
    return ", ".join(str(part) for part in parts if part)


def told(described) -> str:
    """"switch: XG2600; GPU: none", of what the user has told of the machine."""
    return "; ".join(f"{name}: {value}" for name, value
                     in (at(described, "facts") or {}).items())


def shown(described) -> list:
    """(words, value) of what is known."""
    rows = [*(at(described, "facts") or {}).items()]
    for words, path in _FACTS:
        value = at(described, path)
        if path.endswith("_bytes") and isinstance(value, int):
            value = units.size(value)
        rows.append((words, value))
    mitigations = at(described, "cpu.mitigations")
    if isinstance(mitigations, dict):
        rows.append(("mitigations in force", ", ".join(
            name for name, state in mitigations.items()
            if str(state).startswith("Mitigation"))))
    drives = at(described, "storage.drives")
    for name, drive in (drives if isinstance(drives, dict) else {}).items():
        rows.append((f"drive {name}", ", ".join(
            f"{fact} {at(drive, fact)}" for fact in _DRIVE_FACTS
            if at(drive, fact) is not None)))
    return [(words, value) for words, value in rows
            if value not in (None, "", {})]
