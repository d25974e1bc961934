/*
 * input_runs.c - indexes input files that are in order, and checks that they
 * are
 */
#include "external/runs/input_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/failure.h"

/* --- the order of records ------------------------------------------------- */

/* How many records there are before the first that is out of order. */
static uint64_t count_ascending(const struct record_shape *shape,
				const uint8_t *records, uint64_t count)
{
	uint64_t before = record_key_word(shape, records, 0);

	for (uint64_t i = 1; i < count; i++) {
		const uint8_t *record = records + i * shape->size;
		uint64_t word = record_key_word(shape, record, 0);

		if (word < before ||
		    (word == before &&
		     record_compare(shape, record - shape->size, record) > 0))
			return i;
		before = word;
	}
	return count;
}

/* How many of records [first, end) lie in the file that has the first one. */
static uint64_t count_in_file(const struct input_file *file, uint64_t first,
			      uint64_t end)
{
	return MIN(end, file->first_record + file->record_count) - first;
}

bool input_runs_ascend(const struct record_shape *shape,
		       const struct input *input, uint64_t first_record,
		       uint64_t record_count, const uint8_t *records)
{
	uint64_t end = first_record + record_count, count;

	for (uint64_t at = first_record; at < end; at += count) {
		const struct input_file *file =
			&input->files[input_find_file(input, at)];

		count = count_in_file(file, at, end);
		if (count_ascending(shape,
				    records + (at - first_record) * shape->size,
				    count) < count)
			return false;
	}
	return true;
}

/* --- the index ------------------------------------------------------------ */

/* True if the key of the record before this one, of the same file, is not
 * greater than the block's.  What cannot be read now will be refused when it
 * has to be. */
static bool goes_on(const struct run_index *index, const struct input *input,
		    const struct input_file *file, uint64_t record,
		    uint32_t block)
{
	const struct record_shape *shape = &index->key_shape;
	uint64_t offset =
		input_offset(input, file, record - 1) + index->shape.keys.begin;
	uint8_t *key = malloc(shape->size);
	struct failure failure;
	bool good =
		key &&
		input_read_at(file, key, offset, shape->size, &failure) == 0 &&
		record_compare(shape, key, run_index_key(index, block)) <= 0;

	free(key);
	return good;
}

/* The latest run, which lies in the file, goes on where the one before ends. */
static bool continues(const struct run_index *index, const struct input *input,
		      const struct input_file *file)
{
	const struct run *latest = &index->runs[index->run_count - 1];

	return index->run_count > 1 && latest[-1].file == file &&
	       latest[-1].input_record + latest[-1].input_count ==
		       latest->input_record &&
	       goes_on(index, input, file, latest->input_record,
		       latest->first_block);
}

static int add_run(struct run_index *index, const struct input *input,
		   const struct input_file *file, uint64_t first_record,
		   uint64_t record_count, struct failure *failure)
{
	uint64_t blocks =
		DIV_ROUND_UP(record_count, (uint64_t)index->block_records);
	uint64_t offset_bytes = input_offset(input, file, first_record);
	uint32_t block;
	int error;

	if (blocks > UINT32_MAX - index->block_count)
		return failure_set(failure, EXIT_RESOURCES, file->path, 0,
				   "it has more blocks than %u", UINT32_MAX);
	error = run_index_begin(index, first_record, record_count,
				(uint32_t)blocks, failure);
	if (error)
		return error;
	index->runs[index->run_count - 1].file = file;
	block = run_index_extend(index, record_count);
	for (; block < index->block_count; block++) {
		struct run_block *own = &index->blocks[block];

		own->offset_bytes = offset_bytes;
		own->stored_bytes = own->record_count * index->shape.size;
		offset_bytes += own->stored_bytes;
	}
	return 0;
}

/* The latest run, of these records of the file, gets the keys of its blocks. */
static void end_run(struct run_index *index, const struct input *input,
		    const struct input_file *file, const uint8_t *records)
{
	const struct run *run = &index->runs[index->run_count - 1];

	for (uint32_t i = 0; i < run->block_count; i++)
		run_index_set_key(index, run->first_block + i,
				  records + (size_t)i * index->block_records *
						    index->shape.size);
	if (continues(index, input, file))
		run_index_join(index);
}

int input_runs_add(struct run_index *index, const struct input *input,
		   uint64_t first_record, uint64_t record_count,
		   const uint8_t *records, struct failure *failure)
{
	uint64_t end = first_record + record_count, count;
	int error = 0;

	for (uint64_t at = first_record; at < end && error == 0; at += count) {
		const struct input_file *file =
			&input->files[input_find_file(input, at)];

		count = count_in_file(file, at, end);
		error = add_run(index, input, file, at, count, failure);
		if (error == 0 && records)
			end_run(index, input, file,
				records + (at - first_record) *
						  index->shape.size);
	}
	return error;
}

/* A worker's way through its share of the blocks. */
struct key_reader {
	struct read_ahead reads;
	const struct run_index *index;
	uint32_t ahead, end; /* blocks that are to be read next */
};

static bool next_key(void *context, struct read_extent *extent)
{
	struct key_reader *reader = context;
	const struct run_index *index = reader->index;
	unsigned run;

	if (reader->ahead == reader->end)
		return false;
	run = run_index_find(index->runs, index->run_count, reader->ahead);
	*extent = run_file_extent(index->runs[run].file,
				  &index->blocks[reader->ahead++],
				  index->key_shape.size);
	extent->offset_bytes += index->shape.keys.begin;
	return true;
}

