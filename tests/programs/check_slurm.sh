#!/bin/bash
# check_slurm.sh - the cluster sort under Slurm, by UDP and with each MPI
#
# What srun makes of the same input must be, byte for byte, what one process makes
# of it.
#
# KILLS=N   kill a rank at N moments in each way, instead of at 2

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/slurm_lib.sh
. "$(dirname "$0")/slurm_lib.sh"

if [ "$SANITIZED" = tsan ]; then
	skip slurm "ThreadSanitizer does not change with the launcher"
	finish
fi
if cannot slurm; then
	skip slurm "$why"
	finish
fi
in_namespaces "$@"

readonly MPIS=(mpich openmpi)
# The plug-in that each MPI of Debian 12 understands
declare -A PLUGIN=([udp]=none [mpich]=pmi2 [openmpi]=pmix)
COUNT=20000 SMALL=3000
# So many that most kills come before the end
LONG=400000
KILL_TRIES=${KILLS:-2}
if [ -n "$QUICK$SANITIZED" ]; then
	COUNT=4000 SMALL=1000
	KILL_TRIES=${KILLS:-1}
fi
# For this long the others wait for a rank that is gone: srun does not end them.
GONE_DEADLINE_S=2
# The nodes share /dev/shm, where Open MPI takes ranks of different nodes for the
# same.
export OMPI_MCA_btl=self,tcp
# Open MPI unloads plugins that leave memory: nothing tells then whose it was.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0

# --- Slurm --------------------------------------------------------------------

# slurm OPTION... COMMAND...: with srun; its status in $status, and what it prints
# in ./said and ./err.  With -Q srun itself says nothing.
slurm()
{
	status=0
	timeout 100 srun -Q "$@" >said 2>err </dev/null || status=$?
}

# program_of TRANSPORT: prints the words that sort by it
program_of()
{
	if [ "$1" = udp ]; then
		echo "$BIN/blinksort --cluster"
	else
		mpi_program "$1"
	fi
}

# Of some hundred jobs of Open MPI 4.1.4 under Slurm's PMIx, on busy CPUs, one has
# a rank that gets another's message while it still waits in MPI_Init: its TCP
# plug-in then calls a function at 0.  No frame is ours.  Or a rank does not get a
# connection in time.
has_mpi_failed()
{
	cat err err.? >told 2>/dev/null || true
	grep -q 'Open MPI failed to TCP connect' told && return
	grep -q -E 'address 0x0+ \(pc 0x0+ |Failing at address: \(nil\)' told &&
		! grep -q -E 'blinksort-mpi[.a-z]*\(' told
}

# slurm_mpi TRANSPORT OPTION... COMMAND...: again, where the MPI itself has failed
slurm_mpi()
{
	slurm "${@:2}"
	if [ "$1" = openmpi ] && [ "$status" != 0 ] && has_mpi_failed; then
		rm -f err.?
		slurm "${@:2}"
	fi
}

# slurm_sort TRANSPORT "SRUN'S OPTIONS" OPTION...
slurm_sort()
{
	local program srun_options transport=$1
	read -r -a program <<<"$(program_of "$1")"
	read -r -a srun_options <<<"$2"
	shift 2

	slurm_mpi "$transport" "${srun_options[@]}" "${program[@]}" in.%r \
		-o out.%r --deadline="$DEADLINE_S" "$@"
}

# expect_slurm TRANSPORT "SRUN'S OPTIONS" OPTION...: ./want is what comes out
expect_slurm()
{
	slurm_sort "$@"
	[ "$status" = 0 ] || fail "status $status: $*: $(head -c 2000 err)"
	expect_whole 4 want || fail "$*"
	rm -f out.*
}

# make_exact [COUNT]: inputs of four ranks, and ./want
make_exact()
{
	"$BIN/blinkgen" -a "${1:-$COUNT}" whole
	expect_sorted whole -o want
	cut_input whole 100 4 random
}

# make_small: the same where no output is to come
make_small()
{
	"$BIN/blinkgen" -a "$SMALL" whole
	cut_input whole 100 4 even
}

# --- what comes out -----------------------------------------------------------

# case_exact TRANSPORT PLUGIN: on one, two and four nodes
case_exact()
{
	local where

	make_exact
	for where in "-N4 -n4" "-N2 -n4 --distribution=block" \
		"-N2 -n4 --distribution=cyclic" "-N1 -n4"; do
		expect_slurm "$1" "--mpi=$2 $where"
	done
}

# Ranks of two nodes, one with three of them: block and cyclic deal unevenly.
case_uneven()
{
	make_exact
	expect_slurm udp "-N2 -n4 -w n1,n3 --ntasks-per-node=3"
	expect_slurm udp "-N3 -n4 --distribution=cyclic" --json
}

