/* run_part.c - a rank's part of all ranks' runs, as an index */
#include "cluster/external/run_part.h"

#include <errno.h>
#include <stdlib.h>

#include "base/failure.h"

void run_part_range(const struct run_cuts *cuts, unsigned rank,
		    const struct run_index *index, unsigned run,
		    uint32_t number, uint32_t *first, uint32_t *end)
{
	const struct run_cut *begin = run_cuts_begin(cuts, rank);
	const struct run_cut *behind = run_cuts_end(cuts, rank);

	*first = index->runs[run].first_block;
	*end = *first + index->runs[run].block_count;
	if (!cuts->has_part[rank]) {
		*end = *first;
		return;
	}
	if (begin)
		*first = run_cut_block(begin, index, run, number);
	if (behind)
		*end = run_cut_block(behind, index, run, number);
	/* No block of the cut's own run lies across it. */
	if (begin && begin->run != number &&
	    *first > index->runs[run].first_block)
		--*first;
}

/* --- our own runs --------------------------------------------------------- */

static uint32_t count_blocks(const struct run_index *index,
			     const struct run_cuts *cuts, unsigned rank,
			     const uint32_t *numbers)
{
	uint32_t count = 0;

	for (unsigned r = 0; r < index->run_count; r++) {
		uint32_t first, end;

		run_part_range(cuts, rank, index, r, numbers[r], &first, &end);
		count += end - first;
	}
	return count;
}

static uint8_t *write_block(const struct run_index *index, uint32_t block,
			    uint8_t *target)
{
	const struct run_block *own = &index->blocks[block];

	store_le32(target, own->record_count);
	store_le32(target + 4, own->stored_bytes);
	store_le32(target + 8, own->crc);
	memcpy(target + 12, run_index_key(index, block), index->key_shape.size);
	return target + run_part_block_bytes(&index->key_shape);
}

int run_part_write(const struct run_index *index, const struct run_cuts *cuts,
		   unsigned rank, const uint32_t *numbers, uint8_t **bytes,
		   uint64_t *byte_count, struct failure *failure)
{
	uint64_t head = (uint64_t)index->run_count * RUN_PART_RUN_BYTES;
	uint8_t *runs, *blocks;

	*byte_count =
		head + (uint64_t)count_blocks(index, cuts, rank, numbers) *
			       run_part_block_bytes(&index->key_shape);
	*bytes = malloc(*byte_count + 1);
	if (!*bytes)
		return failure_no_memory(failure);
	runs = *bytes;
	blocks = *bytes + head;
	for (unsigned r = 0; r < index->run_count; r++) {
		uint32_t block, end;

		run_part_range(cuts, rank, index, r, numbers[r], &block, &end);
		store_le32(runs, end - block);
		store_le32(runs + 4, index->runs[r].resident == NULL);
		runs += RUN_PART_RUN_BYTES;
		for (; block < end; block++)
			blocks = write_block(index, block, blocks);
	}
	return 0;
}

int run_part_add_own(struct run_index *part, const struct run_index *index,
		     const struct run_cuts *cuts, unsigned rank,
		     const uint32_t *numbers, struct failure *failure)
{
	uint32_t key_bytes = index->key_shape.size;

	for (unsigned r = 0; r < index->run_count; r++) {
		uint32_t first, end;
		struct run *run;
		int error;

		run_part_range(cuts, rank, index, r, numbers[r], &first, &end);
		error = run_index_begin(part, numbers[r], 1, end - first,
					failure);
		if (error)
			return error;
		run = &part->runs[part->run_count - 1];
		run->resident = index->runs[r].resident;
		run->rank = rank;
		run->block_count = end - first;
		if (end > first) {
			memcpy(part->blocks + part->block_count,
			       index->blocks + first,
			       (end - first) * sizeof(*part->blocks));
			memcpy(part->keys +
				       (size_t)part->block_count * key_bytes,
			       run_index_key(index, first),
			       (size_t)(end - first) * key_bytes);
		}
		part->block_count += end - first;
		for (; first < end; first++)
			run->record_count += index->blocks[first].record_count;
	}
	return 0;
}

/* --- another rank's runs -------------------------------------------------- */

