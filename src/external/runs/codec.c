/*
 * codec.c - names of codecs, and the calls of lz4 and zstd
 */
#include "external/runs/codec.h"

#include <assert.h>
#include <errno.h>
#include <lz4.h>
#include <stdbool.h>
#include <string.h>
/* It declares the functions that put a context into the caller's memory. */
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include "base/base.h"
#include "base/parse.h"

/* A block that shrinks by less is not worth the time to decompress it. */
#define LEAST_SAVING(block_bytes) MAX(1, (block_bytes) / 16)

/* They are in the order of enum codec_kind. */
const char *const codec_names[] = { "none", "auto", "lz4", "zstd" };

/* --- names ---------------------------------------------------------------- */

int codec_parse(const char *text, struct codec *codec)
{
	size_t name_bytes = strcspn(text, ":");

	for (unsigned kind = 0; kind < ARRAY_LEN(codec_names); kind++) {
		bool has_level = kind == CODEC_ZSTD;
		uint64_t level = has_level;

		if (strlen(codec_names[kind]) != name_bytes ||
		    memcmp(text, codec_names[kind], name_bytes) != 0)
			continue;
		if (text[name_bytes] == ':' &&
		    (!has_level || parse_u64(text + name_bytes + 1, 1,
					     CODEC_LEVEL_MAX, &level) < 0))
			return -EINVAL;
		*codec = (struct codec){ .kind = kind, .level = (int)level };
		return 0;
	}
	return -EINVAL;
}

/* --- encoding ------------------------------------------------------------- */

/* zstd has parameters of their own for blocks above each of these sizes; so a
 * last block, which is shorter, may take more memory than a whole one. */
static size_t zstd_context_bytes(int level, size_t block_bytes_max)
{
	const size_t limits[] = { 16 * KIB, 128 * KIB, 256 * KIB, SIZE_MAX };
	size_t bytes = 0;

	for (unsigned i = 0; i < ARRAY_LEN(limits); i++) {
		size_t block_bytes = MIN(limits[i], block_bytes_max);
		size_t taken = ZSTD_estimateCCtxSize_usingCParams(
			ZSTD_getCParams(level, block_bytes, 0));

		bytes = MAX(bytes, taken);
	}
	return bytes;
}

static size_t context_bytes(const struct codec *codec, size_t block_bytes_max)
{
	size_t bytes = 0;

	if (codec->kind == CODEC_ZSTD)
		bytes = zstd_context_bytes(codec->level, block_bytes_max);
	else if (codec->kind != CODEC_NONE)
		bytes = (size_t)LZ4_sizeofState();
	return ROUND_UP(bytes, CACHE_PAIR_BYTES);
}

size_t codec_encoder_bytes(const struct codec *codec, size_t block_bytes_max)
{
	if (codec->kind == CODEC_NONE)
		return 0;
	return ROUND_UP(context_bytes(codec, block_bytes_max) + block_bytes_max,
			PAGE_BYTES);
}

void codec_encoder_init(struct codec_encoder *encoder,
			const struct codec *codec, size_t block_bytes_max,
			void *memory)
{
	size_t bytes = context_bytes(codec, block_bytes_max);

	*encoder = (struct codec_encoder){
		.codec = *codec,
		.block_bytes_max = block_bytes_max,
		.context = memory,
		.bytes = (uint8_t *)memory + bytes,
	};
	if (codec->kind == CODEC_ZSTD)
		encoder->context = ZSTD_initStaticCCtx(memory, bytes);
	assert(codec->kind == CODEC_NONE || encoder->context);
}

static size_t encode_lz4(struct codec_encoder *encoder, const uint8_t *block,
			 size_t block_bytes, size_t room)
{
	return (size_t)LZ4_compress_fast_extState(
		encoder->context, (const char *)block, (char *)encoder->bytes,
		(int)block_bytes, (int)room, 1);
}

static size_t encode_zstd(struct codec_encoder *encoder, const uint8_t *block,
			  size_t block_bytes, size_t room)
{
	size_t length =
		ZSTD_compressCCtx(encoder->context, encoder->bytes, room, block,
				  block_bytes, encoder->codec.level);

	return ZSTD_isError(length) ? 0 : length;
}

size_t codec_encode(struct codec_encoder *encoder, const uint8_t *block,
		    size_t block_bytes)
{
	size_t room = block_bytes - LEAST_SAVING(block_bytes);

	assert(block_bytes <= encoder->block_bytes_max);
	if (room == 0 || encoder->codec.kind == CODEC_NONE)
		return 0;
	if (encoder->codec.kind == CODEC_ZSTD)
		return encode_zstd(encoder, block, block_bytes, room);
	return encode_lz4(encoder, block, block_bytes, room);
}

/* --- decoding ------------------------------------------------------------- */

size_t codec_decoder_bytes(const struct codec *codec)
{
	if (codec->kind != CODEC_ZSTD)
		return 0;
	return ROUND_UP(ZSTD_estimateDCtxSize(), PAGE_BYTES);
}

void codec_decoder_init(struct codec_decoder *decoder,
			const struct codec *codec, void *memory)
{
	*decoder = (struct codec_decoder){ .codec = *codec };
	if (codec->kind != CODEC_ZSTD)
		return;
	decoder->context =
		ZSTD_initStaticDCtx(memory, codec_decoder_bytes(codec));
	assert(decoder->context);
}

static int decode_lz4(uint8_t *block, size_t block_bytes, const uint8_t *bytes,
		      size_t byte_count)
{
	int length = LZ4_decompress_safe((const char *)bytes, (char *)block,
					 (int)byte_count, (int)block_bytes);

	return length >= 0 && (size_t)length == block_bytes ? 0 : -EBADMSG;
}

static int decode_zstd(struct codec_decoder *decoder, uint8_t *block,
		       size_t block_bytes, const uint8_t *bytes,
		       size_t byte_count)
{
	size_t length = ZSTD_decompressDCtx(decoder->context, block,
					    block_bytes, bytes, byte_count);

	return length == block_bytes ? 0 : -EBADMSG;
}

int codec_decode(struct codec_decoder *decoder, uint8_t *block,
		 size_t block_bytes, const uint8_t *bytes, size_t byte_count)
{
	if (byte_count == 0 || byte_count >= block_bytes)
		return -EBADMSG;
	switch (decoder->codec.kind) {
	case CODEC_AUTO:
	case CODEC_LZ4:
		return decode_lz4(block, block_bytes, bytes, byte_count);
	case CODEC_ZSTD:
		return decode_zstd(decoder, block, block_bytes, bytes,
				   byte_count);
	default:
		return -EBADMSG;
	}
}
