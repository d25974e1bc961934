/*
 * cluster_keep.c - runs that go to other ranks' scratch files in the first
 * pass
 */
#include "cluster/external/cluster_keep.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"

struct keeping {
	const struct cluster_runs *runs; /* with the limits */
	struct cluster_pass *pass;
	/* Which ranks the rank's givers are, in rank order. */
	uint16_t giver[RANK_NODES_MAX];
	unsigned giver_count;
	struct given_runs *given; /* NULL: we keep */
	struct kept_runs *kept;	  /* NULL: for no other rank */
	uint32_t wave;
	uint64_t sent_records; /* of the batch at hand, before this wave */
	uint64_t slice_records;
	uint64_t send_bytes[RANK_NODES_MAX];
	uint64_t received_bytes[RANK_NODES_MAX];
	uint64_t idle_since_ns; /* the end of the last wave with records */
	bool any_sent;		/* in the wave, by any rank */
};

/* --- before the pass ------------------------------------------------------ */

/* A slice has whole blocks, and enough of them that the slices of the giver's
 * input are few. */
static int check_slices(const struct cluster_runs *runs, unsigned giver)
{
	unsigned keeper = runs->keeper[giver];
	const struct external_rank_limits *limits = &runs->limits[keeper];
	uint64_t records = runs->hellos[giver].record_count;

	if (limits->kept_records > 0 &&
	    limits->kept_records % limits->block_records == 0 &&
	    DIV_ROUND_UP(records, limits->kept_records) <= KEPT_RUNS_SLICES_MAX)
		return 0;
	return exchange_blame(runs->exchange, keeper, runs->failure,
			      "takes %" PRIu64 " records at once of rank %u, "
			      "too few or not whole blocks",
			      limits->kept_records, giver);
}

/* The rank that has too little says so, and the others say it of that rank. */
static int check_parts(const struct cluster_runs *runs, unsigned keeper)
{
	unsigned parts = runs->spans[keeper].part_count;
	unsigned runs_max = cluster_runs_max(runs, keeper);

	if (parts <= runs_max)
		return 0;
	if (keeper != runs->rank->rank)
		return exchange_blame(runs->exchange, keeper, runs->failure,
				      "has too little memory to merge the %u "
				      "parts of the input that it keeps: %u "
				      "may be",
				      parts, runs_max);
	return failure_set(runs->failure, EXIT_RESOURCES, "memory", 0,
			   "too little to merge the %u parts of the input that "
			   "this rank keeps: %u may be",
			   parts, runs_max);
}

int cluster_keep_check(const struct cluster_runs *runs)
{
	int error = 0;

	for (unsigned i = 0; i < runs->rank->node_count && error == 0; i++) {
		if (!cluster_runs_gives(runs, i))
			continue;
		error = check_slices(runs, i);
		if (error == 0)
			error = check_parts(runs, runs->keeper[i]);
	}
	return error;
}

/* --- a message ------------------------------------------------------------ */

/* What the giver may say in a wave, if it says anything: a head alone, or with
 * a slice. */
static struct exchange_length length_of(const void *context, unsigned source,
					unsigned destination)
{
	const struct keeping *keep = context;
	bool sends = cluster_runs_gives(keep->runs, source) &&
		     keep->runs->keeper[source] == destination;
	uint64_t records = keep->runs->limits[destination].kept_records;

	return (struct exchange_length){
		.unit_bytes = 1,
		.unit_count_max =
			sends ? KEPT_RUNS_HEAD_BYTES +
					records * keep->runs->shape->size
			      : 0,
	};
}

static void read_message(void *context, unsigned node, uint64_t offset,
			 uint8_t *bytes, size_t byte_count)
{
	const struct keeping *keep = context;
	uint32_t size = keep->runs->shape->size;
	uint8_t head[KEPT_RUNS_HEAD_BYTES] = { 0 };
	size_t length = 0;

	(void)node;
	if (offset < sizeof(head)) {
		if (keep->slice_records > 0)
			given_runs_write_head(keep->given, head);
		length = MIN(byte_count, sizeof(head) - offset);
		memcpy(bytes, head + offset, length);
		offset += length;
	}
	if (byte_count > length)
		given_runs_copy(keep->given,
				keep->sent_records * size + offset -
					sizeof(head),
				bytes + length, byte_count - length);
}

static int prepare(void *context, const uint64_t *receive_bytes,
		   struct failure *failure)
{
	struct keeping *keep = context;

