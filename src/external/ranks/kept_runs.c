/*
 * kept_runs.c - hands sorted batches to the thread that sends them, and writes
 * those that other ranks send to this one's scratch files
 */
#include "external/ranks/kept_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "external/runs/batch.h"

/* --- what this rank gives ------------------------------------------------- */

uint32_t given_runs_offer(struct given_runs *given, const struct batch *batch,
			  uint64_t input_record, uint64_t input_count)
{
	given->batch = batch;
	given->input_record = input_record;
	given->input_count = input_count;
	return atomic_fetch_add_explicit(&given->offered, 1,
					 memory_order_release);
}

bool given_runs_have(const struct given_runs *given)
{
	return atomic_load_explicit(&given->offered, memory_order_acquire) !=
	       atomic_load_explicit(&given->sent, memory_order_relaxed);
}

void given_runs_write_head(const struct given_runs *given, uint8_t *head)
{
	memset(head, 0, KEPT_RUNS_HEAD_BYTES);
	store_le64(head, given->input_record);
	store_le64(head + 8, given->input_count);
	store_le64(head + 16, given->batch->record_count);
}

void given_runs_copy(const struct given_runs *given, uint64_t offset_bytes,
		     uint8_t *target, size_t byte_count)
{
	const struct batch *batch = given->batch;
	uint32_t size = given->record_size;
	uint64_t record = offset_bytes / size;
	size_t skip = offset_bytes % size;

	while (byte_count > 0) {
		size_t length = MIN(byte_count, size - skip);

		memcpy(target,
		       batch->records + batch_slot(batch, record) * size + skip,
		       length);
		target += length;
		byte_count -= length;
		skip = 0;
		record++;
	}
}

void given_runs_sent(struct given_runs *given)
{
	thread_pool_set(
		given->pool, &given->sent,
		atomic_load_explicit(&given->sent, memory_order_relaxed) + 1);
}

/* --- what a keeper has ---------------------------------------------------- */

/* What a giver says of a batch, with each slice of it. */
struct batch_words {
	uint64_t input_record, input_count, record_count;
};

/* A message of a wave. */
struct slice {
	uint8_t *message;
	/* When it has been checked. */
	struct batch_words batch;
	bool begins; /* the batch */
	uint64_t byte_count;
};

struct kept_giver {
	/* Its range of the input, and how much of that its batches had. */
	uint64_t input_record, input_count, had_count;
	unsigned run_count, runs_max;
	/* The batch that is coming; left_records is 0: none is. */
	struct batch_words batch;
	uint64_t left_records;
	uint8_t *last_key; /* of the batch's latest block, owned */
	bool has_last_key;

	/* One has even waves and one odd ones; they are set before the writer
	 * is launched. */
	struct slice slices[2];
	/* The thread that writes has what follows. */
	uint64_t written_bytes; /* of the run at hand */
	struct run_index index;
	struct run_sink sink;
};

struct kept_runs {
	struct kept_runs_request request;
	struct thread_pool writer; /* the other worker writes */
	_Atomic uint32_t written_waves;
	struct kept_giver givers[]; /* [giver_count] */
};

/* --- what a giver says --------------------------------------------------- */

static struct batch_words read_words(const uint8_t *message)
{
	return (struct batch_words){
		.input_record = load_le64(message),
		.input_count = load_le64(message + 8),
		.record_count = load_le64(message + 16),
	};
}

/* A batch of records that the giver has, and has not sent yet.  Before its
 * range the difference wraps. */
static bool batch_is_good(const struct kept_runs *kept,
			  const struct kept_giver *giver,
			  const struct batch_words *batch)
{
	uint64_t left = giver->input_count - giver->had_count;
	uint64_t begin = giver->input_record;

	return batch->record_count > 0 && batch->record_count <= UINT32_MAX &&
	       batch->record_count <= batch->input_count &&
	       (kept->request.drops ||
		batch->record_count == batch->input_count) &&
	       batch->input_count <= left &&
	       batch->input_record - begin <=
		       giver->input_count - batch->input_count &&
	       giver->run_count < giver->runs_max;
}

/* Merges need the blocks of a run in order; records within blocks may be in
 * any, if the giver lies. */
