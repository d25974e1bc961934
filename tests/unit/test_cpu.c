#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/cpu.h"

/* Bit numbers from Intel's manual, written apart from those in cpu.c. */
static const struct cpu_features full = {
	.leaf1_ecx = 1u << 1 | 1u << 19 | 1u << 27 | 1u << 28,
	.leaf7_ebx =
		1u << 5 | 1u << 8 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31,
	.leaf7_ecx = 1u << 10,
	.xcr0 = 0xe7,
};

static void cpu_level_of__full(void **state)
{
	(void)state;
	assert_int_equal(cpu_level_of(&full), CPU_AVX512);
}

static void cpu_level_of__nothing(void **state)
{
	struct cpu_features none = { 0 };

	(void)state;
	assert_int_equal(cpu_level_of(&none), CPU_SCALAR);
}

/* Everything but one bit, for each bit: the level that remains. */
static void cpu_level_of__one_bit_missing(void **state)
{
	static const struct {
		unsigned bit;
		enum cpu_level level;
	} leaf7_ebx[] = {
		{ 5, CPU_SCALAR }, { 8, CPU_SCALAR }, { 16, CPU_AVX2 },
		{ 17, CPU_AVX2 },  { 30, CPU_AVX2 },  { 31, CPU_AVX2 },
		{ 0, CPU_AVX512 }, { 3, CPU_AVX512 },
	};
	static const unsigned leaf1_ecx[] = { 1, 19, 27, 28 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(leaf7_ebx); i++) {
		struct cpu_features features = full;

		features.leaf7_ebx &= ~(1u << leaf7_ebx[i].bit);
		assert_int_equal(cpu_level_of(&features), leaf7_ebx[i].level);
	}
	for (size_t i = 0; i < ARRAY_LEN(leaf1_ecx); i++) {
		struct cpu_features features = full;

		features.leaf1_ecx &= ~(1u << leaf1_ecx[i]);
		assert_int_equal(cpu_level_of(&features), CPU_SCALAR);
	}
}

static void cpu_level_of__no_vpclmulqdq(void **state)
{
	struct cpu_features features = full;

	(void)state;
	features.leaf7_ecx = 0;
	assert_int_equal(cpu_level_of(&features), CPU_AVX2);
}

/* The CPU has it all, the kernel does not save the registers. */
static void cpu_level_of__kernel_saves_less(void **state)
{
	static const struct {
		uint64_t xcr0;
		enum cpu_level level;
	} cases[] = {
		{ 0x00, CPU_SCALAR }, { 0x03, CPU_SCALAR }, { 0x07, CPU_AVX2 },
		{ 0x27, CPU_AVX2 },   { 0x67, CPU_AVX2 },   { 0xc7, CPU_AVX2 },
		{ 0xe7, CPU_AVX512 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cpu_features features = full;

		features.xcr0 = cases[i].xcr0;
		assert_int_equal(cpu_level_of(&features), cases[i].level);
	}
}

#if defined(__x86_64__)
/* Is this flag in the first "flags" line of /proc/cpuinfo? */
static bool kernel_lists(const char *flag)
{
	char *line = NULL, *word, *rest;
	size_t bytes = 0;
	bool found = false;
	FILE *file = fopen("/proc/cpuinfo", "r");

	assert_non_null(file);
	while (getline(&line, &bytes, file) > 0)
		if (strncmp(line, "flags", 5) == 0)
			break;
	for (word = strtok_r(line, " \t\n", &rest); word && !found;
	     word = strtok_r(NULL, " \t\n", &rest))
		found = strcmp(word, flag) == 0;
	free(line);
	fclose(file);
	return found;
}

static void cpu_level_detect__agrees_with_kernel(void **state)
{
	static const char *const avx2[] = { "avx", "avx2", "bmi2",
					    "pclmulqdq" };
	static const char *const avx512[] = { "avx512f", "avx512bw", "avx512dq",
					      "avx512vl", "vpclmulqdq" };
	enum cpu_level level = CPU_AVX512;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(avx512); i++)
		if (!kernel_lists(avx512[i]))
			level = CPU_AVX2;
	for (size_t i = 0; i < ARRAY_LEN(avx2); i++)
		if (!kernel_lists(avx2[i]))
			level = CPU_SCALAR;
	assert_int_equal(cpu_level_detect(), level);
	assert_int_equal(cpu_level_detect(), level);
}
#else
/* Whatever else a kernel lists, nothing of ours is for it. */
static void cpu_level_detect__agrees_with_kernel(void **state)
{
	(void)state;
	assert_int_equal(cpu_level_detect(), CPU_SCALAR);
}
#endif

static void cpu_level_parse__names(void **state)
{
	enum cpu_level best = cpu_level_detect();

	(void)state;
	for (int i = 0; i < CPU_LEVELS; i++) {
		enum cpu_level level = CPU_LEVELS;
		int error = cpu_level_parse(cpu_level_names[i], &level);

		assert_int_equal(level, i);
		assert_int_equal(error, i <= (int)best ? 0 : -ENOTSUP);
	}
}

static void cpu_level_parse__auto_and_unknown(void **state)
{
	enum cpu_level level = CPU_LEVELS;

	(void)state;
	assert_int_equal(cpu_level_parse("sse9", &level), -EINVAL);
	assert_int_equal(cpu_level_parse("", &level), -EINVAL);
	assert_int_equal(cpu_level_parse("AVX2", &level), -EINVAL);
	assert_int_equal(level, CPU_LEVELS);
	assert_int_equal(cpu_level_parse("auto", &level), 0);
	assert_int_equal(level, cpu_level_detect());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_level_of__full),
		cmocka_unit_test(cpu_level_of__nothing),
		cmocka_unit_test(cpu_level_of__one_bit_missing),
		cmocka_unit_test(cpu_level_of__no_vpclmulqdq),
		cmocka_unit_test(cpu_level_of__kernel_saves_less),
		cmocka_unit_test(cpu_level_detect__agrees_with_kernel),
		cmocka_unit_test(cpu_level_parse__names),
		cmocka_unit_test(cpu_level_parse__auto_and_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
