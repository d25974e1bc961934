/* shares.c - which part of the sorted whole each node gets */
#include "cluster/memory/shares.h"

#include <string.h>

#include "base/base.h"

/* Buckets whose totals are taken at once: the counts of a bucket lie a source
 * apart, those of a source side by side. */
#define CHUNK_BUCKETS 256

/* How far the cutting has come. */
struct cutter {
	unsigned node_count;
	unsigned next;	 /* cut to be made; node_count: all are */
	uint64_t target; /* where it should be, in records of the whole */
	uint64_t total;	 /* records of all buckets */
	uint64_t before; /* records of the buckets passed */
};

static uint64_t sum(const uint32_t *counts, uint64_t n)
{
	uint64_t total = 0;

	for (uint64_t i = 0; i < n; i++)
		total += counts[i];
	return total;
}

static void aim(struct cutter *cutter, unsigned next)
{
	cutter->next = next;
	cutter->target = (uint64_t)((unsigned __int128)cutter->total * next /
				    cutter->node_count);
}

/* The next cut, which lies in this bucket or at its beginning. */
static struct share_cut cut_bucket(const struct cutter *cutter, uint32_t bucket,
				   uint64_t bucket_total, bool is_equal)
{
	uint64_t position = cutter->target - cutter->before;

	if (is_equal)
		return (struct share_cut){ bucket, position };
	return (struct share_cut){
		.bucket = bucket + (position >= bucket_total - position),
	};
}

/* Totals of the n buckets from first on. */
static void add_sources(uint64_t *totals, const uint32_t *counts,
			unsigned source_count, uint32_t bucket_count,
			uint32_t first, uint32_t n)
{
	memset(totals, 0, n * sizeof(*totals));
	for (unsigned source = 0; source < source_count; source++) {
		const uint32_t *row =
			counts + (uint64_t)source * bucket_count + first;

		for (uint32_t i = 0; i < n; i++)
			totals[i] += row[i];
	}
}

void shares_cut(struct share_cut *cuts, unsigned node_count,
		const uint32_t *counts, unsigned source_count,
		uint32_t bucket_count,
		bool (*is_equal)(const void *context, uint32_t bucket),
		const void *context)
{
	struct cutter cutter = {
		.node_count = node_count,
		.total = sum(counts, (uint64_t)source_count * bucket_count),
	};
	uint64_t totals[CHUNK_BUCKETS];

	cuts[0] = (struct share_cut){ 0 };
	aim(&cutter, 1);
	for (uint32_t b = 0; b < bucket_count; b++) {
		uint32_t i = b % CHUNK_BUCKETS;

		if (i == 0)
			add_sources(totals, counts, source_count, bucket_count,
				    b, MIN(bucket_count - b, CHUNK_BUCKETS));
		while (cutter.next < node_count &&
		       cutter.target < cutter.before + totals[i]) {
			bool may_cut = is_equal && is_equal(context, b);

			cuts[cutter.next] =
				cut_bucket(&cutter, b, totals[i], may_cut);
			aim(&cutter, cutter.next + 1);
		}
		cutter.before += totals[i];
	}
	/* All, if there are no records. */
	for (unsigned k = cutter.next; k <= node_count; k++)
		cuts[k] = (struct share_cut){ .bucket = bucket_count };
}

void shares_cut_evenly(struct share_cut *cuts, unsigned node_count,
		       uint32_t bucket_count)
{
	uint32_t share = bucket_count / node_count;

	for (unsigned k = 0; k <= node_count; k++)
		cuts[k] = (struct share_cut){ .bucket = k * share };
}

/* The cut as a place among the records of a bucket. */
static uint64_t place_in(const struct share_cut *cut, uint32_t bucket)
{
	if (bucket < cut->bucket)
		return UINT64_MAX;
	return bucket > cut->bucket ? 0 : cut->position;
}

/* How many of a source's records lie before that place. */
static uint32_t own_before(uint64_t place, uint64_t before, uint32_t own_count)
{
	uint64_t own = place > before ? place - before : 0;

	return (uint32_t)MIN(own, own_count);
}

void share_of_bucket(const struct share_cut *cut, uint32_t bucket,
		     uint64_t before, uint32_t own_count, uint32_t *skip,
		     uint32_t *take)
{
	*skip = own_before(place_in(&cut[0], bucket), before, own_count);
	*take = own_before(place_in(&cut[1], bucket), before, own_count) -
		*skip;
}
