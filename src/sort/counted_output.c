#include "sort/counted_output.h"

void counted_output_begin(struct counted_output *output,
			  const struct counted_output_config *config)
{
	const struct record_counts *counts = config->counts;

	output->config = *config;
	output->range = chunk_range_of(config->sink, counts->shape.size, 0,
				       record_counts_whole(counts));
	atomic_store_explicit(&output->next_chunk, 0, memory_order_relaxed);
}

/* Chunks are whole pages, and so hold whole records.  False: the sink has
 * failed, and keeps the reason. */
static bool write_chunk(const struct counted_output *output,
			const struct chunk *chunk)
{
	struct sink *sink = output->config.sink;
	size_t length = chunk->end_byte - chunk->begin_byte;
	uint8_t *place =
		sink_place(sink, chunk->part, chunk->begin_byte, length);
	struct sink_slot *slot = place ? NULL : sink_take(sink);

	if (!place && !slot)
		return false;
	record_counts_copy(output->config.counts, chunk->first_record,
			   chunk->end_record - chunk->first_record,
			   place ? place : slot->data);
	if (place)
		return true;
	slot->part = chunk->part;
	slot->offset_bytes = chunk->begin_byte;
	slot->length_bytes = length;
	sink_put(sink, slot);
	return true;
}

void counted_output_run(struct counted_output *output, unsigned worker)
{
	const struct counted_output_config *config = &output->config;

	while (!first_failure_stops(config->failure)) {
		uint64_t number = atomic_fetch_add_explicit(
			&output->next_chunk, 1, memory_order_relaxed);
		struct chunk chunk;

		if (number >= output->range.chunk_count)
			break;
		chunk = chunk_range_at(&output->range, number);
		if (!write_chunk(output, &chunk))
			return;
		if (config->serve)
			config->serve(config->serve_context, worker,
				      chunk.end_byte - chunk.begin_byte);
	}
	sink_help(config->sink);
}
