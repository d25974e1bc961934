# profile.sh - profiles: which knobs are to have which values, and why
#
#   # comment
#   summary  one line
#   include  NAME                    its lines first; later lines win
#   set KNOB[:TARGETGLOB] VALUE      required
#   try KNOB[:TARGETGLOB] VALUE      optional: reported if it can't be had
#     because  one line              about the set or try above
#     source   one line
#
# VALUE is the rest of the line; "keep" means: leave it.  A profile is named by
# NAME in tune/profiles, a path (with a slash; in an include it begins at the
# including file), or KNOB[:TARGETGLOB]=VALUE[,KNOB=VALUE...] itself.
#
# profile_load WORD sets PROFILE, PROFILE_SUMMARY, PROFILE_HASH and, an element
# for each line in order, LINE_NEED (set, try), LINE_KNOB, LINE_GLOB, LINE_VALUE,
# LINE_BECAUSE, LINE_SOURCE; or it ends the program.

readonly PROFILE_LINES_MAX=5000
readonly PROFILE_DEPTH_MAX=8

profile_path()
{
	if [[ $1 == */* ]]; then
		PROFILE_PATH=$1
		[[ $1 == /* || ! ${2:-} ]] || PROFILE_PATH=$2/$1
	elif [[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]]; then
		PROFILE_PATH=$TUNE/profiles/$1.profile
	else
		die "profile '$1': neither a name, nor a path, nor KNOB=VALUE"
	fi
}

profile_list()
{
	local file

	PROFILES=()
	for file in "$TUNE"/profiles/*.profile; do
		file=${file##*/}
		PROFILES+=("${file%.profile}")
	done
}

profile_load()
{
	local text

	PROFILE=$1 PROFILE_SUMMARY=''
	LINE_NEED=() LINE_KNOB=() LINE_GLOB=() LINE_VALUE=()
	LINE_BECAUSE=() LINE_SOURCE=()
	[[ $1 && $1 != *[[:cntrl:]]* ]] || die "profile: no name"
	if [[ $1 =~ ^[a-z][a-z0-9-]*(:[^=,]*)?= ]]; then
		profile_parse_words "$1"
	else
		profile_path "$1"
		[[ -f $PROFILE_PATH ]] || ! knob_load "$1" || die \
			"profile '$1': is a knob, and needs a value: $1=VALUE"
		profile_parse_file "$PROFILE_PATH" 1
	fi
	printf -v text '%s\t' "${LINE_NEED[@]}" "${LINE_KNOB[@]}" \
		"${LINE_GLOB[@]}" "${LINE_VALUE[@]}"
	PROFILE_HASH=$(cksum <<<"$text")
	PROFILE_HASH=${PROFILE_HASH// /-}
}

# profile_add WHERE NEED KNOB[:GLOB] VALUE
profile_add()
{
	local where=$1 knob=${3%%:*} glob='*'

	[[ $3 != *:* ]] || glob=${3#*:}
	knob_load "$knob" || die "$where: knob '$knob': $WHY"
	[[ $4 ]] || die "$where: knob '$knob': no value"
	[[ $glob && $glob != *[[:space:]]* ]] ||
		die "$where: knob '$knob': no target after the colon"
	LINE_NEED+=("$2") LINE_KNOB+=("$knob") LINE_GLOB+=("$glob")
	LINE_VALUE+=("$4") LINE_BECAUSE+=('') LINE_SOURCE+=('')
	((${#LINE_KNOB[@]} <= PROFILE_LINES_MAX)) ||
		die "$where: more than $PROFILE_LINES_MAX lines"
}

# A comma that no KNOB= follows is one of the value.
profile_parse_words()
{
	local rest=$1, word='' piece

	while [[ $rest ]]; do
		piece=${rest%%,*}
		rest=${rest#*,}
		word+=${word:+,}$piece
		if [[ ! $rest || $rest =~ ^[a-z][a-z0-9-]*(:[^=,]*)?= ]]; then
			profile_add "profile '$1'" set "${word%%=*}" \
				"${word#*=}"
			word=''
		fi
	done
	PROFILE_SUMMARY='given on the command line'
}

profile_parse_file()
{
	local path=$1 depth=$2 line number=0

	if [[ ! -f $path && $path == "$TUNE/profiles/"* ]]; then
		path=${path##*/}
		die "profile '${path%.profile}': no such profile;" \
			"see 'blinktune list'"
	fi
	[[ -f $path ]] || die \
		"profile '${path##*/}': no such file: $path; see blinktune list"
	[[ -r $path ]] || die "profile '${path##*/}': not readable: $path"
	((depth <= PROFILE_DEPTH_MAX)) ||
		die "$path: includes nested more than $PROFILE_DEPTH_MAX deep"
	# shellcheck disable=SC2094 # its name is for messages
	while IFS= read -r line || [[ $line ]]; do
		number=$((number + 1))
		((number <= PROFILE_LINES_MAX)) ||
			die "$path: more than $PROFILE_LINES_MAX lines"
		profile_parse_line "$path" "$number" "$depth" "$line"
	done <"$path"
}

# profile_parse_line PATH NUMBER DEPTH LINE
profile_parse_line()
{
	local where=$1:$2 depth=$3 line=$4 indented='' word rest knob value

	[[ ! $line =~ ^[[:space:]]*(#|$) ]] || return 0
	[[ $line != [[:blank:]]* ]] || indented=1
	[[ ${line//$'\t'/} != *[[:cntrl:]]* ]] ||
		die "$where: a control character"
	((${#line} <= 1000)) || die "$where: longer than 1000 bytes"
	read -r word rest <<<"$line"
	case $indented:$word in
	:summary) [[ $depth != 1 ]] || PROFILE_SUMMARY=$rest ;;
	:include)
		profile_path "$rest" "${1%/*}"
		profile_parse_file "$PROFILE_PATH" $((depth + 1))
		;;
	:set | :try)
		read -r knob value <<<"$rest"
		profile_add "$where" "$word" "$knob" "$value"
		;;
	1:because | 1:source) profile_note "$where" "$word" "$rest" ;;
	*) die "$where: '${line:0:40}' is no line of a profile" ;;
	esac
}

# profile_note WHERE because|source TEXT: about the line before.
profile_note()
{
	local last=$((${#LINE_KNOB[@]} - 1))

	((last >= 0)) || die "$1: no set or try above it"
	case $2 in
	because) LINE_BECAUSE[last]=$3 ;;
	source) LINE_SOURCE[last]=$3 ;;
	esac
}
