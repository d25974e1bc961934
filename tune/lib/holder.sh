# holder.sh - what lasts as long as a process holds a file open
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153,SC2154 # results are in variables
#
# For run and hold this is the process itself: the kernel takes everything back
# when it ends, however it ends.  For apply it is one in the background:
#
#   apply                          holder
#   starts it                      waits for a line
#   writes who it is to the journal
#   sends what to hold             opens it, answers
#   ends                           becomes "sleep infinity"
#
# So the journal knows each of them: it ends if apply is killed before it has
# told what to hold.  Should the journal be removed nevertheless, a holder is
# found by its name, HOLDER_NAME in place of "sleep", and by its environment
# (stray.sh):
#
#   BLINKTUNE_HOLDS    what it holds, as KNOB=VALUE
#   BLINKTUNE_STATE    the state folder of its journal
#   BLINKTUNE_ROOT     the tree, or nothing: the machine
#
#   holder_start     0; or 1 and WHY: nothing may stay behind here
#   holder_take I    hold what the journal's entry I wants; or 1 and WHY
#   holder_has I     is it held?
#   holder_end       let go of everything

readonly HOLDER_NAME=blinktune-holder

declare -gA held_fds=()
holder_to='' holder_from=''

holder_start()
{
	[[ ! $holder_to ]] || return 0
	process_may_stay || return 1
	coproc HOLDER { holder_loop; }
	# Copies, as bash forgets the others when it ends.
	exec {holder_from}<&"${HOLDER[0]}" {holder_to}>&"${HOLDER[1]}"
	J_HOLDER_PID=$HOLDER_PID
	process_start "$J_HOLDER_PID" || true
	J_HOLDER_START=$START
	journal_note holder "$J_HOLDER_PID" "$J_HOLDER_START"
}

holder_loop()
{
	local knob target value holds='' name

	trap '' HUP INT
	exec 2>/dev/null {LOCK_FD}>&-
	while IFS=$'\t' read -r knob target value; do
		if knob_hold "$knob" "$target" "$value"; then
			name=$knob:$target
			holds+="${holds:+, }${name%:-}=$value"
			echo held
		else
			echo "$WHY"
		fi
	done
	# A child of apply leads no group: setsid goes on as the same process.
	# shellcheck disable=SC2016 # $0 is for the other shell
	[[ ! $holds ]] || BLINKTUNE_HOLDS=$holds BLINKTUNE_STATE=$STATE \
		BLINKTUNE_ROOT=$ROOT exec setsid "$BASH" -c \
		'exec -a "$0" sleep infinity' "$HOLDER_NAME" </dev/null >/dev/null
}

holder_take()
{
	local knob=${J_KNOB[$1]} target=${J_TARGET[$1]} value=${J_WANTED[$1]}

	if [[ $APPLY_ONCE ]]; then
		knob_hold "$knob" "$target" "$value" || return 1
		held_fds[$1]=$HOLD_FD
		return 0
	fi
	printf '%s\t%s\t%s\n' "$knob" "$target" "$value" >&"$holder_to"
	if ! read -r WHY <&"$holder_from"; then
		WHY='the process that was to hold it has ended'
		return 1
	fi
	[[ $WHY == held ]] || return 1
	held_fds[$1]=theirs
}

holder_has()
{
	[[ ! ${held_fds[$1]:-} ]] || return 0
	[[ ${J_STATE[$1]} == 'done' && $J_HOLDER_PID && $J_BOOT == "$BOOT" ]] &&
		process_is "$J_HOLDER_PID" "$J_HOLDER_START"
}

holder_end()
{
	local fd

	for fd in "${held_fds[@]}"; do
		[[ $fd == theirs ]] || exec {fd}>&-
	done
	held_fds=()
	[[ $J_HOLDER_PID && $J_BOOT == "$BOOT" ]] || return 0
	if process_is "$J_HOLDER_PID" "$J_HOLDER_START"; then
		act "kill -KILL $J_HOLDER_PID"
		process_kill "$J_HOLDER_PID" "$J_HOLDER_START"
	fi
}
