/*
 * direct.h - reads and writes past the page cache
 *
 * A file that is larger than half of the memory to be had would drive all else
 * out of the page cache, and in a memory cgroup each of its pages would wait
 * until another one has been given back.  Such a file is read and written with
 * O_DIRECT instead.
 */
#ifndef DIRECT_H
#define DIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes a thread reads or writes at a time with O_DIRECT, about; and how many
 * threads keep a disk busy, since each waits for its own bytes.  To read 2 GB
 * of a virtio disk took 1.3 s by pieces of 1 MiB and 1.0 s by these. */
#define DIRECT_PIECE_BYTES ((size_t)4 << 20)
#define DIRECT_THREADS 4

/* True if a file of this size is too large.  Costs nothing for small files. */
bool direct_is_large(uint64_t size_bytes);

/* True if it is worth it to read the file past the page cache: it is too large,
 * and most of it is not in the page cache already. */
bool direct_suits(int fd, uint64_t size_bytes);

/* Memory for such pieces, on huge pages if there are any: the disk then gets
 * each piece as few long requests, and the 2 GB above take 1.3 s instead
 * of 2.2. NULL: there is none.  The caller frees it. */
uint8_t *direct_memory(size_t size_bytes);

#endif /* DIRECT_H */
