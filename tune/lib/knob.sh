# knob.sh - the knobs, a file each in tune/knobs
#
# A file NAME.sh defines variables and functions, with underscores for the dashes
# of its name.  The variables:
#
#   knob_NAME_explain             the text that says what it is and what it costs
#                                 or gains
#   knob_NAME_values              what may be wanted, for all targets alike
#   knob_NAME_file                the path of the setting, with the word TARGET
#                                 where the target's name stands
#   knob_NAME_range               LOW-HIGH, the numbers that may be wanted
#   knob_NAME_targets, knob_NAME_supported
#                                 arrays, the command that does the work of the
#                                 function of this name
#   knob_NAME_lifetime            boot | device | holder: the value is kept by
#                                 the running kernel (this is the default), the
#                                 device, or a process
#   knob_NAME_risk                none | cutoff | data: the deadman undoes a
#                                 cutoff knob unless it is confirmed (none)
#   knob_NAME_order               00 to 99: apply sets lower ones first (50)
#
# The functions; in parentheses, what is done for a knob without this function:
#
#   knob_NAME_targets [NAME...]   sets TARGETS to the instances (CPU policies,
#                                 disks, interfaces), or (-).  Instances such as
#                                 the loopback or a loop device are included only
#                                 if NAME names them  (TARGETS is (-))
#   knob_NAME_find TARGET         FILE: the path of the setting  (that of
#                                 knob_NAME_file).  It is called before each of
#                                 the functions below
#   knob_NAME_supported TARGET    returns 0; or 1 with SUPPORT=unsupported|denied
#                                 and WHY.  A function that has to read the value
#                                 for that leaves it in VALUE, and sets READ=1
#                                 (FILE is there and may be written)
#   knob_NAME_get TARGET          VALUE, one line, canonical; or 1 with WHY
#                                 (the first line of FILE)
#   knob_NAME_set TARGET VALUE    0; or 1 with WHY, and SUPPORT=unsupported if
#                                 that shows only now  (FILE is written)
#   knob_NAME_values TARGET       VALUES  (the variable)
#   knob_NAME_act TARGET VALUE    ACT: set, as a command that a reader may type
#                                 (echo VALUE >FILE)
#   knob_NAME_goal TARGET NOW WANTED
#                                 VALUE, which is WANTED when it is called:
#                                 what get says once NOW has been set to
#                                 WANTED, for values that may be wanted in part
#                                 ("rx-usecs 0", "max"); or 1 with WHY.  NOW is
#                                 as wanted if that is NOW  (WANTED, checked by
#                                 knob_NAME_range)
#   knob_NAME_explain             EXPLAIN  (the variable)
#   knob_NAME_hold TARGET VALUE   for a knob with the lifetime "holder", instead
#                                 of set: HOLD_FD, open as long as the value is
#                                 to last (file_hold); or 1 with WHY
#
# These functions do not echo, write the journal or undo.  This file has:
#
#   knob_list                     KNOBS=(...): all there are
#   knob_load NAME                0; or 1 with WHY
#   knob_goal NAME TARGET NOW WANTED
#   knob_targets NAME [TARGET...] ... knob_act NAME TARGET VALUE
#                                 call the functions above
#   knob_traits NAME              LIFETIME RISK ORDER

. "$TUNE/lib/setting.sh"

# knob_own[NAME.PART]: the knob has this function.
declare -gA knob_loaded=() knob_own=()

knob_list()
{
	local file

	KNOBS=()
	for file in "$TUNE"/knobs/*.sh; do
		file=${file##*/}
		KNOBS+=("${file%.sh}")
	done
}

knob_load()
{
	local part

	[[ ! $1 || ! ${knob_loaded[$1]:-} ]] || return 0
	if [[ ! $1 =~ ^[a-z][a-z0-9-]*$ || ! -f $TUNE/knobs/$1.sh ]]; then
		WHY='no such knob'
		return 1
	fi
	# shellcheck source=/dev/null
	. "$TUNE/knobs/$1.sh"
	knob_loaded[$1]=1
	for part in targets find supported get goal set values act explain; do
		! declare -F "knob_${1//-/_}_$part" >/dev/null ||
			knob_own[$1.$part]=1
	done
}

# knob_call PART NAME [ARGUMENT...]: the knob's function, or the default
knob_call()
{
	local name=knob_${2//-/_}
	local path=${name}_file

	FILE=${!path-}
	FILE=${FILE//TARGET/${3-}}
	[[ ! ${knob_own[$2.find]:-} ]] || "${name}_find" "${3-}"
	if [[ ${knob_own[$2.$1]:-} ]]; then
		"${name}_$1" "${@:3}"
	else
		"knob_default_$1" "$name" "${@:3}"
	fi
}

# The defaults take the knob's name with underscores before their arguments.
knob_default_targets()
{
	local -n command=$1_targets

	TARGETS=(-)
	[[ ! ${command-} ]] || "${command[@]}" "${@:2}"
}

knob_default_supported()
{
	local -n command=$1_supported

	if [[ ${command-} ]]; then
		"${command[@]}" "$2"
	else
		setting_supported "$FILE"
	fi
}

knob_default_get()
{
	file_read "$FILE"
}

knob_default_goal()
{
	local range=$1_range

	range=${!range-}
	[[ ! $range ]] || setting_goal "$4" "${range%-*}" "${range#*-}"
}

knob_default_set()
{
	file_write "$FILE" "$3"
}

knob_default_values()
{
	local values=$1_values

	VALUES=${!values}
}

knob_default_act()
{
	ACT="echo $3 >$FILE"
}

# The text begins on a line of its own.
knob_default_explain()
{
	local explain=$1_explain

	EXPLAIN=${!explain#$'\n'}
}

knob_targets()
{
	TARGETS=()
	knob_call targets "$@"
}

knob_supported()
{
	SUPPORT=supported WHY='' READ=''
	knob_call supported "$@"
}

knob_get()
{
	VALUE='' WHY=''
	knob_call get "$@"
}

knob_goal()
{
	VALUE=$4 WHY=''
	knob_call goal "$@"
}

knob_set()
{
	WHY='' SUPPORT=''
	knob_call set "$@"
}

knob_hold()
{
	HOLD_FD='' WHY=''
	"knob_${1//-/_}_hold" "$2" "$3"
}

knob_values()
{
	VALUES=''
	knob_call values "$@"
}

knob_act()
{
	ACT=''
	knob_call act "$@"
}

knob_explain()
{
	EXPLAIN=''
	knob_call explain "$@"
}

knob_traits()
{
	local name=knob_${1//-/_}
	local -n lifetime=${name}_lifetime risk=${name}_risk order=${name}_order

	LIFETIME=${lifetime:-boot}
	RISK=${risk:-none}
	ORDER=${order:-50}
}
