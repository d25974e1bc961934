# knob.sh - the knobs, a file each in tune/knobs
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2153,SC2154 # results are in variables
#
# A file NAME.sh defines, with underscores for the dashes of its name:
#
#   knob_NAME_targets [NAME...]   sets TARGETS to the instances (CPU policies,
#                                 disks, interfaces), or (-).  Instances such as
#                                 the loopback or a loop device are included only
#                                 if NAME names them
#   knob_NAME_supported TARGET    returns 0; or 1 with SUPPORT=unsupported|denied
#                                 and WHY.  A function that has to read the value
#                                 for that leaves it in VALUE, and sets READ=1
#   knob_NAME_get TARGET          VALUE, one line, canonical; or 1 with WHY
#   knob_NAME_set TARGET VALUE    0; or 1 with WHY, and SUPPORT=unsupported if
#                                 that shows only now
#   knob_NAME_values TARGET       VALUES: what may be wanted
#   knob_NAME_act TARGET VALUE    ACT: set, as a command that a reader may type
#   knob_NAME_goal TARGET NOW WANTED
#                                 VALUE: what get says once NOW has been set to
#                                 WANTED, for values that may be wanted in part
#                                 ("rx-usecs 0", "max"); or 1 with WHY.  NOW is
#                                 as wanted if that is NOW.  A knob without this
#                                 function is as wanted if NOW is WANTED
#   knob_NAME_explain             EXPLAIN: what it is and what it costs or gains
#   knob_NAME_lifetime            boot | device | holder: the value is kept by
#                                 the running kernel, the device, or a process
#   knob_NAME_risk                none | cutoff | data: the deadman undoes a
#                                 cutoff knob unless it is confirmed
#   knob_NAME_order               00 to 99: apply sets lower ones first (50)
#
# A knob with the lifetime "holder" has this function instead of set:
#
#   knob_NAME_hold TARGET VALUE   HOLD_FD: open as long as the value is to last
#                                 (file_hold); or 1 with WHY
#
# These functions do not echo, write the journal or undo.  This file has:
#
#   knob_list                     KNOBS=(...): all there are
#   knob_load NAME                0; or 1 with WHY
#   knob_goal NAME TARGET NOW WANTED
#   knob_targets NAME [TARGET...] ... knob_act NAME TARGET VALUE
#                                 call the functions above
#   knob_traits NAME              LIFETIME RISK ORDER

declare -gA knob_loaded=() knob_goals=()

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
	[[ ! $1 || ! ${knob_loaded[$1]:-} ]] || return 0
	if [[ ! $1 =~ ^[a-z][a-z0-9-]*$ || ! -f $TUNE/knobs/$1.sh ]]; then
		WHY='no such knob'
		return 1
	fi
	# shellcheck source=/dev/null
	. "$TUNE/knobs/$1.sh"
	knob_loaded[$1]=1
	! declare -F "knob_${1//-/_}_goal" >/dev/null || knob_goals[$1]=1
}

knob_targets()
{
	TARGETS=()
	"knob_${1//-/_}_targets" "${@:2}"
}

knob_supported()
{
	SUPPORT=supported WHY='' READ=''
	"knob_${1//-/_}_supported" "$2"
}

knob_get()
{
	VALUE='' WHY=''
	"knob_${1//-/_}_get" "$2"
}

knob_goal()
{
	VALUE=$4 WHY=''
	[[ ! ${knob_goals[$1]:-} ]] || "knob_${1//-/_}_goal" "$2" "$3" "$4"
}

knob_set()
{
	WHY='' SUPPORT=''
	"knob_${1//-/_}_set" "$2" "$3"
}

knob_hold()
{
	HOLD_FD='' WHY=''
	"knob_${1//-/_}_hold" "$2" "$3"
}

knob_values()
{
	VALUES=''
	"knob_${1//-/_}_values" "$2"
}

knob_act()
{
	ACT=''
	"knob_${1//-/_}_act" "$2" "$3"
}

knob_explain()
{
	EXPLAIN=''
	"knob_${1//-/_}_explain"
}

knob_traits()
{
	local name=knob_${1//-/_}
	local -n lifetime=${name}_lifetime risk=${name}_risk order=${name}_order

	LIFETIME=${lifetime:-boot}
	RISK=${risk:-none}
	ORDER=${order:-50}
}
