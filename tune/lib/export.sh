# export.sh - a profile for the tuned daemon
#
# Settings without a plug-in of tuned become comments, so that no reader believes
# that tuned sets them.  Lines about only some targets become comments, too, since
# tuned does not know these names of targets.

export_main()
{
	local file=''

	[[ ${1:-} == --tuned && $# -ge 2 && $# -le 3 ]] ||
		misuse 'export: takes --tuned PROFILE [DIR]'
	profile_load "$2"
	export_text
	if [[ ! ${3:-} ]]; then
		print '%s' "$TEXT"
		return
	fi
	mkdir -p -- "$3" 2>&"$SILENCE" || die "$3: can't be made"
	file=$3/tuned.conf
	{ printf '%s' "$TEXT" >"$file"; } 2>&"$SILENCE" ||
		die "$file: can't be written"
}

# export_text: sets TEXT to the contents of the file
export_text()
{
	local -A sections=() seen=()
	local line section rest=''

	# Later lines win, so they are read first.
	for ((line = ${#LINE_KNOB[@]} - 1; line >= 0; line--)); do
		[[ ! ${seen[${LINE_KNOB[line]}:${LINE_GLOB[line]}]:-} ]] || continue
		seen[${LINE_KNOB[line]}:${LINE_GLOB[line]}]=1
		[[ ${LINE_VALUE[line]} != keep ]] || continue
		export_line "${LINE_KNOB[line]}" "${LINE_GLOB[line]}" \
			"${LINE_VALUE[line]}"
		if [[ $SECTION ]]; then
			sections[$SECTION]="$ENTRY"$'\n'"${sections[$SECTION]:-}"
		else
			rest="# $ENTRY"$'\n'$rest
		fi
	done
	TEXT="[main]"$'\n'"summary=${PROFILE_SUMMARY:-$PROFILE}"$'\n'
	for section in cpu vm sysctl disk net; do
		[[ ! ${sections[$section]:-} ]] ||
			TEXT+=$'\n'"[$section]"$'\n'${sections[$section]}
	done
	[[ ! $rest ]] || TEXT+=$'\n''# Not for tuned:'$'\n'$rest
}

# export_line KNOB GLOB VALUE: SECTION and ENTRY
export_line()
{
	local knob=$1 glob=$2 value=$3

	SECTION=sysctl ENTRY="$knob${glob:+:$glob} $value"
	case $knob:$glob in
	cpu-governor:'*') SECTION=cpu ENTRY="governor=$value" ;;
	c-states:'*') SECTION=cpu ENTRY="force_latency=$value" ;;
	transparent-huge-pages:enabled)
		SECTION=vm ENTRY="transparent_hugepages=$value"
		;;
	transparent-huge-pages:defrag)
		SECTION=vm ENTRY="transparent_hugepage.defrag=$value"
		;;
	swappiness:*) ENTRY="vm.swappiness=$value" ;;
	numa-balancing:*) ENTRY="kernel.numa_balancing=$value" ;;
	nmi-watchdog:*) ENTRY="kernel.nmi_watchdog=$value" ;;
	stat-interval:*) ENTRY="vm.stat_interval=$value" ;;
	timer-migration:*) ENTRY="kernel.timer_migration=$value" ;;
	busy-poll:*[*?[]* | socket-buffers:*[*?[]*) SECTION= ;;
	busy-poll:* | socket-buffers:*) ENTRY="net.core.$glob=$value" ;;
	io-scheduler:'*') SECTION=disk ENTRY="elevator=$value" ;;
	read-ahead:'*') SECTION=disk ENTRY="readahead=$value" ;;
	mtu:'*') SECTION=net ENTRY="mtu=$value" ;;
	tx-queue-length:'*') SECTION=net ENTRY="txqueuelen=$value" ;;
	*) SECTION= ;;
	esac
}
