/*
 * fiber.c - switch between the stacks of one thread
 */
#include "simulate/fiber.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define GUARD_BYTES ((size_t)64 << 10) /* a page, however large pages are */

/* clang has __has_feature, gcc has macros. */
#ifdef __has_feature
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__
#endif
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__
#endif
#endif

/* What only the sanitizer is told of. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define FOR_ASAN(statement) statement
#else
#define FOR_ASAN(statement) (void)0
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define FOR_TSAN(statement) statement
#else
#define FOR_TSAN(statement) (void)0
#endif

/* --- the switch --------------------------------------------------------------
 *
 * fiber_switch() pushes what a function must keep, stores the stack pointer in
 * *left, and goes on where `entered` was stored.  A stack that was never left
 * looks as if fiber_first had called it: that calls begin() with the fiber.
 */

/* Hidden, so that no address goes through a table, where the linker for aarch64
 * would put the beginning of the section in place of these. */
#pragma GCC visibility push(hidden)
void fiber_switch(void **left, void *entered);
void fiber_first(void);
#pragma GCC visibility pop
static void begin(struct fiber *fiber);

#if defined(__x86_64__)
__asm__(".text\n"
	".p2align 4\n"
	".type fiber_switch, @function\n"
	"fiber_switch:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	ret\n"
	".size fiber_switch, . - fiber_switch\n"
	".type fiber_first, @function\n"
	"fiber_first:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined rip\n" /* no caller: a backtrace ends here */
	"	movq %r12, %rdi\n"
	"	callq *%r13\n"
	"	ud2\n"
	"	.cfi_endproc\n"
	".size fiber_first, . - fiber_first\n");

/* In the order in which they are taken from the stack; behind them fiber_first
 * finds it aligned to 16 bytes. */
struct kept {
	uintptr_t r15, r14, r13, r12, rbx, rbp, address, end[2];
};

static struct kept first_registers(struct fiber *fiber)
{
	return (struct kept){
		.r13 = (uintptr_t)begin,
		.r12 = (uintptr_t)fiber,
		.address = (uintptr_t)fiber_first,
	};
}
#elif defined(__aarch64__)
__asm__(".text\n"
	".p2align 4\n"
	".type fiber_switch, %function\n"
	"fiber_switch:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	mov sp, x1\n"
	"	ldp x19, x20, [sp]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret\n"
	".size fiber_switch, . - fiber_switch\n"
	".type fiber_first, %function\n"
	"fiber_first:\n"
	"	.cfi_startproc\n"
	"	.cfi_undefined x30\n" /* no caller: a backtrace ends here */
	"	mov x0, x19\n"
	"	blr x20\n"
	"	brk #0\n"
	"	.cfi_endproc\n"
	".size fiber_first, . - fiber_first\n");

struct kept {
	uintptr_t x19, x20, x21_28[8], x29, address, d8_15[8];
};

static struct kept first_registers(struct fiber *fiber)
{
	return (struct kept){
		.x19 = (uintptr_t)fiber,
		.x20 = (uintptr_t)begin,
		.address = (uintptr_t)fiber_first,
	};
}
#else
#error "fiber.c: this machine's calling convention is missing"
#endif

/* --- fibers -----------------------------------------------------------------
 */

static char *bottom_of(const struct fiber *fiber)
{
	return (char *)fiber->memory + GUARD_BYTES;
}

static size_t size_of(const struct fiber *fiber)
{
	return fiber->memory_bytes - GUARD_BYTES;
}

/* Frames of an unfinished function have marked parts of the stack. */
static void forget_frames(struct fiber *fiber)
{
	FOR_ASAN(ASAN_UNPOISON_MEMORY_REGION(bottom_of(fiber), size_of(fiber)));
	(void)fiber;
}

int fiber_init(struct fiber *fiber, size_t stack_bytes)
{
	*fiber = (struct fiber){
		.ended = true,
		.memory_bytes = GUARD_BYTES + stack_bytes,
	};
	fiber->memory =
		mmap(NULL, fiber->memory_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fiber->memory == MAP_FAILED) {
		fiber->memory = NULL;
		return -ENOMEM;
	}
	if (mprotect(fiber->memory, GUARD_BYTES, PROT_NONE)) {
		munmap(fiber->memory, fiber->memory_bytes);
		fiber->memory = NULL;
		return -ENOMEM;
	}
	FOR_TSAN(fiber->own_shadow = __tsan_create_fiber(0));
	return 0;
}

void fiber_fini(struct fiber *fiber)
{
	if (!fiber->memory)
		return;
	munmap(fiber->memory, fiber->memory_bytes);
	forget_frames(fiber);
	FOR_TSAN(__tsan_destroy_fiber(fiber->own_shadow));
	fiber->memory = NULL;
}

void fiber_start(struct fiber *fiber, void (*function)(void *argument),
		 void *argument)
{
	char *end = bottom_of(fiber) + size_of(fiber);
	struct kept *top = (struct kept *)(void *)end;

	forget_frames(fiber);
	fiber->function = function;
	fiber->argument = argument;
	fiber->ended = false;
	top[-1] = first_registers(fiber);
	fiber->own_place = top - 1;
}

void fiber_leave(struct fiber *fiber)
{
	/* A fiber that has ended leaves nothing behind. */
	FOR_ASAN(__sanitizer_start_switch_fiber(
		fiber->ended ? NULL : &fiber->own_shadow, fiber->thread_bottom,
		fiber->thread_bytes));
	FOR_TSAN(__tsan_switch_to_fiber(fiber->thread_shadow, 0));
	fiber_switch(&fiber->own_place, fiber->thread_place);
	FOR_ASAN(__sanitizer_finish_switch_fiber(fiber->own_shadow,
						 &fiber->thread_bottom,
						 &fiber->thread_bytes));
}

static void begin(struct fiber *fiber)
{
	FOR_ASAN(__sanitizer_finish_switch_fiber(NULL, &fiber->thread_bottom,
						 &fiber->thread_bytes));
	fiber->function(fiber->argument);
	fiber->ended = true;
	fiber_leave(fiber);
	abort(); /* nobody enters it again */
}

void fiber_enter(struct fiber *fiber)
{
	FOR_ASAN(__sanitizer_start_switch_fiber(
		&fiber->thread_shadow, bottom_of(fiber), size_of(fiber)));
	FOR_TSAN(fiber->thread_shadow = __tsan_get_current_fiber());
	FOR_TSAN(__tsan_switch_to_fiber(fiber->own_shadow, 0));
	fiber_switch(&fiber->thread_place, fiber->own_place);
	FOR_ASAN(__sanitizer_finish_switch_fiber(fiber->thread_shadow, NULL,
						 NULL));
}
