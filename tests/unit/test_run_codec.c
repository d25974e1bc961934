/*
 * test_run_codec.c - runs through scratch files and back, by each codec; and
 * what the merge says of bytes that have changed meanwhile
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "external/read/piece_source.h"
#include "external/write/run_sink.h"
#include "random.h"
#include "skip.h"

#define RUNS 3
#define RUN_RECORDS 2500
#define RECORD_BYTES 100
#define BLOCK_RECORDS 64
#define BLOCK_BYTES (BLOCK_RECORDS * RECORD_BYTES)
#define CHUNK_BYTES (8 * BLOCK_BYTES)
#define SLOT_BYTES ROUND_UP(CHUNK_BYTES, PAGE_BYTES)
#define SLOTS 4
#define READ_SLOT_BYTES (ROUND_UP(CHUNK_BYTES, PAGE_BYTES) + 2 * PAGE_BYTES)
#define READ_DEPTH 2
#define PIECE_RECORDS (RUN_RECORDS / 2)

static const struct codec codecs[] = {
	{ CODEC_NONE, 0 },
	{ CODEC_AUTO, 0 },
	{ CODEC_LZ4, 0 },
	{ CODEC_ZSTD, 1 },
};
static const struct record_shape shape =
	RECORD_SHAPE_OF_SLICE(RECORD_BYTES, 0, 8);

static char folder[64];
static const char *const paths[] = { folder, folder, folder };
static unsigned path_count = 1;
static struct failure failure;
static struct codec codec;
static struct scratch scratch;
static struct run_index run_index;
static struct run_sink sink;
static struct merge_plan plan;
static struct piece_source pieces;
static struct batch batches[2];
static uint8_t *slot_memory, *read_memory, *encoder_memory, *decoder_memory;

/* --- records -------------------------------------------------------------- */

/* Record number n of all: its key, then what its number makes it.  Every third
 * run of 64 is noise, and the others shrink. */
static void make_record(uint64_t n, uint8_t *record)
{
	store_be64(record, n);
	for (unsigned i = 8; i < RECORD_BYTES; i++)
		record[i] = (uint8_t)(n + i / 16);
	if (n / RUNS / BLOCK_RECORDS % 3 != 0)
		return;
	random_state = n;
	for (unsigned i = 8; i < RECORD_BYTES; i++)
		record[i] = (uint8_t)random_next();
}

/* --- writing -------------------------------------------------------------- */

static void write_chunk(unsigned run, uint64_t first, uint64_t count)
{
	struct sink_slot *slot = sink_take(&sink.sink);

	assert_non_null(slot);
	for (uint64_t i = 0; i < count; i++)
		make_record((first + i) * RUNS + run,
			    slot->data + i * RECORD_BYTES);
	slot->part = 0;
	slot->offset_bytes = first * RECORD_BYTES;
	slot->length_bytes = count * RECORD_BYTES;
	sink_put(&sink.sink, slot);
}

static void write_run(unsigned run)
{
	const uint64_t chunk = CHUNK_BYTES / RECORD_BYTES;

	assert_int_equal(
		run_index_begin(&run_index, 0, 0,
				DIV_ROUND_UP(RUN_RECORDS, BLOCK_RECORDS),
				&failure),
		0);
	run_sink_begin(&sink, RUN_RECORDS);
	for (uint64_t r = 0; r < RUN_RECORDS; r += chunk)
		write_chunk(run, r, MIN(chunk, RUN_RECORDS - r));
	assert_int_equal(sink_finish(&sink.sink, &failure), 0);
}

static void *take_pages(size_t bytes)
{
	void *memory =
		aligned_alloc(PAGE_BYTES, ROUND_UP(bytes + 1, PAGE_BYTES));

	assert_non_null(memory);
	return memory;
}

