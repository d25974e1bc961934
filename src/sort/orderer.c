/*
 * orderer.c - orders the buckets of each chunk and gathers its records for the
 * sink
 */
#include "sort/orderer.h"

#include <assert.h>

#include "kernels/splitters.h"

/* A bucket of more chunks than these is oversized: each chunk would sort it
 * again, which takes long where records are long and their keys equal. */
#define BUCKET_CHUNKS_MAX 4

/* Entries that are prefetched while those before them are sorted, some
 * microsecond ahead: 128 come too late with a million records, 1024 are no
 * better. */
#define PREFETCH_ENTRIES 384

/* --- beginning -------------------------------------------------------------
 */

static void set_range(struct orderer *orderer, uint64_t record_count)
{
	const struct orderer_config *config = &orderer->config;

	orderer->range = (struct chunk_range){ 0 };
	if (!config->sorts_only)
		orderer->range =
			chunk_range_of(config->sink, config->written.bytes,
				       config->first_record, record_count);
	chunk_shares_deal(&orderer->chunks, orderer->range.chunk_count,
			  orderer->wiring.pool, config->by_node);
}

void orderer_begin_chunks(struct orderer *orderer)
{
	set_range(orderer, orderer_record_count(orderer));
	thread_pool_set(orderer->wiring.pool, &orderer->chunks_begun, 1);
}

/* 0, where there are no chunks: all buckets are oversized. */
static uint32_t find_bucket_entries_max(const struct orderer *orderer)
{
	uint64_t entries;

	if (orderer->config.sorts_only)
		return 0;
	entries = BUCKET_CHUNKS_MAX * orderer->config.sink->chunk_bytes /
		  orderer->config.written.bytes;
	return (uint32_t)MIN(PLAN_OVERSIZED_ENTRIES, MAX(1, entries));
}

void orderer_begin(struct orderer *orderer, const struct sort_wiring *wiring,
		   const struct orderer_config *config)
{
	orderer->wiring = *wiring;
	orderer->config = *config;
	orderer->gather =
		config->written.bytes == wiring->shape.size
			? gather_kernel(wiring->kernel, wiring->shape.size)
			: NULL;
	orderer->sum = checksum_kernel(wiring->kernel, config->written.bytes);
	orderer->tie_break = (struct tie_break){
		.shape = &orderer->wiring.shape,
		.records = config->base,
		.index_bits = config->index_bits,
		.keeps_last = config->keeps_last,
		.sort = local_sort_kernel(wiring->kernel),
		.any = equal_keys_kernel(wiring->kernel),
	};
	set_range(orderer, config->record_count);
	orderer->bucket_entries_max = find_bucket_entries_max(orderer);
	orderer->set = (struct bucket_set){ 0 };
	orderer->oversized_count = 0;
	orderer->crowded_count = 0;
	atomic_init(&orderer->gathered_chunks, 0);
	atomic_init(&orderer->chunks_begun,
		    config->sorts_only || !config->drops_duplicates);
	atomic_init(&orderer->next_oversized, 0);
	atomic_init(&orderer->passed_workers, 0);
	atomic_init(&orderer->ready_buckets,
		    config->is_ready ? ORDERER_ALL_READY : 0);
	for (unsigned w = 0; w < wiring->pool->worker_count; w++) {
		orderer->workers[w].checksum = 0;
		orderer->workers[w].has_passed = false;
	}
}

static void *take(struct arena *arena, struct arena *used, uint64_t count,
		  size_t each_bytes)
{
	return arena_take_used(arena, used, count * each_bytes,
			       CACHE_PAIR_BYTES);
}

void orderer_take_memory(struct orderer *orderer, const struct plan *plan,
			 unsigned worker_count, struct arena *arena,
			 struct arena *used)
{
	orderer->bucket_start =
		take(arena, used, (uint64_t)plan->list_count + 1, 4);
	for (unsigned w = 0; w < worker_count; w++)
		orderer->workers[w].entries =
			take(arena, used, plan->chunk_entries, 8);
}

void orderer_take_oversized(struct orderer *orderer, const struct plan *plan,
			    uint64_t record_count, struct arena *arena)
{
	orderer->oversized_start = take(arena, NULL, plan->list_count, 4);
	orderer->oversized_entries = take(arena, NULL, record_count, 8);
}

