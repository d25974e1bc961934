/*
 * test_orderer.c - a bucket set made by hand and a sink in memory, against a
 * plain stable sort: no file, no rank
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "kernels/splitters.h"
#include "random.h"
#include "sort/orderer.h"
#include "sort/partition.h"
#include "stable_sort.h"
#include "system/topology.h"

#define RECORDS_MAX 60000
#define SIZE_MAX_TESTED 40
#define PARTS_MAX 4
#define SLOTS 8
#define RUNS_MAX 5
#define WORKERS_MAX 8
#define CHUNK_BYTES 16384

/* --- records and the reference ----------------------------------------------
 */

static uint8_t *records, *sorted;	    /* what the sink has got */
static uint32_t *order, *scratch, *rank_of; /* rank_of[order[i]] is i */
static struct record_shape shape;
static uint32_t record_count;

static uint32_t random_below(uint64_t end)
{
	return (uint32_t)(random_next() % end);
}

static const uint8_t *record_at(uint32_t slot)
{
	return records + (size_t)slot * shape.size;
}

/* Keys of so many values in each byte: few of them make oversized buckets. */
static void make_records(uint32_t count, unsigned values)
{
	record_count = count;
	for (size_t i = 0; i < (size_t)count * shape.size; i++)
		records[i] = (uint8_t)random_below(values);
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	stable_sort(&shape, records, order, count, scratch);
	for (uint32_t i = 0; i < count; i++)
		rank_of[order[i]] = i;
}

static void check_sorted(void)
{
	for (uint32_t i = 0; i < record_count; i++)
		if (memcmp(sorted + (size_t)i * shape.size, record_at(order[i]),
			   shape.size) != 0)
			fail_msg("record %u of %u is not number %u (SEED=%llu)",
				 i, record_count, order[i],
				 (unsigned long long)seed);
}

/* --- a sink in memory ------------------------------------------------------
 */

struct memory_sink {
	struct sink sink; /* the first member */
	uint64_t part_bytes[PARTS_MAX];
	uint64_t part_begin[PARTS_MAX]; /* in sorted */
	bool places;			/* every other chunk where it lies */
	struct sink_slot slots[SLOTS];
	_Atomic uint64_t filled_bytes; /* of all chunks and parts of chunks */
	_Atomic int left; /* chunks that it takes before it fails */
	_Atomic unsigned helped;
};

static struct memory_sink *memory_of(struct sink *sink)
{
	return (struct memory_sink *)sink;
}

static uint8_t *sink_address(struct sink *sink, unsigned part, uint64_t offset)
{
	return sorted + memory_of(sink)->part_begin[part] + offset;
}

static uint8_t *place(struct sink *sink, unsigned part, uint64_t offset_bytes,
		      size_t length_bytes)
{
	assert_true(length_bytes > 0);
	assert_true(offset_bytes % CHUNK_BYTES + length_bytes <= CHUNK_BYTES);
	assert_true(offset_bytes + length_bytes <= sink->part_bytes[part]);
	memory_of(sink)->filled_bytes += length_bytes;
	if (!memory_of(sink)->places || offset_bytes / CHUNK_BYTES % 2)
		return NULL;
	return sink_address(sink, part, offset_bytes);
}

static struct sink_slot *take(struct sink *sink)
{
	struct memory_sink *memory = memory_of(sink);

	if (atomic_fetch_sub(&memory->left, 1) <= 0)
		return NULL;
	for (unsigned i = 0;; i = (i + 1) % SLOTS)
		if (!__atomic_exchange_n(&memory->slots[i].state, 1,
					 __ATOMIC_ACQUIRE))
			return &memory->slots[i];
}

static void put(struct sink *sink, struct sink_slot *slot)
{
	memcpy(sink_address(sink, slot->part, slot->offset_bytes), slot->data,
	       slot->length_bytes);
	__atomic_store_n(&slot->state, 0, __ATOMIC_RELEASE);
}

static void help(struct sink *sink)
{
	atomic_fetch_add(&memory_of(sink)->helped, 1);
}

