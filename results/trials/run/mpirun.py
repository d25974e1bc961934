"""The command that starts ranks by the mpirun of an MPI, on this machine or on
nodes.

blinksort itself needs no MPI: mpirun tells it rank and number of ranks, and its
ranks then exchange records by UDP.  blinksort-mpi does it by that MPI.

Each rank's JSON goes into a file of its own: mpirun passes on what it reads,
and may join the middle of one line with that of another.  A shell in front of
each rank does that, and costs all kinds of exchange the same.
"""

import ipaddress
import os
import shlex
import shutil
import socket

from trials.base.failure import Failure
from trials.base.programs import Programs
from trials.scenario import inputs

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
# Where an MPI carries the records.
WITH_MPI = ("mpi-tcp", "mpi-shared")
# Options of blinksort where no MPI carries the records.
SORT_OPTIONS = {"udp": ("--cluster",),
                "by-reference": ("--cluster", "--by-reference=yes")}


def why_not(mpi: str) -> str | None:
    """The reason why this MPI can't start anything here."""
    return None if shutil.which(f"mpirun.{mpi}") \
        else f"mpirun.{mpi}: not found; make bench-deps installs it"


def why_not_on_nodes(name: str, value: str) -> str | None:
    """The reason why ranks of nodes can't be so."""
    if name == "count":
        return "there is one rank on each node"
    if name == "exchange" and value not in ("udp", "mpi-tcp"):
        return "is for ranks of one machine"
    return None


def command(programs: Programs, mpi: str, exchange: str, count: int,
            said: str, arguments: list[str],
            launcher: tuple[str, ...] = ()) -> list[str]:
    """The words; said.RANK will have what each rank has printed.  launcher:
    options that say where ranks are started, and by what."""
    if exchange in SORT_OPTIONS:
        sorter = [programs.path("blinksort"), *SORT_OPTIONS[exchange]]
    else:
        sorter = [programs.path(f"blinksort-mpi.{mpi}")]
    return [programs.path(f"mpirun.{mpi}"), *MPIRUN[mpi],
            *MPI_TRANSPORTS.get((mpi, exchange), ()), *launcher,
            "-n", str(count),
            "/bin/sh", "-c", f'said=$0; exec "$@" >"$said.{RANK}"', said,
            *sorter, *arguments]


class Launcher:
    """Starts programs on nodes for an mpirun, as rsh would: a script that runs
    them by blinksh, since nodes need not have anything else."""

    def __init__(self, programs: Programs, work: str, shell: list[str],
                 hosts: list[str]):
        """shell: the options of blinksh, as -w HOSTS --key-file FILE."""
        self._path = f"{work}/launcher"
        # An mpirun takes what stands behind a colon for another thing.
        self._names = [host.partition(":")[0] for host in hosts]
        if len(set(self._names)) != len(hosts):
            raise Failure("mpirun", "two nodes have one name")
        blinksh = shlex.join([programs.path("blinksh"), "-N", "-q",
                              *shell[2:]])
        with open(self._path, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n"
                       "while [ \"${1#-}\" != \"$1\" ]; do shift; done\n"
                       "host=$1; shift; case $host in\n")
            for name, host in zip(self._names, hosts):
                file.write(f"{name}) host={host} ;;\n")
            file.write(f"esac\nexec {blinksh} -w $host -- "
                       "/bin/sh -c \"$(echo \"$*\" | sed s/%/%%/g)\"\n")
        os.chmod(self._path, 0o700)

    def options(self, mpi: str) -> tuple[str, ...]:
        addresses = [socket.gethostbyname(name) for name in self._names]
        if mpi == "mpich":
            return ("-launcher", "ssh", "-launcher-exec", self._path,
                    "-localhost", address_towards(addresses[0]),
                    "-hosts", ",".join(self._names))
        # Of several networks between the nodes, that of these addresses.
        return ("--mca", "plm_rsh_agent", self._path,
                "--mca", "plm_rsh_no_tree_spawn", "1",
                "--leave-session-attached",
                "--mca", "btl_tcp_if_include", network_of(addresses),
                "--host", ",".join(self._names))

    def remove(self) -> None:
        inputs.remove(self._path)


def network_of(addresses: list[str]) -> str:
    """The smallest network that has all of them, as 10.0.0.0/28."""
    known = [ipaddress.IPv4Address(address) for address in addresses]
    network = ipaddress.IPv4Network(known[0])
    while not all(address in network for address in known):
        network = network.supernet()
    return str(network)


def address_towards(node: str) -> str:
    """Our own address on the way to the node."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        # Nothing is sent.
        way.connect((node, 9))
        return way.getsockname()[0]
