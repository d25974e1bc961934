# tool.sh - other programs: ethtool, hdparm, systemctl, ...
#
#   tool_have NAME          is there such a program?
#   tool_run NAME ARG...    runs it; OUT: stdout and stderr together,
#                           STATUS: its exit status, 127 if it is not there,
#                           124 if it took too long.  Returns STATUS.  Its input
#                           is the file TOOL_INPUT, or nothing
#
# For a tree a tool is the tree's own, ROOT/tools/NAME, called with
# BLINKTUNE_ROOT=ROOT: nothing of the machine itself is touched.

# Stopping a unit may take systemd's 90 s; nothing else takes seconds.
readonly TOOL_LIMIT_S=100

declare -gA tool_paths=()

# tool_find NAME: sets TOOL to its path, or returns 1.
tool_find()
{
	local folder folders

	TOOL=${tool_paths[$1]:-}
	[[ ! $TOOL ]] || return 0
	folders=$PATH:/usr/sbin:/sbin
	[[ ! $ROOT ]] || folders=$ROOT/tools
	while [[ $folders ]]; do
		folder=${folders%%:*}
		if [[ $ROOT ]]; then
			folder=$folders folders=''
		elif [[ $folders == *:* ]]; then
			folders=${folders#*:}
		else
			folders=''
		fi
		TOOL=$folder/$1
		if [[ -f $TOOL && -x $TOOL ]]; then
			tool_paths[$1]=$TOOL
			return 0
		fi
	done
	TOOL=''
	return 1
}

tool_have()
{
	tool_find "$1"
}

tool_run()
{
	local name=$1

	shift
	OUT='' STATUS=0
	if ! tool_find "$name"; then
		STATUS=127
		return 127
	fi
	OUT=$(BLINKTUNE_ROOT=$ROOT exec timeout -k 5 "$TOOL_LIMIT_S" \
		"$TOOL" "$@" <"${TOOL_INPUT:-/dev/null}" 2>&1) || STATUS=$?
	return "$STATUS"
}
