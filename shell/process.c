#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

/* The kernel's sigset_t, not that of the C library. */
#define KERNEL_SIGSET_BYTES 8
#define STACK_BYTES 16384

/* What the new process, as long as it shares our memory, reads and writes. */
struct birth {
	const struct process *process;
	pid_t parent;
	int error; /* an errno value: why there is no program */
};

static _Alignas(16) uint8_t stack[STACK_BYTES];

/* Instrumented code would take the other stack for an overflow. */
#define UNINSTRUMENTED                                                         \
	__attribute__((no_sanitize("address")))                                \
	__attribute__((no_sanitize("thread")))                                 \
	__attribute__((no_sanitize("undefined")))

/* --- in the new process: system calls only, of no library's state ----------
 */

UNINSTRUMENTED static bool put_fd(int fd, int wanted)
{
	/* dup3() refuses to copy one to itself, close-on-exec stays then. */
	if (fd == wanted)
		return syscall(SYS_fcntl, fd, /* F_SETFD */ 2, 0) == 0;
	return syscall(SYS_dup3, fd, wanted, 0) >= 0;
}

/* The secret comes last: any of the others may be PROCESS_SECRET_FD. */
UNINSTRUMENTED static bool put_fds(const struct process *process)
{
	return put_fd(process->stdin_fd, STDIN_FILENO) &&
	       put_fd(process->stdout_fd, STDOUT_FILENO) &&
	       put_fd(process->stderr_fd, STDERR_FILENO) &&
	       put_fd(process->secret_fd, PROCESS_SECRET_FD);
}

UNINSTRUMENTED static bool leave_group(const struct process *process)
{
	return process->own_session ? syscall(SYS_setsid) >= 0
				    : syscall(SYS_setpgid, 0, 0) == 0;
}

UNINSTRUMENTED static bool set_limits(const struct process *process)
{
	for (unsigned i = 0; i < process->limit_count; i++) {
		uint64_t both[2] = { process->limits[i].value,
				     process->limits[i].value };

		if (syscall(SYS_prlimit64, 0, process->limits[i].resource, both,
			    NULL) < 0)
			return false;
	}
	return true;
}

/* A parent that died before the death signal was asked for sends none. */
UNINSTRUMENTED static bool die_with(pid_t parent)
{
	return syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 &&
	       syscall(SYS_getppid) == parent;
}

UNINSTRUMENTED __attribute__((noreturn)) static void be_born(void *context)
{
	struct birth *birth = context;
	const struct process *process = birth->process;
	uint64_t no_signals = 0;

	if (leave_group(process) && die_with(birth->parent) &&
	    put_fds(process) && set_limits(process) &&
	    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &no_signals, NULL,
		    KERNEL_SIGSET_BYTES) == 0)
		syscall(SYS_execve, process->path, process->arguments,
			process->environment);
	birth->error = errno;
	for (;;)
		syscall(SYS_exit_group, 127);
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

/* What clone3() does and clone() does not: take away our handlers, which would
 * write to our memory, and join the cgroup. */
UNINSTRUMENTED static int be_born_of_clone(void *context)
{
	struct birth *birth = context;

	process_default_signals();
	if (join_cgroup(birth->process->cgroup_fd))
		be_born(birth);
	birth->error = errno;
	for (;;)
		syscall(SYS_exit_group, 127);
}

/* --- in ours ----------------------------------------------------------------
 */

#ifdef __x86_64__

/* No C library wraps clone3().  The child must not return into our frames. */
static long clone_and_call(struct clone_args *arguments,
			   void (*function)(void *context), void *context)
{
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %[context], %%rdi\n\t"
			 "call *%[function]\n"
			 "1:"
			 : "=a"(ret)
			 : "0"(SYS_clone3), "D"(arguments),
			   "S"(sizeof(*arguments)), [function] "r"(function),
			   [context] "r"(context)
			 : "rcx", "r11", "memory");
	return ret;
}

/* CLONE_CLEAR_SIGHAND: a signal that reaches the process before its program
 * must not run our handler, which would write to our memory. */
static long give_birth_by_clone3(struct birth *birth)
{
	struct clone_args arguments = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_CLEAR_SIGHAND,
		.exit_signal = SIGCHLD,
		.stack = (uintptr_t)stack,
		.stack_size = sizeof(stack),
	};

	if (birth->process->cgroup_fd >= 0) {
		arguments.flags |= CLONE_INTO_CGROUP;
		arguments.cgroup = (uint64_t)birth->process->cgroup_fd;
	}
	return clone_and_call(&arguments, be_born, birth);
}

#else

static long give_birth_by_clone3(struct birth *birth)
{
	(void)birth;
	return -ENOSYS;
}

#endif

int clone(int (*function)(void *), void *stack_end, int flags, void *context,
	  ...);

static long give_birth_by_clone(struct birth *birth)
{
	int pid = clone(be_born_of_clone, stack + sizeof(stack),
			CLONE_VM | CLONE_VFORK | SIGCHLD, birth);

	return pid < 0 ? -errno : pid;
}

/* Filters of system calls cannot see the flags of clone3(), and so those that
 * forbid namespaces (systemd's RestrictNamespaces=, containers') deny it as if
 * the kernel did not have it. */
static long give_birth(struct birth *birth)
{
	long pid = give_birth_by_clone3(birth);

	return pid == -ENOSYS ? give_birth_by_clone(birth) : pid;
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

pid_t process_start(const struct process *process)
{
	struct birth birth = { .process = process, .parent = getpid() };
	long pid = give_birth(&birth);

	if (pid < 0)
		return (pid_t)pid;
	if (birth.error == 0)
		return (pid_t)pid;
	while (waitpid((pid_t)pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	return -birth.error;
}
