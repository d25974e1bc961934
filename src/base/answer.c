/* answer.c - prints a line on standard error when SIGUSR1 asks for it */
#include "base/answer.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"

/* Written before there are other threads. */
static struct format_line prefix;
static uint64_t begin_ns;

static _Atomic(const struct answer *) current;
static _Atomic(const char *) current_phase = "preparing";

void answer_now(void)
{
	const struct answer *answer = atomic_load(&current);
	struct format_line line = prefix;

	if (!answer)
		format_add(&line, atomic_load(&current_phase));
	else if (!answer->tell(answer->context, &line))
		return;
	/* A line of progress may stand there: it is drawn again soon. */
	while (isatty(STDERR_FILENO) && line.length < FORMAT_DRAWN_COLUMNS)
		format_add(&line, " ");
	format_add(&line, "\n");
	if (write(STDERR_FILENO, line.text, line.length) < 0)
		return;
}

/* Threads of a library may get the signal: the main thread has what the answer
 * is made of. */
static void on_signal(int number)
{
	int saved_errno = errno;
	pid_t main_thread = getpid();

	if (syscall(SYS_gettid) == main_thread)
		answer_now();
	else
		syscall(SYS_tgkill, main_thread, main_thread, number);
	errno = saved_errno;
}

void answer_begin(const char *program)
{
	const struct sigaction action = {
		.sa_handler = on_signal,
		.sa_flags = SA_RESTART,
	};

	format_add(&prefix, program);
	format_add(&prefix, ": ");
	begin_ns = clock_now_ns();
	sigaction(SIGUSR1, &action, NULL);
}

void answer_set_rank(unsigned rank)
{
	format_add(&prefix, "rank ");
	format_add_number(&prefix, rank);
	format_add(&prefix, ": ");
}

void answer_by(const struct answer *answer)
{
	atomic_store(&current, answer);
}

void answer_phase(const char *phase)
{
	atomic_store(&current_phase, phase);
	atomic_store(&current, NULL);
}

uint64_t answer_begin_ns(void)
{
	return begin_ns;
}
