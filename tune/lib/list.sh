# list.sh - what knobs and profiles there are, and what a knob is about

list_main()
{
	local name

	[[ $# == 0 ]] || misuse "list: $1: no argument is expected"
	knob_list
	profile_list
	if [[ $JSON_WANTED ]]; then
		list_json
		return
	fi
	print 'Knobs:\n'
	for name in "${KNOBS[@]}"; do
		knob_load "$name"
		list_first_line "$name"
		print '  %-24s %s\n' "$name" "$FIRST"
	done
	print 'Profiles:\n'
	for name in "${PROFILES[@]}"; do
		profile_load "$name"
		print '  %-24s %s\n' "$name" "$PROFILE_SUMMARY"
	done
	PROFILE=
}

# list_first_line KNOB: FIRST, what its file's first line says it is
list_first_line()
{
	IFS= read -r FIRST <"$TUNE/knobs/$1.sh"
	FIRST=${FIRST#"# $1.sh - "}
}

list_json()
{
	local name text='' comma=''

	report_json_head list 0
	print '{%s, "knobs": [' "$HEAD"
	for name in "${KNOBS[@]}"; do
		knob_load "$name"
		knob_traits "$name"
		list_first_line "$name"
		report_fields name "$name" summary "$FIRST" \
			lifetime "$LIFETIME" risk "$RISK"
		report_item
	done
	print '\n], "profiles": ['
	comma=
	for name in "${PROFILES[@]}"; do
		profile_load "$name"
		report_fields name "$name" summary "$PROFILE_SUMMARY"
		report_item
	done
	print '\n]}\n'
}

explain_main()
{
	local target

	[[ $# == 1 ]] || misuse 'explain: takes one KNOB; see blinktune list'
	knob_load "$1" || misuse "explain: '$1': $WHY; see blinktune list"
	knob_explain "$1"
	knob_traits "$1"
	knob_targets "$1"
	if [[ $JSON_WANTED ]]; then
		explain_json "$1"
		return
	fi
	print '%s\n' "$EXPLAIN"
	print '\n'
	for target in "${TARGETS[@]}"; do
		explain_target "$1" "$target"
		row_add '' "$1" "$target" "$VALUE" "$SUPPORT${WHY:+: $WHY}"
		knob_values "$1" "$target"
	done
	rows_print
	[[ ! ${VALUES:-} ]] || print '%s\n' "values: $VALUES"
	print '%s\n' "lifetime: $LIFETIME; risk: $RISK"
}

# explain_target KNOB TARGET: VALUE, SUPPORT and WHY
explain_target()
{
	local why

	knob_supported "$1" "$2" || true
	why=$WHY
	knob_get "$1" "$2" || VALUE='?'
	WHY=$why
}

explain_json()
{
	local target text='' comma='' head

	report_json_head explain 0
	head=$HEAD
	report_fields knob "$1" explain "$EXPLAIN" lifetime "$LIFETIME" \
		risk "$RISK"
	print '{%s, %s, "targets": [' "$head" "$text"
	text=
	for target in "${TARGETS[@]}"; do
		explain_target "$1" "$target"
		knob_values "$1" "$target"
		report_fields target "${target#-}" now "$VALUE" \
			support "$SUPPORT" why "$WHY" values "$VALUES"
		report_item
	done
	print '\n]}\n'
}
