/*
 * exchange_board.h - STATUS from rank to rank through shared memory
 *
 * Where all ranks run on one machine, a STATUS need not be a datagram: it says
 * what is so, and the last one is all that counts.  So the board has a slot for
 * each pair of ranks, which holds the last one.  A word of bits tells a rank
 * whose slots have news; and a rank that sleeps is woken by a datagram (of one
 * byte, the ring) when as many have told it something as it waits for.
 *
 *      rank 0   makes the board, a file without a name, and offers it with its
 *               hello, which is authenticated
 *      others   open it by way of rank 0's /proc/PID/fd, which that user may do
 *
 * Who cannot, or is not there yet, is told by datagrams.  A rank that is killed
 * leaves what it has said; its silence is noticed as ever.  What is read is
 * checked as if it had come by the network, but for the tag: who can write the
 * board can write our memory, too.
 *
 * A rank may lie in its offer and write anything into the board at any moment.
 * Nothing but a regular file of a process of this user is opened, and only one
 * of the right size is mapped that cannot become shorter; of the memory each
 * number is read once, and bounded before it is used.
 *
 * Private to the exchange.
 */
#ifndef EXCHANGE_BOARD_H
#define EXCHANGE_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exchange_board;

/* Where it is, little-endian: u64 machine_number(), u64 number of the board,
 * u32 process, u32 descriptor.  All 0: there is none. */
#define EXCHANGE_BOARD_OFFER_BYTES 24

/* NULL: it cannot be made; then *offer is all 0. */
struct exchange_board *
exchange_board_make(unsigned node_count,
		    uint8_t offer[EXCHANGE_BOARD_OFFER_BYTES]);
/* As rank own.  NULL: there is none, or not for us. */
struct exchange_board *
exchange_board_find(const uint8_t offer[EXCHANGE_BOARD_OFFER_BYTES],
		    unsigned node_count, unsigned own);
/* Safe on NULL. */
void exchange_board_close(struct exchange_board *board);

/* From now on we look here for news; rings come to this port. */
void exchange_board_attach(struct exchange_board *board, uint16_t port);
/* The port of a rank that has done so; 0: it has not. */
uint16_t exchange_board_port(const struct exchange_board *board, unsigned node);

/* Put a STATUS into node's slot.  False: it is too long. */
bool exchange_board_post(struct exchange_board *board, unsigned node,
			 const uint8_t *status, size_t byte_count);
/* After that: true if it is now for us to ring.  urgent: whatever it waits
 * for. */
bool exchange_board_wakes(struct exchange_board *board, unsigned node,
			  bool urgent);

/* The next news, at most EXCHANGE_STATUS_BYTES_MAX, and whose; 0: none now.
 * Each rank's is looked at twice a call at most. */
size_t exchange_board_take(struct exchange_board *board, uint8_t *status,
			   unsigned *node);
bool exchange_board_has_news(const struct exchange_board *board);

/* To be woken when so many (>= 1) have posted.  False: there is news already.
 */
bool exchange_board_doze(struct exchange_board *board, unsigned posts);
/* Awake again, for whatever reason. */
void exchange_board_rise(struct exchange_board *board);

#endif /* EXCHANGE_BOARD_H */
