#include "external/plan/staging_plan.h"

#include "external/plan/external_plan.h"

/* Requests to a disk: larger ones bring nothing more, and smaller ones cost
 * time of the CPU.  Between, they are this part of the memory at most: two
 * workers have 26 of them (16 to read, 10 to write), a tenth of the memory. */
#define REQUEST_BYTES_MAX (2 * MIB)
#define REQUEST_BYTES_MIN (128 * KIB)
#define REQUEST_PART 256
/* Writes that are under way: see STAGING_READ_DEPTH. */
#define WRITE_DEPTH 8
/* No more than this part of the memory is for staging, half of it for reads and
 * half for writes: a few workers want less, and many have fewer requests under
 * way each, which keep the disk as busy. */
#define STAGING_PART 4

static unsigned lane_count(const struct external_request *request)
{
	return request->lanes ? request->lanes->lane_count : 1;
}

/* In one wave all sources together send this part of the keeper's memory. */
#define SLICE_PART 32

/* By the chunks and slots of runs, which each source has for itself. */
static void plan_kept(struct external_plan *plan,
		      const struct external_request *request)
{
	uint64_t bytes = MAX(plan->run_chunk_bytes,
			     request->memory_bytes / SLICE_PART /
				     MAX(1, request->source_count));
	uint64_t records =
		MAX(bytes / request->shape.size,
		    DIV_ROUND_UP(request->kept_most, KEPT_RUNS_SLICES_MAX));

	if (request->source_count == 0)
		return;
	plan->kept_slice_records = ROUND_UP(records, plan->block_records);
	plan->kept_message_bytes =
		ROUND_UP(KEPT_RUNS_HEAD_BYTES +
				 plan->kept_slice_records * request->shape.size,
			 PAGE_BYTES);
	plan->kept_bytes = request->source_count *
			   (2 * plan->kept_message_bytes +
			    KEPT_RUNS_SLOTS * plan->slot_bytes +
			    ROUND_UP(plan->encoder_bytes, PAGE_BYTES));
}

void staging_plan_make(struct external_plan *plan,
		       const struct external_request *request)
{
	uint64_t bytes = request->memory_bytes / REQUEST_PART;
	uint32_t record_size = request->shape.size;
	uint64_t block_bytes = (uint64_t)plan->block_records * record_size;
	unsigned workers = request->worker_count;
	uint64_t staging = request->memory_bytes / STAGING_PART / 2;
	size_t chunk = REQUEST_BYTES_MIN;

	plan->lane_count = lane_count(request);
	plan->reader_count = MAX(workers, plan->lane_count);
	while (chunk * 2 <= MIN(bytes, REQUEST_BYTES_MAX))
		chunk *= 2;
	plan->output_chunk_bytes = chunk;
	plan->run_chunk_bytes = MAX(1, chunk / block_bytes) * block_bytes;
	plan->slot_bytes =
		ROUND_UP(MAX(chunk, plan->run_chunk_bytes), PAGE_BYTES);
	plan->read_slot_bytes =
		(uint32_t)(ROUND_UP(MAX(chunk, block_bytes), PAGE_BYTES) +
			   2 * PAGE_BYTES);
	plan->write_depth = WRITE_DEPTH;
	/* Each lane has as many reads under way as all workers have for one. */
	plan->read_depth = STAGING_READ_DEPTH * MIN(workers, plan->lane_count);
	while (plan->read_depth > 1 && (uint64_t)plan->reader_count *
						       plan->read_depth *
						       plan->read_slot_bytes >
					       staging)
		plan->read_depth--;
	while (plan->write_depth > 1 &&
	       (workers + plan->write_depth) * plan->slot_bytes > staging)
		plan->write_depth--;
	plan->slot_count = workers + plan->write_depth;
	plan->encoder_bytes = codec_encoder_bytes(&request->codec, block_bytes);
	plan->decoder_bytes = codec_decoder_bytes(&request->codec);
	plan_kept(plan, request);
}

uint64_t staging_plan_bytes(const struct external_plan *plan,
			    const struct external_request *request)
{
	return (uint64_t)plan->reader_count * plan->read_depth *
		       plan->read_slot_bytes +
	       (uint64_t)request->worker_count *
		       (plan->encoder_bytes + plan->decoder_bytes) +
	       plan->slot_count * plan->slot_bytes + plan->kept_bytes;
}
