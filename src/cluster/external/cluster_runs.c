/*
 * cluster_runs.c - what ranks tell each other of the runs that they have
 * made, before the blocks of these are exchanged
 */
#include "cluster/external/cluster_runs.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/format.h"
#include "cluster/collective/cluster_allgather.h"
#include "exchange/exchange_buffers.h"
#include "cluster/external/run_part.h"

/* Samples of all ranks' runs: some ten thousand blocks, of which a share is
 * wrong by a few at most. */
#define SAMPLES_BYTES MIB
/* Runs of a rank: as many as --batch-size may say. */
#define RUNS_MAX UINT16_MAX
/* Fewer cannot be merged. */
#define RUNS_MIN 2
/* Length of a sample's head (write_sample()). */
#define SAMPLE_HEAD_BYTES 12
#define SLEEP_NS 500000

int cluster_runs_pause(const struct cluster_runs *runs)
{
	const struct timespec sleep = { .tv_nsec = SLEEP_NS };
	int error = external_rank_check(runs->self, runs->failure);

	if (error)
		return error;
	error = exchange_serve(runs->exchange, runs->failure);
	cluster_progress_tell(runs->progress, clock_now_ns());
	if (error == 0)
		nanosleep(&sleep, NULL);
	return error;
}

bool cluster_runs_gives(const struct cluster_runs *runs, unsigned node)
{
	return runs->keeper[node] != node &&
	       runs->hellos[node].record_count > 0;
}

/* --- limits --------------------------------------------------------------- */

/* Blocks that a rank sends us in a wave, if they are as large as can be. */
static uint64_t blocks_of_wave(const struct cluster_runs *runs, unsigned node)
{
	return runs->limits[node].wanted_bytes / runs->shape->size /
	       runs->limits[node].block_records;
}

static int tell_limits(struct cluster_runs *runs,
		       const struct external_rank_limits *own)
{
	struct external_rank_limits *limits = runs->limits;
	int error = cluster_allgather_words(
		runs->rank, runs->exchange, (const uint64_t *)own,
		sizeof(*own) / 8, (uint64_t *)limits, runs->failure);

	for (unsigned i = 0; i < runs->rank->node_count && error == 0; i++) {
		limits[i].block_records =
			MIN(limits[i].block_records, UINT32_MAX);
		limits[i].kept_records =
			MIN(limits[i].kept_records, UINT32_MAX);
		if (limits[i].block_records == 0)
			error = exchange_blame(
				runs->exchange, i, runs->failure,
				"sent impossible limits, blocks of no "
				"records: " EXCHANGE_FAULTY);
	}
	return error;
}

/* The rank with the smallest pieces, of those that merge. */
static unsigned find_smallest(const struct cluster_runs *runs)
{
	unsigned smallest = 0;

	for (unsigned i = 1; i < runs->rank->node_count; i++)
		if (runs->sorts[i] &&
		    (!runs->sorts[smallest] ||
		     runs->limits[i].piece_records <
			     runs->limits[smallest].piece_records))
			smallest = i;
	assert(runs->sorts[smallest]);
	return smallest;
}

/* The most runs that a rank may keep for pieces of this size: their rests fill
 * half of a piece, and one wave brings a block of each. */
static unsigned most_runs(const struct cluster_runs *runs, unsigned node,
			  uint64_t piece_records)
{
	uint64_t rests = piece_records / 2 / runs->limits[node].block_records /
			 MAX(1, runs->keeper_count);

	return (unsigned)MIN(MIN(rests, blocks_of_wave(runs, node)), RUNS_MAX);
}

unsigned cluster_runs_max(const struct cluster_runs *runs, unsigned node)
{
	uint64_t piece = runs->limits[find_smallest(runs)].piece_records;

	return runs->keeps[node] ? most_runs(runs, node, piece) : 0;
}

/* The rank that lacks memory ends with a status of its own, unless it hears of
 * the failure from another rank before it has found it.  So the others go on to
 * a collective, where that rank does not come, and hear it there.  Only a rank
 * that errs does come. */
static int await_failure(const struct cluster_runs *runs, unsigned node)
{
	uint64_t nothing;
	int error = cluster_allgather_words(runs->rank, runs->exchange, NULL, 0,
					    &nothing, runs->failure);

	return error ? error
		     : exchange_blame(runs->exchange, node, runs->failure,
				      "has too little memory for the merge");
}

