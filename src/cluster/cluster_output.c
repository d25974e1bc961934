/*
 * cluster_output.c - where a rank's share goes: into files of its own, or into
 * its place in the one file of all ranks
 *
 * The one file has a hidden name until the first rank that sorts gives it its
 * own.  Behind the place of all ranks' records, those that are dropped as
 * duplicates included, each rank that sorts leaves a nonce that it has drawn
 * and told all ranks in its hello.  A rank whose nonce is not there writes
 * another file, of the same name but on a disk of its own, and the file that
 * the first one has lacks that rank's part.  The first one checks the nonces
 * and cuts the file behind the records.  A rank that does not sort
 * (cluster_roles.h) opens no output.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#include "cluster/cluster_state.h"
#include "sort/sort_setup.h"

/* How long a rank may be silent while a commit reaches the medium. */
#define SYNC_DELAY_MS 60000
#define NONCE_BYTES ((size_t)8)
#define NAME_DIGITS 16

static bool sorts(const struct cluster *cluster, unsigned rank)
{
	return cluster_roles_have(cluster->hellos[rank].roles,
				  CLUSTER_ROLE_SORT);
}

/* The rank that gives the one file its name. */
static bool is_first(const struct cluster *cluster)
{
	unsigned first = 0;

	while (!sorts(cluster, first))
		first++;
	return cluster->rank.rank == first;
}

static struct outfile *gathered(struct cluster *cluster)
{
	return &cluster->output.output.files[0].outfile;
}

static uint64_t whole_bytes(const struct cluster *cluster)
{
	return cluster->agreement.whole_count *
	       cluster->sort_config->shape.size;
}

static void announce_sync(struct cluster *cluster)
{
	if (cluster->sort_config->sync)
		exchange_announce_delay(cluster->exchange, SYNC_DELAY_MS);
}

/* A name that is the same on all ranks and another one in each run.  It follows
 * from the secret, so that no other user can make the file beforehand. */
static void name_run(const struct cluster *cluster, char name[NAME_DIGITS + 1])
{
	static const uint8_t
		personal[crypto_generichash_blake2b_PERSONALBYTES] = {
			"blink gather 1"
		};
	uint8_t drawn[NONCE_BYTES], hash[crypto_generichash_blake2b_BYTES_MIN];
	int error;

	store_le64(drawn, cluster->hellos[0].gather_nonce);
	error = crypto_generichash_blake2b_salt_personal(
		hash, sizeof(hash), drawn, sizeof(drawn), cluster->rank.secret,
		RANK_SECRET_BYTES, NULL, personal);
	/* It fails on sizes only, and ours are constants. */
	assert(error == 0);
	(void)error;
	snprintf(name, NAME_DIGITS + 1, "%016" PRIx64, load_le64(hash));
}

static int open_part(struct cluster *cluster, uint64_t first_record,
		     uint64_t record_count, struct failure *failure)
{
	const struct sorter_config *config = cluster->sort_config;
	char name[NAME_DIGITS + 1];
	struct output_part part = { .mark = name };

	if (record_count > cluster->agreement.whole_count ||
	    first_record > cluster->agreement.whole_count - record_count)
		return failure_set(failure, EXIT_PEER, NULL, 0,
				   "what the ranks announce does not add up");
	name_run(cluster, name);
	part.begin_bytes = first_record * config->shape.size;
	part.size_bytes = record_count * config->shape.size;
	part.whole_bytes =
		whole_bytes(cluster) + cluster->rank.node_count * NONCE_BYTES;
	cluster->output.gathered_bytes = whole_bytes(cluster);
	return output_open_part(&cluster->output.output,
				config->output_paths[0], &part, failure);
}

int cluster_output_open(struct cluster *cluster, uint64_t first_record,
			uint64_t record_count, struct failure *failure)
{
	struct sorter_config config = *cluster->sort_config;

	if (cluster->config->gathers)
		return open_part(cluster, first_record, record_count, failure);
	/* What is beyond memory goes past the page cache, unless the user wants
	 * it otherwise; where duplicates are dropped, it is cut in the end. */
	if (cluster->agreement.is_external)
		config.unique = false;
	if (cluster->agreement.is_external && config.io == INPUT_AUTO)
		config.io = INPUT_DIRECT;
	return sort_setup_outputs(&cluster->output.output, &config,
				  record_count, failure);
}