static bool blocks_ascend(const struct kept_runs *kept,
			  struct kept_giver *giver, const uint8_t *records,
			  uint64_t byte_count)
{
	const struct run_index *index = &giver->index;
	uint32_t key_begin = index->shape.keys.begin;
	uint64_t block_bytes =
		(uint64_t)kept->request.plan->block_records * index->shape.size;

	for (uint64_t at = 0; at < byte_count; at += block_bytes) {
		const uint8_t *key = records + at + key_begin;

		if (giver->has_last_key &&
		    record_compare(&index->key_shape, giver->last_key, key) > 0)
			return false;
		memcpy(giver->last_key, key, index->key_shape.size);
		giver->has_last_key = true;
	}
	return true;
}

/* False: it cannot be. */
static bool check_slice(const struct kept_runs *kept, struct kept_giver *giver,
			struct slice *slice, uint64_t byte_count)
{
	uint32_t size = kept->request.shape->size;
	uint64_t records;

	*slice = (struct slice){ .message = slice->message };
	if (byte_count == 0 || byte_count == KEPT_RUNS_HEAD_BYTES)
		return true;
	slice->batch = read_words(slice->message);
	slice->begins = giver->left_records == 0;
	slice->byte_count = byte_count - KEPT_RUNS_HEAD_BYTES;
	records = slice->byte_count / size;
	if (slice->begins) {
		if (!batch_is_good(kept, giver, &slice->batch))
			return false;
		giver->batch = slice->batch;
		giver->left_records = slice->batch.record_count;
		giver->had_count += slice->batch.input_count;
		giver->run_count++;
		giver->has_last_key = false;
	}
	if (memcmp(&slice->batch, &giver->batch, sizeof(giver->batch)) != 0 ||
	    records > giver->left_records ||
	    (records < giver->left_records &&
	     records % kept->request.plan->block_records != 0))
		return false;
	giver->left_records -= records;
	return blocks_ascend(kept, giver, slice->message + KEPT_RUNS_HEAD_BYTES,
			     slice->byte_count);
}

/* --- the thread that writes ----------------------------------------------- */

static int begin_run(struct kept_giver *giver, const struct batch_words *batch,
		     struct failure *failure)
{
	uint64_t blocks =
		DIV_ROUND_UP(batch->record_count, giver->index.block_records);
	int error =
		run_index_begin(&giver->index, batch->input_record,
				batch->input_count, (uint32_t)blocks, failure);

	if (error)
		return error;
	run_sink_begin(&giver->sink, batch->record_count);
	giver->written_bytes = 0;
	return 0;
}

static int write_slice(struct kept_giver *giver, const struct slice *slice,
		       struct stage_sum *writes, struct failure *failure)
{
	const uint8_t *records = slice->message + KEPT_RUNS_HEAD_BYTES;
	struct sink *sink = &giver->sink.sink;
	uint64_t done = 0;
	int error = 0;

	stage_queue_resume(&sink->writes, writes);
	if (slice->begins)
		error = begin_run(giver, &slice->batch, failure);
	while (error == 0 && done < slice->byte_count) {
		struct sink_slot *slot = sink_take(sink);

		/* It waits for what is under way, and says why. */
		if (!slot)
			return sink_finish(sink, failure);
		slot->part = 0;
		slot->offset_bytes = giver->written_bytes;
		slot->length_bytes =
			MIN(sink->chunk_bytes, slice->byte_count - done);
		memcpy(slot->data, records + done, slot->length_bytes);
		done += slot->length_bytes;
		giver->written_bytes += slot->length_bytes;
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
	for (unsigned i = 0; i < kept->request.giver_count &&
			     !first_failure_stops(kept->request.failure);
	     i++)
		if (write_slice(&kept->givers[i],
				&kept->givers[i].slices[wave % 2],
				kept->request.writes, &failure) < 0)
			first_failure_note(kept->request.failure, &failure);
	atomic_store_explicit(&kept->written_waves, wave + 1,
			      memory_order_release);
}

/* --- waves ---------------------------------------------------------------- */

void kept_runs_expect(struct kept_runs *kept, unsigned giver,
		      uint64_t input_record, uint64_t input_count,
		      unsigned runs_max)
{
	kept->givers[giver].input_record = input_record;
	kept->givers[giver].input_count = input_count;
	kept->givers[giver].runs_max = runs_max;
}

uint8_t *kept_runs_place(const struct kept_runs *kept, uint32_t wave,
			 unsigned giver)
{
	return kept->givers[giver].slices[wave % 2].message;
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
	for (unsigned i = 0; i < kept->request.giver_count; i++) {
		struct kept_giver *giver = &kept->givers[i];

		*bad = i;
		if (!check_slice(kept, giver, &giver->slices[wave % 2],
				 byte_counts[i]))
			return -EBADMSG;
	}
	thread_pool_launch(&kept->writer, write_wave, kept);
	return 0;
}

uint32_t kept_runs_written(const struct kept_runs *kept)
{
	return atomic_load_explicit(&kept->written_waves, memory_order_acquire);
}

/* Each run begins where the one before ends, from the beginning of the giver's
 * range to its end. */
static bool runs_are_whole(const struct kept_giver *giver)
{
	uint64_t end = giver->input_record;

	for (unsigned r = 0; r < giver->index.run_count; r++) {
		const struct run *run = &giver->index.runs[r];

		if (run->input_record != end)
			return false;
		end += run->input_count;
	}
	return giver->left_records == 0 &&
	       end == giver->input_record + giver->input_count;
}

int kept_runs_end(struct kept_runs *kept, unsigned *bad,
		  struct failure *failure)
{
	for (unsigned i = 0; i < kept->request.giver_count; i++) {
		struct kept_giver *giver = &kept->givers[i];
		int error;

		/* Batches of several devices come in another order. */
		thread_pool_wait(&kept->writer);
		error = run_index_order(&giver->index, failure);
		if (error)
			return error;
		*bad = i;
		if (!runs_are_whole(giver))
			return -EBADMSG;
	}
	return 0;
}

/* --- the end -------------------------------------------------------------- */

int kept_runs_append(struct kept_runs *kept, struct run_index *index,
		     struct failure *failure)
{
	int error = 0;

