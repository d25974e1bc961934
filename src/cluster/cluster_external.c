#include "cluster/cluster_external.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "cluster/cluster_allgather.h"
#include "cluster/cluster_alltoall.h"
#include "external/external_rank.h"
#include "external/run_part.h"

/* While threads work, other ranks are answered so often. */
#define SERVE_NS 500000
/* Samples of all ranks' runs: some ten thousand blocks, of which a share is
 * wrong by a few at most. */
#define SAMPLES_BYTES MIB
/* Runs of a rank: as many as --batch-size may say. */
#define RUNS_MAX UINT16_MAX
/* Of an allgather: see write_sample(). */
#define SAMPLE_HEAD_BYTES 12
#define LIMITS_BYTES 24
#define SHARE_BYTES 16

struct run_of_ranks {
	const struct cluster_external *external;
	struct exchange *exchange;
	struct external_rank *rank;
	unsigned own, count;
	const struct record_shape *shape;
	struct record_shape key_shape;
	struct external_rank_limits limits[RANK_NODES_MAX];
	/* From the samples on. */
	uint32_t run_count[RANK_NODES_MAX];
	uint32_t first_run[RANK_NODES_MAX + 1]; /* over all ranks */
	uint64_t record_count[RANK_NODES_MAX];
	struct run_cuts cuts;
	struct run_index part;
	/* What each wants of our runs. */
	struct outgoing_wants wants[RANK_NODES_MAX];
	uint32_t wave_count;
	/* Of the wave at hand. */
	const struct outgoing_message *messages;
	uint64_t send_bytes[RANK_NODES_MAX];
	uint64_t expected_bytes[RANK_NODES_MAX];
	uint64_t arrived_at[RANK_NODES_MAX]; /* in the area */
	const uint8_t **received; /* [run_count of the part], owned */
	uint64_t share;		  /* records that we shall write */
};

/* --- waiting ---------------------------------------------------------------
 */

/* Answer other ranks, and pause.  0 or -errno with *failure filled. */
static int serve(const struct run_of_ranks *run, struct failure *failure)
{
	const struct timespec pause = { .tv_nsec = SERVE_NS };
	int error = exchange_serve(run->exchange, failure);

	if (error == 0)
		nanosleep(&pause, NULL);
	return error;
}

/* Until what was started has ended. */
static int wait_until_done(const struct run_of_ranks *run,
			   struct failure *failure)
{
	int error = 0;

	while (error == 0 && external_rank_is_busy(run->rank))
		error = serve(run, failure);
	return error ? error : external_rank_finish(run->rank, failure);
}

/* Until so many waves have been read, and so many taken. */
static int wait_for_wave(const struct run_of_ranks *run, uint32_t read,
			 uint32_t taken, struct failure *failure)
{
	int error = 0;

	while (error == 0 && (external_rank_read_waves(run->rank) < read ||
			      external_rank_taken(run->rank) < taken)) {
		error = external_rank_check(run->rank, failure);
		if (error == 0)
			error = serve(run, failure);
	}
	return error ? error : external_rank_check(run->rank, failure);
}

static int gather(const struct run_of_ranks *run,
		  struct cluster_allgather *gather, struct failure *failure)
{
	gather->rank = run->external->rank;
	return cluster_allgather(gather, run->exchange, failure);
}

/* --- limits ----------------------------------------------------------------
 */

static int tell_limits(struct run_of_ranks *run, struct failure *failure)
{
	struct external_rank_limits own;
	uint8_t bytes[LIMITS_BYTES];
	struct cluster_allgather all = { .own = bytes,
					 .own_bytes = sizeof(bytes) };
	int error;

	external_rank_limits(run->rank, &own);
	store_le64(bytes, own.piece_records);
	store_le64(bytes + 8, own.block_records);
	store_le64(bytes + 16, own.wanted_bytes);
	for (unsigned i = 0; i < run->count; i++)
		all.bytes[i] = sizeof(bytes);
	error = gather(run, &all, failure);
	for (unsigned i = 0; i < run->count && error == 0; i++) {
		const uint8_t *told = all.all + all.offset[i];

		run->limits[i] = (struct external_rank_limits){
			.piece_records = load_le64(told),
			.block_records =
				(uint32_t)MIN(load_le64(told + 8), UINT32_MAX),
			.wanted_bytes = load_le64(told + 16),
		};
		if (run->limits[i].block_records == 0)
			error = exchange_blame(run->exchange, i, failure,
					       "has blocks of no records");
	}
	free(all.all);
	return error;
}