/* Parts that end between records, some of them empty. */
static void open_sink(struct memory_sink *sink, unsigned part_count)
{
	static const struct sink_ops operations = {
		.place = place, .take = take, .put = put, .help = help
	};
	static uint8_t staging[SLOTS][CHUNK_BYTES];
	uint64_t begin = 0;

	memset(sink, 0, sizeof(*sink));
	sink->left = INT32_MAX;
	sink->sink = (struct sink){
		.ops = &operations,
		.chunk_bytes = CHUNK_BYTES,
		.part_count = part_count,
		.part_bytes = sink->part_bytes,
	};
	for (unsigned i = 0; i < part_count; i++) {
		uint64_t end = i + 1 == part_count
				       ? record_count
				       : begin + random_below(record_count -
							      begin + 1);

		sink->part_begin[i] = begin * shape.size;
		sink->part_bytes[i] = (end - begin) * shape.size;
		begin = end;
	}
	for (unsigned i = 0; i < SLOTS; i++)
		sink->slots[i].data = staging[i];
	memset(sorted, 0xee, (size_t)RECORDS_MAX * SIZE_MAX_TESTED);
}

/* --- a bucket set ----------------------------------------------------------
 */

/* All that an orderer needs. */
struct world {
	struct topology topology;
	struct thread_pool pool;
	struct first_failure failure;
	struct sort_trace trace;
	struct splitters splitters;
	struct plan plan;
	struct memory_sink sink;
	struct arena arena;
	struct bucket_set set;
	struct bucket_run runs[RUNS_MAX];
	uint64_t *entries; /* of all runs */
	uint32_t *starts;
	struct orderer orderer;
};

static struct world *world;
/* The bucket set holds the records of these ranks. */
static uint32_t range_begin, range_end;

static bool is_in_range(uint32_t slot)
{
	return rank_of[slot] >= range_begin && rank_of[slot] < range_end;
}

/* Run r has the records from r * count / runs on, by bucket, in their order. */
static void make_run(unsigned r, unsigned run_count)
{
	uint32_t first = (uint32_t)((uint64_t)record_count * r / run_count);
	uint32_t end = (uint32_t)((uint64_t)record_count * (r + 1) / run_count);
	uint32_t bucket_count = world->splitters.bucket_count;
	uint64_t key_mask = UINT64_MAX << world->plan.index_bits;
	uint64_t *entries = world->entries + first;
	uint32_t *start = world->starts + (size_t)r * (bucket_count + 1);
	uint32_t next = 0;

	for (uint32_t b = 0; b < bucket_count; b++) {
		start[b] = next;
		for (uint32_t i = first; i < end; i++) {
			uint64_t word =
				record_key_word(&shape, record_at(i), 0);

			if (is_in_range(i) &&
			    splitters_bucket_256(&world->splitters, word) == b)
				entries[next++] = (word & key_mask) | i;
		}
	}
	start[bucket_count] = next;
	world->runs[r] = (struct bucket_run){ entries, start };
}

static void set_up(unsigned run_count, uint32_t bucket_count,
		   unsigned part_count, unsigned workers)
{
	const struct plan_request request = {
		.shape = shape,
		.record_count = record_count,
		.slot_count = record_count,
		.worker_count = workers,
		.staging_slots = SLOTS,
		.chunk_bytes_max = CHUNK_BYTES,
		.bucket_count = bucket_count,
	};
	struct failure failure;

	world = aligned_alloc(CACHE_PAIR_BYTES, sizeof(*world));
	memset(world, 0, sizeof(*world));
	topology_read(&world->topology);
	assert_int_equal(plan_make(&world->plan, &request), 0);
	splitters_init_static(&world->splitters, SPLITTERS_STATIC_256,
			      bucket_count);
	sort_trace_init(&world->trace, NULL);
	open_sink(&world->sink, part_count);
	world->sink.places = random_below(2);
	world->entries = calloc(record_count + 1, 8);
	world->starts = calloc((size_t)run_count * (bucket_count + 1), 4);
	assert_int_equal(
		arena_map(&world->arena, world->plan.memory_bytes + MIB), 0);
	range_begin = 0;
	range_end = record_count;
	for (unsigned r = 0; r < run_count; r++)
		make_run(r, run_count);
	world->set = (struct bucket_set){
		.bucket_count = bucket_count,
		.runs = world->runs,
		.run_count = run_count,
	};
	assert_int_equal(thread_pool_start(&world->pool, workers,
					   THREAD_POOL_ALL, &world->topology,
					   &failure),
			 0);
	/* Of another machine; the last of its nodes has no worker. */
	world->pool.node_count = 3;
	for (unsigned w = 0; w < workers; w++)
		world->pool.workers[w].node = (uint8_t)(w % 2);
}

