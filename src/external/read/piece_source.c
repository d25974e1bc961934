/*
 * piece_source.c - reads, checks and decodes the blocks of a piece
 */
#include "external/read/piece_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/failure.h"
#include "external/runs/input_runs.h"

/* --- items ---------------------------------------------------------------- */

/* An item is the rest of a run, or one block. */
struct piece_item {
	unsigned run;
	bool is_rest;
	bool is_last; /* of the run, in this piece */
	uint32_t block;
};

static uint32_t blocks_of_run(const struct merge_plan *plan, uint32_t piece,
			      unsigned run)
{
	return merge_plan_block(plan, piece + 1, run) -
	       merge_plan_block(plan, piece, run);
}

/* The cursor at the beginning of the worker's share of the piece. */
static struct piece_cursor begin_share(const struct piece_source *pieces,
				       uint32_t piece, unsigned worker)
{
	const struct merge_plan *plan = pieces->plan;
	uint64_t items = (uint64_t)plan->run_count +
			 plan->piece_start[piece + 1] -
			 plan->piece_start[piece];
	uint64_t begin = items * worker / pieces->worker_count;
	uint64_t end = items * (worker + 1) / pieces->worker_count;
	struct piece_cursor cursor = {
		.piece = piece,
		.left_items = end - begin,
	};

	while (begin > 0) {
		uint64_t of_run = 1 + blocks_of_run(plan, piece, cursor.run);

		if (begin < of_run)
			break;
		begin -= of_run;
		cursor.run++;
	}
	cursor.item = (uint32_t)begin;
	return cursor;
}

/* False: the share has ended. */
static bool next_item(const struct merge_plan *plan,
		      struct piece_cursor *cursor, struct piece_item *item)
{
	uint32_t blocks;

	if (cursor->left_items == 0)
		return false;
	blocks = blocks_of_run(plan, cursor->piece, cursor->run);
	*item = (struct piece_item){
		.run = cursor->run,
		.is_rest = cursor->item == 0,
		.is_last = cursor->item == blocks,
		.block = merge_plan_block(plan, cursor->piece, cursor->run) +
			 cursor->item - 1,
	};
	cursor->left_items--;
	if (item->is_last) {
		cursor->run++;
		cursor->item = 0;
	} else {
		cursor->item++;
	}
	return true;
}

static const struct run *run_of(const struct merge_plan *plan, unsigned run)
{
	return &plan->index->runs[plan->first_run + run];
}

/* --- what is read ahead --------------------------------------------------- */

static bool is_in_file(const struct merge_plan *plan,
		       const struct piece_item *item)
{
	const struct run *run = run_of(plan, item->run);

	return !item->is_rest && !run->resident && !run->is_received;
}

/* The next item that must be read, in this piece or a later one. */
static bool find_ahead(struct piece_reader *reader, struct piece_item *item)
{
	const struct piece_source *pieces = reader->source;

	for (;;) {
		while (next_item(pieces->plan, &reader->ahead, item))
			if (is_in_file(pieces->plan, item))
				return true;
		if (reader->ahead.piece + 1 == pieces->plan->piece_count)
			return false;
		reader->ahead = begin_share(pieces, reader->ahead.piece + 1,
					    reader->worker);
	}
}

/* A unit: blocks of a run that lie side by side. */
static bool next_unit(void *context, struct read_extent *extent)
{
	struct piece_reader *reader = context;
	const struct piece_source *pieces = reader->source;
	const struct run_block *blocks = pieces->plan->index->blocks;
	const struct run_block *first;
	const struct run *run;
	struct piece_item item;
	uint32_t length;

	if (!find_ahead(reader, &item))
		return false;
	run = run_of(pieces->plan, item.run);
	first = &blocks[item.block];
	length = first->stored_bytes;
	while (!item.is_last) {
		struct piece_cursor before = reader->ahead;

		if (!next_item(pieces->plan, &reader->ahead, &item))
			break;
		if (!run_block_follows(&blocks[item.block], first, length) ||
		    length + blocks[item.block].stored_bytes >
			    pieces->slot_bytes - 2 * PAGE_BYTES) {
			reader->ahead = before;
			break;
		}
		length += blocks[item.block].stored_bytes;
	}
	*extent = run_block_extent(run, first, pieces->scratch, length);
	return true;
}

/* --- items to their places ------------------------------------------------ */

static int refuse_block(const struct piece_source *pieces,
			const struct piece_item *item, const char *finding,
			struct failure *failure)
{
	const struct run *run = run_of(pieces->plan, item->run);
	const struct run_block *block =
		&pieces->plan->index->blocks[item->block];

	if (run->is_received)
		return failure_set(failure, EXIT_PEER, NULL, 0,
				   "a block of %u bytes that rank %u has sent "
				   "has changed: %s",
				   block->stored_bytes, run->rank, finding);
	return failure_set(failure, EXIT_FILE,
			   pieces->scratch->directories[block->directory].path,
			   0,
			   "the %u bytes that were written to its scratch file "
			   "at offset %llu have changed: %s",
			   block->stored_bytes,
			   (unsigned long long)block->offset_bytes, finding);
}

