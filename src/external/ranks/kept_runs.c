/*
 * kept_runs.c - writes the runs that other ranks send to this one's scratch
 * files
 */
#include "external/ranks/kept_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* What a source says of a batch, with each slice of it. */
struct batch_words {
	uint64_t input_record, input_count, record_count;
};

struct kept_source {
	/* Its part of the input, and how much of that its batches had. */
	uint64_t input_record, input_count, had_count;
	unsigned run_count, runs_max;
	/* The batch that is coming; left_records is 0: none is. */
	struct batch_words batch;
	uint64_t left_records;
	uint8_t *last_key; /* of the batch's latest block, owned */
	bool has_last_key;

	uint8_t *messages[2]; /* of even and of odd waves */
	/* The thread that writes has what follows. */
	uint64_t written_bytes; /* of the run at hand */
	struct run_index index;
	struct run_sink sink;
};

/* A message of a wave, when it has been checked. */
struct slice {
	struct batch_words batch;
	bool begins; /* the batch */
	uint64_t byte_count;
};

struct kept_runs {
	struct kept_runs_request request;
	struct thread_pool writer; /* the other worker writes */
	/* [source_count] of even and of odd waves: before the writer is
	 * launched. */
	struct slice *slices[2];
	_Atomic uint32_t written_waves;
	struct first_failure failure;
	struct kept_source *sources; /* [source_count] */
};

/* --- what a source says --------------------------------------------------- */

static struct batch_words read_words(const uint8_t *message)
{
	return (struct batch_words){
		.input_record = load_le64(message),
		.input_count = load_le64(message + 8),
		.record_count = load_le64(message + 16),
	};
}

/* A batch of records that the source has, and has not sent yet.  Before its
 * part the difference wraps. */
static bool batch_is_good(const struct kept_runs *kept,
			  const struct kept_source *source,
			  const struct batch_words *batch)
{
	uint64_t left = source->input_count - source->had_count;
	uint64_t begin = source->input_record;

	return batch->record_count > 0 && batch->record_count <= UINT32_MAX &&
	       batch->record_count <= batch->input_count &&
	       (kept->request.unique ||
		batch->record_count == batch->input_count) &&
	       batch->input_count <= left &&
	       batch->input_record - begin <=
		       source->input_count - batch->input_count &&
	       source->run_count < source->runs_max;
}

static bool words_are_equal(const struct batch_words *a,
			    const struct batch_words *b)
{
	return a->input_record == b->input_record &&
	       a->input_count == b->input_count &&
	       a->record_count == b->record_count;
}

/* Merges need the blocks of a run in order; records within blocks may be in
 * any, if the source lies. */
static bool blocks_ascend(const struct kept_runs *kept,
			  struct kept_source *source, const uint8_t *records,
			  uint64_t byte_count)
{
	const struct run_index *index = &source->index;
	uint32_t key_begin = index->shape.keys.begin;
	uint64_t block_bytes =
		(uint64_t)kept->request.plan->block_records * index->shape.size;

	for (uint64_t at = 0; at < byte_count; at += block_bytes) {
		const uint8_t *key = records + at + key_begin;

		if (source->has_last_key &&
		    record_compare(&index->key_shape, source->last_key, key) >
			    0)
			return false;
		memcpy(source->last_key, key, index->key_shape.size);
		source->has_last_key = true;
	}
	return true;
}

/* False: it cannot be. */
static bool check_slice(const struct kept_runs *kept,
			struct kept_source *source, const uint8_t *message,
			uint64_t byte_count, struct slice *slice)
{
	uint32_t size = kept->request.shape->size;
	uint64_t records, bytes;

	*slice = (struct slice){ 0 };
	if (byte_count == 0 || byte_count == KEPT_RUNS_HEAD_BYTES)
		return true;
	bytes = byte_count - KEPT_RUNS_HEAD_BYTES;
	records = bytes / size;
	slice->batch = read_words(message);
	slice->begins = source->left_records == 0;
	slice->byte_count = bytes;
	if (slice->begins) {
		if (!batch_is_good(kept, source, &slice->batch))
			return false;
		source->batch = slice->batch;
		source->left_records = slice->batch.record_count;
		source->had_count += slice->batch.input_count;
		source->run_count++;
		source->has_last_key = false;
	}
	if (!words_are_equal(&slice->batch, &source->batch) ||
	    records > source->left_records ||
	    (records < source->left_records &&
	     records % kept->request.plan->block_records != 0))
		return false;
	source->left_records -= records;
	return blocks_ascend(kept, source, message + KEPT_RUNS_HEAD_BYTES,
			     bytes);
}

/* --- the thread that writes ----------------------------------------------- */

