/*
 * run_sink.c - packs blocks, and writes them to the scratch files
 */
#include "external/write/run_sink.h"

#include <assert.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/flow.h"
#include "io/file_io.h"

_Static_assert(SCRATCH_DIRECTORIES_MAX <= 1 << 8, "the index has 8 bits");

enum { RUN_SLOT_FREE, RUN_SLOT_TAKEN, RUN_SLOT_WRITING };

static struct run_sink *run_sink_of(struct sink *sink)
{
	return (struct run_sink *)sink;
}

_Static_assert(offsetof(struct run_sink, sink) == 0, "a sink is a run sink");

/* --- writing, with the lock held ------------------------------------------ */

static void set_places(struct run_sink *run, const struct run_sink_slot *slot)
{
	uint64_t offset_bytes = slot->place.offset_bytes;
	uint64_t left_bytes = slot->stored_bytes;
	uint32_t block = slot->first_block;

	while (left_bytes > 0) {
		struct run_block *at = &run->index->blocks[block++];

		at->directory = slot->place.directory;
		at->offset_bytes = offset_bytes;
		offset_bytes += at->stored_bytes;
		left_bytes -= at->stored_bytes;
	}
}

static int write_plainly(const struct run_sink *run,
			 const struct run_sink_slot *slot, size_t done)
{
	return file_write_at(
		run->scratch->directories[slot->place.directory].fd,
		slot->slot.data + done, slot->padded_bytes - done,
		slot->place.offset_bytes + done);
}

static void write_slot(struct run_sink *run, struct run_sink_slot *slot);

/* A write has ended after so many bytes, or by an error: finish it plainly, or
 * write it to another directory. */
static void end_write(struct run_sink *run, struct run_sink_slot *slot,
		      int result)
{
	int error = write_plainly(run, slot, result > 0 ? (size_t)result : 0);
	struct failure failure;

	stage_queue_end(&run->sink.writes, slot->slot.begin_ns,
			error ? 0 : slot->padded_bytes);
	if (error == 0) {
		scratch_written(run->scratch, &slot->place, slot->padded_bytes);
		flow_add(FLOW_WRITE, 0, slot->padded_bytes);
		slot->slot.state = RUN_SLOT_FREE;
		return;
	}
	if (scratch_gave_up(run->scratch, &slot->place, -error)) {
		scratch_release(run->scratch, &slot->place, slot->padded_bytes);
		write_slot(run, slot);
		return;
	}
	slot->slot.state = RUN_SLOT_FREE;
	failure_set(&failure, EXIT_FILE,
		    run->scratch->directories[slot->place.directory].path,
		    -error, "cannot write its scratch file");
	first_failure_note(&run->failure, &failure);
}

static void write_slot(struct run_sink *run, struct run_sink_slot *slot)
{
	struct failure failure;
	int fd;

	if (scratch_take(run->scratch, slot->padded_bytes, &slot->place,
			 &failure) < 0) {
		slot->slot.state = RUN_SLOT_FREE;
		first_failure_note(&run->failure, &failure);
		return;
	}
	set_places(run, slot);
	slot->slot.state = RUN_SLOT_WRITING;
	fd = scratch_fd(run->scratch, slot->place.directory);
	slot->slot.begin_ns = stage_queue_begin(&run->sink.writes);
	if (!write_queue_submit(&run->queue, fd, slot->slot.data,
				slot->padded_bytes, slot->place.offset_bytes,
				slot))
		end_write(run, slot, 0);
}

static void reap(struct run_sink *run)
{
	int result;
	struct run_sink_slot *slot = write_queue_reap(&run->queue, &result);
	struct failure failure;

	if (slot) {
		end_write(run, slot, result);
		return;
	}
	failure_set(&failure, EXIT_FILE, NULL, -result,
		    "cannot wait for writes of scratch files");
	first_failure_note(&run->failure, &failure);
}

/* The time of their end is to be known. */
static void reap_ended(struct run_sink *run)
{
	while (run->sink.writes.sum && write_queue_has_ended(&run->queue))
		reap(run);
}

/* --- the sink's operations ------------------------------------------------ */

static struct run_sink_slot *find_free(struct run_sink *run)
{
	for (unsigned i = 0; i < run->slot_count; i++)
		if (run->slots[i].slot.state == RUN_SLOT_FREE)
			return &run->slots[i];
	return NULL;
}

/* There are more slots than workers, and a worker holds one at most: so if none
 * is free, one is being written. */
static struct sink_slot *take(struct sink *sink)
{
	struct run_sink *run = run_sink_of(sink);
	struct run_sink_slot *slot = NULL;

	pthread_mutex_lock(&run->lock);
	reap_ended(run);
	while (!first_failure_stops(&run->failure)) {
		slot = find_free(run);
		if (slot)
			break;
		reap(run);
	}
	if (slot) {
		slot->slot.state = RUN_SLOT_TAKEN;
		slot->encoder = run->idle_encoders[--run->idle_count];
	}
	pthread_mutex_unlock(&run->lock);
	return slot ? &slot->slot : NULL;
}

/* Compress the block, if that is chosen, to the target, which lies before it or
 * where it is.  Returns how many bytes are stored there. */
static uint32_t store_block(const struct run_sink *run,
			    const struct run_sink_slot *slot, uint8_t *target,
			    const uint8_t *block, uint32_t block_bytes)
{
	size_t length = 0;

	if (run->choice.codec.kind != CODEC_NONE)
		length = codec_encode(slot->encoder, block, block_bytes);
	if (length > 0) {
		memcpy(target, slot->encoder->bytes, length);
		return (uint32_t)length;
	}
	if (target != block)
		memmove(target, block, block_bytes);
	return block_bytes;
}

