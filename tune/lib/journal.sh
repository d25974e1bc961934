# journal.sh - the write-ahead journal, from which changes are reverted
#
# STATE/journal exists exactly as long as a setting may be changed.  It is text.  A
# line consists of fields with tabs between them; the last field is ".", so that a
# torn line is recognised.  In a field \\ \t \n \r stand for these characters.
#
#   blinktune-journal  1          the version of this format
#   id        EPOCH.PID           of this apply
#   boot      UUID                /proc/sys/kernel/random/boot_id
#   version   1                   kept for older programs, which wanted one
#   root      FOLDER              the tree; empty for the machine itself
#   profile   NAME HASH
#   entry     SEQ KNOB TARGET LIFETIME RISK NEED WANTED ORIGINAL
#   ready     CRC                 of all above, by cksum
#
# Up to this line the journal is written and synced under another name, and then
# renamed: either all originals are in the journal, or nothing has been changed.
# After that, lines are only appended, without a sync: when blinktune is killed, the
# kernel still writes them; and after a power cut the machine has booted again.
#
#   doing     SEQ                 entry SEQ is about to be set or restored
#   done      SEQ RESULT VALUE    that is done, and VALUE was read back
#   holder    PID START           the process that holds files open
#                                 (fd_holder.sh), and its start time
#   deadman   PID START           the process that undoes settings that could
#                                 cut the operator off (deadman.sh)
#   confirmed                     the deadman need not undo them
#   complete                      apply, or a revert that had to leave
#                                 something, has finished, and has read all
#                                 values once more
#   changing                      another apply or revert has begun after that
#
# In the end the file is renamed to journal.last.
#
# A value that is not the original was set by blinktune (ours) or by something else
# (foreign).  The last line of its entry decides:
#
#   done, applied or clamped   ours if the value is the VALUE of that line; else
#                              foreign, which is a conflict
#   doing without a done       ours, whatever the value is: the writer was killed
#   no line, or one that says that it was not set (already, failed, denied)
#                              ours, whatever the value is, if an entry was being
#                              changed (doing) and no "complete" follows: setting
#                              that entry may have changed this one (a service
#                              that needed another, a driver that reset its
#                              device), and no later line shows it.
#                              Else foreign, and it is left alone
#   done, reverted             foreign
#
# So a foreign change is taken for ours only if blinktune was killed at work and had
# not read that value after it was set.  Settings that change others come before
# those (knob_NAME_order), so that an entry noted as applied does not change until
# "complete".
#
#   journal_lock               takes the lock; makes the state folder, and checks
#                              it (state.sh)
#   journal_read               returns 0 and sets J_*; or 1 if there is no journal;
#                              ends the program if the journal is damaged
#   journal_begin              writes a new journal from the plan's entries (E_*)
#   journal_note WORD FIELD... appends a line; if that fails, says so once, sets
#                              J_LOST, and nothing is appended any more
#   journal_add WORD FIELD...  collects a line, for journal_write to append
#   journal_write              appends the collected lines
#   journal_check_root         ends the program if the journal has another ROOT
#   journal_end                puts the journal away: nothing is changed any more

readonly JOURNAL_VERSION=1
readonly JOURNAL_BYTES_MAX=$((4 << 20))
# A tool that outlives a killed blinktune keeps the lock until it is done.
LOCK_WAIT_S=5

LOCK_FD=

journal_lock()
{
	[[ ! $LOCK_FD ]] || return 0
	state_make
	state_open_lock
	flock -w $LOCK_WAIT_S "$LOCK_FD" ||
		die "$STATE: another blinktune is at work there"
}

