/*
 * Any bytes as a block that a codec has made: refused, or exactly as long as
 * was expected; and any bytes through a codec and back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "external/runs/codec.h"

#define BLOCK_BYTES_MAX (16 * KIB)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct codec codecs[] = { { CODEC_LZ4, 0 }, { CODEC_ZSTD, 1 } };

static void require(int condition)
{
	if (!condition)
		abort();
}

static void *take(size_t bytes)
{
	void *memory = aligned_alloc(PAGE_BYTES, ROUND_UP(bytes, PAGE_BYTES));

	require(memory != NULL);
	return memory;
}

static void fuzz_decode(struct codec_decoder *decoder, const uint8_t *data,
			size_t size)
{
	size_t block_bytes = size < 3 ? 1 : 1 + (data[0] | data[1] << 8);
	uint8_t *block = malloc(block_bytes);
	int error;

	require(block != NULL);
	if (size >= 3) {
		error = codec_decode(decoder, block, block_bytes, data + 2,
				     size - 2);
		require(error == 0 || error == -EBADMSG);
	}
	free(block);
}

static void fuzz_round(const struct codec *codec, struct codec_decoder *decoder,
		       const uint8_t *data, size_t size)
{
	void *memory = take(codec_encoder_bytes(codec, BLOCK_BYTES_MAX));
	uint8_t *block = malloc(size);
	struct codec_encoder encoder;
	size_t stored;

	require(block != NULL);
	codec_encoder_init(&encoder, codec, BLOCK_BYTES_MAX, memory);
	stored = codec_encode(&encoder, data, size);
	if (stored > 0) {
		require(codec_decode(decoder, block, size, encoder.bytes,
				     stored) == 0);
		require(memcmp(block, data, size) == 0);
	}
	free(block);
	free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (unsigned c = 0; c < ARRAY_LEN(codecs); c++) {
		void *memory = take(codec_decoder_bytes(&codecs[c]) + 1);
		struct codec_decoder decoder;

		codec_decoder_init(&decoder, &codecs[c], memory);
		fuzz_decode(&decoder, data, size);
		if (size > 0 && size <= BLOCK_BYTES_MAX)
			fuzz_round(&codecs[c], &decoder, data, size);
		free(memory);
	}
	return 0;
}
