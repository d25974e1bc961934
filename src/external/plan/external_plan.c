/*
 * external_plan.c - tries numbers of batches and sizes of blocks
 */
#include "external/plan/external_plan.h"

#include <assert.h>
#include <errno.h>

#include "external/plan/merge_plan.h"
#include "external/runs/run_index.h"
#include "sort/record_counts.h"

/* What the process touches besides: code, stacks, page tables, the index's
 * first pages, and what the kernel counts for it. */
#define PROCESS_BYTES (4 * MIB)
#define WORKER_BYTES (256 * KIB)
/* And EXTERNAL_KERNEL_PART of the memory, up to so much. */
#define KERNEL_BYTES_MAX (8 * MIB)
/* Smaller blocks of a run leave smaller rests of a piece, larger ones need a
 * smaller index.  The plan tries all powers of two between. */
#define BLOCK_BYTES_MIN (32 * KIB)
/* Ranks that merge together have as many times more runs to merge. */
#define RANK_BLOCK_BYTES_MIN (4 * KIB)
/* More runs of each than the 2 that a merge needs, as another rank's pieces may
 * be a little smaller. */
#define RANK_RUNS_MIN 4
/* An area of less would have no room for two reads (external_rank.c). */
#define RANK_AREA_BYTES_MIN (256 * KIB)
#define BLOCK_BYTES_MAX (512 * KIB)
/* Where the ranks' inputs are alike, the pieces are as many as expected; but a
 * piece is cut short if much of it comes from one rank. */
#define PIECES_MARGIN 2
/* A plan for a stream of fewer times the memory than this, which
 * blinksort-external(7) names, gives way to a plan for a longer one. */
#define UNKNOWN_FACTOR_WANTED 200

/* --- staging -------------------------------------------------------------- */

/* Requests to a disk: larger ones bring nothing more, and smaller ones cost
 * time of the CPU.  Between, they are this part of the memory at most: two
 * workers have 26 of them (16 to read, 10 to write), a tenth of the memory. */
#define REQUEST_BYTES_MAX (2 * MIB)
#define REQUEST_BYTES_MIN (128 * KIB)
#define REQUEST_PART 256
/* Where each request may cost the way to another place, they are this part. */
#define ARM_REQUEST_PART 64
/* And so large ones need not be many to keep the arm busy. */
#define ARM_DEPTH 4
/* Reads of each worker that are under way, and writes of all: with half as many
 * a sort takes 6 % longer, with twice as many no less (results/NOTES.md). */
#define READ_DEPTH 8
#define WRITE_DEPTH 8
/* No more than this part of the memory is for staging, half of it for reads and
 * half for writes: a few workers want less, and many have fewer requests under
 * way each, which keep the disk as busy. */
#define STAGING_PART 4

/* All givers together send this part of the keeper's memory in one wave. */
#define SLICE_PART 32

/* Each giver has chunks and slots of runs for itself. */
static void plan_kept(struct external_plan *plan,
		      const struct external_request *request)
{
	uint64_t bytes = MAX(plan->run_chunk_bytes,
			     request->memory_bytes / SLICE_PART /
				     MAX(1, request->ranks.giver_count));
	uint64_t records = MAX(
		bytes / request->shape.size,
		DIV_ROUND_UP(request->ranks.kept_most, KEPT_RUNS_SLICES_MAX));

	if (request->ranks.giver_count == 0)
		return;
	plan->kept_slice_records = ROUND_UP(records, plan->block_records);
	plan->kept_message_bytes =
		ROUND_UP(KEPT_RUNS_HEAD_BYTES +
				 plan->kept_slice_records * request->shape.size,
			 PAGE_BYTES);
	plan->kept_bytes = request->ranks.giver_count *
			   (2 * plan->kept_message_bytes +
			    KEPT_RUNS_SLOTS * plan->slot_bytes +
			    ROUND_UP(plan->encoder_bytes, PAGE_BYTES));
}

