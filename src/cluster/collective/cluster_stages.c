/*
 * cluster_stages.c - what each pass of a sort beyond memory has taken, on
 * every rank: the table of stages that TritonSort's authors balanced theirs
 * by (Rasmussen et al. 2011, Figure 8)
 */
#include "cluster/collective/cluster_stages.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cluster/collective/cluster_allgather.h"

/* A row is told as words. */
#define ROW_WORDS (sizeof(((struct cluster_stages *)0)->stages[0]) / 8)

/* The link, if exchanging waves has taken more than half of the pass: also
 * where another rank was slow.  Else the disks, if a thread has waited for them
 * for more than half of it; else the CPUs. */
static enum external_limit find_limit(const struct external_pass_result *pass,
				      uint64_t wave_ns, unsigned threads)
{
	uint64_t half_ns = pass->ns / 2;
	uint64_t disk_ns = pass->read_wait_ns + pass->write_wait_ns;

	if (wave_ns > half_ns)
		return EXTERNAL_LINK;
	return disk_ns / MAX(1, threads) > half_ns ? EXTERNAL_DISK
						   : EXTERNAL_CPU;
}

void cluster_stages_fill(
	struct cluster_stage stages[EXTERNAL_PASSES],
	const struct external_result *result,
	const struct cluster_wave_result waves[EXTERNAL_PASSES],
	unsigned threads)
{
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		const struct external_pass_result *pass = &result->passes[p];

		stages[p] = (struct cluster_stage){
			.ns = pass->ns,
			.predicted_ns = result->forecast.passes[p].ns,
			.read_bytes = pass->read_bytes,
			.written_bytes = pass->written_bytes,
			.sent_bytes = waves[p].sent_bytes,
			.received_bytes = waves[p].received_bytes,
			.limit = find_limit(pass, waves[p].ns, threads),
		};
	}
}

/* These are figures to be shown: any will do, but for the limit. */
int cluster_stages_tell(struct cluster_stages *all, const struct rank *rank,
			struct exchange *exchange, struct failure *failure)
{
	uint64_t *told;
	int error = cluster_allgather_words(
		rank, exchange, (const uint64_t *)all->stages[rank->rank],
		ROW_WORDS, &told, failure);

	if (error == 0)
		memcpy(all->stages, told,
		       rank->node_count * sizeof(all->stages[0]));
	for (unsigned i = 0; i < rank->node_count && error == 0; i++)
		for (unsigned p = 0; p < EXTERNAL_PASSES; p++)
			all->stages[i][p].limit = MIN(all->stages[i][p].limit,
						      EXTERNAL_LIMITS - 1);
	free(told);
	return error;
}
