/*
 * cluster_compress.c - records that are compressed before they are sent
 *
 * On a link that is slower than a codec, smaller messages arrive sooner. Before
 * an exchange in memory, each rank tells whether it has memory for its
 * messages; and with --compress=auto, whether some of their blocks become
 * smaller, and then, by the slowest link, whether lz4 makes sending faster. All
 * ranks compress, or none does.
 *
 * A message that is compressed has a table between its head and its records:
 * the length of each block as it is sent (u32, little endian).  Blocks have
 * BLOCK_BYTES of records, but for the last one; a block that the codec makes no
 * smaller is sent as it is.
 *
 * The receiver takes no memory for what is compressed.  The blocks arrive at
 * the end of the place where their records will be, and each is decompressed as
 * soon as it is whole.  What is left of the blocks is never longer than what is
 * left of the records, so it is not overwritten before it is needed.
 */
#include <inttypes.h>

#include "base/clock.h"
#include "cluster/agreement/cluster_link.h"
#include "cluster/cluster_state.h"
#include "cluster/collective/cluster_allgather.h"
#include "sort/sort_setup.h"

#define BLOCK_BYTES (64 * KIB) /* lz4 looks back so far */
#define SAMPLE_BLOCKS 8
/* A step that measures the links is this part of what a rank sends at most.
 * --compress=auto compresses nothing if that is less than the shortest step. */
#define LINK_PART 32

static uint64_t record_bytes(const struct cluster *cluster, uint64_t records)
{
	return records * cluster->sort_config->shape.size;
}

static uint64_t block_count(uint64_t bytes)
{
	return DIV_ROUND_UP(bytes, BLOCK_BYTES);
}

static uint32_t block_bytes(uint64_t bytes, uint64_t block)
{
	return (uint32_t)MIN(BLOCK_BYTES, bytes - block * BLOCK_BYTES);
}

/* Bytes of the records that go to a rank. */
static uint64_t target_bytes(const struct cluster *cluster, unsigned node)
{
	return record_bytes(cluster, cluster->send.targets[node].count);
}

uint64_t cluster_table_bytes(const struct cluster *cluster, uint64_t records)
{
	return cluster_compresses(cluster)
		       ? 4 * block_count(record_bytes(cluster, records))
		       : 0;
}

/* --- choosing the codec --------------------------------------------------- */

/* What each rank sends, if all send as much. */
static uint64_t mean_sent_bytes(const struct cluster *cluster)
{
	uint64_t ranks = cluster->rank.node_count;

	return record_bytes(cluster, cluster->agreement.whole_count) / ranks /
	       ranks * (ranks - 1);
}

/* All ranks come to the same result. */
static bool is_worth_asking(const struct cluster *cluster)
{
	const struct external_config *external = cluster->config->external;

	if (!external || external->codec.kind == CODEC_NONE ||
	    cluster_is_by_reference(cluster) || cluster->rank.node_count == 1)
		return false;
	return external->codec.kind != CODEC_AUTO ||
	       (!cluster_is_on_one_machine(cluster) &&
		mean_sent_bytes(cluster) / LINK_PART >= CLUSTER_LINK_BYTES_MIN);
}

/* Has this rank memory for its messages, as if they did not become smaller? */
static bool has_room(const struct cluster *cluster)
{
	const struct cluster_hello *own = &cluster->hellos[cluster->rank.rank];
	uint64_t sent_bytes = record_bytes(cluster, own->record_count);
	uint64_t needed_bytes =
		cluster_needed_bytes(own, cluster->agreement.whole_count,
				     cluster->rank.node_count, false);

	return own->memory_bytes == 0 ||
	       (needed_bytes <= own->memory_bytes &&
		sent_bytes <= own->memory_bytes - needed_bytes);
}

