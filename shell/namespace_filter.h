/*
 * namespace_filter.h - a filter of system calls that forbids new namespaces
 *
 * A process that has this filter, and all that descend from it, can neither
 * make a namespace nor enter one: clone(2) and unshare(2) with a flag of a
 * namespace, and setns(2), fail with EPERM.  clone3(2), whose flags a filter
 * cannot see, fails with ENOSYS as if the kernel did not have it; C libraries
 * then call clone(2).  So do all calls of another architecture's table.
 *
 * systemd's RestrictNamespaces= is the same, but holds for the daemon, too,
 * which needs clone3() to start a program in its cgroup.
 */
#ifndef NAMESPACE_FILTER_H
#define NAMESPACE_FILTER_H

#include <linux/filter.h>

/* The filter for prctl(PR_SET_SECCOMP). */
extern const struct sock_fprog namespace_filter;

#endif /* NAMESPACE_FILTER_H */
