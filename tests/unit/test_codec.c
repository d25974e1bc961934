/*
 * test_codec.c - blocks through each codec and back, and bytes that no codec
 * has made
 *
 * All memory ends where an unmapped page begins, so that each access beyond it
 * is a signal.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/base.h"
#include "external/runs/codec.h"
#include "random.h"

#define BLOCK_BYTES_MAX (512 * KIB)

static const struct codec codecs[] = {
	{ CODEC_AUTO, 0 }, { CODEC_LZ4, 0 },   { CODEC_ZSTD, 1 },
	{ CODEC_ZSTD, 3 }, { CODEC_ZSTD, 12 }, { CODEC_ZSTD, CODEC_LEVEL_MAX },
};

/* The sizes at which zstd's parameters change, and others. */
static const size_t sizes[] = { 1,	   2,	   3,
				15,	   16,	   17,
				100,	   1000,   16384,
				16385,	   65536,  128 * KIB,
				256 * KIB, 300000, BLOCK_BYTES_MAX };

static struct {
	uint8_t *memory;
	size_t bytes; /* whole pages */
} maps[8];
static unsigned map_count;

/* So many bytes before an unmapped page, until drop_memory(). */
static uint8_t *take_memory(size_t bytes)
{
	size_t whole = ROUND_UP(bytes, PAGE_BYTES);
	uint8_t *memory = mmap(NULL, whole + PAGE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	assert_true(map_count < ARRAY_LEN(maps));
	assert_int_equal(mprotect(memory + whole, PAGE_BYTES, PROT_NONE), 0);
	maps[map_count].memory = memory;
	maps[map_count++].bytes = whole + PAGE_BYTES;
	return memory + whole - bytes;
}

/* Give back the latest of it; or all. */
static void drop_latest(void)
{
	map_count--;
	munmap(maps[map_count].memory, maps[map_count].bytes);
}

static void drop_memory(void)
{
	while (map_count > 0)
		drop_latest();
}

static struct codec_encoder encoder;
static struct codec_decoder decoder;

static void open_codec(const struct codec *codec, size_t block_bytes_max)
{
	codec_encoder_init(
		&encoder, codec, block_bytes_max,
		take_memory(codec_encoder_bytes(codec, block_bytes_max)));
	codec_decoder_init(&decoder, codec,
			   take_memory(codec_decoder_bytes(codec)));
}

/* Text that shrinks to less than half. */
static void fill_text(uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = i % 8 ? 'a' : (uint8_t)('0' + random_next() % 10);
}

static void fill_noise(uint8_t *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)random_next();
}

/* --- there and back ------------------------------------------------------- */

static void check_block(const uint8_t *block, size_t size, bool shrinks)
{
	uint8_t *back = take_memory(size);
	size_t stored = codec_encode(&encoder, block, size);

	assert_true(stored < size);
	if (shrinks)
		assert_in_range(stored, 1, size / 2);
	if (stored > 0) {
		assert_int_equal(codec_decode(&decoder, back, size,
					      encoder.bytes, stored),
				 0);
		assert_memory_equal(back, block, size);
	}
	drop_latest();
}

/* The encoder is made for blocks of BLOCK_BYTES_MAX, and takes all smaller
 * ones, too. */
static void codec__takes_all_sizes(void **state)
{
	(void)state;
	for (unsigned c = 0; c < ARRAY_LEN(codecs); c++) {
		open_codec(&codecs[c], BLOCK_BYTES_MAX);
		for (unsigned s = 0; s < ARRAY_LEN(sizes); s++) {
			uint8_t *block = take_memory(sizes[s]);

			memset(block, 'x', sizes[s]);
			check_block(block, sizes[s], sizes[s] >= 1000);
			fill_text(block, sizes[s]);
			check_block(block, sizes[s], sizes[s] >= 1000);
			drop_latest();
		}
		drop_memory();
	}
}

/* An encoder for blocks of each size gets memory enough. */
static void codec__is_made_for_a_size(void **state)
{
	(void)state;
	for (unsigned c = 0; c < ARRAY_LEN(codecs); c++)
		for (unsigned s = 0; s < ARRAY_LEN(sizes); s++) {
			uint8_t *block = take_memory(sizes[s]);

			open_codec(&codecs[c], sizes[s]);
			fill_text(block, sizes[s]);
			check_block(block, sizes[s], sizes[s] >= 1000);
			drop_memory();
		}
}

static void codec__leaves_noise_alone(void **state)
{
	const size_t size = 64 * KIB;

	(void)state;
	for (unsigned c = 0; c < ARRAY_LEN(codecs); c++) {
		uint8_t *block = take_memory(size);

		open_codec(&codecs[c], size);
		fill_noise(block, size);
		assert_int_equal(codec_encode(&encoder, block, size), 0);
		/* A 32nd is not worth it. */
		memset(block, 0, size / 32);
		assert_int_equal(codec_encode(&encoder, block, size), 0);
		memset(block, 0, size / 8);
		assert_in_range(codec_encode(&encoder, block, size), 1,
				size / 16 * 15);
		drop_memory();
	}
}

