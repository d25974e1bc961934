"""Free memory, as a virtual machine finds it."""

import contextlib
import mmap
import time

# The kernel tells its host of free memory 2 s after it came to be free
# (PAGE_REPORTING_DELAY).
REPORTED_S = 3
# More than all ranks of a cluster sort of 1,000,000 records need.
SETTLED_BYTES = 1 << 30


def back_memory(size_bytes):
    """Touch so much free memory.  What lies free for seconds a virtual
    machine may have given back to its host, and to get it again takes 2 ms a
    MB: more than anything measured here, and now one contestant's lot, now
    the other's."""
    def back():
        with mmap.mmap(-1, size_bytes,
                       flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            # Not all kernels have huge pages.
            with contextlib.suppress(OSError):
                memory.madvise(mmap.MADV_HUGEPAGE)
            for page in range(0, size_bytes, mmap.PAGESIZE):
                memory[page] = 1
    return back


def settle_memory():
    """Where a run takes a second: wait until what the last one has freed was
    given back, or that happens in the midst of the next, which costs it a
    tenth of a second; then back_memory."""
    time.sleep(REPORTED_S)
    back_memory(SETTLED_BYTES)()