static bool drops_duplicates, sorts_only;

static void begin(bool is_ready)
{
	const struct sort_wiring wiring = {
		.shape = shape,
		.kernel = cpu_level_detect(),
		.splitters = &world->splitters,
		.pool = &world->pool,
		.trace = &world->trace,
		.failure = &world->failure,
	};
	const struct orderer_config config = {
		.index_bits = world->plan.index_bits,
		.base = records,
		.chunk_entries = world->plan.chunk_entries,
		.sums_up = true,
		.drops_duplicates = drops_duplicates,
		.sorts_only = sorts_only,
		.is_ready = is_ready,
		.by_node = random_below(2),
		.sink = sorts_only ? NULL : &world->sink.sink,
		.written = { 0, shape.size },
		.record_count = ORDERER_ALL_RECORDS,
	};

	orderer_take_memory(&world->orderer, &world->plan,
			    world->pool.worker_count, &world->arena, NULL);
	orderer_take_oversized(&world->orderer, &world->plan, record_count,
			       &world->arena);
	orderer_begin(&world->orderer, &wiring, &config);
}

static void tear_down(void)
{
	thread_pool_stop(&world->pool);
	arena_unmap(&world->arena);
	sort_trace_close(&world->trace);
	free(world->entries);
	free(world->starts);
	free(world);
}

static bool results[WORKERS_MAX];

static void run(void *context, unsigned worker)
{
	(void)context;
	results[worker] = orderer_run(&world->orderer, worker);
}

static void check_results(bool expected)
{
	for (unsigned w = 0; w < world->pool.worker_count; w++)
		assert_int_equal(results[w], expected);
}

static void check_order(void)
{
	check_results(true);
	check_sorted();
	assert_int_equal(orderer_record_count(&world->orderer), record_count);
	assert_true(orderer_checksum(&world->orderer) ==
		    checksum_scalar(records, shape.size, record_count));
	assert_true(orderer_has_gathered_all(&world->orderer));
	assert_int_equal(world->sink.helped, world->pool.worker_count);
}

static void random_shape(void)
{
	uint32_t size = 4 + random_below(SIZE_MAX_TESTED - 3);
	uint32_t offset = random_below(size);

	shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(
		size, offset, 1 + random_below(size - offset));
}

/* --- tests -----------------------------------------------------------------
 */

/* Bytes of two values make oversized buckets, of 256 none. */
static void orderer_run__all_is_ready(void **state)
{
	static const uint32_t counts[] = { 0, 1, 2, 500, 3000, 30000 };

	(void)state;
	for (unsigned turn = 0; turn < turns_of(60); turn++) {
		random_shape();
		make_records(counts[turn % ARRAY_LEN(counts)],
			     turn % 3 ? 256 : 2);
		set_up(1 + turn % RUNS_MAX, 1 + random_below(40),
		       1 + turn % PARTS_MAX, 1 + turn % 4);
		begin(true);
		orderer_add_up(&world->orderer, &world->set);
		thread_pool_run(&world->pool, run, NULL);
		check_order();
		tear_down();
	}
}

