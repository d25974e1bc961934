/*
 * cluster_send.c - our own records in bucket order, and to whom they go
 *
 * Records are sent from where they lie in the input, bucket by bucket.
 */
#include <errno.h>
#include <stdlib.h>

#include "cluster/cluster_state.h"

/* Copied in some 10 ms. */
#define SERVE_RECORDS (1 << 20)
/* Buckets whose lists are asked for before the one at hand is copied, which
 * takes less time than memory does. */
#define FIND_AHEAD_BUCKETS 8

/* --- memory ----------------------------------------------------------------
 */

void *cluster_take(struct arena *arena, uint64_t count, size_t each_bytes)
{
	return arena_take(arena, count * each_bytes, CACHE_PAIR_BYTES);
}

/* The plan's sizes, and what taking so many pieces may lose. */
int cluster_map_arena(struct arena *arena, uint64_t bytes, uint64_t takes,
		      struct failure *failure)
{
	int error =
		arena_map(arena, bytes + takes * CACHE_PAIR_BYTES + PAGE_BYTES);

	if (error)
		return failure_set(failure, EXIT_RESOURCES, NULL, -error,
				   "memory");
	return 0;
}

static void take_lists(struct cluster *cluster, uint32_t bucket_count)
{
	struct sorter *sorter = &cluster->sorter;
	struct arena *arena = &cluster->own_arena;

	for (unsigned m = 0; m < sorter->threads.worker_count; m++) {
		struct bucket_writer *writer = &sorter->members[m].writer;

		writer->pool = &sorter->pool;
		writer->lists = cluster_take(arena, bucket_count,
					     sizeof(*writer->lists));
		writer->cursors = cluster_take(arena, bucket_count,
					       sizeof(*writer->cursors));
	}
	cluster->own_start = cluster_take(arena, bucket_count + 1, 4);
	sorter->pool.block_count = sorter->plan.block_count;
	sorter->pool.owners = cluster_take(arena, sorter->plan.block_count, 4);
	sorter->pool.directory =
		cluster_take(arena, sorter->plan.block_count, 4);
	sorter->pool.next_grant = cluster_take(
		arena, sorter->plan.block_count / BUCKETS_GRANT_BLOCKS, 4);
	cluster->own_entries = cluster_take(
		arena, sorter->input.record_count + LINE_ENTRIES, 8);
	/* Last, since the most of it may never be touched. */
	sorter->pool.entries = cluster_take(arena, sorter->plan.block_count,
					    BUCKETS_BLOCK_ENTRIES * 8);
	bucket_pool_reset(&sorter->pool);
}

int cluster_plan_lists(struct cluster *cluster, uint32_t bucket_count)
{
	struct sorter *sorter = &cluster->sorter;
	struct plan_request request = {
		.shape = sorter->config->shape,
		.record_count = sorter->input.record_count,
		.slot_count = sorter->input.slot_count,
		.input_memory_bytes = input_memory_bytes(&sorter->input),
		.members = sorter->threads.worker_count,
		.chunk_bytes_max = PAGE_BYTES,
		.bucket_count = bucket_count,
	};

	if (plan_make(&sorter->plan, &request) < 0)
		return failure_set(cluster->failure, EXIT_RESOURCES, NULL, 0,
				   "%llu records are too many for one node",
				   (unsigned long long)request.record_count);
	cluster->own_mask = ~(UINT64_MAX << sorter->plan.index_bits);
	return sorter_refuse_memory(sorter, sorter->plan.memory_bytes,
				    cluster->rank.machine_count,
				    cluster->failure);
}

int cluster_lay_out_lists(struct cluster *cluster, uint32_t bucket_count)
{
	struct sorter *sorter = &cluster->sorter;
	int error = cluster_plan_lists(cluster, bucket_count);

	if (error)
		return error;
	arena_unmap(&cluster->own_arena);
	error = cluster_map_arena(
		&cluster->own_arena,
		sorter->plan.memory_bytes - input_memory_bytes(&sorter->input),
		10 + 2 * (uint64_t)sorter->threads.worker_count,
		cluster->failure);
	if (error == 0)
		take_lists(cluster, bucket_count);
	return error;
}

/* --- own records -----------------------------------------------------------
 */