/* The rank that has too little memory, or node_count.  All ranks find the same:
 * one whose waves or pieces do not hold its own blocks; else, if a keeper could
 * have too few runs, the rank with the smallest pieces. */
static unsigned find_short(const struct cluster_runs *runs)
{
	for (unsigned node = 0; node < runs->rank->node_count; node++) {
		uint64_t piece = runs->limits[node].piece_records;

		if (blocks_of_wave(runs, node) < RUNS_MIN)
			return node;
		if (!runs->keeps[node] ||
		    cluster_runs_max(runs, node) >= RUNS_MIN)
			continue;
		return runs->sorts[node] &&
				       most_runs(runs, node, piece) < RUNS_MIN
			       ? node
			       : find_smallest(runs);
	}
	return runs->rank->node_count;
}

int cluster_runs_tell_limits(struct cluster_runs *runs,
			     const struct external_rank_limits *own)
{
	int error = tell_limits(runs, own);
	unsigned node;

	if (error)
		return error;
	node = find_short(runs);
	if (node == runs->rank->node_count)
		return 0;
	if (node != runs->rank->rank)
		return await_failure(runs, node);
	return failure_set(runs->failure, EXIT_RESOURCES, "memory", 0,
			   "too little for a merge with the other %u ranks",
			   runs->rank->node_count - 1);
}

/* --- samples and cuts ----------------------------------------------------- */

static uint32_t sample_blocks_max(const struct cluster_runs *runs)
{
	assert(runs->rank->node_count > 1);
	return (uint32_t)MAX(1, SAMPLES_BYTES / runs->rank->node_count /
					run_cut_sample_bytes(&runs->key_shape));
}

/* The number of our runs and that of their records; of each run the part of the
 * whole input that it has; and the sample. */
static int write_sample(const struct cluster_runs *runs, uint8_t **bytes,
			uint64_t *byte_count)
{
	const struct run_index *index = runs->self->index;
	uint64_t records = 0, sample_bytes;
	uint8_t *sample, *at;
	int error = run_cut_sample(index, sample_blocks_max(runs), runs->kernel,
				   &sample, &sample_bytes, runs->failure);

	if (error)
		return error;
	*byte_count = SAMPLE_HEAD_BYTES +
		      (uint64_t)index->run_count * RUN_NUMBERS_RUN_BYTES +
		      sample_bytes;
	*bytes = malloc(*byte_count);
	if (*bytes) {
		at = run_numbers_write(index, *bytes + SAMPLE_HEAD_BYTES);
		for (unsigned r = 0; r < index->run_count; r++)
			records += index->runs[r].record_count;
		store_le32(*bytes, index->run_count);
		store_le64(*bytes + 4, records);
		memcpy(at, sample, sample_bytes);
	}
	free(sample);
	return *bytes ? 0 : failure_no_memory(runs->failure);
}

/* The numbers that a rank says of its runs can be.  How many records these have
 * of the input, run_numbers_make() finds out. */
static int read_head(struct cluster_runs *runs, unsigned node,
		     const uint8_t *bytes, uint64_t byte_count)
{
	struct run_spans *spans = &runs->spans[node];

	if (byte_count < SAMPLE_HEAD_BYTES)
		return exchange_blame(runs->exchange, node, runs->failure,
				      "sent a list of its runs that is too "
				      "short: " EXCHANGE_FAULTY);
	spans->run_count = load_le32(bytes);
	spans->record_count = load_le64(bytes + 4);
	spans->bytes = bytes + SAMPLE_HEAD_BYTES;
	if (spans->run_count > cluster_runs_max(runs, node))
		return exchange_blame(runs->exchange, node, runs->failure,
				      "has %u runs, and may have %u",
				      spans->run_count,
				      cluster_runs_max(runs, node));
	if (byte_count - SAMPLE_HEAD_BYTES <
	    (uint64_t)spans->run_count * RUN_NUMBERS_RUN_BYTES)
		return exchange_blame(runs->exchange, node, runs->failure,
				      "has %u runs, in a message of %" PRIu64
				      " bytes",
				      spans->run_count, byte_count);
	runs->first_run[node + 1] = runs->first_run[node] + spans->run_count;
	return 0;
}