static void open_sink(const struct codec *wanted)
{
	size_t encoder_bytes = codec_encoder_bytes(wanted, BLOCK_BYTES);
	struct run_sink_request request = {
		.index = &run_index,
		.scratch = &scratch,
		.kernel = CPU_SCALAR,
		.slot_count = SLOTS,
		.slot_bytes = SLOT_BYTES,
		.chunk_bytes = CHUNK_BYTES,
		.depth = SLOTS - 1,
		.codec = *wanted,
		.cpu_count = 1,
		.encoder_bytes = encoder_bytes,
		.encoder_count = 2,
	};

	codec = *wanted;
	request.memory = slot_memory = take_pages(SLOTS * SLOT_BYTES);
	request.encoder_memory = encoder_memory = take_pages(2 * encoder_bytes);
	assert_int_equal(scratch_open(&scratch, paths, path_count, &failure),
			 0);
	run_index_init(&run_index, &shape, BLOCK_RECORDS);
	run_sink_open(&sink, &request);
}

static void write_runs(const struct codec *wanted)
{
	open_sink(wanted);
	for (unsigned run = 0; run < RUNS; run++)
		write_run(run);
}

/* --- reading -------------------------------------------------------------- */

static void open_pieces(void)
{
	const struct merge_request merge = {
		.index = &run_index,
		.run_count = RUNS,
		.piece_records = PIECE_RECORDS,
		.kernel = CPU_SCALAR,
	};

	pieces = (struct piece_source){
		.plan = &plan,
		.scratch = &scratch,
		.worker_count = 1,
		.slot_bytes = READ_SLOT_BYTES,
		.depth = READ_DEPTH,
		.kernel = CPU_SCALAR,
		.codec = codec,
		.decoder_bytes = codec_decoder_bytes(&codec),
	};
	pieces.memory = read_memory = take_pages(READ_DEPTH * READ_SLOT_BYTES);
	pieces.decoder_memory = decoder_memory =
		take_pages(pieces.decoder_bytes);
	for (unsigned b = 0; b < 2; b++)
		batches[b].records = malloc(PIECE_RECORDS * RECORD_BYTES);
	assert_int_equal(merge_plan_make(&plan, &merge, &failure), 0);
	assert_int_equal(piece_source_open(&pieces, &failure), 0);
}

static void check_record(const uint8_t *record, bool *seen)
{
	uint8_t wanted[RECORD_BYTES];
	uint64_t n = load_be64(record);

	assert_true(n < RUNS * RUN_RECORDS);
	assert_false(seen[n]);
	seen[n] = true;
	make_record(n, wanted);
	assert_memory_equal(record, wanted, RECORD_BYTES);
}

/* Returns 0 at the end of the piece, or what its reader says. */
static int read_piece(bool *seen)
{
	struct source_reader reader = { .source = &pieces.source };
	const struct source_ops *ops = pieces.source.ops;
	struct source_run run;
	int ret;

	assert_int_equal(ops->open(&reader, 0, 0, false, &failure), 0);
	while ((ret = ops->next(&reader, &run, &failure)) > 0)
		for (uint64_t r = 0; r < run.record_count; r++)
			check_record(run.records + r * RECORD_BYTES, seen);
	return ret;
}

static int read_all(bool *seen)
{
	unsigned piece = 0;

	open_pieces();
	while (piece_source_begin(&pieces, &batches[piece++ % 2])) {
		int ret = read_piece(seen);

		if (ret < 0)
			return ret;
	}
	return 0;
}

static void close_all(void)
{
	uint8_t **const taken[] = { &slot_memory,	 &encoder_memory,
				    &read_memory,	 &decoder_memory,
				    &batches[0].records, &batches[1].records };

	piece_source_close(&pieces);
	merge_plan_free(&plan);
	run_sink_close(&sink);
	run_index_free(&run_index);
	scratch_close(&scratch);
	for (unsigned i = 0; i < ARRAY_LEN(taken); i++) {
		free(*taken[i]);
		*taken[i] = NULL;
	}
}

/* --- there and back ------------------------------------------------------- */