static int make_coders(struct cluster *cluster, const struct codec *codec)
{
	struct cluster_compress *compress = &cluster->compress;
	struct arena *arena = &compress->coders_arena;
	size_t workers = cluster->pool.worker_count;
	size_t encoder_bytes = codec_encoder_bytes(codec, BLOCK_BYTES);
	size_t decoder_bytes = codec_decoder_bytes(codec);
	int error = sort_setup_arena(
		arena,
		workers * (encoder_bytes + BLOCK_BYTES + PAGE_BYTES) +
			decoder_bytes,
		1, 0, cluster->failure);

	if (error)
		return error;
	codec_decoder_init(&compress->decoder, codec,
			   arena_take(arena, decoder_bytes, PAGE_BYTES));
	for (size_t w = 0; w < workers; w++) {
		codec_encoder_init(
			&compress->coders[w].encoder, codec, BLOCK_BYTES,
			arena_take(arena, encoder_bytes, PAGE_BYTES));
		compress->coders[w].block =
			arena_take(arena, BLOCK_BYTES, PAGE_BYTES);
	}
	return 0;
}

/* Compress some blocks of the message to the next rank: do they become smaller?
 * A rank that has no records for it does as the others do. */
static bool shrinks(struct cluster *cluster, struct codec_sample *sample)
{
	struct cluster_coder *coder = &cluster->compress.coders[0];
	unsigned node = (cluster->rank.rank + 1) % cluster->rank.node_count;
	uint64_t bytes = target_bytes(cluster, node);

	for (unsigned i = 0; i < SAMPLE_BLOCKS && bytes > 0; i++) {
		uint64_t block = block_count(bytes) * i / SAMPLE_BLOCKS;
		uint32_t plain_bytes = block_bytes(bytes, block);
		struct codec_sample one;

		cluster_send_read_records(cluster, node, block * BLOCK_BYTES,
					  coder->block, plain_bytes);
		codec_choice_test(&coder->encoder, coder->block, plain_bytes,
				  &one);
		codec_choice_add(sample, &one);
	}
	return bytes == 0 || codec_gains((double)sample->plain_bytes,
					 (double)sample->stored_bytes);
}

/* Do all ranks wish to compress? */
static int agree(struct cluster *cluster, bool *wish)
{
	uint64_t own = *wish, told[RANK_NODES_MAX];
	int error = cluster_allgather_words(&cluster->rank, cluster->exchange,
					    &own, 1, told, cluster->failure);

	for (unsigned i = 0; i < cluster->rank.node_count && error == 0; i++)
		*wish &= told[i] == 1;
	return error;
}

/* Predict the exchange with and without lz4, by the slowest link. */
static int predict(struct cluster *cluster, bool *pays)
{
	struct cluster_sending *sending = &cluster->result->sending;
	const struct codec_sample *sample = &sending->sample;
	double bytes = (double)mean_sent_bytes(cluster), left;
	struct cluster_link link = {
		.own = cluster->config->external->rates.link,
	};
	int error = cluster_link_learn(
		&link, cluster->hellos, &cluster->rank, cluster->exchange,
		mean_sent_bytes(cluster) / LINK_PART, cluster->failure);

	if (error || link.least == 0 || sample->plain_bytes == 0) {
		*pays = link.least > 0;
		return error;
	}
	left = (double)sample->stored_bytes / (double)sample->plain_bytes;
	sending->link_rate = link.least;
	sending->none_ns = 1e9 * bytes / (double)link.least;
	sending->lz4_ns = codec_sending_ns(sample, cluster->pool.worker_count,
					   bytes, sending->none_ns * left);
	*pays = codec_gains(sending->none_ns, sending->lz4_ns);
	return 0;
}

