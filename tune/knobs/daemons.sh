# daemons.sh - services that need not run while something is measured
#
# A target is a service that runs, together with the sockets, timers and paths
# that would start it again, since one can't be stopped without the others; or
# one of these alone.  Its value is the service's state and those that are
# active: "running syslog.socket".  The units below are never targets, even if a
# profile names them.

. "$TUNE/lib/unit.sh"

knob_daemons_values='running, stopped'
knob_daemons_risk=cutoff
# Daemons come first of all: some of them (tuned, tlp) put settings back when
# they stop.
knob_daemons_order=10

# Units that are never stopped, each group with its reason.  Patterns without a
# suffix are meant with any.
daemons_never=(
	'the way in over the network: NetworkManager* networking ifup@*
	 wpa_supplicant* iwd dhcpcd* dhclient* udhcpc* connman* netplan*
	 wickedd* pppd* openvpn* wg-quick@* strongswan* tailscaled* zerotier*
	 ModemManager dnsmasq* unbound* firewalld nftables ufw'
	'the operator: ssh sshd ssh@* sshd@* ssh-* sshd-* dropbear* getty@*
	 serial-getty@* console-getty container-getty@* autovt@*
	 user@* user-runtime-dir@* gdm* lightdm sddm* greetd
	 display-manager sssd* winbind* nslcd'
	'the commands come through it: blinkd*'
	'what all others live on: systemd-* dbus* polkit* rescue emergency'
	'disks are on it: multipathd iscsi* iscsid open-iscsi nfs-* nfsd* rpcbind
	 rpc-* rpc.* lvm2-* dm-event* cryptsetup* zfs* drbd* ceph* gluster*
	 autofs nbd* smbd nmbd target blk-availability'
	'it tells of a failing disk: mdmonitor* mdadm*'
	'how the host commands its guest: cloud-* qemu-guest-agent open-vm-tools
	 vmtoolsd xe-daemon hv-* hyperv-* virtualbox-guest* vboxadd*
	 google-* walinuxagent amazon-ssm-agent'
	'its stopping stops what runs in it: docker* containerd* podman* crio
	 kubelet k3s* lxc* lxd* incus* libvirt* virt* slurm* munge*'
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

# daemons_group UNIT: GROUP, what is stopped with it.
daemons_group()
{
	local trigger

	GROUP=()
	unit_triggers "$1"
	for trigger in "${TRIGGERS[@]}"; do
		daemons_reason "$trigger" || GROUP+=("$trigger")
	done
}

knob_daemons_targets()
{
	local unit grouped=' '

	TARGETS=()
	unit_supported && unit_list || return 0
	for unit in "${UNITS[@]}"; do
		[[ $grouped != *" $unit "* ]] || continue
		! daemons_reason "$unit" || continue
		TARGETS+=("$unit")
		daemons_group "$unit"
		grouped+="${GROUP[*]} "
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
	local trigger value=stopped

	unit_list || why_not "systemctl: exit status $STATUS" || return 1
	! unit_is_running "$1" || value=running
	daemons_group "$1"
	for trigger in "${GROUP[@]}"; do
		! unit_is_running "$trigger" || value+=" $trigger"
	done
	VALUE=$value
}

# "running" is met by whatever else is active.
knob_daemons_goal()
{
	case $3 in
	running) [[ $2 != running* ]] || VALUE=$2 ;;
	stopped) ;;
	*) setting_refuse "$3" 'running or stopped' ;;
	esac
}

# daemons_sort TARGET VALUE: sets the caller's stop and start; what is to start
# has sockets first, since none is opened for a service that runs.
daemons_sort()
{
	local trigger left=" ${2#* } "

	stop=() start=()
	daemons_group "$1"
	[[ $2 == *' '* ]] || left=' '
	for trigger in "${GROUP[@]}"; do
		if [[ $left == *" $trigger "* ]]; then
			start+=("$trigger")
			left=${left/" $trigger "/ }
		else
			stop+=("$trigger")
		fi
	done
	case ${2%% *} in
	running) start+=("$1") ;;
	stopped) stop=("$1" "${stop[@]}") ;;
	*) left=neither ;;
	esac
	[[ $left == ' ' ]] || setting_refuse "$2" 'a state of this unit'
}

knob_daemons_set()
{
	local stop start

	! daemons_reason "$1" && daemons_sort "$1" "$2" || return 1
	((${#stop[@]} == 0)) || unit_switch stop "${stop[@]}" || return 1
	((${#start[@]} == 0)) || unit_switch start "${start[@]}"
}

knob_daemons_act()
{
	local stop start

	daemons_sort "$1" "$2" || return 0
	((${#stop[@]} == 0)) || ACT="systemctl stop ${stop[*]}"
	((${#start[@]} == 0)) ||
		ACT+="${ACT:+; }systemctl start ${start[*]}"
}

knob_daemons_explain()
{
	local group

	EXPLAIN='Services that run now and need not while something is measured:
each takes a CPU, a disk or memory at times of its own.  Undoing starts those
that were running.  Never touched are'
	for group in "${daemons_never[@]}"; do
		EXPLAIN+=$'\n'"  (${group%%:*})"${group#*:}
	done
	EXPLAIN+=$'\n''Source: the pruning of system daemons in "Datamation: A Quarter
of a Century and Four Orders of Magnitude Later", CLUSTER 2011, section III.'
}
