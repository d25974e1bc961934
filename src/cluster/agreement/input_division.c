/* input_division.c - which rank reads which part of an input that all share */
#include "cluster/agreement/input_division.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"

/* A rate, and a time in 2^-TIME_BITS seconds, have so few bits that their
 * product fits into 128. */
#define RATE_MAX ((uint64_t)1 << 40)
#define TIME_MAX ((uint64_t)1 << 60)
#define TIME_BITS 20
/* The ranks divide anew when the first of them has come this part of its way.
 */
#define PAUSE_PART(ns) ((ns) / 4 * 3)
#define PAUSE_NS_MIN 5000000
#define PAUSE_NS_UNKNOWN 20000000
#define PAUSE_NS_MAX 2000000000

/* --- parts ---------------------------------------------------------------- */

uint64_t input_division_begin(uint64_t whole_count, unsigned rank,
			      unsigned rank_count)
{
	return (uint64_t)((unsigned __int128)whole_count * rank / rank_count);
}

uint64_t input_division_records_max(uint64_t whole_count, unsigned rank_count)
{
	uint64_t part = DIV_ROUND_UP(whole_count, rank_count);

	return MIN(whole_count, part + part / 2 + 1);
}

static void give(struct input_part *part, struct input_range range)
{
	unsigned count =
		input_range_append(part->ranges, part->range_count, range);

	part->left += range.record_count;
	part->given += count - part->range_count;
	part->range_count = count;
}

void input_division_init(struct input_division *division, uint64_t whole_count,
			 unsigned rank_count, const unsigned *given_max)
{
	/* Not by assigning a whole struct, which has 4 MB: a compiler that does
	 * not optimize makes it on the stack. */
	division->rank_count = rank_count;
	division->records_max =
		input_division_records_max(whole_count, rank_count);
	division->is_final = false;
	division->pause_ns = PAUSE_NS_MIN;
	memset(division->parts, 0, rank_count * sizeof(division->parts[0]));
	for (unsigned i = 0; i < rank_count; i++) {
		uint64_t begin =
			input_division_begin(whole_count, i, rank_count);
		uint64_t end =
			input_division_begin(whole_count, i + 1, rank_count);

		division->parts[i].given_max =
			MIN(given_max[i], READING_RANGES_MAX);
		if (end > begin)
			give(&division->parts[i],
			     (struct input_range){ begin, end - begin });
	}
}

/* Count `count` records more as taken by the rank. */
static void take(struct input_part *part, uint64_t count)
{
	part->taken += count;
	part->left -= count;
	while (count > 0) {
		struct input_range some = part->ranges[0];

		some.record_count = MIN(count, some.record_count);
		part->had_count =
			input_range_append(part->had, part->had_count, some);
		part->range_count = input_range_drop_front(
			part->ranges, part->range_count, some.record_count);
		count -= some.record_count;
	}
}

/* --- how much each should have -------------------------------------------- */

struct wish {
	uint64_t rate; /* in records, as is what follows */
	uint64_t busy; /* taken, but not read yet */
	uint64_t most; /* that it may have left */
	uint64_t target;
	uint64_t grain;
};

static bool may_get_ranges(const struct input_part *part)
{
	return part->given < part->given_max &&
	       part->range_count < READING_RANGES_MAX;
}

static void make_wish(struct wish *wish, const struct input_division *division,
		      const struct input_part *part,
		      const struct input_division_told *told)
{
	*wish = (struct wish){
		.rate = MIN(told->rate, RATE_MAX),
		.busy = told->taken - MIN(told->read, told->taken),
		.most = part->left,
		.grain = MAX(1, told->grain),
	};
	if (may_get_ranges(part) && part->taken < division->records_max)
		wish->most =
			MAX(wish->most, division->records_max - part->taken);
}

/* A rank that has not come far enough yet is as fast as the others are.  False:
 * no rate is known. */
static bool guess_rates(struct wish *wishes, unsigned count)
{
	uint64_t sum = 0;
	unsigned known = 0;

	for (unsigned i = 0; i < count; i++) {
		sum += wishes[i].rate;
		known += wishes[i].rate > 0;
	}
	for (unsigned i = 0; i < count; i++)
		if (wishes[i].rate == 0)
			wishes[i].rate = MAX(1, sum / MAX(1, known));
	return known > 0;
}

/* What the rank can read until then, of what it has not taken yet. */
static uint64_t until(const struct wish *wish, uint64_t time)
{
	unsigned __int128 read =
		(unsigned __int128)wish->rate * time >> TIME_BITS;

	if (read <= wish->busy)
		return 0;
	return read - wish->busy < wish->most ? (uint64_t)read - wish->busy
					      : wish->most;
}