case_gather()
{
	make_exact
	slurm -N4 -n4 "$BIN/blinksort" --cluster in.%r --gather=out.all \
		--deadline="$DEADLINE_S"
	[ "$status" = 0 ] || fail "status $status: $(cat err)"
	echo out.all | expect_outputs
	expect_same out.all want
}

make_key()
{
	"$BIN/blinksh" keygen key
}

case_key_file()
{
	local plugin

	make_exact
	make_key
	for plugin in none pmix; do
		slurm_sort udp "-N4 -n4 --mpi=$plugin"
		[ "$status" = 2 ] || fail "status $status: $(cat err)"
		expect_match '^blinksort: --key-file: needed, or BLINK_KEY, or srun --mpi=pmi2: n0 is not of ' err
		expect_none
		expect_slurm udp "-N4 -n4 --mpi=$plugin" --key-file=key
	done
}

# The launcher passes the secret on.
case_secret()
{
	make_exact
	expect_slurm udp "-N4 -n4 --mpi=pmi2"
	expect_slurm udp "-N2 -n4 --mpi=pmi2 --distribution=cyclic"
}

# A rank that has no secret drops what the others send, and they what it sends.
case_secret_missed()
{
	make_small
	# shellcheck disable=SC2016 # that shell's
	slurm -N4 -n4 --mpi=pmi2 sh -c '
		[ $SLURM_PROCID != 2 ] || exec sleep 4
		exec "$@"' sh "$BIN/blinksort" --cluster in.%r -o out.%r --deadline=1
	[ "$status" = 4 ] || fail "status $status: $(cat err)"
	expect_match '^blinksort: PMI_FD: not all ranks have come within 1.0 s' err
	# shellcheck disable=SC2016 # that shell's
	slurm -N4 -n4 --mpi=pmi2 bash -c 'exec {PMI_FD}>&-; exec "$@"' sh \
		"$BIN/blinksort" --cluster in.%r -o out.%r
	[ "$status" = 2 ] || fail "status $status: $(cat err)"
	expect_match "^blinksort: PMI_FD: '[0-9]+': not a socket of this process" err
	expect_none
}

# hydra HOSTS OPTION...: four ranks on so many hosts, started by MPICH's mpirun.
# On busy CPUs it may end by SIGPIPE itself, and then starts them again.
hydra()
{
	local hosts=$1 tries

	shift
	for tries in 1 2 3 4 5; do
		status=0
		timeout 100 mpirun.mpich -launcher fork -hosts "$hosts" -n 4 \
			"$BIN/blinksort" --cluster in.%r -o out.%r \
			--deadline="$DEADLINE_S" "$@" >said 2>err </dev/null ||
			status=$?
		[ "$status" = 141 ] || return 0
		echo "  mpirun: SIGPIPE, try $tries"
	done
}

# MPICH's launcher has a PMI, too, but would give a secret to anybody; and it does
# not tell the hosts.
case_hydra()
{
	local hosts=n0,n1,n2,n3

	make_exact
	make_key
	hydra "$hosts" --nodes="$hosts"
	[ "$status" = 2 ] || fail "status $status: $(cat err)"
	expect_match '^blinksort: --key-file: needed, or BLINK_KEY: n0 is not of ' err
	expect_none
	hydra "$hosts" --nodes="$hosts" --key-file=key
	[ "$status" = 0 ] || fail "status $status: $(cat err)"
	expect_whole 4 want
	rm out.*
	hydra "$hosts"
	[ "$status" = 2 ] || fail "status $status: $(cat err)"
	expect_match '1 of 4 ranks are on this machine: give --nodes, or start the ranks by srun' err
	expect_none
}

# --- what cannot work ---------------------------------------------------------

# case_alone PLUGIN: MPICH's ranks do not find each other, and each would sort
# its own part.
case_alone()
{
	make_small
	slurm_sort mpich "-N4 -n4 --mpi=$1"
	[ "$status" = 2 ] || fail "status $status: $(cat err)"
	expect_match 'this is rank . of 4, .*give srun --mpi=pmix or --mpi=pmi2' err
	expect_none
}

# case_foreign PLUGIN: Open MPI itself refuses to start.
case_foreign()
{
	make_small
	slurm_sort openmpi "-N4 -n4 --mpi=$1"
	[ "$status" != 0 ] || fail "status 0"
	expect_none
}

# count_usage TOLD ARGUMENT...: the job fails, and so many lines of its ranks say
# what is missing
count_usage()
{
	local want=$1 count
	shift

	rm -f err.?
	slurm -N4 -n4 "$@"
	[ "$status" != 0 ] || fail "status 0"
	count=$(cat err.? | grep -c '^blinksort: -o: is missing') || true
	[ "$count" = "$want" ] || fail "$count lines, not $want: $(cat err err.?)"
	expect_none
}

