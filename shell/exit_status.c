/* exit_status.c - turn the ends of jobs into the exit status of blinksh */
#include <signal.h>

#include "base/base.h"
#include "shell/exit_status.h"

struct node_exit exit_status_of(enum wire_job_state state, int code)
{
	switch (state) {
	case WIRE_JOB_EXITED:
		return (struct node_exit){ code == 0 ? EXIT_STATUS_OK
						     : EXIT_STATUS_APPLICATION,
					   code };
	case WIRE_JOB_KILLED:
		return (struct node_exit){ EXIT_STATUS_APPLICATION,
					   128 + code };
	case WIRE_JOB_CANCELLED:
		return (struct node_exit){ EXIT_STATUS_APPLICATION,
					   128 + SIGTERM };
	case WIRE_JOB_TIMED_OUT:
		return (struct node_exit){ EXIT_STATUS_TIMEOUT, 124 };
	case WIRE_JOB_REFUSED:
		return (struct node_exit){ EXIT_STATUS_REFUSED, 125 };
	case WIRE_JOB_UNKNOWN:
	case WIRE_JOB_RUNNING:
	case WIRE_JOB_LEASE_EXPIRED:
	case WIRE_JOB_FORGOTTEN:
		break;
	}
	return (struct node_exit){ EXIT_STATUS_LOST, 127 };
}

struct node_exit exit_status_worst(struct node_exit a, struct node_exit b)
{
	if (a.class != b.class)
		return a.class > b.class ? a : b;
	return a.status > b.status ? a : b;
}

const char *exit_status_state_name(enum wire_job_state state)
{
	static const char *const names[] = {
		[WIRE_JOB_UNKNOWN] = "lost",
		[WIRE_JOB_RUNNING] = "running",
		[WIRE_JOB_EXITED] = "exited",
		[WIRE_JOB_KILLED] = "killed",
		[WIRE_JOB_TIMED_OUT] = "timed out",
		[WIRE_JOB_LEASE_EXPIRED] = "lease expired",
		[WIRE_JOB_CANCELLED] = "cancelled",
		[WIRE_JOB_REFUSED] = "refused",
		[WIRE_JOB_FORGOTTEN] = "forgotten",
	};

	return (size_t)state < ARRAY_LEN(names) ? names[state] : "lost";
}
