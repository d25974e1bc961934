/*
 * cmocka.h - as much of cmocka as our unit tests use, for the static build
 *
 * Programs are shipped linked statically with musl, for which Debian has no
 * cmocka.  With this header instead of cmocka's own, a test is compiled for
 * musl, too, and finds where that C library differs from glibc.  Macros have
 * the names and the meaning that cmocka gives them, and the sums are printed in
 * its words, which tests/run reads.  A signal is not caught: it ends the
 * program, and tests/run says so.
 */
#ifndef CMOCKA_H
#define CMOCKA_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*CMUnitTestFunction)(void **state);
typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
	const char *name;
	CMUnitTestFunction test_func;
	CMFixtureFunction setup_func;
	CMFixtureFunction teardown_func;
};

#define cmocka_unit_test(f) cmocka_unit_test_setup_teardown(f, NULL, NULL)
#define cmocka_unit_test_setup(f, setup)                                       \
	cmocka_unit_test_setup_teardown(f, setup, NULL)
#define cmocka_unit_test_teardown(f, teardown)                                 \
	cmocka_unit_test_setup_teardown(f, NULL, teardown)
#define cmocka_unit_test_setup_teardown(f, setup, teardown)                    \
	{                                                                      \
#f, f, setup, teardown                                         \
	}

/* --- how a case ends ------------------------------------------------------ */

enum cmocka_verdict { CMOCKA_PASSED, CMOCKA_FAILED, CMOCKA_SKIPPED };

/* Where a case continues that has failed or was skipped. */
static jmp_buf cmocka_end;

__attribute__((noreturn)) static inline void
cmocka_end_case(enum cmocka_verdict verdict)
{
	longjmp(cmocka_end, (int)verdict);
}

__attribute__((noreturn, format(printf, 3, 4))) static inline void
cmocka_fail(const char *file, int line, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "[  ERROR   ] --- ");
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\n[   LINE   ] --- %s:%d: error: Failure!\n", file,
		line);
	cmocka_end_case(CMOCKA_FAILED);
}

#define fail_msg(...) cmocka_fail(__FILE__, __LINE__, __VA_ARGS__)
#define fail() fail_msg("fail()")
#define skip() cmocka_end_case(CMOCKA_SKIPPED)
#define print_message(...) printf(__VA_ARGS__)

/* --- assertions ----------------------------------------------------------- */

static inline void cmocka_expect(bool holds, const char *text, const char *file,
				 int line)
{
	if (!holds)
		cmocka_fail(file, line, "%s", text);
}

static inline void cmocka_compare(uintmax_t a, uintmax_t b, bool equal,
				  const char *file, int line)
{
	if ((a == b) != equal)
		cmocka_fail(file, line, "%#jx %s %#jx", a,
			    equal ? "!=" : "==", b);
}

static inline void cmocka_compare_text(const char *a, const char *b, bool equal,
				       const char *file, int line)
{
	if ((strcmp(a, b) == 0) != equal)
		cmocka_fail(file, line, "\"%s\" %s \"%s\"", a,
			    equal ? "!=" : "==", b);
}

static inline void cmocka_compare_bytes(const void *a, const void *b,
					size_t size_bytes, bool equal,
					const char *file, int line)
{
	const unsigned char *left = a, *right = b;
	size_t i = 0;

	while (i < size_bytes && left[i] == right[i])
		i++;
	if ((i == size_bytes) != equal)
		cmocka_fail(file, line, "%zu bytes %s from byte %zu",
			    size_bytes, equal ? "differ" : "are equal", i);
}

static inline void cmocka_check_range(uintmax_t value, uintmax_t min,
				      uintmax_t max, const char *file, int line)
{
	if (value < min || value > max)
		cmocka_fail(file, line, "%ju is not within %ju-%ju", value, min,
			    max);
}

