/* first_failure.c - of several threads that may fail, the first one's reason */
#include "base/first_failure.h"

#include <errno.h>

int first_failure_get(const struct first_failure *first,
		      struct failure *failure)
{
	if (!first_failure_stops(first))
		return 0;
	*failure = first->failure;
	return -EIO;
}