int cluster_compress_choose(struct cluster *cluster)
{
	struct cluster_compress *compress = &cluster->compress;
	struct codec_sample *sample = &cluster->result->sending.sample;
	bool wish = has_room(cluster), is_auto;
	struct codec codec;
	int error = 0;

	if (compress->is_chosen || !is_worth_asking(cluster))
		return 0;
	compress->is_chosen = true;
	codec = cluster->config->external->codec;
	is_auto = codec.kind == CODEC_AUTO;
	if (is_auto)
		codec.kind = CODEC_LZ4;
	if (wish)
		error = make_coders(cluster, &codec);
	if (error == 0 && wish && is_auto)
		wish = shrinks(cluster, sample);
	if (error == 0)
		error = agree(cluster, &wish);
	if (error == 0 && wish && is_auto) {
		error = predict(cluster, &wish);
		if (error == 0)
			error = agree(cluster, &wish);
	}
	if (error == 0 && wish)
		cluster->result->sending.codec = compress->codec = codec;
	return error;
}

/* --- sending ---------------------------------------------------------------
 */

static void compress_block(struct cluster *cluster, struct cluster_coder *coder,
			   unsigned node, uint64_t block)
{
	uint8_t *table = cluster->send.targets[node].compressed;
	uint64_t bytes = target_bytes(cluster, node);
	uint32_t plain_bytes = block_bytes(bytes, block);
	const uint8_t *stored = coder->encoder.bytes;
	size_t length;

	cluster_send_read_records(cluster, node, block * BLOCK_BYTES,
				  coder->block, plain_bytes);
	length = codec_encode(&coder->encoder, coder->block, plain_bytes);
	if (length == 0) {
		stored = coder->block;
		length = plain_bytes;
	}
	store_le32(table + 4 * block, (uint32_t)length);
	memcpy(table + 4 * block_count(bytes) + block * BLOCK_BYTES, stored,
	       length);
}

/* All workers: each takes every worker_count-th block, and leaves it where it
 * would lie if none were compressed. */
static void compress_part(void *context, unsigned worker)
{
	struct cluster *cluster = context;
	uint64_t number = worker;

	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		uint64_t blocks = block_count(target_bytes(cluster, i));

		if (i == cluster->rank.rank)
			continue;
		for (; number < blocks; number += cluster->pool.worker_count) {
			compress_block(cluster,
				       &cluster->compress.coders[worker], i,
				       number);
			if (worker == 0)
				cluster_serve(cluster);
		}
		number -= blocks;
	}
}

/* Move the blocks together, behind the table.  Returns the bytes of both. */
static uint64_t join_blocks(uint8_t *table, uint64_t blocks)
{
	uint8_t *to = table + 4 * blocks;
	const uint8_t *from = to;

	for (uint64_t b = 0; b < blocks; b++, from += BLOCK_BYTES) {
		uint32_t length = load_le32(table + 4 * b);

		memmove(to, from, length);
		to += length;
	}
	return (uint64_t)(to - table);
}

/* Memory for all messages as if no block became smaller. */
static int take_messages(struct cluster *cluster)
{
	struct arena *arena = &cluster->compress.messages_arena;
	struct cluster_target *targets = cluster->send.targets;
	unsigned ranks = cluster->rank.node_count;
	uint64_t bytes = 0;
	int error;

	for (unsigned i = 0; i < ranks; i++)
		bytes += target_bytes(cluster, i) +
			 cluster_table_bytes(cluster, targets[i].count);
	arena_unmap(arena);
	error = sort_setup_arena(
		arena, bytes, ranks,
		sort_setup_worker_nodes(&cluster->topology, &cluster->pool),
		cluster->failure);
	for (unsigned i = 0; i < ranks && error == 0; i++)
		targets[i].compressed = arena_take(
			arena,
			target_bytes(cluster, i) +
				cluster_table_bytes(cluster, targets[i].count),
			CACHE_PAIR_BYTES);
	return error;
}