/* So many runs of ours, and of each other rank as large a part of its piece,
 * leave rests that fill half of a piece. */
static int find_runs_max(const struct run_of_ranks *run, unsigned *runs_max,
			 struct failure *failure)
{
	uint64_t piece = UINT64_MAX, most;
	unsigned smallest = 0;

	for (unsigned i = 0; i < run->count; i++)
		if (run->limits[i].piece_records < piece) {
			piece = run->limits[i].piece_records;
			smallest = i;
		}
	most = piece / 2 / run->limits[run->own].block_records / run->count;
	*runs_max = (unsigned)MIN(most, RUNS_MAX);
	if (most >= 2)
		return 0;
	return failure_set(failure, EXIT_RESOURCES, "memory", 0,
			   "rank %u has too little for a merge with the other "
			   "%u",
			   smallest, run->count - 1);
}

static int make_runs(struct run_of_ranks *run, struct failure *failure)
{
	unsigned runs_max = 0;
	int error = find_runs_max(run, &runs_max, failure);

	if (error)
		return error;
	external_rank_start_runs(run->rank, runs_max);
	return wait_until_done(run, failure);
}

/* --- samples and cuts ------------------------------------------------------
 */

static uint32_t sample_blocks_max(const struct run_of_ranks *run)
{
	return (uint32_t)MAX(1, SAMPLES_BYTES / run->count /
					run_cut_sample_bytes(&run->key_shape));
}

/* The number of our runs, that of their records, and the sample. */
static int write_sample(const struct run_of_ranks *run, uint8_t **bytes,
			uint64_t *byte_count, struct failure *failure)
{
	const struct run_index *index = external_rank_index(run->rank);
	uint64_t records = 0, sample_bytes;
	uint8_t *sample;
	int error = run_cut_sample(index, sample_blocks_max(run),
				   run->external->config->sort->kernel, &sample,
				   &sample_bytes, failure);

	if (error)
		return error;
	*byte_count = SAMPLE_HEAD_BYTES + sample_bytes;
	*bytes = malloc(*byte_count);
	if (*bytes) {
		for (unsigned r = 0; r < index->run_count; r++)
			records += index->runs[r].record_count;
		store_le32(*bytes, index->run_count);
		store_le64(*bytes + 4, records);
		memcpy(*bytes + SAMPLE_HEAD_BYTES, sample, sample_bytes);
	}
	free(sample);
	return *bytes ? 0 : failure_no_memory(failure);
}

/* What a rank says of its runs can be. */
static int read_head(struct run_of_ranks *run, unsigned node,
		     const uint8_t *bytes, uint64_t byte_count,
		     struct failure *failure)
{
	uint64_t has = run->external->hellos[node].record_count;
	bool drops = run->external->config->sort->unique;

	if (byte_count < SAMPLE_HEAD_BYTES)
		return exchange_blame(run->exchange, node, failure,
				      "says nothing of its runs");
	run->run_count[node] = load_le32(bytes);
	run->record_count[node] = load_le64(bytes + 4);
	run->first_run[node + 1] = run->first_run[node] + run->run_count[node];
	if (run->run_count[node] > RUNS_MAX || run->record_count[node] > has ||
	    (run->record_count[node] < has && !drops))
		return exchange_blame(
			run->exchange, node, failure,
			"has %u runs of %" PRIu64 " records, of %" PRIu64,
			run->run_count[node], run->record_count[node], has);
	return 0;
}

static int choose_cuts(struct run_of_ranks *run,
		       const struct cluster_allgather *all,
		       struct failure *failure)
{
	struct run_sample samples[RANK_NODES_MAX];
	unsigned bad = 0;
	int error = 0;