/* The lists of several writers, made by the other half of a sort. */
static void orderer_run__writers(void **state)
{
	static struct bucket_writer writers[RUNS_MAX];
	static struct bucket_pool pool;

	(void)state;
	for (unsigned turn = 0; turn < 12; turn++) {
		unsigned count = 1 + turn % RUNS_MAX;
		struct arena arena;

		random_shape();
		make_records(20000, turn % 3 ? 256 : 2);
		set_up(1, 50, 1, 2);
		assert_int_equal(arena_map(&arena, 32 * MIB), 0);
		pool.block_count = (uint32_t)buckets_blocks_needed(record_count,
								   50, count);
		pool.entries = arena_take(
			&arena, pool.block_count * BUCKETS_BLOCK_ENTRIES * 8,
			128);
		pool.owners = arena_take(&arena, pool.block_count * 4, 128);
		pool.directory = arena_take(&arena, pool.block_count * 4, 128);
		pool.next_grant = arena_take(&arena, pool.block_count * 4, 128);
		bucket_pool_reset(&pool);
		for (unsigned w = 0; w < count; w++) {
			uint32_t first = record_count * w / count;

			writers[w].pool = &pool;
			writers[w].cursors = arena_take(&arena, 50 * 4, 128);
			writers[w].lists = arena_take(
				&arena, 50 * sizeof(struct bucket_list), 128);
			bucket_writer_reset(&writers[w], 50);
			partition_records(
				&writers[w], CPU_SCALAR, &world->splitters,
				&shape, world->plan.index_bits,
				record_at(first), first,
				record_count * (w + 1) / count - first);
			bucket_writer_finish(&writers[w], 50);
		}
		world->set = (struct bucket_set){
			.bucket_count = 50,
			.writers = writers,
			.writer_count = count,
		};
		begin(true);
		orderer_add_up(&world->orderer, &world->set);
		thread_pool_run(&world->pool, run, NULL);
		check_order();
		tear_down();
		arena_unmap(&arena);
	}
}

/* While the other workers order, this thread hides the buckets that are not
 * ready yet, and raises how many are. */
static void raise_step_by_step(uint32_t step)
{
	uint64_t *hidden = malloc(((size_t)record_count + 1) * 8);
	uint32_t bucket_count = world->set.bucket_count;

	memcpy(hidden, world->entries, (size_t)record_count * 8);
	memset(world->entries, 0xff, (size_t)record_count * 8);
	begin(false);
	thread_pool_launch(&world->pool, run, NULL);
	orderer_add_up(&world->orderer, &world->set);
	for (uint32_t b = 0; b < bucket_count; b += step) {
		uint32_t end = MIN(b + step, bucket_count);

		for (unsigned r = 0; r < world->set.run_count; r++) {
			const struct bucket_run *bucket_run = &world->runs[r];
			size_t first =
				(size_t)(bucket_run->entries - world->entries);

			memcpy(world->entries + first + bucket_run->start[b],
			       hidden + first + bucket_run->start[b],
			       (bucket_run->start[end] - bucket_run->start[b]) *
				       8);
		}
		orderer_set_ready(&world->orderer, end == bucket_count
							   ? ORDERER_ALL_READY
							   : end);
		while (orderer_try(&world->orderer, 0) == ORDERER_MORE)
			;
	}
	run(NULL, 0);
	thread_pool_wait(&world->pool);
	free(hidden);
}

static void orderer_run__ready_step_by_step(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < turns_of(40); turn++) {
		random_shape();
		make_records(turn % 2 ? 20000 : 40000, turn % 3 ? 256 : 2);
		set_up(1 + turn % RUNS_MAX, 1 + random_below(60),
		       1 + turn % PARTS_MAX, 1 + turn % 4);
		raise_step_by_step(1 + random_below(4));
		check_order();
		tear_down();
	}
}

/* A second set through the same orderer: it begins anew. */
static void orderer_begin__again(void **state)
{
	(void)state;
	random_shape();
	make_records(20000, 2);
	set_up(2, 30, 2, 3);
	begin(true);
	for (unsigned turn = 0; turn < 3; turn++) {
		struct orderer_config config = world->orderer.config;
		struct sort_wiring wiring = world->orderer.wiring;

		open_sink(&world->sink, 2);
		orderer_begin(&world->orderer, &wiring, &config);
		orderer_add_up(&world->orderer, &world->set);
		thread_pool_run(&world->pool, run, NULL);
		check_order();
	}
	tear_down();
}

/* Another orderer, for the records of the ranks from first up to end, which
 * go to the sink from record number first_record on. */
