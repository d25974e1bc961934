#include "external/read/reading_lane.h"

#include "external/read/pipeline.h"

/* Splitters have failed when more than this part of a batch lies in crowded
 * buckets.  A single worker sorts a crowded bucket: if it is an eighth of the
 * batch, eight workers still end at about the same time. */
#define CROWDED_PART 8

/* Of a stream, whose keys are probed; as many as key_probe() takes. */
#define PROBE_RECORDS 512

/* --- fill a batch --------------------------------------------------------- */

struct pass {
	struct batch *batch;
	bool resident;
	bool partition;
};

static void run_pass(void *context, unsigned worker)
{
	const struct pass *pass = context;

	bucketing_pass(&pass->batch->bucketing, worker, pass->resident,
		       pass->partition);
}

/* Splitters from the batch's own records, which are in memory. */
static void sample_batch(struct reading_lane *lane, struct batch *batch)
{
	const struct source *source = lane->source;
	uint64_t count = source->record_count;
	uint32_t wanted =
		MIN(plan_splitters(count), batch->plan.splitters_wanted);
	uint32_t sample_count = plan_samples(count, wanted);
	uint64_t random = 1;

	for (uint32_t i = 0; i < sample_count; i++)
		lane->sample[i] = source->ops->record(
			source,
			splitters_draw(count, sample_count, i, &random));
	splitters_init_sampled(&batch->splitters, &lane->wiring.shape,
			       lane->sample, sample_count,
			       lane->sample_prefixes, wanted);
	batch_adopt_key(batch, lane->key_shape);
}

void reading_lane_set_keys(struct reading_lane *lane, enum splitters_kind kind,
			   bool is_uniform)
{
	lane->static_kind = kind;
	lane->is_uniform = lane->wanted == SPLITTERS_AUTO
				   ? is_uniform
				   : lane->wanted == SPLITTERS_STATIC;
}

/* True: the batch has splitters before it has records. */
static bool find_splitters(struct reading_lane *lane, struct batch *batch)
{
	if (lane->is_uniform) {
		splitters_init_static(&batch->splitters, lane->static_kind,
				      batch->plan.bucket_count);
		return true;
	}
	if (!lane->has_sampled || lane->samples_next)
		return false;
	batch_copy_splitters(&batch->splitters, batch->common_key,
			     &lane->splitters);
	return true;
}

/* The batch's own may be overwritten, by another lane, before they are used
 * again. */
static void keep_splitters(struct reading_lane *lane, const struct batch *batch)
{
	if (lane->is_uniform || lane->samples_next)
		return;
	batch_copy_splitters(&lane->splitters, lane->common_key,
			     &batch->splitters);
	lane->has_sampled = true;
}

static bool is_crowded(const struct reading_lane *lane, uint64_t crowded)
{
	return lane->wanted != SPLITTERS_STATIC &&
	       crowded > lane->source->record_count / CROWDED_PART;
}

/* Partition by splitters that suit this batch, since there were none, or those
 * that there were did not. */
static void partition_again(struct reading_lane *lane, struct batch *batch,
			    bool had_splitters)
{
	lane->samples_next = had_splitters && !lane->is_uniform;
	lane->is_uniform = false;
	sample_batch(lane, batch);
	bucketing_reset(&batch->bucketing);
	thread_pool_run(lane->readers, run_pass,
			&(struct pass){ batch, true, true });
	batch_count_crowded(batch);
}

/* What kind of keys a stream has, from its first records. */
static void probe_stream(struct reading_lane *lane, uint64_t record_count)
{
	bool is_uniform;
	enum splitters_kind kind = splitters_probe(
		&lane->wiring.shape, lane->source->base,
		MIN(record_count, PROBE_RECORDS), 1, &is_uniform);

	reading_lane_set_keys(lane, kind, is_uniform);
	lane->is_probed = true;
}

/* The next records go to the batch.  Returns how many there are, or of a
 * stream, how many are there already; 0: none is left; -1: the run has failed.
 */
static int64_t begin_records(struct reading_lane *lane, struct batch *batch)
{
	struct failure failure;
	int64_t count;

	if (!lane->streams)
		return (int64_t)file_source_begin(&lane->files, batch);
	batch->first_record = lane->streams->record_count;
	stream_source_begin(lane->streams, batch);
	count = stream_source_peek(lane->streams, &failure);
	if (count < 0) {
		first_failure_note(lane->wiring.failure, &failure);
		return -1;
	}
	if (count > 0 && !lane->is_probed)
		probe_stream(lane, (uint64_t)count);
	return count;
}

/*
 * Bring the records in, and put them into buckets if the batch has splitters.
 * Units of a stream come to the workers in any order: buckets that need their
 * entries in record order, as sampled splitters have some, are filled when all
 * is there.
 */
static void bring_in(struct reading_lane *lane, struct batch *batch,
		     bool has_splitters)
{
	bool waits =
		lane->streams && batch->splitters.kind == SPLITTERS_SAMPLED;

	thread_pool_run(
		lane->readers, run_pass,
		&(struct pass){ batch, false, has_splitters && !waits });
	if (lane->streams)
		stream_source_end(lane->streams);
	if (has_splitters && waits &&
	    !first_failure_stops(lane->wiring.failure))
		thread_pool_run(lane->readers, run_pass,
				&(struct pass){ batch, true, true });
}

/* The last batch is known as such: else the other team would empty one for the
 * sake of a batch that gets no record. */
int reading_lane_to_come(const struct reading_lane *lane)
{
	const struct batch_deal *deal = &lane->files.deal;
	uint64_t left;

	if (lane->streams)
		return lane->streams->has_ended ? 0 : PIPELINE_MORE;
	left = deal->left(deal->context, lane->files.next_batch);
	return left == UINT64_MAX ? PIPELINE_MORE
				  : (int)MIN(left, PIPELINE_MORE - 1);
}

int reading_lane_fill(struct reading_lane *lane, struct batch *batch)
{
	int64_t count = begin_records(lane, batch);
	const struct bucketing_config config = {
		.source = lane->source,
		.counts = lane->counts,
		.serve = lane->serve,
		.serve_context = lane,
	};
	bool has_splitters;

	batch->record_count = 0;
	if (count <= 0)
		return (int)count;
	batch_begin(batch, &lane->wiring, &config);
	has_splitters = !lane->counts && find_splitters(lane, batch);
	bring_in(lane, batch, has_splitters);
	if (first_failure_stops(lane->wiring.failure))
		return -1;
	if (lane->counts)
		return reading_lane_to_come(lane);
	if (!has_splitters || is_crowded(lane, batch_count_crowded(batch)))
		partition_again(lane, batch, has_splitters);
	keep_splitters(lane, batch);
	if (first_failure_stops(lane->wiring.failure))
		return -1;
	return reading_lane_to_come(lane);
}
