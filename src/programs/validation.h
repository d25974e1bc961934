/*
 * validation.h - the order and the checksum of the records of files
 */
#ifndef VALIDATION_H
#define VALIDATION_H

#include <stdint.h>

#include "base/failure.h"
#include "record/validator.h"

struct validation_request {
	char **paths; /* the parts, in order; a part may be a pipe */
	unsigned path_count;
	uint64_t thread_count; /* 0: one for each CPU */
};

/*
 * Read all parts and add what they hold to *summary.  *fragment_path becomes
 * the path of the first part that ends within a record, if there is one.  0 or
 * -errno with *failure filled.  Call it once in a process, whose end closes the
 * files and frees the memory.
 */
int validate_records(const struct validation_request *request,
		     struct summary *summary, const char **fragment_path,
		     struct failure *failure);

#endif /* VALIDATION_H */
