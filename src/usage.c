#include "usage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "failure.h"
#include "log.h"
#include "parse.h"

void usage_error(const char *format, ...)
{
	struct failure failure = { .status = EXIT_USAGE };
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(failure.why, sizeof(failure.why), format, arguments);
	va_end(arguments);
	exit(log_failure(&failure));
}

uint64_t usage_number(const char *name, const char *text, uint64_t min,
		      uint64_t max)
{
	uint64_t value;

	if (parse_u64(text, min, max, &value) < 0)
		usage_error("--%s=%.64s: not a number from %llu to %llu", name,
			    text, (unsigned long long)min,
			    (unsigned long long)max);
	return value;
}
