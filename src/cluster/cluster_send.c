/*
 * cluster_send.c - our own records in bucket order, and the messages that take
 * them to the other ranks
 *
 * Records are sent from where they lie in the input, bucket by bucket.
 *
 * A message has a head: the number of records that each bucket of the
 * receiver's share gets from us (u32, little endian), and the digest of the
 * division of the keys (u64), which is the same on all ranks unless one of them
 * errs.  Behind the head are the records, which cluster_compress.c may have
 * compressed; or, if records are sent by reference, their entries (u64), with
 * slots of our input.
 */
#include <sodium.h>
#include <stdlib.h>

#include "cluster/cluster_state.h"

/* Copied in some 10 ms. */
#define SERVE_RECORDS (1 << 20)
/* Buckets whose lists are prefetched before the one at hand is copied, which
 * takes less time than memory does. */
#define PREFETCH_BUCKETS 8

void cluster_send_take_memory(struct cluster *cluster)
{
	const struct sorter_config *config = cluster->sort_config;
	struct cluster_send *send = &cluster->send;

	send->gather = gather_kernel(config->kernel, config->shape.size);
	send->index_mask = ~(UINT64_MAX << cluster->plan.index_bits);
	send->start = arena_take(
		&send->arena, ((size_t)cluster->splitters.bucket_count + 1) * 4,
		CACHE_PAIR_BYTES);
	send->entries = arena_take(
		&send->arena, (cluster->input.record_count + LINE_ENTRIES) * 8,
		CACHE_PAIR_BYTES);
}

int cluster_send_compact(struct cluster *cluster)
{
	struct cluster_send *send = &cluster->send;
	const struct bucket_set set = bucketing_set(&cluster->bucketing);
	uint32_t start = 0, served = 0, fetched = 0;
	int error = 0;

	for (uint32_t b = 0; b < set.bucket_count && error == 0; b++) {
		send->start[b] = start;
		if (start - served >= SERVE_RECORDS) {
			served = start;
			error = exchange_serve(cluster->exchange,
					       cluster->failure);
		}
		for (; fetched < MIN(b + PREFETCH_BUCKETS, set.bucket_count);
		     fetched++)
			bucket_set_prefetch(&set, fetched);
		start += bucket_set_copy_lines(&set, b, send->entries + start);
	}
	send->start[set.bucket_count] = start;
	return error;
}

void cluster_serve(void *context)
{
	struct cluster *cluster = context;
	struct failure failure;

	if (exchange_serve(cluster->exchange, &failure) < 0)
		first_failure_note(&cluster->first_failure, &failure);
}

/* --- what all ranks must have alike --------------------------------------- */

typedef crypto_generichash_blake2b_state hash_state;

static void hash_number(hash_state *hash, uint64_t number)
{
	uint8_t bytes[8];

	store_le64(bytes, number);
	crypto_generichash_blake2b_update(hash, bytes, sizeof(bytes));
}

static void hash_sampled(hash_state *hash, const struct splitters *splitters)
{
	hash_number(hash, splitters->skip);
	hash_number(hash, splitters->low);
	hash_number(hash, splitters->shift);
	/* A common record is a key, encoded. */
	crypto_generichash_blake2b_update(hash, splitters->common_record,
					  splitters->skip);
	crypto_generichash_blake2b_update(
		hash, (const uint8_t *)splitters->splitters,
		splitters->splitter_count * sizeof(splitters->splitters[0]));
}

/* The digest is that of all that decides which records a rank gets.  Ranks with
 * other splitters would each be right by their own, and yet the outputs not be
 * in order. */
static uint64_t digest_division(const struct cluster *cluster)
{
	const struct splitters *splitters = &cluster->splitters;
	const struct share_cut *cuts = cluster->send.cuts;
	uint8_t digest[crypto_generichash_blake2b_BYTES_MIN];
	hash_state hash;

	crypto_generichash_blake2b_init(&hash, NULL, 0, sizeof(digest));
	hash_number(&hash, splitters->kind);
	hash_number(&hash, splitters->bucket_count);
	if (splitters->kind == SPLITTERS_SAMPLED)
		hash_sampled(&hash, splitters);
	for (unsigned k = 0; k <= cluster->rank.node_count; k++) {
		hash_number(&hash, cuts[k].bucket);
		hash_number(&hash, cuts[k].position);
	}
	crypto_generichash_blake2b_final(&hash, digest, sizeof(digest));
	return load_le64(digest);
}

/* --- messages ------------------------------------------------------------- */