static int make_cuts(struct cluster_runs *runs,
		     const struct cluster_allgather *all)
{
	struct run_sample samples[RANK_NODES_MAX];
	unsigned bad = 0;
	int error;

	for (unsigned i = 0; i < runs->rank->node_count; i++) {
		const struct run_spans *spans = &runs->spans[i];
		uint64_t head =
			SAMPLE_HEAD_BYTES +
			(uint64_t)spans->run_count * RUN_NUMBERS_RUN_BYTES;

		samples[i] = (struct run_sample){
			.bytes = all->all + all->offset[i] + head,
			.byte_count =
				all->offset[i + 1] - all->offset[i] - head,
			.run_count = spans->run_count,
			.numbers = cluster_runs_numbers(runs, i),
			.record_count = spans->record_count,
		};
	}
	error = run_cuts_make(&runs->cuts, &runs->key_shape, samples,
			      runs->sorts, runs->rank->node_count, &bad,
			      runs->failure);
	if (error == -EBADMSG)
		return exchange_blame(runs->exchange, bad, runs->failure,
				      "sent an impossible sample of its "
				      "runs: " EXCHANGE_FAULTY);
	return error;
}

static int choose_cuts(struct cluster_runs *runs,
		       const struct cluster_allgather *all)
{
	unsigned bad = 0;
	int error = 0;

	for (unsigned i = 0; i < runs->rank->node_count && error == 0; i++)
		error = read_head(runs, i, all->all + all->offset[i],
				  all->offset[i + 1] - all->offset[i]);
	if (error)
		return error;
	error = run_numbers_make(&runs->numbers, runs->spans,
				 runs->rank->node_count, runs->drops, &bad,
				 runs->failure);
	if (error == -EBADMSG)
		return exchange_blame(runs->exchange, bad, runs->failure,
				      "has runs of other records than those of "
				      "its part of the input");
	return error ? error : make_cuts(runs, all);
}

/* The longest message that a rank may have for its runs. */
static uint64_t sample_bytes_max(const struct cluster_runs *runs)
{
	uint64_t runs_max = 0;

	for (unsigned i = 0; i < runs->rank->node_count; i++)
		runs_max = MAX(runs_max, cluster_runs_max(runs, i));
	return SAMPLE_HEAD_BYTES + runs_max * RUN_NUMBERS_RUN_BYTES +
	       (uint64_t)sample_blocks_max(runs) *
		       run_cut_sample_bytes(&runs->key_shape);
}

int cluster_runs_cut(struct cluster_runs *runs)
{
	struct cluster_allgather all = {
		.rank = runs->rank,
		.bytes_max = sample_bytes_max(runs),
	};
	uint8_t *bytes = NULL;
	int error = write_sample(runs, &bytes, &all.own_bytes);

	all.own = bytes;
	if (error == 0)
		error = cluster_allgather(&all, runs->exchange, runs->failure);
	if (error == 0)
		error = choose_cuts(runs, &all);
	free(all.all);
	free(bytes);
	return error;
}

/* --- parts ---------------------------------------------------------------- */

/* The plan has memory for what the other ranks tell; more is refused. */
static int accept_bytes(void *context, const uint64_t *receive_bytes,
			struct failure *failure)
{
	const struct cluster_runs *runs = context;
	char size[FORMAT_SIZE_BYTES];
	uint64_t bytes = 0;

	for (unsigned i = 0; i < runs->rank->node_count; i++)
		bytes += receive_bytes[i];
	if (bytes <= runs->bytes_max)
		return 0;
	format_size(size, bytes);
	return failure_set(failure, EXIT_RESOURCES, NULL, 0,
			   "what the other ranks tell of their runs takes %s",
			   size);
}

static struct exchange_length part_length(const void *context, unsigned source,
					  unsigned destination)
{
	const struct cluster_runs *runs = context;

	return (struct exchange_length){
		.head_bytes = (uint64_t)runs->spans[source].run_count *
			      RUN_PART_RUN_BYTES,
		.unit_bytes = run_part_block_bytes(&runs->key_shape),
		.unit_count_max = runs->sorts[destination]
					  ? runs->spans[source].record_count
					  : 0,
	};
}