static void begin_range(uint32_t first, uint32_t end, uint64_t first_record)
{
	struct orderer_config config = world->orderer.config;
	struct sort_wiring wiring = world->orderer.wiring;

	range_begin = first;
	range_end = end;
	config.first_record = first_record;
	config.record_count = end - first;
	for (unsigned r = 0; r < world->set.run_count; r++)
		make_run(r, world->set.run_count);
	orderer_begin(&world->orderer, &wiring, &config);
	orderer_add_up(&world->orderer, &world->set);
}

static void order_range(uint32_t first, uint32_t end)
{
	begin_range(first, end, first);
	thread_pool_run(&world->pool, run, NULL);
	check_results(true);
	assert_int_equal(orderer_record_count(&world->orderer), end - first);
	assert_true(orderer_has_gathered_all(&world->orderer));
}

/* Several orderers, one behind the other, whose ranges end anywhere: they bring
 * what one brings, each byte once. */
static void orderer_run__ranges(void **state)
{
	static const struct {
		uint32_t size, count;
	} cases[] = {
		{ 1, 60000 }, { 7, 60000 }, { 100, 20000 }, { 4096, 500 }
	};

	(void)state;
	for (unsigned turn = 0; turn < turns_of(48); turn++) {
		uint32_t size = cases[turn % ARRAY_LEN(cases)].size;
		uint32_t end = 0;
		unsigned __int128 checksum = 0;

		shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(
			size, 0, MIN(size, 1 + random_below(7)));
		make_records(cases[turn % ARRAY_LEN(cases)].count,
			     turn % 3 ? 256 : 2);
		set_up(1 + turn % RUNS_MAX, 1 + random_below(20),
		       1 + random_below(PARTS_MAX), 1 + turn % 4);
		begin(true);
		for (uint32_t first = 0; first < record_count; first = end) {
			end += random_below(record_count / (1 + turn % 9) + 2);
			end = MIN(end, record_count);
			order_range(first, end);
			checksum += orderer_checksum(&world->orderer);
		}
		check_sorted();
		assert_int_equal(world->sink.filled_bytes,
				 (uint64_t)record_count * size);
		assert_true(checksum ==
			    checksum_scalar(records, size, record_count));
		tear_down();
	}
}

static void orderer_run__sink_fails(void **state)
{
	(void)state;
	shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(20, 2, 10);
	make_records(40000, 256);
	set_up(3, 100, 1, 3);
	world->sink.places = false;
	world->sink.left = 3;
	begin(true);
	orderer_add_up(&world->orderer, &world->set);
	thread_pool_run(&world->pool, run, NULL);
	check_results(false);
	assert_false(orderer_has_gathered_all(&world->orderer));
	assert_false(first_failure_stops(&world->failure));
	tear_down();
}

/* The driver gives up while the others wait for a first bucket. */
static void orderer_stop__nothing_is_ready(void **state)
{
	const struct failure failure = { .status = EXIT_PEER, .why = "gone" };

	(void)state;
	shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(20, 2, 10);
	make_records(1000, 256);
	set_up(2, 10, 1, 4);
	begin(false);
	results[0] = false;
	thread_pool_launch(&world->pool, run, NULL);
	first_failure_note(&world->failure, &failure);
	orderer_stop(&world->orderer);
	thread_pool_wait(&world->pool);
	check_results(false);
	assert_int_equal(orderer_try(&world->orderer, 0), ORDERER_FAILED);
	tear_down();
}

/* The workers of other nodes are late: none of their chunks waits for them. */
static void orderer_try__chunks_of_other_nodes(void **state)
{
	(void)state;
	for (unsigned turn = 0; turn < turns_of(20); turn++) {
		shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(20, 2, 10);
		make_records(1000, 256);
		set_up(2, 1000, 1, 4);
		begin(true);
		orderer_add_up(&world->orderer, &world->set);
		while (orderer_try(&world->orderer, 0) == ORDERER_MORE)
			;
		assert_true(orderer_has_gathered_all(&world->orderer));
		check_sorted();
		tear_down();
	}
}

/* The driver gives up when all is ready, and never comes to its part of the
 * oversized buckets, for which the others wait. */
