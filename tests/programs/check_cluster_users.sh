#!/bin/bash
# check_cluster_users.sh - two users of one machine: what a job without a key
# keeps from the other one
#
# alice has ranks 0 and 1 of a job, with inputs that only she may read; mallory
# runs what she likes.  They are two user ids; only Slurm needs accounts for them.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/slurm_lib.sh
. "$(dirname "$0")/slurm_lib.sh"

no_slurm=
if [ "$SANITIZED" = tsan ]; then
	no_slurm="ThreadSanitizer does not change with the launcher"
elif cannot slurm; then
	no_slurm=$why
else
	in_namespaces "$@"
fi

readonly ALICE=65532 MALLORY=65533
ROUNDS=6 COUNT=20000
[ -z "$QUICK$SANITIZED" ] || ROUNDS=2

readonly UNPRIVILEGED=(--clear-groups --bounding-set=-all --inh-caps=-all)
readonly AS_ALICE=(setpriv --reuid "$ALICE" --regid "$ALICE"
	"${UNPRIVILEGED[@]}")
readonly AS_MALLORY=(setpriv --reuid "$MALLORY" --regid "$MALLORY"
	"${UNPRIVILEGED[@]}")

# make_user NAME ID FIRST: a folder of that user's, with inputs of mode 0600 of the
# generator's records from this one on
make_user()
{
	mkdir "$1"
	(
		cd "$1" || exit
		umask 077
		"$BIN/blinkgen" -a -b"$3" "$COUNT" whole
		cut_input whole 100 2 even
		expect_sorted whole -o want
	)
	chown -R "$2:$2" "$1"
	chmod 700 "$1"
}

make_users()
{
	chmod 711 "$SCRATCH" "$PWD"
	make_user alice "$ALICE" 0
	make_user mallory "$MALLORY" "$COUNT"
}

# alice_rank RANK DEADLINE_S JOB
alice_rank()
{
	start_rank "$1" "${AS_ALICE[@]}" "${SORT[@]}" --rank="$1" \
		--nodes=127.0.0.2,127.0.0.3 --deadline="$2" --job="$3" \
		"$PWD/alice/in.$1" -o "$PWD/alice/out.$1"
}

# alice_is_served: her job has ended well, with her records and no other
alice_is_served()
{
	[ "${statuses[*]:0:2}" = "0 0" ] ||
		fail "${statuses[*]}: $(cat err.*)"
	cat alice/out.0 alice/out.1 | expect_same - alice/want
	rm alice/out.*
}

# mallory's own blinksort is rank 1 before alice's is, and then again and again;
# for longer than alice may take, but not without end.  SIGTERM ends both: a rank that
# was left would join the next case's job of this name, as mallory's own may.
mallory_sorts()
{
	local job=$1 try

	trap 'kill "$!" && wait "$!"; exit 0' TERM
	for ((try = 0; try < 300; try++)); do
		"${SORT[@]}" --rank=1 --nodes=127.0.0.2,127.0.0.3 \
			--deadline=1 --job="$job" mallory/in.1 \
			-o "mallory/stolen.$try" 2>>mallory/err &
		wait "$!" || true
	done
}

# end_mallory_sorts: of process 2
end_mallory_sorts()
{
	kill -TERM "${pids[2]}" 2>/dev/null || true
	wait_ranks 2
	! ls mallory/stolen.* 2>/dev/null ||
		fail "mallory has $(wc -c mallory/stolen.*)"
}

case_rank_of_other_user()
{
	local pids=() statuses=() round

	make_users
	for ((round = 0; round < ROUNDS; round++)); do
		start_rank 2 "${AS_MALLORY[@]}" bash -c "$(declare -p SORT)
			$(declare -f mallory_sorts); mallory_sorts users.$$"
		# Her first try has failed by then, and for the right reason.
		wait_until test -s mallory/err
		expect_match 'rank 0 .* has not come' mallory/err
		alice_rank 0 "$DEADLINE_S" "users.$$"
		[ $((round % 2)) = 0 ] || sleep 0.2
		alice_rank 1 "$DEADLINE_S" "users.$$"
		wait_ranks 0 1
		end_mallory_sorts
		alice_is_served
		rm -f mallory/err
	done
}