	for (unsigned i = 0; i < run->count && error == 0; i++) {
		const uint8_t *bytes = all->all + all->offset[i];
		uint64_t byte_count = all->offset[i + 1] - all->offset[i];

		error = read_head(run, i, bytes, byte_count, failure);
		if (error)
			return error;
		samples[i] = (struct run_sample){
			.bytes = bytes + SAMPLE_HEAD_BYTES,
			.byte_count = byte_count - SAMPLE_HEAD_BYTES,
			.run_count = run->run_count[i],
			.record_count = run->record_count[i],
		};
	}
	error = run_cuts_make(&run->cuts, &run->key_shape, samples, run->count,
			      run->external->config->sort->kernel, &bad,
			      failure);
	if (error == -EBADMSG)
		return exchange_blame(run->exchange, bad, failure,
				      "says of its runs what cannot be");
	return error;
}

static int cut_runs(struct run_of_ranks *run, struct failure *failure)
{
	struct cluster_allgather all = {
		.bytes_max = SAMPLE_HEAD_BYTES +
			     (uint64_t)sample_blocks_max(run) *
				     run_cut_sample_bytes(&run->key_shape),
	};
	uint8_t *bytes = NULL;
	int error = write_sample(run, &bytes, &all.own_bytes, failure);

	all.own = bytes;
	if (error == 0)
		error = gather(run, &all, failure);
	if (error == 0)
		error = choose_cuts(run, &all, failure);
	free(all.all);
	free(bytes);
	return error;
}

/* What the plan has for it, and as much more as any process has: keys that are
 * spread over the ranks in an uncommon way make more pieces than it expects. */
static uint64_t told_bytes_max(const struct run_of_ranks *run)
{
	return 2 * external_rank_index_bytes(run->rank) + 4 * MIB;
}

/* --- parts -----------------------------------------------------------------
 */

static struct exchange_length part_length(const void *context, unsigned source,
					  unsigned destination)
{
	const struct run_of_ranks *run = context;

	(void)destination;
	return (struct exchange_length){
		.head_bytes =
			(uint64_t)run->run_count[source] * RUN_PART_RUN_BYTES,
		.unit_bytes = run_part_block_bytes(&run->key_shape),
		.unit_count_max = run->record_count[source],
	};
}

static int read_parts(struct run_of_ranks *run,
		      const struct cluster_alltoall *told,
		      struct failure *failure)
{
	const struct run_cut *begin = run_cuts_begin(&run->cuts, run->own);
	const struct run_cut *end = run_cuts_end(&run->cuts, run->own);
	int error = 0;

	for (unsigned i = 0; i < run->count && error == 0; i++) {
		const struct run_part_message message = {
			.bytes = told->all + told->offset[i],
			.byte_count = told->offset[i + 1] - told->offset[i],
			.source = i,
			.run_count = run->run_count[i],
			.block_records = run->limits[i].block_records,
		};

		if (i == run->own) {
			error = run_part_add_own(
				&run->part, external_rank_index(run->rank),
				&run->cuts, run->own, run->first_run[run->own],
				failure);
			continue;
		}
		error = run_part_read(&run->part, &message, begin, end,
				      failure);
		if (error == -EBADMSG)
			error = exchange_blame(
				run->exchange, i, failure,
				"says of our part of its runs what cannot be");
	}
	return error;
}

static void free_own(struct cluster_alltoall *messages, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		free((void *)messages->own[i]);
	free(messages->all);
}

static int tell_parts(struct run_of_ranks *run, struct failure *failure)
{
	const struct run_index *index = external_rank_index(run->rank);
	struct cluster_alltoall parts = {
		.rank = run->external->rank,
		.length = part_length,
		.context = run,
		.bytes_max = told_bytes_max(run),
	};
	int error = 0;

	for (unsigned i = 0; i < run->count && error == 0; i++) {
		uint8_t *bytes = NULL;

		if (i != run->own)
			error = run_part_write(index, &run->cuts, i,
					       run->first_run[run->own], &bytes,
					       &parts.own_bytes[i], failure);
		parts.own[i] = bytes;
	}
	if (error == 0)
		error = cluster_alltoall(&parts, run->exchange, failure);
	run_index_init(&run->part, run->shape, index->block_records);
	if (error == 0)
		error = read_parts(run, &parts, failure);
	free_own(&parts, run->count);
	return error;
}

