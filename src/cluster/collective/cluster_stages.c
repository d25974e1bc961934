/*
 * cluster_stages.c - what each pass of a sort beyond memory has taken, on
 * every rank: the table of stages that TritonSort's authors balanced theirs
 * by (Rasmussen et al. 2011, table 2)
 */
#include "cluster/collective/cluster_stages.h"

#include <stdlib.h>

#include "base/base.h"
#include "cluster/collective/cluster_allgather.h"

/* Length of a message: for each pass six numbers, and what has limited it. */
#define STAGE_BYTES 56
#define ROW_BYTES (STAGE_BYTES * EXTERNAL_PASSES)

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

void cluster_stages_fill(struct cluster_stage stages[EXTERNAL_PASSES],
			 const struct external_result *result,
			 const struct cluster_wave_result *kept,
			 const struct cluster_wave_result *waves,
			 unsigned threads)
{
	const struct cluster_wave_result none = { 0 };
	const struct cluster_wave_result *of_pass[EXTERNAL_PASSES] = {
		[EXTERNAL_RUNS] = kept,
		[EXTERNAL_MERGES] = &none,
		[EXTERNAL_OUTPUT] = waves,
	};

	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		const struct external_pass_result *pass = &result->passes[p];

		stages[p] = (struct cluster_stage){
			.ns = pass->ns,
			.predicted_ns = result->forecast.passes[p].ns,
			.read_bytes = pass->read_bytes,
			.written_bytes = pass->written_bytes,
			.sent_bytes = of_pass[p]->sent_bytes,
			.received_bytes = of_pass[p]->received_bytes,
			.limit = find_limit(pass, of_pass[p]->ns, threads),
		};
	}
}

static void write_row(const struct cluster_stage stages[EXTERNAL_PASSES],
		      uint8_t bytes[ROW_BYTES])
{
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++, bytes += STAGE_BYTES) {
		store_le64(bytes, stages[p].ns);
		store_le64(bytes + 8, stages[p].predicted_ns);
		store_le64(bytes + 16, stages[p].read_bytes);
		store_le64(bytes + 24, stages[p].written_bytes);
		store_le64(bytes + 32, stages[p].sent_bytes);
		store_le64(bytes + 40, stages[p].received_bytes);
		store_le64(bytes + 48, stages[p].limit);
	}
}

/* These are figures to be shown: any will do, but for the limit. */
static void read_row(struct cluster_stage stages[EXTERNAL_PASSES],
		     const uint8_t *bytes)
{
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++, bytes += STAGE_BYTES)
		stages[p] = (struct cluster_stage){
			.ns = load_le64(bytes),
			.predicted_ns = load_le64(bytes + 8),
			.read_bytes = load_le64(bytes + 16),
			.written_bytes = load_le64(bytes + 24),
			.sent_bytes = load_le64(bytes + 32),
			.received_bytes = load_le64(bytes + 40),
			.limit = (enum external_limit)MIN(load_le64(bytes + 48),
							  EXTERNAL_LIMITS - 1),
		};
}

int cluster_stages_tell(struct cluster_stages *all, const struct rank *rank,
			struct exchange *exchange, struct failure *failure)
{
	uint8_t own[ROW_BYTES];
	struct cluster_allgather rows = {
		.rank = rank,
		.own = own,
		.own_bytes = sizeof(own),
	};
	int error;

	write_row(all->stages[rank->rank], own);
	for (unsigned i = 0; i < rank->node_count; i++)
		rows.bytes[i] = sizeof(own);
	error = cluster_allgather(&rows, exchange, failure);
	for (unsigned i = 0; i < rank->node_count && error == 0; i++)
		read_row(all->stages[i], rows.all + rows.offset[i]);
	free(rows.all);
	return error;
}