static int read_parts(struct cluster_runs *runs,
		      const struct exchange_buffers *told)
{
	const struct run_cut *begin =
		run_cuts_begin(&runs->cuts, runs->rank->rank);
	const struct run_cut *end = run_cuts_end(&runs->cuts, runs->rank->rank);
	int error = 0;

	for (unsigned i = 0; i < runs->rank->node_count && error == 0; i++) {
		const struct run_part_message message = {
			.bytes = told->all + told->offset[i],
			.byte_count = told->offset[i + 1] - told->offset[i],
			.source = i,
			.run_count = runs->spans[i].run_count,
			.numbers = cluster_runs_numbers(runs, i),
			.record_count = runs->spans[i].record_count,
			.block_records =
				(uint32_t)runs->limits[i].block_records,
		};

		if (i == runs->rank->rank) {
			error = run_part_add_own(&runs->part, runs->self->index,
						 &runs->cuts, runs->rank->rank,
						 cluster_runs_numbers(runs, i),
						 runs->failure);
			continue;
		}
		error = run_part_read(&runs->part, &message, begin, end,
				      runs->failure);
		if (error == -EBADMSG)
			error = exchange_blame(runs->exchange, i, runs->failure,
					       "sent an impossible list of run "
					       "blocks: " EXCHANGE_FAULTY);
	}
	return error;
}

/* What this rank tells another one.  The caller frees *bytes. */
typedef int write_fn(const struct cluster_runs *runs, unsigned node,
		     uint8_t **bytes, uint64_t *byte_count);

/* Tell each other rank something.  The caller frees messages->all, also after a
 * failure. */
static int tell_each(struct cluster_runs *runs, write_fn *write,
		     struct exchange_buffers *messages)
{
	uint8_t *own[RANK_NODES_MAX] = { NULL };
	unsigned count = runs->rank->node_count;
	int error = 0;

	messages->context = runs;
	messages->accept = accept_bytes;
	for (unsigned i = 0; i < count && error == 0; i++) {
		if (i != runs->rank->rank)
			error = write(runs, i, &own[i],
				      &messages->own_bytes[i]);
		messages->own[i] = own[i];
	}
	if (error == 0)
		error = exchange_send_buffers(runs->exchange, messages,
					      runs->failure);
	for (unsigned i = 0; i < count; i++)
		free(own[i]);
	return error;
}

static int write_part(const struct cluster_runs *runs, unsigned node,
		      uint8_t **bytes, uint64_t *byte_count)
{
	return run_part_write(runs->self->index, &runs->cuts, node,
			      cluster_runs_numbers(runs, runs->rank->rank),
			      bytes, byte_count, runs->failure);
}

int cluster_runs_tell_parts(struct cluster_runs *runs)
{
	struct exchange_buffers parts = { .length = part_length };
	int error = tell_each(runs, write_part, &parts);

	run_index_init(&runs->part, runs->shape,
		       runs->self->index->block_records);
	if (error == 0)
		error = read_parts(runs, &parts);
	if (error == 0)
		error = run_index_order(&runs->part, runs->failure);
	free(parts.all);
	return error;
}

/* --- wants -----------------------------------------------------------------
 *
 * A message has the number of our pieces; then for each piece, and one more,
 * for each run of the rank how many of its blocks that the rank has told us of
 * come before.
 */

#define WANTS_HEAD_BYTES 4

static struct exchange_length wants_length(const void *context, unsigned source,
					   unsigned destination)
{
	const struct cluster_runs *runs = context;

	(void)source;
	return (struct exchange_length){
		.head_bytes = WANTS_HEAD_BYTES,
		.unit_bytes = MAX(
			1, 4 * (uint64_t)runs->spans[destination].run_count),
		.unit_count_max =
			runs->spans[destination].run_count > 0
				? (uint64_t)EXTERNAL_RANK_PIECES_MAX + 1
				: 0,
	};
}

static uint64_t wants_bytes(uint32_t piece_count, uint32_t run_count)
{
	return WANTS_HEAD_BYTES + 4 * ((uint64_t)piece_count + 1) * run_count;
}

