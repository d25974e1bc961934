/*
 * cluster_send.c - our own records in bucket order, and the messages that
 * take them to the other ranks
 */
#include "cluster/memory/cluster_send.h"

#include <sodium.h>
#include <stdlib.h>

#include "base/base.h"

/* Copied in some 10 ms. */
#define SERVE_RECORDS (1 << 20)
/* Buckets whose lists are prefetched before the one at hand is copied, which
 * takes less time than memory does. */
#define PREFETCH_BUCKETS 8

void cluster_send_begin(struct cluster_send *send,
			const struct cluster_send_config *config)
{
	send->config = *config;
	send->gather = gather_kernel(config->kernel, config->shape.size);
}

void cluster_send_take_memory(struct cluster_send *send, uint32_t bucket_count,
			      uint64_t record_count, unsigned index_bits)
{
	send->bucket_count = bucket_count;
	send->index_mask = ~(UINT64_MAX << index_bits);
	send->start = arena_take(&send->arena, ((size_t)bucket_count + 1) * 4,
				 CACHE_PAIR_BYTES);
	send->entries =
		arena_take(&send->arena, (record_count + LINE_ENTRIES) * 8,
			   CACHE_PAIR_BYTES);
}

int cluster_send_compact(struct cluster_send *send,
			 const struct bucket_set *set, struct failure *failure)
{
	uint32_t start = 0, served = 0, fetched = 0;
	int error = 0;

	for (uint32_t b = 0; b < set->bucket_count && error == 0; b++) {
		send->start[b] = start;
		if (start - served >= SERVE_RECORDS) {
			served = start;
			error = exchange_serve(send->config.exchange, failure);
		}
		for (; fetched < MIN(b + PREFETCH_BUCKETS, set->bucket_count);
		     fetched++)
			bucket_set_prefetch(set, fetched);
		start += bucket_set_copy_lines(set, b, send->entries + start);
	}
	send->start[set->bucket_count] = start;
	return error;
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
static uint64_t digest_division(const struct splitters *splitters,
				const struct share_cut *cuts,
				unsigned node_count)
{
	uint8_t digest[crypto_generichash_blake2b_BYTES_MIN];
	hash_state hash;

	crypto_generichash_blake2b_init(&hash, NULL, 0, sizeof(digest));
	hash_number(&hash, splitters->kind);
	hash_number(&hash, splitters->bucket_count);
	if (splitters->kind == SPLITTERS_SAMPLED)
		hash_sampled(&hash, splitters);
	for (unsigned k = 0; k <= node_count; k++) {
		hash_number(&hash, cuts[k].bucket);
		hash_number(&hash, cuts[k].position);
	}
	crypto_generichash_blake2b_final(&hash, digest, sizeof(digest));
	return load_le64(digest);
}

/* --- messages ------------------------------------------------------------- */

/* Records that lower ranks have in a bucket. */
static uint64_t count_lower(const struct cluster_send *send,
			    const uint32_t *counts, uint32_t bucket)
{
	uint64_t count = 0;

	for (unsigned i = 0; counts && i < send->config.rank; i++)
		count += counts[(size_t)i * send->bucket_count + bucket];
	return count;
}

/* What a share gets of our records in a bucket: where it begins in entries. */
static uint32_t part_of_bucket(const struct cluster_send *send,
			       const uint32_t *counts,
			       const struct share_cut *cut, uint32_t bucket,
			       uint32_t *count)
{
	uint32_t begin = send->start[bucket];
	uint32_t own_count = send->start[bucket + 1] - begin;
	uint32_t skip = 0;

	*count = own_count;
	/* Only the first and the last bucket may be cut. */
	if (bucket == cut[0].bucket || bucket == cut[1].bucket)
		share_of_bucket(cut, bucket, count_lower(send, counts, bucket),
				own_count, &skip, count);
	return begin + skip;
}

static void build_message(struct cluster_send *send, const uint32_t *counts,
			  unsigned node)
{
	struct cluster_target *target = &send->targets[node];
	const struct share_cut *cut = &send->cuts[node];
	uint32_t bucket = share_first_bucket(cut);
	uint32_t end = share_end_bucket(cut);
	uint8_t *number = target->head;

	target->first = send->start[bucket];
	target->count = 0;
	for (; bucket < end; bucket++) {
		uint32_t count;
		uint32_t first =
			part_of_bucket(send, counts, cut, bucket, &count);

		if (target->count == 0)
			target->first = first;
		target->count += count;
		store_le32(number, count);
		number += 4;
	}
	store_le64(number, send->digest);
	send->send_bytes[node] =
		target->head_bytes +
		(uint64_t)target->count * send->config.unit_bytes;
}

int cluster_send_build_messages(struct cluster_send *send,
				const uint32_t *counts, struct failure *failure)
{
	unsigned node_count = send->config.node_count;
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
		return failure_no_memory(failure);
	send->digest =
		digest_division(send->config.splitters, send->cuts, node_count);
	for (unsigned k = 0; k < node_count; k++) {
		send->targets[k].head = heads;
		heads += send->targets[k].head_bytes;
		build_message(send, counts, k);
	}
	return 0;
}

void cluster_send_read(const struct cluster_send *send, unsigned node,
		       uint64_t offset, uint8_t *bytes, size_t byte_count)
{
	const struct cluster_target *target = &send->targets[node];
	const uint64_t *entries = send->entries + target->first;
	uint32_t record_size = send->config.shape.size;

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
	if (send->config.by_reference) {
		memcpy(bytes, (const uint8_t *)entries + offset, byte_count);
		return;
	}
	gather_bytes(send->gather, bytes, byte_count, send->config.base,
		     record_size, entries + offset / record_size,
		     (uint32_t)(offset % record_size), send->index_mask);
}
