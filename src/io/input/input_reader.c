/*
 * input_reader.c - brings in the input by walking, touching, plain reads or a
 * queue of direct reads
 */
#include "io/input/input_reader.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/flow.h"
#include "io/input/read_ahead.h"

/* A plain read's bytes stay in L2 until the run is used. */
#define READ_BYTES MIB
/* INPUT_WALK brings nothing in, but its callers may look around after each run.
 */
#define WALK_BYTES (16 * MIB)
/* Runs are shorter where pages come from the file when they are touched. */
#define TOUCH_BYTES (2 * MIB)
/* --- shares ----------------------------------------------------------------
 */

/* Returns the first record of the worker's share; worker_count stands for the
 * end of all. */
static uint64_t share_begin(const struct input *input, unsigned worker,
			    unsigned worker_count)
{
	uint64_t record = (uint64_t)((unsigned __int128)input->record_count *
				     worker / worker_count);
	const struct input_file *file;

	if (worker == 0 || record == input->record_count)
		return record;
	file = &input->files[input_find_file(input, record)];
	return file->first_record +
	       ROUND_DOWN(record - file->first_record, input->align_records);
}

static void share(const struct source *source, unsigned worker,
		  unsigned worker_count, uint64_t *first_record,
		  uint64_t *record_count)
{
	const struct input *input = source->context;

	*first_record = share_begin(input, worker, worker_count);
	*record_count =
		share_begin(input, worker + 1, worker_count) - *first_record;
}

/* --- reading past the page cache --------------------------------------------
 *
 * QUEUE_DEPTH reads of QUEUE_PIECE_BYTES are always under way, each straight
 * into the place where its bytes belong; or one longer one, where the kernel
 * has no io_uring for us.  A page that holds records of two
 * shares, as some do behind a header, comes through the page cache: each worker
 * reads its own bytes of it.
 */

#define QUEUE_DEPTH 16
/* Measured on a virtual disk: 128 to 512 KiB at depth 16 read equally fast; the
 * smaller pieces let the sorting begin earlier. */
#define QUEUE_PIECE_BYTES (256 * KIB)

struct input_queue {
	struct read_ahead ahead;
	const struct input *input;
	uint64_t end_record;
	/* The next piece to read. */
	unsigned file;
	uint64_t offset;
};

/* The end of the share within a file, in bytes; 0: the file has no records. */
static uint64_t share_end(const struct input_queue *queue, unsigned file)
{
	const struct input_file *in = &queue->input->files[file];

	if (in->record_count == 0)
		return 0;
	return input_offset(
		queue->input, in,
		MIN(queue->end_record, in->first_record + in->record_count));
}

/* The first page with records is read whole, since the file alone has it. */
static uint64_t begin_of_records(const struct input *input)
{
	return ROUND_DOWN(input->header_bytes, PAGE_BYTES);
}

/* Move to the next file when all of this one's part is being read.  False:
 * there is none. */
static bool find_next(struct input_queue *queue)
{
	const struct input *input = queue->input;

	while (queue->file < input->file_count &&
	       input->files[queue->file].first_record < queue->end_record) {
		if (queue->offset < share_end(queue, queue->file))
			return true;
		queue->file++;
		queue->offset = begin_of_records(queue->input);
	}
	return false;
}

/* What is read next of a file that is read up to `end`: whole pages, or bytes
 * of a page that another worker has a part of. */
static uint64_t piece_bytes(const struct input_queue *queue, uint64_t end,
			    bool *is_whole)
{
	const struct input_file *file = &queue->input->files[queue->file];
	uint64_t whole_end =
		end == file->size_bytes ? end : ROUND_DOWN(end, PAGE_BYTES);
	/* Without a ring each piece is a plain read. */
	uint64_t most = queue->ahead.has_ring ? QUEUE_PIECE_BYTES : READ_BYTES;

	*is_whole =
		queue->offset % PAGE_BYTES == 0 && queue->offset < whole_end;
	if (*is_whole)
		return MIN(whole_end - queue->offset, most);
	return MIN(end, ROUND_DOWN(queue->offset, PAGE_BYTES) + PAGE_BYTES) -
	       queue->offset;
}

static bool next_piece(void *context, struct read_extent *extent)
{
	struct input_queue *queue = context;
	const struct input_file *file;
	uint64_t length;
	bool is_whole;

	if (!find_next(queue))
		return false;
	file = &queue->input->files[queue->file];
	length = piece_bytes(queue, share_end(queue, queue->file), &is_whole);
	*extent = (struct read_extent){
		.direct_fd = is_whole ? file->direct_fd : -1,
		.plain_fd = file->fd,
		.offset_bytes = queue->offset,
		.length_bytes = (uint32_t)length,
		.path = file->path,
		.target = input_address(queue->input, file, queue->offset),
	};
	queue->offset += extent->length_bytes;
	return true;
}

/* A queue for the reader's records, at least one; or NULL: out of memory, or no
 * direct descriptor. */
static struct input_queue *make_queue(const struct input_reader *reader)
{
	const struct input *input = reader->input;
	const struct input_file *file = &input->files[reader->file];
	struct input_queue *queue;

