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

bool external_index_inputs(struct external *external)
{
	const struct input *input = &external->reading.input;
	struct run_index *index = &external->runs.index;
	struct failure failure;
	bool good;
	int error;

	external_begin_pass(external, EXTERNAL_RUNS);
	error = input_runs_add(index, input, &failure);
	good = external_good(external, error, &failure);
	if (good) {
		thread_pool_run(&external->reading.readers, read_keys,
				external);
		good = !first_failure_stops(&external->failure);
	}
	if (good) {
		error = input_runs_check_keys(index, input, &failure);
		good = external_good(external, error, &failure);
	}
	external_end_pass(external);
	return good;
}
