/*
 * ordering.c - the second half of a sort: chunk after chunk of sorted output
 */
#include <assert.h>

#include "sort/sorter_state.h"

/* Entries asked for while those before them are sorted, some microsecond ahead:
 * 128 come too late with a million records, 1024 are no better. */
#define ASK_AHEAD_ENTRIES 384

/* ------------------------------------------------------------- buckets */

static bool bucket_is_big(const struct sorter *sorter, uint32_t bucket)
{
	return sorter->bucket_start[bucket + 1] - sorter->bucket_start[bucket] >
	       PLAN_BIG_ENTRIES;
}

static uint32_t count_bucket(const struct sorter *sorter, uint32_t bucket)
{
	uint32_t count = 0;

	for (unsigned r = 0; r < sorter->run_count; r++)
		count += sorter->runs[r].start[bucket + 1] -
			 sorter->runs[r].start[bucket];
	if (sorter->run_count > 0)
		return count;
	for (unsigned m = 0; m < sorter->threads.worker_count; m++)
		count +=
			bucket_writer_count(&sorter->members[m].writer, bucket);
	return count;
}

void ordering_add_up(struct sorter *sorter)
{
	uint32_t start = 0;

	sorter->big_count = 0;
	for (uint32_t b = 0; b < sorter->bucket_count; b++) {
		uint32_t count = count_bucket(sorter, b);

		sorter->bucket_start[b] = start;
		start += count;
		if (count > PLAN_BIG_ENTRIES) {
			sorter->big_start[b] = sorter->big_count;
			sorter->big_count += count;
		}
	}
	sorter->bucket_start[sorter->bucket_count] = start;
}

static void find_in_runs(const struct sorter *sorter, uint32_t bucket)
{
	for (unsigned r = 0; r < sorter->run_count; r++) {
		const struct bucket_run *run = &sorter->runs[r];
		const uint64_t *entry = run->entries + run->start[bucket];
		const uint64_t *end = run->entries + run->start[bucket + 1];

		for (; entry < end; entry += LINE_ENTRIES)
			__builtin_prefetch(entry);
	}
}

/* Sources ascend, so the entries are in record order. */
static uint32_t copy_from_runs(const struct sorter *sorter, uint32_t bucket,
			       uint64_t *entries)
{
	const uint64_t *begin = entries;

	for (unsigned r = 0; r < sorter->run_count; r++) {
		const struct bucket_run *run = &sorter->runs[r];
		uint32_t count = run->start[bucket + 1] - run->start[bucket];

		memcpy(entries, run->entries + run->start[bucket],
		       count * sizeof(*entries));
		entries += count;
	}
	return (uint32_t)(entries - begin);
}

/* Ask for the lines of all members' lists of the bucket, for take_bucket() a
 * little later. */
static void find_bucket(const struct sorter *sorter, uint32_t bucket)
{
	if (sorter->run_count > 0) {
		find_in_runs(sorter, bucket);
		return;
	}
	for (unsigned m = 0; m < sorter->threads.worker_count; m++)
		bucket_writer_ask(&sorter->members[m].writer, bucket);
}

/* All members' lists of the bucket, one after the other: members' shares
 * ascend, so the entries stay in record order.  Returns the bucket's count. */
static uint32_t take_bucket(const struct sorter *sorter, uint32_t bucket,
			    uint64_t *entries)
{
	uint32_t count = 0;

	if (sorter->run_count > 0)
		return copy_from_runs(sorter, bucket, entries);
	for (unsigned m = 0; m < sorter->threads.worker_count; m++)
		count += bucket_writer_copy_lines(&sorter->members[m].writer,
						  bucket, entries + count);
	return count;
}

/* The same, and not a byte more is written. */
static uint32_t copy_bucket(const struct sorter *sorter, uint32_t bucket,
			    uint64_t *entries)
{
	uint32_t count = 0;

	if (sorter->run_count > 0)
		return copy_from_runs(sorter, bucket, entries);
	for (unsigned m = 0; m < sorter->threads.worker_count; m++)
		count += bucket_writer_copy(&sorter->members[m].writer, bucket,
					    entries + count);
	return count;
}

static void order_bucket(const struct sorter *sorter, uint32_t bucket,
			 uint64_t *entries, uint32_t count)
{
	uint32_t of_all = sorter->first_bucket + bucket;

	if (splitters_bucket_is_equal(&sorter->splitters, of_all))
		return;
	sorter->sort(entries, count);
	if (splitters_bucket_is_decided(&sorter->splitters, of_all,
					sorter->plan.index_bits))
		return;
	ties_settle(&sorter->ties, entries, count);
}