/* The latest time by which all of them together read no more than is left; what
 * is missing then stays where it is. */
static void set_targets(struct wish *wishes, unsigned count, uint64_t left)
{
	uint64_t early = 0, late = TIME_MAX;

	while (late - early > 1) {
		uint64_t middle = early + (late - early) / 2, sum = 0;

		for (unsigned i = 0; i < count; i++)
			sum += until(&wishes[i], middle);
		if (sum <= left)
			early = middle;
		else
			late = middle;
	}
	for (unsigned i = 0; i < count; i++)
		wishes[i].target = until(&wishes[i], early);
}

/* --- moving --------------------------------------------------------------- */

static uint64_t excess(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* A rank gets more when it has less than this left of what it should have:
 * rates change, and ranges that are given too early come back in pieces. */
#define NEED_PART(target) ((target) / 2)

/* The rank that is most below its target and may get a range, and the one that
 * is most above its own.  False: no two of them are worth a move. */
static bool find_pair(const struct input_division *division,
		      const struct wish *wishes, unsigned *taker,
		      unsigned *giver, uint64_t *count)
{
	uint64_t need = 0, surplus = 0;

	for (unsigned i = 0; i < division->rank_count; i++) {
		const struct input_part *part = &division->parts[i];
		uint64_t below = excess(wishes[i].target, part->left);
		uint64_t above = excess(part->left, wishes[i].target);

		if (below > need && part->left <= NEED_PART(wishes[i].target) &&
		    may_get_ranges(part)) {
			need = below;
			*taker = i;
		}
		if (above > surplus) {
			surplus = above;
			*giver = i;
		}
	}
	*count = MIN(need, surplus);
	return *count > 0 && *count >= wishes[*taker].grain;
}

/* Move records from the end of the giver's last range. */
static void move(struct input_part *giver, struct input_part *taker,
		 uint64_t count)
{
	struct input_range *last = &giver->ranges[giver->range_count - 1];
	struct input_range moved;

	moved.record_count = MIN(count, last->record_count);
	last->record_count -= moved.record_count;
	moved.first_record = last->first_record + last->record_count;
	giver->left -= moved.record_count;
	giver->range_count -= last->record_count == 0;
	give(taker, moved);
}

/* --- dividing ------------------------------------------------------------- */

/* What is left of each is too little for another batch. */
static bool is_small(const struct input_division *division,
		     const struct wish *wishes)
{
	for (unsigned i = 0; i < division->rank_count; i++)
		if (division->parts[i].left > wishes[i].grain)
			return false;
	return true;
}

static uint64_t pause_ns(const struct input_division *division,
			 const struct wish *wishes)
{
	double least = PAUSE_NS_MAX;

	for (unsigned i = 0; i < division->rank_count; i++) {
		uint64_t records = division->parts[i].left + wishes[i].busy;
		double ns = (double)records * 1e9 / (double)wishes[i].rate;

		if (division->parts[i].left > 0 && ns < least)
			least = ns;
	}
	return (uint64_t)MAX(PAUSE_NS_MIN, PAUSE_PART(least));
}

int input_division_update(struct input_division *division,
			  const struct input_division_told *told, unsigned *bad)
{
	struct wish wishes[RANK_NODES_MAX];
	unsigned taker = 0, giver = 0;
	uint64_t left = 0, count;
	bool has_rates;

	for (unsigned i = 0; i < division->rank_count; i++) {
		struct input_part *part = &division->parts[i];

		*bad = i;
		if (told[i].taken < part->taken ||
		    told[i].taken - part->taken > part->left)
			return -EBADMSG;
		take(part, told[i].taken - part->taken);
		make_wish(&wishes[i], division, part, &told[i]);
		left += part->left;
	}
	has_rates = guess_rates(wishes, division->rank_count);
	set_targets(wishes, division->rank_count, left);
	while (has_rates && find_pair(division, wishes, &taker, &giver, &count))
		move(&division->parts[giver], &division->parts[taker], count);
	division->is_final =
		left == 0 || (has_rates && is_small(division, wishes));
	division->pause_ns =
		has_rates ? pause_ns(division, wishes) : PAUSE_NS_UNKNOWN;
	return 0;
}

unsigned input_division_parts(const struct input_part *part,
			      struct input_range *parts)
{
	memcpy(parts, part->had, part->had_count * sizeof(*parts));
	memcpy(parts + part->had_count, part->ranges,
	       part->range_count * sizeof(*parts));
	return part->had_count + part->range_count;
}
