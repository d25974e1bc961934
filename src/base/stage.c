/* stage.c - counts what each stage of a pass takes */
#include "base/stage.h"

#include <stdbool.h>

#include "base/clock.h"

/* The shortest time with a class of its own is 2 to this, 256 ns; longer ones
 * than 2^40, 18 minutes, share the last class. */
#define LOG_MIN 8
/* 2 to this are the classes of a power of two. */
#define PARTS_LOG 3

_Static_assert(STAGE_CLASSES >> PARTS_LOG == 40 - LOG_MIN, "up to 2^40");

const char *const stage_names[] = {
	"read", "bucket", "order", "gather", "put", "write", "send", "exchange",
};
_Static_assert(ARRAY_LEN(stage_names) == STAGES, "in their order");

const char *const stage_cause_names[] = {
	"read", "write", "batch_to_fill", "batch_to_empty",
	"wave", "team",	 "end",
};
_Static_assert(ARRAY_LEN(stage_cause_names) == STAGE_CAUSES, "in their order");

/* --- sums ----------------------------------------------------------------- */

static void add(_Atomic uint64_t *sum, uint64_t value)
{
	atomic_fetch_add_explicit(sum, value, memory_order_relaxed);
}

static unsigned class_of(uint64_t ns)
{
	unsigned log;

	ns = MAX(ns, 1 << LOG_MIN);
	log = 63 - (unsigned)__builtin_clzll(ns);
	return (unsigned)MIN(STAGE_CLASSES - 1,
			     ((uint64_t)(log - LOG_MIN) << PARTS_LOG) +
				     (ns >> (log - PARTS_LOG)) -
				     (1 << PARTS_LOG));
}

/* The middle of the class. */
static uint64_t class_ns(unsigned class)
{
	unsigned log = LOG_MIN + (class >> PARTS_LOG);
	uint64_t part = class % (1 << PARTS_LOG);

	return (((1 << PARTS_LOG) + part) << (log - PARTS_LOG)) +
	       ((uint64_t)1 << (log - PARTS_LOG - 1));
}

static void add_unit(struct stage_sum *sum, uint64_t ns, uint64_t bytes)
{
	if (bytes == 0)
		return;
	add(&sum->units, 1);
	add(&sum->bytes, bytes);
	atomic_fetch_add_explicit(&sum->classes[class_of(ns)], 1,
				  memory_order_relaxed);
}

static uint64_t find_median(const struct stage_sum *sum)
{
	uint64_t half = (sum->units + 1) / 2, before = 0;

	for (unsigned i = 0; i < STAGE_CLASSES && half > 0; i++) {
		before += sum->classes[i];
		if (before >= half)
			return class_ns(i);
	}
	return 0;
}

void stage_fill_result(struct stage_result *result, const struct stage_sum *sum,
		       unsigned workers)
{
	*result = (struct stage_result){
		.workers = workers,
		.units = sum->units,
		.bytes = sum->bytes,
		.busy_ns = sum->busy_ns,
		.median_ns = find_median(sum),
	};
	for (unsigned i = 0; i < STAGE_CAUSES; i++) {
		result->waits[i].ns = sum->waits[i].ns;
		result->waits[i].count = sum->waits[i].count;
	}
}

/* --- a thread's clock ----------------------------------------------------- */

static bool is_on(const struct stage_clock *clock)
{
	return clock && clock->table;
}

/* The time since the last reading. */
static uint64_t lap(struct stage_clock *clock, uint64_t now_ns)
{
	uint64_t ns = now_ns - clock->lap_ns;

	clock->lap_ns = now_ns;
	return ns;
}

static void add_wait(const struct stage_clock *clock, enum stage_cause cause,
		     uint64_t ns)
{
	struct stage_sum *sum = &clock->table->sums[clock->home];

	add(&sum->waits[cause].ns, ns);
	if (ns >= STAGE_WAIT_NS)
		add(&sum->waits[cause].count, 1);
}

/* How much longer the leader has waited than it had. */
static uint64_t look_at_leader(struct stage_clock *clock,
			       enum stage_cause cause)
{
	uint64_t before_ns = clock->seen_ns[cause];

	if (!clock->leader)
		return 0;
	clock->seen_ns[cause] = atomic_load_explicit(
		&clock->leader->wait_ns[cause], memory_order_relaxed);
	return clock->seen_ns[cause] - before_ns;
}

/* The time between two pieces of work. */
static void divide_gap(struct stage_clock *clock, uint64_t now_ns,
		       enum stage_cause cause)
{
	uint64_t left_ns = lap(clock, now_ns);

	for (unsigned i = 0; i < STAGE_CAUSES; i++) {
		uint64_t ns = look_at_leader(clock, i);

		ns = MIN(ns, left_ns);
		if (ns > 0)
			add_wait(clock, i, ns);
		left_ns -= ns;
	}
	add_wait(clock, cause, left_ns);
}

void stage_begin(struct stage_clock *clock, struct stage_table *table,
		 enum stage home, const struct stage_leader *leader,
		 uint64_t now_ns)
{
	*clock = (struct stage_clock){
		.table = table,
		.leader = leader,
		.home = home,
		.lap_ns = now_ns,
	};
	for (unsigned i = 0; i < STAGE_CAUSES; i++)
		look_at_leader(clock, i);
}

void stage_end(struct stage_clock *clock, uint64_t now_ns)
{
	if (!is_on(clock))
		return;
	divide_gap(clock, now_ns, STAGE_FOR_END);
	clock->table = NULL;
}

void stage_resume(struct stage_clock *clock, enum stage_cause cause)
{
	if (is_on(clock))
		divide_gap(clock, clock_now_ns(), cause);
}

void stage_pause(struct stage_clock *clock)
{
	if (is_on(clock))
		clock->unit_ns += lap(clock, clock_now_ns());
}

void stage_wait(struct stage_clock *clock, enum stage_cause cause)
{
	if (is_on(clock))
		add_wait(clock, cause, lap(clock, clock_now_ns()));
}

void stage_unit(struct stage_clock *clock, enum stage stage, uint64_t bytes)
{
	struct stage_sum *sum;

	if (!is_on(clock))
		return;
	sum = &clock->table->sums[stage];
	clock->unit_ns += lap(clock, clock_now_ns());
	add(&sum->busy_ns, clock->unit_ns);
	add_unit(sum, clock->unit_ns, clock->unit_bytes + bytes);
	clock->unit_ns = clock->unit_bytes = 0;
}

/* --- the kernel's queues -------------------------------------------------- */

static void look(struct stage_queue *queue, uint64_t now_ns)
{
	if (queue->under_way > 0)
		add(&queue->sum->busy_ns, now_ns - queue->seen_ns);
	queue->seen_ns = now_ns;
}

void stage_queue_resume(struct stage_queue *queue, struct stage_sum *sum)
{
	queue->sum = sum;
	queue->seen_ns = sum ? clock_now_ns() : 0;
}

uint64_t stage_queue_begin(struct stage_queue *queue)
{
	uint64_t now_ns = queue->sum ? clock_now_ns() : 0;

	if (queue->sum)
		look(queue, now_ns);
	queue->under_way++;
	return now_ns;
}

void stage_queue_end(struct stage_queue *queue, uint64_t begin_ns,
		     uint64_t bytes)
{
	uint64_t now_ns;

	if (queue->sum) {
		now_ns = clock_now_ns();
		look(queue, now_ns);
		add_unit(queue->sum, now_ns - begin_ns, bytes);
	}
	queue->under_way--;
}
