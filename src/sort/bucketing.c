/* bucketing.c - brings the records in, and puts their entries into buckets */
#include "sort/bucketing.h"

#include "sort/partition.h"
#include "sort/record_counts.h"

void bucketing_begin(struct bucketing *bucketing,
		     const struct sort_wiring *wiring,
		     const struct bucketing_config *config)
{
	bucketing->wiring = *wiring;
	bucketing->config = *config;
	atomic_store_explicit(&bucketing->next_record, 0, memory_order_relaxed);
}

/* --- memory ----------------------------------------------------------------
 */

static void *take(struct arena *arena, uint64_t count, size_t each_bytes)
{
	return arena_take(arena, count * each_bytes, CACHE_PAIR_BYTES);
}

void bucketing_take_lists(struct bucketing *bucketing, const struct plan *plan,
			  unsigned worker_count, struct arena *arena)
{
	struct bucket_pool *pool = &bucketing->pool;

	for (unsigned w = 0; w < worker_count; w++) {
		struct bucket_writer *writer = &bucketing->writers[w];

		writer->pool = pool;
		writer->lists =
			take(arena, plan->list_count, sizeof(*writer->lists));
		writer->cursors =
			take(arena, plan->list_count, sizeof(*writer->cursors));
	}
	pool->block_count = plan->block_count;
	pool->owners = take(arena, plan->block_count, 4);
	pool->directory = take(arena, plan->block_count, 4);
	pool->next_grant =
		take(arena, plan->block_count / BUCKETS_GRANT_BLOCKS, 4);
	bucket_pool_reset(pool);
}

void bucketing_take_blocks(struct bucketing *bucketing, const struct plan *plan,
			   struct arena *arena)
{
	bucketing->pool.entries =
		take(arena, plan->block_count, BUCKETS_BLOCK_ENTRIES * 8);
}

struct arena bucketing_left_memory(const struct bucketing *bucketing)
{
	const struct bucket_pool *pool = &bucketing->pool;

	return (struct arena){
		.base = (uint8_t *)pool->entries,
		.size_bytes = (size_t)pool->block_count *
			      BUCKETS_BLOCK_ENTRIES * sizeof(*pool->entries),
	};
}

/* --- a pass ----------------------------------------------------------------
 */

/* Records [begin, end) of the run. */
static void partition_range(struct bucketing *bucketing, unsigned worker,
			    const struct source_run *run, uint64_t begin,
			    uint64_t end)
{
	const struct sort_wiring *wiring = &bucketing->wiring;

	if (begin < end)
		partition_records(&bucketing->writers[worker], wiring->kernel,
				  wiring->splitters, &wiring->shape,
				  wiring->plan->index_bits,
				  run->records + begin * wiring->shape.size,
				  run->slot + begin, end - begin);
}

/* Those whose first word is not above word_max, range by range; and the first
 * record of all, so that no batch is without one: batches that follow each
 * other become runs that do, and those of all ranks are the whole input. */
static void partition_some(struct bucketing *bucketing, unsigned worker,
			   const struct source_run *run, uint64_t word_max)
{
	const struct record_shape *shape = &bucketing->wiring.shape;
	const uint8_t *record = run->records;
	uint64_t begin = 0;

	for (uint64_t i = 0; i < run->record_count; i++, record += shape->size)
		if (record_key_word(shape, record, 0) > word_max &&
		    run->slot + i > 0) {
			partition_range(bucketing, worker, run, begin, i);
			begin = i + 1;
		}
	partition_range(bucketing, worker, run, begin, run->record_count);
}

static void partition_run(struct bucketing *bucketing, unsigned worker,
			  const struct source_run *run)
{
	const _Atomic uint64_t *word_max = bucketing->config.word_max;

	if (word_max)
		partition_some(
			bucketing, worker, run,
			atomic_load_explicit(word_max, memory_order_relaxed));
	else
		partition_range(bucketing, worker, run, 0, run->record_count);
}

static void count_run(struct bucketing *bucketing, unsigned worker,
		      const struct source_run *run)
{
	uint32_t record_size = bucketing->wiring.shape.size;
	uint64_t *table = bucketing->config.counts +
			  worker * record_counts_length(record_size);

	record_counts_add(table, record_size, run->records, run->record_count);
}

/* Run by run: bring the records in, and put them into buckets.  Each counts as
 * so many bytes.  0, or -errno with *failure filled. */
