# state.sh - the state folder: may it be read, and written?
#
# Root sets the values in the journal, and root writes to the folder.  So blinktune
# neither reads nor writes there if another user could have made the folder or its
# files, or could redirect them:
#
#   the folder         is not a symbolic link, belongs to this user or to root,
#                      and neither its group nor others may write it
#   its files          are regular files; otherwise the same
#   the folders above  belong to this user, to root or to the owner of /; where
#                      their group or others may write them, they have the
#                      sticky bit.  Symbolic links among them have such an owner
#
# The owner of / could replace everything anyway.  It is root, which in a user
# namespace may have another number.
#
#   state_check         ends the program in words unless all of that holds for
#                       what is there
#   state_make          makes the folder with mode 0700 if there is none, and
#                       checks it; or ends the program
#   state_open_lock     LOCK_FD, the file lock, made with mode 0600 if there is
#                       none; or ends the program
#   state_write NAME TEXT
#                       replaces the file by a new one with mode 0600; or
#                       returns 1 and sets WHY

readonly STATE_FILES='journal journal.new journal.last lock'

state_check()
{
	local kinds=(above) paths=(/) lines line i=0 top_owner=0

	state_collect
	lines=$(stat -c '%u %a %F' -- "${paths[@]}" 2>&"$SILENCE") ||
		die "$STATE: the state folder has just changed: nothing is done"
	while read -r line; do
		((i != 0)) || top_owner=${line%% *}
		# shellcheck disable=SC2086 # words are meant
		state_judge "${kinds[i]}" "${paths[i]}" $line
		i=$((i + 1))
	done <<<"$lines"
}

# state_collect: adds what is there to the caller's kinds and paths.
state_collect()
{
	local name path=$STATE linked=''

	state_add folder "$STATE"
	for name in $STATE_FILES; do
		state_add file "$STATE/$name"
	done
	state_add_above "$STATE"
	[[ ! $linked ]] ||
		state_add_above "$(readlink -m -- "${STATE%/*}/")/here"
}

# state_add KIND PATH: if it is there.
state_add()
{
	[[ -e $2 || -L $2 ]] || return 0
	kinds+=("$1") paths+=("$2")
}

# state_add_above PATH: sets the caller's linked if a symbolic link is among them.
state_add_above()
{
	local path=${1%/*}

	while [[ $path ]]; do
		state_add above "$path"
		[[ ! -L $path ]] || linked=1
		path=${path%/*}
	done
}

# state_judge KIND PATH OWNER MODE TYPE...
state_judge()
{
	local kind=$1 path=$2 owner=$3 mode=$((8#$4)) type=${*:5}

	case $kind:$type in
	folder:directory | file:regular* | above:directory) ;;
	# A link's mode says nothing.
	above:symbolic*) mode=0 ;;
	file:*) state_refuse "is a $type, not a regular file" ;;
	*) state_refuse "is a $type, not a folder" ;;
	esac
	[[ $owner == "$EUID" || $owner == 0 ||
		$kind:$owner == "above:$top_owner" ]] ||
		state_refuse "belongs to user $owner, not to user $EUID or root"
	if ((mode & 8#022)); then
		[[ $kind == above ]] ||
			state_refuse "may be written by its group or others (mode $4)"
		((mode & 8#1000)) ||
			state_refuse "may be written by its group or others" \
				"and has no sticky bit (mode $4)"
	fi
}

# state_refuse WHY...: the path of the caller's kind
state_refuse()
{
	local -A names=([folder]='the state folder'
		[file]='a file of the state folder'
		[above]='a folder above the state folder')

	die "$path: ${names[$kind]} $*: nothing is done"
}

state_make()
{
	state_check
	[[ ! -d $STATE ]] || return 0
	state_try mkdir -p -- "$STATE" ||
		die "$STATE: cannot make the state folder: $WHY"
	# Another user may have made the folder first.
	state_check
}

state_open_lock()
{
	if ! state_try state_make_lock "$STATE/lock"; then
		die "$STATE: cannot write the state folder: $WHY"
	fi
	exec {LOCK_FD}>>"$STATE/lock"
}

state_write()
{
	state_try rm -f -- "$STATE/$1" &&
		state_try state_create "$STATE/$1" "$2"
}

# state_create FILE [TEXT]: in a subshell; a file that is there already, or a
# link, is not opened.
state_create()
{
	set -C
	printf '%s' "${2:-}" >"$1"
}

# state_make_lock FILE: in a subshell; of two programs that begin at once, one
# makes it, and both may open it.
state_make_lock()
{
	[[ -e $1 ]] || state_create "$1" || [[ -e $1 ]] || return 1
	: >>"$1"
}

# state_try COMMAND...: in a subshell, where only this user may read and write
# what is made; or 1, and WHY in the kernel's words.
state_try()
{
	WHY=$( (umask 077 && "$@") 2>&1 ) && return 0
	WHY=${WHY##*: }
	[[ $EUID == 0 || $WHY != 'Permission denied' ]] ||
		WHY+=': this needs root'
	return 1
}
