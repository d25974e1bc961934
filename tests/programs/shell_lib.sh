# shell_lib.sh - what the checks of blinkd and blinksh share
# shellcheck shell=bash
#
# A script sources this instead of tool_lib.sh and has besides:
#
#   cluster_up N [OPTION...]  a cluster of its own (tests/cluster), its
#                             BLINK_KEY and WCOLL in the environment, its
#                             hosts in the array nodes; ended at exit
#   sh_run ARGUMENT...        blinksh, at most 5 min, output in ./out and ./err,
#                             its exit status in $status
#   PATIENT                   options for blinksh: no machine is so slow, or
#                             stopped for so long, that it is taken for lost
#   patient_but ARGUMENT...   those of PATIENT that the arguments do not set
#                             themselves, in the array patient; sh_run has them
#   daemon_pid NUMBER         of the cluster, from 1
#   process_ended PID         there is no such process, or it is a zombie
#   await PID                 a child of this shell: its end, at most 100 s; its
#                             exit status in $status
#   tasks_of USER             threads of all its processes, which is what
#                             blinkd's --processes limits without a cgroup
#   remember_daemon NUMBER    sets the array daemon_command to the command line
#                             of this daemon
#   start_daemon_again NUMBER waits until the remembered daemon has ended, and
#                             starts it again; returns when it answers
#   restart_daemon NUMBER SIGNAL  ends it by this signal, and starts it again
#   start_unprivileged_daemon [OPTION...]
#                             starts one more daemon, as the user nobody if we
#                             are root; its process is $!, and clients find it
#                             by $unprivileged_node and $unprivileged_key
#
# The cluster's port is not to be a user's, or that of another run of this.

# Unless another library has done so; the current folder is then another.
# shellcheck source=tests/programs/tool_lib.sh
declare -F check >/dev/null || . "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

export BLINK_CLUSTER=$SCRATCH/cluster BLINK_PORT=$((17300 + $$ % 4000)) BIN
readonly TESTS=$REPO/tests
readonly PATIENT=(--lost-after=60 --lease=60)
status=0

shell_cleanup()
{
	trap - EXIT
	"$TESTS/cluster" down >/dev/null 2>&1 || true
	rm -rf "$SCRATCH"
}
at_end shell_cleanup

cluster_up()
{
	"$TESTS/cluster" up "$@" 2>"$SCRATCH/cluster.log" >/dev/null || {
		cat "$SCRATCH/cluster.log" >&2
		return 1
	}
	eval "$("$TESTS/cluster" env)"
	# shellcheck disable=SC2034 # for the scripts
	mapfile -t nodes <"$WCOLL"
}

patient_but()
{
	local option

	patient=()
	for option in "${PATIENT[@]}"; do
		[[ " $* " == *" ${option%%=*}="* ]] || patient+=("$option")
	done
}

sh_run()
{
	local patient

	patient_but "$@"
	status=0
	timeout 300 "$BIN/blinksh" "${patient[@]}" "$@" >out 2>err </dev/null ||
		status=$?
}

daemon_pid()
{
	cat "$BLINK_CLUSTER/$1.pid"
}

start_unprivileged_daemon()
{
	local as=() key=(--key-file "$SCRATCH/nobody.key")

	[[ " $* " != *" --key-file="* ]] || key=()
	cp "$BIN/blinkd" "$SCRATCH"
	rm -f "$SCRATCH"/*.key
	"$BIN/blinksh" keygen "$SCRATCH/nobody.key"
	unprivileged_key=$SCRATCH/nobody.key
	# shellcheck disable=SC2034 # for the scripts
	unprivileged_node=127.0.0.77:$BLINK_PORT
	if [ "$UID" = 0 ]; then
		# The client takes no key of another user's.
		unprivileged_key=$SCRATCH/root.key
		cp -p "$SCRATCH/nobody.key" "$unprivileged_key"
		chown nobody "$SCRATCH/nobody.key"
		chmod 711 "$SCRATCH"
		as=(setpriv --reuid nobody --regid nogroup --clear-groups
			--bounding-set=-all --inh-caps=-all)
	fi
	(cd / && exec "${as[@]}" "$SCRATCH/blinkd" "${key[@]}" \
		--listen "$unprivileged_node" --allow /usr/bin --allow /bin \
		--foreground "$@") </dev/null >nobody.log 2>&1 &
	echo $! >"$BLINK_CLUSTER/nobody.pid"
}

# Not by /proc/PID/exe: only root can read that of a daemon.
process_ended()
{
	case $(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status" \
		2>/dev/null) in
	'' | [ZX]*) return 0 ;;
	esac
	return 1
}

await()
{
	status=0
	wait_until process_ended "$1" || return 1
	wait "$1" || status=$?
}

tasks_of()
{
	# It fails if there are none.
	ps -L -U "$1" -o pid= | wc -l || true
}

remember_daemon()
{
	mapfile -d '' daemon_command <"/proc/$(daemon_pid "$1")/cmdline"
}

# answers ADDRESS:PORT
answers()
{
	"$BIN/blinksh" -w "$1" --lost-after=1 ping >/dev/null
}

# answers_or_ended ADDRESS:PORT PID
answers_or_ended()
{
	answers "$1" || process_ended "$2"
}

start_daemon_again()
{
	local log=$BLINK_CLUSTER/$1.log address pid

	address=$(sed -n "$1p" "$WCOLL")
	wait_until process_ended "$(daemon_pid "$1")"
	(cd / && exec "${daemon_command[@]}") </dev/null >"$log" 2>&1 &
	pid=$!
	echo $pid >"$BLINK_CLUSTER/$1.pid"
	wait_until answers_or_ended "$address" $pid
	! process_ended $pid || fail "$address: $(tail -n 3 "$log")"
}

restart_daemon()
{
	remember_daemon "$1"
	kill "-$2" "$(daemon_pid "$1")"
	start_daemon_again "$1"
}

# mark NUMBER: sets $mark to seconds for sleep that no other process sleeps, not
# even another run of this test, or of this case
mark()
{
	# shellcheck disable=SC2034 # for the scripts
	mark=$1.${$}0${patience:-0}
}

# is_running PATTERN: a process has a command line that matches.  Anchor it, or
# it finds the client too.
is_running()
{
	pgrep -f -- "$1" >/dev/null
}

nobody_has()
{
	! is_running "$1"
}

expect_out()
{
	printf '%s\n' "$@" >want
	diff want out >&2
}

# count_of NAME: of a daemon's counts, the sum over all nodes
count_of()
{
	"$BIN/blinksh" "${PATIENT[@]}" --json status |
		python3 -c 'import json, sys
print(sum(node[sys.argv[1]] for node in json.load(sys.stdin)["nodes"]))' "$1"
}
