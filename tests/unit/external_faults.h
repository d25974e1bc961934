/*
 * external_faults.h - calls of an external sort that fail, or come late
 *
 * The program's calls go to the __wrap_ functions below: see WRAP_ in Makefile.
 *
 * Included by one file of a program.
 */
#ifndef EXTERNAL_FAULTS_H
#define EXTERNAL_FAULTS_H

#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/failure.h"
#include "io/scratch.h"
#include "io/output/write_queue.h"
#include "sort/orderer.h"

#define DIRECTORIES 2 /* of scratch files */
/* More than there are staging slots of the two sinks. */
#define LATE_MAX 256

enum call {
	CALL_NONE,
	CALL_PREAD,
	CALL_PWRITE,
	CALL_URING, /* a read or write that the ring gets */
	CALL_SUBMIT,
	CALL_REAP, /* of a write queue */
	CALL_FALLOCATE,
	CALL_MALLOC, /* and its relatives */
	CALL_MMAP,
	CALL_THREAD,
	/* A call of the orderer, when another team notes a failure. */
	CALL_ORDERER,
	CALLS
};

static struct {
	enum call call;
	unsigned nth; /* of these calls, from 1 on */
	bool for_ever;
	int error;
	_Atomic unsigned count;
	bool no_ring;
	bool late; /* writes */
	/* Of the places that are taken in scratch files: the nth is the first
	 * for which directory 0 is full, and all are if all_full. */
	unsigned full_at;
	bool all_full;
	unsigned taken;
	int full_fds[DIRECTORIES];
	/* The nth stripe that is written gets a bit flipped, of this byte. */
	unsigned flip_at;
	uint32_t flip_byte;
	unsigned written;
	/* What is called before each plain read, or NULL. */
	void (*before_pread)(int fd, size_t bytes);
} pretend;

ssize_t __real_pread(int fd, void *buffer, size_t bytes, off_t offset);
ssize_t __wrap_pread(int fd, void *buffer, size_t bytes, off_t offset);
ssize_t __real_pwrite(int fd, const void *buffer, size_t bytes, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *buffer, size_t bytes, off_t offset);
int __real_fallocate(int fd, int mode, off_t offset, off_t length);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length);
int __real_io_uring_queue_init(unsigned entries, struct io_uring *ring,
			       unsigned flags);
int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring,
			       unsigned flags);
int __real_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
				      struct io_uring_params *params);
int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
				      struct io_uring_params *params);
int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void *__real_mmap(void *address, size_t bytes, int access, int flags, int fd,
		  off_t offset);
void *__wrap_mmap(void *address, size_t bytes, int access, int flags, int fd,
		  off_t offset);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*run)(void *), void *argument);
int __real_scratch_take(struct scratch *scratch, uint64_t bytes,
			struct scratch_place *place, struct failure *why);
int __wrap_scratch_take(struct scratch *scratch, uint64_t bytes,
			struct scratch_place *place, struct failure *why);
bool __real_write_queue_submit(struct write_queue *queue, int fd,
			       const uint8_t *bytes, uint32_t length_bytes,
			       uint64_t offset_bytes, void *tag);
bool __wrap_write_queue_submit(struct write_queue *queue, int fd,
			       const uint8_t *bytes, uint32_t length_bytes,
			       uint64_t offset_bytes, void *tag);
void *__real_write_queue_reap(struct write_queue *queue, int *written);
void *__wrap_write_queue_reap(struct write_queue *queue, int *written);
bool __real_orderer_run(struct orderer *orderer, unsigned worker);
bool __wrap_orderer_run(struct orderer *orderer, unsigned worker);
bool __real_orderer_sort_oversized(struct orderer *orderer, unsigned worker);
bool __wrap_orderer_sort_oversized(struct orderer *orderer, unsigned worker);
bool __real_orderer_drop_duplicates(struct orderer *orderer, unsigned worker,
				    uint64_t *kept_count);
bool __wrap_orderer_drop_duplicates(struct orderer *orderer, unsigned worker,
				    uint64_t *kept_count);
void __real_scratch_written(struct scratch *scratch,
			    const struct scratch_place *place, uint64_t bytes);
void __wrap_scratch_written(struct scratch *scratch,
			    const struct scratch_place *place, uint64_t bytes);

static inline bool fails(enum call call)
{
	unsigned number;

	if (pretend.call != call)
		return false;
	number = atomic_fetch_add(&pretend.count, 1) + 1;
	if (number < pretend.nth || (number > pretend.nth && !pretend.for_ever))
		return false;
	errno = pretend.error;
	return true;
}

ssize_t __wrap_pread(int fd, void *buffer, size_t bytes, off_t offset)
{
	if (pretend.before_pread)
		pretend.before_pread(fd, bytes);
	return fails(CALL_PREAD) ? -1 : __real_pread(fd, buffer, bytes, offset);
}

static inline bool is_full(int fd)
{
	for (unsigned d = 0; d < DIRECTORIES; d++)
		if (pretend.full_fds[d] == fd && fd > 0)
			return true;
	return false;
}

ssize_t __wrap_pwrite(int fd, const void *buffer, size_t bytes, off_t offset)
{
	if (fails(CALL_PWRITE))
		return -1;
	if (!is_full(fd))
		return __real_pwrite(fd, buffer, bytes, offset);
	errno = ENOSPC;
	return -1;
}

int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
	return fails(CALL_FALLOCATE)
		       ? -1
		       : __real_fallocate(fd, mode, offset, length);
}

