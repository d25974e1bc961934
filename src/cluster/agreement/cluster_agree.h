/*
 * cluster_agree.h - the ranks' hellos, and what all ranks conclude from them
 *
 * Each rank tells all others what it has and what its user wants.  Whether the
 * ranks can sort together, and how, is a pure function of all hellos: so all
 * ranks come to the same result without another message.
 */
#ifndef CLUSTER_AGREE_H
#define CLUSTER_AGREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "cluster/agreement/cluster_roles.h"
#include "external/plan/external_plan.h"
#include "kernels/splitters.h"
#include "record/record.h"

/* Whether ranks send records, or references to them: the rank that sorts a
 * record then reads it from the input of the rank that has it.  That needs all
 * ranks on one machine. */
enum cluster_by_reference {
	CLUSTER_BY_REFERENCE_NO,
	CLUSTER_BY_REFERENCE_YES,
	CLUSTER_BY_REFERENCE_AUTO, /* if all ranks can */
};

/* What a rank knows of its link, where it needs to know for a sort beyond
 * memory (cluster_link.h). */
enum cluster_link_wish {
	CLUSTER_LINK_UNASKED, /* it does not need to know */
	CLUSTER_LINK_KNOWN,   /* its user has told */
	CLUSTER_LINK_UNKNOWN, /* all ranks are to measure theirs */
	CLUSTER_LINK_WISHES,
};

/* What is above record_count is told in a word, and all numbers from there on
 * as they are, in this order. */
struct cluster_hello {
	struct record_shape shape;
	uint64_t traces, unique; /* 0 or 1 */
	uint64_t wanted; /* enum splitters_kind: AUTO, STATIC or SAMPLED */
	/* What this rank has found in some of its keys; means nothing without
	 * records. */
	uint64_t probed_kind;  /* enum splitters_kind */
	uint64_t is_uniform;   /* 0 or 1 */
	uint64_t by_reference; /* what the user wants */
	uint64_t link;	       /* enum cluster_link_wish */
	uint64_t roles;	       /* bits as in cluster_roles_of() */
	/* Files that all ranks write together; 0: each has outputs of its own.
	 */
	uint64_t gather_files;
	uint64_t keeps_last; /* 0 or 1: unique keeps the last record */
	/* struct widening: what is written of a record's number, in 4 bytes;
	 * and 0 or 1: a key is random. */
	uint64_t number_words, is_random;
	uint64_t thread_count; /* that move the rank's records, from 1 */

	uint64_t record_count;
	uint64_t schedule; /* cluster_schedule_number() */
	/* outpath_place() of the output that the rank gives its name; 0: it
	 * names none, or that cannot be told. */
	uint64_t output_place;
	/* The same of the first file that it reads alone. */
	uint64_t input_place;
	/* Where ranks of the same machine find this rank's input
	 * (cluster_by_reference.c): the machine, the process and the number of
	 * its descriptor.  host_id 0: they cannot map it. */
	uint64_t host_id;
	uint64_t process;
	uint64_t input_fd;
	uint64_t slot_count; /* of the input */
	/* A random number that the rank leaves behind the records of the file
	 * that it writes with other ranks (cluster_output.c); 0: none. */
	uint64_t gather_nonce;
	/* Memory that the rank may have, at most; 0: it has not asked, since
	 * its input is small.  And what its input takes of that. */
	uint64_t memory_bytes;
	uint64_t input_bytes;
	uint64_t codec; /* of what is spilled: any number, the same for all */
	/* Records of the files that all ranks read together, of which
	 * record_count is this rank's part at first; CLUSTER_NOT_SHARED: its
	 * input is its own. */
	uint64_t shared_records;
	/* Twice the bytes before the records of each input, and 1 if outputs
	 * begin with none. */
	uint64_t header;
	/* Records of the whole order that are wanted; 0: all. */
	uint64_t head_records;
	uint64_t seed; /* of a random key */
};

#define CLUSTER_NOT_SHARED UINT64_MAX

/* Little-endian words: a version; of the shape the size and, in a word each,
 * KEY_FIELDS_MAX fields of the key; the choices; and the numbers. */
