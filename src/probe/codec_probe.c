/*
 * codec_probe.c - measures how fast a codec is, and how small records become
 */
#include "probe/codec_probe.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "record/generator.h"
#include "record/record.h"
#include "system/allowance.h"
#include "system/arena.h"

struct blocks {
	uint8_t *plain, *stored;
	size_t *lengths; /* of stored ones; 0: it stays as it is */
	uint64_t count, bytes, stored_bytes;
	uint8_t *room; /* for one */
	struct codec_encoder encoder;
	struct codec_decoder decoder;
};

static int compare_keys(const void *a, const void *b)
{
	return memcmp(a, b, RECORD_KEY_LENGTH_DEFAULT);
}

static void make_records(const struct codec_probe *probe, struct blocks *blocks)
{
	const struct generator_kind kind = { .ascii = !probe->binary };
	size_t count = blocks->count * blocks->bytes / GENERATOR_RECORD_BYTES;

	generator_fill(&kind, 0, blocks->plain, count);
	qsort(blocks->plain, count, GENERATOR_RECORD_BYTES, compare_keys);
}

/* A run's block is copied to where it is written from, too. */
static uint64_t encode(struct blocks *blocks)
{
	uint64_t begin_ns = clock_now_ns();

	blocks->stored_bytes = 0;
	for (uint64_t i = 0; i < blocks->count; i++) {
		uint64_t at = i * blocks->bytes;
		size_t length = codec_encode(&blocks->encoder,
					     blocks->plain + at, blocks->bytes);

		memcpy(blocks->stored + at, blocks->encoder.bytes, length);
		blocks->lengths[i] = length;
		blocks->stored_bytes += length ? length : blocks->bytes;
	}
	return clock_now_ns() - begin_ns;
}

static uint64_t decode(struct blocks *blocks)
{
	uint64_t begin_ns = clock_now_ns();

	for (uint64_t i = 0; i < blocks->count; i++) {
		const uint8_t *stored = blocks->stored + i * blocks->bytes;
		size_t length = blocks->lengths[i];

		if (length > 0 &&
		    codec_decode(&blocks->decoder, blocks->room, blocks->bytes,
				 stored, length) < 0)
			assert(false);
	}
	return clock_now_ns() - begin_ns;
}

/* Lay the blocks out in the arena, which is mapped for them. */
static int map_blocks(const struct codec_probe *probe, struct blocks *blocks,
		      struct arena *arena)
{
	size_t all = blocks->count * blocks->bytes;
	size_t encoder = codec_encoder_bytes(&probe->codec, blocks->bytes);
	size_t decoder = codec_decoder_bytes(&probe->codec);
	size_t lengths = blocks->count * sizeof(*blocks->lengths);
	size_t bytes = 2 * all + blocks->bytes + encoder + decoder + lengths +
		       6 * PAGE_BYTES;
	int error = bytes > allowance_memory_bytes() ? -ENOMEM
						     : arena_map(arena, bytes);

	if (error)
		return error;
	blocks->plain = arena_take(arena, all, PAGE_BYTES);
	blocks->stored = arena_take(arena, all, PAGE_BYTES);
	blocks->room = arena_take(arena, blocks->bytes, PAGE_BYTES);
	blocks->lengths = arena_take(arena, lengths, PAGE_BYTES);
	codec_encoder_init(&blocks->encoder, &probe->codec, blocks->bytes,
			   arena_take(arena, encoder, PAGE_BYTES));
	codec_decoder_init(&blocks->decoder, &probe->codec,
			   arena_take(arena, decoder, PAGE_BYTES));
	return 0;
}

int codec_probe_run(const struct codec_probe *probe,
		    struct codec_figures *figures, struct failure *failure)
{
	struct blocks blocks = {
		.bytes = ROUND_DOWN(probe->block_bytes, GENERATOR_RECORD_BYTES),
	};
	struct arena arena = { 0 };
	int error;

	blocks.count = MAX(1, probe->bytes / blocks.bytes);
	error = map_blocks(probe, &blocks, &arena);
	if (error)
		return failure_set(failure, EXIT_RESOURCES, NULL, -error,
				   "records of %llu bytes",
				   (unsigned long long)probe->bytes);
	make_records(probe, &blocks);
	/* The first time touches all memory. */
	encode(&blocks);
	decode(&blocks);
	for (unsigned i = 0; i < probe->rounds; i++) {
		figures->encode_ns[i] = encode(&blocks);
		figures->decode_ns[i] = decode(&blocks);
	}
	figures->block_bytes = blocks.bytes;
	figures->plain_bytes = blocks.count * blocks.bytes;
	figures->stored_bytes = blocks.stored_bytes;
	arena_unmap(&arena);
	return 0;
}
