/*
 * exchange_model.h - how long an exchange takes, and which schedule suits it
 *
 * An alpha-beta model of one exchange between ranks that have a link each: from
 * the moment at which all have something to send until all have all.  A link
 * sends and receives at once; while it does, one CPU sends datagrams and
 * another one receives them, so the slowest of the three counts.  Beside the
 * bytes, each message costs system calls, and each other rank some STATUS
 * datagrams, however short the message is: with many ranks this is what takes
 * the time.
 *
 * The model ranks schedules.  It knows nothing of slow ranks, of lost datagrams
 * or of the queues of switches: of all-at-once with messages above
 * EXCHANGE_MODEL_ROUNDS_BYTES its time is one that is not reached.
 *
 * Terms: alpha and beta by Hockney; the staggered order by Datamation 2011, the
 * grid by the two-level exchanges of AMS-sort and KaMPIng.
 */
#ifndef EXCHANGE_MODEL_H
#define EXCHANGE_MODEL_H

#include <stdint.h>

#include "exchange/exchange.h"

/*
 * What exchange_model_schedule() decides by: bytes of a message between two
 * ranks.
 *
 * Above the first, a second sender fills a switch port's queue, for which 128
 * KiB is usual, before it has sent its message, and what follows is dropped:
 * ranks go by rounds.  Of 64 simulated ranks with 10 Gbit/s (blinkprobe
 * simulate), switches drop 4 % of 390 KB messages without the neighbour's word,
 * nothing with it, and 0.3 % of messages of 24 KB.
 *
 * Below the second, what a message costs beside its bytes is more than the
 * grid's second journey of every byte.  Of 64 to 4096 ranks the model has the
 * grid and all-at-once equal at 5 KB on links of 10 Gbit/s and at 11 to 14 KB
 * on those of 100, and simulated ranks of one CPU are equal at 4 to 10 KB: 8
 * KiB lies between.  (Rounds are equal to the grid at 12 and at 23 to 26 KB.)
 */
#define EXCHANGE_MODEL_ROUNDS_BYTES ((uint64_t)128 << 10)
#define EXCHANGE_MODEL_GRID_BYTES ((uint64_t)8 << 10)
/* The grid loses as much time with some messages below 8 KiB as it saves with
 * others where ranks are fewer: it pays up to 2 KB for 12 ranks, and up to 3.5
 * KB for 31 on links of 10 Gbit/s. */
#define EXCHANGE_MODEL_GRID_RANKS 32
/* Threads share what a message costs, and all-at-once has more messages than
 * the grid, by as much as ranks are more than a side of it.  Simulated ranks of
 * two to eight threads, 32 to 256 of them on links of 25 and 100 Gbit/s, are
 * equal at about so many bytes for each rank of a side, divided by the threads.
 */
#define EXCHANGE_MODEL_GRID_SIDE_BYTES ((uint64_t)1536)

/* Times in ns, and all of them 0 or more. */
struct exchange_model {
	double link_bytes_per_s; /* of a rank, each way; above 0 */
	double payload_bytes;	 /* of a full datagram, 1 or more */
	double overhead_bytes;	 /* on the link, beside a datagram's payload */
	double send_ns;	   /* CPU time of sending a datagram, divided by */
	double receive_ns; /* the CPUs that send; and of receiving it */
	double message_ns; /* of a message, on each side: system calls */
	double status_ns;  /* CPU time to send a STATUS and to take one */
	/* A STATUS on the link with what is around it; 0: as good as nothing.
	 */
	double status_bytes;
	double latency_ns; /* one way */
	/* How long the neighbour's word is on its way, which is sent 32 KiB
	 * before the end of a round. */
	double word_ns;
	/* How fast the grid puts messages into another order. */
	double gather_bytes_per_s;
	/* A rank tells each other one so many bytes of lengths; if there are up
	 * to so many ranks, for each of them, except in a grid; */
	double announce_bytes;
	unsigned announce_all_max;
	/* and so many STATUS beside that, as a mean, of which the first one has
	 * the same lengths again. */
	double status_count;
	/* Ranks that share one CPU, for sending and receiving; 0: each rank has
	 * CPUs of its own, and does both at once. */
	double ranks_per_cpu;
	/* A rank has so many threads, from 1: each of several sends to a part
	 * of the other ranks and receives from these. */
	unsigned threads;
};

/*
 * Fill *model for UDP over Ethernet: link_bits_per_s each way, datagrams as
 * large as mtu_bytes allows (from 576), CPUs that send and that receive (from
 * 1).  CPU times are measured ones of Zen 3 and 4, and what a driver adds to
 * them; latencies are those of the kernel and one switch.
 */
void exchange_model_ethernet(struct exchange_model *model,
			     double link_bits_per_s, unsigned mtu_bytes,
			     unsigned sending_cpus, unsigned receiving_cpus);

/* Tells how many threads a rank takes for the exchange, on a link of
 * link_bits_per_s to other machines and with so many CPUs: 1, or one for each
 * 12.5 Gbit/s, which is what a thread can move. */
unsigned exchange_model_threads(double link_bits_per_s, unsigned cpus);

/* The link counts so many bytes beside each datagram's payload. */
void exchange_model_set_overhead(struct exchange_model *model,
				 double overhead_bytes);

/* The time that a rank's bytes alone take, in full datagrams, at the link's
 * rate. */
double exchange_model_link_ns(const struct exchange_model *model,
			      unsigned ranks, double message_bytes);

/*
 * One exchange of messages of message_bytes (0 or more) between ranks (from 1),
 * by the schedule; EXCHANGE_AUTO is what exchange_model_schedule() says.
 * All-at-once is the order of rounds without the neighbour's word.
 */
double exchange_model_ns(const struct exchange_model *model,
			 enum exchange_schedule schedule, unsigned ranks,
			 double message_bytes);

/* The sides of a grid that is as square as can be: columns is the root of
 * ranks, rounded up, and no row is without a rank. */
void exchange_model_grid_sides(unsigned ranks, unsigned *rows,
			       unsigned *columns);

/* What "auto" takes for messages of this length between ranks on links, each of
 * which has so many threads for the exchange (from 1): never EXCHANGE_AUTO.
 * Several threads would in rounds speak with one rank, and do not get them. */
enum exchange_schedule exchange_model_schedule(uint64_t message_bytes,
					       unsigned ranks,
					       unsigned threads);

#endif /* EXCHANGE_MODEL_H */
