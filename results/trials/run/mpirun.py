"""The command that starts ranks on this machine, by the mpirun of an MPI.

blinksort itself needs no MPI: mpirun tells it rank and number of ranks, and its
ranks then exchange records by UDP.  blinksort-mpi does it by that MPI.

Each rank's JSON goes into a file of its own: mpirun passes on what it reads,
and may join the middle of one line with that of another.  A shell in front of
each rank does that, and costs all kinds of exchange the same.
"""

import shutil

from trials.base.programs import Programs

# mpirun tells a rank its number in one of these variables; only one of them is
# set.
RANK = "$OMPI_COMM_WORLD_RANK$PMI_RANK"
# Bound to nothing: Open MPI binds two ranks to a CPU each, and more to none.
MPIRUN = {
    "openmpi": ("--allow-run-as-root", "--oversubscribe", "--bind-to", "none"),
    "mpich": ("-bind-to", "none")}
# Options that ask the MPI for one transport in an exchange.  Without them, both
# take shared memory on one machine.
MPI_TRANSPORTS = {
    ("openmpi", "mpi-tcp"): ("--mca", "pml", "ob1", "--mca", "btl",
                             "self,tcp"),
    ("openmpi", "mpi-shared"): ("--mca", "pml", "ob1", "--mca", "btl",
                                "self,vader"),
    ("mpich", "mpi-tcp"): ("-genv", "UCX_TLS", "self,tcp"),
    ("mpich", "mpi-shared"): ("-genv", "UCX_TLS", "self,sm")}
# Options of blinksort where no MPI carries the records.
SORT_OPTIONS = {"udp": ("--cluster",),
                "by-reference": ("--cluster", "--by-reference=yes")}


def why_not(mpi: str) -> str | None:
    """The reason why this MPI can't start anything here."""
    return None if shutil.which(f"mpirun.{mpi}") \
        else f"mpirun.{mpi}: not found; make bench-deps installs it"


def command(programs: Programs, mpi: str, exchange: str, count: int,
            said: str, arguments: list[str]) -> list[str]:
    """The words; said.RANK will have what each rank has printed."""
    if exchange in SORT_OPTIONS:
        sorter = [programs.path("blinksort"), *SORT_OPTIONS[exchange]]
    else:
        sorter = [programs.path(f"blinksort-mpi.{mpi}")]
    return [programs.path(f"mpirun.{mpi}"), *MPIRUN[mpi],
            *MPI_TRANSPORTS.get((mpi, exchange), ()), "-n", str(count),
            "/bin/sh", "-c", f'said=$0; exec "$@" >"$said.{RANK}"', said,
            *sorter, *arguments]
