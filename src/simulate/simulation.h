/*
 * simulation.h - one exchange between simulated ranks
 *
 * The ranks run the exchange over UDP as it is (exchange/udp/), each as a host
 * of a world, over a virtual network.  Each sends a message to each other one;
 * then all meet in a barrier.  All that takes time are the options below: what
 * the code itself computes takes none.
 */
#ifndef SIMULATION_H
#define SIMULATION_H

#include "exchange/exchange.h"
#include "simulate/virtual_network.h"

/* Something that happens to one rank. */
struct simulation_event {
	unsigned rank;
	uint64_t at_ns; /* after the beginning */
	uint64_t length_ns;
};

#define SIMULATION_EVENTS_MAX 16

struct simulation_options {
	unsigned node_count; /* 2 .. RANK_NODES_MAX */
	uint64_t message_bytes;
	enum exchange_schedule schedule; /* AUTO: as blinksort chooses */
	bool says_hello; /* all to all, before they exchange messages */
	bool plain;	 /* a call for each datagram */
	uint64_t deadline_ns;
	uint64_t seed;
	uint64_t skew_ns; /* ranks begin within this */
	struct virtual_network_options network;
	/* These interrupt each rank's CPU; .next_ns is drawn. */
	struct interruption noise[WORLD_INTERRUPTIONS_MAX / 2];
	unsigned noise_count;
	struct simulation_event pauses[WORLD_INTERRUPTIONS_MAX / 2];
	unsigned pause_count;
	struct simulation_event deaths[SIMULATION_EVENTS_MAX];
	unsigned death_count;
	struct simulation_event slow[SIMULATION_EVENTS_MAX]; /* length: times */
	unsigned slow_count;
	const char *trace_path; /* or NULL */
};

struct simulation_figures {
	enum exchange_schedule schedule; /* not AUTO */
	/* From when the first rank begins until a rank has all its messages. */
	uint64_t median_ns, max_ns;
	uint64_t end_ns;		/* until the last rank is done */
	struct exchange_counters ranks; /* the sum of all */
	struct virtual_counters network;
	uint64_t event_count, digest;
	bool compared; /* the messages' bytes; else they were all zero */
};

/* Returns 0; or -errno with *failure filled: EXIT_PEER with the first rank that
 * has failed, which died, or that never ends; EXIT_WRONG if other bytes came
 * than were sent.  Figures are filled as far as the ranks came. */
int simulation_run(const struct simulation_options *options,
		   struct simulation_figures *figures, struct failure *failure);

#endif /* SIMULATION_H */
