#!/bin/bash
# check_cluster_users.sh - two users of one machine: what a job without a key
# keeps from the other one
#
# alice has ranks 0 and 1 of a job, with inputs that only she may read; mallory
# runs what she likes.  They are two user ids that need no account.

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"

readonly ALICE=65532 MALLORY=65533
ROUNDS=6 COUNT=20000
[ -z "$QUICK$SANITIZED" ] || ROUNDS=2

readonly UNPRIVILEGED=(--clear-groups --bounding-set=-all --inh-caps=-all)
readonly AS_ALICE=(setpriv --reuid "$ALICE" --regid "$ALICE"
	"${UNPRIVILEGED[@]}")
readonly AS_MALLORY=(setpriv --reuid "$MALLORY" --regid "$MALLORY"
	"${UNPRIVILEGED[@]}")

# A folder of alice's with inputs of mode 0600, and one of mallory's.
make_users()
{
	chmod 711 "$SCRATCH" "$PWD"
	mkdir alice mallory
	(
		cd alice
		umask 077
		"$BIN/blinkgen" -a "$COUNT" whole
		cut_input whole 100 2 even
		expect_sorted whole -o want
	)
	chown -R "$ALICE:$ALICE" alice
	chown "$MALLORY:$MALLORY" mallory
	chmod 700 alice mallory
	: >mallory/in.1
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
# for longer than alice may take, but not without end.
mallory_sorts()
{
	local job=$1 try

	for ((try = 0; try < 300; try++)); do
		"${SORT[@]}" --rank=1 --nodes=127.0.0.2,127.0.0.3 \
			--deadline=1 --job="$job" mallory/in.1 \
			-o "mallory/stolen.$try" 2>>mallory/err || true
	done
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
		kill -KILL "${pids[2]}" 2>/dev/null || true
		wait_ranks 2
		! ls mallory/stolen.* 2>/dev/null ||
			fail "mallory has $(wc -c mallory/stolen.*)"
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

finish
