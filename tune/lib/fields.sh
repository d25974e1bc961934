# fields.sh - values that are several settings in one: "rx-usecs 3 rx-frames 0"
#
# A network card's coalescing, rings and offloads are sets of fields that its
# driver offers in part.  The value that is in force names all of them; a wanted
# one may name a few, and then only these are meant.  A field written "NAME?" is
# wanted where the driver has it.

# fields_split STRING: FIELD[name]=value, and FIELD_NAMES in their order; 1 with
# WHY when the words are not pairs.
fields_split()
{
	local -a words
	local i

	declare -gA FIELD=()
	declare -ga FIELD_NAMES=()
	read -r -a words <<<"$1"
	((${#words[@]} && ${#words[@]} % 2 == 0)) ||
		why_not "'$1' is not pairs of a name and a value" || return 1
	for ((i = 0; i < ${#words[@]}; i += 2)); do
		FIELD_NAMES+=("${words[i]}")
		FIELD["${words[i]}"]=${words[i + 1]}
	done
}

# fields_join: VALUE, of what fields_split has set
fields_join()
{
	local name

	VALUE=
	for name in "${FIELD_NAMES[@]}"; do
		VALUE+="${VALUE:+ }$name ${FIELD[$name]}"
	done
}

# fields_overlay NOW WANTED: VALUE=all fields of NOW, those of WANTED replaced; 1
# with WHY if one is not there.
fields_overlay()
{
	local name value
	local -A wanted_value=()
	local -a names

	fields_split "$2" || return 1
	names=("${FIELD_NAMES[@]}")
	for name in "${names[@]}"; do
		wanted_value["$name"]=${FIELD[$name]}
	done
	fields_split "$1" || return 1
	for name in "${names[@]}"; do
		value=${wanted_value[$name]}
		if [ -n "${FIELD[${name%\?}]+there}" ]; then
			FIELD["${name%\?}"]=$value
		elif [[ $name != *\? ]]; then
			why_not "the driver has no $name" || return 1
		fi
	done
	fields_join
}

# fields_differing NOW GOAL: DIFFERING=(NAME VALUE ...), the fields of GOAL that
# have another value in NOW, or none.
fields_differing()
{
	local name
	local -A now_value=()

	DIFFERING=()
	fields_split "$1" || return 1
	for name in "${FIELD_NAMES[@]}"; do
		now_value["$name"]=${FIELD[$name]}
	done
	fields_split "$2" || return 1
	for name in "${FIELD_NAMES[@]}"; do
		[ "${now_value[$name]-}" = "${FIELD[$name]}" ] ||
			DIFFERING+=("$name" "${FIELD[$name]}")
	done
}
