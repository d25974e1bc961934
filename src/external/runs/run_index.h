/*
 * run_index.h - the sorted runs of an external sort, block by block
 *
 * A run is a range of the input, sorted.  It consists of blocks of whole
 * records.  The blocks of a run lie in scratch files (scratch.h); or in an
 * input file, where they are in order (input_runs.h); or, if the run is
 * resident, in the memory of a batch, which holds the order of the records.
 * The index keeps for each block where it lies and the key of its first record,
 * so that the merge of all runs can be cut into pieces before anything is read
 * (merge_plan.h).
 *
 * Runs are numbered in the order of the input, once run_index_order() has put
 * them so: of records with equal keys, those of the lower run come first.
 * Blocks are numbered over all runs.
 */
#ifndef RUN_INDEX_H
#define RUN_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpu.h"
#include "io/input/input.h"
#include "io/input/read_ahead.h"
#include "io/scratch.h"
#include "record/record.h"

struct batch;
struct failure;

/* There may be so many of them that each byte counts. */
struct run_block {
	uint64_t directory : 8; /* where it lies: see scratch_place */
	uint64_t offset_bytes : 56;
	/* That record's number in the run, modulo 2^32, which suffices: neither
	 * a batch nor what a piece has of one run has as many records. */
	uint32_t first_record;
	uint32_t record_count;
	/* Its bytes in the scratch file.  Less than the records have: they are
	 * compressed; never more. */
	uint32_t stored_bytes;
	uint32_t crc; /* CRC-32C of the stored bytes */
};

struct run {
	uint32_t first_block;
	uint32_t block_count;
	uint64_t record_count;
	/* The range of the input that it has, of that of all ranks: the number
	 * of the first record, and how many there were before duplicates were
	 * dropped. */
	uint64_t input_record, input_count;
	/* Both NULL: the run lies in scratch files.  A file: its blocks lie
	 * there, which is an input (input_runs.h), as they are. */
	const struct batch *resident;
	const struct input_file *file;
	/* These are set in the index of a rank's part of all runs
	 * (run_part.h). */
	unsigned rank;	  /* the rank that has the run */
	bool is_received; /* its blocks come from that rank, piece by piece */
	bool has_crc;	  /* those blocks do */
};

struct run_index {
	struct record_shape shape;
	/* The shape of the keys that the index keeps: the bytes of a record
	 * from the first byte of any key to the last one. */
	struct record_shape key_shape;
	uint32_t block_records; /* in a block, but in what was added last */
	struct run *runs;	/* owned, as blocks and keys are */
	struct run_block *blocks;
	uint8_t *keys; /* key_shape.size bytes of each block */
	unsigned run_count, run_capacity;
	uint32_t block_count, block_capacity;
};

/* The shape of a record's bytes from the first key to the last. */
struct record_shape run_index_key_shape(const struct record_shape *shape);

void run_index_init(struct run_index *index, const struct record_shape *shape,
		    uint32_t block_records);
void run_index_free(struct run_index *index);

/* Memory that the index takes for each block, and that merge_plan.h takes. */
uint64_t run_index_block_bytes(const struct record_shape *shape);

/* Room for so many blocks at once: what is expected, so that the index need not
 * grow.  0 or -errno with *failure filled. */
int run_index_reserve(struct run_index *index, uint64_t block_count,
		      struct failure *failure);

/* Begin another run, of this range of the input, with room for so many blocks
 * more.  Pointers into the index become invalid.  0 or -errno with *failure
 * filled. */
int run_index_begin(struct run_index *index, uint64_t input_record,
		    uint64_t input_count, uint32_t block_count,
		    struct failure *failure);

/* The latest run gets this many records more, in blocks of block_records, for
 * which run_index_begin() has made room: returns the first block's number.
 * Their first_record and record_count are set; the caller sets the rest. */
uint32_t run_index_extend(struct run_index *index, uint64_t record_count);

/* The latest run, which lies right behind the one before in the same input
 * file, becomes a part of that one. */
void run_index_join(struct run_index *index);

/* All runs are there: put them in the order of the input, in which merges need
 * them.  0 or -errno with *failure filled. */
int run_index_order(struct run_index *index, struct failure *failure);

/* Find the neighbours in the input, two to count_max runs, whose merge into one
 * moves the fewest records for each run saved.  Returns how many, from *first
 * on; 0: no two are neighbours.  The search takes run_count * count_max steps.
 */
unsigned run_index_cheapest(const struct run_index *index, unsigned count_max,
			    unsigned *first);

/* Append all runs of another index, of the same shape and block_records, which
 * is freed.  0; or -errno with *failure filled: then *index can only be freed.
 */
int run_index_append(struct run_index *index, struct run_index *from,
		     struct failure *failure);

/* The latest run is the merge of runs [first, first + count): it takes their
 * place.  0 or -errno with *failure filled. */
int run_index_replace(struct run_index *index, unsigned first, unsigned count,
		      struct failure *failure);

/* The number of that run, of neighbours in an index, which has the block. */
unsigned run_index_find(const struct run *runs, unsigned run_count,
			uint32_t block);

/* The numbers of keys[0 .. count), each shape->size bytes, in the order of the
 * keys; equal ones as they lie.  The caller frees them, room for as many words
 * of 64 bits.  NULL: *failure is filled. */
uint32_t *run_index_order_keys(const struct record_shape *shape,
			       const uint8_t *keys, uint32_t count,
			       enum cpu_level kernel, struct failure *failure);

/* Keep the key of this record, as that of the block's first. */
void run_index_set_key(struct run_index *index, uint32_t block,
		       const uint8_t *record);

static inline const uint8_t *run_index_key(const struct run_index *index,
					   uint32_t block)
{
	return index->keys + (uint64_t)block * index->key_shape.size;
}

/* The records of a run from one block's first up to another's. */
static inline uint32_t run_block_distance(const struct run_block *from,
					  const struct run_block *to)
{
	return to->first_record - from->first_record;
}

/* True if the block lies right behind `length` bytes from the first one on. */
static inline bool run_block_follows(const struct run_block *block,
				     const struct run_block *first,
				     uint64_t length)
{
	return block->directory == first->directory &&
	       block->offset_bytes == first->offset_bytes + length;
}

/* Where `length` bytes lie that begin with the block, of a run that is an input
 * file. */
static inline struct read_extent run_file_extent(const struct input_file *file,
						 const struct run_block *first,
						 uint32_t length)
{
	return (struct read_extent){
		.direct_fd = file->direct_fd,
		.plain_fd = file->fd,
		.offset_bytes = first->offset_bytes,
		.length_bytes = length,
		.path = file->path,
	};
}

/* The same of any run. */
static inline struct read_extent run_block_extent(const struct run *run,
						  const struct run_block *first,
						  const struct scratch *scratch,
						  uint32_t length)
{
	const struct scratch_directory *directory =
		&scratch->directories[first->directory];

	if (run->file)
		return run_file_extent(run->file, first, length);
	return (struct read_extent){
		.direct_fd = directory->direct_fd,
		.plain_fd = directory->fd,
		.offset_bytes = first->offset_bytes,
		.length_bytes = length,
		.path = directory->path,
	};
}

#endif /* RUN_INDEX_H */
