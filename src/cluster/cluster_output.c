/*
 * cluster_output.c - where a rank's share goes: into files of its own, or into
 * its place in a file that it writes together with other ranks
 *
 * Several ranks that follow each other write a file together.  The files, one
 * behind the other, have the records of all ranks.  A file has a hidden name
 * until the first of its ranks gives it the name that the user wants.  Behind
 * the place of the records, those that are dropped as duplicates included, each
 * of these ranks leaves a nonce that it has drawn and told all ranks in its
 * hello.  A rank whose nonce is not there writes another file, of the same name
 * but on a disk of its own, and the file that the first rank has lacks that
 * rank's part.  The first rank checks the nonces and cuts the file behind the
 * records.  A rank that does not sort (cluster_roles.h) opens no output.
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
	return cluster_roles_have(cluster->result->roles[rank],
				  CLUSTER_ROLE_SORT);
}

/* Each file has about as many of the ranks that sort. */
void cluster_output_find_file(struct cluster *cluster)
{
	struct cluster_output *own = &cluster->output;
	unsigned files = cluster->sort_config->output_count;
	unsigned rank = cluster->rank.rank, sorters = 0, before = 0, sorter = 0;

	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		before += i < rank && sorts(cluster, i);
		sorters += sorts(cluster, i);
	}
	assert(sorters > 0);
	own->file = before * files / sorters;
	own->first_rank = rank;
	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		if (!sorts(cluster, i) ||
		    sorter++ * files / sorters != own->file)
			continue;
		own->first_rank = MIN(own->first_rank, i);
		own->last_rank = i;
	}
}

/* Does the rank write our file? */
static bool shares_file(const struct cluster *cluster, unsigned rank)
{
	return sorts(cluster, rank) && rank >= cluster->output.first_rank &&
	       rank <= cluster->output.last_rank;
}

static uint64_t written_size(const struct cluster *cluster)
{
	return sorter_written(cluster->sort_config).bytes;
}

static struct outfile *gathered(struct cluster *cluster)
{
	return &cluster->output.output.files[0].outfile;
}

uint64_t cluster_output_head(const struct cluster *cluster, uint64_t *shares)
{
	uint64_t left = cluster->sort_config->head_records;

	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		shares[i] = MIN(shares[i], left);
		left -= shares[i];
	}
	return shares[cluster->rank.rank];
}

/* The byte of our file at which our part begins; *whole_bytes is what all its
 * parts and its header have. */
static uint64_t find_part(const struct cluster *cluster, const uint64_t *shares,
			  uint64_t *whole_bytes)
{
	uint64_t header_bytes = sort_setup_header_bytes(cluster->sort_config);
	uint64_t first = 0, whole = 0;

	for (unsigned i = 0; i < cluster->rank.node_count; i++) {
		if (!shares_file(cluster, i))
			continue;
		if (i < cluster->rank.rank)
			first += shares[i];
		whole += shares[i];
	}
	*whole_bytes = header_bytes + whole * written_size(cluster);
	return header_bytes + first * written_size(cluster);
}

static void announce_sync(struct cluster *cluster)
{
	if (cluster->sort_config->sync)
		exchange_announce_delay(cluster->exchange, SYNC_DELAY_MS);
}

/* A name that is the same on all ranks of a file and another one in each run.
 * It follows from the secret, so that no other user can make the file
 * beforehand. */
static void name_file(const struct cluster *cluster, unsigned file,
		      char name[NAME_DIGITS + 1])
{
	static const uint8_t
		personal[crypto_generichash_blake2b_PERSONALBYTES] = {
			"blink gather 1"
		};
	uint8_t drawn[NONCE_BYTES + 4],
		hash[crypto_generichash_blake2b_BYTES_MIN];
	int error;

	store_le64(drawn, cluster->hellos[0].gather_nonce);
	store_le32(drawn + NONCE_BYTES, file);
	error = crypto_generichash_blake2b_salt_personal(
		hash, sizeof(hash), drawn, sizeof(drawn), cluster->rank.secret,
		RANK_SECRET_BYTES, NULL, personal);
	/* It fails on sizes only, and ours are constants. */
	assert(error == 0);
	(void)error;
	snprintf(name, NAME_DIGITS + 1, "%016" PRIx64, load_le64(hash));
}