static void orderer_stop__among_oversized_buckets(void **state)
{
	const struct failure failure = { .status = EXIT_PEER, .why = "gone" };

	(void)state;
	for (unsigned turn = 0; turn < turns_of(20); turn++) {
		struct failure got;

		shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(20, 2, 1);
		make_records(30000, 2);
		set_up(2, 10, 1, 4);
		begin(false);
		results[0] = false;
		orderer_add_up(&world->orderer, &world->set);
		assert_true(world->orderer.oversized_count > 0);
		orderer_set_ready(&world->orderer, ORDERER_ALL_READY);
		thread_pool_launch(&world->pool, run, NULL);
		while (turn % 2 &&
		       atomic_load(&world->orderer.passed_workers) < 3)
			;
		first_failure_note(&world->failure, &failure);
		orderer_stop(&world->orderer);
		thread_pool_wait(&world->pool);
		check_results(false);
		assert_int_equal(first_failure_get(&world->failure, &got),
				 -EIO);
		assert_string_equal(got.why, "gone");
		tear_down();
	}
}

/* Of order[], those whose key is not that of the record before; returns how
 * many. */
static uint32_t drop_from_order(void)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < record_count; i++)
		if (i == 0 || record_compare(&shape, record_at(order[i]),
					     record_at(order[kept - 1])) != 0)
			order[kept++] = order[i];
	return kept;
}

/* The sink is not told how much comes. */
static bool keeps_sink_size;

/* Worker 0 is the driver. */
static void run_unique(void *context, unsigned worker)
{
	uint64_t *kept_count = context;

	if (worker == 0) {
		if (!orderer_drop_duplicates(&world->orderer, 0, kept_count))
			return;
		if (!keeps_sink_size)
			world->sink.part_bytes[0] = *kept_count * shape.size;
		orderer_begin_chunks(&world->orderer);
	}
	run(NULL, worker);
}

/* Many records or few, all ready, for a sink of one part. */
static void begin_some(unsigned turn)
{
	random_shape();
	make_records(turn % 5 ? 20000 : turn, turn % 3 ? 256 : 2);
	set_up(1 + turn % RUNS_MAX, 1 + random_below(40), 1, 1 + turn % 4);
	begin(true);
	orderer_add_up(&world->orderer, &world->set);
}

static void orderer_drop_duplicates__keeps_firsts(void **state)
{
	(void)state;
	drops_duplicates = true;
	for (unsigned turn = 0; turn < turns_of(40); turn++) {
		uint64_t kept_count = UINT64_MAX;
		uint32_t all;

		begin_some(turn);
		all = record_count;
		thread_pool_run(&world->pool, run_unique, &kept_count);
		record_count = drop_from_order();
		assert_int_equal(kept_count, record_count);
		assert_int_equal(orderer_record_count(&world->orderer),
				 record_count);
		assert_int_equal(orderer_dropped_count(&world->orderer),
				 all - record_count);
		check_results(true);
		check_sorted();
		tear_down();
	}
	drops_duplicates = false;
}

/* The end of a range, which holds all records of a key or none. */
static uint32_t end_between_keys(uint32_t first)
{
	uint32_t end = first + 1 + random_below(record_count / 2);

	while (end < record_count &&
	       record_compare(&shape, record_at(order[end]),
			      record_at(order[end - 1])) == 0)
		end++;
	return MIN(end, record_count);
}

/* One orderer behind the other, for a sink that knows only how much comes at
 * most. */
static void orderer_drop_duplicates__ranges(void **state)
{
	(void)state;
	drops_duplicates = keeps_sink_size = true;
	for (unsigned turn = 0; turn < turns_of(20); turn++) {
		uint64_t written = 0, kept_count;
		uint32_t end;

		random_shape();
		make_records(5000, turn % 3 ? 256 : 2);
		set_up(1 + turn % RUNS_MAX, 1 + random_below(40), 1,
		       1 + turn % 4);
		begin(true);
		for (uint32_t first = 0; first < record_count; first = end) {
			end = end_between_keys(first);
			begin_range(first, end, written);
			thread_pool_run(&world->pool, run_unique, &kept_count);
			check_results(true);
			written += kept_count;
			assert_int_equal(world->sink.filled_bytes,
					 written * shape.size);
		}
		record_count = drop_from_order();
		assert_int_equal(written, record_count);
		check_sorted();
		tear_down();
	}
	drops_duplicates = keeps_sink_size = false;
}

