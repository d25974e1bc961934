/*
 * cluster_passes.c - what each pass of a sort beyond memory has taken, on
 * every rank
 */
#include "cluster/collective/cluster_passes.h"

#include "base/base.h"
#include "cluster/collective/cluster_allgather.h"

/* A row is told as words. */
#define ROW_WORDS (sizeof(((struct cluster_passes *)0)->of[0]) / 8)

/* The link, if exchanging waves has taken more than half of the pass: also
 * where another rank was slow.  Else the disks, if a thread has waited for them
 * for more than half of it; else the CPUs. */
static enum external_limit find_limit(const struct external_pass_result *pass,
				      unsigned threads)
{
	uint64_t half_ns = pass->ns / 2, disk_ns = 0;

	if (pass->stages[STAGE_EXCHANGE].busy_ns > half_ns)
		return EXTERNAL_LINK;
	for (unsigned s = 0; s < STAGES; s++)
		disk_ns += pass->stages[s].waits[STAGE_FOR_READ].ns +
			   pass->stages[s].waits[STAGE_FOR_WRITE].ns;
	return disk_ns / MAX(1, threads) > half_ns ? EXTERNAL_DISK
						   : EXTERNAL_CPU;
}

void cluster_passes_fill(struct cluster_pass passes[EXTERNAL_PASSES],
			 const struct external_result *result, unsigned threads)
{
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		const struct external_pass_result *pass = &result->passes[p];

		passes[p].ns = pass->ns;
		passes[p].predicted_ns = result->forecast.passes[p].ns;
		passes[p].read_bytes = pass->read_bytes;
		passes[p].written_bytes = pass->written_bytes;
		passes[p].limit = find_limit(pass, threads);
	}
}

/* These are figures to be shown: any will do, but for the limit. */
int cluster_passes_tell(struct cluster_passes *all, const struct rank *rank,
			struct exchange *exchange, struct failure *failure)
{
	int error = cluster_allgather_words(
		rank, exchange, (const uint64_t *)all->of[rank->rank],
		ROW_WORDS, (uint64_t *)all->of, failure);

	for (unsigned i = 0; i < rank->node_count && error == 0; i++)
		for (unsigned p = 0; p < EXTERNAL_PASSES; p++)
			all->of[i][p].limit =
				MIN(all->of[i][p].limit, EXTERNAL_LIMITS - 1);
	return error;
}