/* --- buckets ---------------------------------------------------------------
 */

/* This looks at no counts that other workers are changing. */
static bool bucket_is_oversized(const struct orderer *orderer, uint32_t bucket)
{
	return orderer->config.drops_duplicates ||
	       orderer->bucket_start[bucket + 1] -
			       orderer->bucket_start[bucket] >
		       orderer->bucket_entries_max;
}

void orderer_add_up(struct orderer *orderer, const struct bucket_set *set)
{
	uint32_t start = 0;

	orderer->set = *set;
	orderer->oversized_count = 0;
	orderer->crowded_count = 0;
	for (uint32_t b = 0; b < set->bucket_count; b++) {
		uint32_t count = bucket_set_count(set, b);

		orderer->bucket_start[b] = start;
		start += count;
		if (count > PLAN_OVERSIZED_ENTRIES)
			orderer->crowded_count += count;
		if (count > orderer->bucket_entries_max ||
		    orderer->config.drops_duplicates) {
			orderer->oversized_start[b] = orderer->oversized_count;
			orderer->oversized_count += count;
		}
	}
	orderer->bucket_start[set->bucket_count] = start;
}

uint64_t orderer_record_count(const struct orderer *orderer)
{
	return orderer->set.bucket_count == 0
		       ? 0
		       : orderer->bucket_start[orderer->set.bucket_count];
}

uint64_t orderer_dropped_count(const struct orderer *orderer)
{
	/* All buckets are oversized if duplicates are dropped. */
	return orderer->config.drops_duplicates
		       ? orderer->oversized_count -
				 orderer_record_count(orderer)
		       : 0;
}

/* Returns how many entries remain: all of them, or one of each key. */
static uint32_t order_bucket(const struct orderer *orderer, uint32_t bucket,
			     uint64_t *entries, uint32_t count)
{
	const struct splitters *splitters = orderer->wiring.splitters;
	uint32_t of_all = orderer->set.first_bucket + bucket;
	bool drops = orderer->config.drops_duplicates;
	bool is_decided;

	if (splitters_bucket_is_equal(splitters, of_all)) {
		if (drops && orderer->config.keeps_last && count > 0)
			entries[0] = entries[count - 1];
		return drops ? MIN(count, 1) : count;
	}
	orderer->tie_break.sort(entries, count);
	is_decided = splitters_bucket_is_decided(
		splitters, of_all, orderer->wiring.shape.keys.length,
		orderer->config.index_bits);
	if (drops)
		return (uint32_t)tie_break_drop_duplicates(
			&orderer->tie_break, entries, count, is_decided);
	if (!is_decided)
		tie_break_settle(&orderer->tie_break, entries, count);
	return count;
}

static struct stage_clock *clock_of(const struct orderer *orderer,
				    unsigned worker)
{
	return &orderer->wiring.trace->lanes[worker].clock;
}

/* If duplicates are dropped, bucket_start[] has the buckets' counts afterwards.
 */
static void sort_some_oversized(struct orderer *orderer, unsigned worker)
{
	struct trace_lane *lane = &orderer->wiring.trace->lanes[worker];

	for (;;) {
		uint32_t bucket = atomic_fetch_add_explicit(
			&orderer->next_oversized, 1, memory_order_relaxed);
		uint64_t *entries;
		uint64_t begin_ns, bytes;
		uint32_t count;

		if (bucket >= orderer->set.bucket_count)
			break;
		if (!bucket_is_oversized(orderer, bucket))
			continue;
		begin_ns = trace_begin(lane);
		entries = orderer->oversized_entries +
			  orderer->oversized_start[bucket];
		count = bucket_set_copy(&orderer->set, bucket, entries);
		bytes = (uint64_t)count * orderer->wiring.shape.size;
		count = order_bucket(orderer, bucket, entries, count);
		if (orderer->config.drops_duplicates)
			orderer->bucket_start[bucket] = count;
		trace_end(lane, begin_ns, "oversized");
		/* If there are chunks, bytes are counted with these. */
		stage_part(&lane->clock, STAGE_ORDER,
			   orderer->config.sorts_only ? bytes : 0);
	}
	stage_unit(&lane->clock, STAGE_ORDER, 0);
}

