# file.sh - the files of /sys and /proc, or of a tree that stands in for them
#
# Every path begins with a slash; ROOT, empty or a folder, is put before it.
# Results are in variables, so that nothing here forks unless a write fails.
#
#   file_exists PATH
#   file_read PATH          VALUE: the first line without blanks around it;
#                           or 1, and WHY
#   file_selected PATH      VALUE: the word in [brackets], or the line
#   file_writable PATH      may this user write it?
#   file_write PATH VALUE   0; or 1, and WHY in the kernel's words
#   file_hold PATH TEXT     HOLD_FD: PATH open with TEXT written to it, which
#                           the kernel takes back when it is closed; or 1, WHY
#   file_list GLOB          FILES=(...)
#   file_by_number FOLDER NAME FILE
#                           TARGETS=(...): NAME0 and so on in the FOLDER, those
#                           that have the FILE, by number
#   why_not TEXT            1, and WHY: what stands behind a condition that is
#                           not met
#
# In a tree, a write does what the kernel would do.  In a list of words with one in
# brackets it moves the brackets, and fails with EINVAL for a word that is not in the
# list.  Words between tabs stay between tabs, and the file keeps or lacks its last
# newline.  A process that is killed leaves the old text or the new one, since the
# file is never empty.  A value that a process holds is not written to a tree, since
# nothing would restore it.

. "$TUNE/lib/number.sh"

ROOT=${ROOT:-}
# message.sh opens it, too; tests read this file without that one.
[[ ${SILENCE:-} ]] || exec {SILENCE}</dev/null

why_not()
{
	WHY=$1
	return 1
}

file_exists()
{
	[[ -e $ROOT$1 ]]
}

file_read()
{
	VALUE='' WHY=''
	if [[ ! -e $ROOT$1 ]]; then
		WHY="no $1"
	elif [[ ! -r $ROOT$1 ]]; then
		WHY="$1: Permission denied"
	# The last line may lack its newline: read says 1, but has it.
	elif { read -r VALUE || [[ $VALUE ]]; } <"$ROOT$1"; then
		return 0
	elif [[ ! -s $ROOT$1 && $ROOT ]]; then
		return 0
	else
		WHY="$1: nothing to be read"
	fi 2>&"$SILENCE"
	return 1
}

file_selected()
{
	file_read "$1" || return 1
	if [[ $VALUE =~ \[([^][]*)\] ]]; then
		VALUE=${BASH_REMATCH[1]}
	fi
}

# Every file seems writable to root.  But a file without write permission in its
# mode fails when opened: in /sys and /proc by the kernel's rule, in a tree by
# ours.  FILE_EXACT checks the mode in /sys, too, which costs a fork.  apply
# does not set it, since the write itself shows it.
declare -gA file_readonly=()
file_readonly_known=

file_writable()
{
	local mode file

	[[ -w $ROOT$1 ]] || return 1
	((EUID == 0)) || return 0
	if [[ $ROOT ]]; then
		if [[ ! $file_readonly_known ]]; then
			file_readonly_known=1
			while IFS= read -r -d '' file; do
				file_readonly[$file]=1
			done < <(find "$ROOT/" -type f ! -perm /222 -print0)
		fi
		# find says "ROOT//..." of a folder named with a slash.
		[[ ! ${file_readonly["$ROOT$1"]:-} ]]
	elif [[ ${FILE_EXACT:-} ]]; then
		mode=$(stat -c %a "$1" 2>&"$SILENCE") && ((8#$mode & 8#222))
	fi
}

file_write()
{
	local path=$1 value=$2

	WHY=''
	[[ -e $ROOT$path ]] || why_not "no $path" || return 1
	if [[ $ROOT ]]; then
		file_write_tree "$path" "$value"
		return
	fi
	if printf '%s\n' "$value" >"$path"; then
		return 0
	fi 2>&"$SILENCE"
	# Try again to get the reason, which bash prints on stderr only.
	WHY=$( { printf '%s\n' "$value" >"$path"; } 2>&1) && return 0
	why_not "$path: ${WHY##*: }"
}

# file_write_tree PATH VALUE: PATH is in the tree.
file_write_tree()
{
	local path=$1 value=$2 old='' body end

	file_writable "$path" || why_not "$path: Permission denied" || return 1
	IFS= read -r -d '' old <"$ROOT$path" || true
	body=${old%"${old##*[![:space:]]}"}
	end=${old#"$body"}
	if [[ $body =~ ^[^$'\n']*\[[^][]*\] ]]; then
		file_move_brackets "$body" "$value" ||
			why_not "$path: Invalid argument" || return 1
	elif [[ $body == *$'\t'* ]]; then
		value=${value// /$'\t'}
	fi
	value+=$end
	# The file is not truncated by opening it: see above.
	if ! printf '%s' "$value" 1<>"$ROOT$path"; then
		WHY="$path: can't be written"
		return 1
	fi 2>&"$SILENCE"
	((${#value} >= ${#old})) || truncate -s ${#value} "$ROOT$path"
}

# file_move_brackets LIST WORD: sets the caller's value.
file_move_brackets()
{
	local list=" ${1//[][]/} "

	[[ $2 && $2 != *[[:space:]]* && $list == *" $2 "* ]] || return 1
	list=${list/" $2 "/" [$2] "}
	value=${list:1:-1}
}

file_hold()
{
	local path=$1 text=$2

	HOLD_FD='' WHY=''
	if [[ ! -e $ROOT$path ]]; then
		WHY="no $path"
	elif ! file_writable "$path"; then
		WHY="$path: Permission denied"
	elif [[ $ROOT ]]; then
		exec {HOLD_FD}<"$ROOT$path" && return 0
	elif ! { exec {HOLD_FD}<>"$path"; } 2>&"$SILENCE"; then
		HOLD_FD='' WHY="$path: can't be opened"
	elif ! printf '%s' "$text" >&"$HOLD_FD"; then
		exec {HOLD_FD}>&-
		HOLD_FD='' WHY="$path: does not take $text"
	else
		return 0
	fi 2>&"$SILENCE"
	return 1
}

file_list()
{
	# Names may hold blanks, and nothing may match.
	local IFS='' file shown

	FILES=()
	# shellcheck disable=SC2206 # a pattern is meant
	shown=("$ROOT"$1)
	for file in "${shown[@]}"; do
		[[ ! -e $file ]] || FILES+=("${file#"$ROOT"}")
	done
}

file_by_number()
{
	local number by_number=()

	file_list "$1/$2[0-9]*/$3"
	for number in "${FILES[@]}"; do
		number=${number#"$1/$2"}
		number=${number%%/*}
		! number_is "$number" 0 999999 ||
			by_number[number]=$2$number
	done
	TARGETS=("${by_number[@]}")
}
