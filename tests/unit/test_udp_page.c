/*
 * test_udp_page.c - two ranks, in one process
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "exchange/udp/udp_page.h"
#include "exchange/udp/udp_wire.h"
#include "skip.h"

#define NODES 70 /* more than one word of bits */

static uint8_t offer[UDP_PAGE_OFFER_BYTES];
static struct udp_page *made, *found;

static int set_up(void **state)
{
	(void)state;
	made = udp_page_make(NODES, offer);
	found = udp_page_find(offer, NODES, NODES - 1);
	return made && found ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	udp_page_close(made);
	udp_page_close(found);
	return 0;
}

static void udp_page__only_what_is_offered(void **state)
{
	/* The machine, the page's number, the process (not its low bits: the
	 * next one may be a thread of an emulator's), the descriptor. */
	static const unsigned places[] = { 0, 7, 8, 15, 18, 20 };
	uint8_t other[UDP_PAGE_OFFER_BYTES] = { 0 };

	(void)state;
	assert_null(udp_page_find(other, NODES, 1));
	for (unsigned i = 0; i < ARRAY_LEN(places); i++) {
		memcpy(other, offer, sizeof(other));
		other[places[i]] ^= 1;
		assert_null(udp_page_find(other, NODES, 1));
	}
	assert_null(udp_page_find(offer, NODES - 1, 1));
}

/* A file of the right length that another process may cut: it is not used. */
static void udp_page__not_without_seals(void **state)
{
	uint8_t other[UDP_PAGE_OFFER_BYTES];
	char path[64], block[4096];
	int from, to;
	ssize_t got;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%u", load_le32(offer + 20));
	from = open(path, O_RDONLY | O_CLOEXEC);
	to = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(from >= 0 && to >= 0);
	while ((got = read(from, block, sizeof(block))) > 0)
		assert_int_equal(write(to, block, (size_t)got), got);
	memcpy(other, offer, sizeof(other));
	store_le32(other + 20, (uint32_t)to);
	assert_null(udp_page_find(other, NODES, 1));
	assert_int_equal(fcntl(to, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW),
			 0);
	tear_down(state);
	made = NULL;
	found = udp_page_find(other, NODES, 1);
	assert_non_null(found);
	close(from);
	close(to);
	tear_down(state);
	assert_int_equal(set_up(state), 0);
}

/* One that knows no seals: it is none that has them all. */
static void udp_page__not_a_file_on_a_disk(void **state)
{
	uint8_t other[UDP_PAGE_OFFER_BYTES];
	char path[64], block[4096], name[] = "/tmp/test_udp_page.XXXXXX";
	int from, to = mkstemp(name);
	ssize_t got;

	(void)state;
	assert_true(to >= 0);
	unlink(name);
	/* A file of a tmpfs knows them. */
	if (fcntl(to, F_GET_SEALS) >= 0)
		skip_because("the files of /tmp know seals");
	snprintf(path, sizeof(path), "/proc/self/fd/%u", load_le32(offer + 20));
	from = open(path, O_RDONLY | O_CLOEXEC);
	while ((got = read(from, block, sizeof(block))) > 0)
		assert_int_equal(write(to, block, (size_t)got), got);
	memcpy(other, offer, sizeof(other));
	store_le32(other + 20, (uint32_t)to);
	assert_null(udp_page_find(other, NODES, 1));
	close(from);
	close(to);
}

static void udp_page__attached_ranks(void **state)
{
	(void)state;
	assert_int_equal(udp_page_port(made, NODES - 1), 0);
	udp_page_attach(found, 4711);
	assert_int_equal(udp_page_port(made, NODES - 1), 4711);
	assert_int_equal(udp_page_port(made, 1), 0);
}

static void udp_page__the_last_status_counts(void **state)
{
	uint8_t status[UDP_STATUS_BYTES_MAX], got[sizeof(status)];
	unsigned node;

	(void)state;
	assert_false(udp_page_is_dirty(found));
	for (unsigned i = 0; i < 3; i++) {
		memset(status, (int)(i + 1), sizeof(status));
		assert_true(
			udp_page_put(made, NODES - 1, 1, status, 120 + 3 * i));
	}
	assert_true(udp_page_is_dirty(found));
	assert_false(udp_page_is_dirty(made));
	assert_int_equal(udp_page_take(found, got, &node), 126);
	assert_int_equal(node, 0);
	assert_memory_equal(got, status, 126);
	assert_int_equal(udp_page_take(found, got, &node), 0);
	assert_false(udp_page_is_dirty(found));
	/* The other way, where the bit is in another word. */
	assert_true(udp_page_put(found, 0, 1, status, 120));
	assert_int_equal(udp_page_take(made, got, &node), 120);
	assert_int_equal(node, NODES - 1);
}

static void udp_page__lengths(void **state)
{
	uint8_t status[UDP_STATUS_BYTES_MAX] = { 1 }, got[sizeof(status)];
	size_t longest = UDP_STATUS_FIXED_BYTES +
			 EXCHANGE_APPLICATION_BYTES_MAX + 8 * NODES;
	unsigned node;

	(void)state;
	assert_false(udp_page_put(made, NODES - 1, 1, status, longest + 1));
	assert_false(udp_page_is_dirty(found));
	assert_true(udp_page_put(made, NODES - 1, 1, status, longest));
	assert_int_equal(udp_page_take(found, got, &node), longest);
}

