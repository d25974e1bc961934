# fd_holder.sh - settings that last as long as a process holds a file open
#
# run and hold open the file themselves: the kernel restores the setting when the
# process ends, however it ends.  apply starts a holder, a process in the
# background:
#
#   apply                               holder
#   starts the holder                   waits for a line
#   writes its process id and start
#   time to the journal
#   sends a file and a value            opens the file, replies
#   ends                                becomes "sleep infinity"
#
# If apply is killed before it has sent a value, the holder ends.  So the journal
# names every holder that holds a file.  If the journal is removed nevertheless,
# stray.sh finds a holder by its name, HOLDER_NAME in place of "sleep", and by its
# environment:
#
#   BLINKTUNE_HOLDS    the settings that it holds, as KNOB=VALUE
#   BLINKTUNE_STATE    the state folder of its journal
#   BLINKTUNE_ROOT     the tree, or nothing: the machine
#
#   fd_holder_start     returns 0; or 1 and WHY where no process may stay behind
#   fd_holder_take I    holds the value of the journal's entry I; or returns 1 and
#                       sets WHY
#   fd_holder_has I     0 if entry I is held
#   fd_holder_end       closes all files, and ends the holder

readonly HOLDER_NAME=blinktune-holder

declare -gA held_fds=()
holder_to='' holder_from=''

fd_holder_start()
{
	[[ ! $holder_to ]] || return 0
	process_may_stay || return 1
	coproc HOLDER { fd_holder_loop; }
	# Copy the descriptors, since bash forgets those of a coproc when that ends.
	exec {holder_from}<&"${HOLDER[0]}" {holder_to}>&"${HOLDER[1]}"
	J_HOLDER_PID=$HOLDER_PID
	process_start "$J_HOLDER_PID" || true
	J_HOLDER_START=$START
	journal_note holder "$J_HOLDER_PID" "$J_HOLDER_START"
}

fd_holder_loop()
{
	local knob target value holds='' name

	trap '' HUP INT
	exec 2>/dev/null
	locks_close
	while IFS=$'\t' read -r knob target value; do
		if knob_hold "$knob" "$target" "$value"; then
			name=$knob:$target
			holds+="${holds:+, }${name%:-}=$value"
			echo held
		else
			echo "$WHY"
		fi
	done
	# A child of apply leads no process group, so setsid stays the same process.
	# shellcheck disable=SC2016 # $0 is for the other shell
	[[ ! $holds ]] || BLINKTUNE_HOLDS=$holds BLINKTUNE_STATE=$STATE \
		BLINKTUNE_ROOT=$ROOT exec setsid "$BASH" -c \
		'exec -a "$0" sleep infinity' "$HOLDER_NAME" </dev/null >/dev/null
}

fd_holder_take()
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

fd_holder_has()
{
	[[ ! ${held_fds[$1]:-} ]] || return 0
	[[ ${J_STATE[$1]} == 'done' && $J_HOLDER_PID && $J_BOOT == "$BOOT" ]] &&
		process_is "$J_HOLDER_PID" "$J_HOLDER_START"
}

fd_holder_end()
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