/* A message that is being read. */
struct reader {
	struct run_index *part;
	const struct run_part_message *message;
	const struct run_cut *begin, *end;
	const uint8_t *at;     /* the next block */
	uint32_t number;       /* of the run over all ranks */
	uint64_t left_records; /* that the rank may still tell of */
};

/* Keys ascend, and only the first one may lie before our part. */
static bool key_is_good(const struct reader *reader, const struct run *run,
			const uint8_t *key)
{
	const struct run_index *part = reader->part;
	const struct record_shape *shape = &part->key_shape;
	uint32_t number = reader->number;

	if (reader->end && run_cut_compare(reader->end, shape, key, number) > 0)
		return false;
	if (run->block_count == 0)
		return true;
	if (reader->begin &&
	    run_cut_compare(reader->begin, shape, key, number) < 0)
		return false;
	return record_compare(shape, run_index_key(part, part->block_count - 1),
			      key) <= 0;
}

static bool read_block(struct reader *reader, struct run *run,
		       uint64_t *offset_bytes)
{
	struct run_index *part = reader->part;
	uint32_t records = load_le32(reader->at);
	uint32_t stored_bytes = load_le32(reader->at + 4);
	const uint8_t *key = reader->at + 12;

	if (records < 1 || records > reader->message->block_records ||
	    records > reader->left_records || stored_bytes < 1 ||
	    stored_bytes > (uint64_t)records * part->shape.size ||
	    !key_is_good(reader, run, key))
		return false;
	reader->left_records -= records;
	part->blocks[part->block_count] = (struct run_block){
		.offset_bytes = *offset_bytes,
		.first_record = (uint32_t)run->record_count,
		.record_count = records,
		.stored_bytes = stored_bytes,
		.crc = load_le32(reader->at + 8),
	};
	memcpy(part->keys + (size_t)part->block_count * part->key_shape.size,
	       key, part->key_shape.size);
	part->block_count++;
	run->block_count++;
	run->record_count += records;
	*offset_bytes += stored_bytes;
	reader->at += run_part_block_bytes(&part->key_shape);
	return true;
}

/* 0, -ENOMEM or -EBADMSG, as run_part_read() returns it. */
static int read_run(struct reader *reader, const uint8_t *head,
		    struct failure *failure)
{
	struct run_index *part = reader->part;
	uint32_t block_count = load_le32(head), has_crc = load_le32(head + 4);
	uint64_t offset_bytes = 0;
	struct run *run;
	int error;

	if (has_crc > 1)
		return -EBADMSG;
	error = run_index_begin(part, reader->number, 1, block_count, failure);
	if (error)
		return error;
	run = &part->runs[part->run_count - 1];
	run->rank = reader->message->source;
	run->is_received = true;
	run->has_crc = has_crc == 1;
	for (uint32_t b = 0; b < block_count; b++)
		if (!read_block(reader, run, &offset_bytes))
			return -EBADMSG;
	return 0;
}

/* The numbers of blocks make up the message's length. */
static bool length_is_good(const struct run_part_message *message,
			   uint32_t block_bytes)
{
	uint64_t head = (uint64_t)message->run_count * RUN_PART_RUN_BYTES;
	uint64_t left;

	if (message->byte_count < head ||
	    (message->byte_count - head) % block_bytes != 0)
		return false;
	left = (message->byte_count - head) / block_bytes;
	for (uint32_t r = 0; r < message->run_count; r++) {
		uint32_t count = load_le32(message->bytes +
					   (size_t)r * RUN_PART_RUN_BYTES);

		if (count > left)
			return false;
		left -= count;
	}
	return left == 0;
}

int run_part_read(struct run_index *part,
		  const struct run_part_message *message,
		  const struct run_cut *begin, const struct run_cut *end,
		  struct failure *failure)
{
	struct reader reader = {
		.part = part,
		.message = message,
		.begin = begin,
		.end = end,
		.at = message->bytes +
		      (size_t)message->run_count * RUN_PART_RUN_BYTES,
		.left_records = message->record_count,
	};
	int error = 0;

	if (!length_is_good(message, run_part_block_bytes(&part->key_shape)))
		return -EBADMSG;
	for (uint32_t r = 0; r < message->run_count && error == 0; r++) {
		reader.number = message->numbers[r];
		error = read_run(&reader,
				 message->bytes +
					 (size_t)r * RUN_PART_RUN_BYTES,
				 failure);
	}
	return error;
}
