#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shell/process.h"

/* The kernel's sigset_t, not that of the C library. */
#define KERNEL_SIGSET_BYTES 8

/* What ps(1) and pgrep(1) show of a standby: not one more of us. */
static const char standby_name[] = "blinkd-standby";

static _Alignas(16) uint8_t start_stack[PROCESS_STACK_BYTES];

/* Instrumented code would take the other stack for an overflow. */
#define UNINSTRUMENTED                                                         \
	__attribute__((no_sanitize("address")))                                \
	__attribute__((no_sanitize("thread")))                                 \
	__attribute__((no_sanitize("undefined")))

/* --- in the new process: system calls only, of no library's state ----------
 *
 * Nor of errno: a standby runs while we do, and has ours.  So the calls are
 * made by hand, and give what the kernel gives: -errno.
 */

#if defined(__x86_64__)

UNINSTRUMENTED static long call(long number, long a, long b, long c, long d,
				long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10),
			   "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

#elif defined(__aarch64__)

UNINSTRUMENTED static long call(long number, long a, long b, long c, long d,
				long e)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
}

#else
#error "no system calls by hand for this machine"
#endif

UNINSTRUMENTED static int put_fd(int fd, int wanted)
{
	/* dup3() refuses to copy one to itself, close-on-exec stays then. */
	long ret = fd == wanted ? call(SYS_fcntl, fd, F_SETFD, 0, 0, 0)
				: call(SYS_dup3, fd, wanted, 0, 0, 0);

	return ret < 0 ? (int)ret : 0;
}

/* The secret comes last: any of the others may be PROCESS_SECRET_FD. */
UNINSTRUMENTED static int put_fds(const struct process_place *place)
{
	int ret = put_fd(place->stdin_fd, STDIN_FILENO);

	if (ret == 0)
		ret = put_fd(place->stdout_fd, STDOUT_FILENO);
	if (ret == 0)
		ret = put_fd(place->stderr_fd, STDERR_FILENO);
	if (ret == 0)
		ret = put_fd(place->secret_fd, PROCESS_SECRET_FD);
	return ret;
}

UNINSTRUMENTED static int leave_group(const struct process_place *place)
{
	long ret = place->own_session ? call(SYS_setsid, 0, 0, 0, 0, 0)
				      : call(SYS_setpgid, 0, 0, 0, 0, 0);

	return ret < 0 ? (int)ret : 0;
}

UNINSTRUMENTED static int set_limits(const struct process_place *place)
{
	long ret = 0;

	for (unsigned i = 0; i < place->limit_count && ret == 0; i++) {
		uint64_t both[2] = { place->limits[i].value,
				     place->limits[i].value };

		ret = call(SYS_prlimit64, 0, place->limits[i].resource,
			   (long)both, 0, 0);
	}
	return (int)ret;
}

/* A parent that died before the death signal was asked for sends none. */
UNINSTRUMENTED static int die_with(pid_t parent)
{
	long ret = call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);

	if (ret == 0 && call(SYS_getppid, 0, 0, 0, 0, 0) != parent)
		return -ESRCH;
	return (int)ret;
}

UNINSTRUMENTED static int settle(const struct process_birth *birth)
{
	int ret = leave_group(birth->place);

	if (ret == 0)
		ret = die_with(birth->parent);
	if (ret == 0)
		ret = put_fds(birth->place);
	if (ret == 0)
		ret = set_limits(birth->place);
	return ret;
}

/* Why there is no program. */
UNINSTRUMENTED static int run(const struct process_program *program)
{
	uint64_t no_signals = 0;
	long ret = call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&no_signals, 0,
			KERNEL_SIGSET_BYTES, 0);

	if (ret == 0)
		ret = call(SYS_execve, (long)program->path,
			   (long)program->arguments, (long)program->environment,
			   0, 0);
	return (int)ret;
}

/* The descriptors that exec would close are closed before: our socket, above
 * all, is nobody's but ours.  Before Linux 5.9 exec does it. */