	memcpy(keep->received_bytes, receive_bytes,
	       keep->runs->rank->node_count * sizeof(*receive_bytes));
	for (unsigned i = 0; i < keep->giver_count; i++) {
		uint64_t bytes = receive_bytes[keep->giver[i]];

		if (!kept_runs_length_is_good(keep->kept, bytes))
			return exchange_blame(
				keep->runs->exchange, keep->giver[i], failure,
				"sends %" PRIu64
				" bytes, not a head and whole records",
				bytes);
	}
	return 0;
}

static uint8_t *place(void *context, unsigned node, uint64_t offset,
		      size_t *room)
{
	const struct keeping *keep = context;
	unsigned i = 0;

	while (keep->giver[i] != node)
		i++;
	*room = keep->received_bytes[node] - offset;
	return kept_runs_place(keep->kept, keep->wave, i) + offset;
}

/* --- before a wave -------------------------------------------------------- */

/* A rank that has nothing to send yet says so after this time at first, so that
 * others can send what they have; after this part of the time for which no rank
 * had anything; and in the end after this time, so that a pass of hours has no
 * more waves than a run may have collectives. */
#define IDLE_NS_MIN 20000000
#define IDLE_PART 8
#define IDLE_NS_MAX 4000000000

/* Wait until there is something to send, nothing will be, or others have waited
 * for long enough. */
static int wait_for_batch(struct keeping *keep)
{
	uint64_t begin_ns = clock_now_ns();
	uint64_t idle_ns = (begin_ns - keep->idle_since_ns) / IDLE_PART;
	int error = 0;

	idle_ns = MIN(MAX(idle_ns, IDLE_NS_MIN), IDLE_NS_MAX);
	while (error == 0 && !given_runs_have(keep->given) &&
	       external_rank_is_busy(keep->runs->self) &&
	       clock_now_ns() - begin_ns < idle_ns)
		error = cluster_runs_pause(keep->runs);
	return error;
}

/* Wait until the writer has written the first `waves` waves. */
static int wait_until_written(struct keeping *keep, uint32_t waves)
{
	int error = 0;

	while (error == 0 && keep->kept &&
	       kept_runs_written(keep->kept) < waves)
		error = cluster_runs_pause(keep->runs);
	if (error == 0 && keep->kept)
		error = external_rank_check(keep->runs->self,
					    keep->runs->failure);
	return error;
}

/* What we send in this wave.  An error: nothing comes any more, since our
 * pass has failed. */
static int choose_slice(struct keeping *keep)
{
	unsigned keeper = keep->runs->keeper[keep->runs->rank->rank];
	bool may_come = external_rank_is_busy(keep->runs->self);

	memset(keep->send_bytes, 0, sizeof(keep->send_bytes));
	keep->slice_records = 0;
	if (given_runs_have(keep->given))
		keep->slice_records = MIN(
			keep->given->batch->record_count - keep->sent_records,
			keep->runs->limits[keeper].kept_records);
	if (may_come || keep->slice_records > 0)
		keep->send_bytes[keeper] =
			KEPT_RUNS_HEAD_BYTES +
			keep->slice_records * keep->runs->shape->size;
	return external_rank_check(keep->runs->self, keep->runs->failure);
}

/* --- a wave --------------------------------------------------------------- */

/* What all ranks have sent to all, as all ranks know it. */
static void look_at_wave(struct keeping *keep)
{
	bool any_records = false;

	keep->any_sent = false;
	for (unsigned i = 0; i < keep->runs->rank->node_count; i++) {
		uint64_t bytes;

		if (!cluster_runs_gives(keep->runs, i))
			continue;
		bytes = exchange_bytes(keep->runs->exchange, i,
				       keep->runs->keeper[i]);
		keep->any_sent |= bytes > 0;
		any_records |= bytes > KEPT_RUNS_HEAD_BYTES;
	}
	if (any_records)
		keep->idle_since_ns = clock_now_ns();
}

static int take_messages(struct keeping *keep)
{
	uint64_t bytes[RANK_NODES_MAX];
	unsigned bad;

	for (unsigned i = 0; i < keep->giver_count; i++) {
		bytes[i] = keep->received_bytes[keep->giver[i]];
		keep->pass->received_bytes +=
			bytes[i] - MIN(bytes[i], KEPT_RUNS_HEAD_BYTES);
	}
	if (kept_runs_take(keep->kept, keep->wave, bytes, &bad) == 0)
		return 0;
	return exchange_blame(
		keep->runs->exchange, keep->giver[bad], keep->runs->failure,
		"sent an impossible batch of its input: " EXCHANGE_FAULTY);
}

static void end_slice(struct keeping *keep)
{
	keep->sent_records += keep->slice_records;
	keep->pass->sent_bytes += keep->slice_records * keep->runs->shape->size;
	if (keep->slice_records == 0 ||
	    keep->sent_records < keep->given->batch->record_count)
		return;
	keep->sent_records = 0;
	given_runs_sent(keep->given);
}