/* Set the plan's lanes, readers, slots and chunks, by its block_records. */
static void plan_staging(struct external_plan *plan,
			 const struct external_request *request)
{
	bool has_arm = external_request_has_arm(request);
	uint64_t bytes = request->memory_bytes /
			 (has_arm ? ARM_REQUEST_PART : REQUEST_PART);
	uint32_t record_size = request->shape.size;
	uint64_t block_bytes = (uint64_t)plan->block_records * record_size;
	unsigned workers = request->worker_count;
	uint64_t staging = request->memory_bytes / STAGING_PART / 2;
	size_t chunk = REQUEST_BYTES_MIN;

	plan->lane_count = request->lanes ? request->lanes->lane_count : 1;
	plan->reader_count = MAX(workers, plan->lane_count);
	while (chunk * 2 <= MIN(bytes, REQUEST_BYTES_MAX))
		chunk *= 2;
	plan->output_chunk_bytes = chunk;
	plan->run_chunk_bytes = MAX(1, chunk / block_bytes) * block_bytes;
	plan->slot_bytes =
		ROUND_UP(MAX(chunk, plan->run_chunk_bytes), PAGE_BYTES);
	plan->read_slot_bytes =
		(uint32_t)READ_AHEAD_SLOT_BYTES(MAX(chunk, block_bytes));
	plan->write_depth = has_arm ? ARM_DEPTH : WRITE_DEPTH;
	/* Each lane has as many reads under way as all workers have for one. */
	plan->read_depth =
		has_arm ? ARM_DEPTH
			: READ_DEPTH * MIN(workers, plan->lane_count);
	while (plan->read_depth > 1 &&
	       external_plan_reading_bytes(plan) > staging)
		plan->read_depth--;
	while (plan->write_depth > 1 &&
	       (workers + plan->write_depth) * plan->slot_bytes > staging)
		plan->write_depth--;
	plan->slot_count = workers + plan->write_depth;
	plan->encoder_bytes = codec_encoder_bytes(&request->codec, block_bytes);
	plan->decoder_bytes = codec_decoder_bytes(&request->codec);
	plan_kept(plan, request);
}

/* Set what does not depend on how the rest of the memory is divided.  Blocks of
 * runs have so many bytes, and one record at least. */
static void begin_plan(struct external_plan *plan,
		       const struct external_request *request,
		       const struct record_shape *shape, uint64_t block_bytes)
{
	const struct external_ranks *ranks = &request->ranks;
	unsigned rank_count = MAX(1, ranks->rank_count);

	*plan = (struct external_plan){
		.rank_count = rank_count,
		.keeper_count = ranks->keeper_count > 0 ? ranks->keeper_count
							: rank_count,
		.batch = {
			.shape = *shape,
			.worker_count = request->worker_count,
		},
		.block_records =
			(uint32_t)MAX(1, block_bytes / request->shape.size),
	};
	plan_staging(plan, request);
}

/* Memory for all slots, and what codecs need beside them. */
static uint64_t staging_bytes(const struct external_plan *plan,
			      const struct external_request *request)
{
	return external_plan_reading_bytes(plan) +
	       (uint64_t)request->worker_count *
		       (plan->encoder_bytes + plan->decoder_bytes) +
	       plan->slot_count * plan->slot_bytes + plan->kept_bytes;
}

/* --- areas of free batches ------------------------------------------------ */

unsigned external_plan_areas(const struct external_plan *plan,
			     unsigned free_batches)
{
	assert(free_batches > 0);
	return (unsigned)DIV_ROUND_UP(plan->merge_areas, free_batches);
}

size_t external_plan_area_bytes(const struct external_plan *plan,
				unsigned free_batches)
{
	return ROUND_DOWN(plan->batch_bytes /
				  external_plan_areas(plan, free_batches),
			  PAGE_BYTES);
}

uint64_t external_plan_piece_records(const struct external_plan *plan,
				     unsigned free_batches)
{
	if (external_plan_areas(plan, free_batches) == 1)
		return plan->batch.capacity;
	return batch_capacity(&plan->batch,
			      external_plan_area_bytes(plan, free_batches));
}

unsigned external_plan_runs_max(const struct external_plan *plan,
				const struct external_request *request,
				unsigned free_batches)
{
	unsigned runs = merge_plan_runs_max(
				external_plan_piece_records(plan, free_batches),
				plan->block_records) /
			plan->keeper_count;

	return request->runs_max == 0 ? runs : MIN(runs, request->runs_max);
}

/* --- the index of all runs ------------------------------------------------ */

/* The index numbers blocks by 32 bits, and a merge of runs into a run makes
 * room for twice its blocks beside them. */
#define INDEX_BLOCKS_MAX (UINT32_MAX / 4)
/* The parts of ranks are equal but for this part. */
#define RANK_INDEX_PART 8
/* An input of unknown length is planned as if it had so many times the memory;
 * or less, if the index of so many blocks would take more than its part of the
 * memory.  What does not fit into the index then can't be sorted. */
#define UNKNOWN_FACTOR 256
#define UNKNOWN_INDEX_PART 3