/* Where a block lies that has come from another rank. */
static const uint8_t *find_received(const struct piece_source *pieces,
				    const struct piece_item *item)
{
	const struct run_block *blocks = pieces->plan->index->blocks;
	uint32_t first =
		merge_plan_block(pieces->plan, pieces->piece, item->run);

	return pieces->received[item->run] +
	       (blocks[item->block].offset_bytes - blocks[first].offset_bytes);
}

/* 0 or -errno with *failure filled. */
static int copy_block(struct piece_reader *own, const struct piece_item *item,
		      uint8_t *target, struct failure *failure)
{
	const struct piece_source *pieces = own->source;
	const struct run *run = run_of(pieces->plan, item->run);
	const struct run_block *block =
		&pieces->plan->index->blocks[item->block];
	size_t block_bytes =
		(size_t)block->record_count * pieces->source.record_size;
	const uint8_t *bytes =
		run->is_received
			? find_received(pieces, item)
			: read_ahead_bytes(&own->reads, block->stored_bytes,
					   failure);

	if (!bytes)
		return -EIO;
	read_ahead_look(&own->reads);
	if (run->file) {
		memcpy(target, bytes, block_bytes);
		return input_runs_check_block(pieces->plan->index,
					      pieces->input, run, item->block,
					      target, failure);
	}
	if ((!run->is_received || run->has_crc) &&
	    pieces->crc(0, bytes, block->stored_bytes) != block->crc)
		return refuse_block(pieces, item, "their checksum differs",
				    failure);
	if (block->stored_bytes == block_bytes)
		memcpy(target, bytes, block_bytes);
	else if (codec_decode(&own->decoder, target, block_bytes, bytes,
			      block->stored_bytes) < 0)
		return refuse_block(pieces, item, "they cannot be decompressed",
				    failure);
	return 0;
}

/* The slot that the block's records go to, behind the run's rest. */
static uint64_t slot_of_block(const struct piece_source *pieces, unsigned run,
			      uint32_t number)
{
	const struct run_block *blocks = pieces->plan->index->blocks;
	uint32_t first = merge_plan_block(pieces->plan, pieces->piece, run);

	return pieces->slots[run] + pieces->rests[run].record_count +
	       run_block_distance(&blocks[first], &blocks[number]);
}

/* Copy the item, and set *run to its records.  0 or -errno with *failure
 * filled. */
static int bring(struct piece_reader *own, const struct piece_item *item,
		 struct source_run *run, struct failure *failure)
{
	const struct piece_source *pieces = own->source;
	const struct batch *resident =
		run_of(pieces->plan, item->run)->resident;
	const struct run_block *block;
	uint32_t record_size = pieces->source.record_size;
	uint8_t *target;
	int error = 0;

	run->slot = item->is_rest
			    ? pieces->slots[item->run]
			    : slot_of_block(pieces, item->run, item->block);
	target = pieces->source.base + run->slot * record_size;
	run->records = target;
	if (item->is_rest) {
		const struct piece_rest *rest = &pieces->rests[item->run];

		run->record_count = rest->record_count;
		if (rest->records != target && rest->record_count > 0)
			memcpy(target, rest->records,
			       rest->record_count * record_size);
		return 0;
	}
	block = &pieces->plan->index->blocks[item->block];
	run->record_count = block->record_count;
	if (resident)
		batch_gather(resident, pieces->gather, record_size,
			     block->first_record, block->record_count, target);
	else
		error = copy_block(own, item, target, failure);
	return error;
}

/* The records behind the end of the piece are for the next one. */
static void keep_rest(const struct piece_source *pieces, unsigned run,
		      struct source_run *records)
{
	uint64_t count = merge_plan_count_before(pieces->plan, pieces->piece,
						 run, records->records,
						 records->record_count);

	pieces->new_rests[run] = (struct piece_rest){
		.records =
			records->records + count * pieces->source.record_size,
		.record_count = records->record_count - count,
	};
	/* What lies before the rest of the lead is another rank's. */
	records->record_count =
		merge_plan_is_lead(pieces->plan, pieces->piece) ? 0 : count;
}

/* --- the source's operations ---------------------------------------------- */

static struct piece_reader *reader_of(const struct source_reader *reader)
{
	const struct piece_source *pieces = reader->source->context;

	return &pieces->readers[reader->worker];
}

static int open_reader(struct source_reader *reader, uint64_t first_record,
		       uint64_t record_count, bool resident,
		       struct failure *failure)
{
	struct piece_reader *own = reader_of(reader);

	(void)first_record;
	(void)record_count;
	(void)resident;
	(void)failure;
	read_ahead_resume(&own->reads, reader->clock);
	own->at = begin_share(own->source, own->source->piece, own->worker);
	return 0;
}

static int next_run(struct source_reader *reader, struct source_run *run,
		    struct failure *failure)
{
	struct piece_reader *own = reader_of(reader);
	const struct piece_source *pieces = own->source;
	struct piece_item item;
	int error;