static void sort_only(void *context, unsigned worker)
{
	(void)context;
	results[worker] = orderer_sort_oversized(&world->orderer, worker);
}

static void check_sorted_entries(void)
{
	const uint64_t *entries = orderer_sorted_entries(&world->orderer);
	uint64_t index_mask = ~(UINT64_MAX << world->plan.index_bits);

	assert_int_equal(orderer_record_count(&world->orderer), record_count);
	for (uint32_t i = 0; i < record_count; i++)
		if ((entries[i] & index_mask) != order[i])
			fail_msg("entry %u of %u is not number %u (SEED=%llu)",
				 i, record_count, order[i],
				 (unsigned long long)seed);
}

/* Of every other run duplicates are dropped. */
static void orderer_sorted_entries__no_sink(void **state)
{
	(void)state;
	sorts_only = true;
	for (unsigned turn = 0; turn < turns_of(40); turn++) {
		uint32_t all;

		drops_duplicates = turn % 2;
		begin_some(turn);
		all = record_count;
		thread_pool_run(&world->pool, sort_only, NULL);
		check_results(true);
		if (drops_duplicates)
			record_count = drop_from_order();
		check_sorted_entries();
		assert_int_equal(orderer_dropped_count(&world->orderer),
				 all - record_count);
		tear_down();
	}
	drops_duplicates = sorts_only = false;
}

/* The driver gives up before it takes part, or before it begins the chunks. */
static void orderer_stop__while_duplicates_are_dropped(void **state)
{
	const struct failure failure = { .status = EXIT_PEER, .why = "gone" };

	(void)state;
	drops_duplicates = true;
	for (unsigned turn = 0; turn < turns_of(20); turn++) {
		uint64_t kept_count;

		shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(20, 2, 1);
		make_records(3000, 200);
		set_up(2, 10, 1, 4);
		begin(false);
		results[0] = false;
		orderer_add_up(&world->orderer, &world->set);
		orderer_set_ready(&world->orderer, ORDERER_ALL_READY);
		thread_pool_launch(&world->pool, run, NULL);
		if (turn % 2)
			assert_true(orderer_drop_duplicates(&world->orderer, 0,
							    &kept_count));
		assert_int_equal(orderer_try(&world->orderer, 0),
				 ORDERER_WAITS);
		first_failure_note(&world->failure, &failure);
		orderer_stop(&world->orderer);
		thread_pool_wait(&world->pool);
		check_results(false);
		tear_down();
	}
	drops_duplicates = false;
}

/* --- failures between the looks of two workers ------------------------------
 *
 * Another thread may note a failure at any moment.  Workers look for it now and
 * then: some have looked before, and then wait for all; the others look when
 * the run has failed.
 */

static struct {
	bool is_on;
	/* So many workers come at once, from number `first` on.  The others
	 * come when the run has failed. */
	unsigned first, early_count;
	/* The run fails at this step of the workers that came at once, from 1
	 * on; or, at the latest, when all of these wait. */
	unsigned fails_at;
	_Atomic unsigned steps, waits;
	local_sort_fn *sort;
} early;

void __real_thread_pool_wait_while(const struct thread_pool *pool,
				   _Atomic uint32_t *word, uint32_t value);
void __wrap_thread_pool_wait_while(const struct thread_pool *pool,
				   _Atomic uint32_t *word, uint32_t value);

static void fail_run(void)
{
	const struct failure failure = { .status = EXIT_FILE, .why = "cut" };

	first_failure_note(&world->failure, &failure);
}

static void count_step(void)
{
	if (atomic_fetch_add(&early.steps, 1) + 1 == early.fails_at)
		fail_run();
}

static void count_step_and_sort(uint64_t *entries, size_t count)
{
	count_step();
	early.sort(entries, count);
}