/* The index of a stream grows by quarters, so it is planned with one more. */
static uint64_t growing(uint64_t blocks)
{
	return blocks * 5 / 4;
}

/* Blocks of a stream that the index has room for.  Where the keys of a block
 * are nearly as long as the block, as much memory is for the one as for the
 * other. */
static uint64_t unknown_blocks(const struct external_plan *plan,
			       const struct external_request *request)
{
	uint64_t index = run_index_block_bytes(&request->shape);
	uint64_t block = (uint64_t)plan->block_records * request->shape.size;
	uint64_t blocks =
		MAX(request->memory_bytes / UNKNOWN_INDEX_PART / index,
		    request->memory_bytes / (index + block));

	return MIN(blocks, INDEX_BLOCKS_MAX) / 5 * 4;
}

static uint64_t planned_records(const struct external_plan *plan,
				const struct external_request *request)
{
	uint64_t records;

	if (!external_request_is_stream(request))
		return request->record_count;
	records = request->memory_bytes / request->shape.size * UNKNOWN_FACTOR;
	return MIN(records,
		   unknown_blocks(plan, request) * plan->block_records);
}

static uint64_t planned_runs(const struct external_plan *plan,
			     const struct external_request *request)
{
	uint64_t capacity = MAX(1, plan->batch.capacity);

	if (request->lanes)
		return lane_plan_batches(request->lanes, LANES_ALL, capacity);
	if (request->input_runs > 0)
		return request->input_runs;
	return DIV_ROUND_UP(planned_records(plan, request), capacity);
}

/* Each run may end with a block that is not full.  The index of runs of which
 * some are merged before the last merge has both versions of these for a while.
 */
static uint64_t index_blocks(const struct external_plan *plan,
			     const struct external_request *request)
{
	uint64_t runs = planned_runs(plan, request);
	unsigned runs_max =
		external_plan_runs_max(plan, request, plan->batch_count);
	uint64_t records =
		MAX(planned_records(plan, request), request->ranks.records_max);
	uint64_t blocks = DIV_ROUND_UP(records, plan->block_records);
	uint64_t more = runs > runs_max ? blocks / runs * (runs - runs_max) : 0;

	if (external_request_is_stream(request))
		return growing(blocks);
	return blocks + runs + MIN(2 * more, blocks / 4);
}

/* What merge_plan.h keeps for each run of each piece, of which half is rests at
 * most. */
static uint64_t cuts_bytes(const struct external_plan *plan,
			   const struct external_request *request)
{
	uint64_t piece =
		MAX(2, external_plan_piece_records(plan, plan->batch_count));
	uint64_t pieces =
		DIV_ROUND_UP(planned_records(plan, request), piece / 2);
	uint64_t runs =
		MIN(planned_runs(plan, request),
		    external_plan_runs_max(plan, request, plan->batch_count));

	return pieces * runs * sizeof(uint32_t);
}

/* Runs of other ranks have an index for each of these at first, which grows by
 * quarters (run_index.c).  One after the other is then appended to that of all
 * runs, so there are two of the largest for a while. */
static uint64_t kept_blocks(const struct external_plan *plan,
			    const struct external_request *request)
{
	return DIV_ROUND_UP(request->ranks.kept_records / 4 +
				    request->ranks.kept_most,
			    plan->block_records);
}

/* A rank has the index of its own runs and one of its part of all ranks' runs,
 * the cuts of both, and for a while the messages that tell of them. */
static uint64_t index_bytes(const struct external_plan *plan,
			    const struct external_request *request)
{
	uint64_t blocks = plan->index_blocks;
	uint64_t block_bytes = run_index_block_bytes(&request->shape);
	uint64_t part =
		DIV_ROUND_UP(request->ranks.part_records, plan->block_records);
	uint64_t merge;

	if (plan->rank_count == 1)
		return blocks * block_bytes + cuts_bytes(plan, request);
	part += part / RANK_INDEX_PART;
	merge = (blocks + part) * block_bytes * 3 / 2 +
		2 * plan->rank_count * cuts_bytes(plan, request);
	return MAX(merge, (blocks + kept_blocks(plan, request)) * block_bytes);
}

/* --- what is not for batches ---------------------------------------------- */

/* Lanes have readers of their own, beside those of the second pass. */
static uint64_t process_bytes(const struct external_plan *plan,
			      const struct external_request *request)
{
	uint64_t workers = request->worker_count +
			   (plan->lane_count > 1 ? plan->reader_count : 0) +
			   (plan->kept_bytes > 0 ? 1 : 0);

	return PROCESS_BYTES + workers * WORKER_BYTES +
	       MIN(request->memory_bytes / EXTERNAL_KERNEL_PART,
		   KERNEL_BYTES_MAX);
}

