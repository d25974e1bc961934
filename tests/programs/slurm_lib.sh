# shellcheck shell=bash
#
# slurm_lib.sh - a Slurm of its own for a check, on top of cluster_lib.sh
#
# munged, slurmctld, and four slurmd that are the nodes n0 to n3, all on this
# machine.  They run in namespaces of processes, networks and mounts, which end
# with the check, whatever happens to it.
#
#   in_namespaces "$@"     at the script's beginning: go on within namespaces
#   start_slurm            once
#   find_hosts_at, on_machines
#                          where the nodes are, see below

# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/cluster_lib.sh"

readonly NODES=4

# in_namespaces WORD: of the command line of the script, which runs once more within
# namespaces, and ends here when that has ended.
in_namespaces()
{
	if [ "${1:-}" = inside ]; then
		ip link set lo up
		return
	fi
	unshare --mount --net --pid --fork --kill-child --mount-proc \
		bash "$REPO/tests/programs/$(basename "$0")" inside
	exit
}

readonly SLURM=$SCRATCH/slurm

# write_config FOLDER: the same for all but for where PMIx has its files
write_config()
{
	local host node

	host=$(hostname)
	mkdir -p "$1/pmix"
	echo "PMIxCliTmpDirBase=$1/pmix" >"$1/mpi.conf"
	cat >"$1/slurm.conf" <<-END
		ClusterName=blink
		SlurmctldHost=$host(127.0.0.1)
		SlurmUser=root
		AuthInfo=socket=$SLURM/munge/socket
		StateSaveLocation=$SLURM/state
		SlurmdSpoolDir=$SLURM/%n/spool
		SlurmctldPidFile=$SLURM/slurmctld.pid
		SlurmdPidFile=$SLURM/%n/pid
		SlurmctldLogFile=$SLURM/slurmctld.log
		SlurmdLogFile=$SLURM/%n/log
		SlurmdParameters=config_overrides
		ProctrackType=proctrack/linuxproc
		SelectType=select/linear
		KillWait=2
	END
	for ((node = 0; node < NODES; node++)); do
		echo "NodeName=n$node NodeHostname=$host" \
			"NodeAddr=127.0.0.1$((node + 1)) Port=$((6820 + node)) CPUs=8"
	done >>"$1/slurm.conf"
	echo "PartitionName=all Nodes=ALL Default=YES" >>"$1/slurm.conf"
}

# find_hosts_at NETWORK: what the names of the nodes stand for.  Ranks at
# 127.0.0 take the machine for one, those at 10.99.0 for several.
find_hosts_at()
{
	local node

	{
		echo "127.0.0.1 localhost $(hostname)"
		for ((node = 0; node < NODES; node++)); do
			echo "$1.1$((node + 1)) n$node"
		done
	} >"$SLURM/hosts"
}

# One veth's end has the addresses that are not of the machine itself; Open MPI
# wants an interface that is not the loopback's.
make_network()
{
	local node

	ip link add fabric type veth peer name other
	ip link set fabric up
	ip link set other up
	for ((node = 0; node < NODES; node++)); do
		ip addr add "10.99.0.1$((node + 1))/24" dev fabric
	done
	find_hosts_at 127.0.0
	mount --bind "$SLURM/hosts" /etc/hosts
}

is_slurm_up()
{
	[ "$(sinfo -h -o %T:%D)" = "idle:$NODES" ]
}

start_slurm()
{
	local node

	mkdir -p "$SLURM/munge" "$SLURM/state"
	chmod 711 "$SCRATCH" "$SLURM" "$SLURM/munge"
	make_network
	write_config "$SLURM/clients"
	export SLURM_CONF=$SLURM/clients/slurm.conf
	head -c 1024 /dev/urandom >"$SLURM/munge/key"
	chmod 400 "$SLURM/munge/key"
	munged --force --foreground --socket="$SLURM/munge/socket" \
		--key-file="$SLURM/munge/key" --pid-file="$SLURM/munge/pid" \
		--seed-file="$SLURM/munge/seed" >"$SLURM/munge/log" 2>&1 &
	wait_until test -S "$SLURM/munge/socket"
	slurmctld -D >"$SLURM/slurmctld.out" 2>&1 &
	for ((node = 0; node < NODES; node++)); do
		write_config "$SLURM/n$node"
		SLURM_CONF=$SLURM/n$node/slurm.conf slurmd -D -N "n$node" \
			>"$SLURM/n$node/out" 2>&1 &
	done
	wait_until is_slurm_up && return
	tail -n 5 "$SLURM"/slurmctld.log "$SLURM"/n?/log >&2
	return 1
}

# on_machines CASE...: the nodes are at addresses that are not of one machine
on_machines()
{
	at_end 'find_hosts_at 127.0.0'
	find_hosts_at 10.99.0
	"$@"
}