	for (unsigned i = 0; i < kept->request.giver_count && error == 0; i++) {
		struct kept_giver *giver = &kept->givers[i];

		error = sink_finish(&giver->sink.sink, failure);
		if (error == 0)
			error = run_index_append(index, &giver->index, failure);
	}
	return error;
}

void kept_runs_add_up(const struct kept_runs *kept, uint64_t *plain_bytes,
		      uint64_t *stored_bytes, struct codec *codec)
{
	for (unsigned i = 0; i < kept->request.giver_count; i++) {
		const struct run_sink *sink = &kept->givers[i].sink;

		*plain_bytes += sink->plain_bytes;
		*stored_bytes += sink->stored_bytes;
		if (sink->choice.codec.kind != CODEC_NONE)
			*codec = sink->choice.codec;
	}
}

/* --- its life ------------------------------------------------------------- */

static int open_giver(struct kept_runs *kept, struct kept_giver *giver,
		      uint8_t *memory, struct failure *failure)
{
	const struct kept_runs_request *request = &kept->request;
	const struct external_plan *plan = request->plan;
	struct run_sink_request sink = request->sink;

	run_index_init(&giver->index, request->shape, plan->block_records);
	giver->last_key = malloc(giver->index.key_shape.size);
	if (!giver->last_key)
		return failure_no_memory(failure);
	for (unsigned i = 0; i < 2; i++, memory += plan->kept_message_bytes)
		giver->slices[i].message = memory;
	sink.index = &giver->index;
	sink.memory = memory;
	sink.slot_count = KEPT_RUNS_SLOTS;
	sink.depth = KEPT_RUNS_SLOTS - 1;
	sink.encoder_count = 1;
	sink.encoder_memory = memory + KEPT_RUNS_SLOTS * plan->slot_bytes;
	run_sink_open(&giver->sink, &sink);
	return 0;
}

int kept_runs_open(struct kept_runs **opened,
		   const struct kept_runs_request *request,
		   struct failure *failure)
{
	/* A sink has words that threads wait on. */
	struct kept_runs *kept =
		alloc_apart(1, sizeof(*kept) + request->giver_count *
						       sizeof(kept->givers[0]));
	uint64_t each =
		request->plan->kept_bytes / MAX(1, request->giver_count);
	int error = 0;

	*opened = kept;
	if (!kept)
		return failure_no_memory(failure);
	kept->request = *request;
	for (unsigned i = 0; i < request->giver_count && error == 0; i++)
		error = open_giver(kept, &kept->givers[i],
				   request->memory + i * each, failure);
	if (error == 0)
		error = thread_pool_start(&kept->writer, 2, THREAD_POOL_BESIDE,
					  request->topology, failure);
	return error;
}

void kept_runs_close(struct kept_runs *kept)
{
	if (!kept)
		return;
	thread_pool_stop(&kept->writer);
	for (unsigned i = 0; i < kept->request.giver_count; i++) {
		run_sink_close(&kept->givers[i].sink);
		run_index_free(&kept->givers[i].index);
		free(kept->givers[i].last_key);
	}
	free(kept);
}