# journal_escape TEXT: ESCAPED
journal_escape()
{
	ESCAPED=${1//\\/\\\\}
	ESCAPED=${ESCAPED//$'\t'/\\t}
	ESCAPED=${ESCAPED//$'\n'/\\n}
	ESCAPED=${ESCAPED//$'\r'/\\r}
}

# journal_line FIELD...: LINE
journal_line()
{
	local field

	LINE=''
	for field in "$@"; do
		journal_escape "$field"
		LINE+=$ESCAPED$'\t'
	done
	LINE+=.
}

journal_note()
{
	journal_line "$@"
	journal_append "$LINE"$'\n'
}

# A part of a line may have been written, and no other may follow that: the next
# blinktune cuts it off.  bash says why a write has failed only on stderr, and so
# that of a second try is read, which adds a tab to that part at most.
journal_append()
{
	[[ ! $J_LOST ]] || return 0
	! { printf '%s' "$1" >>"$STATE/journal"; } 2>&"$SILENCE" || return 0
	J_LOST=1
	WHY=$( { printf '\t' >>"$STATE/journal"; } 2>&1) || true
	WHY=${WHY##*: }
	complain "$STATE/journal: cannot be written: ${WHY:-a write has failed}"
}

NOTES=

journal_add()
{
	journal_line "$@"
	NOTES+=$LINE$'\n'
}

journal_write()
{
	[[ $NOTES ]] || return 0
	journal_append "$NOTES"
	NOTES=
}

journal_boot()
{
	local VALUE='' WHY=''

	file_read /proc/sys/kernel/random/boot_id || true
	BOOT=${VALUE:-unknown}
}

journal_begin()
{
	local text i sum

	journal_boot
	J_ID=$EPOCHREALTIME.$$
	journal_line blinktune-journal $JOURNAL_VERSION && text=$LINE$'\n'
	journal_line id "$J_ID" && text+=$LINE$'\n'
	journal_line boot "$BOOT" && text+=$LINE$'\n'
	journal_line version 1 && text+=$LINE$'\n'
	journal_line root "$ROOT" && text+=$LINE$'\n'
	journal_line profile "$PROFILE" "$PROFILE_HASH" && text+=$LINE$'\n'
	for i in "${!J_KNOB[@]}"; do
		journal_line entry "$i" "${J_KNOB[i]}" "${J_TARGET[i]}" \
			"${J_LIFETIME[i]}" "${J_RISK[i]}" "${J_NEED[i]}" \
			"${J_WANTED[i]}" "${J_ORIGINAL[i]}"
		text+=$LINE$'\n'
	done
	sum=$(printf '%s' "$text" | cksum)
	journal_line ready "${sum// /-}"
	if ! state_write journal.new "$text$LINE"$'\n' ||
		! state_try sync "$STATE/journal.new" ||
		! state_try mv -fT "$STATE/journal.new" "$STATE/journal" ||
		! state_try sync "$STATE"; then
		rm -f -- "$STATE/journal.new" 2>&"$SILENCE" || true
		die "$STATE: the journal can't be written: $WHY:" \
			'nothing is changed'
	fi
	J_BOOT=$BOOT J_PROFILE=$PROFILE J_HASH=$PROFILE_HASH
}

journal_check_root()
{
	[[ $J_ROOT == "$ROOT" ]] || die \
		"$STATE/journal: it is of ${J_ROOT:-the machine}, not of ${ROOT:-it}"
}

journal_end()
{
	state_try mv -fT "$STATE/journal" "$STATE/journal.last" ||
		die "$STATE: the journal can't be put away: $WHY"
}

journal_damaged()
{
	die "$STATE/journal: damaged, $1: nothing is done"
}

# The entries of a plan or a journal, and their results
journal_clear()
{
	J_KNOB=() J_TARGET=() J_LIFETIME=() J_RISK=() J_NEED=() J_WANTED=()
	J_ORIGINAL=() J_STATE=() J_RESULT=() J_VALUE=()
	J_ID='' J_BOOT='' J_VERSION='' J_ROOT='' J_PROFILE='' J_HASH=''
	J_HOLDER_PID='' J_HOLDER_START='' J_DEADMAN_PID='' J_DEADMAN_START=''
	J_CONFIRMED='' J_COMPLETE='' J_CHANGING='' J_TORN_BYTES='' J_LOST=''
}

journal_read()
{
	local text='' lines line number=0 ready='' head=''

	journal_clear
	[[ $LOCK_FD ]] || state_check
	[[ ! -d $STATE || -x $STATE ]] || die \
		"$STATE: cannot read the state folder: Permission denied: this needs root"
	[[ -e $STATE/journal ]] || return 1
	[[ -r $STATE/journal ]] || die \
		"$STATE/journal: cannot be read: Permission denied: this needs root"
	IFS= read -r -N $((JOURNAL_BYTES_MAX + 1)) text <"$STATE/journal" || true
	((${#text} <= JOURNAL_BYTES_MAX)) ||
		journal_damaged "longer than $JOURNAL_BYTES_MAX bytes"
	journal_cut "$text"
	mapfile -t lines <<<"${text%$'\n'}"
	for line in "${lines[@]}"; do
		number=$((number + 1))
		if [[ ! $ready ]]; then
			[[ $line != ready$'\t'* ]] || ready=$number
			[[ $ready ]] || head+=$line$'\n'
		fi
		journal_parse "$number" "$ready" "$line"
	done
	[[ $ready ]] || journal_damaged 'its beginning is not whole'
	journal_check_sum "$head" "${lines[ready - 1]}"
}

# journal_cut TEXT: sets the caller's text to TEXT without what follows the last
# newline: its writer was killed while it wrote that, so the announced action had not
# begun.
journal_cut()
{
	[[ $1 != *$'\n' ]] || return 0
	text=${1%"${1##*$'\n'}"}
	[[ $text ]] || journal_damaged 'not one whole line'
	J_TORN_BYTES=${#text}
}

journal_check_sum()
{
	local sum

	sum=$(printf '%s' "$1" | cksum)
	[[ $2 == "ready"$'\t'"${sum// /-}"$'\t.' ]] ||
		journal_damaged 'the sum of its beginning is wrong'
}

# journal_parse NUMBER READY LINE
journal_parse()
{
	local number=$1 rest=$3 fields=() field count

	[[ $rest == *$'\t.' ]] || journal_damaged "line $number is torn"
	rest=${rest%.}
	# read -a would take empty fields as none.
	while [[ $rest ]]; do
		printf -v field '%b' "${rest%%$'\t'*}"
		journal_escape "$field"
		[[ $ESCAPED == "${rest%%$'\t'*}" ]] ||
			journal_damaged "line $number has an unknown escape"
		fields+=("$field")
		rest=${rest#*$'\t'}
	done
	count=${#fields[@]}
	case $number:${2:+ready}:$count:${fields[0]} in
	1::2:blinktune-journal)
		[[ ${fields[1]} == "$JOURNAL_VERSION" ]] || die \
			"$STATE/journal: version ${fields[1]:0:20}, not $JOURNAL_VERSION"
		;;
	1:*) journal_damaged 'its first line is not of a journal' ;;
	2::2:id) J_ID=${fields[1]} ;;
	3::2:boot) J_BOOT=${fields[1]} ;;
	4::2:version) J_VERSION=${fields[1]} ;;
	5::2:root) J_ROOT=${fields[1]} ;;
	6::3:profile) J_PROFILE=${fields[1]} J_HASH=${fields[2]} ;;
	*::9:entry) journal_parse_entry "$number" "${fields[@]:1}" ;;
	*:ready:2:ready) journal_check_head ;;
	*:ready:2:doing | *:ready:4:done)
		journal_parse_progress "$number" "${fields[@]}"
		;;
	*:ready:3:holder)
		journal_check_process "$number" "${fields[@]:1}"
		J_HOLDER_PID=${fields[1]} J_HOLDER_START=${fields[2]}
		;;
	*:ready:3:deadman)
		journal_check_process "$number" "${fields[@]:1}"
		J_DEADMAN_PID=${fields[1]} J_DEADMAN_START=${fields[2]}
		J_CONFIRMED=
		;;
	*:ready:1:confirmed) J_CONFIRMED=1 ;;
	*:ready:1:complete) J_COMPLETE=1 ;;
	*:ready:1:changing) J_COMPLETE='' J_CHANGING=1 ;;
	*) journal_damaged "line $number is none of ours" ;;
	esac
}

