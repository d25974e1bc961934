"""How much of each CPU goes to others now, by `blinkprobe noise`."""

import json

from trials.base.failure import Failure

# Long enough for an ordinary scheduler to give each of two threads its turns.
TIME_MS = 50
# Beside commands that are short, the looks themselves are not to take most of a
# user's time; many of them see what one does not.
LEAST_TIME_MS = 5
_KNOWN = ("time_ns", "threshold_ns", "histogram_below_ns",
          "balloon_inflated_pages", "balloon_deflated_pages",
          "memory_change_bytes")
_OF_CPU = ("cpu", "lost_percent", "count", "longest_ns", "histogram",
           "steal_ns", "frequency_khz")


def watch(programs, time_ms: int = TIME_MS) -> dict:
    """What the probe has printed, as {"noise": DOCUMENT, "message": None}, or
    no document and why there is none."""
    try:
        done = programs.must_call("blinkprobe", "noise",
                                  f"--time-ms={time_ms}")
        return {"noise": json.loads(done.stdout), "message": None}
    except Failure as reason:
        return {"noise": None, "message": str(reason)}
    except ValueError:
        return {"noise": None, "message": "blinkprobe: prints no JSON"}


def place(found: dict, host: str | None = None) -> dict:
    """What watch() has found on a machine, as a record has it.  A figure of a
    machine is that of its worst CPU: a sort waits for the slowest thread."""
    document, message = found["noise"], found["message"]
    if message is None:
        try:
            return _place(document, host)
        except (KeyError, TypeError, ValueError):
            message = "blinkprobe: prints something else"
    return {"host": host, "message": message, "worst_percent": None,
            "mean_percent": None, **dict.fromkeys(_KNOWN), "cpus": []}


def _place(document: dict, host: str | None) -> dict:
    cpus = [{key: cpu[key] for key in _OF_CPU} for cpu in document["cpus"]]
    lost = [cpu["lost_percent"] for cpu in cpus]
    if not all(0 <= percent <= 100 for percent in lost):
        raise ValueError
    return {"host": host, "message": None, "worst_percent": max(lost),
            "mean_percent": round(sum(lost) / len(lost), 4),
            **{key: document[key] for key in _KNOWN}, "cpus": cpus}
