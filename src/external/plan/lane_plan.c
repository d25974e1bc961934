/*
 * lane_plan.c - deals files out to lanes, and ranges to batches
 */
#include "external/plan/lane_plan.h"

#include <stdlib.h>

#include "base/base.h"

/* --- lanes and ranges ----------------------------------------------------- */

/* The devices that have records, in the order in which they occur. */
struct devices {
	unsigned count;
	dev_t numbers[INPUT_FILES_MAX];
};

/* The place of the device; it is added if it is new. */
static unsigned find_device(struct devices *devices, dev_t device)
{
	unsigned d = 0;

	while (d < devices->count && devices->numbers[d] != device)
		d++;
	if (d == devices->count)
		devices->numbers[devices->count++] = device;
	return d;
}

static void add_range(struct lane_plan *plan, unsigned lane, uint64_t first,
		      uint64_t count)
{
	struct lane_range *last = &plan->ranges[plan->range_count];

	if (plan->range_count > 0 && last[-1].lane == lane) {
		last[-1].record_count += count;
		return;
	}
	*last = (struct lane_range){
		.lane = lane,
		.first_record = first,
		.record_count = count,
	};
	plan->range_count++;
}

void lane_plan_make(struct lane_plan *plan, const struct lane_file *files,
		    unsigned file_count, unsigned lane_count)
{
	struct devices devices = { .count = 0 };
	uint64_t first = 0;

	plan->range_count = 0;
	for (unsigned f = 0; f < file_count; f++) {
		if (files[f].record_count == 0)
			continue;
		add_range(plan,
			  find_device(&devices, files[f].device) % lane_count,
			  first, files[f].record_count);
		first += files[f].record_count;
	}
	plan->lane_count = MAX(1, MIN(lane_count, devices.count));
}

/* --- batches -------------------------------------------------------------- */

static uint64_t batches_in(const struct lane_range *range, uint64_t capacity)
{
	return DIV_ROUND_UP(range->record_count, capacity);
}

uint64_t lane_plan_batches(const struct lane_plan *plan, unsigned lane,
			   uint64_t capacity)
{
	uint64_t count = 0;

	for (unsigned r = 0; r < plan->range_count; r++)
		if (lane == LANES_ALL || plan->ranges[r].lane == lane)
			count += batches_in(&plan->ranges[r], capacity);
	return count;
}

/* Batch b of the range, which has `count` batches. */
static struct input_range batch_of(const struct lane_plan *plan,
				   const struct lane_range *range,
				   uint64_t capacity, uint64_t b,
				   uint64_t count)
{
	uint64_t even = range->record_count / count;
	uint64_t more = range->record_count % count;

	if (plan->lane_count == 1)
		return (struct input_range){
			.first_record = range->first_record + b * capacity,
			.record_count = MIN(capacity,
					    range->record_count - b * capacity),
		};
	return (struct input_range){
		.first_record = range->first_record + b * even + MIN(b, more),
		.record_count = even + (b < more),
	};
}

bool lane_plan_batch(const struct lane_plan *plan, unsigned lane,
		     uint64_t capacity, uint64_t number,
		     struct input_range *batch)
{
	for (unsigned r = 0; r < plan->range_count; r++) {
		const struct lane_range *range = &plan->ranges[r];
		uint64_t count = batches_in(range, capacity);

		if (range->lane != lane)
			continue;
		if (number < count) {
			*batch = batch_of(plan, range, capacity, number, count);
			return true;
		}
		number -= count;
	}
	return false;
}

struct batches {
	uint64_t size, count;
};

static int compare(const void *a, const void *b)
{
	uint64_t first = ((const struct batches *)a)->size;
	uint64_t second = ((const struct batches *)b)->size;

	return (first > second) - (first < second);
}

uint64_t lane_plan_least(const struct lane_plan *plan, uint64_t capacity,
			 uint64_t count)
{
	struct batches of[2 * INPUT_FILES_MAX];
	uint64_t records = 0;

	for (unsigned r = 0; r < plan->range_count; r++) {
		uint64_t range = plan->ranges[r].record_count;
		uint64_t batches = batches_in(&plan->ranges[r], capacity);
		uint64_t more = range % batches;

		of[2 * r] = (struct batches){ range / batches, batches - more };
		of[2 * r + 1] = (struct batches){ range / batches + 1, more };
	}
	qsort(of, 2 * plan->range_count, sizeof(*of), compare);
	for (unsigned i = 0; i < 2 * plan->range_count; i++) {
		records += MIN(of[i].count, count) * of[i].size;
		count -= MIN(of[i].count, count);
	}
	return records;
}
