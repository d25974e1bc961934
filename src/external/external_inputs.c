/*
 * external_inputs.c - input files that are in order become the runs of a merge
 */
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
	int error = input_runs_add(&external->runs.index,
				   &external->reading.input, &failure);

	if (!external_good(external, error, &failure))
		return false;
	thread_pool_run(&external->reading.readers, read_keys, external);
	if (first_failure_stops(&external->failure))
		return false;
	error = input_runs_check_keys(&external->runs.index,
				      &external->reading.input, &failure);
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
