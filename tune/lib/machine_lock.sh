# machine_lock.sh - one blinktune at a time reads and sets a machine's settings
#
# A journal is of a state folder, and the nodes of one machine have a folder each.
# A value that one reads as the original may be what another has set for a while;
# so none may put it back between that reading and the end of apply.
#
#   machine_lock     waits for its turn; or ends the program
#   machine_unlock   hold and run do not keep others waiting while they hold
#   locks_close      in a process that must not keep our locks
#
# What is locked is a file that only root may open, so that nobody else can make
# root wait; or a tree's folder.

readonly MACHINE_LOCK_WAIT_S=60

MACHINE_FD=

machine_lock()
{
	local path=${ROOT:-/run/blinktune.lock}

	[[ ! $MACHINE_FD ]] || return 0
	if [[ $ROOT ]]; then
		exec {MACHINE_FD}<"$path"
	else
		# Who may not make it may not set anything either.
		state_try state_make_lock "$path" || return 0
		exec {MACHINE_FD}>>"$path"
	fi
	flock -w $MACHINE_LOCK_WAIT_S "$MACHINE_FD" ||
		die "$path: another blinktune is at work there"
}

# What a killed tool has inherited keeps no lock.
machine_unlock()
{
	[[ $MACHINE_FD ]] || return 0
	flock -u "$MACHINE_FD"
	exec {MACHINE_FD}>&-
	MACHINE_FD=
}

locks_close()
{
	[[ ! $LOCK_FD ]] || exec {LOCK_FD}>&-
	[[ ! $MACHINE_FD ]] || exec {MACHINE_FD}>&-
}
