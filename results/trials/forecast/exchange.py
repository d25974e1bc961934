"""What blinkprobe predicts of exchanges: the arithmetic that blinksort chooses
its schedule by."""

import json

from trials.base.failure import Failure

SCHEDULES = ("rounds", "all-at-once", "grid")


def key(schedule):
    """The member of a forecast that has this schedule's time."""
    return f"{schedule.replace('-', '_')}_ns"


def predict(programs, nodes, records, record_bytes, **options) -> dict:
    """The document for these numbers of nodes.  `options` are those of
    blinkprobe model, "mtu" for --mtu; None is left out."""
    words = [f"--{name.replace('_', '-')}={value}"
             for name, value in options.items() if value is not None]
    done = programs.must_call(
        "blinkprobe", "model", f"--ranks={','.join(map(str, nodes))}",
        f"--records={records}", f"--record-size={record_bytes}", *words)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise Failure("blinkprobe", f"printed no JSON: {error}") from None