static uint64_t sum_stored(void)
{
	uint64_t bytes = 0;

	for (uint32_t b = 0; b < run_index.block_count; b++)
		bytes += run_index.blocks[b].stored_bytes;
	return bytes;
}

static void run__comes_back(void **state)
{
	(void)state;
	for (unsigned c = 0; c < ARRAY_LEN(codecs); c++) {
		bool *seen = calloc(RUNS * RUN_RECORDS, sizeof(*seen));
		uint64_t plain = (uint64_t)RUNS * RUN_RECORDS * RECORD_BYTES;

		assert_non_null(seen);
		write_runs(&codecs[c]);
		assert_int_equal(read_all(seen), 0);
		for (unsigned n = 0; n < RUNS * RUN_RECORDS; n++)
			assert_true(seen[n]);
		assert_int_equal(sink.plain_bytes, plain);
		assert_int_equal(sink.stored_bytes, sum_stored());
		/* By auto, nothing is known yet. */
		if (codecs[c].kind == CODEC_NONE ||
		    codecs[c].kind == CODEC_AUTO)
			assert_int_equal(sum_stored(), plain);
		else
			assert_in_range(sum_stored(), plain / 3, plain / 3 * 2);
		close_all();
		free(seen);
	}
}

/* Blocks that shrink and blocks that do not lie side by side; a chunk takes no
 * more pages than it needs. */
static void run__is_packed(void **state)
{
	const struct codec lz4 = { CODEC_LZ4, 0 };
	uint64_t plain_blocks = 0;

	(void)state;
	write_runs(&lz4);
	for (uint32_t b = 0; b < run_index.block_count; b++) {
		const struct run_block *block = &run_index.blocks[b];

		plain_blocks += block->stored_bytes ==
				block->record_count * RECORD_BYTES;
		if (block->first_record * RECORD_BYTES % CHUNK_BYTES == 0)
			assert_int_equal(block->offset_bytes % PAGE_BYTES, 0);
		else
			assert_true(run_block_follows(block, &block[-1],
						      block[-1].stored_bytes));
	}
	assert_in_range(plain_blocks, run_index.block_count / 8,
			run_index.block_count / 2);
	assert_in_range(scratch.written_bytes, sum_stored(),
			sum_stored() + DIV_ROUND_UP(RUN_RECORDS * RECORD_BYTES,
						    CHUNK_BYTES) *
					       RUNS * PAGE_BYTES);
	close_all();
}

/* No file may have more than a few stripes, of which the last one is cut short:
 * its directory gives it up, and no room for it is held. */
static void run__with_a_full_directory(void **state)
{
	bool *seen = calloc(RUNS * RUN_RECORDS, sizeof(*seen));
	struct rlimit before, limit;

	(void)state;
	assert_non_null(seen);
	path_count = ARRAY_LEN(paths);
	open_sink(&codecs[0]);
	if (fallocate(scratch.directories[0].fd,
		      FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
		      PAGE_BYTES) < 0)
		skip_because("files in /tmp can have no holes");
	/* Writes find the limit one by one, and take one directory after the
	 * other. */
	sink.queue.refuses = true;
	for (unsigned d = 0; d < path_count; d++) {
		scratch.directories[d].can_allocate = false;
		scratch.directories[d].written_bytes = (uint64_t)d << 32;
	}
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = before;
	limit.rlim_cur = 6 * SLOT_BYTES + PAGE_BYTES;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (unsigned run = 0; run < RUNS; run++)
		write_run(run);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(scratch.directories[0].is_full);
	assert_true(scratch.directories[1].is_full);
	assert_int_equal(scratch.held_bytes, scratch.written_bytes);
	assert_int_equal(read_all(seen), 0);
	for (unsigned n = 0; n < RUNS * RUN_RECORDS; n++)
		assert_true(seen[n]);
	close_all();
	free(seen);
	path_count = 1;
}