UNINSTRUMENTED static void stand_by(const struct process_birth *birth)
{
	call(SYS_close_range, PROCESS_SECRET_FD + 1, UINT_MAX, 0, 0, 0);
	call(SYS_prctl, PR_SET_NAME, (long)standby_name, 0, 0, 0);
	while (__atomic_load_n(&birth->released, __ATOMIC_ACQUIRE) == 0)
		call(SYS_futex, (long)&birth->released, FUTEX_WAIT_PRIVATE, 0,
		     0, 0);
}

UNINSTRUMENTED __attribute__((noreturn)) static void
die(struct process_birth *birth, int error)
{
	birth->error = error;
	for (;;)
		call(SYS_exit_group, 127, 0, 0, 0, 0);
}

UNINSTRUMENTED __attribute__((noreturn)) static void be_born(void *context)
{
	struct process_birth *birth = context;
	int ret = settle(birth);

	if (ret == 0 && birth->shares)
		stand_by(birth);
	if (ret == 0)
		ret = run(birth->program);
	die(birth, -ret);
}

UNINSTRUMENTED static int join_cgroup(int cgroup_fd)
{
	long fd, ret;

	if (cgroup_fd < 0)
		return 0;
	fd = call(SYS_openat, cgroup_fd, (long)"cgroup.procs",
		  O_WRONLY | O_CLOEXEC, 0, 0);
	if (fd < 0)
		return (int)fd;
	ret = call(SYS_write, fd, (long)"0", 1, 0, 0);
	call(SYS_close, fd, 0, 0, 0, 0);
	return ret < 0 ? (int)ret : 0;
}

/* What clone3() does and clone() does not: take away our handlers, which would
 * write to our memory, and join the cgroup. */
UNINSTRUMENTED __attribute__((noreturn)) static void
be_born_of_clone(void *context)
{
	struct process_birth *birth = context;
	int ret;

	process_default_signals();
	ret = join_cgroup(birth->place->cgroup_fd);
	if (ret < 0)
		die(birth, -ret);
	be_born(birth);
}

/* --- in ours ----------------------------------------------------------------
 */

#ifdef __x86_64__

/* The system call by this number, and in the child function(context), since it
 * must not return into our frames.  No C library wraps clone3(); clone() of a
 * sanitizer's keeps what the child reads in a frame of its own, and returns. */
static long clone_and_call(long number, long a, long b, long child_tid,
			   void (*function)(void *context), void *context)
{
	register long r10 __asm__("r10") = child_tid;
	register long r8 __asm__("r8") = 0;
	long ret;

	__asm__ volatile(
		"syscall\n\t"
		"test %%rax, %%rax\n\t"
		"jnz 1f\n\t"
		"mov %[context], %%rdi\n\t"
		"call *%[function]\n"
		"1:"
		: "=a"(ret)
		: "0"(number), "D"(a), "S"(b), "d"(0L), "r"(r10),
		  "r"(r8), [function] "r"(function), [context] "r"(context)
		: "rcx", "r11", "memory");
	return ret;
}

/* CLONE_CLEAR_SIGHAND: a signal that reaches the process before its program
 * must not run our handler, which would write to our memory. */
static long give_birth_by_clone3(struct process_birth *birth, uint8_t *stack,
				 unsigned flags)
{
	struct clone_args arguments = {
		.flags = flags | CLONE_CLEAR_SIGHAND,
		.exit_signal = SIGCHLD,
		.child_tid = (uintptr_t)&birth->shares,
		.stack = (uintptr_t)stack,
		.stack_size = PROCESS_STACK_BYTES,
	};

	if (birth->place->cgroup_fd >= 0) {
		arguments.flags |= CLONE_INTO_CGROUP;
		arguments.cgroup = (uint64_t)birth->place->cgroup_fd;
	}
	return clone_and_call(SYS_clone3, (long)&arguments, sizeof(arguments),
			      0, be_born, birth);
}

static long give_birth_by_clone(struct process_birth *birth, uint8_t *stack,
				unsigned flags)
{
	return clone_and_call(SYS_clone, (long)(flags | SIGCHLD),
			      (long)(stack + PROCESS_STACK_BYTES),
			      (long)&birth->shares, be_born_of_clone, birth);
}

#else

