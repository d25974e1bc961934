/*
 * shares.h - which part of the sorted whole each node gets
 *
 * The sorted whole is all buckets in order; within a bucket whose keys are all
 * equal, records stand in the order of their sources' ranks and, of one source,
 * in input order.  Node k's share is a run of it.
 *
 *      static    the buckets k * S up to (k + 1) * S of n * S
 *      counted   cut where the counts of all sources (one exchange) put the
 *                k-th part: within a bucket of equal keys exactly there, else
 *                at the nearer end of the bucket that lies across
 *
 * The k-th part of N records for n nodes begins at record N * k / n, rounded
 * down; if both ends of a bucket are as near, the cut is at the higher one.
 *
 * Pure arithmetic, and the same on all nodes.
 */
#ifndef SHARES_H
#define SHARES_H

#include <stdbool.h>
#include <stdint.h>

/* A place between two records of the sorted whole: before record `position` of
 * bucket `bucket`, counted over all sources.  position is 0 but within a bucket
 * of equal keys. */
struct share_cut {
	uint32_t bucket;
	uint64_t position;
};

/*
 * cuts[0 .. node_count] for counted shares: share k lies from cuts[k] to
 * cuts[k + 1]; cuts[0] is {0, 0} and cuts[node_count] {bucket_count, 0}; never
 * descending.  counts[source * bucket_count + bucket]; is_equal tells of a
 * bucket whether it may be cut; NULL: none may.
 */
void shares_cut(struct share_cut *cuts, unsigned node_count,
		const uint32_t *counts, unsigned source_count,
		uint32_t bucket_count,
		bool (*is_equal)(const void *context, uint32_t bucket),
		const void *context);

/* Cuts for static shares, of the same number S of buckets each: bucket_count ==
 * node_count * S. */
void shares_cut_evenly(struct share_cut *cuts, unsigned node_count,
		       uint32_t bucket_count);

/* Buckets a share touches: first .. end - 1 (the last cut's only if something
 * of it comes before the cut).  Between equal cuts there is none: first == end.
 */
static inline uint32_t share_first_bucket(const struct share_cut *cut)
{
	return cut[0].bucket;
}

static inline uint32_t share_end_bucket(const struct share_cut *cut)
{
	uint64_t begin = cut[0].bucket == cut[1].bucket ? cut[0].position : 0;

	return cut[1].bucket + (cut[1].position > begin);
}

/*
 * One source has own_count records in a bucket, of which the first has position
 * `before` (records of lower sources in it).  Those that belong to the share
 * between cut[0] and cut[1]: skip so many, then take so many (none of a bucket
 * outside of the share).  cut points at the share's first of two cuts.
 */
void share_of_bucket(const struct share_cut *cut, uint32_t bucket,
		     uint64_t before, uint32_t own_count, uint32_t *skip,
		     uint32_t *take);

#endif /* SHARES_H */
