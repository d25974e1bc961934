/*
 * cluster_output.h - where a rank's share goes: into files of its own, or into
 * its place in the one file of all ranks
 *
 * The one file has a hidden name until the first rank that sorts gives it its
 * own.  Behind the
 * place of all ranks' records, those that are dropped as duplicates included,
 * each rank that sorts leaves a nonce that it has drawn and told all ranks in
 * its hello. A rank whose nonce is not there writes another file, of the same
 * name but on a disk of its own, and the file that the first one has lacks that
 * rank's part.  The first one checks the nonces and cuts the file behind the
 * records.  A rank that does not sort (cluster_roles.h) opens no output.
 */
#ifndef CLUSTER_OUTPUT_H
#define CLUSTER_OUTPUT_H

#include "cluster/agreement/cluster_agree.h"
#include "exchange/exchange.h"
#include "io/output/output.h"
#include "sort/sorter.h"

struct cluster_output {
	/* The driver fills in these. */
	const struct sorter_config *config;
	struct exchange *exchange;
	const struct rank *rank;
	const struct cluster_agreement *agreement;
	const struct cluster_hello *hellos;
	bool gathers;  /* all ranks write one file */
	bool is_large; /* past the page cache, and cut in the end */

	struct output output;	 /* the sink of the share */
	uint64_t gathered_bytes; /* of the one file, without the nonces */
};

/* The functions below return 0 or -errno with *failure filled. */

/* Open the output for record_count records, of which the first is number
 * first_record of all ranks' sorted records. */
int cluster_output_open(struct cluster_output *output, uint64_t first_record,
			uint64_t record_count, struct failure *failure);

/* Called before the first chunk, or when all are written: there are fewer
 * records, record_count of ours and whole_count of all ranks. */
int cluster_output_shrink(struct cluster_output *output, uint64_t first_record,
			  uint64_t record_count, uint64_t whole_count,
			  struct failure *failure);

/* All of the share has been handed over: write it, for other ranks to see. */
int cluster_output_finish(struct cluster_output *output,
			  struct failure *failure);

/* All ranks have finished: give the files their names; also, unless it is NULL,
 * is one more file that gets its name with them. */
int cluster_output_commit(struct cluster_output *output, struct outfile *also,
			  struct failure *failure);

#endif /* CLUSTER_OUTPUT_H */
