#!/bin/bash
# cluster.sh - ranks that sort together on this machine, whole jobs by their client
#
# usage: tests/bench/cluster.sh [--list]          (make bench-cluster ROWS=...)
#
# Daemons (tests/cluster) start the ranks; blinksh is what is timed: sessions, the
# start of all ranks, reading, exchange, writing, and all ends.
#
#   ranks-N     1,000,000 records in N equal inputs: one process with one file
#   schedules, references, datagrams
#               16 ranks with other options than those of one machine
#   mpich, openmpi
#               an MPI program that exchanges as many records, and neither reads
#               nor sorts nor writes
#   launch*     a program that ends at once, on 16 nodes and on one: mpirun, and
#               the least that starting a program everywhere can cost; warm: 100
#               launches by one client
#   wave        4 ranks that could sort beyond memory, and need not
#   external-*  4 ranks beyond memory: one process with the memory of all
#   links-N     as root, on links with a rate and a switch with queues of 128 KiB:
#               schedules, and exchanges as one would write them without thought
#   loss-N      the same ranks where packets are lost
#   compress    4 ranks beyond memory on such links
#   grid-N      what bench_exchange prints: the grid beside rounds, and the model
#
# Variables of its own: RECORDS, instead of 1,000,000; SIZE: bytes of each rank's
# input beyond memory (1000000000), and MEMORY its memory (100M).

# shellcheck source=tests/bench/rows.sh
. "$(dirname "$0")/rows.sh"

SIZE=${SIZE:-1000000000}
MEMORY=${MEMORY:-100M}
RECORDS=${RECORDS:-1000000}
TINY=$BUILD/musl/tests/programs/true_tiny
[ -x "$TINY" ] || TINY=$BUILD/dyn/tests/programs/true_tiny
export BLINK_CLUSTER=$BUILD/bench/cluster

# cluster N WORD...: daemons; hosts.M has the first M of them
cluster()
{
	local exports count

	at_end
	exports=$("$ROOT/tests/cluster" up "$@" 2>/dev/null)
	eval "$exports"
	for count in 1 2 4 8 16; do
		head -n $count "$WCOLL" >hosts.$count
	done
}

at_end()
{
	mkdir -p "$BUILD/bench"
	"$ROOT/tests/cluster" down 2>/dev/null
}

# divide RECORDS RANKS: in-RANKS.0 ... are equal parts of as many
divide()
{
	local rank first

	for ((rank = 0; rank < $2; rank++)); do
		first=$(($1 * rank / $2))
		blinkgen -a -b$first $(($1 * (rank + 1) / $2 - first)) "in-$2.$rank"
	done
	sync
}

# job RANKS OPTION...: a job's command
job()
{
	echo "blinksh -w ^$PWD/hosts.$1 -- $BIN/blinksort --cluster" \
		"${*:2}${2:+ }$PWD/in-$1.%r -o $PWD/out.%r"
}

# judged RANKS [OUTPUT]: what checks the outputs, or the one of one process
judged()
{
	echo "--conclude=blinkval -q ${2:-$(seq -s ' ' -f 'out.%g' 0 $(($1 - 1)))}" \
		"$(seq -s ' ' -f "--against in-$1.%g" 0 $(($1 - 1)))"
}

rows_ranks()
{
	local count

	for count in 1 2 4 8 16; do
		in_place shm || [ $count = 16 ] || continue
		is_wanted ranks-$count || continue
		[ "$listing" ] || { input ascii "$RECORDS" && divide "$RECORDS" $count; }
		row ranks-$count --prepare='rm -f out*' "$(judged $count)" \
			--conclude='blinkval -q out --against in' -n "$count ranks" \
			-n 'one process' -- "$(job $count)" 'blinksort in -o out'
	done
}