/*
 * A worker's part of the oversized buckets; then it waits for all workers.
 * False: the run has failed.  The failure may be noted at any moment, so one
 * worker may see it here while another one, which looked before, waits: a
 * worker that leaves must be counted, too.  After orderer_stop() the buckets
 * may not be there.  The last worker wakes the others.  This is no barrier of
 * the pool: the driver may fail elsewhere and never come here, and then lets
 * the workers go.
 */
static bool sort_oversized(struct orderer *orderer, unsigned worker)
{
	const struct first_failure *failure = orderer->wiring.failure;
	struct thread_pool *pool = orderer->wiring.pool;
	_Atomic uint32_t *passed = &orderer->passed_workers;
	bool waits = !first_failure_stops(failure);
	uint32_t count;

	if (waits)
		sort_some_oversized(orderer, worker);
	count = atomic_fetch_add_explicit(passed, 1, memory_order_acq_rel) + 1;
	orderer->workers[worker].has_passed = true;
	if (count == pool->worker_count)
		thread_pool_set(pool, passed, count);
	while (waits && count < pool->worker_count) {
		thread_pool_wait_while(pool, passed, count);
		count = atomic_load_explicit(passed, memory_order_acquire);
	}
	return !first_failure_stops(failure);
}

bool orderer_sort_oversized(struct orderer *orderer, unsigned worker)
{
	struct orderer_worker *self = &orderer->workers[worker];
	struct stage_clock *clock = clock_of(orderer, worker);

	stage_resume(clock, STAGE_FOR_TEAM);
	if (orderer->oversized_count == 0 && !orderer->config.drops_duplicates)
		self->has_passed = true;
	if (!self->has_passed && !sort_oversized(orderer, worker))
		return false;
	thread_pool_wait_while(orderer->wiring.pool, &orderer->chunks_begun, 0);
	stage_wait(clock, STAGE_FOR_TEAM);
	return !first_failure_stops(orderer->wiring.failure);
}

/* --- duplicates ------------------------------------------------------------
 */

/* Turn the buckets' counts into where each bucket begins; returns their sum. */
static uint64_t add_up_kept(struct orderer *orderer)
{
	uint32_t start = 0;

	for (uint32_t b = 0; b < orderer->set.bucket_count; b++) {
		uint32_t count = orderer->bucket_start[b];

		orderer->bucket_start[b] = start;
		start += count;
	}
	orderer->bucket_start[orderer->set.bucket_count] = start;
	return start;
}

/* The first record that remains is a duplicate of one that has been brought
 * before. */
static void drop_first(struct orderer *orderer)
{
	const struct orderer_config *config = &orderer->config;
	uint32_t bucket = 0;
	const uint8_t *record;

	while (bucket < orderer->set.bucket_count &&
	       orderer->bucket_start[bucket] == 0)
		bucket++;
	if (bucket == orderer->set.bucket_count)
		return;
	record = tie_break_record(
		&orderer->tie_break,
		orderer->oversized_entries[orderer->oversized_start[bucket]]);
	if (record_compare(config->key_shape, config->last_key,
			   record + orderer->wiring.shape.keys.begin) != 0)
		return;
	orderer->oversized_start[bucket]++;
	orderer->bucket_start[bucket]--;
}

bool orderer_drop_duplicates(struct orderer *orderer, unsigned worker,
			     uint64_t *kept_count)
{
	stage_resume(clock_of(orderer, worker), STAGE_FOR_TEAM);
	if (!sort_oversized(orderer, worker))
		return false;
	if (orderer->config.last_key)
		drop_first(orderer);
	*kept_count = add_up_kept(orderer);
	return true;
}

/* --- sorted entries --------------------------------------------------------
 */

const uint64_t *orderer_sorted_entries(struct orderer *orderer)
{
	uint64_t *entries = orderer->oversized_entries;

	/* All buckets are oversized: they lie in order, one behind the other,
	 * but for the places of what has been dropped. */
	if (!orderer->config.drops_duplicates)
		return entries;
	add_up_kept(orderer);
	for (uint32_t b = 0; b < orderer->set.bucket_count; b++)
		memmove(entries + orderer->bucket_start[b],
			entries + orderer->oversized_start[b],
			(orderer->bucket_start[b + 1] -
			 orderer->bucket_start[b]) *
				sizeof(*entries));
	return entries;
}

