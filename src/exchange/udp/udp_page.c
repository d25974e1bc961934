/*
 * udp_page.c - the memory of the status page: mailboxes, dirty bits, wake-ups
 */
#include "exchange/udp/udp_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "exchange/udp/udp_wire.h"
#include "system/machine.h"

/* Not every libc defines it. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* The file keeps its length: no rank can take its memory from under another. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define WORD_BITS 64
#define SLOTS 2 /* mailboxes from one rank to another */
#define DIRTY_WORDS (UDP_PAGE_NODES_MAX * SLOTS / WORD_BITS)

/* --- the memory ------------------------------------------------------------
 */

struct head {
	_Alignas(CACHE_PAIR_BYTES) uint64_t number;
	uint32_t node_count;
};

/* What the other ranks have to know of a rank, and tell it. */
struct rank_state {
	/* A bit for each mailbox to this rank: set by the rank that has put a
	 * STATUS, cleared by this rank before it reads. */
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t dirty[DIRTY_WORDS];
	/* STATUS to be put until this rank wants to be woken; 0: it is awake.
	 * Set by this rank, counted down by the ranks that put STATUS. */
	_Atomic uint32_t wake_threshold;
	/* The port of its first socket, written by this rank once; 0: not
	 * attached. */
	_Atomic uint32_t port;
};

/* Written by one rank, read by another.  It consists of atomic words: a reader
 * that comes while it is being written reads a mixture, which it notices by the
 * version, but there is no data race. */
struct mailbox {
	_Atomic uint32_t version; /* odd: being written */
	_Atomic uint32_t byte_count;
	_Atomic uint64_t number; /* ascends with what its writer puts */
	_Atomic uint64_t words[];
};

struct udp_page {
	struct head *head;
	struct rank_state *ranks; /* [node] */
	uint8_t *mailboxes;	  /* [to][from][slot] */
	uint64_t put_count;	  /* STATUS that this rank has put */
	size_t mailbox_bytes, all_bytes;
	unsigned node_count, own;
	uint64_t pending[DIRTY_WORDS]; /* taken from dirty, to be read */
	int fd;			       /* of rank 0; -1: another rank */
};

/* Room for all but gaps and the text of a failure, which go by datagram. */
static size_t mailbox_room(unsigned node_count)
{
	return UDP_STATUS_FIXED_BYTES + EXCHANGE_APPLICATION_BYTES_MAX +
	       MIN(node_count, UDP_TOTALS_MAX) * sizeof(uint64_t);
}

static void lay_out(struct udp_page *page, unsigned node_count, unsigned own)
{
	*page = (struct udp_page){
		.node_count = node_count,
		.own = own,
		.mailbox_bytes = ROUND_UP(sizeof(struct mailbox) +
						  mailbox_room(node_count),
					  CACHE_PAIR_BYTES),
		.fd = -1,
	};
	page->all_bytes =
		sizeof(struct head) + node_count * sizeof(struct rank_state) +
		(size_t)node_count * node_count * SLOTS * page->mailbox_bytes;
}

static bool map(struct udp_page *page, int fd)
{
	uint8_t *base = mmap(NULL, page->all_bytes, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_POPULATE, fd, 0);

	if (base == MAP_FAILED)
		return false;
	page->head = (struct head *)base;
	page->ranks = (struct rank_state *)(base + sizeof(struct head));
	page->mailboxes = (uint8_t *)(page->ranks + page->node_count);
	return true;
}

/* from: a rank * SLOTS + a slot, as dirty bits are numbered. */
static struct mailbox *mailbox_of(const struct udp_page *page, unsigned to,
				  unsigned from)
{
	return (struct mailbox *)(page->mailboxes +
				  (to * (size_t)page->node_count * SLOTS +
				   from) * page->mailbox_bytes);
}

static struct rank_state *own_rank(const struct udp_page *page)
{
	return &page->ranks[page->own];
}

/* --- making and finding it -------------------------------------------------
 */

static int make_file(const struct udp_page *page)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	/* Some systems require the flag that says it is no program, but only
	 * Linux 6.3 and later know it. */
	int fd = memfd_create("blinksort", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("blinksort", flags);
	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)page->all_bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	close(fd);
	return -1;
}

