/*
 * allowance.h - how much of the machine this process may take, and what says so
 *
 * Memory is limited by the machine, by control groups (version 2, or version
 * 1's controllers) and by resource limits; CPU time by quotas of control
 * groups.  Which CPUs it may use is in topology.h.  To read all that takes some
 * tenths of a millisecond: small sorts do without.
 */
#ifndef ALLOWANCE_H
#define ALLOWANCE_H

#include <stdint.h>

enum allowance_source {
	ALLOWANCE_MACHINE,	 /* it has no more */
	ALLOWANCE_CGROUP,	 /* that of this process, or one above it */
	ALLOWANCE_ADDRESS_SPACE, /* RLIMIT_AS, of all that is mapped */
	ALLOWANCE_DATA,		 /* RLIMIT_DATA, of what is mapped privately */
};

struct allowance {
	/* Bytes to be had without swapping; UINT64_MAX: nothing tells.  Cached
	 * file data counts as free, but for a small part of it, as it does in
	 * MemAvailable. */
	uint64_t memory_bytes;
	enum allowance_source memory_source;
	/* Bytes to be had for files on a tmpfs, which no resource limit counts.
	 */
	uint64_t file_bytes;
	/* Free swap space, which these files can go to; 0 if something else
	 * than the machine limits them. */
	uint64_t swap_bytes;
};

void allowance_read(struct allowance *allowance);

/* Returns memory_bytes of the allowance alone. */
uint64_t allowance_memory_bytes(void);

/* Returns how much of memory_bytes this process has already, beside files. */
uint64_t allowance_taken_bytes(void);

/* CPUs that a quota is worth, rounded up: of more threads than that some wait
 * while others run.  UINT_MAX: there is no quota. */
unsigned allowance_quota_cpus(void);

/* [enum allowance_source]: "machine", "cgroup", "RLIMIT_AS", "RLIMIT_DATA" */
extern const char *const allowance_source_names[];

#endif /* ALLOWANCE_H */