/* --- chunks ----------------------------------------------------------------
 */

/* The last bucket that begins at or before the record (so it is not empty). */
static uint32_t bucket_of(const struct orderer *orderer, uint64_t record)
{
	uint32_t low = 0, high = orderer->set.bucket_count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (orderer->bucket_start[middle] <= record)
			low = middle;
		else
			high = middle;
	}
	return low;
}

const uint8_t *orderer_last_record(const struct orderer *orderer)
{
	uint64_t count = orderer_record_count(orderer);
	uint32_t bucket;

	if (count == 0)
		return NULL;
	bucket = bucket_of(orderer, count - 1);
	return tie_break_record(
		&orderer->tie_break,
		orderer->oversized_entries[orderer->oversized_start[bucket] +
					   count - 1 -
					   orderer->bucket_start[bucket]]);
}

/* The part of an oversized bucket, which is in order already, that lies in the
 * chunk. */
static uint32_t copy_oversized(const struct orderer *orderer, uint32_t bucket,
			       const struct chunk *chunk, uint64_t *entries)
{
	uint64_t start = orderer->bucket_start[bucket];
	uint64_t begin = MAX(start, chunk->first_record);
	uint64_t end =
		MIN(orderer->bucket_start[bucket + 1], chunk->end_record);

	memcpy(entries,
	       orderer->oversized_entries + orderer->oversized_start[bucket] +
		       begin - start,
	       (end - begin) * sizeof(*entries));
	return (uint32_t)(end - begin);
}

/*
 * Put the chunk's entries in order; returns the place of its first record's
 * entry.  Buckets that reach over the chunk's ends are ordered in both chunks:
 * to do so twice takes a microsecond, less than two workers need to agree.
 * While one bucket is sorted the next one's blocks are on their way from
 * memory.
 */
static const uint64_t *order_chunk(struct orderer *orderer,
				   struct orderer_worker *self,
				   const struct chunk *chunk)
{
	const uint32_t *start = orderer->bucket_start;
	uint32_t bucket = bucket_of(orderer, chunk->first_record);
	uint32_t end = bucket_of(orderer, chunk->end_record - 1) + 1;
	uint64_t *entries = self->entries;
	const uint64_t *first = entries;
	uint32_t fetched = bucket;

	if (!bucket_is_oversized(orderer, bucket))
		first += chunk->first_record - start[bucket];
	for (; bucket < end; bucket++) {
		uint32_t count;

		for (; fetched < end &&
		       start[fetched] < start[bucket + 1] + PREFETCH_ENTRIES;
		     fetched++)
			if (!bucket_is_oversized(orderer, fetched))
				bucket_set_prefetch(&orderer->set, fetched);
		if (bucket_is_oversized(orderer, bucket)) {
			count = copy_oversized(orderer, bucket, chunk, entries);
		} else {
			count = bucket_set_copy_lines(&orderer->set, bucket,
						      entries);
			order_bucket(orderer, bucket, entries, count);
		}
		entries += count;
		assert(entries <=
		       self->entries + orderer->config.chunk_entries);
	}
	return first;
}

/* What is written of the record. */
static const uint8_t *written_of(const struct orderer *orderer, uint64_t entry)
{
	return tie_break_record(&orderer->tie_break, entry) +
	       orderer->config.written.from;
}

/* Sum up the records that begin in the chunk, from where they were gathered. */
static void add_checksum(const struct orderer *orderer,
			 struct orderer_worker *self, const struct chunk *chunk,
			 const uint64_t *entries, const uint8_t *bytes)
{
	uint32_t record_size = orderer->config.written.bytes;
	uint64_t length = chunk->end_byte - chunk->begin_byte;
	uint64_t cut = chunk->begin_byte % record_size;
	uint64_t skipped = cut ? MIN(record_size - cut, length) : 0;
	uint64_t whole = (length - skipped) / record_size;
	uint64_t begun = chunk->end_record - chunk->first_record - (cut != 0);

	self->checksum += orderer->sum(bytes + skipped, record_size, whole);
	if (begun > whole)
		self->checksum += orderer->sum(
			written_of(orderer, entries[whole + (cut != 0)]),
			record_size, 1);
}

