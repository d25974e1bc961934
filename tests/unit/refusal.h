/*
 * refusal.h - a system call that the kernel refuses, in a child process, by a
 * filter of seccomp
 *
 * Included behind cmocka.h and skip.h.
 */
#ifndef REFUSAL_H
#define REFUSAL_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

struct refusal {
	int call;
	int argument;	      /* -1: always */
	uint32_t mask, value; /* (low word of argument & mask) == value */
	int error;
};

/* In this process from now on.  False: seccomp is refused itself. */
static inline bool refuse(const struct refusal *refusal)
{
	uint32_t argument = (uint32_t)offsetof(struct seccomp_data, args) +
			    8 * (uint32_t)MAX(refusal->argument, 0);
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)refusal->call, 0,
			 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K,
			 refusal->argument < 0 ? 0 : refusal->mask),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			 refusal->argument < 0 ? 0 : refusal->value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K,
			 SECCOMP_RET_ERRNO | (uint32_t)refusal->error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {
		.len = ARRAY_LEN(filter),
		.filter = filter,
	};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#define CHILD_CANNOT 77

/* Exit status of a child; skips the test if it could not be set up. */
static inline int wait_for(pid_t child)
{
	int status;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!WIFEXITED(status))
		return -WTERMSIG(status);
	if (WEXITSTATUS(status) == CHILD_CANNOT)
		skip_because("the child can't set up what it is to meet");
	return WEXITSTATUS(status);
}

#endif /* REFUSAL_H */
