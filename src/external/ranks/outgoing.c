/*
 * outgoing.c - reads and packs the blocks that each wave sends
 */
#include "external/ranks/outgoing.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/failure.h"
#include "external/runs/batch.h"

/* --- what is wanted ------------------------------------------------------- */

static uint64_t stored_bytes(const struct run_index *index, uint32_t block,
			     uint32_t end)
{
	uint64_t bytes = 0;

	for (; block < end; block++)
		bytes += index->blocks[block].stored_bytes;
	return bytes;
}

static uint32_t block_of(const struct outgoing_wants *wants, unsigned run_count,
			 uint32_t piece, unsigned run)
{
	return wants->first_block[(uint64_t)piece * run_count + run];
}

static bool piece_is_good(const struct outgoing_wants *wants,
			  const struct run_index *index, uint32_t piece,
			  uint64_t bytes_max)
{
	unsigned runs = index->run_count;
	uint64_t bytes = 0;

	for (unsigned r = 0; r < runs; r++) {
		uint32_t begin = block_of(wants, runs, piece, r);
		uint32_t end = block_of(wants, runs, piece + 1, r);

		bytes += stored_bytes(index, begin, end);
	}
	return bytes <= bytes_max;
}

bool outgoing_wants_are_good(const struct outgoing_wants *wants,
			     const struct run_index *index,
			     const uint32_t *first, const uint32_t *end,
			     uint64_t bytes_max)
{
	unsigned runs = index->run_count;

	for (unsigned r = 0; r < runs; r++)
		if (block_of(wants, runs, 0, r) != first[r] ||
		    block_of(wants, runs, wants->piece_count, r) != end[r])
			return false;
	/* None descends, so all of them lie between first and end. */
	for (uint32_t p = 0; p < wants->piece_count; p++)
		for (unsigned r = 0; r < runs; r++)
			if (block_of(wants, runs, p + 1, r) <
			    block_of(wants, runs, p, r))
				return false;
	for (uint32_t p = 0; p < wants->piece_count; p++)
		if (!piece_is_good(wants, index, p, bytes_max))
			return false;
	return true;
}

/* --- the order of the blocks ---------------------------------------------- */

/* Where the piece of a wave, or the one behind it, begins in the run at hand.
 */
static uint32_t block_at(const struct outgoing *outgoing,
			 const struct outgoing_cursor *at, uint32_t ahead)
{
	const struct outgoing_wants *wants = &outgoing->request.wants[at->rank];

	if (at->wave >= wants->piece_count)
		return 0;
	return block_of(wants, outgoing->request.index->run_count,
			at->wave + ahead, at->run);
}

static uint32_t range_end(const struct outgoing *outgoing,
			  const struct outgoing_cursor *at)
{
	return block_at(outgoing, at, 1);
}

/* Step to the beginning of the next run's blocks. */
static void step_to_range(const struct outgoing *outgoing,
			  struct outgoing_cursor *at)
{
	if (++at->run >= outgoing->request.index->run_count) {
		at->run = 0;
		if (++at->rank == outgoing->request.rank_count) {
			at->rank = 0;
			at->wave++;
		}
	}
	if (outgoing->request.index->run_count > 0)
		at->block = block_at(outgoing, at, 0);
}

static struct outgoing_cursor first_place(const struct outgoing *outgoing)
{
	struct outgoing_cursor at = { 0 };

	if (outgoing->request.index->run_count > 0)
		at.block = block_at(outgoing, &at, 0);
	return at;
}

/* --- what is read ahead --------------------------------------------------- */

static bool is_resident(const struct outgoing *outgoing, unsigned run)
{
	return outgoing->request.index->runs[run].resident != NULL;
}

/* The next block that lies in a scratch file.  False: there is none. */
static bool find_ahead(struct outgoing *outgoing)
{
	struct outgoing_cursor *ahead = &outgoing->ahead;

	while (ahead->wave < outgoing->request.wave_count) {
		if (ahead->block < range_end(outgoing, ahead) &&
		    !is_resident(outgoing, ahead->run))
			return true;
		step_to_range(outgoing, ahead);
	}
	return false;
}

