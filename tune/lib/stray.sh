# stray.sh - processes of an earlier apply that still hold a setting
#
# A holder (fd_holder.sh) outlives the apply that started it.  If apply is killed and
# its state folder removed, no journal names the holder any more: its setting stays in
# force, and "nothing is applied" would be wrong.  Such a holder is a stray, and
# blinktune applies nothing while there is one.
#
# A holder is recognised by its name and its environment.  It counts only if it is
# for the same tree and belongs to this user, since another user could have started a
# process that looks like a holder.  It is not a stray if the journal of this state
# folder names it, or the journal of the state folder that it was started for.  In the
# second case a profile is applied with another --state, on purpose, and blinktune
# only reports the holder.
#
#   strays_find      after journal_read or journal_clear: STRAY_PID STRAY_START
#                    STRAY_HOLDS STRAY_STATE, and STRAY_KNOWN: empty for a stray,
#                    1 for one that the journal in STRAY_STATE names.  What the
#                    journal of this state folder names is not among them
#   strays_refuse    ends the program if there is a stray
#   strays_describe  STRAY_LINES, a line for each for people
#   strays_print     prints them
#   strays_json      JSON: an array of them
#   stray_end PID    ends that stray; or ends the program: it is none

strays_find()
{
	local file name pid

	STRAY_PID=() STRAY_START=() STRAY_HOLDS=() STRAY_STATE=() STRAY_KNOWN=()
	journal_boot
	for file in /proc/[0-9]*/cmdline; do
		name=''
		IFS= read -r -d '' name <"$file" || continue
		pid=${file#/proc/}
		pid=${pid%/cmdline}
		[[ $name != "$HOLDER_NAME" || ! -O /proc/$pid ]] ||
			stray_look "$pid"
	done
} 2>&"$SILENCE"

# stray_look PID: adds it unless it is none, or has ended.
stray_look()
{
	local word holds='' state='' root='' known=''

	while IFS= read -r -d '' word; do
		case $word in
		BLINKTUNE_HOLDS=*) holds=${word#*=} ;;
		BLINKTUNE_STATE=*) state=${word#*=} ;;
		BLINKTUNE_ROOT=*) root=${word#*=} ;;
		esac
	done <"/proc/$1/environ"
	[[ $holds && $state && $root == "$ROOT" ]] && process_start "$1" ||
		return 0
	! stray_is_named "$1" || return 0
	# A damaged journal ends the program, so read it in a subshell.
	if (stray_is_in_journal "$1" "$state"); then
		known=1
		[[ $state != "$STATE" ]] || return 0
	fi
	STRAY_PID+=("$1") STRAY_START+=("$START") STRAY_KNOWN+=("$known")
	STRAY_HOLDS+=("${holds//[[:cntrl:]]/?}")
	STRAY_STATE+=("${state//[[:cntrl:]]/?}")
}

# stray_is_in_journal PID FOLDER: in a subshell; of that state folder
stray_is_in_journal()
{
	STATE=$2 LOCK_FD=''
	journal_read && stray_is_named "$1"
}

# stray_is_named PID: by the journal read, as the process that began at START?
stray_is_named()
{
	[[ $J_HOLDER_PID == "$1" && $J_HOLDER_START == "$START" &&
		$J_BOOT == "$BOOT" ]]
}

strays_refuse()
{
	local i

	strays_find
	strays_describe
	for i in "${!STRAY_PID[@]}"; do
		[[ ${STRAY_KNOWN[i]} ]] || die "${STRAY_LINES[i]}"
	done
}

strays_describe()
{
	local i line

	STRAY_LINES=()
	for i in "${!STRAY_PID[@]}"; do
		line="process ${STRAY_PID[i]}: it holds ${STRAY_HOLDS[i]}"
		if [[ ${STRAY_KNOWN[i]} ]]; then
			line+=" for a profile applied with --state ${STRAY_STATE[i]}"
		else
			line+=", but no journal in ${STRAY_STATE[i]} names it:"
			line+=" blinktune revert --holder ${STRAY_PID[i]} ends it"
		fi
		STRAY_LINES+=("$line")
	done
}

strays_print()
{
	((${#STRAY_LINES[@]} == 0)) || print '%s\n' "${STRAY_LINES[@]}"
}

strays_json()
{
	local i text list='' comma=''

	for i in "${!STRAY_PID[@]}"; do
		text="\"pid\": ${STRAY_PID[i]}"
		report_fields holds "${STRAY_HOLDS[i]}" \
			state "${STRAY_STATE[i]}"
		report_bool known "${STRAY_KNOWN[i]}"
		list+="$comma{$text}"
		comma=', '
	done
	JSON="[$list]"
}

stray_end()
{
	local i

	strays_find
	for i in "${!STRAY_PID[@]}"; do
		[[ ${STRAY_PID[i]} == "$1" ]] || continue
		[[ ! ${STRAY_KNOWN[i]} ]] || die "process $1: a profile applied" \
			"with --state ${STRAY_STATE[i]} needs it: revert that"
		act "kill -KILL $1"
		process_kill "$1" "${STRAY_START[i]}"
		return 0
	done
	die "process $1: not one that holds a setting for blinktune, is this" \
		"user's, and no journal names"
}