/* Pack the slot's blocks, and set what the index keeps of them.  No other
 * worker has them. */
static void pack_blocks(struct run_sink *run, struct run_sink_slot *slot)
{
	struct run_index *index = run->index;
	uint32_t block = slot->first_block;
	uint8_t *target = slot->slot.data;
	const uint8_t *bytes = slot->slot.data;
	const uint8_t *end = bytes + slot->slot.length_bytes;

	while (bytes < end) {
		struct run_block *at = &index->blocks[block];
		uint32_t block_bytes = at->record_count * index->shape.size;

		run_index_set_key(index, block, bytes);
		at->stored_bytes =
			store_block(run, slot, target, bytes, block_bytes);
		at->crc = run->crc(0, target, at->stored_bytes);
		target += at->stored_bytes;
		bytes += block_bytes;
		block++;
	}
	slot->stored_bytes = (uint32_t)(target - slot->slot.data);
	slot->padded_bytes = (uint32_t)ROUND_UP(slot->stored_bytes, PAGE_BYTES);
	memset(target, 0, slot->padded_bytes - slot->stored_bytes);
}

/* The first block of some chunks, for the choice. */
static struct codec_sample sample_block(const struct run_sink *run,
					const struct run_sink_slot *slot)
{
	uint64_t chunk_bytes = run->sink.chunk_bytes;
	uint32_t block_bytes =
		run->index->blocks[slot->first_block].record_count *
		run->index->shape.size;
	struct codec_sample sample = { 0 };

	if (codec_choice_wants(&run->choice,
			       slot->slot.offset_bytes / chunk_bytes,
			       DIV_ROUND_UP(run->run_bytes, chunk_bytes)))
		codec_choice_test(slot->encoder, slot->slot.data, block_bytes,
				  &sample);
	return sample;
}

static void put(struct sink *sink, struct sink_slot *sink_slot)
{
	struct run_sink *run = run_sink_of(sink);
	struct run_sink_slot *slot = (struct run_sink_slot *)sink_slot;
	uint64_t block_bytes =
		(uint64_t)run->index->block_records * run->index->shape.size;
	struct codec_sample sample;

	slot->first_block = run->first_block +
			    (uint32_t)(sink_slot->offset_bytes / block_bytes);
	sample = sample_block(run, slot);
	pack_blocks(run, slot);
	sink_lock(&run->lock, sink_slot);
	run->idle_encoders[run->idle_count++] = slot->encoder;
	codec_choice_add(&run->choice.sample, &sample);
	run->plain_bytes += sink_slot->length_bytes;
	run->stored_bytes += slot->stored_bytes;
	reap_ended(run);
	write_slot(run, slot);
	pthread_mutex_unlock(&run->lock);
}

static int finish(struct sink *sink, struct failure *failure)
{
	struct run_sink *run = run_sink_of(sink);

	pthread_mutex_lock(&run->lock);
	while (run->queue.in_flight > 0)
		reap(run);
	pthread_mutex_unlock(&run->lock);
	return first_failure_get(&run->failure, failure);
}

static const struct sink_ops operations = {
	.take = take,
	.put = put,
	.finish = finish,
};

/* --- its life ------------------------------------------------------------- */

static void open_encoders(struct run_sink *run,
			  const struct run_sink_request *request)
{
	size_t block_bytes =
		(size_t)run->index->block_records * run->index->shape.size;

	codec_choice_init(&run->choice, &request->codec, request->cpu_count,
			  &request->work);
	run->idle_count = request->encoder_count;
	for (unsigned i = 0; i < request->encoder_count; i++) {
		codec_encoder_init(
			&run->encoders[i], &request->codec, block_bytes,
			request->encoder_memory + i * request->encoder_bytes);
		run->idle_encoders[i] = &run->encoders[i];
	}
}

void run_sink_open(struct run_sink *run, const struct run_sink_request *request)
{
	memset(run, 0, sizeof(*run));
	assert(request->slot_count <= RUN_SINK_SLOTS_MAX);
	assert(request->encoder_count < request->slot_count);
	assert(request->chunk_bytes <= request->slot_bytes);
	pthread_mutex_init(&run->lock, NULL);
	write_queue_open(&run->queue, request->depth);
	run->index = request->index;
	run->scratch = request->scratch;
	run->crc = crc32c_kernel(request->kernel);
	open_encoders(run, request);
	run->slot_count = request->slot_count;
	for (unsigned i = 0; i < run->slot_count; i++)
		run->slots[i].slot.data =
			request->memory + i * request->slot_bytes;
	run->sink = (struct sink){
		.ops = &operations,
		.chunk_bytes = request->chunk_bytes,
		.part_count = 1,
		.part_bytes = &run->run_bytes,
	};
}

void run_sink_begin(struct run_sink *run, uint64_t record_count)
{
	run->first_block = run_index_extend(run->index, record_count);
	run->run_bytes = record_count * run->index->shape.size;
	codec_choice_begin_run(&run->choice, run->run_bytes, clock_now_ns(),
			       codec_choice_cpu_ns());
}

void run_sink_close(struct run_sink *run)
{
	if (run->sink.ops == NULL)
		return;
	write_queue_close(&run->queue);
	pthread_mutex_destroy(&run->lock);
	run->sink.ops = NULL;
}
