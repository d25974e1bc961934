/*
 * widening.h - bytes that a sort appends to each record of its input
 *
 * What is wanted of a record may be its place in the input: --numbers writes
 * that in place of the record, and --key=random sorts by a mix of it.  Such a
 * sort appends to each record, when it is brought into memory, these bytes, so
 * that they go wherever the record goes:
 *
 *      8 bytes   the record's number, little endian, if numbers are written
 *      8 bytes   a mix of number and seed, big endian, if a key is random
 *
 * The shape of a sort's records is that of the wide ones.  Of these the output
 * gets the record, or its number.
 */
#ifndef WIDENING_H
#define WIDENING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"

#define WIDENING_WORD_BYTES 8

struct widening {
	uint32_t bytes; /* appended to each record; 0: none */
	/* What is written of the number, 4 or 8 bytes; 0: records are written.
	 */
	uint32_t number_bytes;
	bool is_random; /* the mix is the last key */
	uint64_t seed;
};

/* A part of a record. */
struct record_slice {
	uint32_t from, bytes;
};

/* Set what follows from the other members. */
void widening_complete(struct widening *widening);

/* What the output gets of a wide record, of which the input has so many bytes.
 */
struct record_slice widening_written(const struct widening *widening,
				     uint32_t input_size);

/*
 * Copy records of input_size bytes and widen them; the first one has this
 * number.  The records may be the last bytes of what they take when they are
 * wide, if that is more.
 */
void widening_copy(const struct widening *widening, uint32_t input_size,
		   uint8_t *target, const uint8_t *records,
		   uint64_t record_count, uint64_t number);

/* The numbers of so many records must have room in what is written.  0 or
 * -errno with *failure filled. */
int widening_check(const struct widening *widening, uint64_t record_count,
		   struct failure *failure);

#endif /* WIDENING_H */
