#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "exchange/udp_page.h"
#include "exchange/udp_wire.h"
#include "system/machine.h"

/* Not every libc knows it. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* It stays as long as it is: nobody can take its pages from under us. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define WORD_BITS 64
#define NEWS_WORDS (UDP_NODES_MAX / WORD_BITS)

/* --- the memory ------------------------------------------------------------
 */

struct head {
	_Alignas(CACHE_PAIR_BYTES) uint64_t number;
	uint32_t node_count;
};

/* What others have to know of a rank, and tell it. */
struct desk {
	_Alignas(CACHE_PAIR_BYTES) _Atomic uint64_t news[NEWS_WORDS];
	/* Posts until it wants to be woken; 0: it is awake. */
	_Atomic uint32_t posts_left;
	_Atomic uint32_t port; /* of its first socket; 0: not attached */
};

/* Written by one rank, read by another.  Words, so that a reader that comes at
 * the wrong moment reads a mixture, which it notices, but does nothing that
 * has no meaning. */
struct slot {
	_Atomic uint32_t version; /* odd: being written */
	_Atomic uint32_t byte_count;
	_Atomic uint64_t words[];
};

struct udp_page {
	struct head *head;
	struct desk *desks; /* [node] */
	uint8_t *slots;	    /* [to][from] */
	size_t slot_bytes, all_bytes;
	unsigned node_count, own;
	uint64_t pending[NEWS_WORDS]; /* taken from news, to be looked at */
	int fd;			      /* rank 0's; -1 */
};

/* All but gaps and the text of a failure, which go by datagram. */
static size_t slot_room(unsigned node_count)
{
	return UDP_STATUS_FIXED_BYTES + EXCHANGE_APPLICATION_BYTES_MAX +
	       node_count * sizeof(uint64_t);
}

static void lay_out(struct udp_page *board, unsigned node_count, unsigned own)
{
	*board = (struct udp_page){
		.node_count = node_count,
		.own = own,
		.slot_bytes =
			ROUND_UP(sizeof(struct slot) + slot_room(node_count),
				 CACHE_PAIR_BYTES),
		.fd = -1,
	};
	board->all_bytes = sizeof(struct head) +
			   node_count * sizeof(struct desk) +
			   (size_t)node_count * node_count * board->slot_bytes;
}

static bool map(struct udp_page *board, int fd)
{
	uint8_t *base = mmap(NULL, board->all_bytes, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_POPULATE, fd, 0);

	if (base == MAP_FAILED)
		return false;
	board->head = (struct head *)base;
	board->desks = (struct desk *)(base + sizeof(struct head));
	board->slots = (uint8_t *)(board->desks + board->node_count);
	return true;
}

static struct slot *slot_of(const struct udp_page *board, unsigned to,
			    unsigned from)
{
	return (struct slot *)(board->slots + (to * (size_t)board->node_count +
					       from) * board->slot_bytes);
}

static struct desk *own_desk(const struct udp_page *board)
{
	return &board->desks[board->own];
}

/* --- making and finding it -------------------------------------------------
 */

static int make_file(const struct udp_page *board)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	/* Some systems want to be told that it is no program, but that is
	 * known since Linux 6.3 only. */
	int fd = memfd_create("blinksort", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("blinksort", flags);
	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)board->all_bytes) == 0 &&
	    fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	close(fd);
	return -1;
}

struct udp_page *udp_page_make(unsigned node_count,
			       uint8_t offer[UDP_PAGE_OFFER_BYTES])
{
	uint64_t machine = machine_number();
	struct udp_page *board = malloc(sizeof(*board));

	memset(offer, 0, UDP_PAGE_OFFER_BYTES);
	if (!board)
		return NULL;
	lay_out(board, node_count, 0);
	if (machine != 0)
		board->fd = make_file(board);
	if (board->fd < 0 || !map(board, board->fd)) {
		udp_page_close(board);
		return NULL;
	}
	/* Never the same while this machine is up. */
	board->head->number = clock_now_ns();
	board->head->node_count = node_count;
	store_le64(offer, machine);
	store_le64(offer + 8, board->head->number);
	store_le32(offer + 16, (uint32_t)getpid());
	store_le32(offer + 20, (uint32_t)board->fd);
	return board;
}

/* That file, and as it was made; -1. */
static int open_file(const struct udp_page *board, const uint8_t *offer)
{
	struct stat status;
	int fd = machine_open(load_le32(offer + 16), load_le32(offer + 20),
			      O_RDWR, &status);
	int seals;

	if (fd < 0)
		return -1;
	/* Of a file that knows no seals it is -1. */
	seals = fcntl(fd, F_GET_SEALS);
	if (status.st_size == (off_t)board->all_bytes && seals >= 0 &&
	    (seals & SEALS) == SEALS)
		return fd;
	close(fd);
	return -1;
}

static bool is_offered(const struct udp_page *board, const uint8_t *offer)
{
	return board->head->number == load_le64(offer + 8) &&
	       board->head->node_count == board->node_count;
}

struct udp_page *udp_page_find(const uint8_t offer[UDP_PAGE_OFFER_BYTES],
			       unsigned node_count, unsigned own)
{
	struct udp_page *board;
	bool mapped;
	int fd;

	if (load_le64(offer) == 0 || load_le64(offer) != machine_number())
		return NULL;
	board = malloc(sizeof(*board));
	if (!board)
		return NULL;
	lay_out(board, node_count, own);
	fd = open_file(board, offer);
	mapped = fd >= 0 && map(board, fd);
	if (fd >= 0)
		close(fd);
	if (mapped && is_offered(board, offer))
		return board;
	udp_page_close(board);
	return NULL;
}

