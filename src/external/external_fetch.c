/*
 * external_fetch.c - the last pass of large records, whose keys are in order
 *
 * Each worker takes every worker_count-th chunk of the output, reads the
 * records of its chunks past the page cache, many at a time, and hands the
 * chunks over.  (WiscSort, Banakar et al. 2023, sorts so on memory that is read
 * at random as fast as in order.)
 */
#include <assert.h>
#include <stdlib.h>

#include "base/failure.h"
#include "external/external_state.h"
#include "sort/chunk_range.h"

/* A record, as far as it lies in a chunk. */
struct fragment {
	uint64_t slot;	     /* of the record: its number in the input */
	uint32_t from_bytes; /* in the record */
	uint32_t length_bytes;
	uint32_t at_bytes; /* in the chunk */
};

/* A step through the worker's chunks, record by record. */
struct fetch_cursor {
	uint64_t chunk;
	uint64_t record; /* counted from the chunk's first */
};

/* One worker's. */
struct fetcher {
	_Alignas(CACHE_PAIR_BYTES) struct read_ahead reads;
	const struct fetching *fetching;
	struct fetch_cursor ahead;
};

struct fetching {
	struct external *external;
	const struct batch *batch; /* of all records' keys, sorted in place */
	struct sink *sink;
	unsigned worker_count;
	struct chunk_range range;
	struct fetcher *fetchers; /* [worker_count], owned */
};

/* --- what is read ahead --------------------------------------------------- */

static struct fragment find_fragment(const struct fetching *fetching,
				     const struct chunk *chunk, uint64_t record)
{
	uint64_t size = fetching->range.record_size;
	uint64_t begin =
		chunk->begin_byte - chunk->begin_byte % size + record * size;
	uint64_t from = MAX(begin, chunk->begin_byte);

	return (struct fragment){
		.slot = batch_slot(fetching->batch,
				   chunk->first_record + record),
		.from_bytes = (uint32_t)(from - begin),
		.length_bytes =
			(uint32_t)(MIN(begin + size, chunk->end_byte) - from),
		.at_bytes = (uint32_t)(from - chunk->begin_byte),
	};
}

static bool next_extent(void *context, struct read_extent *extent)
{
	struct fetcher *fetcher = context;
	const struct fetching *fetching = fetcher->fetching;
	const struct input *input = &fetching->external->reading.input;
	struct fetch_cursor *at = &fetcher->ahead;
	const struct input_file *file;
	struct fragment fragment;
	struct chunk chunk;

	if (at->chunk >= fetching->range.chunk_count)
		return false;
	chunk = chunk_range_at(&fetching->range, at->chunk);
	fragment = find_fragment(fetching, &chunk, at->record);
	file = &input->files[input_find_file(input, fragment.slot)];
	*extent = (struct read_extent){
		.direct_fd = file->direct_fd,
		.plain_fd = file->fd,
		.offset_bytes = (fragment.slot - file->first_record) *
					fetching->range.record_size +
				fragment.from_bytes,
		.length_bytes = fragment.length_bytes,
		.path = file->path,
	};
	if (++at->record == chunk.end_record - chunk.first_record)
		*at = (struct fetch_cursor){
			.chunk = at->chunk + fetching->worker_count,
		};
	return true;
}

/* --- chunks --------------------------------------------------------------- */

/* 0 or -errno with *failure filled. */
static int fill_chunk(struct fetcher *fetcher, const struct chunk *chunk,
		      uint8_t *target, struct failure *failure)
{
	uint64_t count = chunk->end_record - chunk->first_record;

	for (uint64_t i = 0; i < count; i++) {
		struct fragment fragment =
			find_fragment(fetcher->fetching, chunk, i);
		struct read_extent extent;
		const uint8_t *bytes;
		int ret = read_ahead_take(&fetcher->reads, &extent, &bytes,
					  failure);

		if (ret < 0)
			return ret;
		assert(ret == 1); /* next_extent() names the same ones */
		memcpy(target + fragment.at_bytes, bytes,
		       fragment.length_bytes);
	}
	return 0;
}

/* False: the run has failed, or its sink. */
static bool fetch_chunk(struct fetcher *fetcher, unsigned worker,
			uint64_t number)
{
	const struct fetching *fetching = fetcher->fetching;
	struct chunk chunk = chunk_range_at(&fetching->range, number);
	size_t length = chunk.end_byte - chunk.begin_byte;
	struct sink_slot *slot = sink_take(fetching->sink);
	struct failure failure;

	if (!slot)
		return false;
	if (fill_chunk(fetcher, &chunk, slot->data, &failure) < 0) {
		external_fail(fetching->external, &failure);
		return false;
	}
	slot->part = chunk.part;
	slot->offset_bytes = chunk.begin_byte;
	slot->length_bytes = length;
	sink_put(fetching->sink, slot);
	external_serve_output(fetching->external, worker, length);
	return true;
}

static void fetch(void *context, unsigned worker)
{
	struct fetching *fetching = context;
	uint64_t chunk = worker;
	bool good = true;

	while (good && chunk < fetching->range.chunk_count &&
	       !first_failure_stops(&fetching->external->failure)) {
		good = fetch_chunk(&fetching->fetchers[worker], worker, chunk);
		chunk += fetching->worker_count;
	}
	if (good)
		sink_help(fetching->sink);
}

/* --- all of it ------------------------------------------------------------ */

static bool open_fetchers(struct fetching *fetching)
{
	struct external *external = fetching->external;
	const struct external_plan *plan = &external->plan;
	size_t bytes = fetching->worker_count * sizeof(*fetching->fetchers);
	size_t each = (size_t)plan->read_depth * plan->read_slot_bytes;
	struct failure failure;

	fetching->fetchers = aligned_alloc(CACHE_PAIR_BYTES, bytes);
	if (!fetching->fetchers) {
		failure_no_memory(&failure);
		external_fail(external, &failure);
		return false;
	}
	memset(fetching->fetchers, 0, bytes);
	for (unsigned w = 0; w < fetching->worker_count; w++) {
		struct fetcher *fetcher = &fetching->fetchers[w];

		fetcher->fetching = fetching;
		fetcher->ahead.chunk = w;
		read_ahead_init(&fetcher->reads, plan->read_depth,
				external->read_memory + w * each,
				plan->read_slot_bytes, next_extent, fetcher);
	}
	return true;
}

static void close_fetchers(struct fetching *fetching)
{
	for (unsigned w = 0; w < fetching->worker_count; w++) {
		struct read_ahead *reads = &fetching->fetchers[w].reads;

		external_add_reads(&fetching->external->meter,
				   reads->read_bytes, reads->wait_ns);
		read_ahead_close(reads);
	}
	free(fetching->fetchers);
}

bool external_fetch(struct external *external, const struct batch *batch)
{
	struct sink *sink = external->ordering.destination.sink;
	struct fetching fetching = {
		.external = external,
		.batch = batch,
		.sink = sink,
		.worker_count = external->ordering.pool.worker_count,
		.range = chunk_range_of(sink, external->request.shape.size, 0,
					batch->record_count),
	};

	if (!open_fetchers(&fetching))
		return false;
	thread_pool_run(&external->ordering.pool, fetch, &fetching);
	close_fetchers(&fetching);
	return !first_failure_stops(&external->failure);
}
