/*
 * file_source.c - reads the records of files ahead, and copies them
 */
#include "external/read/file_source.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/failure.h"

/* Records that are copied before their keys are read: so many bytes are still
 * in a cache then. */
#define STEP_BYTES (128 * KIB)

/* --- what is read ahead --------------------------------------------------- */

static void begin_share(struct file_reader *reader,
			const struct input_range *batch)
{
	uint64_t workers = reader->source->worker_count;

	reader->ahead_record = batch->first_record +
			       batch->record_count * reader->worker / workers;
	reader->ahead_end = batch->first_record + batch->record_count *
							  (reader->worker + 1) /
							  workers;
}

/* A worker that had no share of some batches has not asked for them. */
static bool find_ahead(struct file_reader *reader)
{
	const struct file_source *files = reader->source;
	struct input_range batch;

	if (reader->ahead_record == reader->ahead_end &&
	    reader->ahead_batch + 1 < files->next_batch)
		reader->ahead_batch = files->next_batch - 1;
	while (reader->ahead_record == reader->ahead_end) {
		if (!files->deal(files->deal_context, reader->ahead_batch,
				 false, &batch))
			return false;
		reader->ahead_batch++;
		begin_share(reader, &batch);
	}
	return true;
}

static bool next_unit(void *context, struct read_extent *extent)
{
	struct file_reader *reader = context;
	const struct file_source *files = reader->source;
	const struct input *input = files->input;
	const struct input_file *file;
	uint64_t count;

	if (!find_ahead(reader))
		return false;
	file = &input->files[input_find_file(input, reader->ahead_record)];
	count = MIN(reader->ahead_end,
		    file->first_record + file->record_count) -
		reader->ahead_record;
	count = MIN(count, files->unit_records);
	*extent = (struct read_extent){
		.direct_fd = file->direct_fd,
		.plain_fd = file->fd,
		.offset_bytes =
			input_offset(input, file, reader->ahead_record) +
			files->span_offset,
		.length_bytes = (uint32_t)(count * files->span_bytes),
		.path = file->path,
	};
	reader->ahead_record += count;
	return true;
}

/* --- the source's operations ---------------------------------------------- */

static struct file_reader *reader_of(const struct source_reader *reader)
{
	const struct file_source *files = reader->source->context;

	return &files->readers[reader->worker];
}

/* What is left of the current batch's share, to be copied or resident, is the
 * source_walk's. */
static int open_reader(struct source_reader *reader, uint64_t first_record,
		       uint64_t record_count, bool resident,
		       struct failure *failure)
{
	if (!resident)
		read_ahead_resume(&reader_of(reader)->reads, reader->clock);
	return source_walk_open(reader, first_record, record_count, resident,
				failure);
}

/* 0 or -errno with *failure filled. */
static int take_unit(struct file_reader *own, struct failure *failure)
{
	struct read_extent extent;
	int ret = read_ahead_take(&own->reads, &extent, &own->bytes, failure);

	if (ret < 0)
		return ret;
	assert(ret == 1); /* next_unit() names all of the share */
	own->unit_records = extent.length_bytes / own->source->span_bytes;
	return 0;
}

static int next_run(struct source_reader *reader, struct source_run *run,
		    struct failure *failure)
{
	const struct source *source = reader->source;
	struct source_walk *walk = source_walk_of(reader);
	struct file_reader *own = reader_of(reader);
	const struct file_source *files = own->source;
	uint64_t count;
	uint8_t *target;

	if (walk->is_resident)
		return source_walk_next(reader, run, failure);
	if (walk->record_count == 0)
		return 0;
	if (own->unit_records == 0) {
		int error = take_unit(own, failure);

		if (error)
			return error;
	}
	count = MIN(own->unit_records,
		    MAX(1, STEP_BYTES / source->record_size));
	target = source->base + walk->slot * source->record_size;
	widening_copy(files->widening, files->span_bytes, target, own->bytes,
		      count, files->batch_number + walk->slot);
	*run = (struct source_run){
		.slot = walk->slot,
		.record_count = count,
		.records = target,
	};
	own->bytes += count * files->span_bytes;
	own->unit_records -= count;
	walk->slot += count;
	walk->record_count -= count;
	if (own->unit_records > 0)
		read_ahead_look(&own->reads);
	return 1;
}

/* There is no close(): reads for the next batch stay under way. */
static const struct source_ops operations = {
	.open = open_reader,
	.next = next_run,
	.share = source_walk_share,
	.record = source_walk_record,
};

/* --- its life ------------------------------------------------------------- */

int file_source_open(struct file_source *files, uint8_t *memory, unsigned depth,
		     uint32_t slot_bytes, struct failure *failure)
{
	uint32_t record_size = files->input->record_size;

	files->source.ops = &operations;
	files->source.context = files;
	files->source.record_size = files->span_bytes + files->widening->bytes;
	files->unit_records =
		files->span_bytes < record_size
			? 1
			: (slot_bytes - 2 * PAGE_BYTES) / record_size;
	files->readers =
		alloc_apart(files->worker_count, sizeof(*files->readers));
	if (!files->readers)
		return failure_no_memory(failure);
	for (unsigned w = 0; w < files->worker_count; w++) {
		struct file_reader *reader = &files->readers[w];

		reader->source = files;
		reader->worker = w;
		read_ahead_init(&reader->reads, depth,
				memory + (size_t)w * depth * slot_bytes,
				slot_bytes, next_unit, reader);
	}
	return 0;
}

uint64_t file_source_begin(struct file_source *files, struct batch *batch)
{
	struct input_range next;

	if (!files->deal(files->deal_context, files->next_batch, true, &next))
		return 0;
	files->next_batch++;
	batch->first_record = next.first_record;
	files->batch_number = files->first_number + next.first_record;
	files->source.base = batch->records;
	files->source.record_count = next.record_count;
	files->source.slot_count = next.record_count;
	return next.record_count;
}

void file_source_close(struct file_source *files)
{
	for (unsigned w = 0; files->readers && w < files->worker_count; w++)
		read_ahead_close(&files->readers[w].reads);
	free(files->readers);
	memset(files, 0, sizeof(*files));
}
