/* process.c - start a program by the cheapest safe way */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shell/namespace_filter.h"
#include "shell/process.h"

/* The size of the kernel's sigset_t, which is not that of the C library. */
#define KERNEL_SIGSET_BYTES 8
#define STACK_BYTES 16384

/* Parent and child both use this as long as the child shares our memory. */
struct child {
	const struct process_request *request;
	pid_t parent;
	int error; /* the child writes why it has no program: an errno value */
};

static _Alignas(16) uint8_t child_stack[STACK_BYTES];

/* Sanitizers would take the child's stack for an overflow of ours. */
#define UNINSTRUMENTED                                                         \
	__attribute__((no_sanitize("address")))                                \
	__attribute__((no_sanitize("thread")))                                 \
	__attribute__((no_sanitize("undefined")))

/* --- in the child -----------------------------------------------------------
 *
 * The child shares our memory, and so all state of the C library, until
 * execve(): it makes system calls only.  They may set our errno, which is of no
 * matter, as we sleep meanwhile.
 */

UNINSTRUMENTED static bool put_fd(int fd, int wanted)
{
	/* dup3() refuses equal descriptors, and close-on-exec would stay. */
	if (fd == wanted)
		return syscall(SYS_fcntl, fd, F_SETFD, 0) == 0;
	return syscall(SYS_dup3, fd, wanted, 0) >= 0;
}

/* The secret comes last: any of the others may be PROCESS_SECRET_FD. */
UNINSTRUMENTED static bool put_fds(const struct process_request *request)
{
	return put_fd(request->stdin_fd, STDIN_FILENO) &&
	       put_fd(request->stdout_fd, STDOUT_FILENO) &&
	       put_fd(request->stderr_fd, STDERR_FILENO) &&
	       put_fd(request->secret_fd, PROCESS_SECRET_FD);
}

UNINSTRUMENTED static bool leave_group(const struct process_request *request)
{
	return request->own_session ? syscall(SYS_setsid) >= 0
				    : syscall(SYS_setpgid, 0, 0) == 0;
}

UNINSTRUMENTED static bool set_limits(const struct process_request *request)
{
	for (unsigned i = 0; i < request->limit_count; i++) {
		uint64_t both[2] = { request->limits[i].value,
				     request->limits[i].value };

		if (syscall(SYS_prlimit64, 0, request->limits[i].resource, both,
			    NULL) < 0)
			return false;
	}
	return true;
}

/* A parent that died before the child asked for the death signal sends none. */
UNINSTRUMENTED static bool die_with(pid_t parent)
{
	return syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 &&
	       syscall(SYS_getppid) == parent;
}

/* The kernel takes a filter only from a process that gains no privileges by
 * execve(). */
UNINSTRUMENTED static bool deny_namespaces(void)
{
	return syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
		       &namespace_filter) == 0;
}

UNINSTRUMENTED static bool set_up(const struct child *child)
{
	const struct process_request *request = child->request;
	uint64_t no_signals = 0;

	return leave_group(request) && die_with(child->parent) &&
	       put_fds(request) && set_limits(request) &&
	       (!request->no_namespaces || deny_namespaces()) &&
	       syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL,
		       KERNEL_SIGSET_BYTES) == 0;
}

UNINSTRUMENTED __attribute__((noreturn)) static void fail(struct child *child)
{
	child->error = errno;
	for (;;)
		syscall(SYS_exit_group, 127);
}

UNINSTRUMENTED __attribute__((noreturn)) static void child_main(void *context)
{
	struct child *child = context;
	const struct process_request *request = child->request;

	if (set_up(child))
		syscall(SYS_execve, request->path, request->arguments,
			request->environment);
	fail(child);
}

UNINSTRUMENTED static bool join_cgroup(int cgroup_fd)
{
	long fd, written;

	if (cgroup_fd < 0)
		return true;
	fd = syscall(SYS_openat, cgroup_fd, "cgroup.procs",
		     O_WRONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	written = syscall(SYS_write, fd, "0", 1);
	syscall(SYS_close, fd);
	return written == 1;
}

/* Runs the child of clone().  It first does what clone3() does and clone() does
 * not: it sets our handlers, which would write to our memory, to the default,
 * and joins the cgroup. */
UNINSTRUMENTED static int child_main_of_clone(void *context)
{
	struct child *child = context;

	process_default_signals();
	if (!join_cgroup(child->request->cgroup_fd))
		fail(child);
	child_main(child);
}

/* --- in the parent ------------------------------------------------------- */

#ifdef __x86_64__

/* Makes the system call, and calls function(context) in the child, which must
 * not return into our frames.  No C library wraps clone3().
 *
 * Each operand has a register of its own: for "r" the compiler may choose the
 * stack pointer if the operand has its value, and the child's differs. */
static long clone3_and_call(const struct clone_args *arguments,
			    void (*function)(void *context), void *context)
{
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %%rdx, %%rdi\n\t"
			 "call *%%rbx\n"
			 "1:"
			 : "=a"(ret)
			 : "0"((long)SYS_clone3), "D"(arguments),
			   "S"(sizeof(*arguments)), "b"(function), "d"(context)
			 : "rcx", "r11", "memory");
	return ret;
}

/* CLONE_CLEAR_SIGHAND: a signal that reaches the child before its program must
 * not run our handler, which would write to our memory. */
static long start_by_clone3(struct child *child)
{
	int cgroup_fd = child->request->cgroup_fd;
	struct clone_args arguments = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_CLEAR_SIGHAND,
		.exit_signal = SIGCHLD,
		.stack = (uintptr_t)child_stack,
		.stack_size = STACK_BYTES,
	};

	if (cgroup_fd >= 0) {
		arguments.flags |= CLONE_INTO_CGROUP;
		arguments.cgroup = (uint64_t)cgroup_fd;
	}
	return clone3_and_call(&arguments, child_main, child);
}

#else

static long start_by_clone3(struct child *child)
{
	(void)child;
	return -ENOSYS;
}

#endif

/* <sched.h>, which declares it, contradicts <linux/sched.h>. */
int clone(int (*function)(void *), void *stack_end, int flags, void *context,
	  ...);

static long start_by_clone(struct child *child)
{
	int pid = clone(child_main_of_clone, child_stack + STACK_BYTES,
			CLONE_VM | CLONE_VFORK | SIGCHLD, child);

	return pid < 0 ? -errno : pid;
}

UNINSTRUMENTED void process_default_signals(void)
{
	/* The kernel's struct sigaction, by the kernel's call: the C library's
	 * refuses its own two signals.  Zeros are SIG_DFL. */
	const uint64_t action[4] = { 0 };

	for (int number = 1; number <= 8 * KERNEL_SIGSET_BYTES; number++)
		syscall(SYS_rt_sigaction, number, action, NULL,
			KERNEL_SIGSET_BYTES);
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

/* Filters of system calls cannot see the flags of clone3(), and so those that
 * forbid namespaces (containers', systemd's RestrictNamespaces=) deny it as if
 * the kernel did not have it. */
pid_t process_start(const struct process_request *request)
{
	struct child child = { .request = request, .parent = getpid() };
	long pid = start_by_clone3(&child);

	if (pid == -ENOSYS)
		pid = start_by_clone(&child);
	if (pid < 0 || child.error == 0)
		return (pid_t)pid;
	reap((pid_t)pid);
	return -child.error;
}
