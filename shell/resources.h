/*
 * resources.h - what each job is given of its own: pipes, a secret, a cgroup
 *
 * None of them is given to a second job, but for a cgroup that no process is
 * left in (jobgroup.h).  They can be made before the job is known, and so while
 * no client waits for them.
 */
#ifndef RESOURCES_H
#define RESOURCES_H

#include <stdbool.h>

#include "shell/jobgroup.h"
#include "shell/secret.h"

struct resources {
	bool made;	    /* else there is none of them */
	int out[2], err[2]; /* pipes, as stream_make_pipe() makes them */
	struct secret secret;
	struct jobgroup group;
};

extern const struct resources resources_none;

/* Makes the resources, unless they are made.  0, or -errno and there are none.
 */
int resources_make(struct resources *resources, struct jobgroup_pool *groups);

/* Closes the resources that there are; the cgroup goes back to the pool. */
void resources_close(struct resources *resources, struct jobgroup_pool *groups);

#endif /* RESOURCES_H */