/* With CODEC_AUTO a few blocks are tested while the first run is written. */
static void run__is_sampled(void **state)
{
	const struct codec wanted = { CODEC_AUTO, 0 };

	(void)state;
	write_runs(&wanted);
	assert_in_range(sink.choice.sample.plain_bytes, BLOCK_BYTES,
			8 * BLOCK_BYTES);
	assert_true(sink.choice.sample.stored_bytes <
		    sink.choice.sample.plain_bytes);
	assert_int_equal(sink.choice.sample.plain_bytes % BLOCK_BYTES, 0);
	close_all();
}

/* --- bytes that have changed ---------------------------------------------- */

static void read_stored(const struct run_block *block, uint8_t *bytes)
{
	int fd = scratch.directories[block->directory].fd;

	assert_int_equal(pread(fd, bytes, block->stored_bytes,
			       (off_t)block->offset_bytes),
			 block->stored_bytes);
}

static void write_stored(const struct run_block *block, const uint8_t *bytes)
{
	int fd = scratch.directories[block->directory].fd;

	assert_int_equal(pwrite(fd, bytes, block->stored_bytes,
				(off_t)block->offset_bytes),
			 block->stored_bytes);
	assert_int_equal(fsync(fd), 0);
}

static void expect_refused(const struct run_block *block, const char *finding)
{
	bool *seen = calloc(RUNS * RUN_RECORDS, sizeof(*seen));
	char wanted[FAILURE_WHY_BYTES];

	assert_non_null(seen);
	snprintf(wanted, sizeof(wanted),
		 "the %u bytes that were written to its scratch file at offset "
		 "%llu have changed: %s",
		 block->stored_bytes, (unsigned long long)block->offset_bytes,
		 finding);
	assert_true(read_all(seen) < 0);
	assert_int_equal(failure.status, EXIT_FILE);
	assert_string_equal(failure.what, folder);
	assert_string_equal(failure.why, wanted);
	free(seen);
}

static void run__with_a_flipped_bit_is_refused(void **state)
{
	uint8_t bytes[BLOCK_BYTES];

	(void)state;
	for (unsigned c = 0; c < ARRAY_LEN(codecs); c++) {
		struct run_block *block;

		write_runs(&codecs[c]);
		random_state = seed + c;
		block = &run_index
				 .blocks[random_next() % run_index.block_count];
		read_stored(block, bytes);
		bytes[random_next() % block->stored_bytes] ^=
			(uint8_t)(1u << random_next() % 8);
		write_stored(block, bytes);
		expect_refused(block, "their checksum differs");
		close_all();
	}
}

/* As if the checksum had not told. */
static void run__that_does_not_decompress_is_refused(void **state)
{
	uint8_t bytes[BLOCK_BYTES];

	(void)state;
	memset(bytes, 0xff, sizeof(bytes));
	for (unsigned c = 0; c < ARRAY_LEN(codecs); c++) {
		uint32_t b;
		struct run_block *block;

		if (codecs[c].kind == CODEC_NONE ||
		    codecs[c].kind == CODEC_AUTO)
			continue;
		write_runs(&codecs[c]);
		b = run_index.block_count / 2;
		while (run_index.blocks[b].stored_bytes == BLOCK_BYTES)
			b++;
		block = &run_index.blocks[b];
		write_stored(block, bytes);
		block->crc = crc32c_kernel(CPU_SCALAR)(0, bytes,
						       block->stored_bytes);
		expect_refused(block, "they cannot be decompressed");
		close_all();
	}
}

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_run_codec.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run__comes_back),
		cmocka_unit_test(run__is_packed),
		cmocka_unit_test(run__with_a_full_directory),
		cmocka_unit_test(run__is_sampled),
		cmocka_unit_test(run__with_a_flipped_bit_is_refused),
		cmocka_unit_test(run__that_does_not_decompress_is_refused),
	};

	random_begin();
	/* A file beyond the limit is an error. */
	signal(SIGXFSZ, SIG_IGN);
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