/* --- a candidate ---------------------------------------------------------- */

uint64_t external_plan_chunk_entries(const struct external_plan *plan,
				     const struct external_request *request)
{
	return MAX(
		plan_chunk_entries(plan->run_chunk_bytes, request->shape.size),
		plan_chunk_entries(plan->output_chunk_bytes,
				   external_request_written_size(request)));
}

/* The orderer's own memory: see orderer_take_memory() and
 * orderer_take_oversized(), once for the batch that is being ordered; and what
 * each lane has for samples and splitters. */
static uint64_t orderer_bytes(const struct external_plan *plan,
			      const struct external_request *request)
{
	struct plan tables = batch_plan(&plan->batch);
	uint64_t entries = external_plan_chunk_entries(plan, request);

	return tables.list_count * 8 + plan->batch.capacity * 8 +
	       request->worker_count * entries * 8 +
	       plan->lane_count *
		       (tables.sample_count * 16 + request->shape.keys.end -
			request->shape.keys.begin) +
	       (request->worker_count + 4 + 3 * plan->lane_count) *
		       CACHE_PAIR_BYTES;
}

static bool share_equally(struct external_plan *plan,
			  const struct external_request *request,
			  uint64_t fixed)
{
	if (fixed >= request->memory_bytes)
		return false;
	plan->batch_bytes =
		ROUND_DOWN((request->memory_bytes - fixed) / plan->batch_count,
			   PAGE_BYTES);
	plan->batch.capacity = batch_capacity(&plan->batch, plan->batch_bytes);
	return true;
}

/* What is left of the memory, beside the fixed part, is the batches' and the
 * orderer's, which takes what follows from how large the batches may be.
 * False: it is too little. */
static bool share_rest(struct external_plan *plan,
		       const struct external_request *request, uint64_t fixed)
{
	return share_equally(plan, request, fixed) &&
	       share_equally(plan, request,
			     fixed + orderer_bytes(plan, request));
}

/* Divide what is left of the memory by the batches.  False: it is too little.
 */
static bool divide(struct external_plan *plan,
		   const struct external_request *request)
{
	uint64_t records = planned_records(plan, request);
	uint64_t process = process_bytes(plan, request);
	uint64_t fixed = process + staging_bytes(plan, request);

	/* How many runs there are follows from how large the batches may be. */
	plan->index_blocks =
		growing(DIV_ROUND_UP(records, plan->block_records));
	if (!share_rest(plan, request,
			fixed + plan->index_blocks *
					run_index_block_bytes(&request->shape)))
		return false;
	plan->index_blocks = index_blocks(plan, request);
	plan->index_bytes = index_bytes(plan, request);
	if (!share_rest(plan, request, fixed + plan->index_bytes))
		return false;
	plan->memory_bytes =
		request->memory_bytes - (process + plan->index_bytes);
	return plan->batch.capacity >= 4 * (uint64_t)plan->block_records &&
	       plan->index_blocks <= INDEX_BLOCKS_MAX;
}

/* --- what is expected ----------------------------------------------------- */

/*
 * Runs are merged with their neighbours, one after the other, until one merge
 * suffices for the rest: no more of them than that takes.  Only if all have
 * been merged once, longer ones are again.
 */
static void expect_merges(struct external_plan *plan, unsigned runs_max)
{
	uint64_t left = plan->run_count;

	while (left > runs_max) {
		/* Each one leaves runs_max - 1 fewer, or the last one less. */
		uint64_t merges = DIV_ROUND_UP(left - runs_max, runs_max - 1);
		uint64_t merged = left - runs_max + merges;

		if (merged <= left) {
			plan->merge_count += merges;
			plan->merged_records +=
				(uint64_t)((double)plan->spilled_records *
					   (double)merged / (double)left);
			return;
		}
		left = DIV_ROUND_UP(left, runs_max);
		plan->merge_count += left;
		plan->merged_records += plan->spilled_records;
	}
}

/* Batches that must be free for the last merge: as few as possible, unless the
 * runs are so many that some are merged before. */
static unsigned find_free_batches(const struct external_plan *plan,
				  const struct external_request *request)
{
	uint64_t runs = planned_runs(plan, request);
	unsigned most = MIN(plan->merge_areas, plan->batch_count);

	if (plan->rank_count > 1)
		runs = MAX(runs, RANK_RUNS_MIN);
	for (unsigned count = 1; count <= most; count++)
		if (runs <= external_plan_runs_max(plan, request, count))
			return count;
	return plan->batch_count;
}

