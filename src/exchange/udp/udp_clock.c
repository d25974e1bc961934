/*
 * udp_clock.c - compare clocks by echoes
 */
#include "exchange/udp/udp_clock.h"

#include "base/base.h"

#define ROUND_TRIP_NS_MAX ((uint64_t)250000000)

void udp_clock_init(struct udp_clock *clock)
{
	*clock = (struct udp_clock){ .round_trip_ns = UINT64_MAX };
}

void udp_clock_hear(struct udp_clock *clock,
		    const struct udp_wire_status *status, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns - status->echo_ns;
	uint64_t round_trip_ns = passed_ns - status->held_ns;

	clock->theirs_ns = status->clock_ns;
	clock->heard_ns = now_ns;
	/* An echo of what our clock has not shown yet is none.  One that was
	 * held for longer than has passed may come of clocks that run at
	 * different rates. */
	if (status->echo_ns == 0 || status->echo_ns > now_ns ||
	    status->held_ns > passed_ns)
		return;
	/* The round trip of a repeated echo grows: bound it. */
	clock->last_round_trip_ns = MIN(round_trip_ns, ROUND_TRIP_NS_MAX);
	if (round_trip_ns >= clock->round_trip_ns)
		return;
	clock->round_trip_ns = round_trip_ns;
	clock->offset_ns =
		(int64_t)(status->clock_ns + round_trip_ns / 2 - now_ns);
}

void udp_clock_echo(const struct udp_clock *clock,
		    struct udp_wire_status *status)
{
	status->echo_ns = clock->theirs_ns;
	if (clock->theirs_ns)
		status->held_ns = status->clock_ns - clock->heard_ns;
}
