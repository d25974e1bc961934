/*
 * input_space.c - memory for other records around the input's own
 */
#include <errno.h>
#include <sys/mman.h>

#include "base/base.h"
#include "io/input/input.h"
#include "system/hugefile.h"

/* Addresses: what may be made accessible, and what of it will be used. */
struct space {
	uintptr_t low, high;
	uintptr_t begin, end;
};

static int no_memory(int error, struct failure *failure)
{
	return failure_set(failure, EXIT_RESOURCES, NULL, error,
			   "memory for the records of other nodes");
}

/* Make all pages at once: otherwise each would be a page fault while datagrams
 * wait. */
static int open_small(uintptr_t begin, uintptr_t end, struct failure *failure)
{
	begin = ROUND_DOWN(begin, PAGE_BYTES);
	end = ROUND_UP(end, PAGE_BYTES);
	if (mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE))
		return no_memory(errno, failure);
	/* A kernel that does not know it makes the pages later, one by one. */
	if (madvise((void *)begin, end - begin, MADV_POPULATE_WRITE) &&
	    errno == ENOMEM)
		return no_memory(errno, failure);
	return 0;
}

static int open_huge(uintptr_t begin, uintptr_t end, struct failure *failure)
{
	if (mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE))
		return no_memory(errno, failure);
	(void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	return 0;
}

/* A huge page of which less than half is used would take twice the memory; and
 * none is possible where a file is mapped. */
static bool block_is_huge(const struct space *space, uintptr_t block)
{
	uintptr_t end = block + HUGE_PAGE_BYTES;
	uintptr_t used = MIN(end, space->end) - MAX(block, space->begin);

	return block >= space->low && end <= space->high &&
	       used > HUGE_PAGE_BYTES / 2;
}

static int open_space(const struct space *space, struct failure *failure)
{
	uintptr_t block = ROUND_DOWN(space->begin, HUGE_PAGE_BYTES);
	int error = 0;

	while (block < space->end && !error) {
		bool huge = block_is_huge(space, block);
		uintptr_t end = block + HUGE_PAGE_BYTES;

		/* Treat blocks of the same kind at once: only the first and the
		 * last one may differ from those between. */
		while (end < space->end && block_is_huge(space, end) == huge)
			end += HUGE_PAGE_BYTES;
		error = huge ? open_huge(block, end, failure)
			     : open_small(MAX(block, space->begin),
					  MIN(end, space->end), failure);
		block = end;
	}
	return error;
}

int input_open_before(struct input *input, uint64_t slot_count,
		      struct failure *failure)
{
	uintptr_t start = (uintptr_t)input_start(input);
	uint64_t bytes;

	if (slot_count <= input_lead_slots(input))
		return 0;
	if (__builtin_mul_overflow(slot_count, input->record_size, &bytes) ||
	    bytes - input_lead_bytes(input) > input->reserved_before_bytes)
		return no_memory(ENOMEM, failure);
	return open_space(
		&(struct space){
			.low = start - input->reserved_before_bytes,
			.high = start,
			.begin = (uintptr_t)input->base - bytes,
			.end = start,
		},
		failure);
}

/* Bytes from the start to where the files' last page ends. */
static uint64_t files_end(const struct input *input)
{
	return ROUND_UP(input_lead_bytes(input) +
				input->slot_count * input->record_size,
			PAGE_BYTES);
}

uint64_t input_after_slot(const struct input *input)
{
	return DIV_ROUND_UP(files_end(input) - input_lead_bytes(input),
			    input->record_size);
}

int input_open_after(struct input *input, uint64_t record_count,
		     struct failure *failure)
{
	uintptr_t start = (uintptr_t)input_start(input);
	uint64_t first = input_lead_bytes(input) +
			 input_after_slot(input) * input->record_size;
	uint64_t bytes;

	if (record_count == 0)
		return 0;
	if (__builtin_mul_overflow(record_count, input->record_size, &bytes) ||
	    first + bytes < bytes ||
	    first + bytes > input->map_bytes + input->reserved_after_bytes)
		return no_memory(ENOMEM, failure);
	return open_space(
		&(struct space){
			.low = start + files_end(input),
			.high = start + input->map_bytes +
				input->reserved_after_bytes,
			.begin = start + first,
			.end = start + first + bytes,
		},
		failure);
}
