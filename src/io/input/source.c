/* source.c - the parts of a source whose records are all in memory */
#include "io/input/source.h"

_Static_assert(sizeof(struct source_walk) <= SOURCE_READER_BYTES,
	       "a source's reader has room for ours");

int source_walk_open(struct source_reader *reader, uint64_t first_record,
		     uint64_t record_count, bool resident,
		     struct failure *failure)
{
	(void)failure;
	*source_walk_of(reader) = (struct source_walk){
		.is_resident = resident,
		.slot = first_record,
		.record_count = record_count,
	};
	return 0;
}

int source_walk_next(struct source_reader *reader, struct source_run *run,
		     struct failure *failure)
{
	const struct source *source = reader->source;
	struct source_walk *walk = source_walk_of(reader);

	(void)failure;
	*run = (struct source_run){
		.slot = walk->slot,
		.record_count = walk->record_count,
		.records = source->base + walk->slot * source->record_size,
	};
	walk->record_count = 0;
	return run->record_count > 0;
}

void source_walk_share(const struct source *source, unsigned worker,
		       unsigned worker_count, uint64_t *first_record,
		       uint64_t *record_count)
{
	*first_record = source->record_count * worker / worker_count;
	*record_count = source->record_count * (worker + 1) / worker_count -
			*first_record;
}

const uint8_t *source_walk_record(const struct source *source, uint64_t number)
{
	return source->base + number * source->record_size;
}