struct udp_page *udp_page_make(unsigned node_count,
			       uint8_t offer[UDP_PAGE_OFFER_BYTES])
{
	uint64_t host_id = machine_host_id();
	struct udp_page *page = malloc(sizeof(*page));

	memset(offer, 0, UDP_PAGE_OFFER_BYTES);
	if (!page || node_count > UDP_PAGE_NODES_MAX) {
		free(page);
		return NULL;
	}
	lay_out(page, node_count, 0);
	if (host_id != 0)
		page->fd = make_file(page);
	if (page->fd < 0 || !map(page, page->fd)) {
		udp_page_close(page);
		return NULL;
	}
	/* No two pages have the same number while this machine is up. */
	page->head->number = clock_now_ns();
	page->head->node_count = node_count;
	store_le64(offer, host_id);
	store_le64(offer + 8, page->head->number);
	store_le32(offer + 16, (uint32_t)getpid());
	store_le32(offer + 20, (uint32_t)page->fd);
	return page;
}

/* Returns the descriptor of the file that was offered, if it is as
 * make_file() makes it; else -1. */
static int open_file(const struct udp_page *page, const uint8_t *offer)
{
	struct stat status;
	int fd = machine_open(load_le32(offer + 16), load_le32(offer + 20),
			      O_RDWR, &status);
	int seals;

	if (fd < 0)
		return -1;
	/* A file that cannot have seals answers -1. */
	seals = fcntl(fd, F_GET_SEALS);
	if (status.st_size == (off_t)page->all_bytes && seals >= 0 &&
	    (seals & SEALS) == SEALS)
		return fd;
	close(fd);
	return -1;
}

static bool is_offered(const struct udp_page *page, const uint8_t *offer)
{
	return page->head->number == load_le64(offer + 8) &&
	       page->head->node_count == page->node_count;
}

struct udp_page *udp_page_find(const uint8_t offer[UDP_PAGE_OFFER_BYTES],
			       unsigned node_count, unsigned own)
{
	struct udp_page *page;
	bool mapped;
	int fd;

	if (node_count > UDP_PAGE_NODES_MAX || load_le64(offer) == 0 ||
	    load_le64(offer) != machine_host_id())
		return NULL;
	page = malloc(sizeof(*page));
	if (!page)
		return NULL;
	lay_out(page, node_count, own);
	fd = open_file(page, offer);
	mapped = fd >= 0 && map(page, fd);
	if (fd >= 0)
		close(fd);
	if (mapped && is_offered(page, offer))
		return page;
	udp_page_close(page);
	return NULL;
}

void udp_page_close(struct udp_page *page)
{
	if (!page)
		return;
	if (page->head)
		munmap(page->head, page->all_bytes);
	if (page->fd >= 0)
		close(page->fd);
	free(page);
}

void udp_page_attach(struct udp_page *page, uint16_t port)
{
	atomic_store(&own_rank(page)->port, port);
}

uint16_t udp_page_port(const struct udp_page *page, unsigned node)
{
	return (uint16_t)atomic_load(&page->ranks[node].port);
}

/* --- putting ---------------------------------------------------------------
 */

bool udp_page_put(struct udp_page *page, unsigned node, uint32_t epoch,
		  const uint8_t *status, size_t byte_count)
{
	unsigned from = page->own * SLOTS + epoch % SLOTS;
	struct mailbox *mailbox = mailbox_of(page, node, from);
	uint32_t version =
		atomic_load_explicit(&mailbox->version, memory_order_relaxed);
	uint64_t bit = (uint64_t)1 << from % WORD_BITS;

	if (byte_count > mailbox_room(page->node_count))
		return false;
	atomic_store_explicit(&mailbox->version, version + 1,
			      memory_order_relaxed);
	/* A reader that sees one of the new words sees the odd version, too. */
	for (size_t i = 0; i < byte_count; i += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, status + i,
		       MIN(byte_count - i, sizeof(uint64_t)));
		atomic_store_explicit(&mailbox->words[i / sizeof(uint64_t)],
				      word, memory_order_release);
	}
	atomic_store_explicit(&mailbox->byte_count, (uint32_t)byte_count,
			      memory_order_release);
	atomic_store_explicit(&mailbox->number, ++page->put_count,
			      memory_order_release);
	atomic_store_explicit(&mailbox->version, version + 2,
			      memory_order_release);
	/* Sequentially consistent with udp_page_sleep(): either the rank that
	 * is about to sleep sees the bit, or we see its threshold. */
	atomic_fetch_or(&page->ranks[node].dirty[from / WORD_BITS], bit);
	return true;
}