# knock.py NAME WHAT: mallory's own program, which knows the name.
#   ask    pose as its ranks until killed; FILE gets a line for each try that was
#          answered, or "nothing"
#   hold   have the name before alice, and answer as her rank 0 would
write_knock()
{
	cat >mallory/knock.py <<-'END'
		import itertools, os, socket, struct, sys
		name, what = b"\0" + sys.argv[1].encode(), sys.argv[2]
		own = socket.socket(socket.AF_UNIX)
		if what == "hold":
		    own.bind(name)
		    own.listen(100)
		    print("ready", flush=True)
		    while True:
		        peer = own.accept()[0]
		        try:
		            peer.sendall(struct.pack("=I", 1) + bytes(32))
		        except OSError:
		            pass
		        peer.close()
		for i in itertools.count():
		    own = socket.socket(socket.AF_UNIX)
		    own.bind(name + b"-%04d-%016x" % (i % 2, i))
		    try:
		        own.connect(name)
		        print(own.recv(100) or "nothing", flush=True)
		    except OSError:
		        pass
		    own.close()
	END
}

# knock WHAT: as mallory, with the name in $name; is process 3
knock()
{
	write_knock
	start_rank 3 "${AS_MALLORY[@]}" /usr/bin/python3 mallory/knock.py "$name" "$1"
	wait_until test -s said.3
}

# mallory poses as alice's ranks while her rank 0 waits for rank 1.
case_stranger_asks()
{
	local pids=() statuses=() name

	make_users
	alice_rank 0 "$DEADLINE_S" "users.$$.asks"
	wait_until job_name 0 >name
	name=$(cat name)
	knock ask
	alice_rank 1 "$DEADLINE_S" "users.$$.asks"
	wait_ranks 0 1
	kill -KILL "${pids[3]}"
	wait_ranks 3
	[ "$(sort -u said.3)" = nothing ] || fail "$(sort -u said.3)"
	alice_is_served
}

# mallory has the name first: the job fails, and says so.
case_stranger_holds()
{
	local pids=() statuses=() name rank

	make_users
	alice_rank 0 60 "users.$$.holds"
	wait_until job_name 0 >name
	name=$(cat name)
	kill -KILL "${pids[0]}"
	wait_ranks 0
	knock hold
	for rank in 0 1; do
		alice_rank "$rank" 1 "users.$$.holds"
	done
	wait_ranks 0 1
	kill -KILL "${pids[3]}"
	wait_ranks 3
	[ "${statuses[*]:0:2}" = "4 4" ] || fail "${statuses[*]}: $(cat err.*)"
	for rank in 0 1; do
		expect_one_line "err.$rank"
		expect_match "--job: user $MALLORY holds the name @$name: give" \
			"err.$rank"
		[ ! -e "alice/out.$rank" ] || fail "there is out.$rank"
	done
}

# --- launchers ----------------------------------------------------------------

# shellcheck disable=SC2016 # for that shell
readonly BY_HAND='for rank in 0 1; do
	PMI_RANK=$rank PMI_SIZE=2 MPI_LOCALNRANKS=2 "$@" & pids="$pids $!"
done
for pid in $pids; do wait "$pid" || status=$?; done
exit ${status:-0}'

# find_launch LAUNCHER: in $launch, the words that start two ranks of a command
find_launch()
{
	case $1 in
	none) launch=(sh -c "$BY_HAND" sh) ;;
	mpich) launch=(mpirun.mpich -launcher fork -n 2) ;;
	openmpi) launch=(mpirun.openmpi --oversubscribe -n 2) ;;
	srun) launch=(srun -Q -N1 -n2) ;;
	srun_pmi) launch=(srun -Q -N2 -n2 --mpi=pmi2) ;;
	esac
}

# launch NUMBER USER LAUNCHER OPTION...: that user's job of two ranks
launch()
{
	local number=$1 user=$2 launch=() as=("${AS_ALICE[@]}")

	[ "$user" = alice ] || as=("${AS_MALLORY[@]}")
	find_launch "$3"
	shift 3
	start_rank "$number" "${as[@]}" env HOME="$PWD/$user" \
		TMPDIR="$PWD/$user" timeout 300 "${launch[@]}" "${SORT[@]}" \
		--cluster --deadline="$DEADLINE_S" "$@" \
		"$PWD/$user/in.%r" -o "$PWD/$user/out.%r"
}

# is_served NUMBER USER: the job has ended well, with that user's records, which
# only that user can read
is_served()
{
	local out

	[ "${statuses[$1]}" = 0 ] ||
		fail "$2: ${statuses[$1]}: $(cat "err.$1")"
	cat "$2/out.0" "$2/out.1" | expect_same - "$2/want"
	for out in "$2"/out.?; do
		[ "$(stat -c %U:%a "$out")" = "$(stat -c %U:600 "$2")" ] ||
			fail "$(stat -c '%n is of %U, %a' "$out")"
	done
	rm "$2"/out.*
}

