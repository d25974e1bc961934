/*
 * topology.h - which CPUs this process may use, and how much memory there is
 */
#ifndef TOPOLOGY_H
#define TOPOLOGY_H

#include <pthread.h>
#include <stdint.h>

#define TOPOLOGY_CPUS_MAX 1024

struct topology {
	unsigned cpu_count; /* allowed by affinity and cgroup cpuset: >= 1 */
	uint16_t cpus[TOPOLOGY_CPUS_MAX]; /* their numbers, ascending */
};

void topology_read(struct topology *topology);

/* Bind the calling thread to one CPU; a refusal is ignored: it only costs. */
void topology_pin_self(uint16_t cpu);
/* The same for another thread of this process, which has not been joined. */
void topology_pin_thread(pthread_t thread, uint16_t cpu);

/* Index in cpus[] of the one that the calling thread is running on; 0 if that
 * can't be told. */
unsigned topology_place_of_self(const struct topology *topology);

/*
 * What can be had without swapping: MemAvailable, less if a cgroup (v2, or v1's
 * memory controller) or one above it leaves less, or if RLIMIT_AS does, of
 * which all that the process has mapped is taken.  Cached file data that has
 * not been used lately counts as free, as it does in MemAvailable.  UINT64_MAX
 * if nothing can be read.
 */
uint64_t topology_available_bytes(void);

/* The same from the proc/ and sys/ in another folder, without RLIMIT_AS: for
 * tests. */
uint64_t topology_available_bytes_under(const char *root);

#endif /* TOPOLOGY_H */