static void order_big_buckets(struct sorter *sorter, unsigned member)
{
	struct sorter_member *self = &sorter->members[member];

	for (;;) {
		uint32_t bucket = atomic_fetch_add_explicit(
			&sorter->next_big, 1, memory_order_relaxed);
		uint64_t *entries;
		uint64_t begin_ns;

		if (bucket >= sorter->bucket_count)
			return;
		if (!bucket_is_big(sorter, bucket))
			continue;
		begin_ns = trace_begin(&self->lane);
		entries = sorter->big_entries + sorter->big_start[bucket];
		order_bucket(sorter, bucket, entries,
			     copy_bucket(sorter, bucket, entries));
		trace_end(&self->lane, begin_ns, "big bucket");
	}
}

bool ordering_pass_big(struct sorter *sorter, unsigned member)
{
	sorter->members[member].big_passed = true;
	if (sorter->big_count == 0)
		return true;
	order_big_buckets(sorter, member);
	return !thread_pool_barrier(&sorter->threads, &sorter->stop);
}

/* --------------------------------------------------------------- chunks */

struct chunk {
	unsigned file;
	uint64_t begin_byte; /* in its file */
	uint64_t end_byte;
	/* Records that lie in it, if only in part; numbers in the sorted
	 * whole. */
	uint64_t file_record; /* the file's first */
	uint64_t first_record;
	uint64_t end_record;
};

static struct chunk chunk_at(const struct sorter *sorter, uint64_t number)
{
	uint64_t chunk_bytes = sorter->plan.chunk_bytes;
	uint32_t record_size = sorter->config->shape.size;
	struct chunk chunk = { 0 };
	uint64_t size_bytes;

	for (;; chunk.file++) {
		uint64_t chunks;

		size_bytes = sorter->output.files[chunk.file].size_bytes;
		chunks = DIV_ROUND_UP(size_bytes, chunk_bytes);
		if (number < chunks)
			break;
		number -= chunks;
		chunk.file_record += size_bytes / record_size;
	}
	chunk.begin_byte = number * chunk_bytes;
	chunk.end_byte = MIN(chunk.begin_byte + chunk_bytes, size_bytes);
	chunk.first_record = chunk.file_record + chunk.begin_byte / record_size;
	chunk.end_record =
		chunk.file_record + DIV_ROUND_UP(chunk.end_byte, record_size);
	return chunk;
}