int __wrap_io_uring_queue_init(unsigned entries, struct io_uring *ring,
			       unsigned flags)
{
	return pretend.no_ring
		       ? -ENOSYS
		       : __real_io_uring_queue_init(entries, ring, flags);
}

int __wrap_io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
				      struct io_uring_params *params)
{
	return pretend.no_ring ? -ENOSYS
			       : __real_io_uring_queue_init_params(
					 entries, ring, params);
}

/* What fails in the ring gets a bad descriptor. */
int __wrap_io_uring_submit(struct io_uring *ring)
{
	struct io_uring_sq *queue = &ring->sq;

	if (fails(CALL_SUBMIT))
		return -pretend.error;
	for (unsigned i = queue->sqe_head; i != queue->sqe_tail; i++)
		if (fails(CALL_URING))
			queue->sqes[i & (*queue->kring_entries - 1)].fd = -1;
	return __real_io_uring_submit(ring);
}

void *__wrap_malloc(size_t bytes)
{
	return fails(CALL_MALLOC) ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return fails(CALL_MALLOC) ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	return fails(CALL_MALLOC) ? NULL : __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	return fails(CALL_MALLOC) ? NULL : __real_aligned_alloc(align, bytes);
}

void *__wrap_mmap(void *address, size_t bytes, int access, int flags, int fd,
		  off_t offset)
{
	return fails(CALL_MMAP)
		       ? MAP_FAILED
		       : __real_mmap(address, bytes, access, flags, fd, offset);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*run)(void *), void *argument)
{
	return fails(CALL_THREAD) ? pretend.error
				  : __real_pthread_create(thread, attributes,
							  run, argument);
}

/* The sink's lock guards what these two count. */
int __wrap_scratch_take(struct scratch *scratch, uint64_t bytes,
			struct scratch_place *place, struct failure *why)
{
	if (++pretend.taken == pretend.full_at)
		for (unsigned d = 0; d < (pretend.all_full ? DIRECTORIES : 1);
		     d++)
			pretend.full_fds[d] = scratch->directories[d].fd;
	return __real_scratch_take(scratch, bytes, place, why);
}

void __wrap_scratch_written(struct scratch *scratch,
			    const struct scratch_place *place, uint64_t bytes)
{
	int fd = scratch->directories[place->directory].fd;
	off_t offset = (off_t)(place->offset_bytes + pretend.flip_byte);
	uint8_t byte;

	if (++pretend.written == pretend.flip_at &&
	    __real_pread(fd, &byte, 1, offset) == 1) {
		byte ^= 0x10;
		if (__real_pwrite(fd, &byte, 1, offset) != 1)
			pretend.flip_at = 0;
	}
	__real_scratch_written(scratch, place, bytes);
}

static inline void fail_elsewhere(const struct orderer *orderer)
{
	const struct failure failure = { .status = EXIT_FILE, .why = "cut" };

	if (fails(CALL_ORDERER))
		first_failure_note(orderer->wiring.failure, &failure);
}

bool __wrap_orderer_run(struct orderer *orderer, unsigned worker)
{
	fail_elsewhere(orderer);
	return __real_orderer_run(orderer, worker);
}

bool __wrap_orderer_sort_oversized(struct orderer *orderer, unsigned worker)
{
	fail_elsewhere(orderer);
	return __real_orderer_sort_oversized(orderer, worker);
}

bool __wrap_orderer_drop_duplicates(struct orderer *orderer, unsigned worker,
				    uint64_t *kept_count)
{
	fail_elsewhere(orderer);
	return __real_orderer_drop_duplicates(orderer, worker, kept_count);
}

/* Late writes happen when they are waited for, and not before. */
static struct late_write {
	const struct write_queue *queue; /* NULL: unused */
	int fd;
	const uint8_t *bytes;
	uint32_t length_bytes;
	off_t offset;
	void *tag;
} late_writes[LATE_MAX];
static pthread_mutex_t late_lock = PTHREAD_MUTEX_INITIALIZER;

bool __wrap_write_queue_submit(struct write_queue *queue, int fd,
			       const uint8_t *bytes, uint32_t length_bytes,
			       uint64_t offset_bytes, void *tag)
{
	struct late_write *late = late_writes;

	if (!pretend.late)
		return __real_write_queue_submit(queue, fd, bytes, length_bytes,
						 offset_bytes, tag);
	pthread_mutex_lock(&late_lock);
	while (late->queue)
		late++;
	*late = (struct late_write){
		queue, fd, bytes, length_bytes, (off_t)offset_bytes, tag
	};
	pthread_mutex_unlock(&late_lock);
	queue->in_flight++;
	return true;
}

/* As if nothing could be waited for. */
static inline void *forget_writes(struct write_queue *queue, int *written)
{
	while (queue->in_flight > 0)
		__real_write_queue_reap(queue, written);
	queue->refuses = true;
	*written = -pretend.error;
	return NULL;
}

void *__wrap_write_queue_reap(struct write_queue *queue, int *written)
{
	struct late_write *late = late_writes, found;

	if (fails(CALL_REAP))
		return forget_writes(queue, written);
	if (!pretend.late)
		return __real_write_queue_reap(queue, written);
	pthread_mutex_lock(&late_lock);
	while (late->queue != queue)
		late++;
	found = *late;
	late->queue = NULL;
	pthread_mutex_unlock(&late_lock);
	*written = (int)__real_pwrite(found.fd, found.bytes, found.length_bytes,
				      found.offset);
	queue->in_flight--;
	return found.tag;
}

#endif /* EXTERNAL_FAULTS_H */
