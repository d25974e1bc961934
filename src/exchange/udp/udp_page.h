/*
 * udp_page.h - the status page: STATUS from rank to rank through shared memory
 *
 * If all ranks run on one machine, a STATUS need not be a datagram: it
 * describes a state, and only the last one of a collective counts.  The page
 * has two mailboxes from each rank to each, which hold the last STATUS of
 * collectives with an even number and of those with an odd one: a rank that
 * goes on does not wipe out what it has said before.  Dirty bits tell a rank
 * which of its mailboxes have changed.  A rank that sleeps sets a wake
 * threshold: when as many STATUS have been put for it, the rank that has put
 * the last one sends it a wake-up, a datagram of one byte.
 *
 *      rank 0   makes the page, a file without a name, and offers it with its
 *               hello, which is authenticated
 *      others   open it by way of rank 0's /proc/PID/fd, which the same user
 *               may do
 *
 * A rank that cannot open the page, or has not yet, gets datagrams.  A rank
 * that is killed leaves its last STATUS, and is given up for its silence like
 * any other.  What is read is checked as if it had come by the network, except
 * for the tag: a process that can write the page can write our memory, too.
 *
 * A rank may lie in its offer, and write anything into the page at any moment.
 * Only a regular file that a process of this user has open is opened; it is
 * mapped only if it has the right size and cannot become shorter; each number
 * in the page is read once, and bounded before it is used.
 *
 * Private to the exchange over UDP.  One thread of each rank uses a page.
 */
#ifndef UDP_PAGE_H
#define UDP_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct udp_page;

/* A page of this many ranks, with two mailboxes from each to each, has some 270
 * MB. */
#define UDP_PAGE_NODES_MAX 512

/* Where the page is, little-endian: u64 machine_host_id(), u64 number of the
 * page, u32 process, u32 descriptor.  All 0: there is none. */
#define UDP_PAGE_OFFER_BYTES 24

/* Rank 0 makes the page and fills the offer.  NULL: it cannot be made, or there
 * are more ranks than UDP_PAGE_NODES_MAX; the offer is then all 0. */
struct udp_page *udp_page_make(unsigned node_count,
			       uint8_t offer[UDP_PAGE_OFFER_BYTES]);
/* Rank own opens it.  NULL: nothing is offered, or not to us. */
struct udp_page *udp_page_find(const uint8_t offer[UDP_PAGE_OFFER_BYTES],
			       unsigned node_count, unsigned own);
/* Safe on NULL. */
void udp_page_close(struct udp_page *page);

/* Tell the other ranks that this one reads the page from now on, and takes
 * wake-ups at this port. */
void udp_page_attach(struct udp_page *page, uint16_t port);
/* The port of a rank that has attached itself; 0: it has not. */
uint16_t udp_page_port(const struct udp_page *page, unsigned node);

/* Put a STATUS of this epoch into a mailbox to node.  False: it is too long. */
bool udp_page_put(struct udp_page *page, unsigned node, uint32_t epoch,
		  const uint8_t *status, size_t byte_count);
/* Call it after that.  True: the caller must now send node a wake-up.
 * urgent: wake it whatever its threshold is. */
bool udp_page_takes_wake_up(struct udp_page *page, unsigned node, bool urgent);

/* Copy the next STATUS that has changed, at most UDP_STATUS_BYTES_MAX bytes,
 * and tell which rank's it is; if both mailboxes of a rank have changed, the
 * earlier one.  Returns its bytes; 0: there is none now.  One call reads each
 * mailbox twice at most. */
size_t udp_page_take(struct udp_page *page, uint8_t *status, unsigned *node);
bool udp_page_is_dirty(const struct udp_page *page);

/* Set the wake threshold (>= 1) before sleeping.  False: do not sleep, a
 * mailbox has changed. */
bool udp_page_sleep(struct udp_page *page, unsigned threshold);
/* Call it after sleeping, whatever has ended that. */
void udp_page_wake(struct udp_page *page);

#endif /* UDP_PAGE_H */
