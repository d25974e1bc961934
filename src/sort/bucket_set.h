/*
 * bucket_set.h - every record's entry, by bucket: what the first half of a sort
 * hands to the second
 *
 * The entries (buckets.h) of a bucket lie in n runs, or in the lists of n
 * writers; the runs' slots, and the writers' slots, ascend with n.
 *
 * The driver of the sort makes the struct when the first half knows every
 * bucket's count; nothing changes it afterwards.  The entries of runs may still
 * be arriving then: a thread reads only buckets that the driver has declared
 * complete (orderer_set_ready()).
 */
#ifndef BUCKET_SET_H
#define BUCKET_SET_H

#include "sort/buckets.h"

/* Entries in bucket order that came from one place: those of bucket b are
 * entries[start[b]] up to entries[start[b + 1]], in record order. */
struct bucket_run {
	const uint64_t *entries;
	const uint32_t *start;
};

struct bucket_set {
	/* The splitters' buckets that are in the set: bucket b of the set is
	 * the splitters' bucket first_bucket + b. */
	uint32_t first_bucket;
	uint32_t bucket_count;
	/* Where the entries are.  run_count 0: in the writers' lists. */
	unsigned run_count;
	unsigned writer_count;
	const struct bucket_run *runs;
	const struct bucket_writer *writers;
};

/* Entries of the bucket. */
static inline uint32_t bucket_set_count(const struct bucket_set *set,
					uint32_t bucket)
{
	uint32_t count = 0;

	for (unsigned r = 0; r < set->run_count; r++)
		count += set->runs[r].start[bucket + 1] -
			 set->runs[r].start[bucket];
	if (set->run_count > 0)
		return count;
	for (unsigned w = 0; w < set->writer_count; w++)
		count += bucket_writer_count(&set->writers[w], bucket);
	return count;
}

static inline void bucket_set_prefetch_runs(const struct bucket_set *set,
					    uint32_t bucket)
{
	for (unsigned r = 0; r < set->run_count; r++) {
		const struct bucket_run *run = &set->runs[r];
		const uint64_t *entry = run->entries + run->start[bucket];
		const uint64_t *end = run->entries + run->start[bucket + 1];

		for (; entry < end; entry += LINE_ENTRIES)
			__builtin_prefetch(entry);
	}
}

/* Prefetch the bucket's entries, which are to be copied a little later. */
static inline void bucket_set_prefetch(const struct bucket_set *set,
				       uint32_t bucket)
{
	if (set->run_count > 0) {
		bucket_set_prefetch_runs(set, bucket);
		return;
	}
	for (unsigned w = 0; w < set->writer_count; w++)
		bucket_writer_prefetch(&set->writers[w], bucket);
}

static inline uint32_t bucket_set_copy_runs(const struct bucket_set *set,
					    uint32_t bucket, uint64_t *target)
{
	const uint64_t *begin = target;

	for (unsigned r = 0; r < set->run_count; r++) {
		const struct bucket_run *run = &set->runs[r];
		uint32_t count = run->start[bucket + 1] - run->start[bucket];

		memcpy(target, run->entries + run->start[bucket],
		       count * sizeof(*target));
		target += count;
	}
	return (uint32_t)(target - begin);
}

/* Copy the bucket's entries to target, in record order; returns their count. */
static inline uint32_t bucket_set_copy(const struct bucket_set *set,
				       uint32_t bucket, uint64_t *target)
{
	uint32_t count = 0;

	if (set->run_count > 0)
		return bucket_set_copy_runs(set, bucket, target);
	for (unsigned w = 0; w < set->writer_count; w++)
		count += bucket_writer_copy(&set->writers[w], bucket,
					    target + count);
	return count;
}

/* The same, faster: up to LINE_ENTRIES - 1 entries behind are overwritten. */
static inline uint32_t bucket_set_copy_lines(const struct bucket_set *set,
					     uint32_t bucket, uint64_t *target)
{
	uint32_t count = 0;

	if (set->run_count > 0)
		return bucket_set_copy_runs(set, bucket, target);
	for (unsigned w = 0; w < set->writer_count; w++)
		count += bucket_writer_copy_lines(&set->writers[w], bucket,
						  target + count);
	return count;
}

#endif /* BUCKET_SET_H */