int cluster_compress_messages(struct cluster *cluster)
{
	uint64_t *figures = cluster->report->figures;
	uint64_t begin_ns = clock_now_ns();
	int error;

	if (!cluster_compresses(cluster))
		return 0;
	error = take_messages(cluster);
	if (error)
		return error;
	thread_pool_run(&cluster->pool, compress_part, cluster);
	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		const struct cluster_target *target = &cluster->send.targets[i];
		uint64_t bytes = target_bytes(cluster, i);

		if (i == cluster->rank.rank)
			continue;
		cluster->send.send_bytes[i] =
			target->head_bytes +
			join_blocks(target->compressed, block_count(bytes));
		figures[CLUSTER_PLAIN_BYTES] += bytes;
	}
	cluster_add_ns(cluster, CLUSTER_COMPRESS_NS, &begin_ns);
	return first_failure_get(&cluster->first_failure, cluster->failure);
}

/* --- receiving -------------------------------------------------------------
 */

int cluster_compress_check(struct cluster *cluster, struct failure *failure)
{
	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		const struct cluster_source *source =
			&cluster->receive.sources[i];

		/* If the message is too short, stored_bytes has wrapped. */
		if (source->stored_bytes >
		    record_bytes(cluster, source->record_count))
			return exchange_blame(
				cluster->exchange, i, failure,
				"announces %" PRIu64 " bytes for %" PRIu64
				" records",
				exchange_bytes(cluster->exchange, i,
					       cluster->rank.rank),
				source->record_count);
	}
	return 0;
}

/* May the next block be so long?  What is left behind it must not be longer
 * than its records, and is nothing behind the last one.  A rank may send its
 * table again, with other lengths: so no length is read twice. */
static bool length_is_good(const struct cluster_source *source, uint64_t bytes,
			   uint32_t length)
{
	uint64_t left = bytes - source->taken_blocks * BLOCK_BYTES;
	uint64_t stored_left = source->stored_bytes - source->taken_bytes;
	uint32_t plain_bytes = block_bytes(bytes, source->taken_blocks);

	return length > 0 && length <= plain_bytes && length <= stored_left &&
	       stored_left - length <= left - plain_bytes;
}

/* Decompress the next block.  False: it cannot be decompressed. */
static bool take_block(struct cluster *cluster, struct cluster_source *source,
		       uint32_t length)
{
	struct cluster_compress *compress = &cluster->compress;
	uint64_t bytes = record_bytes(cluster, source->record_count);
	uint8_t *records = cluster->receive.base +
			   record_bytes(cluster, source->first_slot);
	uint8_t *block = records + source->taken_blocks * BLOCK_BYTES;
	uint32_t plain_bytes = block_bytes(bytes, source->taken_blocks);
	uint8_t *stored = compress->coders[0].block;

	/* Both places may overlap. */
	memcpy(stored,
	       records + bytes - source->stored_bytes + source->taken_bytes,
	       length);
	source->taken_bytes += length;
	source->taken_blocks++;
	if (length < plain_bytes)
		return codec_decode(&compress->decoder, block, plain_bytes,
				    stored, length) == 0;
	memcpy(block, stored, length);
	return true;
}

const char *cluster_decompress(struct cluster *cluster, unsigned node,
			       uint64_t *prefix_bytes)
{
	struct cluster_source *source = &cluster->receive.sources[node];
	uint64_t bytes = record_bytes(cluster, source->record_count);
	uint64_t before = source->head_bytes + source->table_bytes;
	const uint8_t *table = source->head + source->head_bytes;

	while (*prefix_bytes >= before &&
	       source->taken_blocks < block_count(bytes)) {
		uint32_t length = load_le32(table + 4 * source->taken_blocks);

		if (!length_is_good(source, bytes, length))
			return "sends blocks of impossible "
			       "lengths: " EXCHANGE_FAULTY;
		if (before + source->taken_bytes + length > *prefix_bytes)
			break;
		if (!take_block(cluster, source, length))
			return "sent a block that cannot be "
			       "decompressed: " EXCHANGE_FAULTY;
	}
	*prefix_bytes = source->head_bytes +
			MIN(bytes, source->taken_blocks * BLOCK_BYTES);
	return NULL;
}
