# prepare.sh - the first phase of apply on many nodes: find out on every node
# whether apply could succeed, before any node changes something

prepare_main()
{
	local status=0

	one_profile prepare "$@"
	FILE_EXACT=1
	profile_load "$1"
	if journal_read && [[ $J_HASH != "$PROFILE_HASH" ]] &&
		! apply_is_undone; then
		die "profile '$J_PROFILE' is active: blinktune revert first"
	fi
	strays_refuse
	plan_make
	apply_report_lacking
	if plan_lacks; then
		complain "${E_KNOB[LACKS]}: required, but ${E_SUPPORT[LACKS]}:" \
			"${E_WHY[LACKS]}"
		status=$STATUS_REFUSED
	fi
	report_results "$status"
	return "$status"
}