/* A unit: blocks of a run that lie side by side. */
static bool next_unit(void *context, struct read_extent *extent)
{
	struct outgoing *outgoing = context;
	const struct outgoing_request *request = &outgoing->request;
	const struct run_block *blocks = request->index->blocks, *first;
	uint32_t bytes_max = request->slot_bytes - 2 * PAGE_BYTES;
	struct outgoing_cursor *ahead = &outgoing->ahead;
	uint32_t length = 0, end;

	if (outgoing->request.index->run_count == 0 || !find_ahead(outgoing))
		return false;
	first = &blocks[ahead->block];
	end = range_end(outgoing, ahead);
	do {
		length += blocks[ahead->block].stored_bytes;
		ahead->block++;
	} while (ahead->block < end &&
		 run_block_follows(&blocks[ahead->block], first, length) &&
		 length + blocks[ahead->block].stored_bytes <= bytes_max);
	*extent = run_block_extent(first, request->scratch, length);
	return true;
}

/* --- a wave --------------------------------------------------------------- */

/* next_unit() names each such block.  0 or -errno with *failure filled. */
static int copy_stored(struct outgoing *outgoing, const struct run_block *block,
		       uint8_t *target, struct failure *failure)
{
	const uint8_t *bytes = read_ahead_bytes(&outgoing->reads,
						block->stored_bytes, failure);

	if (!bytes)
		return -EIO;
	memcpy(target, bytes, block->stored_bytes);
	return 0;
}

/* The blocks of one run for one rank, to *target, which goes on behind them. */
static int copy_range(struct outgoing *outgoing, uint8_t **target,
		      struct failure *failure)
{
	const struct run_index *index = outgoing->request.index;
	struct outgoing_cursor *at = &outgoing->at;
	const struct batch *resident = index->runs[at->run].resident;
	uint32_t end = range_end(outgoing, at);
	int error = 0;

	for (; at->block < end && error == 0; at->block++) {
		const struct run_block *block = &index->blocks[at->block];

		if (resident)
			batch_gather(resident, outgoing->gather,
				     index->shape.size, block->first_record,
				     block->record_count, *target);
		else
			error = copy_stored(outgoing, block, *target, failure);
		*target += block->stored_bytes;
		stage_part(outgoing->request.clock, STAGE_SEND,
			   block->stored_bytes);
	}
	return error;
}

int outgoing_read(struct outgoing *outgoing, struct failure *failure)
{
	const struct outgoing_request *request = &outgoing->request;
	uint32_t wave = outgoing->read_waves;
	struct outgoing_message *messages = outgoing->messages[wave % 2];
	uint8_t *target = request->areas[wave % 2];
	int error = 0;

	read_ahead_resume(&outgoing->reads, request->clock);
	for (unsigned i = 0; i < request->rank_count && error == 0; i++) {
		messages[i].bytes = target;
		for (unsigned r = 0;
		     r < request->index->run_count && error == 0; r++) {
			error = copy_range(outgoing, &target, failure);
			step_to_range(outgoing, &outgoing->at);
		}
		messages[i].byte_count = (uint64_t)(target - messages[i].bytes);
	}
	assert(error ||
	       target <= request->areas[wave % 2] + request->area_bytes);
	outgoing->read_waves++;
	stage_unit(request->clock, STAGE_SEND, 0);
	return error;
}

/* --- its life ------------------------------------------------------------- */

int outgoing_open(struct outgoing *outgoing,
		  const struct outgoing_request *request,
		  struct failure *failure)
{
	*outgoing = (struct outgoing){
		.request = *request,
		.gather = gather_kernel(request->kernel,
					request->index->shape.size),
	};
	for (unsigned i = 0; i < 2; i++) {
		outgoing->messages[i] = calloc(request->rank_count,
					       sizeof(**outgoing->messages));
		if (!outgoing->messages[i])
			return failure_no_memory(failure);
	}
	outgoing->ahead = outgoing->at = first_place(outgoing);
	read_ahead_init(&outgoing->reads, request->depth, request->memory,
			request->slot_bytes, next_unit, outgoing);
	return 0;
}

void outgoing_close(struct outgoing *outgoing)
{
	read_ahead_close(&outgoing->reads);
	free(outgoing->messages[0]);
	free(outgoing->messages[1]);
	memset(outgoing, 0, sizeof(*outgoing));
}
