/* cpu.c - which vector kernels this CPU can run */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/base.h"
#include "base/cpu.h"

const char *const cpu_level_names[CPU_LEVELS] = {
	[CPU_SCALAR] = "scalar",
	[CPU_AVX2] = "avx2",
	[CPU_AVX512] = "avx512",
};

/* The bits, as Intel's manual volume 2A numbers them (CPUID). */
#define LEAF1_ECX_PCLMULQDQ (1u << 1)
#define LEAF1_ECX_SSE41 (1u << 19)
#define LEAF1_ECX_OSXSAVE (1u << 27)
#define LEAF1_ECX_AVX (1u << 28)
#define LEAF7_EBX_AVX2 (1u << 5)
#define LEAF7_EBX_BMI2 (1u << 8)
#define LEAF7_EBX_AVX512F (1u << 16)
#define LEAF7_EBX_AVX512DQ (1u << 17)
#define LEAF7_EBX_AVX512BW (1u << 30)
#define LEAF7_EBX_AVX512VL (1u << 31)
#define LEAF7_ECX_VPCLMULQDQ (1u << 10)
#define XCR0_YMM 0x06u /* SSE and AVX state */
#define XCR0_ZMM 0xe6u /* and the masks, the upper halves, ZMM16 to 31 */

static bool has_all(uint64_t bits, uint64_t wanted)
{
	return (bits & wanted) == wanted;
}

static bool has_avx2(const struct cpu_features *features)
{
	return has_all(features->leaf1_ecx,
		       LEAF1_ECX_PCLMULQDQ | LEAF1_ECX_SSE41 |
			       LEAF1_ECX_OSXSAVE | LEAF1_ECX_AVX) &&
	       has_all(features->leaf7_ebx, LEAF7_EBX_AVX2 | LEAF7_EBX_BMI2) &&
	       has_all(features->xcr0, XCR0_YMM);
}

static bool has_avx512(const struct cpu_features *features)
{
	return has_avx2(features) &&
	       has_all(features->leaf7_ebx,
		       LEAF7_EBX_AVX512F | LEAF7_EBX_AVX512DQ |
			       LEAF7_EBX_AVX512BW | LEAF7_EBX_AVX512VL) &&
	       has_all(features->leaf7_ecx, LEAF7_ECX_VPCLMULQDQ) &&
	       has_all(features->xcr0, XCR0_ZMM);
}

enum cpu_level cpu_level_of(const struct cpu_features *features)
{
	if (has_avx512(features))
		return CPU_AVX512;
	return has_avx2(features) ? CPU_AVX2 : CPU_SCALAR;
}

#if defined(__x86_64__)
/* The XGETBV intrinsic is not used: it wants -mxsave for the whole file. */
static uint64_t read_xcr0(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

static void read_features(struct cpu_features *features)
{
	uint32_t eax, ebx, edx;

	/* Under a hypervisor each CPUID takes microseconds. */
	__cpuid(1, eax, ebx, features->leaf1_ecx, edx);
	/* XGETBV is illegal without OSXSAVE.  If there is OSXSAVE, leaf 7
	 * exists, since OSXSAVE implies leaf 13. */
	if (!(features->leaf1_ecx & LEAF1_ECX_OSXSAVE))
		return;
	__cpuid_count(7, 0, eax, features->leaf7_ebx, features->leaf7_ecx, edx);
	features->xcr0 = read_xcr0();
}
#else
static void read_features(struct cpu_features *features)
{
	(void)features;
}
#endif

enum cpu_level cpu_level_detect(void)
{
	/* Level + 1; 0 until known.  Threads that race here store the same
	 * value. */
	static _Atomic int known;
	int level = atomic_load_explicit(&known, memory_order_relaxed) - 1;

	if (level < 0) {
		struct cpu_features features = { 0 };

		read_features(&features);
		level = (int)cpu_level_of(&features);
		atomic_store_explicit(&known, level + 1, memory_order_relaxed);
	}
	return (enum cpu_level)level;
}

int cpu_level_parse(const char *name, enum cpu_level *level)
{
	if (strcmp(name, "auto") == 0) {
		*level = cpu_level_detect();
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(cpu_level_names); i++) {
		if (strcmp(name, cpu_level_names[i]) != 0)
			continue;
		*level = (enum cpu_level)i;
		return *level <= cpu_level_detect() ? 0 : -ENOTSUP;
	}
	return -EINVAL;
}