static int begin_run(struct kept_source *source,
		     const struct batch_words *batch, struct failure *failure)
{
	uint64_t blocks =
		DIV_ROUND_UP(batch->record_count, source->index.block_records);
	int error =
		run_index_begin(&source->index, batch->input_record,
				batch->input_count, (uint32_t)blocks, failure);

	if (error)
		return error;
	run_sink_begin(&source->sink, batch->record_count);
	source->written_bytes = 0;
	return 0;
}

static int write_slice(struct kept_source *source, const struct slice *slice,
		       const uint8_t *records, struct failure *failure)
{
	struct sink *sink = &source->sink.sink;
	uint64_t done = 0;
	int error = 0;

	if (slice->byte_count > 0 && slice->begins)
		error = begin_run(source, &slice->batch, failure);
	while (error == 0 && done < slice->byte_count) {
		struct sink_slot *slot = sink_take(sink);

		/* It waits for what is under way, and says why. */
		if (!slot)
			return sink_finish(sink, failure);
		slot->part = 0;
		slot->offset_bytes = source->written_bytes;
		slot->length_bytes =
			MIN(sink->chunk_bytes, slice->byte_count - done);
		memcpy(slot->data, records + done, slot->length_bytes);
		done += slot->length_bytes;
		source->written_bytes += slot->length_bytes;
		sink_put(sink, slot);
	}
	return error;
}

static void write_wave(void *context, unsigned worker)
{
	struct kept_runs *kept = context;
	uint32_t wave = atomic_load_explicit(&kept->written_waves,
					     memory_order_relaxed);
	struct failure failure;

	(void)worker;
	for (unsigned i = 0; i < kept->request.source_count &&
			     !first_failure_stops(&kept->failure);
	     i++)
		if (write_slice(&kept->sources[i], &kept->slices[wave % 2][i],
				kept->sources[i].messages[wave % 2] +
					KEPT_RUNS_HEAD_BYTES,
				&failure) < 0)
			first_failure_note(&kept->failure, &failure);
	atomic_store_explicit(&kept->written_waves, wave + 1,
			      memory_order_release);
}

/* --- waves ---------------------------------------------------------------- */

void kept_runs_expect(struct kept_runs *kept, unsigned source,
		      uint64_t input_record, uint64_t input_count,
		      unsigned runs_max)
{
	kept->sources[source].input_record = input_record;
	kept->sources[source].input_count = input_count;
	kept->sources[source].runs_max = runs_max;
}

uint8_t *kept_runs_place(const struct kept_runs *kept, uint32_t wave,
			 unsigned source)
{
	return kept->sources[source].messages[wave % 2];
}

bool kept_runs_length_is_good(const struct kept_runs *kept, uint64_t byte_count)
{
	uint32_t size = kept->request.shape->size;
	uint64_t bytes = byte_count - KEPT_RUNS_HEAD_BYTES;

	return byte_count == 0 ||
	       (byte_count >= KEPT_RUNS_HEAD_BYTES && bytes % size == 0 &&
		bytes / size <= kept->request.plan->kept_slice_records);
}

int kept_runs_take(struct kept_runs *kept, uint32_t wave,
		   const uint64_t *byte_counts, unsigned *bad)
{
	for (unsigned i = 0; i < kept->request.source_count; i++) {
		struct kept_source *source = &kept->sources[i];
		struct slice *slice = &kept->slices[wave % 2][i];

		*bad = i;
		if (!check_slice(kept, source, source->messages[wave % 2],
				 byte_counts[i], slice))
			return -EBADMSG;
	}
	thread_pool_launch(&kept->writer, write_wave, kept);
	return 0;
}

uint32_t kept_runs_written(const struct kept_runs *kept)
{
	return atomic_load_explicit(&kept->written_waves, memory_order_acquire);
}

int kept_runs_check(const struct kept_runs *kept, struct failure *failure)
{
	return first_failure_get(&kept->failure, failure);
}

/* Each run begins where the one before ends, from the beginning of the source's
 * part to its end. */
static bool runs_are_whole(const struct kept_source *source)
{
	uint64_t end = source->input_record;

	for (unsigned r = 0; r < source->index.run_count; r++) {
		const struct run *run = &source->index.runs[r];

		if (run->input_record != end)
			return false;
		end += run->input_count;
	}
	return source->left_records == 0 &&
	       end == source->input_record + source->input_count;
}

