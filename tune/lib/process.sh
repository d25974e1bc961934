# process.sh - which process is which
#
#   process_start PID      START, its start time in ticks; or 1: it has ended
#   process_is PID START   is it still that one, and no other of its number?
#   process_kill PID START and wait for its end
#   process_may_stay       may one in the background outlive us? Or 1 and WHY
#   PROCESS_MAX            no process has a higher number

# PID_MAX_LIMIT of Linux, 64 bits
readonly PROCESS_MAX=4194304

process_start()
{
	local stat fields

	START=''
	[[ ${1:-} && -r /proc/$1/stat ]] || return 1
	read -r stat <"/proc/$1/stat" || return 1
	# The program's name, in parentheses, may hold anything.
	read -r -a fields <<<"${stat##*) }"
	# A zombie holds nothing.
	[[ ${fields[0]} != [ZX] ]] || return 1
	START=${fields[19]}
} 2>/dev/null

process_is()
{
	process_start "$1" && [[ $START == "$2" ]]
}

process_kill()
{
	local tries

	process_is "$1" "$2" || return 0
	kill -KILL "$1" 2>/dev/null || return 0
	for ((tries = 0; tries < 200; tries++)); do
		process_is "$1" "$2" || return 0
		sleep 0.01
	done
}

# blinkd kills whatever a job leaves behind.
process_may_stay()
{
	[[ ! ${BLINK_JOB:-} ]] || why_not \
		'blinkd ends what stays behind, and it needs a process: use run or hold'
}