int cluster_output_shrink(struct cluster *cluster, uint64_t first_record,
			  uint64_t record_count, uint64_t whole_count,
			  struct failure *failure)
{
	uint32_t record_size = cluster->sort_config->shape.size;

	if (!cluster->config->gathers)
		return sort_setup_output_sizes(&cluster->output.output,
					       cluster->sort_config,
					       record_count, failure);
	cluster->output.gathered_bytes = whole_count * record_size;
	output_move_part(&cluster->output.output, first_record * record_size,
			 record_count * record_size);
	return 0;
}

static int leave_nonce(struct cluster *cluster, struct failure *failure)
{
	unsigned rank = cluster->rank.rank;
	const struct outfile *file = gathered(cluster);
	uint64_t offset = whole_bytes(cluster) + rank * NONCE_BYTES;
	uint8_t nonce[NONCE_BYTES];
	ssize_t done;

	store_le64(nonce, cluster->hellos[rank].gather_nonce);
	done = pwrite(file->fd, nonce, sizeof(nonce), (off_t)offset);
	if (done == (ssize_t)sizeof(nonce))
		return 0;
	return failure_set(failure, EXIT_FILE, file->path,
			   done < 0 ? errno : EIO, "");
}

int cluster_output_finish(struct cluster *cluster, struct failure *failure)
{
	int error;

	if (!sorts(cluster, cluster->rank.rank))
		return 0;
	error = sink_finish(&cluster->output.output.sink, failure);
	if (error || !cluster->config->gathers)
		return error;
	error = leave_nonce(cluster, failure);
	if (error)
		return error;
	announce_sync(cluster);
	return outfile_flush(gathered(cluster), cluster->sort_config->sync,
			     failure);
}

static int check_nonces(struct cluster *cluster, const uint8_t *nonces,
			struct failure *failure)
{
	for (unsigned i = 0; i < cluster->rank.node_count; i++)
		if (sorts(cluster, i) &&
		    load_le64(nonces + i * NONCE_BYTES) !=
			    cluster->hellos[i].gather_nonce)
			return failure_set(failure, EXIT_FILE,
					   gathered(cluster)->path, 0,
					   "rank %u (%.80s) has another file "
					   "there",
					   i, cluster->rank.names[i]);
	return 0;
}

/* Look through a descriptor that is opened when the other ranks have flushed
 * theirs: only then NFS shows what they have written. */
static int cut_nonces_off(struct cluster *cluster, struct failure *failure)
{
	const struct outfile *file = gathered(cluster);
	uint8_t nonces[RANK_NODES_MAX * NONCE_BYTES] = { 0 };
	int fd = outfile_reopen(file);
	int error = 0;

	if (fd < 0)
		return failure_set(failure, EXIT_FILE, file->path, -fd,
				   "cannot read it");
	if (pread(fd, nonces, cluster->rank.node_count * NONCE_BYTES,
		  (off_t)whole_bytes(cluster)) < 0)
		error = failure_set(failure, EXIT_FILE, file->path, errno,
				    "cannot read it");
	close(fd);
	if (error == 0)
		error = check_nonces(cluster, nonces, failure);
	if (error == 0 &&
	    ftruncate(file->fd, (off_t)cluster->output.gathered_bytes) < 0)
		error = failure_set(failure, EXIT_FILE, file->path, errno, "");
	return error;
}

int cluster_output_commit(struct cluster *cluster, struct outfile *also,
			  struct failure *failure)
{
	bool sync = cluster->sort_config->sync;
	int error = 0;

	/* Rank 0 has more than its output to name: the trace. */
	if (!sorts(cluster, cluster->rank.rank) ||
	    (cluster->config->gathers && !is_first(cluster)))
		return also ? outfile_commit_all(also, 1, sync, failure) : 0;
	announce_sync(cluster);
	if (cluster->config->gathers)
		error = cut_nonces_off(cluster, failure);
	return error ? error
		     : output_commit(&cluster->output.output, sync, also,
				     failure);
}
