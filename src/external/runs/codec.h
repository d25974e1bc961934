/*
 * codec.h - compress blocks, each by itself, by the libraries lz4 and zstd
 *
 * An encoder and a decoder belong to one thread at a time, and take no memory
 * but what the caller gives them.
 */
#ifndef CODEC_H
#define CODEC_H

#include <stddef.h>
#include <stdint.h>

/* Ranks tell each other this number (cluster_agree.h). */
enum codec_kind {
	CODEC_NONE, /* blocks stay as they are */
	CODEC_AUTO, /* CODEC_LZ4 where codec_choice.h says that it pays */
	CODEC_LZ4,
	CODEC_ZSTD,
};

/* The levels above need more memory than a block is worth. */
#define CODEC_LEVEL_MAX 19

struct codec {
	enum codec_kind kind;
	int level; /* of CODEC_ZSTD: 1 .. CODEC_LEVEL_MAX; else 0 */
};

/* Read "none", "auto", "lz4", "zstd" (level 1) or "zstd:LEVEL".  0; or -EINVAL,
 * and *codec is left alone. */
int codec_parse(const char *text, struct codec *codec);

/* [enum codec_kind]: the name that codec_parse() reads, without the level. */
extern const char *const codec_names[];

/* --- encoding ------------------------------------------------------------- */

struct codec_encoder {
	struct codec codec;
	uint8_t *bytes; /* what codec_encode() made */
	size_t block_bytes_max;
	void *context;
};

/* Bytes of memory that an encoder takes for blocks of at most so many bytes:
 * whole pages. */
size_t codec_encoder_bytes(const struct codec *codec, size_t block_bytes_max);

/* memory: of that many bytes, page aligned. */
void codec_encoder_init(struct codec_encoder *encoder,
			const struct codec *codec, size_t block_bytes_max,
			void *memory);

/* Compress the block.  Returns how many bytes there are at encoder->bytes; or
 * 0: the block does not become smaller by a sixteenth, and stays as it is. */
size_t codec_encode(struct codec_encoder *encoder, const uint8_t *block,
		    size_t block_bytes);

/* --- decoding ------------------------------------------------------------- */

struct codec_decoder {
	struct codec codec;
	void *context;
};

/* The same for decoders. */
size_t codec_decoder_bytes(const struct codec *codec);
void codec_decoder_init(struct codec_decoder *decoder,
			const struct codec *codec, void *memory);

/* Decompress `bytes`, which may be any, into exactly block_bytes at block.  0;
 * or -EBADMSG: they are not such a block; then what lies at block is
 * undefined. */
int codec_decode(struct codec_decoder *decoder, uint8_t *block,
		 size_t block_bytes, const uint8_t *bytes, size_t byte_count);

#endif /* CODEC_H */