/* Records that so many batches keep, at least: of lanes, the batches that are
 * filled last may be the smallest. */
static uint64_t kept_records(const struct external_plan *plan,
			     const struct external_request *request,
			     unsigned batch_count)
{
	uint64_t capacity = plan->batch.capacity;

	if (request->lanes)
		return lane_plan_least(request->lanes, capacity, batch_count);
	return capacity * batch_count;
}

/* The first records of the order that are wanted are spilled, of all that come
 * before the bound is known; then, of records in random order, about as many
 * whenever the input has doubled. */
static uint64_t head_spill(const struct external_request *request,
			   uint64_t records)
{
	uint64_t wanted = request->head_records, spilled = wanted;

	for (uint64_t seen = wanted; seen < records / 2; seen *= 2)
		spilled += wanted;
	return MIN(spilled, records);
}

/* So many of the batches are for the last merge, and the others keep their
 * records until then. */
static void expect(struct external_plan *plan,
		   const struct external_request *request,
		   unsigned free_batches)
{
	uint64_t records = planned_records(plan, request);
	uint64_t kept =
		kept_records(plan, request, plan->batch_count - free_batches);
	unsigned runs_max = external_plan_runs_max(plan, request, free_batches);
	uint64_t piece = external_plan_piece_records(plan, free_batches);
	uint64_t last_runs, rests;

	plan->free_batches = free_batches;
	plan->run_count = planned_runs(plan, request);
	plan->spilled_records = records > kept ? records - kept : 0;
	if (request->head_records > 0)
		plan->spilled_records = MIN(plan->spilled_records,
					    head_spill(request, records));
	expect_merges(plan, runs_max);
	last_runs = MAX(1, MIN(plan->run_count, runs_max)) * plan->keeper_count;
	rests = MIN(last_runs * plan->block_records, piece / 2);
	plan->piece_count = DIV_ROUND_UP(records, MAX(1, piece - rests));
	plan->read_bytes = (piece - rests) / last_runs * request->shape.size;
	/* Both versions of runs that are merged are in the files at once. */
	plan->scratch_bytes =
		(plan->spilled_records +
		 MIN(plan->merged_records, plan->spilled_records)) *
		request->shape.size;
}

static double seek_bytes(const struct external_request *request)
{
	return (double)MAX(request->seek_bytes, EXTERNAL_READ_COST_BYTES);
}

/* What the reads of a merge cost, for each byte of it. */
static double read_cost(const struct external_plan *plan,
			const struct external_request *request)
{
	return seek_bytes(request) / (double)MAX(1, plan->read_bytes);
}

/* How often the disk moves the input for what is spilled, with what its reads
 * cost; and, if it has an arm that goes to and fro in the first pass, what each
 * request of that costs. */
static double cost(const struct external_plan *plan,
		   const struct external_request *request)
{
	double records = (double)MAX(1, planned_records(plan, request));
	double spilled = (double)plan->spilled_records / records;
	double moved = spilled + EXTERNAL_MERGE_COST *
					 (double)plan->merged_records / records;
	double cost = moved * (2 + read_cost(plan, request));

	if (external_request_has_arm(request) && plan->batch_count > 1)
		cost += 2 * spilled * seek_bytes(request) /
			(double)plan->output_chunk_bytes;
	return cost;
}

/* --- ways without runs ---------------------------------------------------- */

/* Set all but the memory, and the number and size of batches. */
static void plan_without_runs(struct external_plan *plan,
			      const struct external_request *request,
			      enum external_way way,
			      const struct record_shape *shape)
{
	begin_plan(plan, request, shape, 0);
	plan->way = way;
	plan->read_bytes = request->shape.size;
	plan->run_chunk_bytes = 0;
	plan->slot_bytes = plan->output_chunk_bytes;
}

/* --- large records -------------------------------------------------------- */

/* Small reads, of each worker: by more of them under way the disk brings more,
 * and as many as these take little memory, where a record is large. */
#define KEYS_READ_BYTES (4 * MIB)
#define KEYS_READ_DEPTH 32

static void plan_key_requests(struct external_plan *plan,
			      const struct external_request *request)
{
	uint32_t span = plan->batch.shape.size;
	uint64_t read_bytes =
		MIN(request->shape.size, plan->output_chunk_bytes);

	plan->read_slot_bytes =
		(uint32_t)READ_AHEAD_SLOT_BYTES(MAX(read_bytes, span));
	plan->read_depth = (unsigned)MAX(
		READ_DEPTH,
		MIN(KEYS_READ_DEPTH, KEYS_READ_BYTES / plan->read_slot_bytes));
}

