"""Published figures have units of all kinds: one is brought to another."""

# Of each kind the basic unit is first.
_KINDS = (
    {"ns": 1, "ns/access": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10},
    {"bytes": 1, "KiB": 1 << 10, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
     "MiB": 1 << 20, "GiB": 1 << 30},
    {"bytes/s": 1, "MB/s": 1e6, "MiB/s": 1 << 20, "GB/s": 1e9,
     "GiB/s": 1 << 30, "GB/min": 1e9 / 60, "TB/min": 1e12 / 60,
     "Mbit/s": 1.25e5, "Gbit/s": 1.25e8},
    {"J": 1, "uJ": 1e-6, "Wh": 3600},
    {"x": 1, "%": 0.01},
)
# What the names of members end in.
_ENDINGS = {"_ns": "ns", "_s": "s", "_bytes": "bytes",
            "_bytes_per_s": "bytes/s", "_uj": "uJ", "_ratio": "x"}


def base_of(member: str) -> str:
    """The unit that the last name of a path tells which tells one; a count has
    none."""
    for name in reversed(member.split(".")):
        fitting = [ending for ending in _ENDINGS
                   if f"_{name}".endswith(ending)]
        if fitting:
            return _ENDINGS[max(fitting, key=len)]
    return ""


def in_unit(value: float, unit: str, wanted: str) -> float:
    """Raises ValueError where there is no way from one to the other."""
    if unit in ("", wanted):
        return value
    for kind in _KINDS:
        if unit in kind and wanted in kind:
            return value * kind[unit] / kind[wanted]
    raise ValueError(f"{unit} is no {wanted}")