# expect_two LAUNCHER JOB OPTION...: alice's job, and mallory's of this name, run at
# once.  Each gets the own records, and nothing of the other's.
expect_two()
{
	local launcher=$1 job=$2
	shift 2

	launch 0 alice "$launcher" --job="users.$$" "$@"
	launch 1 mallory "$launcher" --job="$job" "$@"
	wait_ranks 0 1
	is_served 0 alice
	is_served 1 mallory
}

case_launcher()
{
	local pids=() statuses=() options=()

	umask 077
	make_users
	# Slurm knows its nodes, and places the jobs on different ones.
	[[ $1 == srun* ]] || options=(--nodes='127.0.0.[2-3]')
	expect_two "$1" "users.$$" "${options[@]}"
	# Meanwhile mallory poses as a rank of alice's job.
	start_rank 2 "${AS_MALLORY[@]}" bash -c "$(declare -p SORT)
		$(declare -f mallory_sorts); mallory_sorts users.$$"
	expect_two "$1" "others.$$" "${options[@]}"
	end_mallory_sorts
}

# MPICH's mpirun would give a secret to anybody who asks: ranks on several
# machines need a key, and say so.  What mpirun itself makes of their end is its own: it
# may die of SIGPIPE, also before it has started the second one.
case_mpich_apart()
{
	local rank try

	for try in 1 2 3 4 5; do
		# shellcheck disable=SC2016 # for that shell
		timeout 100 mpirun.mpich -launcher fork -hosts 127.0.0.2,127.0.0.3 \
			-n 2 sh -c '"$@" 2>"err.$PMI_RANK"; echo $? >"status.$PMI_RANK"' \
			sh "${SORT[@]}" --cluster --nodes=192.0.2.1,192.0.2.2 \
			--deadline=1 /dev/null -o out.%r </dev/null || true
		[ ! -s status.0 ] || [ ! -s status.1 ] || break
		echo "  mpirun has not run both ranks in try $try"
	done
	for rank in 0 1; do
		wait_until test -s "status.$rank"
		[ "$(cat "status.$rank")" = 2 ] ||
			fail "status $(cat "status.$rank"): $(cat "err.$rank")"
		expect_match '^blinksort: --key-file: needed, or BLINK_KEY: 192.0.2.1 is not of 127.0.0.0/8 or ::1$' "err.$rank"
	done
	expect_none
}

make_accounts()
{
	{
		cat /etc/passwd
		echo "alice:x:$ALICE:$ALICE::/:/bin/sh"
		echo "mallory:x:$MALLORY:$MALLORY::/:/bin/sh"
	} >"$SLURM/passwd"
	mount --bind "$SLURM/passwd" /etc/passwd
}

# --- users --------------------------------------------------------------------

# Where the kernel shows all users as one, ids tell nothing.
case_users_alike()
{
	local failed=0

	"${AS_ALICE[@]}" unshare --user "${SORT[@]}" --rank=0 --deadline=1 \
		--nodes=127.0.0.2,127.0.0.3 /dev/null -o out 2>err || failed=$?
	[ "$failed" = 2 ] || fail "status $failed: $(cat err)"
	expect_one_line err
	expect_match '--key-file: needed, or BLINK_KEY: .*other users' err
}

# Where the programs are others may not look.
chmod 711 "$SCRATCH"
cp "$BIN/blinksort" "$SCRATCH/blinksort"
SORT=("${BLINKSORT[@]}")
SORT[-1]=$SCRATCH/blinksort
check_able root,be_nobody rank_of_other_user case_rank_of_other_user
check_able root,be_nobody stranger_asks case_stranger_asks
check_able root,be_nobody stranger_holds case_stranger_holds
if cannot be_nobody || "${AS_ALICE[@]}" unshare --user true 2>/dev/null; then
	check_able root,be_nobody users_alike case_users_alike
else
	skip users_alike "can't make a namespace of users here"
fi
check_able root,be_nobody launcher_none case_launcher none
for mpi in mpich openmpi; do
	check_able "root,be_nobody,$mpi" "launcher_$mpi" case_launcher "$mpi"
done
check_able mpich mpich_apart case_mpich_apart
if [ -n "$no_slurm" ]; then
	skip launcher_srun "$no_slurm"
	skip launcher_srun_pmi "$no_slurm"
else
	start_slurm
	make_accounts
	check launcher_srun case_launcher srun
	check launcher_srun_pmi on_machines case_launcher srun_pmi
fi

finish
