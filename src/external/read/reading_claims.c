/*
 * reading_claims.c - claims batches from the ranges that the ranks divide
 */
#include "external/read/reading_claims.h"

#include <assert.h>

#include "base/base.h"
#include "base/clock.h"

void reading_claims_open(struct reading_claims *claims, uint64_t capacity)
{
	assert(capacity > 0);
	*claims = (struct reading_claims){ .capacity = capacity };
	pthread_mutex_init(&claims->lock, NULL);
	pthread_cond_init(&claims->changed, NULL);
}

void reading_claims_close(struct reading_claims *claims)
{
	pthread_cond_destroy(&claims->changed);
	pthread_mutex_destroy(&claims->lock);
}

/* --- the reading team: claim ------------------------------------------------
 *
 * The caller holds the lock.
 */

/* Records that the next batch would have. */
static uint64_t next_count(const struct reading_claims *claims)
{
	uint64_t count = MIN(claims->capacity, claims->allowed);

	return claims->range_count > 0
		       ? MIN(count, claims->ranges[0].record_count)
		       : 0;
}

static void claim(struct reading_claims *claims, uint64_t count)
{
	claims->batches[claims->count % READING_CLAIMED_MAX] =
		(struct input_range){
			.first_record = claims->ranges[0].first_record,
			.record_count = count,
		};
	claims->count++;
	claims->claimed += count;
	claims->allowed -= count;
	claims->range_count = input_range_drop_front(
		claims->ranges, claims->range_count, count);
}

static void wait_for_ranges(struct reading_claims *claims)
{
	claims->waits_since_ns = clock_now_ns();
	pthread_cond_wait(&claims->changed, &claims->lock);
	claims->waited_ns += clock_now_ns() - claims->waits_since_ns;
	claims->waits_since_ns = 0;
}

bool reading_claims_batch(void *context, uint64_t number, bool waits,
			  struct input_range *batch)
{
	struct reading_claims *claims = context;
	bool is_known;

	pthread_mutex_lock(&claims->lock);
	if (waits)
		claims->begun = number + 1;
	while (number == claims->count && number <= claims->begun &&
	       !claims->has_stopped) {
		uint64_t count = next_count(claims);

		if (count > 0)
			claim(claims, count);
		else if (waits && !claims->is_final)
			wait_for_ranges(claims);
		else
			break;
	}
	is_known = number < claims->count;
	assert(!is_known || claims->count - number <= READING_CLAIMED_MAX);
	if (is_known)
		*batch = claims->batches[number % READING_CLAIMED_MAX];
	pthread_mutex_unlock(&claims->lock);
	return is_known;
}

uint64_t reading_claims_left(struct reading_claims *claims, uint64_t number)
{
	uint64_t left;

	pthread_mutex_lock(&claims->lock);
	left = claims->count - number;
	for (unsigned r = 0; r < claims->range_count; r++)
		left += DIV_ROUND_UP(claims->ranges[r].record_count,
				     claims->capacity);
	if (!claims->is_final)
		left = UINT64_MAX;
	pthread_mutex_unlock(&claims->lock);
	return left;
}

/* --- the caller's thread -------------------------------------------------- */

uint64_t reading_claims_hold(struct reading_claims *claims)
{
	uint64_t held;

	pthread_mutex_lock(&claims->lock);
	/* A batch that is claimed but not begun suffices. */
	claims->allowed = claims->count > claims->begun ? 0 : claims->capacity;
	claims->allowed = next_count(claims);
	held = claims->claimed + claims->allowed;
	pthread_mutex_unlock(&claims->lock);
	return held;
}

void reading_claims_give(struct reading_claims *claims,
			 const struct input_range *ranges, unsigned count,
			 bool is_final)
{
	struct input_range held;

	assert(count <= READING_RANGES_MAX);
	pthread_mutex_lock(&claims->lock);
	assert(claims->allowed <= claims->capacity);
	/* Only what was held is left of our ranges; it has not been claimed by
	 * now. */
	held = claims->ranges[0];
	held.record_count = claims->allowed;
	claims->range_count = input_range_append(claims->ranges, 0, held);
	for (unsigned r = 0; r < count; r++)
		claims->range_count = input_range_append(
			claims->ranges, claims->range_count, ranges[r]);
	claims->allowed = UINT64_MAX;
	claims->is_final = is_final;
	pthread_cond_broadcast(&claims->changed);
	pthread_mutex_unlock(&claims->lock);
}

void reading_claims_stop(struct reading_claims *claims)
{
	pthread_mutex_lock(&claims->lock);
	claims->has_stopped = true;
	pthread_cond_broadcast(&claims->changed);
	pthread_mutex_unlock(&claims->lock);
}

uint64_t reading_claims_waited_ns(struct reading_claims *claims)
{
	uint64_t waited_ns;

	pthread_mutex_lock(&claims->lock);
	waited_ns = claims->waited_ns;
	if (claims->waits_since_ns > 0)
		waited_ns += clock_now_ns() - claims->waits_since_ns;
	pthread_mutex_unlock(&claims->lock);
	return waited_ns;
}