static void codec__none_stores_nothing(void **state)
{
	const struct codec none = { CODEC_NONE, 0 };
	uint8_t bytes[100] = { 0 };

	(void)state;
	assert_int_equal(codec_encoder_bytes(&none, BLOCK_BYTES_MAX), 0);
	assert_int_equal(codec_decoder_bytes(&none), 0);
	codec_encoder_init(&encoder, &none, sizeof(bytes), NULL);
	codec_decoder_init(&decoder, &none, NULL);
	assert_int_equal(codec_encode(&encoder, bytes, sizeof(bytes)), 0);
	assert_int_equal(codec_decode(&decoder, bytes, 100, bytes, 50),
			 -EBADMSG);
}

/* --- bytes that have changed ---------------------------------------------- */

/* Any answer but a crash, and 0 only for a whole block. */
static void check_spoiled(uint8_t *back, size_t size, const uint8_t *stored,
			  size_t count)
{
	uint8_t *bytes = take_memory(count);
	int error;

	memcpy(bytes, stored, count);
	if (random_next() % 4 == 0)
		fill_noise(bytes, count);
	for (unsigned i = 0; i < 1 + random_next() % 4; i++)
		bytes[random_next() % count] ^=
			(uint8_t)(1u << random_next() % 8);
	error = codec_decode(&decoder, back, size, bytes, count);
	assert_true(error == 0 || error == -EBADMSG);
	drop_latest();
}

static void codec__survives_spoiled_bytes(void **state)
{
	const size_t size = 5000;

	(void)state;
	for (unsigned c = 0; c < ARRAY_LEN(codecs); c++) {
		uint8_t *block = take_memory(size);
		uint8_t *back = take_memory(size);
		size_t stored;

		open_codec(&codecs[c], size);
		for (unsigned round = 0; round < 500; round++) {
			fill_text(block, size);
			stored = codec_encode(&encoder, block, size);
			assert_in_range(stored, 1, size - 1);
			check_spoiled(back, size, encoder.bytes, stored);
		}
		/* No less has come of it: the decoder still works. */
		check_block(block, size, true);
		drop_memory();
	}
}

/* Each cut, and each other length that was expected, is refused. */
static void codec__refuses_other_lengths(void **state)
{
	const size_t size = 2000;

	(void)state;
	for (unsigned c = 0; c < ARRAY_LEN(codecs); c++) {
		uint8_t *block = take_memory(size);
		uint8_t *back = take_memory(size + 1);
		size_t stored;

		open_codec(&codecs[c], size);
		fill_text(block, size);
		stored = codec_encode(&encoder, block, size);
		assert_in_range(stored, 1, size - 1);
		for (size_t cut = 0; cut < stored; cut++)
			assert_int_equal(codec_decode(&decoder, back, size,
						      encoder.bytes, cut),
					 -EBADMSG);
		assert_int_equal(codec_decode(&decoder, back, size + 1,
					      encoder.bytes, stored),
				 -EBADMSG);
		assert_int_equal(codec_decode(&decoder, back, size - 1,
					      encoder.bytes, stored),
				 -EBADMSG);
		assert_int_equal(codec_decode(&decoder, back, stored,
					      encoder.bytes, stored),
				 -EBADMSG);
		drop_memory();
	}
}

/* --- names ---------------------------------------------------------------- */

static void check_name(const char *text, enum codec_kind kind, int level)
{
	struct codec codec = { CODEC_AUTO, 77 };

	assert_int_equal(codec_parse(text, &codec), 0);
	assert_int_equal(codec.kind, kind);
	assert_int_equal(codec.level, level);
}

static void codec_parse__names(void **state)
{
	static const char *const wrong[] = {
		"",	    "LZ4",     "lz4:1",
		"none:1",   "auto:1",  "zstd:",
		"zstd:0",   "zstd1",   "zst",
		"zstd:20",  "zstd:-1", "zstd:3 ",
		"zstd:3:4", "gzip",    "zstd:99999999999999999999",
	};

	(void)state;
	check_name("none", CODEC_NONE, 0);
	check_name("auto", CODEC_AUTO, 0);
	check_name("lz4", CODEC_LZ4, 0);
	check_name("zstd", CODEC_ZSTD, 1);
	check_name("zstd:1", CODEC_ZSTD, 1);
	check_name("zstd:19", CODEC_ZSTD, CODEC_LEVEL_MAX);
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
		struct codec codec = { CODEC_AUTO, 77 };

		assert_int_equal(codec_parse(wrong[i], &codec), -EINVAL);
		assert_int_equal(codec.level, 77);
	}
	assert_string_equal(codec_names[CODEC_ZSTD], "zstd");
	assert_string_equal(codec_names[CODEC_NONE], "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codec__takes_all_sizes),
		cmocka_unit_test(codec__is_made_for_a_size),
		cmocka_unit_test(codec__leaves_noise_alone),
		cmocka_unit_test(codec__none_stores_nothing),
		cmocka_unit_test(codec__survives_spoiled_bytes),
		cmocka_unit_test(codec__refuses_other_lengths),
		cmocka_unit_test(codec_parse__names),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