# Rank 0 says for all what is wrong with their command, if the launcher then ends
# the others; what is wrong with that of one rank is not lost.
case_usage()
{
	local split_err=$PWD/split-err

	make_small
	# shellcheck disable=SC2016 # that shell's
	printf '#!/bin/sh\nexec "$@" 2>err.$SLURM_PROCID\n' >"$split_err"
	chmod +x "$split_err"
	count_usage 1 --kill-on-bad-exit "$split_err" "$BIN/blinksort" --cluster in.%r
	count_usage 4 "$split_err" "$BIN/blinksort" --cluster in.%r
	[ "$status" = 2 ] || fail "status $status"
	cat >programs <<-END
		0-2 $split_err $BIN/blinksort --cluster in.%r -o out.%r --deadline=$GONE_DEADLINE_S
		3 $split_err $BIN/blinksort --cluster in.%r
	END
	count_usage 1 --multi-prog programs
}

# --- failures -----------------------------------------------------------------

# Rank r has its process in pid.r, and what it says on stderr in err.r: srun may
# lose the last line of a rank that ends.
# shellcheck disable=SC2016 # that shell's
readonly APART=(sh -c 'echo $$ >pid.$SLURM_PROCID
	exec "$@" 2>err.$SLURM_PROCID' sh)

# has_ucx_read RANK: MPICH's UCX was copying from this killed rank's memory for a
# rank of the same machine, and has ended that rank, too; others then name that
# one, or end in the same way
has_ucx_read()
{
	[ -s "pid.$1" ] && grep -q -F "process_vm_readv(pid=$(cat "pid.$1") " err.* &&
		grep -q 'process_vm_readv(.*returned -1: No such process' err.*
}

# names RANK WHY: a rank says that it is this one; both are patterns
names()
{
	grep -q -E "^blinksort(-mpi)?: (.* )?rank $1 .*$2" err.?
}

# expect_named RANK COUNT: so many other ranks, or more, say that a rank has
# failed, and one of them that it is this one.  Two can be at fault: rank 0 may
# be killed when it has given the secret to some.
expect_named()
{
	local count

	! has_ucx_read "$1" || return 0
	count=$(cat err.* | grep -c -E '^blinksort(-mpi)?: (.* )?rank [0-9] ') ||
		true
	[ "$count" -ge "$2" ] || fail "not $2 ranks name one: $(cat err.*)"
	names "$1" '' ||
		fail "none names rank $1: $(tail -n +1 err err.*)"
}

# expect_full TRANSPORT OPTION...: of rank 1, d.1 or tmp.1 is full
expect_full()
{
	local program
	read -r -a program <<<"$(program_of "$1")"

	slurm_mpi "$1" -N4 -n4 --mpi="${PLUGIN[$1]}" "${APART[@]}" \
		"${program[@]}" in.%r -o d.%r/out --deadline="$DEADLINE_S" "${@:2}"
	[ "$status" != 0 ] || fail "status 0"
	expect_match '^blinksort(-mpi)?: (d|tmp).1' err.1
	expect_named 1 3
	[ -z "$(find d.* -mindepth 1)" ] || fail "there is $(find d.*)"
}

case_full()
{
	local rank

	"$BIN/blinkgen" -a 400000 whole
	cut_input whole 100 4 even
	for rank in 0 1 2 3; do
		mkdir "d.$rank" "tmp.$rank"
	done
	on_small_disk d.1 expect_full "$1"
	on_small_disk tmp.1 expect_full "$1" -S 12M -T tmp.%r
}

# start_sort TRANSPORT: in the background, as $job
start_sort()
{
	local program
	read -r -a program <<<"$(program_of "$1")"

	rm -f pid.* err.* ended
	(
		slurm -N4 -n4 --mpi="${PLUGIN[$1]}" "${APART[@]}" \
			"${program[@]}" in.%r -o out.%r \
			--deadline="$GONE_DEADLINE_S"
		echo "$status" >ended
	) &
	job=$!
}

# end_sort BEGIN_S: it ends soon; its status in $status
end_sort()
{
	local took_s

	wait "$job"
	status=$(cat ended)
	took_s=$((SECONDS - $1))
	[ "$took_s" -le $((GONE_DEADLINE_S + 20)) ] || fail "took $took_s s"
	[ "$took_s" -le "$longest_s" ] || longest_s=$took_s
}

# expect_ended TRANSPORT RANK: that rank was killed
expect_ended()
{
	local outcome

	expect_all_or_none 4
	case $outcome in
	some) some_count=$((some_count + 1)) ;;
	none)
		none_count=$((none_count + 1))
		# A launcher that kills does so before the others can say why.
		# MPICH aborts some of them.
		[ -n "${SLURM_KILL_BAD_EXIT:-}" ] ||
			expect_named "$2" "$([ "$1" = udp ] && echo 3 || echo 1)"
		;;
	esac
	rm -f out.*
}