	if (file->direct_fd < 0)
		return NULL;
	queue = malloc(sizeof(*queue));
	if (!queue)
		return NULL;
	queue->input = input;
	queue->end_record = reader->end_record;
	queue->file = reader->file;
	queue->offset =
		reader->next_record == file->first_record
			? begin_of_records(input)
			: input_offset(input, file, reader->next_record);
	read_ahead_init(&queue->ahead, QUEUE_DEPTH, NULL,
			READ_BYTES + 2 * PAGE_BYTES, next_piece, queue);
	return queue;
}

/* --- reading ---------------------------------------------------------------
 */

_Static_assert(sizeof(struct input_reader) <= SOURCE_READER_BYTES,
	       "a source's reader has room for ours");

static int open_reader(struct source_reader *source_reader,
		       uint64_t first_record, uint64_t record_count,
		       bool resident, struct failure *failure)
{
	struct input_reader *reader = input_reader_of(source_reader);
	const struct input *input = source_reader->source->context;

	(void)failure;
	*reader = (struct input_reader){
		.input = input,
		.next_record = first_record,
		.end_record = first_record + record_count,
		.way = INPUT_READ,
	};
	if (record_count == 0)
		return 0;
	reader->file = input_find_file(input, first_record);
	if (resident) {
		reader->way = INPUT_WALK;
	} else if (input->mode == INPUT_MMAP) {
		reader->way = INPUT_TOUCH;
	} else if (input->mode == INPUT_DIRECT) {
		reader->queue = make_queue(reader);
		if (reader->queue)
			reader->way = INPUT_QUEUE;
	}
	return 0;
}

static int64_t read_some(struct input_reader *reader, uint64_t records,
			 struct failure *failure)
{
	const struct input *input = reader->input;
	const struct input_file *file = &input->files[reader->file];
	uint64_t offset = input_offset(input, file, reader->next_record);
	int error;

	records = MIN(records, MAX(READ_BYTES / input->record_size, 1u));
	error = input_read_at(file, input_address(input, file, offset), offset,
			      records * input->record_size, failure);
	return error ? error : (int64_t)records;
}

/* Take pieces off the queue until a record is complete. */
static int64_t wait_for_some(struct input_reader *reader,
			     struct failure *failure)
{
	const struct input *input = reader->input;
	const struct input_file *file = &input->files[reader->file];
	uint64_t next =
		(file->first_slot + reader->next_record - file->first_record) *
		input->record_size;

	while (reader->landed_bytes < next + input->record_size) {
		struct read_extent piece;
		const uint8_t *bytes;
		int more = read_ahead_take(&reader->queue->ahead, &piece,
					   &bytes, failure);

		if (more <= 0)
			return more;
		reader->landed_bytes =
			(uint64_t)(bytes - input->base) + piece.length_bytes;
	}
	return (int64_t)((reader->landed_bytes - next) / input->record_size);
}

/* Bring in some of the next records, all of one file's: how many, or -errno. */
static int64_t bring_in(struct input_reader *reader, uint64_t records,
			struct failure *failure)
{
	uint32_t record_size = reader->input->record_size;
	uint64_t begin_ns = flow_clock();
	int64_t count;

	switch (reader->way) {
	case INPUT_READ:
		count = read_some(reader, records, failure);
		break;
	case INPUT_QUEUE:
		return wait_for_some(reader, failure);
	case INPUT_TOUCH:
		count = (int64_t)MIN(records,
				     MAX(TOUCH_BYTES / record_size, 1u));
		break;
	default:
		return (int64_t)MIN(records, MAX(WALK_BYTES / record_size, 1u));
	}
	flow_add(FLOW_READ, begin_ns, (uint64_t)MAX(count, 0) * record_size);
	return count;
}

static int next_run(struct source_reader *source_reader, struct source_run *run,
		    struct failure *failure)
{
	struct input_reader *reader = input_reader_of(source_reader);
	const struct input *input = reader->input;
	const struct input_file *file;
	uint64_t within;
	int64_t records;

	if (reader->next_record == reader->end_record)
		return 0;
	while (reader->next_record - input->files[reader->file].first_record >=
	       input->files[reader->file].record_count)
		reader->file++;
	file = &input->files[reader->file];
	within = reader->next_record - file->first_record;
	records = bring_in(reader,
			   MIN(file->record_count - within,
			       reader->end_record - reader->next_record),
			   failure);
	if (records < 0)
		return (int)records;
	run->slot = file->first_slot + within;
	run->record_count = (uint64_t)records;
	run->records = input->base + run->slot * input->record_size;
	reader->next_record += (uint64_t)records;
	return 1;
}

static void close_reader(struct source_reader *source_reader)
{
	struct input_reader *reader = input_reader_of(source_reader);

	if (reader->queue)
		read_ahead_close(&reader->queue->ahead);
	free(reader->queue);
	reader->queue = NULL;
}

/* --- the source ------------------------------------------------------------
 */

static const uint8_t *record_of(const struct source *source, uint64_t number)
{
	return input_record(source->context, number);
}

struct source input_source(const struct input *input)
{
	static const struct source_ops operations = {
		.open = open_reader,
		.next = next_run,
		.close = close_reader,
		.share = share,
		.record = record_of,
	};

	return (struct source){
		.ops = &operations,
		.context = input,
		.record_count = input->record_count,
		.slot_count = input->slot_count,
		.record_size = input->record_size,
		.base = input->base,
		/* A queue of reads wants records that follow each other. */
		.has_pieces = input->mode == INPUT_MMAP,
	};
}