/* What keys that are read by themselves cost: two reads for each record. */
static double cost_of_keys(const struct external_request *request)
{
	return (2.0 * seek_bytes(request) + 2 * PAGE_BYTES) /
	       request->shape.size;
}

/* False: the keys do not fit into memory, or what they take is not known. */
static bool try_keys(struct external_plan *plan,
		     const struct external_request *request)
{
	struct record_shape keys = run_index_key_shape(&request->shape);
	uint64_t fixed;

	if (request->written_size > 0 ||
	    request->record_count > PLAN_RECORDS_MAX || request->sums_up ||
	    request->in_order || request->lanes)
		return false;
	plan_without_runs(plan, request, EXTERNAL_BY_KEYS, &keys);
	plan_key_requests(plan, request);
	plan->batch_count = 1;
	plan->batch.capacity = request->record_count;
	plan->run_count = 1;
	plan->piece_count = 1;
	plan->cost = cost_of_keys(request);
	plan->batch_bytes = ROUND_UP(batch_bytes(&plan->batch), PAGE_BYTES);
	fixed = process_bytes(plan, request);
	plan->memory_bytes = request->memory_bytes - fixed;
	fixed += staging_bytes(plan, request) + orderer_bytes(plan, request);
	return fixed + plan->batch_bytes <= request->memory_bytes;
}

/* --- small records -------------------------------------------------------- */

/* A batch of records that are counted, at most, and in little memory this part
 * of it: a batch is only where records pass through. */
#define COUNTS_BATCH_BYTES (4 * MIB)
#define COUNTS_BATCH_PART 16

/* False: it is too little memory. */
static bool plan_counts(struct external_plan *plan,
			const struct external_request *request)
{
	uint64_t bytes =
		ROUND_UP(MIN(COUNTS_BATCH_BYTES,
			     request->memory_bytes / COUNTS_BATCH_PART),
			 PAGE_BYTES);

	plan_without_runs(plan, request, EXTERNAL_BY_COUNTS, &request->shape);
	plan->batch_count = plan->lane_count + 1;
	plan->batch.capacity = bytes / request->shape.size;
	plan->batch_bytes = bytes;
	plan->memory_bytes =
		staging_bytes(plan, request) +
		plan->batch_count * plan->batch_bytes +
		record_counts_bytes(request->shape.size, plan->reader_count);
	return process_bytes(plan, request) + plan->memory_bytes <=
	       request->memory_bytes;
}

/* --- the first records ---------------------------------------------------- */

/* Batches through which the input passes, so small that the first of them is
 * soon full, and tells which records need not be looked at; and one more, with
 * what is wanted of all before. */
#define HEAD_BATCH_BYTES (16 * MIB)
#define HEAD_BATCHES 3

/* The records that are wanted fit into a batch twice, so that newer ones may
 * come beside them; and other batches are left.  Of records with equal keys the
 * first ones of the input are wanted, and several lanes would bring these in
 * any order. */
static bool has_room_for_head(const struct external_plan *plan,
			      const struct external_request *request)
{
	return request->head_records > 0 && !request->lanes &&
	       plan->batch_count >= HEAD_BATCHES &&
	       plan->batch.capacity >= 2 * request->head_records;
}

/* False: there is no such plan. */
static bool try_head(struct external_plan *plan,
		     const struct external_request *request)
{
	uint64_t capacity = MAX(2 * request->head_records,
				HEAD_BATCH_BYTES / request->shape.size);
	uint64_t fixed;

	if (request->head_records == 0 || request->lanes ||
	    request->head_records > PLAN_RECORDS_MAX / 2)
		return false;
	plan_without_runs(plan, request, EXTERNAL_BY_HEAD, &request->shape);
	plan->batch_count = HEAD_BATCHES;
	fixed = process_bytes(plan, request);
	if (!share_rest(plan, request, fixed + staging_bytes(plan, request)))
		return false;
	plan->batch.capacity = MIN(plan->batch.capacity, capacity);
	plan->batch_bytes =
		MIN(plan->batch_bytes,
		    ROUND_UP(batch_bytes(&plan->batch), PAGE_BYTES));
	plan->memory_bytes = staging_bytes(plan, request) +
			     orderer_bytes(plan, request) +
			     plan->batch_count * plan->batch_bytes;
	plan->keeps_head = has_room_for_head(plan, request);
	return plan->keeps_head;
}

