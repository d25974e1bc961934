#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "system/arena.h"
#include "base/base.h"

/* Is there a mapping at this page? */
static bool is_mapped(const uint8_t *page)
{
	unsigned char resident;

	return mincore((void *)(uintptr_t)page, 1, &resident) == 0;
}

static void arena_map__aligned_zeroed_writable(void **state)
{
	/* Several at once: the kernel places each differently. */
	struct arena arenas[8];
	size_t bytes = 3 * HUGE_PAGE_BYTES + 5;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(arenas); i++) {
		assert_int_equal(arena_map(&arenas[i], bytes), 0);
		assert_int_equal((uintptr_t)arenas[i].base % HUGE_PAGE_BYTES,
				 0);
		assert_true(arenas[i].size_bytes >= bytes);
		for (size_t at = 0; at < bytes; at += PAGE_BYTES)
			assert_int_equal(arenas[i].base[at], 0);
		arenas[i].base[0] = 1;
		arenas[i].base[bytes - 1] = 1;
	}
	for (size_t i = 0; i < ARRAY_LEN(arenas); i++)
		arena_unmap(&arenas[i]);
}

static void arena_map__empty(void **state)
{
	struct arena arena;

	(void)state;
	assert_int_equal(arena_map(&arena, 0), 0);
	assert_true(is_mapped(arena.base));
	assert_non_null(arena_take(&arena, 0, 64));
	arena_unmap(&arena);
}

static void arena_map__small(void **state)
{
	struct arena arena;
	uint8_t *last;

	(void)state;
	assert_int_equal(arena_map(&arena, 100 * KIB + 1), 0);
	assert_int_equal((uintptr_t)arena.base % PAGE_BYTES, 0);
	assert_int_equal(arena.size_bytes, 100 * KIB + PAGE_BYTES);
	last = (uint8_t *)arena_take(&arena, arena.size_bytes, PAGE_BYTES) +
	       arena.size_bytes - 1;
	assert_int_equal(*last, 0);
	*last = 1;
	arena_unmap(&arena);
	assert_false(is_mapped(last - PAGE_BYTES + 1));
}

static void arena_map__too_large(void **state)
{
	struct arena arena;

	(void)state;
	assert_int_equal(arena_map(&arena, SIZE_MAX), -ENOMEM);
	assert_null(arena.base);
	assert_int_equal(arena_map(&arena, SIZE_MAX / 2), -ENOMEM);
	assert_null(arena.base);
	arena_unmap(&arena);
}

static void arena_take__aligned_and_apart(void **state)
{
	struct arena arena;
	uint8_t *a, *b, *c;

	(void)state;
	assert_int_equal(arena_map(&arena, MIB), 0);
	a = arena_take(&arena, 3, 1);
	b = arena_take(&arena, 100, 128);
	c = arena_take(&arena, 8, 1);
	assert_ptr_equal(a, arena.base);
	assert_ptr_equal(b, arena.base + 128);
	assert_ptr_equal(c, b + 100);
	assert_int_equal(arena.used_bytes, 236);
	arena_unmap(&arena);
}

static void arena_take__to_the_last_byte(void **state)
{
	struct arena arena;
	uint8_t *all;

	(void)state;
	assert_int_equal(arena_map(&arena, HUGE_PAGE_BYTES), 0);
	all = arena_take(&arena, HUGE_PAGE_BYTES, HUGE_PAGE_BYTES);
	memset(all, 0xa5, HUGE_PAGE_BYTES);
	assert_int_equal(all[HUGE_PAGE_BYTES - 1], 0xa5);
	arena_unmap(&arena);
}

/* In a child: the assertion ends the process. */
static void assert_take_aborts(size_t first_bytes, size_t bytes,
			       size_t align_bytes)
{
	const struct rlimit no_core = { 0, 0 };
	struct arena arena;
	int status;
	pid_t child = fork();

	if (child == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGABRT, SIG_DFL);
		close(STDERR_FILENO);
		if (arena_map(&arena, HUGE_PAGE_BYTES) != 0)
			_exit(1);
		arena_take(&arena, first_bytes, 1);
		arena_take(&arena, bytes, align_bytes);
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void arena_take__running_out_aborts(void **state)
{
	(void)state;
	assert_take_aborts(0, HUGE_PAGE_BYTES + 1, 1);
	assert_take_aborts(1, HUGE_PAGE_BYTES, 1);
	assert_take_aborts(1, SIZE_MAX, 1);
	assert_take_aborts(HUGE_PAGE_BYTES - 1, 1, 64);
}

static void arena_take__odd_alignment_aborts(void **state)
{
	(void)state;
	assert_take_aborts(0, 1, 3);
	assert_take_aborts(0, 1, 2 * HUGE_PAGE_BYTES);
}

/* Nothing is left, nor was anything but the block itself mapped around it. */
static void arena_unmap__gives_all_back(void **state)
{
	struct arena arena;
	uint8_t *base;

	(void)state;
	assert_int_equal(arena_map(&arena, 2 * HUGE_PAGE_BYTES), 0);
	base = arena.base;
	assert_true(is_mapped(base));
	assert_true(is_mapped(base + 2 * HUGE_PAGE_BYTES - PAGE_BYTES));
	arena_unmap(&arena);
	assert_false(is_mapped(base));
	assert_false(is_mapped(base + 2 * HUGE_PAGE_BYTES - PAGE_BYTES));
	assert_null(arena.base);
	arena_unmap(&arena);
}

/* Addresses in use, mapped or touched. */
static size_t address_space_bytes(void)
{
	unsigned long pages;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

#define ROUNDS 200

/* What is cut off around the blocks is given back: else 200 huge pages of
 * addresses would go. */
static void arena_map__leaks_no_addresses(void **state)
{
	struct arena arenas[ROUNDS];
	void *odd[ROUNDS];
	size_t before_bytes = address_space_bytes();

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		/* So that the next block does not find itself aligned. */
		odd[i] = mmap(NULL, 3 * PAGE_BYTES, PROT_READ,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(odd[i], MAP_FAILED);
		assert_int_equal(arena_map(&arenas[i], HUGE_PAGE_BYTES), 0);
	}
	for (int i = 0; i < ROUNDS; i++) {
		arena_unmap(&arenas[i]);
		munmap(odd[i], 3 * PAGE_BYTES);
	}
	assert_true(address_space_bytes() < before_bytes + 32 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_map__aligned_zeroed_writable),
		cmocka_unit_test(arena_map__empty),
		cmocka_unit_test(arena_map__small),
		cmocka_unit_test(arena_map__too_large),
		cmocka_unit_test(arena_take__aligned_and_apart),
		cmocka_unit_test(arena_take__to_the_last_byte),
		cmocka_unit_test(arena_take__running_out_aborts),
		cmocka_unit_test(arena_take__odd_alignment_aborts),
		cmocka_unit_test(arena_unmap__gives_all_back),
		cmocka_unit_test(arena_map__leaks_no_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