static int read_runs(struct bucketing *bucketing, unsigned worker,
		     struct source_reader *reader, bool partition,
		     uint32_t counted_bytes, struct failure *failure)
{
	const struct sort_wiring *wiring = &bucketing->wiring;
	const struct bucketing_config *config = &bucketing->config;
	const struct source_ops *ops = config->source->ops;
	struct trace_lane *lane = &wiring->trace->lanes[worker];
	struct source_run run;

	for (;;) {
		uint64_t begin_ns = trace_begin(lane);
		int more = ops->next(reader, &run, failure);

		if (more <= 0)
			return more;
		if (partition)
			partition_run(bucketing, worker, &run);
		else if (config->counts)
			count_run(bucketing, worker, &run);
		trace_end(lane, begin_ns, partition ? "bucket" : "read");
		stage_part(&lane->clock, STAGE_BUCKET,
			   run.record_count * counted_bytes);
		if (config->serve && worker == 0)
			config->serve(config->serve_context);
		if (first_failure_stops(wiring->failure))
			return 0;
	}
}

/* False: the run has failed. */
static bool pass_over(struct bucketing *bucketing, unsigned worker,
		      uint64_t first, uint64_t count, bool resident,
		      bool partition)
{
	const struct source *source = bucketing->config.source;
	struct source_reader reader = {
		.source = source,
		.worker = worker,
		.clock = &bucketing->wiring.trace->lanes[worker].clock,
	};
	struct failure failure = { .status = EXIT_DONE };
	int error =
		source->ops->open(&reader, first, count, resident, &failure);

	if (error == 0) {
		error = read_runs(bucketing, worker, &reader, partition,
				  resident ? 0 : source->record_size, &failure);
		if (source->ops->close)
			source->ops->close(&reader);
	}
	if (error)
		first_failure_note(bucketing->wiring.failure, &failure);
	return error == 0;
}

/* The next piece goes to the next worker that is free: a CPU that is late or
 * slowed down takes fewer pieces. */
static void pass_pieces(struct bucketing *bucketing, unsigned worker,
			bool partition)
{
	uint64_t piece = bucketing->wiring.plan->piece_records;
	uint64_t record_count = bucketing->config.source->record_count;
	bool good = true;

	while (good && !first_failure_stops(bucketing->wiring.failure)) {
		uint64_t first = atomic_fetch_add_explicit(
			&bucketing->next_record, piece, memory_order_relaxed);

		if (first >= record_count)
			break;
		good = pass_over(bucketing, worker, first,
				 MIN(piece, record_count - first), false,
				 partition);
	}
}

/*
 * Splitters with buckets that need no sorting want shares that ascend with the
 * workers, so that their lists, one after the other, are in record order; so
 * does a source that has no pieces.
 */
void bucketing_pass(struct bucketing *bucketing, unsigned worker, bool resident,
		    bool partition)
{
	const struct sort_wiring *wiring = &bucketing->wiring;
	const struct bucketing_config *config = &bucketing->config;
	const struct source *source = config->source;
	struct bucket_writer *writer = &bucketing->writers[worker];
	struct stage_clock *clock = &wiring->trace->lanes[worker].clock;
	uint64_t first, count;

	stage_resume(clock, STAGE_FOR_TEAM);
	if (partition)
		bucket_writer_reset(writer, wiring->splitters->bucket_count);
	if (!resident && !(partition && config->keeps_order) &&
	    source->has_pieces) {
		pass_pieces(bucketing, worker, partition);
	} else {
		source->ops->share(source, worker, wiring->pool->worker_count,
				   &first, &count);
		pass_over(bucketing, worker, first, count, resident, partition);
	}
	if (partition)
		bucket_writer_finish(writer, wiring->splitters->bucket_count);
	stage_unit(clock, STAGE_BUCKET, 0);
}

struct pass {
	struct bucketing *bucketing;
	bool resident, partition;
};

static void run_pass(void *context, unsigned worker)
{
	const struct pass *pass = context;

	bucketing_pass(pass->bucketing, worker, pass->resident,
		       pass->partition);
}

void bucketing_pass_all(struct bucketing *bucketing, bool resident,
			bool partition)
{
	struct pass pass = { bucketing, resident, partition };

	thread_pool_run(bucketing->wiring.pool, run_pass, &pass);
}

struct bucket_set bucketing_set(const struct bucketing *bucketing)
{
	return (struct bucket_set){
		.bucket_count = bucketing->wiring.splitters->bucket_count,
		.writer_count = bucketing->wiring.pool->worker_count,
		.writers = bucketing->writers,
	};
}
