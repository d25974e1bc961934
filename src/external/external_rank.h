/*
 * external_rank.h - what one rank does of a sort beyond memory by many ranks
 *
 * Each rank sorts what it reads into runs on its own scratch files, as a rank
 * alone does (external_sort.h); what memory holds to the end stays there.  A
 * rank that does not keep runs sends them to one that does (kept_runs.h).  The
 * ranks then cut the merge of all runs of all ranks into a part for each
 * (run_cut.h), and each rank merges its part, piece by piece.  Piece w of every
 * rank is brought to it by wave w: a message from each rank to each other one,
 * with the blocks that lie there (outgoing.h).  So every record is read twice
 * and written twice at most, and sent once, or twice if its reader does not
 * keep runs, whatever the keys are; and equal keys keep their order, since runs
 * are numbered as the inputs are.
 *
 * So the ranks sort first and cut then, as those of DEMSort do (Rahn, Sanders
 * and Singler 2010), and no rank can get more than its part.  TritonSort
 * (Rasmussen et al. 2011) cuts by a sample of the input, and sorts what has
 * come.
 *
 * This module does what a rank does by itself, in threads of its own; the
 * caller brings the messages (src/cluster/cluster_external.c).  All
 * functions belong to the caller's thread.  Those that return int return 0 or
 * -errno with *failure filled.
 *
 *      external_rank_open()          plan, memory, files
 *      external_rank_start_runs()    pass 1; until external_rank_is_busy() says
 *                                    no, the caller does what else it must
 *      external_rank_plan_part()     with what other ranks have told
 *      external_rank_start_merge()   pass 2, for which the caller gives waves
 */
#ifndef EXTERNAL_RANK_H
#define EXTERNAL_RANK_H

#include "external/external_sort.h"
#include "external/ranks/kept_runs.h"
#include "external/plan/merge_plan.h"
#include "external/ranks/outgoing.h"
#include "external/read/reading_claims.h"
#include "io/output/output.h"

/* What all ranks must know of one: words, as ranks tell them. */
struct external_rank_limits {
	uint64_t piece_records; /* that a piece of it has at most */
	uint64_t block_records; /* and a block of its runs */
	/* Stored bytes that another rank may want of it in one wave. */
	uint64_t wanted_bytes;
	/* Records that a rank whose runs it keeps may send it in one wave of
	 * the first pass: whole blocks.  0: it keeps none. */
	uint64_t kept_records;
};

struct external_rank {
	/* What the caller looks at: our limits; the index of our own runs, from
	 * their end on; the merge of our part, once it is planned; and memory
	 * that is planned for what other ranks tell of their runs. */
	struct external_rank_limits limits;
	const struct run_index *index;
	const struct merge_plan *merge;
	uint64_t index_bytes;
	/* Of the caller, which exchanges messages while a pass goes on. */
	struct stage_clock clock;
	/* Memory for what arrives in even and in odd waves, while what the wave
	 * before has brought is taken. */
	uint8_t *received[2];
	/* Once the lead has been taken: records of it that are ours. */
	uint64_t lead_records;
	/* What this rank may read of a shared input is given there, from the
	 * start of the runs on.  NULL: it has an input of its own. */
	struct reading_claims *claims;
	/* The caller sends the batches that are offered there, while
	 * external_rank_is_busy().  NULL: this rank keeps its runs. */
	struct given_runs *given;
	/* The caller receives runs of other ranks there, and then calls
	 * external_rank_end_kept().  NULL: this rank keeps no other's. */
	struct kept_runs *kept;

	/* Private. */
	struct external *external;
	bool has_part; /* of the merge */
	/* In both, the caller is worker 0.  Worker 1 of the driver runs the
	 * passes, that of the sender reads what goes out. */
	struct thread_pool driver, sender;
	unsigned runs_max;
	struct stage_table *stages; /* [EXTERNAL_PASSES] */
	struct stage_clock sender_clock;
	struct outgoing outgoing;
	uint8_t *areas[2]; /* for what goes out */
	size_t area_bytes, slots_bytes;
	/* The driver and the sender each set theirs. */
	_Atomic bool is_driving;
	_Atomic uint32_t read_waves;
	/* The caller raises these, with thread_pool_set(); to UINT32_MAX if the
	 * run has failed before that. */
	_Atomic uint32_t given_waves;
	_Atomic uint32_t output_is_open;
	_Atomic uint32_t kept_is_over;
	const uint8_t *const *received_runs[2]; /* before given_waves */
	uint64_t records_max;			/* before output_is_open */
	/* The leader of the reading team raises it, after lead_records. */
	_Atomic uint32_t taken_waves;
};

/* config->ranks.rank_count is above 1.  The config is borrowed until
 * external_rank_close(). */
int external_rank_open(struct external_rank **rank,
		       const struct external_config *config,
		       struct failure *failure);

/* Sort the input into runs, and merge these until there are no more than
 * runs_max. */
void external_rank_start_runs(struct external_rank *rank, unsigned runs_max);

/* About how many records have been read so far. */
uint64_t external_rank_read_records(const struct external_rank *rank);
/* No runs of other ranks come any more. */
void external_rank_end_kept(struct external_rank *rank);

/* Has the run failed by now, in any thread? */
int external_rank_check(const struct external_rank *rank,
			struct failure *failure);

/* Is what was started still going on? */
bool external_rank_is_busy(const struct external_rank *rank);
/* It is over: has it succeeded? */
int external_rank_finish(struct external_rank *rank, struct failure *failure);

/* Plan the merge of our part: the caller has set the index, the number of its
 * runs, both cuts, and as rank_bytes_max each other rank's wanted_bytes
 * (external_rank_limits), and UINT64_MAX for our own.  NULL: we get no part.
 * Then there is no piece, no output, and nothing to be given but the end:
 * external_rank_give_output(). */
int external_rank_plan_part(struct external_rank *rank,
			    struct merge_request *part,
			    struct failure *failure);

/* What other ranks want of our runs, [rank_count], borrowed; there will be so
 * many waves.  Then the first wave is being read. */
int external_rank_start_sending(struct external_rank *rank,
				const struct outgoing_wants *wants,
				uint32_t wave_count, struct failure *failure);
/* Read the next wave, while this one is sent: [rank_count] messages. */
const struct outgoing_message *external_rank_send(struct external_rank *rank,
						  uint32_t wave);

void external_rank_start_merge(struct external_rank *rank);
/* The blocks for piece `wave` have arrived: those of run r are at received[r],
 * borrowed until they have been taken.  All pieces but the one before have
 * been. */
void external_rank_give(struct external_rank *rank, uint32_t wave,
			const uint8_t *const *received);
/* Have so many waves been read, to be sent, and so many pieces taken out of the
 * area?  A read that has failed counts, too: external_rank_check() tells. */
bool external_rank_has_come(const struct external_rank *rank, uint32_t read,
			    uint32_t taken);
/* The output is open, for so many records at most; until then nothing is handed
 * over to its sink.  NULL, of a rank that gets no part: all waves are over. */
void external_rank_give_output(struct external_rank *rank,
			       struct output *output, uint64_t record_count);

/* The run has failed elsewhere: what is under way ends soon. */
void external_rank_stop(struct external_rank *rank,
			const struct failure *failure);

/* All has been handed over: complete both results.  Returns how many records
 * went to the output. */
uint64_t external_rank_fill_result(const struct external_rank *rank,
				   struct sorter_result *result,
				   struct external_result *details);

/* Safe on NULL. */
void external_rank_close(struct external_rank *rank);

#endif /* EXTERNAL_RANK_H */
