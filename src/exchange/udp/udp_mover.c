/*
 * udp_mover.c - the movers of a rank: which of them has which peer, who has the
 * rank's state, and what ends a sleep
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "exchange/udp/udp_state.h"

/* The number is the sum of the digits of the distance to the node, in a system
 * of as many digits as there are movers: so neighbours are spread among them,
 * and so are the ranks of a grid's column. */
struct udp_mover *udp_mover_from(const struct udp *x, unsigned node)
{
	unsigned count = x->mover_count, sum = 0;
	unsigned distance = node + udp_node_count(x) - udp_own(x);

	if (count == 1)
		return x->movers;
	for (distance %= udp_node_count(x); distance > 0; distance /= count)
		sum += distance % count;
	return &x->movers[sum % count];
}

struct udp_mover *udp_mover_to(const struct udp *x, unsigned node)
{
	return x->base.schedule == EXCHANGE_ROUNDS ? x->movers
						   : udp_mover_from(x, node);
}

uint64_t udp_mover_sent_bytes(const struct udp *x, unsigned node)
{
	const struct udp_batch *batch = &udp_mover_to(x, node)->sending;
	uint64_t sent_bytes = x->peers[node]->out.sent_bytes;

	if (batch->is_leaving && !batch->again && batch->node == node)
		sent_bytes += batch->byte_count;
	return sent_bytes;
}

/* --- who has the state ------------------------------------------------------
 */

static void take_state(struct udp *x)
{
	if (x->mover_count > 1)
		udp_lock_take(&x->lock);
}

static void give_state(struct udp *x)
{
	if (x->mover_count > 1)
		udp_lock_give(&x->lock);
}

void udp_mover_lend_state(struct udp *x)
{
	x->lent_count++;
	give_state(x);
}

void udp_mover_retake_state(struct udp *x)
{
	take_state(x);
	x->lent_count--;
	if (x->awaits_lent && x->lent_count == 0)
		udp_mover_wake(x->movers);
}

void udp_mover_begin_step(struct udp_mover *mover)
{
	mover->is_wanted = false;
}

bool udp_mover_lie_down(struct udp_mover *mover)
{
	if (mover->is_wanted)
		return false;
	mover->sleeps = mover->x->mover_count > 1;
	give_state(mover->x);
	return true;
}

void udp_mover_get_up(struct udp_mover *mover)
{
	take_state(mover->x);
	if (mover->is_woken)
		udp_waker_clear(mover->waker);
	mover->sleeps = mover->is_woken = false;
}

void udp_mover_wake(struct udp_mover *mover)
{
	mover->is_wanted = mover->x->mover_count > 1;
	if (!mover->sleeps || mover->is_woken)
		return;
	mover->is_woken = true;
	udp_waker_wake(mover->waker);
}

void udp_mover_wake_all(struct udp *x)
{
	for (unsigned i = 0; i < x->mover_count; i++)
		udp_mover_wake(&x->movers[i]);
}

void udp_mover_settle(struct exchange *exchange)
{
	struct udp *x = udp_of(exchange);

	if (x->lent_count == 0)
		return;
	x->awaits_lent = true;
	while (x->lent_count > 0) {
		struct pollfd fd = { .fd = x->movers[0].waker,
				     .events = POLLIN };

		udp_mover_begin_step(x->movers);
		udp_mover_lie_down(x->movers);
		ppoll(&fd, 1, NULL, NULL);
		udp_mover_get_up(x->movers);
	}
	x->awaits_lent = false;
	udp_mover_wake_all(x);
}

bool udp_mover_compute(struct exchange *exchange)
{
	const struct exchange_collective *collective = exchange->collective;
	struct udp *x = udp_of(exchange);
	bool any;

	give_state(x);
	any = collective->idle(collective->context);
	take_state(x);
	return any;
}

/* --- opening and closing ----------------------------------------------------
 */

static int refuse(int error, struct failure *failure)
{
	return error == -ENOMEM ? failure_no_memory(failure)
				: failure_set(failure, EXIT_RESOURCES, NULL,
					      -error, "the exchange's threads");
}

int udp_mover_open(struct udp *x, struct failure *failure)
{
	unsigned count = x->options.thread_count;

	x->movers = calloc(count, sizeof(*x->movers));
	if (!x->movers)
		return failure_no_memory(failure);
	pthread_mutex_init(&x->lock, NULL);
	/* Most of it is buffers of datagrams; so large a block is fresh. */
	exchange_place(&x->base, x->movers, count * sizeof(*x->movers));
	x->mover_count = count;
	for (unsigned i = 0; i < count; i++) {
		struct udp_mover *mover = &x->movers[i];

		mover->x = x;
		mover->control.fd = mover->data.fd = mover->waker = -1;
	}
	for (unsigned i = 0; i < count && count > 1; i++) {
		x->movers[i].waker = udp_waker_open();
		if (x->movers[i].waker < 0)
			return refuse(x->movers[i].waker, failure);
	}
	return 0;
}

int udp_mover_start(struct udp *x, void (*work)(void *mover),
		    struct failure *failure)
{
	int error = 0;

	take_state(x);
	x->is_taken = x->mover_count > 1;
	for (unsigned i = 1; i < x->mover_count && error == 0; i++) {
		struct udp_mover *mover = &x->movers[i];

		mover->thread.work = work;
		mover->thread.argument = mover;
		error = udp_thread_start(&mover->thread);
	}
	return error ? refuse(error, failure) : 0;
}

void udp_mover_stop(struct exchange *exchange)
{
	struct udp *x = udp_of(exchange);

	x->movers_end = true;
	udp_mover_wake_all(x);
	if (x->is_taken)
		give_state(x);
	for (unsigned i = 0; i < x->mover_count; i++)
		udp_thread_join(&x->movers[i].thread);
}

void udp_mover_close(struct udp *x)
{
	for (unsigned i = 0; i < x->mover_count; i++) {
		datagram_close(&x->movers[i].control);
		datagram_close(&x->movers[i].data);
		udp_waker_close(x->movers[i].waker);
	}
	if (x->movers)
		pthread_mutex_destroy(&x->lock);
	free(x->movers);
}