# kill_some TRANSPORT SIGNAL: at any moment
kill_some()
{
	local i begin_s victim longest_s=0 none_count=0 some_count=0
	local within_ms=600

	[ "$1" != udp ] || within_ms=150
	make_exact "$LONG"
	for ((i = 0; i < KILL_TRIES; i++)); do
		begin_s=$SECONDS
		start_sort "$1"
		victim=$((RANDOM % 4))
		wait_until test -s "pid.$victim"
		random_below "$within_ms"
		nap_ms "$random"
		kill -"$2" "$(cat "pid.$victim")" 2>/dev/null || true
		end_sort "$begin_s"
		expect_ended "$1" "$victim"
	done
	echo "  $1 $2: of $KILL_TRIES jobs $none_count ended without an output" \
		"and $some_count with some, all within $longest_s s"
	expect_rare "$some_count" "$KILL_TRIES"
}

# case_killed TRANSPORT SIGNAL: by UDP the others find out themselves; MPI_Init
# would wait for the rank for ever, so that srun has to kill them.
case_killed()
{
	[ "$1" = udp ] || export SLURM_KILL_BAD_EXIT=1
	kill_some "$@"
}

# has_mpi_stuck TRANSPORT RANK: Open MPI's MPI_Test does not return in one that was
# sending to this killed rank, so that the others name that one for its silence
has_mpi_stuck()
{
	[ "$1" = openmpi ] && ! names "$2" '' && names . silent
}

# case_gone TRANSPORT: behind MPI_Init ranks do without srun's help, too.
case_gone()
{
	local i begin_s outcome is_through longest_s=0 none_count=0 some_count=0

	make_exact "$LONG"
	for ((i = 0; i < 10 && none_count == 0; i++)); do
		begin_s=$SECONDS is_through=''
		start_sort "$1"
		wait_until test -s pid.2
		await_open 2 in.2 && kill -KILL "$(cat pid.2)" 2>/dev/null ||
			is_through=1
		end_sort "$begin_s"
		if [ -n "$is_through" ] || has_mpi_stuck "$1" 2; then
			expect_all_or_none 4
			rm -f out.*
		else
			expect_ended "$1" 2
		fi
	done
	[ "$none_count" = 1 ] ||
		fail "no job ended for the rank's sake: $(tail -n +1 err err.?)"
}

# With --kill-on-bad-exit srun ends the others by a signal.
case_kill_on_bad_exit()
{
	local i begin_s longest_s=0 none_count=0 some_count=0
	local GONE_DEADLINE_S=$DEADLINE_S

	export SLURM_KILL_BAD_EXIT=1
	make_exact "$LONG"
	for ((i = 0; i < 10 && none_count == 0; i++)); do
		begin_s=$SECONDS
		start_sort udp
		wait_until test -s pid.2
		kill -KILL "$(cat pid.2)" 2>/dev/null || true
		end_sort "$begin_s"
		expect_ended udp 2
	done
	[ "$status" -gt 128 ] || fail "status $status: $(cat err)"
}

start_slurm || { echo "FAIL slurm_start"; exit 1; }
echo "ok slurm_start"
for plugin in none pmi2 pmix; do
	check "udp_$plugin" case_exact udp "$plugin"
done
check uneven case_uneven
check gather case_gather
check key_file on_machines case_key_file
check secret on_machines case_secret
check secret_missed on_machines case_secret_missed
check_able mpich hydra on_machines case_hydra
check udp_full case_full udp
check udp_killed case_killed udp KILL
check udp_terminated case_killed udp TERM
check kill_on_bad_exit case_kill_on_bad_exit
check usage case_usage
for mpi in "${MPIS[@]}"; do
	check_able "$mpi" "$mpi" case_exact "$mpi" "${PLUGIN[$mpi]}"
	check_able "$mpi" "${mpi}_full" case_full "$mpi"
	check_able "$mpi" "${mpi}_killed" case_killed "$mpi" KILL
	check_able "$mpi" "${mpi}_terminated" case_killed "$mpi" TERM
	check_able "$mpi" "${mpi}_gone" case_gone "$mpi"
done
for plugin in none pmix; do
	check_able mpich "mpich_alone_$plugin" case_alone "$plugin"
done
for plugin in none pmi2; do
	check_able openmpi "openmpi_foreign_$plugin" case_foreign "$plugin"
done

finish