int input_runs_read_keys(struct run_index *index, unsigned worker,
			 unsigned worker_count,
			 const struct input_runs_slots *slots,
			 struct stage_clock *clock, struct failure *failure)
{
	uint64_t count = index->block_count;
	uint32_t block = (uint32_t)(count * worker / worker_count);
	struct key_reader reader = {
		.index = index,
		.ahead = block,
		.end = (uint32_t)(count * (worker + 1) / worker_count),
	};
	int error = 0;

	read_ahead_init(&reader.reads, slots->depth, slots->memory,
			slots->slot_bytes, next_key, &reader);
	read_ahead_resume(&reader.reads, clock);
	for (; block < reader.end && error == 0; block++) {
		const uint8_t *key = read_ahead_bytes(
			&reader.reads, index->key_shape.size, failure);

		if (!key)
			error = -EIO;
		else
			memcpy(index->keys +
				       (size_t)block * index->key_shape.size,
			       key, index->key_shape.size);
		stage_part(clock, STAGE_BUCKET, index->key_shape.size);
	}
	stage_unit(clock, STAGE_BUCKET, 0);
	read_ahead_close(&reader.reads);
	return error;
}

/* --- which record is out of order ----------------------------------------- */

/* When a record is found that is out of order, an earlier one is looked for in
 * so many bytes of the input before it: a tenth of a second at the end of a
 * run that has failed. */
#define LOOK_BACK_BYTES (64 * MIB)
/* So many bytes of it are read at once, and two records at least. */
#define LOOK_BYTES (64 * KIB)

static int refuse_record(const struct input_file *file, uint64_t record,
			 struct failure *failure)
{
	return failure_set(failure, EXIT_WRONG, file->path, 0,
			   "record %llu (from 0) belongs before the one before "
			   "it: -m needs sorted inputs",
			   (unsigned long long)record);
}

/* Look at records [first, end) of the file: 0; or -errno with *failure filled,
 * also if one of them is out of order.  Each read begins with the last record
 * of the one before. */
static int look_at_file(const struct run_index *index,
			const struct input *input,
			const struct input_file *file, uint64_t first,
			uint64_t end, struct failure *failure)
{
	uint32_t size = index->shape.size;
	uint64_t count, good;
	uint64_t count_max = MAX(2, LOOK_BYTES / size);
	uint8_t *records = malloc(count_max * size);
	int error = records ? 0 : failure_no_memory(failure);

	for (uint64_t at = first; error == 0 && at + 1 < end; at += count - 1) {
		count = MIN(end - at, count_max);
		error = input_read_at(
			file, records,
			input_offset(input, file, file->first_record + at),
			count * size, failure);
		if (error)
			break;
		good = count_ascending(&index->shape, records, count);
		if (good < count)
			error = refuse_record(file, at + good, failure);
	}
	free(records);
	return error;
}

static int refuse_changed(const struct input_file *file,
			  struct failure *failure)
{
	return failure_set(failure, EXIT_FILE, file->path, 0,
			   "changed while it was read");
}

/*
 * The record of this number in the file, or one a few before it, has been
 * found to be out of order: refuse the first one that is, as far as we look
 * back.  Files before this one are input, too.
 */
static int refuse_order(const struct run_index *index,
			const struct input *input,
			const struct input_file *found, uint64_t record,
			struct failure *failure)
{
	uint64_t back = MAX(1, LOOK_BACK_BYTES / index->shape.size);
	uint64_t end = found->first_record + record + 1;
	uint64_t first = end - MIN(end, back + 1);
	int error = 0;

	for (const struct input_file *file = input->files;
	     error == 0 && file <= found; file++) {
		uint64_t begin = file->first_record;
		uint64_t until = MIN(end, begin + file->record_count);

		if (until > first)
			error = look_at_file(index, input, file,
					     MAX(first, begin) - begin,
					     until - begin, failure);
	}
	return error ? error : refuse_changed(found, failure);
}

/* --- checks --------------------------------------------------------------- */

/* The number that the block's first record has in its file, which is a run. */
static uint64_t first_record_of(const struct run_index *index,
				const struct run *run, uint32_t block)
{
	return (uint64_t)(block - run->first_block) * index->block_records;
}

int input_runs_check_keys(const struct run_index *index,
			  const struct input *input, struct failure *failure)
{
	for (unsigned r = 0; r < index->run_count; r++) {
		const struct run *run = &index->runs[r];

		for (uint32_t i = 1; i < run->block_count; i++) {
			uint32_t block = run->first_block + i;

			if (record_compare(&index->key_shape,
					   run_index_key(index, block - 1),
					   run_index_key(index, block)) > 0)
				return refuse_order(
					index, input, run->file,
					first_record_of(index, run, block),
					failure);
		}
	}
	return 0;
}

int input_runs_check_block(const struct run_index *index,
			   const struct input *input, const struct run *run,
			   uint32_t block, const uint8_t *records,
			   struct failure *failure)
{
	const struct record_shape *shape = &index->shape;
	const struct record_shape *keys = &index->key_shape;
	uint32_t count = index->blocks[block].record_count;
	uint64_t good = count_ascending(shape, records, count);
	const uint8_t *last = records + (size_t)(count - 1) * shape->size;
	bool is_last = block + 1 == run->first_block + run->block_count;

	if (record_compare(keys, records + shape->keys.begin,
			   run_index_key(index, block)) != 0)
		return refuse_changed(run->file, failure);
	if (good == count &&
	    (is_last || record_compare(keys, last + shape->keys.begin,
				       run_index_key(index, block + 1)) <= 0))
		return 0;
	if (!input)
		return refuse_changed(run->file, failure);
	return refuse_order(index, input, run->file,
			    first_record_of(index, run, block) + good, failure);
}
