/*
 * udp_clock.h - how a peer's clock relates to ours, from the STATUS it sends
 *
 * Each STATUS has its sender's clock, the last clock of ours that the sender
 * has seen (the echo), and for how long it has held that.  The shortest round
 * trip tells the clocks' difference best: it is wrong by half of that trip at
 * most.
 */
#ifndef UDP_CLOCK_H
#define UDP_CLOCK_H

#include <stdint.h>

#include "exchange/udp/udp_wire.h"

/* One peer's clock.  Written by udp_clock.c only. */
struct udp_clock {
	uint64_t theirs_ns; /* its clock in its last STATUS; 0: there is none */
	uint64_t heard_ns;  /* our clock when that came */
	uint64_t round_trip_ns; /* the shortest; UINT64_MAX: not known */
	uint64_t last_round_trip_ns;
	int64_t offset_ns; /* its clock less ours */
};

void udp_clock_init(struct udp_clock *clock);

/* now_ns: our clock, read after the STATUS had come. */
void udp_clock_hear(struct udp_clock *clock,
		    const struct udp_wire_status *status, uint64_t now_ns);

/* Fill the echo of a STATUS that has its own clock_ns already. */
void udp_clock_echo(const struct udp_clock *clock,
		    struct udp_wire_status *status);

#endif /* UDP_CLOCK_H */
