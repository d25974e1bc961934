/* namespace_filter.c - a filter of system calls that forbids new namespaces */
#include <errno.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/base.h"
#include "shell/namespace_filter.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the name that filters have for this architecture"
#endif

/* Newer than the C library's headers; of unshare() only: for clone() the bit is
 * one of the exit signal, that no signal has. */
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#define NAMESPACES                                                             \
	(CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS |         \
	 CLONE_NEWPID | CLONE_NEWTIME | CLONE_NEWUSER | CLONE_NEWUTS)
/* The table x32, of x86-64's architecture, has its numbers from here on; no
 * other has as many. */
#define X32_BEGIN 0x40000000

#define LOAD(field)                                                            \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define JUMP(test, value, if_true, if_false)                                   \
	BPF_JUMP(BPF_JMP | (test) | BPF_K, value, if_true, if_false)
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)

/* A jump skips as many instructions.  The flags are the first argument, of
 * which args[0] on a little-endian machine is the lower half. */
static struct sock_filter instructions[] = {
	LOAD(arch),
	JUMP(BPF_JEQ, ARCHITECTURE, 0, 8),
	LOAD(nr),
	JUMP(BPF_JGE, X32_BEGIN, 6, 0),
	JUMP(BPF_JEQ, SYS_clone3, 5, 0),
	JUMP(BPF_JEQ, SYS_setns, 5, 0),
	JUMP(BPF_JEQ, SYS_clone, 1, 0),
	JUMP(BPF_JEQ, SYS_unshare, 0, 4),
	LOAD(args[0]),
	JUMP(BPF_JSET, NAMESPACES, 1, 2),
	RETURN(SECCOMP_RET_ERRNO | ENOSYS),
	RETURN(SECCOMP_RET_ERRNO | EPERM),
	RETURN(SECCOMP_RET_ALLOW),
};

const struct sock_fprog namespace_filter = {
	.len = ARRAY_LEN(instructions),
	.filter = instructions,
};