/* The last bucket that begins at or before the record (so it is not empty). */
static uint32_t bucket_of(const struct sorter *sorter, uint64_t record)
{
	uint32_t low = 0, high = sorter->bucket_count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (sorter->bucket_start[middle] <= record)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The part of a big bucket, which is in order already, that lies in the chunk.
 */
static uint32_t copy_big(const struct sorter *sorter, uint32_t bucket,
			 const struct chunk *chunk, uint64_t *entries)
{
	uint64_t start = sorter->bucket_start[bucket];
	uint64_t begin = MAX(start, chunk->first_record);
	uint64_t end = MIN(sorter->bucket_start[bucket + 1], chunk->end_record);

	memcpy(entries,
	       sorter->big_entries + sorter->big_start[bucket] + begin - start,
	       (end - begin) * sizeof(*entries));
	return (uint32_t)(end - begin);
}

/*
 * Put the chunk's entries in order; returns that of its first record.  Buckets
 * that reach over the chunk's ends are ordered in both chunks: a microsecond
 * twice is less than agreeing on who does it.  While one bucket is sorted the
 * next one's blocks are on their way from memory.
 */
static const uint64_t *order_chunk(struct sorter *sorter,
				   struct sorter_member *self,
				   const struct chunk *chunk)
{
	const uint32_t *start = sorter->bucket_start;
	uint32_t bucket = bucket_of(sorter, chunk->first_record);
	uint32_t end = bucket_of(sorter, chunk->end_record - 1) + 1;
	uint64_t *entries = self->entries;
	const uint64_t *first = entries;
	uint32_t found = bucket;

	if (!bucket_is_big(sorter, bucket))
		first += chunk->first_record - start[bucket];
	for (; bucket < end; bucket++) {
		uint32_t count;

		for (; found < end &&
		       start[found] < start[bucket + 1] + ASK_AHEAD_ENTRIES;
		     found++)
			if (!bucket_is_big(sorter, found))
				find_bucket(sorter, found);
		if (bucket_is_big(sorter, bucket)) {
			count = copy_big(sorter, bucket, chunk, entries);
		} else {
			count = take_bucket(sorter, bucket, entries);
			order_bucket(sorter, bucket, entries, count);
		}
		entries += count;
		assert(entries <= self->entries + sorter->plan.chunk_entries);
	}
	return first;
}

static const uint8_t *record_of(const struct sorter *sorter, uint64_t entry)
{
	return sorter->base +
	       (entry & sorter->index_mask) * sorter->config->shape.size;
}

/* Over the records that begin in the chunk, as the output has them. */
static void add_checksum(const struct sorter *sorter,
			 struct sorter_member *self, const struct chunk *chunk,
			 const uint64_t *entries, const uint8_t *bytes)
{
	uint32_t record_size = sorter->config->shape.size;
	uint64_t length = chunk->end_byte - chunk->begin_byte;
	uint64_t cut = chunk->begin_byte % record_size;
	uint64_t skipped = cut ? MIN(record_size - cut, length) : 0;
	uint64_t whole = (length - skipped) / record_size;
	uint64_t begun = chunk->end_record - chunk->first_record - (cut != 0);

	self->checksum += sorter->sum(bytes + skipped, record_size, whole);
	if (begun > whole)
		self->checksum += sorter->sum(
			record_of(sorter, entries[whole + (cut != 0)]),
			record_size, 1);
}

/* False: the output has failed. */
static bool do_chunk(struct sorter *sorter, struct sorter_member *self,
		     const struct chunk *chunk)
{
	uint32_t record_size = sorter->config->shape.size;
	size_t length_bytes = chunk->end_byte - chunk->begin_byte;
	struct output_slot *slot = NULL;
	uint8_t *target;
	const uint64_t *entries;
	uint64_t begin_ns = trace_begin(&self->lane);

	entries = order_chunk(sorter, self, chunk);
	trace_end(&self->lane, begin_ns, "order");

	begin_ns = trace_begin(&self->lane);
	target = output_place(&sorter->output, chunk->file, chunk->begin_byte,
			      length_bytes);
	if (!target)
		slot = output_take(&sorter->output);
	trace_end(&self->lane, begin_ns, "take");
	if (slot)
		target = slot->data;
	else if (!target)
		return false;

	begin_ns = trace_begin(&self->lane);
	/* A record cut by the chunk's beginning or end gives the part that lies
	 * within. */
	gather_bytes(sorter->gather, target, length_bytes, sorter->base,
		     record_size, entries,
		     (uint32_t)(chunk->begin_byte % record_size),
		     sorter->index_mask);
	if (sorter->config->checksum)
		add_checksum(sorter, self, chunk, entries, target);
	trace_end(&self->lane, begin_ns, "gather");
	atomic_fetch_add_explicit(&sorter->gathered_chunks, 1,
				  memory_order_release);
	if (!slot)
		return true;

	begin_ns = trace_begin(&self->lane);
	slot->file = chunk->file;
	slot->offset_bytes = chunk->begin_byte;
	slot->length_bytes = length_bytes;
	output_put(&sorter->output, slot);
	trace_end(&self->lane, begin_ns, "write");
	return true;
}

enum ordering_step ordering_try(struct sorter *sorter, unsigned member)
{
	struct sorter_member *self = &sorter->members[member];
	uint32_t ready = atomic_load_explicit(&sorter->ready_buckets,
					      memory_order_acquire);
	uint64_t number;
	struct chunk chunk;

	if (atomic_load_explicit(&sorter->stop, memory_order_acquire))
		return ORDERING_FAILED;
	if (ready == 0 || (sorter->big_count > 0 && !self->big_passed))
		return ORDERING_WAITS;
	number =
		atomic_load_explicit(&sorter->next_chunk, memory_order_relaxed);
	do {
		if (number >= sorter->chunk_count)
			return ORDERING_DONE;
		chunk = chunk_at(sorter, number);
		if (ready != SORTER_ALL_READY &&
		    bucket_of(sorter, chunk.end_record - 1) >= ready)
			return ORDERING_WAITS;
	} while (!atomic_compare_exchange_weak_explicit(
		&sorter->next_chunk, &number, number + 1, memory_order_relaxed,
		memory_order_relaxed));
	return do_chunk(sorter, self, &chunk) ? ORDERING_MORE : ORDERING_FAILED;
}

/* Until more buckets are complete than were; returns how many are. */
static uint32_t wait_for_buckets(struct sorter *sorter, uint32_t than)
{
	thread_pool_wait_while(&sorter->threads, &sorter->ready_buckets, than);
	return atomic_load_explicit(&sorter->ready_buckets,
				    memory_order_acquire);
}

bool ordering_run(struct sorter *sorter, unsigned member)
{
	uint32_t ready = atomic_load_explicit(&sorter->ready_buckets,
					      memory_order_acquire);
	enum ordering_step step;

	if (ready == 0)
		ready = wait_for_buckets(sorter, 0);
	while (sorter->big_count > 0 && ready != SORTER_ALL_READY)
		ready = wait_for_buckets(sorter, ready);
	/* Nothing may stand if it is only to wake us up. */
	if (atomic_load_explicit(&sorter->stop, memory_order_acquire) ||
	    !ordering_pass_big(sorter, member))
		return false;
	for (;;) {
		/* Read before: what comes in between is not waited for. */
		ready = atomic_load_explicit(&sorter->ready_buckets,
					     memory_order_acquire);
		step = ordering_try(sorter, member);
		if (step == ORDERING_WAITS)
			wait_for_buckets(sorter, ready);
		else if (step != ORDERING_MORE)
			break;
	}
	if (step == ORDERING_FAILED)
		return false;
	output_help(&sorter->output);
	return true;
}