/* Our merge, in pieces that no rank has more than its part of. */
static int plan_merge(struct run_of_ranks *run, struct failure *failure)
{
	uint64_t wanted_bytes[RANK_NODES_MAX];
	const struct external_rank_part part = {
		.index = &run->part,
		.begin = run_cuts_begin(&run->cuts, run->own),
		.end = run_cuts_end(&run->cuts, run->own),
		.wanted_bytes = wanted_bytes,
	};

	for (unsigned i = 0; i < run->count; i++)
		wanted_bytes[i] = i == run->own ? UINT64_MAX
						: run->limits[i].wanted_bytes;
	run->received = calloc(run->part.run_count + 1, sizeof(*run->received));
	if (!run->received)
		return failure_no_memory(failure);
	return external_rank_plan_part(run->rank, &part, failure);
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
	const struct run_of_ranks *run = context;

	(void)source;
	return (struct exchange_length){
		.head_bytes = WANTS_HEAD_BYTES,
		.unit_bytes = MAX(1, 4 * (uint64_t)run->run_count[destination]),
		.unit_count_max =
			run->run_count[destination] > 0
				? (uint64_t)EXCHANGE_COLLECTIVES_MAX + 1
				: 0,
	};
}

static int write_wants(const struct run_of_ranks *run, unsigned node,
		       uint8_t **bytes, uint64_t *byte_count,
		       struct failure *failure)
{
	const struct merge_plan *merge = external_rank_merge(run->rank);
	uint32_t first = run->first_run[node], end = run->first_run[node + 1];
	uint8_t *at;

	*byte_count = WANTS_HEAD_BYTES;
	if (end > first)
		*byte_count +=
			4 * ((uint64_t)merge->piece_count + 1) * (end - first);
	*bytes = at = malloc(*byte_count);
	if (!at)
		return failure_no_memory(failure);
	store_le32(at, merge->piece_count);
	at += WANTS_HEAD_BYTES;
	for (uint32_t p = 0; p <= merge->piece_count; p++)
		for (uint32_t r = first; r < end; r++) {
			store_le32(at, merge_plan_block(merge, p, r) -
					       run->part.runs[r].first_block);
			at += 4;
		}
	return 0;
}

/* From the rank's numbers to those of our blocks.  False: they cannot be. */
static bool read_numbers(const struct run_of_ranks *run, unsigned node,
			 const uint8_t *at, struct outgoing_wants *wants)
{
	const struct run_index *index = external_rank_index(run->rank);
	unsigned runs = index->run_count;
	uint32_t *first = calloc(2 * (size_t)runs + 1, sizeof(*first));
	uint32_t *end = first ? first + runs : NULL;
	bool is_good = first != NULL;

	for (unsigned r = 0; r < runs && is_good; r++)
		run_part_range(&run->cuts, node, index, r,
			       run->first_run[run->own] + r, &first[r],
			       &end[r]);
	for (uint64_t i = 0;
	     i < ((uint64_t)wants->piece_count + 1) * runs && is_good; i++) {
		uint32_t number = load_le32(at + 4 * i);
		unsigned r = (unsigned)(i % runs);

		is_good = number <= end[r] - first[r];
		wants->first_block[i] = first[r] + number;
	}
	is_good = is_good &&
		  outgoing_wants_are_good(wants, index, first, end,
					  run->limits[run->own].wanted_bytes);
	free(first);
	return is_good;
}

static int read_wants(struct run_of_ranks *run, unsigned node,
		      const uint8_t *bytes, uint64_t byte_count,
		      struct failure *failure)
{
	uint32_t piece_count = load_le32(bytes);
	unsigned runs = run->run_count[run->own];
	struct outgoing_wants *wants = &run->wants[node];

