#include "external/read/record_fetch.h"

#include <assert.h>
#include <stdlib.h>

#include "base/failure.h"
#include "io/input/read_ahead.h"
#include "sort/chunk_range.h"

/* A record, as far as it lies in a chunk. */
struct record_part {
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
	const struct record_fetch_config *config;
	struct chunk_range range;
	struct fetcher *fetchers; /* [worker_count of the pool], owned */
};

/* --- what is read ahead --------------------------------------------------- */

static struct record_part find_part(const struct fetching *fetching,
				    const struct chunk *chunk, uint64_t record)
{
	uint64_t size = fetching->range.record_size;
	uint64_t begin =
		chunk->begin_byte - chunk->begin_byte % size + record * size;
	uint64_t from = MAX(begin, chunk->begin_byte);

	return (struct record_part){
		.slot = batch_slot(fetching->config->batch,
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
	const struct input *input = fetching->config->input;
	struct fetch_cursor *at = &fetcher->ahead;
	const struct input_file *file;
	struct record_part part;
	struct chunk chunk;

	if (at->chunk >= fetching->range.chunk_count)
		return false;
	chunk = chunk_range_at(&fetching->range, at->chunk);
	part = find_part(fetching, &chunk, at->record);
	file = &input->files[input_find_file(input, part.slot)];
	*extent = (struct read_extent){
		.direct_fd = file->direct_fd,
		.plain_fd = file->fd,
		.offset_bytes = (part.slot - file->first_record) *
					fetching->range.record_size +
				part.from_bytes,
		.length_bytes = part.length_bytes,
		.path = file->path,
	};
	if (++at->record == chunk.end_record - chunk.first_record)
		*at = (struct fetch_cursor){
			.chunk = at->chunk +
				 fetching->config->pool->worker_count,
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
		struct record_part part =
			find_part(fetcher->fetching, chunk, i);
		struct read_extent extent;
		const uint8_t *bytes;
		int ret = read_ahead_take(&fetcher->reads, &extent, &bytes,
					  failure);

		if (ret < 0)
			return ret;
		assert(ret == 1); /* next_extent() names the same parts */
		memcpy(target + part.at_bytes, bytes, part.length_bytes);
	}
	return 0;
}

/* False: the run has failed, or its sink. */
static bool fetch_chunk(struct fetcher *fetcher, unsigned worker,
			uint64_t number)
{
	const struct fetching *fetching = fetcher->fetching;
	const struct record_fetch_config *config = fetching->config;
	struct sink *sink = config->sink;
	struct chunk chunk = chunk_range_at(&fetching->range, number);
	size_t length = chunk.end_byte - chunk.begin_byte;
	struct sink_slot *slot = sink_take(sink);
	struct failure failure;

	if (!slot)
		return false;
	if (fill_chunk(fetcher, &chunk, slot->data, &failure) < 0) {
		first_failure_note(config->failure, &failure);
		return false;
	}
	slot->part = chunk.part;
	slot->offset_bytes = chunk.begin_byte;
	slot->length_bytes = length;
	sink_put(sink, slot);
	config->serve(config->serve_context, worker, length);
	return true;
}

static void fetch(void *context, unsigned worker)
{
	struct fetching *fetching = context;
	const struct record_fetch_config *config = fetching->config;
	uint64_t chunk = worker;
	bool good = true;

	while (good && chunk < fetching->range.chunk_count &&
	       !first_failure_stops(config->failure)) {
		good = fetch_chunk(&fetching->fetchers[worker], worker, chunk);
		chunk += config->pool->worker_count;
	}
	if (good)
		sink_help(config->sink);
}

/* --- all of it ------------------------------------------------------------ */

static bool open_fetchers(struct fetching *fetching)
{
	const struct record_fetch_config *config = fetching->config;
	unsigned workers = config->pool->worker_count;
	struct failure failure;

	fetching->fetchers = aligned_alloc(
		CACHE_PAIR_BYTES, workers * sizeof(*fetching->fetchers));
	if (!fetching->fetchers) {
		failure_no_memory(&failure);
		first_failure_note(config->failure, &failure);
		return false;
	}
	memset(fetching->fetchers, 0, workers * sizeof(*fetching->fetchers));
	for (unsigned w = 0; w < workers; w++) {
		struct fetcher *fetcher = &fetching->fetchers[w];

		fetcher->fetching = fetching;
		fetcher->ahead.chunk = w;
		read_ahead_init(&fetcher->reads, config->depth,
				config->memory + (size_t)w * config->depth *
							 config->slot_bytes,
				config->slot_bytes, next_extent, fetcher);
	}
	return true;
}

static void close_fetchers(struct fetching *fetching, uint64_t *read_bytes,
			   uint64_t *wait_ns)
{
	unsigned workers = fetching->config->pool->worker_count;

	for (unsigned w = 0; fetching->fetchers && w < workers; w++) {
		struct read_ahead *reads = &fetching->fetchers[w].reads;

		*read_bytes += reads->read_bytes;
		*wait_ns += reads->wait_ns;
		read_ahead_close(reads);
	}
	free(fetching->fetchers);
}

bool record_fetch_run(const struct record_fetch_config *config,
		      uint64_t *read_bytes, uint64_t *wait_ns)
{
	struct fetching fetching = { .config = config };
	bool good;

	fetching.range = chunk_range_of(config->sink, config->record_size, 0,
					config->batch->record_count);
	good = open_fetchers(&fetching);
	if (good)
		thread_pool_run(config->pool, fetch, &fetching);
	close_fetchers(&fetching, read_bytes, wait_ns);
	return good && !first_failure_stops(config->failure);
}
