/*
 * simulation.h - exchanges between simulated ranks
 *
 * The ranks run the exchange over UDP as it is (exchange/udp/), each as a host
 * of a world, over a virtual network.  Each sends a message to each other one,
 * once or several times; then all meet in a barrier.  All that takes time are
 * the options below: what the code itself computes takes none.
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
/* Exchanges, one after the other. */
#define SIMULATION_TIMES_MAX 1000

/* Lengths of messages, of which message_bytes is the longest. */
enum simulation_lengths {
	SIMULATION_EQUAL,
	SIMULATION_SKEWED, /* most are far shorter */
	SIMULATION_SOME,   /* half of them are empty */
	SIMULATION_ONE,	   /* only one rank gets any, each time another one */
	SIMULATION_LENGTHS
};

/* [enum simulation_lengths]: "equal", "skewed", "some", "one" */
extern const char *const simulation_lengths_names[SIMULATION_LENGTHS];

/* What became of a rank. */
struct simulation_outcome {
	bool has_ended; /* else it died, or went on until the limit */
	/* It came to the barrier: all messages to it and from it had arrived.
	 */
	bool has_come;
	bool has_other_bytes; /* than were sent to it */
	uint64_t ended_ns;    /* after the beginning */
	/* EXIT_DONE: it believes in success.  .what is NULL. */
	struct failure failure;
	unsigned blamed; /* the rank at fault, if it has failed */
};

/* simulation_usual() has all that need not be 0, but for the first. */
struct simulation_options {
	unsigned node_count; /* 2 .. RANK_NODES_MAX */
	uint64_t message_bytes;
	enum simulation_lengths lengths;
	unsigned times;			 /* 1 .. SIMULATION_TIMES_MAX */
	enum exchange_schedule schedule; /* AUTO: as blinksort chooses */
	bool says_hello; /* all to all, before they exchange messages */
	bool plain;	 /* a call for each datagram */
	/* Of each rank, 1 .. UDP_THREADS_MAX, each with a CPU. */
	unsigned thread_count;
	uint64_t deadline_ns;
	uint64_t limit_ns; /* a rank that has not ended by then never does */
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
	/* Or NULL: to be filled, [node_count]. */
	struct simulation_outcome *outcomes;
};

struct simulation_figures {
	enum exchange_schedule schedule; /* not AUTO */
	/* From when the first rank begins until a rank has all its messages,
	 * the last time. */
	uint64_t median_ns, max_ns;
	uint64_t end_ns;		/* until the last rank is done */
	struct exchange_counters ranks; /* the sum of all */
	struct virtual_counters network;
	uint64_t event_count, digest;
	bool compared; /* the messages' bytes; else they were all zero */
};

/* The options that a user need not give. */
struct simulation_options simulation_usual(void);

/* Returns 0; or -errno with *failure filled: EXIT_PEER with the first rank that
 * has failed, which died, or that never ends; EXIT_WRONG if other bytes came
 * than were sent.  Figures are filled as far as the ranks came. */
int simulation_run(const struct simulation_options *options,
		   struct simulation_figures *figures, struct failure *failure);

#endif /* SIMULATION_H */
