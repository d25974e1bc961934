/*
 * codec_probe.h - how fast a codec is, and how small records become
 *
 * The records are the benchmark's (generator.h), sorted, in blocks that are
 * compressed each by itself: what a run of a sort beyond memory is made of.
 * One thread does it, as a sort lets each of its threads do.
 */
#ifndef CODEC_PROBE_H
#define CODEC_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "external/runs/codec.h"

/* Lz4 counts bytes in an int. */
#define CODEC_PROBE_BLOCK_BYTES_MAX ((uint64_t)64 << 20)

struct codec_probe {
	struct codec codec; /* CODEC_LZ4 or CODEC_ZSTD */
	bool binary;	    /* records of all bytes; else lines of text */
	/* Room of a block, for one record at least; it takes whole ones. */
	uint64_t block_bytes;
	uint64_t bytes; /* of records, of which whole blocks are made */
	unsigned rounds;
};

struct codec_figures {
	uint64_t *encode_ns, *decode_ns; /* [rounds], the caller's */
	uint64_t block_bytes;		 /* of its records */
	/* Of all blocks: those that do not become smaller by a sixteenth stay
	 * as they are, and are not decoded. */
	uint64_t plain_bytes, stored_bytes;
};

/* A sample is the time of all blocks.  Returns 0, or -errno with *failure
 * filled: EXIT_RESOURCES. */
int codec_probe_run(const struct codec_probe *probe,
		    struct codec_figures *figures, struct failure *failure);

#endif /* CODEC_PROBE_H */
