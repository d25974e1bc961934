# shellcheck shell=bash
#
# figure4_lib.sh - what the places of Figure 4 share (figure4.sh)
#
# The nodes are those of tests/cluster, of which BLINK_KEY, WCOLL and BLINK_CLUSTER
# tell.
#
#   sweep EDIT...        datamation-2011.sweep, edited by sed: what the place has
#   figure4 FOLDER SWEEP OPTION...
#                        a run of blinktrial; or, if KILLS is set, as many that are
#                        killed, and "as before" for each that left all settings
#                        as they were
#
# Variables: TRIALS, KILLS, SEED of the moments.

# sweep EDIT...: on standard output
sweep()
{
	local edits=() edit

	for edit in "$@"; do
		edits+=(-e "$edit")
	done
	sed "${edits[@]}" "$ROOT/results/datamation-2011.sweep"
}

# at PARAMETER LINE: an edit that writes the line below the parameter
at()
{
	printf '/^%s /a\\  %s' "$1" "$2"
}

nodes()
{
	ip netns list | sed -n 's/^\(blink[0-9]*-[0-9]*\)\( .*\)\?$/\1/p' | sort -V
}

# settings: all that the sweep's knobs may touch, as the system's tools and files
# say it
settings()
{
	local node path

	for path in /sys/block/*/queue/{read_ahead_kb,scheduler} \
		/sys/block/md*/md/stripe_cache_size \
		/sys/devices/system/cpu/cpufreq/policy*/scaling_{governor,min_freq,max_freq} \
		/sys/class/scsi_disk/*/cache_type; do
		[ ! -r "$path" ] || echo "$path: $(<"$path")"
	done
	for path in /dev/sd?; do
		[ ! -b "$path" ] || hdparm -W -A "$path" 2>/dev/null | tr -s '\n\t ' ' ' || true
	done
	for node in $(nodes); do
		ip -n "$node" -o link | sed "s/^/$node: /"
		for path in $(ip -n "$node" -o link | sed 's/^[0-9]*: \([^:@]*\).*/\1/'); do
			ip netns exec "$node" ethtool -c "$path" 2>/dev/null |
				sed "s/^/$node: /" || true
		done
	done
	systemctl list-units --type=service,socket,timer,path --state=active \
		--no-legend --plain 2>/dev/null | awk '/^(cron|at|rsyslog|acpi|syslog)/ { print $1, $4 }' || true
}

# words FOLDER SWEEP OPTION...: WORDS, the command of a run
words()
{
	WORDS=(blinktrial '--scenario=cache,platter' --trials="${TRIALS:-30}"
		--key-file="$BLINK_KEY" -w "^$WCOLL" --cache-bytes=32M
		--out="$1" --sweep="$2" "${@:3}")
}

figure4()
{
	local number failed=0

	words "$@"
	if [ -z "${KILLS:-}" ]; then
		run_and_resume "$1"
		return
	fi
	RANDOM=${SEED:-1}
	settings >"$1.before"
	for ((number = 1; number <= KILLS; number++)); do
		if killed "$1"; then
			echo "kill $number: as before"
		else
			echo "kill $number: FAILED"
			failed=1
		fi
	done
	rm -rf "$1" "$1".{log,now,before}
	return $failed
}

# run_and_resume FOLDER: a node that was taken for lost, since the machine is
# crowded, does not end the run
run_and_resume()
{
	local status=0 tries

	"${WORDS[@]}" || status=$?
	for ((tries = 0; status == 4 && tries < 100; tries++)); do
		[ -e "$1/design.json" ] || return $status
		status=0
		blinktrial --resume --out="$1" || status=$?
	done
	return $status
}

# --- killed at a random moment -------------------------------------------------

# tree PID: the process and all that descend from it
tree()
{
	local child

	echo "$1"
	for child in $(ps -o pid= --ppid "$1"); do
		tree "$child"
	done
}

# killed FOLDER: 0: all settings are as before.  WORDS are the run's.
killed()
{
	local pid pids

	rm -rf "$1"
	"${WORDS[@]}" --quiet </dev/null >"$1.log" 2>&1 &
	pid=$!
	# The rehearsals, too, which set all that there is.
	sleep "$((1 + RANDOM % 60)).$((RANDOM % 10))"
	if ! kill -0 "$pid" 2>/dev/null; then
		echo "it has ended by itself: $(tail -n 1 "$1.log")"
		return 1
	fi
	pids=$(tree "$pid")
	# By turns it alone, and with all that it has started here.
	# shellcheck disable=SC2086 # several
	if ((number % 2)); then
		kill -KILL "$pid"
	else
		kill -KILL $pids 2>/dev/null || true
	fi
	wait "$pid" 2>/dev/null || true
	await_settled "$pids" && revert_by_hand && settings >"$1.now" &&
		diff "$1.before" "$1.now"
}

# await_settled PIDS: nothing is left at work here, and no job on a node.
await_settled()
{
	local tries

	for ((tries = 0; tries < 600; tries++)); do
		# shellcheck disable=SC2086 # several
		if ! ps -o stat= -p "${1//$'\n'/,}" | grep -v '^Z' >/dev/null &&
			[ "$(blinksh --json status | grep -c '"jobs_running": 0,')" = \
				"$(nodes | wc -l)" ]; then
			return 0
		fi
		sleep 0.2
	done
	echo "it does not settle"
	return 1
}

# What the manual asks for after SIGKILL.
revert_by_hand()
{
	local node state

	for node in $(nodes); do
		state=$BLINK_CLUSTER/state.${node#*-}
		[ -e "$state/journal" ] || continue
		echo "$node: blinktune revert"
		ip netns exec "$node" blinktune -q --state="$state" revert || return 1
	done
}