static long give_birth_by_clone3(struct process_birth *birth, uint8_t *stack,
				 unsigned flags)
{
	(void)birth;
	(void)stack;
	(void)flags;
	return -ENOSYS;
}

int clone(int (*function)(void *), void *stack_end, int flags, void *context,
	  ...);

UNINSTRUMENTED static int begin(void *context)
{
	be_born_of_clone(context);
}

static long give_birth_by_clone(struct process_birth *birth, uint8_t *stack,
				unsigned flags)
{
	int pid =
		clone(begin, stack + PROCESS_STACK_BYTES, (int)flags | SIGCHLD,
		      birth, NULL, NULL, &birth->shares);

	return pid < 0 ? -errno : pid;
}

#endif

/* Filters of system calls cannot see the flags of clone3(), and so those that
 * forbid namespaces (systemd's RestrictNamespaces=, containers') deny it as if
 * the kernel did not have it. */
static long give_birth(struct process_birth *birth, uint8_t *stack,
		       unsigned flags)
{
	long pid = give_birth_by_clone3(birth, stack, flags);

	return pid == -ENOSYS ? give_birth_by_clone(birth, stack, flags) : pid;
}

UNINSTRUMENTED void process_default_signals(void)
{
	/* The kernel's struct sigaction, by the kernel's call: the C library's
	 * refuses its own two signals.  Zeros are SIG_DFL. */
	const uint64_t action[4] = { 0 };

	for (int number = 1; number <= 8 * KERNEL_SIGSET_BYTES; number++)
		call(SYS_rt_sigaction, number, (long)action, 0,
		     KERNEL_SIGSET_BYTES, 0);
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

/* pid, of a process that shares our memory no longer. */
static pid_t outcome(pid_t pid, const struct process_birth *birth)
{
	if (birth->error == 0)
		return pid;
	reap(pid);
	return -birth->error;
}

pid_t process_start(const struct process_place *place,
		    const struct process_program *program)
{
	struct process_birth birth = { .place = place,
				       .program = program,
				       .parent = getpid() };
	long pid = give_birth(&birth, start_stack, CLONE_VM | CLONE_VFORK);

	return pid < 0 ? (pid_t)pid : outcome((pid_t)pid, &birth);
}

/* Until its program runs, or it has died, it shares our memory. */
static uint32_t shares(const struct process_birth *birth)
{
	return __atomic_load_n(&birth->shares, __ATOMIC_ACQUIRE);
}

int process_prepare(struct process_standby *standby,
		    const struct process_place *place)
{
	long pid;

	standby->place = *place;
	standby->birth = (struct process_birth){ .place = &standby->place,
						 .parent = getpid(),
						 .shares = 1 };
	pid = give_birth(&standby->birth, standby->stack,
			 CLONE_VM | CLONE_CHILD_CLEARTID);
	standby->pid = pid < 0 ? 0 : (pid_t)pid;
	return pid < 0 ? (int)pid : 0;
}

/* It was released.  One that takes so long was stopped by somebody. */
static void wait_for_exec(const struct process_birth *birth, pid_t pid)
{
	const struct timespec patience = { .tv_nsec = 100000000 };

	while (shares(birth)) {
		/* The kernel does not know that this one is private. */
		long ret = syscall(SYS_futex, &birth->shares, FUTEX_WAIT, 1,
				   &patience);

		if (ret < 0 && errno == ETIMEDOUT)
			kill(pid, SIGCONT);
	}
}

pid_t process_release(struct process_standby *standby,
		      const struct process_program *program)
{
	struct process_birth *birth = &standby->birth;
	pid_t pid = standby->pid;

	standby->pid = 0;
	if (pid == 0)
		return 0;
	if (!shares(birth)) {
		reap(pid);
		return 0;
	}
	birth->program = program;
	__atomic_store_n(&birth->released, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &birth->released, FUTEX_WAKE_PRIVATE, 1);
	wait_for_exec(birth, pid);
	return outcome(pid, birth);
}

void process_dismiss(struct process_standby *standby)
{
	if (standby->pid == 0)
		return;
	kill(standby->pid, SIGKILL);
	reap(standby->pid);
	standby->pid = 0;
}