/* As gather_bytes(), of parts of the records. */
static void gather_parts(const struct orderer *orderer, uint8_t *target,
			 uint64_t byte_count, const uint64_t *entries,
			 uint32_t cut)
{
	uint32_t size = orderer->config.written.bytes;

	for (; byte_count > 0; entries++, cut = 0) {
		uint64_t count = MIN(size - cut, byte_count);

		memcpy(target, written_of(orderer, *entries) + cut, count);
		target += count;
		byte_count -= count;
	}
}

/* Gather the chunk's records to target.  A record that the chunk's beginning or
 * end cuts gives the part that lies within. */
static void gather_chunk(struct orderer *orderer, struct orderer_worker *self,
			 const struct chunk *chunk, const uint64_t *entries,
			 uint8_t *target)
{
	const struct orderer_config *config = &orderer->config;
	uint64_t length = chunk->end_byte - chunk->begin_byte;
	uint32_t cut = (uint32_t)(chunk->begin_byte % config->written.bytes);

	if (orderer->gather)
		gather_bytes(orderer->gather, target, length, config->base,
			     orderer->wiring.shape.size, entries, cut,
			     ~(UINT64_MAX << config->index_bits));
	else
		gather_parts(orderer, target, length, entries, cut);
	if (config->sums_up)
		add_checksum(orderer, self, chunk, entries, target);
}

/* False: the sink has failed. */
static bool do_chunk(struct orderer *orderer, unsigned worker,
		     const struct chunk *chunk)
{
	const struct orderer_config *config = &orderer->config;
	struct orderer_worker *self = &orderer->workers[worker];
	struct trace_lane *lane = &orderer->wiring.trace->lanes[worker];
	size_t length_bytes = chunk->end_byte - chunk->begin_byte;
	struct sink_slot *slot = NULL;
	uint8_t *target;
	const uint64_t *entries;
	uint64_t begin_ns = trace_begin(lane);

	entries = order_chunk(orderer, self, chunk);
	trace_end(lane, begin_ns, "order");
	stage_unit(&lane->clock, STAGE_ORDER, length_bytes);

	begin_ns = trace_begin(lane);
	target = sink_place(config->sink, chunk->part, chunk->begin_byte,
			    length_bytes);
	if (!target)
		slot = sink_take(config->sink);
	trace_end(lane, begin_ns, "take");
	stage_wait(&lane->clock, STAGE_FOR_WRITE);
	if (slot)
		target = slot->data;
	else if (!target)
		return false;

	begin_ns = trace_begin(lane);
	gather_chunk(orderer, self, chunk, entries, target);
	trace_end(lane, begin_ns, "gather");
	stage_unit(&lane->clock, STAGE_GATHER, length_bytes);
	atomic_fetch_add_explicit(&orderer->gathered_chunks, 1,
				  memory_order_release);
	if (!slot) {
		flow_add(FLOW_WRITE, begin_ns, length_bytes);
		return true;
	}

	begin_ns = trace_begin(lane);
	slot->clock = &lane->clock;
	slot->part = chunk->part;
	slot->offset_bytes = chunk->begin_byte;
	slot->length_bytes = length_bytes;
	sink_put(config->sink, slot);
	trace_end(lane, begin_ns, "write");
	stage_unit(&lane->clock, STAGE_PUT, length_bytes);
	return true;
}

/* A chunk of these. */
static enum orderer_step try_chunks(struct orderer *orderer, unsigned worker,
				    struct chunk_share *chunks, uint32_t ready)
{
	uint64_t number =
		atomic_load_explicit(&chunks->next, memory_order_relaxed);
	struct chunk chunk;

	do {
		if (number >= chunks->end)
			return ORDERER_DONE;
		chunk = chunk_range_at(&orderer->range, number);
		if (ready != ORDERER_ALL_READY &&
		    bucket_of(orderer, chunk.end_record - 1) >= ready)
			return ORDERER_WAITS;
	} while (!atomic_compare_exchange_weak_explicit(
		&chunks->next, &number, number + 1, memory_order_relaxed,
		memory_order_relaxed));
	return do_chunk(orderer, worker, &chunk) ? ORDERER_MORE
						 : ORDERER_FAILED;
}

