/*
 * sort_setup.h - steps that one machine's sort and a rank's sort have in common
 */
#ifndef SORT_SETUP_H
#define SORT_SETUP_H

#include "io/input/input.h"
#include "io/output/output.h"
#include "sort/orderer.h"
#include "sort/plan.h"
#include "sort/sort_config.h"
#include "system/thread_pool.h"
#include "system/topology.h"

/* Functions that return int return 0, or -errno with *failure filled. */

/* What the config says of its inputs. */
struct input_layout sort_setup_layout(const struct sorter_config *config);

/* Open the config's inputs (input.h), or none of them. */
int sort_setup_input(struct input *input, const struct sorter_config *config,
		     bool is_read, struct failure *failure);

/* What each output has before its records. */
uint64_t sort_setup_header_bytes(const struct sorter_config *config);

/* How many workers suit so many records, these CPUs and a quota of their time;
 * and what has decided on that: "--threads", "cpus", "quota", or "input", which
 * is small. */
unsigned sort_setup_workers(const struct sorter_config *config,
			    uint64_t record_count, unsigned cpu_count,
			    const char **source);

/* Make the plan, or refuse more records than it allows. */
int sort_setup_plan(struct plan *plan, const struct plan_request *request,
		    struct failure *failure);

/* Open the output files, whose parts of the record_count records are about
 * equal.  Those of a sort that drops duplicates have no sizes yet. */
int sort_setup_outputs(struct output *output,
		       const struct sorter_config *config,
		       uint64_t record_count, struct failure *failure);

/* Tell the outputs of a sort that drops duplicates, before the first chunk,
 * that record_count records are left, of which each file gets a part. */
int sort_setup_output_sizes(struct output *output,
			    const struct sorter_config *config,
			    uint64_t record_count, struct failure *failure);

/* Memory that the machine has for a sort. */
struct sort_memory {
	uint64_t bytes; /* beside what follows */
	/* That outputs will take which are memory (ramdisk.h) and do not fit
	 * into swap. */
	uint64_t output_bytes;
	/* Beside outputs, for the sort and files that are memory together: as
	 * much as bytes, or more, since no resource limit counts files. */
	uint64_t file_bytes;
	const char *source; /* what limits it, see allowance.h */
};

/* What the outputs of so many records will take of memory. */
uint64_t sort_setup_output_memory(const struct sorter_config *config,
				  uint64_t record_count);

/* What this machine has for each of its sorts. */
void sort_setup_ask_memory(struct sort_memory *memory,
			   const struct sorter_config *config,
			   uint64_t record_count, unsigned sorts_on_machine);

/* Refuse a sort that needs more memory than the user allows, or than this
 * machine has for each of its sorts beside their outputs. */
int sort_setup_refuse_memory(const struct sorter_config *config,
			     uint64_t needed_bytes, uint64_t record_count,
			     unsigned sorts_on_machine,
			     struct failure *failure);

/* Make the plan for this output, and compare it with the memory that the sort
 * may take, which *result tells.  Returns the request's number of workers if
 * the plan fits; else how many workers would fit: fewer, or 0, also if their
 * number is given. */
unsigned sort_setup_fitting_workers(struct plan *plan,
				    const struct plan_request *request,
				    const struct sorter_config *config,
				    const struct output *output,
				    struct sorter_result *result);

/* An arena for so many bytes in so many pieces.  If it is for workers on
 * several nodes, a mask as in numa.h, its pages come from these in turn, so
 * that no node's memory limits them all. */
int sort_setup_arena(struct arena *arena, uint64_t bytes, uint64_t pieces,
		     uint64_t nodes, struct failure *failure);

/* The nodes that the pool's workers run on, which a small sort does not take
 * all: a mask as in numa.h. */
uint64_t sort_setup_worker_nodes(const struct topology *topology,
				 const struct thread_pool *pool);

/* Staging slots of the plan's chunks, from the arena; what is written comes
 * from the nodes of the pool's topology. */
void sort_setup_slots(struct output *output, const struct plan *plan,
		      const struct thread_pool *pool,
		      const struct topology *topology, struct arena *arena);

/* The orderer's configuration; base is the memory of slot 0. */
struct orderer_config sort_setup_orderer(const struct sorter_config *config,
					 const struct plan *plan,
					 const uint8_t *base,
					 struct output *output);

/* On a machine with several nodes: where the memory of these arenas lies and
 * the pool's workers have run, into *result.  The topology is the pool's. */
void sort_setup_fill_nodes(struct sorter_result *result,
			   const struct topology *topology,
			   const struct thread_pool *pool,
			   const struct arena *const *arenas,
			   unsigned arena_count);

#endif /* SORT_SETUP_H */