# Checks those lines above the entries that are used later.
journal_check_head()
{
	local number='(0|[1-9][0-9]*)'

	[[ $J_ID =~ ^[1-9][0-9]{0,11}\.[0-9]{6}\.[1-9][0-9]{0,6}$ ]] ||
		journal_damaged "its id is '${J_ID:0:20}', not TIME.PID"
	[[ $J_BOOT && (! $J_ROOT || $J_ROOT == /*) ]] ||
		journal_damaged 'it names no boot, or a relative root'
	[[ $J_PROFILE && $J_HASH =~ ^$number-$number$ ]] ||
		journal_damaged 'it names no profile with its sum'
}

# journal_check_process NUMBER PID START: START is empty if the process had ended
# before its start time could be read.
journal_check_process()
{
	if ! number_is "$2" 2 "$PROCESS_MAX" ||
		{ [[ $3 ]] && ! number_is "$3" 0 "$NUMBER_MAX"; }; then
		journal_damaged "line $1 names no process"
	fi
}

# journal_parse_entry NUMBER SEQ KNOB TARGET LIFETIME RISK NEED WANTED ORIGINAL
journal_parse_entry()
{
	[[ $2 == "${#J_KNOB[@]}" ]] || journal_damaged "line $1 is out of order"
	# Knob and target become parts of paths.
	[[ $3 =~ ^[a-z][a-z0-9-]*$ ]] ||
		journal_damaged "line $1 names no knob"
	[[ $4 && $4 != */* && $4 != . && $4 != .. &&
		$4 != *[[:space:][:cntrl:]]* ]] ||
		journal_damaged "line $1 names no target"
	[[ $5:$6:$7 =~ ^(boot|device|holder):(none|cutoff|data):(set|try)$ ]] ||
		journal_damaged "line $1 has an unknown word"
	J_KNOB+=("$3") J_TARGET+=("$4") J_LIFETIME+=("$5") J_RISK+=("$6")
	J_NEED+=("$7") J_WANTED+=("$8") J_ORIGINAL+=("$9")
	J_STATE+=('') J_RESULT+=('') J_VALUE+=('')
}

# journal_parse_progress NUMBER doing|done SEQ [RESULT VALUE]
journal_parse_progress()
{
	local seq=$3

	number_is "$seq" 0 $((${#J_KNOB[@]} - 1)) ||
		journal_damaged "line $1 is about no entry"
	J_STATE[seq]=$2
	if [[ $2 == doing ]]; then
		J_CHANGING=1
		return 0
	fi
	case $4 in
	applied | already | clamped | denied | failed | reverted | unsupported) ;;
	*) journal_damaged "line $1 has an unknown result" ;;
	esac
	J_RESULT[seq]=$4 J_VALUE[seq]=$5
}

# Prepares to append lines to a journal that was read.
journal_mend()
{
	[[ $J_TORN_BYTES ]] || return 0
	truncate -s "$J_TORN_BYTES" "$STATE/journal"
	J_TORN_BYTES=
}