bool udp_page_takes_wake_up(struct udp_page *page, unsigned node, bool urgent)
{
	_Atomic uint32_t *wake_threshold = &page->ranks[node].wake_threshold;
	uint32_t left = atomic_load(wake_threshold);

	while (left > 0)
		if (atomic_compare_exchange_weak(wake_threshold, &left,
						 urgent ? 0 : left - 1))
			return urgent || left == 1;
	return false;
}

/* --- reading ---------------------------------------------------------------
 */

/* Returns 0 if the mailbox is being written: its writer will set the dirty bit
 * again. */
static size_t copy_mailbox(const struct udp_page *page,
			   const struct mailbox *mailbox, uint8_t *status)
{
	uint32_t version =
		atomic_load_explicit(&mailbox->version, memory_order_acquire);
	size_t byte_count = atomic_load_explicit(&mailbox->byte_count,
						 memory_order_acquire);

	if (version % 2 != 0 || byte_count > mailbox_room(page->node_count))
		return 0;
	for (size_t i = 0; i < byte_count; i += sizeof(uint64_t)) {
		uint64_t word = atomic_load_explicit(
			&mailbox->words[i / sizeof(uint64_t)],
			memory_order_acquire);

		memcpy(status + i, &word,
		       MIN(byte_count - i, sizeof(uint64_t)));
	}
	if (atomic_load_explicit(&mailbox->version, memory_order_relaxed) !=
	    version)
		return 0;
	return byte_count;
}

static bool is_earlier(const struct udp_page *page, unsigned a, unsigned b)
{
	return atomic_load(&mailbox_of(page, page->own, a)->number) <
	       atomic_load(&mailbox_of(page, page->own, b)->number);
}

/* A mailbox of the lowest rank that has one pending, and of two the earlier. If
 * none is pending, node_count * SLOTS, which is no mailbox. */
static unsigned next_pending(struct udp_page *page)
{
	unsigned all = page->node_count * SLOTS;

	for (unsigned w = 0; w < DIRTY_WORDS; w++) {
		unsigned from, other;

		if (page->pending[w] == 0)
			continue;
		from = w * WORD_BITS +
		       (unsigned)__builtin_ctzll(page->pending[w]);
		/* Only if a rank writes nonsense. */
		if (from >= all)
			return all;
		other = from ^ 1;
		if ((page->pending[w] >> other % WORD_BITS & 1) != 0 &&
		    is_earlier(page, other, from))
			from = other;
		page->pending[w] &= ~((uint64_t)1 << from % WORD_BITS);
		return from;
	}
	return all;
}

size_t udp_page_take(struct udp_page *page, uint8_t *status, unsigned *node)
{
	size_t byte_count = 0;
	bool fetched = false;

	while (byte_count == 0) {
		unsigned from = next_pending(page);

		*node = from / SLOTS;
		if (*node == page->node_count) {
			/* Once in a call: a rank that keeps setting its bit
			 * without a new STATUS would keep us here. */
			if (fetched || !udp_page_is_dirty(page))
				return 0;
			for (unsigned w = 0; w < DIRTY_WORDS; w++)
				page->pending[w] = atomic_exchange(
					&own_rank(page)->dirty[w], 0);
			fetched = true;
			continue;
		}
		byte_count = copy_mailbox(
			page, mailbox_of(page, page->own, from), status);
	}
	return byte_count;
}

bool udp_page_is_dirty(const struct udp_page *page)
{
	for (unsigned w = 0; w < DIRTY_WORDS; w++)
		if (atomic_load(&own_rank(page)->dirty[w]) != 0)
			return true;
	return false;
}

/* --- sleeping --------------------------------------------------------------
 */

bool udp_page_sleep(struct udp_page *page, unsigned threshold)
{
	/* Either we see the dirty bit now, or the rank that has put a STATUS
	 * sees that we sleep: see udp_page_put(). */
	atomic_store(&own_rank(page)->wake_threshold, threshold);
	if (!udp_page_is_dirty(page))
		return true;
	udp_page_wake(page);
	return false;
}

void udp_page_wake(struct udp_page *page)
{
	atomic_store(&own_rank(page)->wake_threshold, 0);
}
