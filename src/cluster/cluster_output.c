/*
 * cluster_output.c - where a rank's share goes: into files of its own, or into
 * its place in the one file of all
 *
 * That file has a hidden name until rank 0 gives it its own.  Behind the
 * records each rank leaves the mark that it has drawn and told all in its
 * hello: a rank whose marks are not there writes another file, of the same name
 * but on a disk of its own, and the one that we have lacks its part.  Rank 0
 * looks, and cuts the marks off.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#include "cluster/cluster_state.h"

/* What a commit that must reach the medium may take, in silence. */
#define SYNC_BUSY_MS 60000
#define MARK_BYTES ((size_t)8)
#define NAME_DIGITS 16

static struct outfile *gathered(struct cluster *cluster)
{
	return &cluster->sorter.output.files[0].outfile;
}

static uint64_t whole_bytes(const struct cluster *cluster)
{
	return cluster->agreement.whole_count *
	       cluster->sorter.config->shape.size;
}

static void say_busy(struct cluster *cluster)
{
	if (cluster->sorter.config->sync)
		exchange_say_busy(cluster->exchange, SYNC_BUSY_MS);
}

/* The same on all ranks, another in each run, and nobody else can tell it, who
 * might have made the file before us. */
static void name_run(const struct cluster *cluster, char name[NAME_DIGITS + 1])
{
	static const uint8_t
		personal[crypto_generichash_blake2b_PERSONALBYTES] = {
			"blink gather 1"
		};
	uint8_t drawn[MARK_BYTES], hash[crypto_generichash_blake2b_BYTES_MIN];
	int error;

	store_le64(drawn, cluster->hellos[0].gather_mark);
	error = crypto_generichash_blake2b_salt_personal(
		hash, sizeof(hash), drawn, sizeof(drawn), cluster->rank.secret,
		RANK_SECRET_BYTES, NULL, personal);
	/* It fails on sizes only, and ours are constants. */
	assert(error == 0);
	(void)error;
	snprintf(name, NAME_DIGITS + 1, "%016" PRIx64, load_le64(hash));
}

/* Shares of lower ranks come first. */
static int open_part(struct cluster *cluster, uint64_t record_count,
		     struct failure *failure)
{
	const struct sorter_config *config = cluster->sorter.config;
	uint64_t records[RANK_NODES_MAX], first = 0;
	char name[NAME_DIGITS + 1];
	struct output_part part = { .mark = name };

	cluster_count_shares(cluster, records);
	for (unsigned i = 0; i < cluster->rank.rank; i++)
		first += records[i];
	if (record_count > cluster->agreement.whole_count ||
	    first > cluster->agreement.whole_count - record_count)
		return failure_set(failure, EXIT_PEER, NULL, 0,
				   "what the ranks announce does not add up");
	name_run(cluster, name);
	part.begin_bytes = first * config->shape.size;
	part.size_bytes = record_count * config->shape.size;
	part.whole_bytes =
		whole_bytes(cluster) + cluster->rank.node_count * MARK_BYTES;
	return output_open_part(&cluster->sorter.output,
				config->output_paths[0], &part, failure);
}

int cluster_open_output(struct cluster *cluster, uint64_t record_count,
			struct failure *failure)
{
	if (cluster->config->gathers)
		return open_part(cluster, record_count, failure);
	return sorter_open_outputs(&cluster->sorter, record_count, failure);
}

static int leave_mark(struct cluster *cluster)
{
	unsigned rank = cluster->rank.rank;
	const struct outfile *file = gathered(cluster);
	uint64_t offset = whole_bytes(cluster) + rank * MARK_BYTES;
	uint8_t mark[MARK_BYTES];
	ssize_t done;

	store_le64(mark, cluster->hellos[rank].gather_mark);
	done = pwrite(file->fd, mark, sizeof(mark), (off_t)offset);
	if (done == (ssize_t)sizeof(mark))
		return 0;
	return failure_set(cluster->failure, EXIT_FILE, file->path,
			   done < 0 ? errno : EIO, "");
}

int cluster_finish_output(struct cluster *cluster)
{
	struct sorter *sorter = &cluster->sorter;
	int error = output_finish(&sorter->output, cluster->failure);

	if (error || !cluster->config->gathers)
		return error;
	error = leave_mark(cluster);
	if (error)
		return error;
	say_busy(cluster);
	return outfile_flush(gathered(cluster), sorter->config->sync,
			     cluster->failure);
}

static int check_marks(struct cluster *cluster, const uint8_t *marks)
{
	for (unsigned i = 0; i < cluster->rank.node_count; i++)
		if (load_le64(marks + i * MARK_BYTES) !=
		    cluster->hellos[i].gather_mark)
			return failure_set(cluster->failure, EXIT_FILE,
					   gathered(cluster)->path, 0,
					   "rank %u (%.80s) has another file "
					   "there",
					   i, cluster->rank.names[i]);
	return 0;
}

/* By a descriptor that is opened when the others have closed theirs: only then
 * NFS tells of what they have written. */
static int cut_marks_off(struct cluster *cluster)
{
	const struct outfile *file = gathered(cluster);
	uint8_t marks[RANK_NODES_MAX * MARK_BYTES] = { 0 };
	int fd = outfile_reopen(file);
	int error = 0;

	if (fd < 0)
		return failure_set(cluster->failure, EXIT_FILE, file->path, -fd,
				   "cannot read it");
	if (pread(fd, marks, cluster->rank.node_count * MARK_BYTES,
		  (off_t)whole_bytes(cluster)) < 0)
		error = failure_set(cluster->failure, EXIT_FILE, file->path,
				    errno, "cannot read it");
	close(fd);
	if (error == 0)
		error = check_marks(cluster, marks);
	if (error == 0 && ftruncate(file->fd, (off_t)whole_bytes(cluster)) < 0)
		error = failure_set(cluster->failure, EXIT_FILE, file->path,
				    errno, "");
	return error;
}

int cluster_commit_output(struct cluster *cluster, struct outfile *also)
{
	struct sorter *sorter = &cluster->sorter;
	int error = 0;

	if (cluster->config->gathers && cluster->rank.rank != 0)
		return 0;
	say_busy(cluster);
	if (cluster->config->gathers)
		error = cut_marks_off(cluster);
	return error ? error
		     : output_commit(&sorter->output, sorter->config->sync,
				     also, cluster->failure);
}
