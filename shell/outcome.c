#include <signal.h>

#include "shell/outcome.h"

struct outcome outcome_of(enum wire_job_state state, int code)
{
	switch (state) {
	case WIRE_JOB_EXITED:
		return (struct outcome){ code == 0 ? OUTCOME_OK
						   : OUTCOME_APPLICATION,
					 code };
	case WIRE_JOB_KILLED:
		return (struct outcome){ OUTCOME_APPLICATION, 128 + code };
	case WIRE_JOB_CANCELLED:
		return (struct outcome){ OUTCOME_APPLICATION, 128 + SIGTERM };
	case WIRE_JOB_TIMED_OUT:
		return (struct outcome){ OUTCOME_TIMEOUT, 124 };
	case WIRE_JOB_REFUSED:
		return (struct outcome){ OUTCOME_REFUSED, 125 };
	case WIRE_JOB_UNKNOWN:
	case WIRE_JOB_RUNNING:
	case WIRE_JOB_LEASE_EXPIRED:
	case WIRE_JOB_FORGOTTEN:
		break;
	}
	return (struct outcome){ OUTCOME_LOST, 127 };
}

struct outcome outcome_worst(struct outcome a, struct outcome b)
{
	if (a.class != b.class)
		return a.class > b.class ? a : b;
	return a.status > b.status ? a : b;
}

const char *outcome_name(enum wire_job_state state)
{
	switch (state) {
	case WIRE_JOB_RUNNING:
		return "running";
	case WIRE_JOB_EXITED:
		return "exited";
	case WIRE_JOB_KILLED:
		return "killed";
	case WIRE_JOB_TIMED_OUT:
		return "timed out";
	case WIRE_JOB_LEASE_EXPIRED:
		return "lease expired";
	case WIRE_JOB_CANCELLED:
		return "cancelled";
	case WIRE_JOB_REFUSED:
		return "refused";
	case WIRE_JOB_FORGOTTEN:
		return "forgotten";
	case WIRE_JOB_UNKNOWN:
		break;
	}
	return "lost";
}
