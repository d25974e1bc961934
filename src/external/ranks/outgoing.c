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

static uint32_t block_of(const struct outgoing_wants *wants, unsigned run_count,
			 uint32_t piece, unsigned run)
{
	return wants->first_block[(uint64_t)piece * run_count + run];
}

/* In each run the piece begins behind the first block that may be wanted, since
 * the pieces before are good. */
static bool piece_is_good(const struct outgoing_wants *wants,
			  const struct run_index *index, uint32_t piece,
			  const uint32_t *end, uint64_t bytes_max)
{
	unsigned runs = index->run_count;
	uint64_t bytes = 0;

	for (unsigned r = 0; r < runs; r++) {
		uint32_t from = block_of(wants, runs, piece, r);
		uint32_t to = block_of(wants, runs, piece + 1, r);

		if (to < from || to > end[r])
			return false;
		for (uint32_t b = from; b < to; b++)
			bytes += index->blocks[b].stored_bytes;
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
	for (uint32_t p = 0; p < wants->piece_count; p++)
		if (!piece_is_good(wants, index, p, end, bytes_max))
			return false;
	return true;
}

/* --- the order of the blocks ---------------------------------------------- */

/* Where the rank's piece of that number begins in the run; 0: it has none, nor
 * the one before. */
static uint32_t piece_begin(const struct outgoing *outgoing, unsigned rank,
			    uint32_t piece, unsigned run)
{
	const struct outgoing_wants *wants = &outgoing->request.wants[rank];

	return piece > wants->piece_count || wants->piece_count == 0
		       ? 0
		       : block_of(wants, outgoing->request.index->run_count,
				  piece, run);
}

/* --- what is read ahead --------------------------------------------------- */

/* Step to the beginning of the next run's blocks. */
static void step_to_range(const struct outgoing *outgoing,
			  struct outgoing_cursor *ahead)
{
	if (++ahead->run == outgoing->request.index->run_count) {
		ahead->run = 0;
		if (++ahead->rank == outgoing->request.rank_count) {
			ahead->rank = 0;
			ahead->wave++;
		}
	}
	ahead->block =
		piece_begin(outgoing, ahead->rank, ahead->wave, ahead->run);
}

/* The next block that lies in a scratch file, before *end, which is set.
 * False: there is none. */
static bool find_ahead(struct outgoing *outgoing, uint32_t *end)
{
	const struct run *runs = outgoing->request.index->runs;
	struct outgoing_cursor *ahead = &outgoing->ahead;

	while (ahead->wave < outgoing->request.wave_count) {
		*end = piece_begin(outgoing, ahead->rank, ahead->wave + 1,
				   ahead->run);
		if (ahead->block < *end && !runs[ahead->run].resident)
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
	const struct run *run;

	if (request->index->run_count == 0 || !find_ahead(outgoing, &end))
		return false;
	run = &request->index->runs[ahead->run];
	first = &blocks[ahead->block];
	do {
		length += blocks[ahead->block].stored_bytes;
		ahead->block++;
	} while (ahead->block < end &&
		 run_block_follows(&blocks[ahead->block], first, length) &&
		 length + blocks[ahead->block].stored_bytes <= bytes_max);
	*extent = run_block_extent(run, first, request->scratch, length);
	return true;
}

/* --- a wave --------------------------------------------------------------- */

/* The blocks of one run for one rank, to *target, which goes on behind them.
 * next_unit() names those that are stored.  0 or -errno with *failure filled.
 */
static int copy_range(struct outgoing *outgoing, unsigned rank, unsigned run,
		      uint8_t **target, struct failure *failure)
{
	const struct run_index *index = outgoing->request.index;
	uint32_t wave = outgoing->read_waves;
	const struct batch *resident = index->runs[run].resident;
	uint32_t end = piece_begin(outgoing, rank, wave + 1, run);

	for (uint32_t b = piece_begin(outgoing, rank, wave, run); b < end;
	     b++) {
		const struct run_block *block = &index->blocks[b];
		const uint8_t *bytes;

		if (resident) {
			batch_gather(resident, outgoing->gather,
				     index->shape.size, block->first_record,
				     block->record_count, *target);
		} else {
			bytes = read_ahead_bytes(&outgoing->reads,
						 block->stored_bytes, failure);
			if (!bytes)
				return -EIO;
			memcpy(*target, bytes, block->stored_bytes);
		}
		*target += block->stored_bytes;
		stage_part(outgoing->request.clock, STAGE_SEND,
			   block->stored_bytes);
	}
	return 0;
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
		     r < request->index->run_count && error == 0; r++)
			error = copy_range(outgoing, i, r, &target, failure);
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
	if (request->index->run_count > 0)
		outgoing->ahead.block = piece_begin(outgoing, 0, 0, 0);
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
