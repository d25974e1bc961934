/*
 * numa_options.h - on which NUMA nodes a sort runs
 */
#ifndef NUMA_OPTIONS_H
#define NUMA_OPTIONS_H

#include "sort/sorter.h"

/*
 * Take --numa's value, or NULL: "auto", "off", or nodes in numactl's syntax, to
 * which this process, while it has one thread, is then confined.  0 or -errno
 * with *failure filled.
 */
int numa_options_apply(const char *value, struct sorter_config *config,
		       struct failure *failure);

#endif /* NUMA_OPTIONS_H */