enum orderer_step orderer_try(struct orderer *orderer, unsigned worker)
{
	const struct orderer_worker *self = &orderer->workers[worker];
	uint32_t ready = atomic_load_explicit(&orderer->ready_buckets,
					      memory_order_acquire);
	enum orderer_step result = ORDERER_DONE;

	if (first_failure_stops(orderer->wiring.failure))
		return ORDERER_FAILED;
	if (ready == 0 || (orderer->oversized_count > 0 && !self->has_passed) ||
	    atomic_load_explicit(&orderer->chunks_begun,
				 memory_order_acquire) == 0)
		return ORDERER_WAITS;
	/* The own node's first, and then what others have left. */
	for (unsigned i = 0; i < orderer->chunks.count; i++) {
		struct chunk_share *chunks = chunk_shares_of(
			&orderer->chunks, orderer->wiring.pool, worker, i);
		enum orderer_step step =
			try_chunks(orderer, worker, chunks, ready);

		if (step == ORDERER_MORE || step == ORDERER_FAILED)
			return step;
		if (step == ORDERER_WAITS)
			result = step;
	}
	return result;
}

/* --- readiness -------------------------------------------------------------
 */

void orderer_set_ready(struct orderer *orderer, uint32_t ready_buckets)
{
	if (ready_buckets >
	    atomic_load_explicit(&orderer->ready_buckets, memory_order_relaxed))
		thread_pool_set(orderer->wiring.pool, &orderer->ready_buckets,
				ready_buckets);
}

void orderer_stop(struct orderer *orderer)
{
	struct thread_pool *pool = orderer->wiring.pool;

	/* The bucket set may be incomplete: workers that this wakes look at
	 * wiring.failure before they look at the buckets. */
	thread_pool_set(pool, &orderer->ready_buckets, ORDERER_ALL_READY);
	thread_pool_set(pool, &orderer->passed_workers, pool->worker_count);
	thread_pool_set(pool, &orderer->chunks_begun, 1);
}

/* Wait until more buckets are complete than were; returns how many are. */
static uint32_t wait_for_buckets(struct orderer *orderer, uint32_t than)
{
	thread_pool_wait_while(orderer->wiring.pool, &orderer->ready_buckets,
			       than);
	return atomic_load_explicit(&orderer->ready_buckets,
				    memory_order_acquire);
}

bool orderer_run(struct orderer *orderer, unsigned worker)
{
	uint32_t ready = atomic_load_explicit(&orderer->ready_buckets,
					      memory_order_acquire);
	enum orderer_step step;

	if (ready == 0)
		ready = wait_for_buckets(orderer, 0);
	while (orderer->oversized_count > 0 && ready != ORDERER_ALL_READY)
		ready = wait_for_buckets(orderer, ready);
	if (!orderer_sort_oversized(orderer, worker))
		return false;
	for (;;) {
		/* Read before the attempt: buckets that become ready during
		 * the attempt end the wait at once. */
		ready = atomic_load_explicit(&orderer->ready_buckets,
					     memory_order_acquire);
		step = orderer_try(orderer, worker);
		if (step == ORDERER_WAITS)
			wait_for_buckets(orderer, ready);
		else if (step != ORDERER_MORE)
			break;
	}
	if (step == ORDERER_FAILED)
		return false;
	sink_help(orderer->config.sink);
	stage_wait(clock_of(orderer, worker), STAGE_FOR_WRITE);
	return true;
}

bool orderer_has_gathered_all(const struct orderer *orderer)
{
	return atomic_load_explicit(&orderer->gathered_chunks,
				    memory_order_acquire) ==
	       orderer->range.chunk_count;
}

unsigned __int128 orderer_checksum(const struct orderer *orderer)
{
	unsigned __int128 sum = 0;

	for (unsigned w = 0; w < orderer->wiring.pool->worker_count; w++)
		sum += orderer->workers[w].checksum;
	return sum;
}
