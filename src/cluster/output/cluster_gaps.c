#include "cluster/output/cluster_gaps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "cluster/collective/cluster_allgather.h"
#include "io/file_io.h"

/* Moved at once; other ranks are answered between. */
#define MOVE_BYTES (256 * KIB)
/* Of a message: a rank's share, and what it keeps of that. */
#define COUNTS_BYTES 16

struct gaps {
	struct cluster_output *output;
	/* In records: where each rank's begin now, and where they belong; and
	 * how many they are. */
	uint64_t from[RANK_NODES_MAX], to[RANK_NODES_MAX];
	uint64_t kept[RANK_NODES_MAX];
	uint64_t whole_kept;
};

static int tell(const struct gaps *gaps, struct cluster_allgather *all,
		const uint8_t *own, uint64_t own_bytes, struct failure *failure)
{
	*all = (struct cluster_allgather){
		.rank = gaps->output->rank,
		.own = own,
		.own_bytes = own_bytes,
	};
	for (unsigned i = 0; i < all->rank->node_count; i++)
		all->bytes[i] = own_bytes;
	return cluster_allgather(all, gaps->output->exchange, failure);
}

/* Each share is at most whole - from, so the sums do not wrap. */
static int read_counts(struct gaps *gaps, const struct cluster_allgather *all,
		       struct failure *failure)
{
	struct cluster_output *output = gaps->output;
	uint64_t whole = output->agreement->whole_count, from = 0, to = 0;

	for (unsigned i = 0; i < output->rank->node_count; i++) {
		const uint8_t *told = all->all + all->offset[i];
		uint64_t share = load_le64(told), kept = load_le64(told + 8);

		if (share > whole - from || kept > share)
			return exchange_blame(output->exchange, i, failure,
					      "keeps %" PRIu64 " of %" PRIu64
					      " records",
					      kept, share);
		gaps->from[i] = from;
		gaps->to[i] = to;
		gaps->kept[i] = kept;
		from += share;
		to += kept;
	}
	gaps->whole_kept = to;
	if (cluster_output_is_ours(output) &&
	    output_part_begin(&output->output) !=
		    gaps->from[output->rank->rank] * output->config->shape.size)
		return failure_set(failure, EXIT_PEER, NULL, 0,
				   "what the ranks announce does not add up");
	return 0;
}

static bool must_move(const struct gaps *gaps, unsigned rank)
{
	return gaps->to[rank] != gaps->from[rank] && gaps->kept[rank] > 0;
}

/* 0 or -errno. */
static int move(const struct outfile *file, int read_fd, uint8_t *buffer,
		uint64_t from, uint64_t to, uint64_t length)
{
	ssize_t got = file_read_at(read_fd, buffer, length, from);

	if (got < 0)
		return (int)got;
	if ((uint64_t)got < length)
		return -EIO;
	return file_write_at(file->fd, buffer, length, to);
}

static int move_all(const struct gaps *gaps, int read_fd, uint8_t *buffer,
		    struct failure *failure)
{
	struct cluster_output *output = gaps->output;
	const struct outfile *file = &output->output.files[0].outfile;
	unsigned own = output->rank->rank;
	uint32_t size = output->config->shape.size;
	uint64_t from = gaps->from[own] * size, to = gaps->to[own] * size;
	uint64_t left = gaps->kept[own] * size;
	int error = 0;

	while (left > 0 && error == 0) {
		uint64_t length = MIN(left, MOVE_BYTES);

		error = move(file, read_fd, buffer, from, to, length);
		if (error)
			return failure_set(failure, EXIT_FILE, file->path,
					   -error, "");
		from += length;
		to += length;
		left -= length;
		error = exchange_serve(output->exchange, failure);
	}
	return error;
}

/* Through a descriptor that is opened now, and flushed in the end: so NFS shows
 * what other machines have moved, and shows them what we have. */
static int move_ours(const struct gaps *gaps, struct failure *failure)
{
	const struct outfile *file = &gaps->output->output.files[0].outfile;
	uint8_t *buffer = malloc(MOVE_BYTES);
	int read_fd = buffer ? outfile_reopen(file) : -1;
	int error;

	if (!buffer)
		return failure_no_memory(failure);
	if (read_fd < 0)
		error = failure_set(failure, EXIT_FILE, file->path, -read_fd,
				    "cannot read it");
	else
		error = move_all(gaps, read_fd, buffer, failure);
	if (read_fd >= 0)
		close(read_fd);
	free(buffer);
	return error ? error : outfile_flush(file, false, failure);
}

/* Before each rank that must move, all others have come to the same point. */
static int move_in_turn(const struct gaps *gaps, struct failure *failure)
{
	struct cluster_output *output = gaps->output;
	const uint8_t here = 0;
	int error = 0;

	if (cluster_output_is_ours(output))
		error = outfile_flush(&output->output.files[0].outfile, false,
				      failure);

	for (unsigned i = 0; i < output->rank->node_count && error == 0; i++) {
		struct cluster_allgather all;

		if (!must_move(gaps, i))
			continue;
		error = tell(gaps, &all, &here, sizeof(here), failure);
		free(all.all);
		if (error == 0 && i == output->rank->rank)
			error = move_ours(gaps, failure);
	}
	return error;
}

int cluster_gaps_close(struct cluster_output *output, uint64_t share_count,
		       uint64_t kept_count, struct failure *failure)
{
	struct gaps gaps = { .output = output };
	struct cluster_allgather all = { .all = NULL };
	unsigned own = output->rank->rank;
	uint8_t counts[COUNTS_BYTES];
	bool is_ours = cluster_output_is_ours(output);
	int error = is_ours ? sink_finish(&output->output.sink, failure) : 0;

	store_le64(counts, share_count);
	store_le64(counts + 8, kept_count);
	if (error == 0)
		error = tell(&gaps, &all, counts, sizeof(counts), failure);
	if (error == 0)
		error = read_counts(&gaps, &all, failure);
	free(all.all);
	if (error == 0)
		error = move_in_turn(&gaps, failure);
	if (error || !is_ours)
		return error;
	return cluster_output_shrink(output, gaps.to[own], gaps.kept[own],
				     gaps.whole_kept, failure);
}