void udp_page_close(struct udp_page *board)
{
	if (!board)
		return;
	if (board->head)
		munmap(board->head, board->all_bytes);
	if (board->fd >= 0)
		close(board->fd);
	free(board);
}

void udp_page_attach(struct udp_page *board, uint16_t port)
{
	atomic_store(&own_desk(board)->port, port);
}

uint16_t udp_page_port(const struct udp_page *board, unsigned node)
{
	return (uint16_t)atomic_load(&board->desks[node].port);
}

/* --- posting ---------------------------------------------------------------
 */

bool udp_page_put(struct udp_page *board, unsigned node, const uint8_t *status,
		  size_t byte_count)
{
	struct slot *slot = slot_of(board, node, board->own);
	uint32_t version =
		atomic_load_explicit(&slot->version, memory_order_relaxed);
	uint64_t bit = (uint64_t)1 << board->own % WORD_BITS;

	if (byte_count > slot_room(board->node_count))
		return false;
	atomic_store_explicit(&slot->version, version + 1,
			      memory_order_relaxed);
	/* Who sees one of the words sees that it is being written, too. */
	for (size_t i = 0; i < byte_count; i += sizeof(uint64_t)) {
		uint64_t word = 0;

		memcpy(&word, status + i,
		       MIN(byte_count - i, sizeof(uint64_t)));
		atomic_store_explicit(&slot->words[i / sizeof(uint64_t)], word,
				      memory_order_release);
	}
	atomic_store_explicit(&slot->byte_count, (uint32_t)byte_count,
			      memory_order_release);
	atomic_store_explicit(&slot->version, version + 2,
			      memory_order_release);
	/* In one order with what a rank does that is about to sleep. */
	atomic_fetch_or(&board->desks[node].news[board->own / WORD_BITS], bit);
	return true;
}

bool udp_page_takes_wake_up(struct udp_page *board, unsigned node, bool urgent)
{
	_Atomic uint32_t *posts_left = &board->desks[node].posts_left;
	uint32_t left = atomic_load(posts_left);

	while (left > 0)
		if (atomic_compare_exchange_weak(posts_left, &left,
						 urgent ? 0 : left - 1))
			return urgent || left == 1;
	return false;
}

/* --- reading ---------------------------------------------------------------
 */

/* 0: it is being written; its writer will say so once more. */
static size_t copy_slot(const struct udp_page *board, const struct slot *slot,
			uint8_t *status)
{
	uint32_t version =
		atomic_load_explicit(&slot->version, memory_order_acquire);
	size_t byte_count =
		atomic_load_explicit(&slot->byte_count, memory_order_acquire);

	if (version % 2 != 0 || byte_count > slot_room(board->node_count))
		return 0;
	for (size_t i = 0; i < byte_count; i += sizeof(uint64_t)) {
		uint64_t word =
			atomic_load_explicit(&slot->words[i / sizeof(uint64_t)],
					     memory_order_acquire);

		memcpy(status + i, &word,
		       MIN(byte_count - i, sizeof(uint64_t)));
	}
	if (atomic_load_explicit(&slot->version, memory_order_relaxed) !=
	    version)
		return 0;
	return byte_count;
}

/* The lowest of the pending ones, or node_count. */
static unsigned next_pending(struct udp_page *board)
{
	for (unsigned w = 0; w < NEWS_WORDS; w++) {
		unsigned bit;

		if (board->pending[w] == 0)
			continue;
		bit = (unsigned)__builtin_ctzll(board->pending[w]);
		board->pending[w] &= board->pending[w] - 1;
		/* There is no other, unless somebody writes nonsense. */
		return MIN(w * WORD_BITS + bit, board->node_count);
	}
	return board->node_count;
}

size_t udp_page_take(struct udp_page *board, uint8_t *status, unsigned *node)
{
	size_t byte_count = 0;
	bool asked = false;

	while (byte_count == 0) {
		*node = next_pending(board);
		if (*node == board->node_count) {
			/* Once a call: a rank that always sets its bit, and
			 * has nothing to say, would keep us here. */
			if (asked || !udp_page_is_dirty(board))
				return 0;
			for (unsigned w = 0; w < NEWS_WORDS; w++)
				board->pending[w] = atomic_exchange(
					&own_desk(board)->news[w], 0);
			asked = true;
			continue;
		}
		byte_count = copy_slot(board, slot_of(board, board->own, *node),
				       status);
	}
	return byte_count;
}

bool udp_page_is_dirty(const struct udp_page *board)
{
	for (unsigned w = 0; w < NEWS_WORDS; w++)
		if (atomic_load(&own_desk(board)->news[w]) != 0)
			return true;
	return false;
}

/* --- sleeping --------------------------------------------------------------
 */

bool udp_page_sleep(struct udp_page *board, unsigned posts)
{
	/* Either we see its news now, or who posts sees that we sleep. */
	atomic_store(&own_desk(board)->posts_left, posts);
	if (!udp_page_is_dirty(board))
		return true;
	udp_page_wake(board);
	return false;
}

void udp_page_wake(struct udp_page *board)
{
	atomic_store(&own_desk(board)->posts_left, 0);
}