int cluster_flatten(struct cluster *cluster)
{
	struct sorter *sorter = &cluster->sorter;
	uint32_t bucket_count = sorter->splitters.bucket_count;
	unsigned member_count = sorter->threads.worker_count;
	uint32_t start = 0, served = 0, found = 0;
	int error = 0;

	for (uint32_t b = 0; b < bucket_count && error == 0; b++) {
		cluster->own_start[b] = start;
		if (start - served >= SERVE_RECORDS) {
			served = start;
			error = exchange_serve(cluster->exchange,
					       cluster->failure);
		}
		for (; found < MIN(b + FIND_AHEAD_BUCKETS, bucket_count);
		     found++)
			for (unsigned m = 0; m < member_count; m++)
				bucket_writer_ask(&sorter->members[m].writer,
						  found);
		for (unsigned m = 0; m < member_count; m++)
			start += bucket_writer_copy_lines(
				&sorter->members[m].writer, b,
				cluster->own_entries + start);
	}
	cluster->own_start[bucket_count] = start;
	return error;
}

/* --- addressing ------------------------------------------------------------
 */

/* Of the records that lower ranks have in a bucket. */
static uint64_t count_lower(const struct cluster *cluster, uint32_t bucket)
{
	uint32_t bucket_count = cluster->sorter.splitters.bucket_count;
	uint64_t count = 0;

	for (unsigned i = 0; cluster->counts && i < cluster->rank.rank; i++)
		count += cluster->counts[(size_t)i * bucket_count + bucket];
	return count;
}

/* What a share gets of our records in a bucket: where it begins among all. */
static uint32_t part_of_bucket(const struct cluster *cluster,
			       const struct share_cut *cut, uint32_t bucket,
			       uint32_t *count)
{
	uint32_t begin = cluster->own_start[bucket];
	uint32_t own_count = cluster->own_start[bucket + 1] - begin;
	uint32_t skip = 0;

	*count = own_count;
	/* Only the first and the last bucket may be cut. */
	if (bucket == cut[0].bucket || bucket == cut[1].bucket)
		share_of_bucket(cut, bucket, count_lower(cluster, bucket),
				own_count, &skip, count);
	return begin + skip;
}

static void address_target(struct cluster *cluster, unsigned node)
{
	struct cluster_target *target = &cluster->targets[node];
	const struct share_cut *cut = &cluster->cuts[node];
	uint32_t bucket = share_first_bucket(cut);
	uint32_t end = share_end_bucket(cut);
	uint8_t *number = target->head;

	target->first = cluster->own_start[bucket];
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
	cluster->send_bytes[node] =
		target->head_bytes +
		(uint64_t)target->count * cluster_unit_bytes(cluster);
}

int cluster_address(struct cluster *cluster)
{
	uint64_t head_bytes = 0;
	uint8_t *heads;

	for (unsigned k = 0; k < cluster->rank.node_count; k++) {
		const struct share_cut *cut = &cluster->cuts[k];

		cluster->targets[k].head_bytes =
			4 * (uint64_t)(share_end_bucket(cut) -
				       share_first_bucket(cut));
		head_bytes += cluster->targets[k].head_bytes;
	}
	free(cluster->targets[0].head);
	heads = malloc(head_bytes + 1);
	cluster->targets[0].head = heads;
	if (!heads)
		return failure_set(cluster->failure, EXIT_RESOURCES, NULL,
				   ENOMEM, "memory");
	for (unsigned k = 0; k < cluster->rank.node_count; k++) {
		cluster->targets[k].head = heads;
		heads += cluster->targets[k].head_bytes;
		address_target(cluster, k);
	}
	return 0;
}

/* --- sending ---------------------------------------------------------------
 */

void cluster_read_message(void *context, unsigned node, uint64_t offset,
			  uint8_t *bytes, size_t byte_count)
{
	const struct cluster *cluster = context;
	const struct cluster_target *target = &cluster->targets[node];
	const struct sorter *sorter = &cluster->sorter;
	uint32_t record_size = sorter->config->shape.size;

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
	if (cluster_is_shared(cluster)) {
		memcpy(bytes,
		       (const uint8_t *)(cluster->own_entries + target->first) +
			       offset,
		       byte_count);
		return;
	}
	gather_bytes(sorter->gather, bytes, byte_count, sorter->input.base,
		     record_size,
		     cluster->own_entries + target->first +
			     offset / record_size,
		     (uint32_t)(offset % record_size), cluster->own_mask);
}
