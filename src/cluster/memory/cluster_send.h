/*
 * cluster_send.h - our own records in bucket order, and the messages that take
 * them to the other ranks
 *
 * Records are sent from where they lie in the input, bucket by bucket.
 *
 * A message has a head: the number of records that each bucket of the
 * receiver's share gets from us (u32, little endian), and the digest of the
 * division of the keys (u64), which is the same on all ranks unless one of them
 * errs.  Behind the head are the records; or, if records are sent by reference,
 * their entries (u64), with slots of our input.
 */
#ifndef CLUSTER_SEND_H
#define CLUSTER_SEND_H

#include "cluster/memory/shares.h"
#include "exchange/exchange.h"
#include "kernels/gather.h"
#include "kernels/splitters.h"
#include "record/record.h"
#include "sort/bucket_set.h"
#include "system/arena.h"

struct cluster_send_config {
	struct exchange *exchange;
	unsigned rank, node_count;
	struct record_shape shape;
	enum cpu_level kernel;
	uint32_t unit_bytes; /* bytes of a message for each record */
	bool by_reference;
	const uint8_t *base; /* of the input's slot 0 */
	/* The driver makes them before the messages are built. */
	const struct splitters *splitters;
};

/* The message to a rank. */
struct cluster_target {
	uint8_t *head;
	uint64_t head_bytes;
	uint32_t first; /* its first record in entries */
	uint32_t count; /* of records */
};

/* Thread 0 writes all of it. */
struct cluster_send {
	struct cluster_send_config config; /* cluster_send_begin() */
	gather_fn *gather;
	/* The driver maps and unmaps it; it has the lists, too. */
	struct arena arena;
	/* Our own records in bucket order, the slots being the input's.  The
	 * entries of bucket b begin at start[b].  cluster_send_compact() writes
	 * them.  The entries of our own share get their slots in the share
	 * later, from the receiving side. */
	uint64_t *entries;
	uint32_t *start;
	uint32_t bucket_count;
	uint64_t index_mask; /* of the slot in these entries */
	/* The driver gives the memory of what each rank has here.  Where each
	 * rank's share begins; the driver writes them. */
	struct share_cut *cuts; /* [rank], and one more */
	/* cluster_send_build_messages() writes these. */
	uint64_t digest;		/* of splitters and cuts */
	uint64_t *send_bytes;		/* [rank] */
	struct cluster_target *targets; /* [rank]; the driver frees
					 * targets[0].head */
};

void cluster_send_begin(struct cluster_send *send,
			const struct cluster_send_config *config);

/* Pieces that cluster_send_take_memory() takes from the arena, which the driver
 * has mapped. */
#define CLUSTER_SEND_PIECES 2

void cluster_send_take_memory(struct cluster_send *send, uint32_t bucket_count,
			      uint64_t record_count, unsigned index_bits);

/* Make one array of the lists.  The functions that follow return 0 or -errno
 * with *failure filled. */
int cluster_send_compact(struct cluster_send *send,
			 const struct bucket_set *set, struct failure *failure);

/* The messages' heads and sizes, when the cuts are made.  counts is NULL if no
 * bucket is cut, else as in cluster_sample.h. */
int cluster_send_build_messages(struct cluster_send *send,
				const uint32_t *counts,
				struct failure *failure);

/* Copy bytes of the message to a rank, for the exchange. */
void cluster_send_read(const struct cluster_send *send, unsigned node,
		       uint64_t offset, uint8_t *bytes, size_t byte_count);

#endif /* CLUSTER_SEND_H */
