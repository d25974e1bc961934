/*
 * sort_config.h - what a sort is to do, and what it tells of it
 */
#ifndef SORT_CONFIG_H
#define SORT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cpu.h"
#include "io/input/input.h"
#include "kernels/splitters.h"
#include "record/record.h"
#include "record/widening.h"
#include "system/topology.h"

/* Which of the records with equal keys are written. */
enum unique_kind {
	UNIQUE_NO, /* all */
	UNIQUE_FIRST,
	UNIQUE_LAST,
};

struct sorter_config {
	const char *const *input_paths;
	unsigned input_count;
	/* Records are in so many bytes at the beginning of each input that is a
	 * block device; 0: in all. */
	uint64_t device_bytes;
	/* So many bytes at the beginning of each input are no records.  Each
	 * output begins with those of the first input, unless they are dropped.
	 */
	uint64_t header_bytes;
	bool drops_header;
	/* The user has said so, or that there are none. */
	bool header_is_known;
	const char *const
		*output_paths; /* parts of the sorted whole, in order */
	unsigned output_count;
	bool outputs_are_devices; /* block devices, see outdevice.h */
	struct record_shape shape;
	enum unique_kind unique;
	/* Of the order, write the first so many; 0: all. */
	uint64_t head_records;
	/* What is appended to records in memory; their shape has it, too. */
	struct widening widening;
	unsigned threads;      /* 0: all CPUs that are allowed, if it pays */
	unsigned threads_max;  /* where threads is 0; 0: no further limit */
	uint64_t memory_bytes; /* 0: what is available */
	/* How memory_bytes is called in messages: "--memory". */
	const char *memory_option;
	enum input_mode io;
	enum splitters_kind splitters; /* AUTO, STATIC or SAMPLED */
	enum cpu_level kernel;
	bool sync; /* on the medium before the output has its name */
	bool checksum;
	/* Where a timeline goes (trace.h), or NULL; neither an input nor an
	 * output. */
	const char *trace_path;
	/* Take the machine for one NUMA node. */
	bool ignores_nodes;
	/* Leave threads where the scheduler puts them: --pin=no. */
	bool unpinned;
	/* Count in the result where memory lies: costs 2 us a megabyte on a
	 * machine with several nodes. */
	bool counts_nodes;
};

/* How many of so many sorted records are written. */
static inline uint64_t sorter_config_written(const struct sorter_config *config,
					     uint64_t record_count)
{
	return config->head_records == 0
		       ? record_count
		       : MIN(record_count, config->head_records);
}

/* Bytes of a record of the input; and what the output gets of a record of the
 * sort. */
static inline uint32_t sorter_input_size(const struct sorter_config *config)
{
	return config->shape.size - config->widening.bytes;
}

static inline struct record_slice
sorter_written(const struct sorter_config *config)
{
	return widening_written(&config->widening, sorter_input_size(config));
}

/* Where the records of a sort are brought into order. */
enum sort_place {
	SORT_IN_MEMORY,
	/* Not by a sorter: it would take memory_bytes of the result (0: more
	 * than can be planned or mapped), which is more than it may. */
	SORT_BEYOND_MEMORY,
};

/* What a sort had of one NUMA node. */
struct sorter_node {
	unsigned node;
	unsigned workers;
	uint64_t memory_bytes; /* of its own memory, as touched at the end */
};

/* What was done and how long it took; valid if sorter_sort() returned 0.  After
 * sorter_open(): what the sort would take. */
struct sorter_result {
	enum sort_place place;
	uint64_t record_count;	/* of the input; of a rank: of its share */
	uint64_t size_bytes;	/* of these records */
	uint64_t dropped_count; /* of these records, as duplicates */
	uint64_t written_count; /* of the others: all, or the first */
	enum input_mode io;	/* chosen */
	bool output_direct;
	enum splitters_kind splitters; /* chosen */
	uint32_t bucket_count;
	unsigned threads;
	const char *threads_source; /* see sort_setup.h; or "memory" */
	uint64_t memory_bytes;	    /* planned */
	/* What limits the memory: "--memory", or as in allowance.h; NULL: that
	 * was not asked for, as so little suffices. */
	const char *memory_source;
	/* How many nodes there are on which workers have run or memory lies; 0:
	 * there is but one, or they are ignored, or not counted. */
	unsigned node_count;
	bool knows_node_memory; /* the kernel has told where memory lies */
	struct sorter_node nodes[TOPOLOGY_NODES_MAX];
	unsigned __int128 checksum; /* of the records that were written */
	/* When worker 0 came to these points, in this order. */
	uint64_t begin_ns;
	uint64_t prepared_ns;
	uint64_t bucketed_ns;
	uint64_t ordered_ns;
	uint64_t committed_ns;
};

#endif /* SORT_CONFIG_H */