# sixteen NAME OPTIONS...: jobs of 16 ranks with these options
sixteen()
{
	local options names=() jobs=()

	is_wanted "$1" || return 0
	[ "$listing" ] || divide "$RECORDS" 16
	for options in "${@:2}"; do
		names+=("--command-name=${options:-16 ranks}")
		# shellcheck disable=SC2086 # several words
		jobs+=("$(job 16 $options)")
	done
	row "$1" --prepare='rm -f out*' "${names[@]}" "$(judged 16)" -- "${jobs[@]}"
}

rows_options()
{
	sixteen references --by-reference=no --by-reference=yes
	in_place shm || return 0
	sixteen schedules --schedule=all-at-once --schedule=rounds
	sixteen datagrams '' --payload=1472 '--payload=1472 --plain'
}

rows_mpi()
{
	local name options

	in_place shm || return 0
	for name in mpich openmpi; do
		is_wanted $name || continue
		is_there $name mpirun.$name 'make bench-deps' || continue
		options=''
		[ $name = mpich ] || options='--oversubscribe --allow-run-as-root '
		if [ -z "$listing" ]; then
			divide "$RECORDS" 16
			mpicc.$name -std=gnu11 -O2 -o "$BUILD/bench/alltoall_$name" \
				"$ROOT/tests/bench/alltoall_mpi.c"
		fi
		row $name --prepare='rm -f out*' -n '16 ranks' -- "$(job 16)" \
			"mpirun.$name $options-n 16 alltoall_$name $RECORDS"
	done
}

rows_launch()
{
	local count commands name

	in_place shm || return 0
	for count in 1 16; do
		commands=("blinksh -q -w ^$PWD/hosts.$count -- $TINY")
		for name in mpich openmpi; do
			! command -v mpirun.$name >/dev/null || commands+=("mpirun.$name $(
				[ $name = mpich ] ||
					echo '--oversubscribe --allow-run-as-root ')-n $count $TINY")
		done
		row launch-$count -n blinksh -- "${commands[@]}"
		row launch-warm-$count -n bare -n blinksh -- "bench_bare $count 100 $TINY" \
			"blinksh -q -w ^$PWD/hosts.$count --repeat=100 -- $TINY"
	done
}

# --- beyond memory -------------------------------------------------------------

rows_wave()
{
	is_wanted wave || return 0
	[ "$listing" ] || divide 250000 4
	row wave --prepare='rm -f out*' "$(judged 4)" -n '4 ranks' -n 'with -S 1G' -- "$(job 4)" \
		"$(job 4 -S 1G -T "$PWD")"
}

# The ranks and the one process have one limit, that of all ranks.
rows_external()
{
	local kind rank ranks nodes

	in_place disk || return 0
	for kind in ascii zipf all-equal empty; do
		is_wanted external-$kind || continue
		if [ -z "$listing" ]; then
			rm -f in*
			make_parts $kind
		fi
		nodes=127.0.0.2,127.0.0.3,127.0.0.4,127.0.0.5 ranks=''
		for rank in 3 2 1 0; do
			ranks+="blinksort --nodes=$nodes --rank=$rank -S $MEMORY -T ."
			ranks+=" in-4.$rank -o out.$rank --sync & "
		done
		row external-$kind --scenario=beyond-memory --unverified \
			--memory=$(($(numfmt --from=iec "$MEMORY") * 4 + (48 << 20))) \
			--input=in-4.0 --input=in-4.1 --input=in-4.2 --input=in-4.3 \
			--prepare='rm -f out*' --shell -n 'one process' -n '4 ranks' \
			"$(judged 4 out)" "$(judged 4)" -- \
			"blinksort in-4.0 in-4.1 in-4.2 in-4.3 -S $(($(
				numfmt --from=iec "$MEMORY") * 4)) -T . -o out --sync" \
			"${ranks}wait"
	done
}

# make_parts KIND: in-4.0 ...; of empty every other rank has nothing
make_parts()
{
	local rank count=$((SIZE / 100))

	if [ "$1" = ascii ]; then
		divide $((count * 4)) 4
		return
	fi
	for rank in 0 1 2 3; do
		if [ "$1" = empty ] && [ $((rank % 2)) = 1 ]; then
			: >in-4.$rank
		else
			make_file "${1/empty/binary}" "$count" in-4.$rank
		fi
	done
}

