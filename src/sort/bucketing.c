/*
 * bucketing.c - the first half of a sort: every record's entry in its bucket
 */
#include "sort/partition.h"
#include "sort/sorter_state.h"

/* Static splitters have failed when so much of the input (a part of it) lies in
 * big buckets, which are sorted one by one. */
#define BIG_PART 8

/* Bring in some records, and put them into buckets if there are splitters for
 * them.  False: the run has failed. */
static bool pass_over(struct sorter *sorter, struct sorter_member *self,
		      uint64_t first, uint64_t count, bool resident,
		      bool partition)
{
	struct failure failure = { .status = EXIT_DONE };
	struct input_reader reader;
	struct input_run run;
	int more = input_reader_init(&reader, &sorter->input, first, count,
				     resident, &failure);

	if (more < 0) {
		sorter_fail(sorter, &failure);
		return false;
	}
	for (;;) {
		uint64_t begin_ns = trace_begin(&self->lane);

		more = input_reader_next(&reader, &run, &failure);
		if (more <= 0)
			break;
		if (partition)
			partition_records(&self->writer, sorter->config->kernel,
					  &sorter->splitters,
					  &sorter->config->shape,
					  sorter->plan.index_bits, run.records,
					  run.slot, run.record_count);
		trace_end(&self->lane, begin_ns, partition ? "bucket" : "read");
		if (sorter->serve && self == &sorter->members[0])
			sorter->serve(sorter->serve_context);
		if (atomic_load_explicit(&sorter->stop, memory_order_relaxed))
			break;
	}
	if (more < 0)
		sorter_fail(sorter, &failure);
	input_reader_fini(&reader);
	return more >= 0;
}

/* Pieces of a mapped input go to whoever is free: a CPU that is late or slowed
 * down takes fewer of them. */
static void pass_pieces(struct sorter *sorter, struct sorter_member *self,
			bool partition)
{
	uint64_t piece = sorter->plan.piece_records;
	uint64_t record_count = sorter->input.record_count;
	bool good = true;

	while (good &&
	       !atomic_load_explicit(&sorter->stop, memory_order_relaxed)) {
		uint64_t first = atomic_fetch_add_explicit(
			&sorter->next_record, piece, memory_order_relaxed);

		if (first >= record_count)
			break;
		good = pass_over(sorter, self, first,
				 MIN(piece, record_count - first), false,
				 partition);
	}
}

/*
 * All members' passes together cover the input once.  Splitters with buckets
 * that need no sorting want shares that ascend with the members, so that their
 * lists, one after the other, are in record order; so does a queue of reads.
 */
void bucketing_pass(struct sorter *sorter, unsigned member, bool resident,
		    bool partition)
{
	struct sorter_member *self = &sorter->members[member];
	uint64_t first, count;

	if (partition)
		bucket_writer_reset(&self->writer,
				    sorter->splitters.bucket_count);
	if (!resident && !(partition && sorter->keeps_order) &&
	    sorter->input.mode == INPUT_MMAP) {
		pass_pieces(sorter, self, partition);
	} else {
		input_share(&sorter->input, member,
			    sorter->threads.worker_count, &first, &count);
		pass_over(sorter, self, first, count, resident, partition);
	}
	if (partition)
		bucket_writer_finish(&self->writer,
				     sorter->splitters.bucket_count);
}

/* ------------------------------------------------- member 0, between passes */

static void draw_sample(struct sorter *sorter)
{
	uint32_t sample_count = sorter->plan.sample_count;
	uint64_t record_count = sorter->input.record_count;
	uint64_t random = 1;

	for (uint32_t i = 0; i < sample_count; i++)
		sorter->sample[i] = input_record(
			&sorter->input,
			splitters_draw(record_count, sample_count, i, &random));
	splitters_init_sampled(&sorter->splitters, &sorter->config->shape,
			       sorter->sample, sample_count,
			       sorter->sample_windows,
			       sorter->plan.splitters_wanted);
}

static void decide(struct sorter *sorter)
{
	bool sampled = sorter->splitters.kind == SPLITTERS_SAMPLED;

	sorter->partition_again = false;
	if (sorter->partitioned) {
		sorter->bucket_count = sorter->splitters.bucket_count;
		ordering_add_up(sorter);
		if (sampled || sorter->config->splitters == SPLITTERS_STATIC ||
		    sorter->big_count <= sorter->input.record_count / BIG_PART)
			return;
	}
	if (!sampled || !sorter->partitioned)
		draw_sample(sorter);
	bucket_pool_reset(&sorter->pool);
	sorter->partition_again = true;
	sorter->partitioned = true;
}

bool bucketing_run(struct sorter *sorter, unsigned member)
{
	bucketing_pass(sorter, member, false, sorter->partition_while_reading);
	for (;;) {
		if (thread_pool_barrier(&sorter->threads, &sorter->stop))
			return false;
		if (member == 0)
			decide(sorter);
		if (thread_pool_barrier(&sorter->threads, &sorter->stop))
			return false;
		if (!sorter->partition_again)
			return true;
		bucketing_pass(sorter, member, true, true);
	}
}