	if (piece_count >= EXCHANGE_COLLECTIVES_MAX ||
	    byte_count !=
		    WANTS_HEAD_BYTES +
			    (runs > 0 ? 4 * ((uint64_t)piece_count + 1) * runs
				      : 0))
		return exchange_blame(run->exchange, node, failure,
				      "wants %u pieces", piece_count);
	wants->piece_count = piece_count;
	wants->first_block = calloc(((size_t)piece_count + 1) * runs + 1,
				    sizeof(*wants->first_block));
	if (!wants->first_block)
		return failure_no_memory(failure);
	if (!read_numbers(run, node, bytes + WANTS_HEAD_BYTES, wants))
		return exchange_blame(run->exchange, node, failure,
				      "wants blocks that cannot be its own");
	run->wave_count = MAX(run->wave_count, piece_count);
	return 0;
}

static int tell_wants(struct run_of_ranks *run, struct failure *failure)
{
	struct cluster_alltoall wants = {
		.rank = run->external->rank,
		.length = wants_length,
		.context = run,
		.bytes_max = told_bytes_max(run),
	};
	int error = 0;

	for (unsigned i = 0; i < run->count && error == 0; i++) {
		uint8_t *bytes = NULL;

		if (i != run->own)
			error = write_wants(run, i, &bytes, &wants.own_bytes[i],
					    failure);
		wants.own[i] = bytes;
	}
	if (error == 0)
		error = cluster_alltoall(&wants, run->exchange, failure);
	run->wave_count = external_rank_merge(run->rank)->piece_count;
	for (unsigned i = 0; i < run->count && error == 0; i++)
		if (i != run->own)
			error = read_wants(
				run, i, wants.all + wants.offset[i],
				wants.offset[i + 1] - wants.offset[i], failure);
	free_own(&wants, run->count);
	return error;
}

/* --- a wave ----------------------------------------------------------------
 */

static struct exchange_length wave_length(const void *context, unsigned source,
					  unsigned destination)
{
	const struct run_of_ranks *run = context;

	(void)destination;
	return (struct exchange_length){
		.unit_bytes = 1,
		.unit_count_max = run->limits[source].wanted_bytes,
	};
}

static void read_message(void *context, unsigned node, uint64_t offset,
			 uint8_t *bytes, size_t byte_count)
{
	const struct run_of_ranks *run = context;

	memcpy(bytes, run->messages[node].bytes + offset, byte_count);
}

static int prepare_wave(void *context, const uint64_t *receive_bytes,
			struct failure *failure)
{
	const struct run_of_ranks *run = context;

	for (unsigned i = 0; i < run->count; i++)
		if (i != run->own && receive_bytes[i] != run->expected_bytes[i])
			return exchange_blame(
				run->exchange, i, failure,
				"sends %" PRIu64
				" bytes of blocks, not the %" PRIu64
				" that it has told of",
				receive_bytes[i], run->expected_bytes[i]);
	return 0;
}

static uint8_t *place(void *context, unsigned node, uint64_t offset,
		      size_t *room)
{
	const struct run_of_ranks *run = context;

	*room = run->expected_bytes[node] - offset;
	return external_rank_area(run->rank) + run->arrived_at[node] + offset;
}

static void arrived(void *context, unsigned node, uint64_t prefix_bytes,
		    bool whole)
{
	(void)context, (void)node, (void)prefix_bytes, (void)whole;
}

/* Where each run's blocks of our piece will lie: run after run, as each rank
 * sends them. */
static void expect_wave(struct run_of_ranks *run, uint32_t wave)
{
	const struct merge_plan *merge = external_rank_merge(run->rank);
	uint64_t at = 0;

	memset(run->expected_bytes, 0, sizeof(run->expected_bytes));
	for (uint32_t r = 0; r < run->part.run_count; r++) {
		const struct run *own = &run->part.runs[r];
		uint64_t begin = at;

		run->received[r] = external_rank_area(run->rank) + at;
		if (run->expected_bytes[own->source] == 0)
			run->arrived_at[own->source] = at;
		if (!own->is_received || wave >= merge->piece_count)
			continue;
		for (uint32_t b = merge_plan_block(merge, wave, r);
		     b < merge_plan_block(merge, wave + 1, r); b++)
			at += run->part.blocks[b].stored_bytes;
		run->expected_bytes[own->source] += at - begin;
	}
}