static int open_part(struct cluster *cluster, const uint64_t *shares,
		     uint64_t record_count, struct failure *failure)
{
	const struct sorter_config *config = cluster->sort_config;
	uint64_t left = cluster->agreement.whole_count;
	char name[NAME_DIGITS + 1];
	struct output_part part = { .mark = name };
	bool adds_up = shares[cluster->rank.rank] == record_count;

	for (unsigned i = 0; i < cluster->rank.node_count && adds_up; i++) {
		adds_up = shares[i] <= left;
		left -= shares[i];
	}
	if (!adds_up)
		return failure_set(failure, EXIT_PEER, NULL, 0,
				   "what the ranks announce does not add up");
	cluster_output_find_file(cluster);
	name_file(cluster, cluster->output.file, name);
	part.header_bytes = sort_setup_header_bytes(config);
	part.begin_bytes =
		find_part(cluster, shares, &cluster->output.room_bytes);
	part.size_bytes = record_count * written_size(cluster);
	part.whole_bytes = cluster->output.room_bytes +
			   cluster->rank.node_count * NONCE_BYTES;
	cluster->output.gathered_bytes = cluster->output.room_bytes;
	return output_open_part(&cluster->output.output,
				config->output_paths[cluster->output.file],
				&part, failure);
}

int cluster_output_open(struct cluster *cluster, const uint64_t *shares,
			uint64_t record_count, struct failure *failure)
{
	struct sorter_config config = *cluster->sort_config;

	if (cluster->config->gathers)
		return open_part(cluster, shares, record_count, failure);
	/* What is beyond memory goes past the page cache, unless the user wants
	 * it otherwise; where duplicates are dropped, it is cut in the end. */
	if (cluster->agreement.is_external)
		config.unique = false;
	/* The shares are what is written of it. */
	config.head_records = 0;
	if (cluster->agreement.is_external && config.io == INPUT_AUTO)
		config.io = INPUT_DIRECT;
	return sort_setup_outputs(&cluster->output.output, &config,
				  record_count, failure);
}

int cluster_output_shrink(struct cluster *cluster, const uint64_t *shares,
			  uint64_t record_count, struct failure *failure)
{
	uint64_t begin_bytes;

	if (!cluster->config->gathers)
		return sort_setup_output_sizes(&cluster->output.output,
					       cluster->sort_config,
					       record_count, failure);
	begin_bytes =
		find_part(cluster, shares, &cluster->output.gathered_bytes);
	output_move_part(&cluster->output.output, begin_bytes,
			 record_count * written_size(cluster));
	return 0;
}

static int leave_nonce(struct cluster *cluster, struct failure *failure)
{
	unsigned rank = cluster->rank.rank;
	const struct outfile *file = gathered(cluster);
	uint64_t offset = cluster->output.room_bytes + rank * NONCE_BYTES;
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
		if (shares_file(cluster, i) &&
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
		  (off_t)cluster->output.room_bytes) < 0)
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

/* Does this rank give an output its name? */
static bool names_output(const struct cluster *cluster)
{
	return sorts(cluster, cluster->rank.rank) &&
	       (!cluster->config->gathers ||
		cluster->rank.rank == cluster->output.first_rank);
}

bool cluster_output_lacks_header(const struct cluster *cluster)
{
	return sort_setup_header_bytes(cluster->sort_config) > 0 &&
	       names_output(cluster) &&
	       !cluster_own_has(cluster, CLUSTER_ROLE_READ);
}

int cluster_output_check(struct cluster *cluster, struct failure *failure)
{
	if (!names_output(cluster))
		return 0;
	announce_sync(cluster);
	return cut_nonces_off(cluster, failure);
}

int cluster_output_commit(struct cluster *cluster, struct outfile *also,
			  struct failure *failure)
{
	bool sync = cluster->sort_config->sync;

	/* Rank 0 has more than its output to name: the trace. */
	if (!names_output(cluster))
		return also ? outfile_commit(also, sync, failure) : 0;
	announce_sync(cluster);
	cluster->output.output.header = cluster->input.header;
	return output_commit(&cluster->output.output, sync, also, failure);
}

void cluster_output_close(struct cluster *cluster, bool has_failed)
{
	const struct sorter_config *config = cluster->sort_config;
	char name[NAME_DIGITS + 1];

	output_close(&cluster->output.output);
	if (!has_failed || !cluster->config->gathers || !cluster->hellos ||
	    cluster->hellos[0].gather_nonce == 0 ||
	    !cluster_own_has(cluster, CLUSTER_ROLE_SORT))
		return;
	for (unsigned i = 0; i < config->output_count; i++) {
		name_file(cluster, i, name);
		outfile_remove_shared(config->output_paths[i], name);
	}
}