/* --- runs ----------------------------------------------------------------- */

static unsigned merge_areas(const struct external_request *request)
{
	if (request->ranks.rank_count > 1)
		return EXTERNAL_RANK_AREAS;
	return external_request_has_arm(request) ? 1 : 2;
}

/* The sizes of a merge through so many batches.  False: there is too little
 * memory. */
static bool divide_for_runs(struct external_plan *plan,
			    const struct external_request *request,
			    unsigned batch_count, uint64_t block_bytes)
{
	begin_plan(plan, request, &request->shape, block_bytes);
	plan->batch_count = batch_count;
	plan->merge_areas = merge_areas(request);
	return divide(plan, request) &&
	       external_plan_runs_max(plan, request, batch_count) >=
		       (plan->rank_count > 1 ? RANK_RUNS_MIN : 2);
}

/*
 * One is filled and emptied in turns; of several, one is filled while another
 * one is emptied.  Of n batches all but one or two keep their records, so more
 * than 32 would keep 3 to 6 % of the memory more, in runs of half the length. A
 * number that is not among these would spill less than the next lower one by a
 * tenth of the memory at most (5 in place of 4), and by a twenty-fifth from 16
 * on.
 */
static const unsigned batch_counts[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32 };

/* A batch for each lane, and one that is emptied meanwhile; or, on a disk with
 * an arm, one that is filled and emptied in turns, but not of a stream, whose
 * writer would have to wait. */
static unsigned least_batches(const struct external_request *request)
{
	unsigned lanes = request->lanes ? request->lanes->lane_count : 1;
	bool may_turn = merge_areas(request) == 1 && lanes == 1 &&
			!external_request_is_stream(request);

	return may_turn ? 1 : lanes + 1;
}

static bool try_runs(struct external_plan *plan,
		     const struct external_request *request,
		     unsigned batch_count, uint64_t block_bytes)
{
	if (batch_count < least_batches(request) ||
	    !divide_for_runs(plan, request, batch_count, block_bytes))
		return false;
	expect(plan, request, find_free_batches(plan, request));
	plan->cost = cost(plan, request);
	return plan->rank_count == 1 ||
	       (external_plan_area_bytes(plan, plan->free_batches) >=
			RANK_AREA_BYTES_MIN &&
		plan->piece_count <= EXTERNAL_RANK_PIECES_MAX / PIECES_MARGIN);
}

/* How many records of a stream a plan has room for, up to what is wanted; 0:
 * the input is no stream. */
static uint64_t reach(const struct external_plan *plan,
		      const struct external_request *request)
{
	uint64_t wanted = request->memory_bytes / request->shape.size *
			  UNKNOWN_FACTOR_WANTED;

	return external_request_is_stream(request)
		       ? MIN(planned_records(plan, request), wanted)
		       : 0;
}

static bool is_better(const struct external_plan *tried,
		      const struct external_plan *plan,
		      const struct external_request *request)
{
	uint64_t reached = reach(plan, request),
		 further = reach(tried, request);

	return further == reached ? tried->cost < plan->cost
				  : further > reached;
}

/* False: there is no such plan. */
static bool plan_runs(struct external_plan *plan,
		      const struct external_request *request)
{
	const struct external_ranks *ranks = &request->ranks;
	uint64_t least =
		ranks->rank_count > 1 ? RANK_BLOCK_BYTES_MIN : BLOCK_BYTES_MIN;
	struct external_plan tried;
	bool found = false;

	for (unsigned i = 0; i < ARRAY_LEN(batch_counts); i++)
		for (uint64_t block = least; block <= BLOCK_BYTES_MAX;
		     block *= 2)
			if (try_runs(&tried, request, batch_counts[i], block) &&
			    (!found || is_better(&tried, plan, request))) {
				*plan = tried;
				found = true;
			}
	if (!found)
		return false;
	/* A rank whose records others keep, or deal out, has batches only. */
	plan->keeps_head = plan->rank_count > 1 && !ranks->gives_runs &&
			   !ranks->shares_input &&
			   has_room_for_head(plan, request);
	if (external_request_is_stream(request))
		plan->run_count = plan->spilled_records = plan->scratch_bytes =
			plan->merge_count = plan->merged_records =
				plan->piece_count = plan->read_bytes = 0;
	return true;
}

/* --- input files as runs --------------------------------------------------
 *
 * They are merged as they lie, so nothing is spilled but what is merged before
 * the last merge, and each batch holds a piece.
 */

/* Input files that are merged are divided into at least so many pieces, so that
 * one is read while another one is written; but a piece has this much, and room
 * for so many of the smallest blocks of each file, if memory allows. */