/* The rank that puts the last STATUS sends the wake-up; none goes to a rank
 * that is awake. */
static void udp_page__wake_ups(void **state)
{
	uint8_t status[UDP_STATUS_FIXED_BYTES] = { 0 }, got[1400];
	unsigned node;

	(void)state;
	assert_false(udp_page_takes_wake_up(made, NODES - 1, false));
	assert_true(udp_page_sleep(found, 3));
	assert_false(udp_page_takes_wake_up(made, NODES - 1, false));
	assert_false(udp_page_takes_wake_up(made, NODES - 1, false));
	assert_true(udp_page_takes_wake_up(made, NODES - 1, false));
	assert_false(udp_page_takes_wake_up(made, NODES - 1, false));
	assert_true(udp_page_sleep(found, 3));
	assert_true(udp_page_takes_wake_up(made, NODES - 1, true));
	assert_false(udp_page_takes_wake_up(made, NODES - 1, true));
	assert_true(udp_page_sleep(found, 1));
	udp_page_wake(found);
	assert_false(udp_page_takes_wake_up(made, NODES - 1, true));
	/* Do not sleep when a mailbox has changed. */
	udp_page_put(made, NODES - 1, 1, status, sizeof(status));
	assert_false(udp_page_sleep(found, 1));
	assert_false(udp_page_takes_wake_up(made, NODES - 1, true));
	assert_int_equal(udp_page_take(found, got, &node), sizeof(status));
	assert_true(udp_page_sleep(found, 1));
}

#define POSTS 600000
/* A STATUS as long as a mailbox; a longer one goes by datagram. */
#define POST_BYTES                                                             \
	(UDP_STATUS_FIXED_BYTES + EXCHANGE_APPLICATION_BYTES_MAX + 8 * NODES)

static void *post_many(void *argument)
{
	uint8_t status[POST_BYTES];

	(void)argument;
	for (uint32_t i = 1; i <= POSTS; i++) {
		for (size_t k = 0; k < sizeof(status); k += 4)
			store_le32(status + k, i);
		udp_page_put(made, NODES - 1, 1, status, sizeof(status));
	}
	return NULL;
}

/* While one writes, the other reads: nothing torn, nothing older than what was
 * read before, and the last one for sure. */
static void udp_page__at_the_same_time(void **state)
{
	uint32_t last = 0;
	pthread_t thread;
	bool good = true;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, post_many, NULL), 0);
	while (last < POSTS) {
		uint8_t got[UDP_STATUS_BYTES_MAX];
		unsigned node;
		uint32_t first;

		if (udp_page_take(found, got, &node) == 0)
			continue;
		first = load_le32(got);
		good &= first >= last;
		for (size_t k = 0; k < POST_BYTES; k += 4)
			good &= load_le32(got + k) == first;
		last = first;
	}
	pthread_join(thread, NULL);
	assert_true(good);
}

#define SCRIBBLES 20

/* Words of few bits, as an even version and a length could be, and of many. */
static void scribble(uint64_t *words, size_t count, uint64_t *random)
{
	static const uint64_t masks[] = { 0, 2, 0x3fe000003fe, UINT64_MAX };

	for (size_t i = 0; i < count; i++) {
		*random ^= *random << 13;
		*random ^= *random >> 7;
		*random ^= *random << 17;
		words[i] = *random & masks[*random >> 62];
	}
}

/* A rank may write anything behind the head: what is read is of a rank and no
 * longer than a STATUS, and comes to an end. */
static void udp_page__what_is_scribbled(void **state)
{
	int fd = (int)load_le32(offer + 20);
	off_t bytes = lseek(fd, 0, SEEK_END);
	size_t words = ((size_t)bytes - CACHE_PAIR_BYTES) / sizeof(uint64_t);
	uint8_t status[8] = { 7 }, got[UDP_STATUS_BYTES_MAX];
	uint8_t *base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
			     MAP_SHARED, fd, 0);
	uint64_t *behind = (uint64_t *)(base + CACHE_PAIR_BYTES), random = 1;
	unsigned node, taken_count = 0;

	(void)state;
	assert_ptr_not_equal(base, MAP_FAILED);
	for (unsigned i = 0; i < SCRIBBLES; i++) {
		unsigned count = 0;
		size_t taken;

		scribble(behind, words, &random);
		while ((taken = udp_page_take(found, got, &node)) > 0) {
			assert_in_range(node, 0, NODES - 1);
			assert_in_range(taken, 1, sizeof(got));
			assert_in_range(++count, 1, 2 * NODES);
		}
		taken_count += count;
		udp_page_takes_wake_up(found, 0, i % 2);
		udp_page_put(found, 0, i, status, sizeof(status));
	}
	assert_true(taken_count > 0);
	memset(behind, 0, words * sizeof(*behind));
	udp_page_put(made, NODES - 1, 1, status, sizeof(status));
	assert_int_equal(udp_page_take(found, got, &node), sizeof(status));
	assert_int_equal(node, 0);
	munmap(base, (size_t)bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(udp_page__only_what_is_offered),
		TEST(udp_page__not_without_seals),
		TEST(udp_page__not_a_file_on_a_disk),
		TEST(udp_page__attached_ranks),
		TEST(udp_page__the_last_status_counts),
		TEST(udp_page__lengths),
		TEST(udp_page__wake_ups),
		TEST(udp_page__at_the_same_time),
		TEST(udp_page__what_is_scribbled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
