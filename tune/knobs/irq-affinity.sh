# irq-affinity.sh - which CPUs an interrupt may go to
#
# Each interrupt is a target, and "default": where those go that begin later.

. "$TUNE/lib/cpulist.sh"

knob_irq_affinity_values='a list of CPUs: 0, 0-3, 0-3,8'
# Interrupts come after irqbalance, which would move them again.
knob_irq_affinity_order=60

irq_folder=/proc/irq

knob_irq_affinity_find()
{
	FILE=$irq_folder/$1/smp_affinity_list
	[[ $1 != default ]] || FILE=$irq_folder/default_smp_affinity
}

knob_irq_affinity_targets()
{
	file_by_number "$irq_folder" '' smp_affinity_list
	TARGETS=(default "${TARGETS[@]}")
}

knob_irq_affinity_get()
{
	file_read "$FILE" || return 1
	# The default is a mask, and there is no list of it.
	[[ $1 != default ]] || cpulist_of_mask "$VALUE"
}

knob_irq_affinity_goal()
{
	cpulist_of "$3" || setting_refuse "$3" 'a list of CPUs'
}

knob_irq_affinity_set()
{
	local list=$2

	if [[ $1 == default ]]; then
		file_read "$FILE" || return 1
		cpulist_mask "$list" "$VALUE" ||
			setting_refuse "$2" 'CPUs of this machine' || return 1
		list=$MASK
	fi
	file_write "$FILE" "$list" || irq_affinity_kept
}

# Some interrupts can't be moved (a timer's), some the kernel places itself (a
# queue's of a disk that has one for each CPU); nothing but the attempt tells.
irq_affinity_kept()
{
	case $WHY in
	*'Input/output error' | *'Operation not permitted')
		SUPPORT=unsupported WHY='the kernel places this interrupt itself'
		;;
	esac
	return 1
}

knob_irq_affinity_act()
{
	local list=$2

	if [[ $1 == default ]] && file_read "$FILE" &&
		cpulist_mask "$2" "$VALUE"; then
		list=$MASK
	fi
	ACT="echo $list >$FILE"
}

knob_irq_affinity_explain='
Which CPUs an interrupt may go to.  On the CPU that waits for
the data it saves the way between them; on one that works it interrupts the
work.  Those that the kernel places itself (queues of disks and cards, one for
each CPU) refuse, and are reported so.  Source:
Documentation/core-api/irq/irq-affinity.rst.'