	if (!next_item(pieces->plan, &own->at, &item))
		return 0;
	error = bring(own, &item, run, failure);
	if (error)
		return error;
	if (item.is_last)
		keep_rest(pieces, item.run, run);
	return 1;
}

/* There is no close(): reads for the next piece stay under way.  What a worker
 * reads is decided by begin_share(): its share of the records is that of none,
 * since the source's record_count stays 0. */
static const struct source_ops operations = {
	.open = open_reader,
	.next = next_run,
	.share = source_walk_share,
};

/* --- its life ------------------------------------------------------------- */

static int take_memory(struct piece_source *pieces, struct failure *failure)
{
	unsigned runs = pieces->plan->run_count;

	pieces->readers =
		alloc_apart(pieces->worker_count, sizeof(*pieces->readers));
	pieces->rests = calloc(runs, sizeof(*pieces->rests));
	pieces->new_rests = calloc(runs, sizeof(*pieces->new_rests));
	pieces->slots = calloc(runs, sizeof(*pieces->slots));
	if (!pieces->readers || !pieces->rests || !pieces->new_rests ||
	    !pieces->slots)
		return failure_no_memory(failure);
	return 0;
}

int piece_source_open(struct piece_source *pieces, struct failure *failure)
{
	uint32_t record_size = pieces->plan->index->shape.size;
	int error = take_memory(pieces, failure);

	pieces->source.ops = &operations;
	pieces->source.context = pieces;
	pieces->source.record_size = record_size;
	pieces->crc = crc32c_kernel(pieces->kernel);
	pieces->gather = gather_kernel(pieces->kernel, record_size);
	for (unsigned w = 0; w < pieces->worker_count && error == 0; w++) {
		struct piece_reader *reader = &pieces->readers[w];

		reader->source = pieces;
		reader->worker = w;
		codec_decoder_init(&reader->decoder, &pieces->codec,
				   pieces->decoder_memory +
					   w * pieces->decoder_bytes);
		reader->ahead = begin_share(pieces, 0, w);
		read_ahead_init(&reader->reads, pieces->depth,
				pieces->memory + (size_t)w * pieces->depth *
							 pieces->slot_bytes,
				pieces->slot_bytes, next_unit, reader);
	}
	return error;
}

/* Where each run begins in the batch: behind the run before. */
static void lay_out_runs(struct piece_source *pieces)
{
	const struct merge_plan *plan = pieces->plan;
	const struct run_block *blocks = plan->index->blocks;
	uint64_t slot = 0;

	for (unsigned r = 0; r < plan->run_count; r++) {
		uint32_t first = merge_plan_block(plan, pieces->piece, r);
		uint32_t end = merge_plan_block(plan, pieces->piece + 1, r);

		pieces->slots[r] = slot;
		slot += pieces->rests[r].record_count;
		if (end > first)
			slot += run_block_distance(&blocks[first],
						   &blocks[end - 1]) +
				blocks[end - 1].record_count;
	}
	pieces->source.slot_count = slot;
}

/* The piece takes the place of the one before it: bring that one's rests to
 * where they belong now.  They ascend, so first all go down to the beginning,
 * and then, from the last one on, up to their runs. */
static void move_rests(struct piece_source *pieces)
{
	size_t size = pieces->source.record_size;
	uint8_t *base = pieces->source.base, *end = base;

	for (unsigned r = 0; r < pieces->plan->run_count; r++) {
		struct piece_rest *rest = &pieces->rests[r];

		if (rest->record_count == 0)
			continue;
		memmove(end, rest->records, rest->record_count * size);
		end += rest->record_count * size;
	}
	for (unsigned r = pieces->plan->run_count; r-- > 0;) {
		struct piece_rest *rest = &pieces->rests[r];
		uint8_t *target = base + pieces->slots[r] * size;

		end -= rest->record_count * size;
		memmove(target, end, rest->record_count * size);
		rest->records = target;
	}
}

bool piece_source_begin(struct piece_source *pieces, struct batch *batch)
{
	struct piece_rest *rests = pieces->new_rests;
	bool in_place = pieces->source.base == batch->records;

	if (pieces->next_piece == pieces->plan->piece_count)
		return false;
	pieces->piece = pieces->next_piece++;
	/* They are those of the piece before; the first has none. */
	pieces->new_rests = pieces->rests;
	pieces->rests = rests;
	pieces->source.base = batch->records;
	lay_out_runs(pieces);
	if (in_place)
		move_rests(pieces);
	return true;
}

void piece_source_set_received(struct piece_source *pieces,
			       const uint8_t *const *received)
{
	pieces->received = received;
}

uint64_t piece_source_rest_records(const struct piece_source *pieces)
{
	uint64_t count = 0;

	for (unsigned r = 0; r < pieces->plan->run_count; r++)
		count += pieces->new_rests[r].record_count;
	return count;
}

void piece_source_close(struct piece_source *pieces)
{
	for (unsigned w = 0; pieces->readers && w < pieces->worker_count; w++)
		read_ahead_close(&pieces->readers[w].reads);
	free(pieces->readers);
	free(pieces->rests);
	free(pieces->new_rests);
	free(pieces->slots);
	memset(pieces, 0, sizeof(*pieces));
}