# --- links ---------------------------------------------------------------------

rows_links()
{
	local link count rate hosts percent names commands losses control built

	in_place shm && [ "$UID" = 0 ] || return 0
	# So slow that two CPUs can do what all nodes and the switch do.
	for link in 4:100 8:50 16:25; do
		count=${link%:*} rate=${link#*:}
		is_wanted "links-$count" || is_wanted "loss-$count" || continue
		built=$BUILD/bench/tests/exchange_baseline commands=()
		names=(rounds all-at-once)
		if [ -z "$listing" ]; then
			mkdir -p "$BUILD/bench/tests"
			gcc -std=gnu11 -D_GNU_SOURCE -O2 -pthread -o "$built" \
				"$ROOT/tests/bench/exchange_baseline.c"
			cluster "$count" --netns --rate="$rate"
			divide "$RECORDS" "$count"
			hosts=$(sed 's/:.*//' "$WCOLL" | paste -sd ' ')
		fi
		for control in same-order cubic bbr; do
			[ $control = same-order ] || grep -qw $control \
				/proc/sys/net/ipv4/tcp_available_congestion_control || continue
			names+=("${control/same-order/UDP in the same order}")
			commands+=("blinksh -q -w ^$PWD/hosts.$count -- $built $control \
$((RECORDS * 100)) ${hosts:-}")
		done
		row links-"$count" --prepare='rm -f out*' \
			"${names[@]/#/--command-name=}" -- \
			"$(job "$count" --threads=1 --schedule=rounds)" \
			"$(job "$count" --threads=1 --schedule=all-at-once)" "${commands[@]}"
		commands=() losses=()
		for percent in 0 0.1 1 5 20; do
			commands+=("--command-name=$percent %")
			losses+=("--prepare=rm -f out*; $ROOT/tests/cluster loss $percent")
		done
		row loss-"$count" "${commands[@]}" "${losses[@]}" "$(judged "$count")" \
			-- "$(job "$count")" "$(job "$count")" "$(job "$count")" \
			"$(job "$count")" "$(job "$count")"
	done
}

rows_compress()
{
	in_place disk && [ "$UID" = 0 ] && is_wanted compress || return 0
	if [ -z "$listing" ]; then
		cluster 4 --netns --rate=300
		make_parts ascii
	fi
	row compress --prepare='rm -f out*' "$(judged 4)" -n none -n auto -n lz4 -- \
		"$(job 4 --sync -S "$MEMORY" -T "$PWD" --compress=none)" \
		"$(job 4 --sync -S "$MEMORY" -T "$PWD" --compress=auto)" \
		"$(job 4 --sync -S "$MEMORY" -T "$PWD" --compress=lz4)"
}

rows_grid()
{
	local count size bridge

	in_place shm && [ "$UID" = 0 ] || return 0
	for count in 16 32; do
		is_wanted grid-$count || continue
		[ -z "$listing" ] || {
			echo "$PLACE.grid-$count"
			continue
		}
		say grid-$count
		cluster $count --netns --rate=10
		bridge=$(head -n 1 "$WCOLL" | cut -d. -f3)
		for size in 250 500 1000 2000 4000; do
			echo "messages of $size bytes"
			bench_exchange $count "$(awk "BEGIN { printf \"%.9f\", \
				($size + 0.5) * $count * ($count - 1) / 1e6 }")" 0 3 "$bridge" 10
		done
	done
}

rows()
{
	[ "$listing" ] || cluster 16
	rows_ranks
	rows_options
	rows_mpi
	rows_launch
	rows_wave
	rows_external
	rows_links
	rows_compress
	rows_grid
	[ "$listing" ] || at_end
}

run_places shm disk xfs huge
