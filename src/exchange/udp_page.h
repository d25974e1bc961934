/*
 * udp_page.h - STATUS from rank to rank through shared memory
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

struct udp_page;

/* Where it is, little-endian: u64 machine_number(), u64 number of the board,
 * u32 process, u32 descriptor.  All 0: there is none. */
#define UDP_PAGE_OFFER_BYTES 24

/* NULL: it cannot be made; then *offer is all 0. */
struct udp_page *udp_page_make(unsigned node_count,
			       uint8_t offer[UDP_PAGE_OFFER_BYTES]);
/* As rank own.  NULL: there is none, or not for us. */
struct udp_page *udp_page_find(const uint8_t offer[UDP_PAGE_OFFER_BYTES],
			       unsigned node_count, unsigned own);
/* Safe on NULL. */
void udp_page_close(struct udp_page *board);

/* From now on we look here for news; rings come to this port. */
void udp_page_attach(struct udp_page *board, uint16_t port);
/* The port of a rank that has done so; 0: it has not. */
uint16_t udp_page_port(const struct udp_page *board, unsigned node);

/* Put a STATUS into node's slot.  False: it is too long. */
bool udp_page_put(struct udp_page *board, unsigned node, const uint8_t *status,
		  size_t byte_count);
/* After that: true if it is now for us to ring.  urgent: whatever it waits
 * for. */
bool udp_page_takes_wake_up(struct udp_page *board, unsigned node, bool urgent);

/* The next news, at most UDP_STATUS_BYTES_MAX, and whose; 0: none now.
 * Each rank's is looked at twice a call at most. */
size_t udp_page_take(struct udp_page *board, uint8_t *status, unsigned *node);
bool udp_page_is_dirty(const struct udp_page *board);

/* To be woken when so many (>= 1) have posted.  False: there is news already.
 */
bool udp_page_sleep(struct udp_page *board, unsigned posts);
/* Awake again, for whatever reason. */
void udp_page_wake(struct udp_page *board);

#endif /* EXCHANGE_BOARD_H */
