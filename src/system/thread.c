/* thread.c - starts a thread with a small stack and without signals */
#include "system/thread.h"

#include <signal.h>

#include "base/base.h"

/* One of the usual 8 MiB would cost its page tables, and musl's of 128 KiB is
 * too small.  Sanitizers need more for their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STACK_BYTES MIB
#else
#define STACK_BYTES (256 * KIB)
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#undef STACK_BYTES
#define STACK_BYTES MIB
#endif
#endif

int thread_start(pthread_t *thread, void *(*run)(void *argument),
		 void *argument)
{
	static const int faults[] = { SIGBUS, SIGSEGV, SIGFPE, SIGILL,
				      SIGTRAP };
	pthread_attr_t attributes;
	sigset_t blocked, old;
	int error = pthread_attr_init(&attributes);

	if (error)
		return -error;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&blocked);
	for (size_t i = 0; i < ARRAY_LEN(faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &old);
	error = pthread_create(thread, &attributes, run, argument);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	return -error;
}
