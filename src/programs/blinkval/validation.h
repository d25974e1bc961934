/*
 * validation.h - the order and the checksum of the records of files
 */
#ifndef VALIDATION_H
#define VALIDATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "record/validator.h"
#include "sort/sort_config.h"

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
 * Read all parts and inputs of a sort and add what they hold to *result, which
 * is zeroed.  Of the sort, these are known: its shape; its outputs, which are
 * the parts, in order; its inputs, if any, whose records the parts should have;
 * head_records, threads, device_bytes and the header, which the parts have
 * unless it was dropped.
 *
 * Any part may be a pipe, and one of them "-", which is standard input: the
 * caller has called pipe_check().  With head_records and inputs, the last part
 * may be no stream.  device_bytes are refused where no file is a device.
 *
 * 0 or -errno with *failure filled.  Call it once in a process, whose end
 * closes the files and frees the memory.
 */
int validate_records(const struct sorter_config *sort,
		     struct validation_result *result, struct failure *failure);

#endif /* VALIDATION_H */