#define assert_true(c) cmocka_expect(!!(c), #c, __FILE__, __LINE__)
#define assert_false(c) cmocka_expect(!(c), "not: " #c, __FILE__, __LINE__)
#define assert_null(p)                                                         \
	cmocka_expect(!(p), #p " is not NULL", __FILE__, __LINE__)
#define assert_non_null(p)                                                     \
	cmocka_expect(!!(p), #p " is NULL", __FILE__, __LINE__)
#define assert_int_equal(a, b)                                                 \
	cmocka_compare((uintmax_t)(a), (uintmax_t)(b), true, __FILE__, __LINE__)
#define assert_int_not_equal(a, b)                                             \
	cmocka_compare((uintmax_t)(a), (uintmax_t)(b), false, __FILE__,        \
		       __LINE__)
#define assert_ptr_equal(a, b)                                                 \
	cmocka_compare((uintptr_t)(a), (uintptr_t)(b), true, __FILE__, __LINE__)
#define assert_ptr_not_equal(a, b)                                             \
	cmocka_compare((uintptr_t)(a), (uintptr_t)(b), false, __FILE__,        \
		       __LINE__)
#define assert_string_equal(a, b)                                              \
	cmocka_compare_text(a, b, true, __FILE__, __LINE__)
#define assert_string_not_equal(a, b)                                          \
	cmocka_compare_text(a, b, false, __FILE__, __LINE__)
#define assert_memory_equal(a, b, size)                                        \
	cmocka_compare_bytes(a, b, size, true, __FILE__, __LINE__)
#define assert_memory_not_equal(a, b, size)                                    \
	cmocka_compare_bytes(a, b, size, false, __FILE__, __LINE__)
#define assert_in_range(value, min, max)                                       \
	cmocka_check_range((uintmax_t)(value), (uintmax_t)(min),               \
			   (uintmax_t)(max), __FILE__, __LINE__)

/* --- running -------------------------------------------------------------- */

/* A fixture may assert, too. */
static inline enum cmocka_verdict cmocka_run_fixture(CMFixtureFunction fixture,
						     void **state)
{
	int verdict = setjmp(cmocka_end);

	if (verdict == CMOCKA_PASSED && fixture && fixture(state) != 0)
		return CMOCKA_FAILED;
	return (enum cmocka_verdict)verdict;
}

static inline enum cmocka_verdict cmocka_run_function(CMUnitTestFunction test,
						      void **state)
{
	int verdict = setjmp(cmocka_end);

	if (verdict == CMOCKA_PASSED)
		test(state);
	return (enum cmocka_verdict)verdict;
}

static inline enum cmocka_verdict cmocka_run_case(const struct CMUnitTest *test,
						  void *group_state)
{
	static const char *const words[] = { "      OK", " FAILED ",
					     " SKIPPED" };
	void *state = group_state;
	enum cmocka_verdict verdict, torn_down;

	printf("[ RUN      ] %s\n", test->name);
	fflush(stdout);
	verdict = cmocka_run_fixture(test->setup_func, &state);
	if (verdict == CMOCKA_PASSED) {
		verdict = cmocka_run_function(test->test_func, &state);
		torn_down = cmocka_run_fixture(test->teardown_func, &state);
		if (torn_down != CMOCKA_PASSED)
			verdict = torn_down;
	}
	printf("[ %s ] %s\n", words[verdict], test->name);
	fflush(stdout);
	return verdict;
}

static inline int cmocka_run_group(const struct CMUnitTest *tests, size_t count,
				   CMFixtureFunction setup,
				   CMFixtureFunction teardown)
{
	unsigned sums[3] = { 0 };
	void *state = NULL;

	printf("[==========] Running %zu test(s).\n", count);
	if (cmocka_run_fixture(setup, &state) != CMOCKA_PASSED) {
		printf("[  FAILED  ] %zu test(s): the group's setup\n\n"
		       " %zu FAILED TEST(S)\n",
		       count, count);
		return (int)count;
	}
	for (size_t i = 0; i < count; i++)
		sums[cmocka_run_case(&tests[i], state)]++;
	if (cmocka_run_fixture(teardown, &state) != CMOCKA_PASSED)
		sums[CMOCKA_FAILED]++;
	printf("[  PASSED  ] %u test(s).\n", sums[CMOCKA_PASSED]);
	if (sums[CMOCKA_SKIPPED] > 0)
		printf("[  SKIPPED ] %u test(s).\n", sums[CMOCKA_SKIPPED]);
	if (sums[CMOCKA_FAILED] > 0)
		printf("[  FAILED  ] %u test(s).\n\n %u FAILED TEST(S)\n",
		       sums[CMOCKA_FAILED], sums[CMOCKA_FAILED]);
	return (int)sums[CMOCKA_FAILED];
}

#define cmocka_run_group_tests(tests, setup, teardown)                         \
	cmocka_run_group(tests, sizeof(tests) / sizeof((tests)[0]), setup,     \
			 teardown)
#define cmocka_run_group_tests_name(name, tests, setup, teardown)              \
	cmocka_run_group_tests(tests, setup, teardown)

#endif /* CMOCKA_H */
