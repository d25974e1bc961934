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
# Only who may change the machine has a lock there: root, or the owner of a tree.

readonly MACHINE_LOCK_WAIT_S=60

MACHINE_FD=

machine_lock()
{
	local folder=$ROOT/run

	[[ ! $MACHINE_FD && -d $folder && -w $folder ]] || return 0
	state_try state_make_lock "$folder/blinktune.lock" || return 0
	exec {MACHINE_FD}>>"$folder/blinktune.lock"
	flock -w $MACHINE_LOCK_WAIT_S "$MACHINE_FD" ||
		die "$folder: another blinktune is at work there"
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
