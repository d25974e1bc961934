/*
 * cpu.h - which vector kernels this CPU can run
 *
 * A kernel is one of a family of functions with the same meaning: NAME_scalar.c
 * defines it, NAME_avx2.c and so on are faster.  Levels are ordered: a CPU that
 * has one has all below it.  Each CPUID instruction traps in a virtual machine
 * (1 to 2 microseconds), so only the two needed leaves are read, once.
 */
#ifndef CPU_H
#define CPU_H

#include <stdint.h>

enum cpu_level {
	CPU_SCALAR, /* plain C: any machine, arm64 too */
	CPU_AVX2,   /* AVX2, BMI2, PCLMULQDQ */
	CPU_AVX512, /* AVX-512 F BW DQ VL, VPCLMULQDQ; OS saves the registers */
};

#define CPU_LEVELS 3

/* The best level of this CPU and kernel.  Any thread. */
enum cpu_level cpu_level_detect(void);

/* The best kernel of a family up to this level; the vector kernels are compiled
 * for x86-64 alone. */
#if defined(__x86_64__)
#define CPU_BEST(level, scalar, avx2, avx512)                                  \
	((level) >= CPU_AVX512 ? (avx512)                                      \
	 : (level) >= CPU_AVX2 ? (avx2)                                        \
			       : (scalar))
#else
#define CPU_BEST(level, scalar, avx2, avx512) ((void)(level), (scalar))
#endif

/* The results of CPUID and XGETBV.  cpu_level_of() takes them as an argument,
 * so that a test can describe other CPUs. */
struct cpu_features {
	uint32_t leaf1_ecx;
	uint32_t leaf7_ebx; /* 0 if there is no leaf 7 */
	uint32_t leaf7_ecx;
	uint64_t xcr0; /* registers that the kernel saves; 0 if unknown */
};

enum cpu_level cpu_level_of(const struct cpu_features *features);

/* [enum cpu_level]: "scalar", "avx2", "avx512" */
extern const char *const cpu_level_names[CPU_LEVELS];

/* Set *level to the level that the user names; "auto" means cpu_level_detect().
 * Returns 0, -EINVAL (no such name) or -ENOTSUP (this CPU lacks the level;
 * *level is set). */
int cpu_level_parse(const char *name, enum cpu_level *level);

#endif /* CPU_H */