/* Records that lower ranks have in a bucket.  Only sampled ones are cut. */
static uint64_t count_lower(const struct cluster *cluster, uint32_t bucket)
{
	const uint32_t *counts = cluster->sample.counts;
	size_t bucket_count = cluster->splitters.bucket_count;
	uint64_t count = 0;

	for (unsigned i = 0; counts && i < cluster->rank.rank; i++)
		count += counts[i * bucket_count + bucket];
	return count;
}

/* What a share gets of our records in a bucket: where it begins in entries. */
static uint32_t part_of_bucket(const struct cluster *cluster,
			       const struct share_cut *cut, uint32_t bucket,
			       uint32_t *count)
{
	const struct cluster_send *send = &cluster->send;
	uint32_t begin = send->start[bucket];
	uint32_t own_count = send->start[bucket + 1] - begin;
	uint32_t skip = 0;

	*count = own_count;
	/* Only the first and the last bucket may be cut. */
	if (bucket == cut[0].bucket || bucket == cut[1].bucket)
		share_of_bucket(cut, bucket, count_lower(cluster, bucket),
				own_count, &skip, count);
	return begin + skip;
}

static void build_message(struct cluster *cluster, unsigned node)
{
	struct cluster_send *send = &cluster->send;
	struct cluster_target *target = &send->targets[node];
	const struct share_cut *cut = &send->cuts[node];
	uint32_t bucket = share_first_bucket(cut);
	uint32_t end = share_end_bucket(cut);
	uint8_t *number = target->head;

	target->first = send->start[bucket];
	target->count = 0;
	for (; bucket < end; bucket++) {
		uint32_t count;
		uint32_t first = part_of_bucket(cluster, cut, bucket, &count);

		if (target->count == 0)
			target->first = first;
		target->count += count;
		store_le32(number, count);
		number += 4;
	}
	store_le64(number, send->digest);
	send->send_bytes[node] =
		target->head_bytes +
		(uint64_t)target->count * cluster_unit_bytes(cluster);
}

int cluster_send_build_messages(struct cluster *cluster)
{
	struct cluster_send *send = &cluster->send;
	unsigned node_count = cluster->rank.node_count;
	uint64_t head_bytes = 0;
	uint8_t *heads;

	for (unsigned k = 0; k < node_count; k++) {
		const struct share_cut *cut = &send->cuts[k];

		send->targets[k].head_bytes =
			4 * (uint64_t)(share_end_bucket(cut) -
				       share_first_bucket(cut)) +
			sizeof(send->digest);
		head_bytes += send->targets[k].head_bytes;
	}
	free(send->targets[0].head);
	heads = malloc(head_bytes + 1);
	send->targets[0].head = heads;
	if (!heads)
		return failure_no_memory(cluster->failure);
	send->digest = digest_division(cluster);
	for (unsigned k = 0; k < node_count; k++) {
		send->targets[k].head = heads;
		heads += send->targets[k].head_bytes;
		build_message(cluster, k);
	}
	return 0;
}

void cluster_send_read_records(const struct cluster *cluster, unsigned node,
			       uint64_t offset, uint8_t *bytes,
			       size_t byte_count)
{
	const struct cluster_send *send = &cluster->send;
	uint32_t record_size = cluster->sort_config->shape.size;

	gather_bytes(send->gather, bytes, byte_count, cluster->input.base,
		     record_size,
		     send->entries + send->targets[node].first +
			     offset / record_size,
		     (uint32_t)(offset % record_size), send->index_mask);
}

void cluster_send_read(void *context, unsigned node, uint64_t offset,
		       uint8_t *bytes, size_t byte_count)
{
	const struct cluster *cluster = context;
	const struct cluster_send *send = &cluster->send;
	const struct cluster_target *target = &send->targets[node];
	const uint64_t *entries = send->entries + target->first;

	if (offset < target->head_bytes) {
		size_t part = MIN(byte_count, target->head_bytes - offset);

		memcpy(bytes, target->head + offset, part);
		bytes += part;
		offset += part;
		byte_count -= part;
	}
	if (byte_count == 0)
		return;
	offset -= target->head_bytes;
	if (cluster_is_by_reference(cluster))
		memcpy(bytes, (const uint8_t *)entries + offset, byte_count);
	else if (cluster_compresses(cluster))
		memcpy(bytes, target->compressed + offset, byte_count);
	else
		cluster_send_read_records(cluster, node, offset, bytes,
					  byte_count);
}