void __wrap_thread_pool_wait_while(const struct thread_pool *pool,
				   _Atomic uint32_t *word, uint32_t value)
{
	if (early.is_on) {
		count_step();
		if (atomic_fetch_add(&early.waits, 1) + 1 >= early.early_count)
			fail_run();
	}
	__real_thread_pool_wait_while(pool, word, value);
}

static void run_early_or_late(void *context, unsigned worker)
{
	unsigned count = world->pool.worker_count;
	uint64_t kept_count;

	(void)context;
	if ((worker + count - early.first) % count >= early.early_count)
		while (!first_failure_stops(&world->failure))
			sched_yield();
	if (sorts_only) {
		sort_only(NULL, worker);
		return;
	}
	if (worker == 0 && drops_duplicates) {
		orderer_drop_duplicates(&world->orderer, 0, &kept_count);
		orderer_begin_chunks(&world->orderer);
	}
	run(NULL, worker);
}

/* Returns how many steps there were. */
static unsigned fail_at_step(unsigned workers, unsigned step)
{
	early.fails_at = step;
	early.steps = early.waits = 0;
	make_records(3000, drops_duplicates || sorts_only ? 256 : 2);
	set_up(2, 10, 1, workers);
	begin(true);
	early.sort = world->orderer.tie_break.sort;
	world->orderer.tie_break.sort = count_step_and_sort;
	orderer_add_up(&world->orderer, &world->set);
	assert_true(world->orderer.oversized_count > 0);
	early.is_on = true;
	thread_pool_run(&world->pool, run_early_or_late, NULL);
	early.is_on = false;
	assert_true(first_failure_stops(&world->failure));
	if (early.early_count < workers)
		check_results(false);
	tear_down();
	return early.steps;
}

static void fail_at_each_step(unsigned workers)
{
	for (early.early_count = 1; early.early_count <= workers;
	     early.early_count += MAX(1, workers / 3))
		for (early.first = 0; early.first < MIN(workers, 3);
		     early.first++) {
			unsigned steps = 1;

			for (unsigned step = 1; step <= steps; step++)
				steps = fail_at_step(workers, step);
		}
}

/* No worker waits for one that has left. */
static void orderer_run__fails_at_each_step(void **state)
{
	(void)state;
	shape = (struct record_shape)RECORD_SHAPE_OF_SLICE(40, 2, 1);
	for (unsigned turn = 0; turn < 4; turn++) {
		drops_duplicates = turn % 2;
		sorts_only = turn / 2;
		fail_at_each_step(2);
		fail_at_each_step(8);
	}
	drops_duplicates = sorts_only = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orderer_run__all_is_ready),
		cmocka_unit_test(orderer_run__writers),
		cmocka_unit_test(orderer_run__ready_step_by_step),
		cmocka_unit_test(orderer_begin__again),
		cmocka_unit_test(orderer_run__ranges),
		cmocka_unit_test(orderer_run__sink_fails),
		cmocka_unit_test(orderer_stop__nothing_is_ready),
		cmocka_unit_test(orderer_try__chunks_of_other_nodes),
		cmocka_unit_test(orderer_stop__among_oversized_buckets),
		cmocka_unit_test(orderer_drop_duplicates__keeps_firsts),
		cmocka_unit_test(orderer_drop_duplicates__ranges),
		cmocka_unit_test(orderer_sorted_entries__no_sink),
		cmocka_unit_test(orderer_stop__while_duplicates_are_dropped),
		cmocka_unit_test(orderer_run__fails_at_each_step),
	};
	int failed;

	random_begin();
	/* A worker that is never woken. */
	alarm(300);
	records = calloc(RECORDS_MAX + 1, SIZE_MAX_TESTED);
	sorted = calloc(RECORDS_MAX, SIZE_MAX_TESTED);
	order = calloc(RECORDS_MAX, sizeof(*order));
	scratch = calloc(RECORDS_MAX, sizeof(*scratch));
	rank_of = calloc(RECORDS_MAX, sizeof(*rank_of));
	if (!records || !sorted || !order || !scratch || !rank_of)
		return EXIT_FAILURE;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(records);
	free(sorted);
	free(order);
	free(scratch);
	free(rank_of);
	return failed;
}
