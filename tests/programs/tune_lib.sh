# tune_lib.sh - what the checks of blinktune share
# shellcheck shell=bash
#
# A script sources this instead of tool_lib.sh and has besides:
#
#   make_tree FOLDER          a small machine: FOLDER/sys, proc, dev
#   TUNE                      blinktune on ./tree with its journal in ./state
#   tune ARGUMENT...          the same, quiet
#   expect_tree_restored      ./tree is as make_tree has made it, byte for byte
#   sum_again JOURNAL         the journal gets the sum that its beginning has now,
#                             so that it is the tampered field that is found, not
#                             the sum
#   tune_processes FOLDER     prints those that blinktune left running below it
#   print_steps, every_nth, killed_at, in_three_runs
#                             to end blinktune at each step, see below
#   expect_most_killed N STEPS
#                             of a test that kills at each line of the file STEPS
#   open_program              PROGRAM, a copy of blinktune that every user may
#                             enter and run, wherever the repository is

# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/tool_lib.sh"

readonly BLINKTUNE=$REPO/tune/blinktune
# shellcheck disable=SC2034 # for the scripts
TUNE=("$BLINKTUNE" --root tree --state state)
# As blinktune refuses folders that others may write
umask 022
unset BLINKTUNE_STATE BLINKTUNE_ROOT BLINK_JOB COLUMNS

# put FILE TEXT: without a newline unless TEXT has it
put()
{
	[[ $1 != */* ]] || mkdir -p "${1%/*}"
	printf '%b' "$2" >"$1"
}

# Among the files: one that ends without a newline, lists with brackets, values
# that get longer and shorter, an interface, what must be held.
make_tree()
{
	local root=$1 policy

	for policy in 0 1 2 3; do
		put "$root/sys/devices/system/cpu/cpufreq/policy$policy/scaling_governor" \
			'schedutil\n'
		put "$root/sys/devices/system/cpu/cpufreq/policy$policy/scaling_available_governors" \
			'performance schedutil \n'
	done
	put "$root/proc/sys/vm/swappiness" '60'
	put "$root/proc/sys/kernel/numa_balancing" '1\n'
	put "$root/proc/sys/kernel/random/boot_id" \
		'11111111-2222-3333-4444-555555555555\n'
	put "$root/sys/kernel/mm/transparent_hugepage/enabled" \
		'always [madvise] never\n'
	put "$root/sys/block/sda/queue/scheduler" 'none [mq-deadline] \n'
	put "$root/sys/block/sda/queue/read_ahead_kb" '128\n'
	mkdir -p "$root/sys/block/sda/device"
	put "$root/sys/class/net/eth0/mtu" '1500\n'
	put "$root/sys/class/net/eth0/tx_queue_len" '1000\n'
	mkdir -p "$root/sys/class/net/eth0/device"
	put "$root/dev/cpu_dma_latency" '2000000000\n'
}

tune()
{
	"${TUNE[@]}" -q "$@"
}

# With modes and owners, but not times
list_tree()
{
	(cd "$1" && find . -printf '%p %m %u %s %l\n' | sort)
	(cd "$1" && find . -type f -print0 | sort -z | xargs -0 cksum)
}

expect_tree_restored()
{
	local new=$SCRATCH/pristine.$BASHPID

	# Cases that run side by side may both make it.
	if [ ! -d "$SCRATCH/pristine" ]; then
		make_tree "$new"
		mv -T "$new" "$SCRATCH/pristine" 2>/dev/null || rm -r "$new"
	fi
	list_tree "$SCRATCH/pristine" >want.tree
	list_tree tree >got.tree
	diff want.tree got.tree >&2
}

tune_processes()
{
	local file words folder=$1

	for file in /proc/[0-9]*/cmdline; do
		words=$( (tr '\0' ' ' <"$file") 2>/dev/null) || continue
		case $words in
		*"$folder"*deadman*)
			file=${file%/cmdline}
			echo "${file#/proc/}"
			;;
		'blinktune-holder infinity ')
			file=${file%/cmdline}
			[[ $(readlink "$file/cwd") != "$folder"* ]] ||
				echo "${file#/proc/}"
			;;
		esac
	done
}

# --- steps of blinktune ---------------------------------------------------------
#
# A step is a system call that changes something: a file created or opened for
# writing, a write, a child started or waited for.

# print_steps ARGUMENT...: runs blinktune, and prints each of its steps as "CALL N",
# the Nth of that call; or as "openat N PATH", since blinktune opens a file of each
# process there is.  strace follows exec, not the children.
print_steps()
{
	strace -qq -o log -e trace=openat,write,clone,wait4 "${TUNE[@]}" -q "$@" \
		>/dev/null
	awk -F'(' '
	/^openat\(/ {
		split($0, words, "\"")
		number = ++opened[words[2]]
		if (/O_CREAT|O_WRONLY|O_RDWR/ && !/"\/dev\/(null|tty|fd\/)/)
			print $1, number, words[2]
	}
	/^(write|clone|wait4)\(/ {
		number = ++count[$1]
		# Here-documents are written to pipes of their own.
		if ($1 == "write" && !/^write\(1,/)
			next
		if ($1 == "wait4" && /WNOHANG/)
			next
		print $1, number
	}' log
}

# every_nth N: prints each Nth line of stdin, from a random one of the first N on
every_nth()
{
	awk -v n="$1" -v first=$((RANDOM % $1)) 'NR % n == first'
}

# killed_at "CALL N [PATH]" ARGUMENT...: runs blinktune; 0 if it was killed when it
# was about to make that call
killed_at()
{
	local call number path got=0
	read -r call number path <<<"$1"
	shift

	# bash would tell the death of a child that it waits for itself.
	{
		strace -qq -o log -e "trace=$call" ${path:+-P "$path"} \
			-e "inject=$call:signal=SIGKILL:when=$number" \
			"${TUNE[@]}" -q "$@" || got=$?
	} >out 2>&1
	[ "$got" = 137 ]
}

# in_three_runs COMMAND...: until it succeeds.  Which of its processes is first
# decides how often blinktune waits, and starts something once more: a step of
# one run may not come in another.
in_three_runs()
{
	for _ in 1 2 3; do
		! "$@" || return 0
	done
	return 1
}

# expect_most_killed N STEPS: as above, some steps come in none of three runs.
expect_most_killed()
{
	[ $((5 * $1)) -ge $((4 * $(wc -l <"$2"))) ] ||
		fail "killed at $1 of $(wc -l <"$2") steps"
}

sum_again()
{
	local sum journal=$1

	sed '/^ready\t/,$d' "$journal" >sum.of
	sum=$(cksum <sum.of)
	sum=${sum// /-}
	sed -i "s/^ready\t.*/ready\t$sum\t./" "$journal"
}

open_program()
{
	mkdir -p "$SCRATCH/program/bin"
	[ -d "$SCRATCH/program/tune" ] || cp -R "$REPO/tune" "$SCRATCH/program"
	chmod 755 "$SCRATCH" "$SCRATCH/program"
	chmod -R go=u,go-w "$SCRATCH/program"
	# shellcheck disable=SC2034 # for the scripts
	PROGRAM=$SCRATCH/program/tune/blinktune
}
