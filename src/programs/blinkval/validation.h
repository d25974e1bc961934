/*
 * validation.h - the order and the checksum of the records of files
 */
#ifndef VALIDATION_H
#define VALIDATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "record/record.h"
#include "record/validator.h"

struct validation_request {
	struct record_shape shape; /* complete */
	/* The parts, in order.  Any may be a pipe, and one of them "-", which
	 * is standard input: the caller has called pipe_check(). */
	char **paths;
	unsigned path_count;
	/* Files whose records the parts should have, in any order. */
	const char **input_paths;
	unsigned input_count;
	/* So many bytes at the beginning of each block device are read; 0: all.
	 * Refused where no file is a device. */
	uint64_t device_bytes;
	/* The parts are the first so many records of the order; 0: all.  With
	 * inputs, the last part may be no stream. */
	uint64_t head_records;
	/* So many bytes at the beginning of each file are no records; of the
	 * inputs alone, if the sort has dropped them. */
	uint64_t header_bytes;
	bool drops_header;
	uint64_t thread_count; /* 0: one for each CPU */
};

struct validation_result {
	/* What is true of the parts.  The two records are set only if records
	 * have SUMMARY_RECORD_BYTES. */
	struct summary summary;
	/* Count and checksum of the inputs' records; with head_records, of
	 * those that the parts should have. */
	struct tally inputs;
	/* The first file that ends within a record, parts before inputs; NULL:
	 * there is none. */
	const char *fragment_path;
	/* The first part whose header is not that of the first input; NULL:
	 * there is none. */
	const char *header_path;
};

/*
 * Read all parts and inputs and add what they hold to *result, which is zeroed.
 * 0 or -errno with *failure filled.  Call it once in a process, whose end
 * closes the files and frees the memory.
 */
int validate_records(const struct validation_request *request,
		     struct validation_result *result, struct failure *failure);

#endif /* VALIDATION_H */