static int exchange_wave(struct keeping *keep)
{
	const struct exchange_collective collective = {
		.context = keep,
		.send_bytes = keep->send_bytes,
		.read = read_message,
		.length = length_of,
		.prepare = prepare,
		.place = place,
	};
	const struct cluster_runs *runs = keep->runs;
	const struct cluster_pass *pass = keep->pass;
	uint64_t before = pass->sent_bytes + pass->received_bytes;
	int error;

	stage_wait(&runs->self->clock, STAGE_FOR_WAVE);
	error = exchange_begin(runs->exchange, &collective, runs->failure);
	if (error == 0)
		error = exchange_receive(runs->exchange, runs->failure);
	if (error == 0)
		look_at_wave(keep);
	if (error == 0 && keep->kept && keep->any_sent)
		error = take_messages(keep);
	if (error == 0)
		error = exchange_finish(runs->exchange, runs->failure);
	if (error == 0 && keep->given)
		end_slice(keep);
	stage_unit(&runs->self->clock, STAGE_EXCHANGE,
		   pass->sent_bytes + pass->received_bytes - before);
	cluster_progress_tell(runs->progress, clock_now_ns());
	if (error)
		exchange_settle(runs->exchange);
	return error;
}

/* --- all waves ------------------------------------------------------------ */

#define WAVES_MAX CLUSTER_FIRST_PASS_COLLECTIVES_MAX

static int next_wave(struct keeping *keep)
{
	bool may_give = cluster_runs_gives(keep->runs, keep->runs->rank->rank);
	int error = 0;

	if (keep->wave == WAVES_MAX)
		return failure_set(keep->runs->failure, EXIT_RESOURCES, NULL, 0,
				   "reading the input takes so long that runs "
				   "for other ranks take more than %u messages",
				   WAVES_MAX);
	if (may_give)
		error = wait_for_batch(keep);
	if (error == 0 && may_give)
		error = choose_slice(keep);
	/* A giver has two messages; that of the wave before the last one must
	 * be written before its place is taken. */
	if (error == 0)
		error = wait_until_written(keep,
					   keep->wave > 0 ? keep->wave - 1 : 0);
	return error ? error : exchange_wave(keep);
}

/* How many runs a giver may send: each batch has so many blocks that there are
 * fewer runs than blocks that we cut, and some more of small inputs. */
static unsigned runs_max_of(const struct keeping *keep, unsigned giver)
{
	uint64_t blocks =
		keep->runs->hellos[giver].record_count /
		keep->runs->limits[keep->runs->rank->rank].block_records;

	return 64 + (unsigned)MIN(blocks, UINT32_MAX / 4);
}

/* False: no rank sends anything in this pass. */
static bool begin(struct keeping *keep)
{
	const struct cluster_runs *runs = keep->runs;
	struct input_range range = { 0 };
	bool any = false;

	keep->given = runs->self->given;
	keep->kept = runs->self->kept;
	for (unsigned i = 0; i < runs->rank->node_count; i++) {
		range.first_record += range.record_count;
		range.record_count = runs->hellos[i].record_count;
		if (!cluster_runs_gives(runs, i))
			continue;
		any = true;
		if (runs->keeper[i] != runs->rank->rank)
			continue;
		kept_runs_expect(keep->kept, keep->giver_count,
				 range.first_record, range.record_count,
				 runs_max_of(keep, i));
		keep->giver[keep->giver_count++] = (uint16_t)i;
	}
	return any;
}

static int end(struct keeping *keep)
{
	unsigned bad = 0;
	int error;

	if (!keep->kept)
		return 0;
	/* The last wave has brought nothing. */
	error = wait_until_written(keep, keep->wave - 1);
	if (error)
		return error;
	error = kept_runs_end(keep->kept, &bad, keep->runs->failure);
	if (error == -EBADMSG)
		error = exchange_blame(keep->runs->exchange, keep->giver[bad],
				       keep->runs->failure,
				       "has not sent all records of its input");
	if (error == 0)
		external_rank_end_kept(keep->runs->self);
	return error;
}

int cluster_keep_run(const struct cluster_runs *runs, struct cluster_pass *pass)
{
	struct keeping keep = {
		.runs = runs,
		.pass = pass,
		.idle_since_ns = clock_now_ns(),
	};
	int error;

	if (!begin(&keep))
		return 0;
	do {
		error = next_wave(&keep);
		keep.wave++;
	} while (error == 0 && keep.any_sent);
	return error ? error : end(&keep);
}