int kept_runs_end(struct kept_runs *kept, unsigned *bad,
		  struct failure *failure)
{
	for (unsigned i = 0; i < kept->request.source_count; i++) {
		struct kept_source *source = &kept->sources[i];
		int error;

		/* Of several devices, batches come in another order. */
		thread_pool_wait(&kept->writer);
		error = run_index_order(&source->index, failure);
		if (error)
			return error;
		*bad = i;
		if (!runs_are_whole(source))
			return -EBADMSG;
	}
	return 0;
}

/* --- the end -------------------------------------------------------------- */

int kept_runs_append(struct kept_runs *kept, struct run_index *index,
		     struct failure *failure)
{
	int error = first_failure_get(&kept->failure, failure);

	for (unsigned i = 0; i < kept->request.source_count && error == 0;
	     i++) {
		struct kept_source *source = &kept->sources[i];

		error = sink_finish(&source->sink.sink, failure);
		if (error == 0)
			error = run_index_append(index, &source->index,
						 failure);
	}
	return error;
}

void kept_runs_add_up(const struct kept_runs *kept, uint64_t *plain_bytes,
		      uint64_t *stored_bytes, struct codec *codec)
{
	for (unsigned i = 0; i < kept->request.source_count; i++) {
		const struct run_sink *sink = &kept->sources[i].sink;

		*plain_bytes += sink->plain_bytes;
		*stored_bytes += sink->stored_bytes;
		if (sink->choice.codec.kind != CODEC_NONE)
			*codec = sink->choice.codec;
	}
}

/* --- its life ------------------------------------------------------------- */

static int open_source(struct kept_runs *kept, struct kept_source *source,
		       uint8_t *memory, struct failure *failure)
{
	const struct kept_runs_request *request = &kept->request;
	const struct external_plan *plan = request->plan;
	struct run_sink_request sink = {
		.index = &source->index,
		.scratch = request->scratch,
		.kernel = request->kernel,
		.slot_count = KEPT_RUNS_SLOTS,
		.slot_bytes = plan->slot_bytes,
		.chunk_bytes = plan->run_chunk_bytes,
		.depth = KEPT_RUNS_SLOTS - 1,
		.codec = request->codec,
		.cpu_count = request->cpu_count,
		.work = request->work,
		.encoder_bytes = plan->encoder_bytes,
		.encoder_count = 1,
	};

	run_index_init(&source->index, request->shape, plan->block_records);
	source->last_key = malloc(source->index.key_shape.size);
	if (!source->last_key)
		return failure_no_memory(failure);
	for (unsigned i = 0; i < 2; i++, memory += plan->kept_message_bytes)
		source->messages[i] = memory;
	sink.memory = memory;
	sink.encoder_memory = memory + KEPT_RUNS_SLOTS * plan->slot_bytes;
	run_sink_open(&source->sink, &sink);
	return 0;
}

int kept_runs_open(struct kept_runs **opened,
		   const struct kept_runs_request *request,
		   struct failure *failure)
{
	struct kept_runs *kept = aligned_alloc(
		CACHE_PAIR_BYTES, ROUND_UP(sizeof(*kept), CACHE_PAIR_BYTES));
	uint64_t each =
		request->plan->kept_bytes / MAX(1, request->source_count);
	size_t sources_bytes;
	int error = 0;

	*opened = kept;
	if (!kept)
		return failure_no_memory(failure);
	memset(kept, 0, sizeof(*kept));
	kept->request = *request;
	for (unsigned i = 0; i < 2; i++)
		kept->slices[i] =
			calloc(request->source_count, sizeof(**kept->slices));
	/* A sink has words that threads wait on. */
	sources_bytes =
		ROUND_UP(request->source_count * sizeof(struct kept_source),
			 CACHE_PAIR_BYTES);
	kept->sources = aligned_alloc(CACHE_PAIR_BYTES, sources_bytes);
	if (!kept->slices[0] || !kept->slices[1] || !kept->sources) {
		free(kept->sources);
		kept->sources = NULL;
		return failure_no_memory(failure);
	}
	memset(kept->sources, 0, sources_bytes);
	for (unsigned i = 0; i < request->source_count && error == 0; i++)
		error = open_source(kept, &kept->sources[i],
				    request->memory + i * each, failure);
	if (error == 0)
		error = thread_pool_start_beside(&kept->writer, 2,
						 request->topology, failure);
	return error;
}

void kept_runs_close(struct kept_runs *kept)
{
	if (!kept)
		return;
	thread_pool_stop(&kept->writer);
	for (unsigned i = 0; kept->sources && i < kept->request.source_count;
	     i++) {
		run_sink_close(&kept->sources[i].sink);
		run_index_free(&kept->sources[i].index);
		free(kept->sources[i].last_key);
	}
	free(kept->sources);
	free(kept->slices[0]);
	free(kept->slices[1]);
	free(kept);
}
