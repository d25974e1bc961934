/*
 * lane_plan.c - deals files out to lanes, and ranges to batches
 */
#include "external/plan/lane_plan.h"

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

	for (unsigned f = 0; f < file_count; f++)
		if (files[f].record_count > 0)
			find_device(&devices, files[f].device);
	plan->lane_count = MAX(1, MIN(lane_count, devices.count));
	plan->range_count = 0;
	for (unsigned f = 0; f < file_count; f++) {
		if (files[f].record_count == 0)
			continue;
		add_range(plan,
			  find_device(&devices, files[f].device) %
				  plan->lane_count,
			  first, files[f].record_count);
		first += files[f].record_count;
	}
}

/* --- batches -------------------------------------------------------------- */

static uint64_t batches_in(const struct lane_range *range, uint64_t capacity)
{
	return DIV_ROUND_UP(range->record_count, capacity);
}

uint64_t lane_plan_batches(const struct lane_plan *plan, uint64_t capacity)
{
	uint64_t count = 0;

	for (unsigned r = 0; r < plan->range_count; r++)
		count += batches_in(&plan->ranges[r], capacity);
	return count;
}

uint64_t lane_plan_batches_of(const struct lane_plan *plan, unsigned lane,
			      uint64_t capacity)
{
	uint64_t count = 0;

	for (unsigned r = 0; r < plan->range_count; r++)
		if (plan->ranges[r].lane == lane)
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

/* The smallest batch that is larger than `above`, or UINT64_MAX; and how many
 * there are of this size. */
static uint64_t next_size(const struct lane_plan *plan, uint64_t capacity,
			  uint64_t above, uint64_t *number)
{
	uint64_t size = UINT64_MAX;

	*number = 0;
	for (unsigned r = 0; r < plan->range_count; r++) {
		const struct lane_range *range = &plan->ranges[r];
		uint64_t count = batches_in(range, capacity);
		uint64_t rest = range->record_count % count;
		uint64_t low = range->record_count / count;
		const uint64_t sizes[] = { low, low + 1 };
		const uint64_t numbers[] = { count - rest, rest };

		for (unsigned i = 0; i < 2; i++) {
			if (numbers[i] == 0 || sizes[i] <= above ||
			    sizes[i] > size)
				continue;
			*number = sizes[i] == size ? *number : 0;
			*number += numbers[i];
			size = sizes[i];
		}
	}
	return size;
}

uint64_t lane_plan_least(const struct lane_plan *plan, uint64_t capacity,
			 uint64_t count)
{
	uint64_t records = 0, size = 0;

	while (count > 0) {
		uint64_t number;

		size = next_size(plan, capacity, size, &number);
		if (size == UINT64_MAX)
			break;
		records += MIN(number, count) * size;
		count -= MIN(number, count);
	}
	return records;
}