#define CLUSTER_HELLO_BYTES (8 * (19 + KEY_FIELDS_MAX))

/* The most bytes of input that a rank may have.  A peer that tells of more ends
 * the run, before its number is added, multiplied or used for memory. */
#define CLUSTER_INPUT_BYTES_MAX ((uint64_t)1 << 45)

void cluster_hello_encode(const struct cluster_hello *hello,
			  uint8_t bytes[CLUSTER_HELLO_BYTES]);
/* Returns 0; -EPROTO: another version; -EBADMSG: a number that its field cannot
 * have.  cluster_agree() then checks what the numbers may be in this job. */
int cluster_hello_decode(struct cluster_hello *hello, const uint8_t *bytes,
			 size_t byte_count);

struct cluster_agreement {
	enum splitters_kind kind; /* STATIC_256, STATIC_95 or SAMPLED */
	bool by_reference;	  /* ranks send references, not records */
	/* Some rank needs more memory than it has, or lacks a role, or the
	 * ranks share their input: all sort by way of scratch files
	 * (cluster_external.c). */
	bool is_external;
	/* If static output ranges turn out to be too unequal: sample instead.
	 */
	bool may_sample;
	uint32_t static_buckets; /* a multiple of the number of nodes */
	uint32_t sampled_splitters;
	uint64_t whole_count; /* records of all ranks */
};

/*
 * hellos[0 .. node_count) are in rank order; names[] is for messages.  Returns
 * 0, or -EINVAL with *failure filled: EXIT_USAGE, naming a rank whose options
 * differ from ours or whose input or output is ours, a role that no rank has,
 * files of all ranks, or their first records, without duplicates in a sort
 * beyond memory, or more files than ranks that sort; EXIT_PEER, naming a rank
 * whose hello is impossible: more than CLUSTER_INPUT_BYTES_MAX bytes or, in
 * memory, PLAN_RECORDS_MAX records, slots that such an input (of one file, if
 * others may map it) cannot have, keys of a kind that they are too short for,
 * records though it does not read; EXIT_RESOURCES, if our own input is too
 * large.
 */
int cluster_agree(struct cluster_agreement *agreement,
		  const struct cluster_hello *hellos, unsigned node_count,
		  unsigned own, const char *const *names,
		  struct failure *failure);

/* Do all roles have a rank?  *is_plain: all ranks have all of them.  0, or
 * -EINVAL with *failure filled. */
int cluster_check_roles(const struct cluster_hello *hellos, unsigned node_count,
			bool *is_plain, struct failure *failure);

/* The memory that a rank needs to sort in memory, if whole_count records are
 * divided equally among node_count ranks, which send references to them if
 * by_reference is set; UINT64_MAX: they are more than a plan numbers.
 * The function uses the hello's shape, number of records, input's bytes and
 * memory_bytes: a rank with less than 10 MiB is not asked for staging. */
uint64_t cluster_needed_bytes(const struct cluster_hello *hello,
			      uint64_t whole_count, unsigned node_count,
			      bool by_reference);

/* True if a node would get so much more than an equal part that it pays to sort
 * again by a sample: by more than chance alone brings about. */
bool cluster_is_skewed(const uint64_t *node_records, unsigned node_count);

/* --- which rank keeps whose runs -------------------------------------------
 */

/* keeper[rank]: the rank that keeps its runs, which is itself if it keeps.
 * Ranks that do not keep are dealt out to the keepers in rank order, neighbours
 * to the same keeper, so that each keeps about as many records: only runs that
 * are neighbours in the input can be merged before the last merge. */
void cluster_keepers_choose(const struct cluster_hello *hellos,
			    unsigned node_count, uint16_t *keeper);

/* What the rank has to do of a sort beyond memory, by the roles and the inputs
 * of all ranks: they may be supposed (roles_choice.h). */
struct external_ranks cluster_work_of(const struct cluster_hello *hellos,
				      unsigned node_count, unsigned own,
				      bool shares_input);

#endif /* CLUSTER_AGREE_H */