static int write_wants(const struct cluster_runs *runs, unsigned node,
		       uint8_t **bytes, uint64_t *byte_count)
{
	const struct merge_plan *merge = runs->self->merge;
	const uint32_t *numbers = cluster_runs_numbers(runs, node);
	uint32_t run_count = runs->spans[node].run_count;
	uint8_t *at;

	*byte_count = wants_bytes(merge->piece_count, run_count);
	*bytes = at = malloc(*byte_count);
	if (!at)
		return failure_no_memory(runs->failure);
	store_le32(at, merge->piece_count);
	at += WANTS_HEAD_BYTES;
	/* A rank that gets no part has no pieces. */
	if (merge->piece_count == 0) {
		memset(at, 0, 4 * (size_t)run_count);
		return 0;
	}
	for (uint32_t p = 0; p <= merge->piece_count; p++)
		for (uint32_t r = 0; r < run_count; r++, at += 4) {
			uint32_t number = numbers[r];

			store_le32(at,
				   merge_plan_block(merge, p, number) -
					   runs->part.runs[number].first_block);
		}
	return 0;
}

/* Turn the rank's numbers into those of our blocks.  False: they are
 * impossible. */
static bool read_numbers(const struct cluster_runs *runs, unsigned node,
			 const uint8_t *at, struct outgoing_wants *wants)
{
	const struct run_index *index = runs->self->index;
	const uint32_t *numbers = cluster_runs_numbers(runs, runs->rank->rank);
	unsigned own_count = index->run_count;
	uint32_t *first = calloc(2 * (size_t)own_count + 1, sizeof(*first));
	uint32_t *end = first ? first + own_count : NULL;
	bool is_good = first != NULL;

	for (unsigned r = 0; r < own_count && is_good; r++)
		run_part_range(&runs->cuts, node, index, r, numbers[r],
			       &first[r], &end[r]);
	for (uint64_t i = 0;
	     i < ((uint64_t)wants->piece_count + 1) * own_count && is_good;
	     i++) {
		uint32_t number = load_le32(at + 4 * i);
		unsigned r = (unsigned)(i % own_count);

		is_good = number <= end[r] - first[r];
		wants->first_block[i] = first[r] + number;
	}
	is_good =
		is_good && outgoing_wants_are_good(
				   wants, index, first, end,
				   runs->limits[runs->rank->rank].wanted_bytes);
	free(first);
	return is_good;
}

static int read_wants(struct cluster_runs *runs, unsigned node,
		      const uint8_t *bytes, uint64_t byte_count)
{
	uint32_t piece_count = load_le32(bytes);
	unsigned own_count = runs->spans[runs->rank->rank].run_count;
	struct outgoing_wants *wants = &runs->wants[node];

	if (piece_count > EXTERNAL_RANK_PIECES_MAX ||
	    (piece_count > 0 && !runs->sorts[node]) ||
	    byte_count != wants_bytes(piece_count, own_count))
		return exchange_blame(
			runs->exchange, node, runs->failure,
			"wants %u pieces, in a message of %" PRIu64 " bytes",
			piece_count, byte_count);
	wants->piece_count = piece_count;
	wants->first_block = calloc(((size_t)piece_count + 1) * own_count + 1,
				    sizeof(*wants->first_block));
	if (!wants->first_block)
		return failure_no_memory(runs->failure);
	if (!read_numbers(runs, node, bytes + WANTS_HEAD_BYTES, wants))
		return exchange_blame(runs->exchange, node, runs->failure,
				      "asked for run blocks outside of its "
				      "part: " EXCHANGE_FAULTY);
	runs->wave_count = MAX(runs->wave_count, piece_count);
	return 0;
}

int cluster_runs_tell_wants(struct cluster_runs *runs)
{
	struct exchange_buffers wants = { .length = wants_length };
	int error = tell_each(runs, write_wants, &wants);

	runs->wave_count = runs->self->merge->piece_count;
	for (unsigned i = 0; i < runs->rank->node_count && error == 0; i++)
		if (i != runs->rank->rank)
			error = read_wants(runs, i, wants.all + wants.offset[i],
					   wants.offset[i + 1] -
						   wants.offset[i]);
	free(wants.all);
	return error;
}

/* --- the end -------------------------------------------------------------- */

void cluster_runs_free(struct cluster_runs *runs)
{
	run_cuts_free(&runs->cuts);
	run_index_free(&runs->part);
	free(runs->numbers);
	free(runs->spans);
	for (unsigned i = 0; i < RANK_NODES_MAX; i++)
		free(runs->wants[i].first_block);
}