static int exchange_wave(struct run_of_ranks *run, uint32_t wave,
			 struct failure *failure)
{
	const struct exchange_collective collective = {
		.context = run,
		.send_bytes = run->send_bytes,
		.read = read_message,
		.length = wave_length,
		.prepare = prepare_wave,
		.place = place,
		.arrived = arrived,
	};
	int error;

	expect_wave(run, wave);
	run->messages = external_rank_send(run->rank, wave);
	for (unsigned i = 0; i < run->count; i++)
		run->send_bytes[i] =
			i == run->own ? 0 : run->messages[i].byte_count;
	error = exchange_begin(run->exchange, &collective, failure);
	if (error == 0)
		error = exchange_receive(run->exchange, failure);
	if (error == 0 && wave < external_rank_merge(run->rank)->piece_count)
		external_rank_give(run->rank, wave, run->received);
	return error ? error : exchange_finish(run->exchange, failure);
}

/* --- shares ----------------------------------------------------------------
 */

/* Records of all blocks of our part but the lead's. */
static uint64_t part_records(const struct run_of_ranks *run)
{
	const struct merge_plan *merge = external_rank_merge(run->rank);
	uint32_t piece = merge->has_lead ? 1 : 0;
	uint64_t records = 0;

	for (uint32_t r = 0; r < run->part.run_count; r++)
		for (uint32_t b = merge_plan_block(merge, piece, r);
		     b < merge_plan_block(merge, merge->piece_count, r); b++)
			records += run->part.blocks[b].record_count;
	return records;
}

/* A rank writes what the cut where its part begins leaves of the lead, and its
 * other blocks, but for what the next rank has of these.  *first is the number
 * of our first record. */
static int read_shares(struct run_of_ranks *run,
		       const struct cluster_allgather *all, uint64_t *first,
		       struct failure *failure)
{
	uint64_t whole = 0, sum = 0;

	for (unsigned i = 0; i < run->count; i++)
		whole += run->record_count[i];
	for (unsigned i = 0; i < run->count; i++) {
		const uint8_t *told = all->all + all->offset[i];
		uint64_t lead = load_le64(told), others = load_le64(told + 8);
		uint64_t next =
			i + 1 < run->count
				? load_le64(all->all + all->offset[i + 1])
				: 0;

		if (lead > whole || others > whole || next > lead + others ||
		    lead + others - next > whole - sum)
			return exchange_blame(run->exchange, i, failure,
					      "has another share than its part "
					      "of all runs");
		if (i == run->own) {
			*first = sum;
			run->share = lead + others - next;
		}
		sum += lead + others - next;
	}
	if (sum == whole)
		return 0;
	return failure_set(failure, EXIT_PEER, NULL, 0,
			   "what the ranks announce does not add up");
}

static int open_output(struct run_of_ranks *run, struct failure *failure)
{
	struct cluster_output *output = run->external->output;
	uint8_t own[SHARE_BYTES];
	struct cluster_allgather all = { .own = own, .own_bytes = sizeof(own) };
	uint64_t first = 0;
	int error;

	store_le64(own, external_rank_lead_records(run->rank));
	store_le64(own + 8, part_records(run));
	for (unsigned i = 0; i < run->count; i++)
		all.bytes[i] = sizeof(own);
	error = gather(run, &all, failure);
	if (error == 0)
		error = read_shares(run, &all, &first, failure);
	free(all.all);
	if (error == 0)
		error = cluster_output_open(output, first, run->share, failure);
	if (error == 0)
		external_rank_give_output(run->rank, &output->output,
					  run->share);
	return error;
}

