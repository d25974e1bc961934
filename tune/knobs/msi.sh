# msi.sh - how a network card interrupts; reported, not set

. "$TUNE/lib/nic.sh"

knob_msi_targets=(nic_targets)
knob_msi_values="reported only; a profile may state: msix, msi or none"

knob_msi_supported()
{
	setting_needs "/sys/class/net/$1/device" 'no hardware behind it'
}

# "msix 9", "msi 1": the kind and how many interrupts.  A virtio card is a child
# of the PCI device that has them.
knob_msi_get()
{
	local folder count

	for folder in "/sys/class/net/$1/device" "/sys/class/net/$1/device/.."; do
		file_list "$folder/msi_irqs/[0-9]*"
		count=${#FILES[@]}
		if ((count > 0)) && file_read "${FILES[0]}"; then
			VALUE="$VALUE $count"
			return 0
		fi
	done
	VALUE=none
}

# Wanted may be the kind alone: a profile can state what it needs.
knob_msi_goal()
{
	VALUE=$2
	[[ $2 == "$3" || $2 == "$3 "* ]] || knob_msi_set
}

knob_msi_set()
{
	why_not "reported only: the driver decides when it is loaded"
}

knob_msi_act()
{
	ACT="nothing: reported only"
}

knob_msi_explain="
Whether the card interrupts by messages (msi, msix and how many), or
by a wire that it may share with other devices (none).  With one message for each
queue every processor can have its own.  The driver decides when it is loaded
(module options, or pci=nomsi on the kernel's command line), so that this is
reported only.
Source: Documentation/PCI/msi-howto.rst."