#define MERGE_PIECES_MIN 16
#define MERGE_PIECE_BYTES_MIN (8 * MIB)
#define MERGE_PIECE_BLOCKS 16
/* The key of each block of theirs is read by itself, so larger ones may pay;
 * but a file has at least so many on average, since these keys are the sample
 * that divides a piece among workers.  They are read as they lie: a direct read
 * of 2 MiB is made while its thread submits it, which took half of the time of
 * the threads that read. */
#define MERGE_BLOCK_BYTES_MIN (4 * KIB)
#define MERGE_BLOCK_BYTES_MAX MIB
#define MERGE_FILE_BLOCKS 16

/* No larger pieces than the merge needs. */
static void bound_pieces(struct external_plan *plan,
			 const struct external_request *request)
{
	uint64_t size = request->shape.size;
	uint64_t wanted = MAX(request->record_count / MERGE_PIECES_MIN,
			      MERGE_PIECE_BYTES_MIN / size);

	wanted = MAX(wanted, MERGE_PIECE_BLOCKS *
				     MAX(1, MERGE_BLOCK_BYTES_MIN / size) *
				     request->input_runs);
	plan->batch.capacity = MIN(plan->batch.capacity, wanted);
}

static bool try_inputs(struct external_plan *plan,
		       const struct external_request *request,
		       uint64_t block_bytes)
{
	unsigned batch_count = merge_areas(request);
	double bytes = (double)request->record_count * request->shape.size;

	if (!divide_for_runs(plan, request, batch_count, block_bytes))
		return false;
	bound_pieces(plan, request);
	expect(plan, request, batch_count);
	plan->spilled_records = 0;
	plan->scratch_bytes = MIN(plan->merged_records, request->record_count) *
			      request->shape.size;
	/* The last merge reads all, and keys have been read before. */
	plan->cost = cost(plan, request);
	plan->cost += read_cost(plan, request) +
		      seek_bytes(request) * (double)plan->index_blocks /
			      MAX(request->shape.size, bytes);
	return true;
}

/* A merge without a spill, if there is one, or else the one that costs less. */
static bool merges_better(const struct external_plan *tried,
			  const struct external_plan *plan)
{
	if ((tried->merge_count > 0) != (plan->merge_count > 0))
		return plan->merge_count > 0;
	return tried->cost < plan->cost;
}

/* False: there is no such plan. */
static bool plan_inputs(struct external_plan *plan,
			const struct external_request *request)
{
	uint64_t bytes = request->record_count * request->shape.size;
	uint64_t most =
		MAX(MERGE_BLOCK_BYTES_MIN,
		    MIN(MERGE_BLOCK_BYTES_MAX,
			bytes / request->input_runs / MERGE_FILE_BLOCKS));
	struct external_plan tried;
	bool found = false;

	for (uint64_t block = MERGE_BLOCK_BYTES_MIN; block <= most; block *= 2)
		if (try_inputs(&tried, request, block) &&
		    (!found || merges_better(&tried, plan))) {
			*plan = tried;
			found = true;
		}
	return found;
}

/* --- choosing ------------------------------------------------------------- */

static bool choose(struct external_plan *plan,
		   const struct external_request *request)
{
	struct external_plan keys;
	bool found;

	if (request->input_runs > 0)
		return plan_inputs(plan, request);
	/* Ranks that merge together have runs to merge. */
	if (request->ranks.rank_count > 1)
		return plan_runs(plan, request);
	if (try_head(plan, request))
		return true;
	if (record_counts_suit(&request->shape) && request->head_records == 0)
		return plan_counts(plan, request);
	found = plan_runs(plan, request);
	if (!try_keys(&keys, request) || (found && keys.cost >= plan->cost))
		return found;
	*plan = keys;
	return true;
}

int external_plan_make(struct external_plan *plan,
		       const struct external_request *request)
{
	return choose(plan, request) ? 0 : -ENOMEM;
}

/* Batches that end with a range are not full, so more is spilled.  What is, is
 * written and read again: an eighth of the input more moves a quarter of it,
 * while two devices save half of the time that reading it takes. */
#define SPILL_PART 8

bool external_plan_gains(const struct external_plan *several,
			 const struct external_plan *single,
			 const struct external_request *request)
{
	return several->merged_records <= single->merged_records &&
	       several->spilled_records <=
		       single->spilled_records +
			       request->record_count / SPILL_PART;
}

const char *const external_way_names[] = { "runs", "keys", "counts", "head" };
