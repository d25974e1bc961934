/*
 * destination.c - opens, sizes and commits the outputs or the stream
 */
#include "external/write/destination.h"

#include "sort/sort_setup.h"

void destination_init(struct destination *destination,
		      const struct sorter_config *config, bool is_lent)
{
	destination->config = config;
	if (is_lent)
		return;
	destination->output = &destination->files;
	destination->is_stream = !config->outputs_are_devices &&
				 stream_sink_suits(config->output_paths[0]);
}

/* Past the page cache, unless the user wants it otherwise: the cache would not
 * hold such files. */
int destination_open(struct destination *destination, uint64_t record_count,
		     struct failure *failure)
{
	struct sorter_config config = *destination->config;

	if (config.unique && config.output_count > 1)
		return failure_set(failure, EXIT_USAGE, "--unique", 0,
				   "one output file only, for what does not "
				   "fit into memory, or is merged");
	if (config.io == INPUT_AUTO)
		config.io = INPUT_DIRECT;
	if (destination->is_stream || !destination->output)
		return 0;
	/* sort_setup_outputs() gives outputs no size with config.unique.  So
	 * it is done where the size is not known yet; other outputs get the
	 * most that they may hold, and are cut in the end. */
	destination->has_sizes = record_count != EXTERNAL_RECORDS_UNKNOWN;
	config.unique = !destination->has_sizes;
	return sort_setup_outputs(&destination->files, &config, record_count,
				  failure);
}

void destination_lend(struct destination *destination, struct output *output)
{
	destination->output = output;
}

void destination_set_slots(struct destination *destination, uint8_t *memory,
			   unsigned slot_count, size_t chunk_bytes)
{
	if (destination->is_stream) {
		stream_sink_init(&destination->stream,
				 destination->config->output_paths[0], memory,
				 slot_count, chunk_bytes);
		destination->sink = &destination->stream.sink;
	} else if (destination->output) {
		output_set_slots(destination->output, memory, slot_count,
				 chunk_bytes);
		destination->sink = &destination->output->sink;
	}
}

int destination_begin(struct destination *destination, uint64_t record_count,
		      const uint8_t *header, struct failure *failure)
{
	const struct sorter_config *config = destination->config;

	if (destination->is_stream)
		return stream_sink_open(
			&destination->stream,
			sorter_config_written(config, record_count) *
				sorter_written(config).bytes,
			header, sort_setup_header_bytes(config), failure);
	if (destination->has_sizes)
		return 0;
	return sort_setup_output_sizes(&destination->files, config,
				       record_count, failure);
}

uint64_t destination_records(const struct destination *destination)
{
	return sink_bytes(destination->sink) /
	       sorter_written(destination->config).bytes;
}

int destination_finish(struct destination *destination, uint64_t record_count,
		       struct failure *failure)
{
	const struct sorter_config *config = destination->config;

	if (destination->is_stream)
		return stream_sink_commit(&destination->stream, failure);
	if (config->unique)
		return sort_setup_output_sizes(&destination->files, config,
					       record_count, failure);
	return 0;
}

int destination_commit(struct destination *destination, struct outfile *also,
		       struct failure *failure)
{
	bool sync = destination->config->sync;

	if (!destination->is_stream)
		return output_commit(&destination->files, sync, also, failure);
	return also ? outfile_commit(also, sync, failure) : 0;
}

void destination_close(struct destination *destination)
{
	output_close(&destination->files);
	stream_sink_close(&destination->stream);
}
