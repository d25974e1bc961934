# c-states.sh - how long a CPU may take to wake up
#
# The limit lasts as long as a process holds the file open: so the kernel takes
# it back even from a process that was killed.  The cpuidle/state*/disable
# files would set the limit for good; this knob does not touch them.

knob_c_states_file=/dev/cpu_dma_latency
knob_c_states_values='microseconds (0: poll, never sleep), default: no limit'
knob_c_states_lifetime=holder

# PM_QOS_CPU_LATENCY_DEFAULT_VALUE, 2000 s: no limit.
c_states_default_us=2000000000

# The kernel gives a 32-bit number in the CPU's byte order; mapfile splits it at
# its zero bytes, which bash can't hold.  A tree has it in digits.
c_states_read_device()
{
	local pieces piece byte i bytes=()

	mapfile -d '' pieces <$knob_c_states_file
	for piece in "${pieces[@]}"; do
		for ((i = 0; i < ${#piece}; i++)); do
			printf -v byte %d "'${piece:i:1}"
			bytes+=($((byte & 255)))
		done
		bytes+=(0)
	done
	VALUE=$((bytes[0] | bytes[1] << 8 | bytes[2] << 16 | bytes[3] << 24))
}

knob_c_states_get()
{
	if [[ $ROOT ]]; then
		file_read $knob_c_states_file || return 1
	elif [[ ! -r $knob_c_states_file ]]; then
		why_not "$knob_c_states_file: Permission denied" || return 1
	else
		c_states_read_device
	fi
	if [[ $VALUE == "$c_states_default_us" ]]; then
		VALUE=default
	fi
}

# c_states_text VALUE: sets the caller's text.  Ten characters: four would be
# taken for the number itself.
c_states_text()
{
	local limit_us=${1/#default/$c_states_default_us}

	number_is "$limit_us" 0 $c_states_default_us ||
		setting_refuse "$1" 'a number of microseconds' || return 1
	printf -v text '0x%08x' "$limit_us"
}

knob_c_states_goal()
{
	local text

	c_states_text "$3"
}

# "default" is held as well: it limits nothing, and shows the limits of others.
knob_c_states_hold()
{
	local text

	c_states_text "$2" && file_hold $knob_c_states_file "$text"
}

knob_c_states_act()
{
	local text

	c_states_text "$2" || return 0
	ACT="exec 9<>$knob_c_states_file; printf $text >&9"
}

knob_c_states_explain='
The time, in microseconds, that a CPU may take to wake up from
idle: deeper sleep saves power and lets the other CPUs clock higher, but a
packet or a disk that is done waits for the waking.  0 polls: no waking at all,
but heat, and less for a hyperthread beside it.  The smallest limit that
any process holds is the one in force.  Source:
Documentation/admin-guide/pm/cpuidle.rst and
Documentation/power/pm_qos_interface.rst.'
