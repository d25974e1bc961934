/*
 * external_inputs.c - what lies in the input in order becomes runs of a merge
 */
#include <sys/stat.h>

#include "external/external_state.h"
#include "external/runs/input_runs.h"

/* A key is a small read, so there may be more of them under way than of those
 * that the plan has slots for, in the same memory. */
static struct input_runs_slots slots_of(const struct external *external,
					unsigned worker)
{
	const struct external_plan *plan = &external->plan;
	size_t bytes = (size_t)plan->read_depth * plan->read_slot_bytes;
	uint32_t slot_bytes = (uint32_t)READ_AHEAD_SLOT_BYTES(
		external->runs.index.key_shape.size);

	return (struct input_runs_slots){
		.memory = external->read_memory + worker * bytes,
		.slot_bytes = slot_bytes,
		.depth =
			(unsigned)MIN(READ_AHEAD_DEPTH_MAX, bytes / slot_bytes),
	};
}

static void read_keys(void *context, unsigned worker)
{
	struct external *external = context;
	const struct sort_wiring *wiring = &external->reading.wiring;
	struct stage_clock *clock = &wiring->trace->lanes[worker].clock;
	const struct input_runs_slots slots = slots_of(external, worker);
	struct failure failure;
	int error;

	stage_resume(clock, STAGE_FOR_TEAM);
	error = input_runs_read_keys(&external->runs.index, worker,
				     wiring->pool->worker_count, &slots, clock,
				     &failure);
	external_good(external, error, &failure);
}

/* Index the inputs, and read the key of each block. */
static bool find_keys(struct external *external)
{
	struct failure failure;
	const struct input *input = &external->reading.input;
	int error = input_runs_add(&external->runs.index, input, 0,
				   input->record_count, NULL, &failure);

	if (!external_good(external, error, &failure))
		return false;
	thread_pool_run(&external->reading.readers, read_keys, external);
	if (first_failure_stops(&external->failure))
		return false;
	error = input_runs_check_keys(&external->runs.index, input, &failure);
	return external_good(external, error, &failure);
}

bool external_index_inputs(struct external *external)
{
	bool good;

	external_begin_pass(external, EXTERNAL_RUNS);
	good = find_keys(external);
	external_end_pass(external);
	return good;
}

/* --- batches that lie in the input in order ------------------------------- */

/* True if all files lie on disks that runs would be written to: what is read
 * there again would have been read there anyway. */
static bool lies_beside_scratch(const struct external_config *config,
				const struct input *input)
{
	struct stat status;
	unsigned d;

	for (unsigned f = 0; f < input->file_count; f++) {
		for (d = 0; d < config->scratch_count; d++)
			if (stat(config->scratch_paths[d], &status) == 0 &&
			    status.st_dev == input->files[f].device)
				break;
		if (d == config->scratch_count)
			return false;
	}
	return true;
}

bool external_may_reread(const struct external *external)
{
	const struct external_config *config = external->config;

	return external->reading.kind == READING_FILES &&
	       external->plan.way == EXTERNAL_BY_RUNS &&
	       !config->merges_inputs && config->ranks.rank_count <= 1 &&
	       config->sort->widening.bytes == 0 && !config->sort->unique &&
	       external->request.head_records == 0 &&
	       lies_beside_scratch(config, &external->reading.input);
}
