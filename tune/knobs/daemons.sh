# daemons.sh - services that need not run while something is measured
# shellcheck shell=bash
# shellcheck disable=SC2034 # results are in variables
#
# A target is a unit that runs now: a service, or the socket, timer or path that
# starts one.  Those below are no targets, whoever asks.

# shellcheck source=tune/lib/unit.sh
. "$TUNE/lib/unit.sh"

knob_daemons_lifetime=boot
knob_daemons_risk=cutoff
# First of all: some of them (tuned, tlp) put settings back when they stop.
knob_daemons_order=10

# Why never, and which.  Patterns without a suffix are meant with any.
daemons_never=(
	'the way in over the network: NetworkManager* networking ifup@*
	 wpa_supplicant* iwd dhcpcd* dhclient* udhcpc* connman* netplan*
	 wickedd* pppd* openvpn* wg-quick@* strongswan* tailscaled* zerotier*
	 firewalld nftables ufw'
	'the operator: ssh sshd ssh@* sshd@* ssh-* sshd-* dropbear* getty@*
	 serial-getty@* console-getty container-getty@* autovt@*
	 user@* user-runtime-dir@* gdm* lightdm sddm* display-manager'
	'the commands come through it: blinkd*'
	'what all others live on: systemd-* dbus* init polkit* rescue emergency'
	'disks are on it: multipathd iscsi* iscsid open-iscsi nfs-* nfsd* rpcbind
	 rpc-* rpc.* lvm2-* dm-event* cryptsetup* zfs* drbd* ceph* gluster*
	 autofs nbd* smbd nmbd target blk-availability'
	'it tells of a failing disk: mdmonitor* mdadm*'
	'how the host commands its guest: cloud-* qemu-guest-agent open-vm-tools
	 vmtoolsd xe-daemon hv-* hyperv-* virtualbox-guest* vboxadd*
	 google-* walinuxagent amazon-ssm-agent'
	'its stopping stops what runs in it: docker* containerd* podman* crio
	 kubelet k3s* lxc* lxd* incus* libvirt* virt* slurm* munge* cron-job@*'
	'the machine resets or overheats without: watchdog* wd_keepalive
	 thermald fancontrol'
	'it refuses to be stopped: auditd'
	'a knob of its own: irqbalance'
)

# daemons_reason UNIT: WHY it is never touched; or 1.
daemons_reason()
{
	local group pattern patterns

	for group in "${daemons_never[@]}"; do
		read -r -d '' -a patterns <<<"${group#*:}" || true
		for pattern in "${patterns[@]}"; do
			# shellcheck disable=SC2053 # a pattern is meant
			if [[ $1 == $pattern.* ]]; then
				WHY="never touched: ${group%%:*}"
				return 0
			fi
		done
	done
	return 1
}

knob_daemons_targets()
{
	local unit

	TARGETS=()
	unit_supported && unit_list || return 0
	for unit in "${UNITS[@]}"; do
		daemons_reason "$unit" || TARGETS+=("$unit")
	done
}

knob_daemons_supported()
{
	unit_supported || return 1
	if daemons_reason "$1"; then
		SUPPORT=unsupported
		return 1
	fi
}

knob_daemons_get()
{
	VALUE=stopped
	! unit_is_running "$1" || VALUE=running
}

# daemons_command TARGET VALUE: sets the caller's command.  With a service stops
# what would start it again at once; that one is a target too, and so is started
# again if it ran.
daemons_command()
{
	local trigger

	command=(start "$1")
	[[ $2 == stopped ]] || return 0
	command=(stop "$1")
	unit_triggers "$1"
	for trigger in "${TRIGGERS[@]}"; do
		daemons_reason "$trigger" || command+=("$trigger")
	done
}

knob_daemons_set()
{
	local command

	! daemons_reason "$1" || return 1
	if [[ $2 != running && $2 != stopped ]]; then
		WHY="$2: Invalid argument: neither running nor stopped"
		return 1
	fi
	daemons_command "$1" "$2"
	unit_switch "${command[@]}"
}

knob_daemons_values()
{
	VALUES='running, stopped'
}

knob_daemons_act()
{
	local command

	daemons_command "$1" "$2"
	ACT="systemctl ${command[*]}"
}

knob_daemons_explain()
{
	local group

	EXPLAIN='Services that run now and need not while something is measured:
each takes a CPU, a disk or memory at times of its own.  Undoing starts those that
were running.  Never touched are'
	for group in "${daemons_never[@]}"; do
		EXPLAIN+=$'\n'"  (${group%%:*})"${group#*:}
	done
	EXPLAIN+=$'\n''Source: the pruning of system daemons in "Datamation: A Quarter
of a Century and Four Orders of Magnitude Later", IEEE CLUSTER 2011, abstract.'
}