static int exchange_waves(struct run_of_ranks *run, struct failure *failure)
{
	uint32_t pieces = external_rank_merge(run->rank)->piece_count;
	int error = external_rank_start_sending(run->rank, run->wants,
						run->wave_count, failure);

	if (error)
		return error;
	external_rank_start_merge(run->rank);
	for (uint32_t w = 0; w < run->wave_count && error == 0; w++) {
		error = wait_for_wave(run, w + 1, MIN(w, pieces), failure);
		if (error == 0)
			error = exchange_wave(run, w, failure);
		if (error == 0 && w == 0)
			error = wait_for_wave(run, 1, 1, failure);
		if (error == 0 && w == 0)
			error = open_output(run, failure);
	}
	return error ? error : wait_until_done(run, failure);
}

/* --- all of it -------------------------------------------------------------
 */

static void add_ns(const struct run_of_ranks *run, enum cluster_figure figure,
		   uint64_t *since_ns)
{
	cluster_report_add_ns(run->external->report, figure, *since_ns);
	*since_ns = clock_now_ns();
}

static int sort(struct run_of_ranks *run, struct failure *failure)
{
	uint64_t since_ns = clock_now_ns();
	int error = tell_limits(run, failure);

	if (error == 0)
		error = make_runs(run, failure);
	add_ns(run, CLUSTER_BUCKET_NS, &since_ns);
	if (error == 0)
		error = cut_runs(run, failure);
	add_ns(run, CLUSTER_SAMPLE_NS, &since_ns);
	if (error == 0)
		error = tell_parts(run, failure);
	if (error == 0)
		error = plan_merge(run, failure);
	if (error == 0)
		error = tell_wants(run, failure);
	add_ns(run, CLUSTER_ARRANGE_NS, &since_ns);
	run->external->result->bucketed_ns = since_ns;
	if (error == 0)
		error = exchange_waves(run, failure);
	add_ns(run, CLUSTER_EXCHANGE_NS, &since_ns);
	return error;
}

/* Duplicates have been dropped on the way: the output is smaller than it was
 * opened. */
static int end_output(struct run_of_ranks *run, uint64_t written,
		      struct failure *failure)
{
	if (written == run->share)
		return 0;
	if (run->external->config->sort->unique)
		return cluster_output_shrink(run->external->output, 0, written,
					     written, failure);
	return failure_set(failure, EXIT_PEER, NULL, 0,
			   "%" PRIu64 " records have come, not %" PRIu64,
			   written, run->share);
}

/* The others are told at once: our threads may take a while to end. */
static void stop(struct run_of_ranks *run, const struct failure *failure)
{
	const struct timespec pause = { .tv_nsec = SERVE_NS };

	exchange_fail(run->exchange, failure);
	external_rank_stop(run->rank, failure);
	while (external_rank_is_busy(run->rank))
		nanosleep(&pause, NULL);
}

static void close_all(struct run_of_ranks *run)
{
	external_rank_close(run->rank);
	run_cuts_free(&run->cuts);
	run_index_free(&run->part);
	for (unsigned i = 0; i < run->count; i++)
		free(run->wants[i].first_block);
	free(run->received);
	free(run);
}

/* Of our share.  Returns how many records were written. */
static uint64_t fill_result(struct run_of_ranks *run)
{
	struct sorter_result *result = run->external->result;
	uint64_t written = external_rank_fill_result(run->rank);

	result->record_count = written + result->dropped_count;
	result->size_bytes = result->record_count * run->shape->size;
	return written;
}

int cluster_external_run(const struct cluster_external *external,
			 struct failure *failure)
{
	const struct sorter_config *config = external->config->sort;
	struct run_of_ranks *run = calloc(1, sizeof(*run));
	int error;

	if (!run)
		return failure_no_memory(failure);
	run->external = external;
	run->exchange = external->exchange;
	run->own = external->rank->rank;
	run->count = external->rank->node_count;
	run->shape = &config->shape;
	run->key_shape = run_index_key_shape(&config->shape);
	error = external_rank_open(&run->rank, external->config,
				   external->result, external->external_result,
				   failure);
	if (error == 0) {
		error = sort(run, failure);
		if (error)
			stop(run, failure);
	}
	if (error == 0)
		error = end_output(run, fill_result(run), failure);
	close_all(run);
	return error;
}
