/*
 * cluster_output.c - opens, fills and commits a rank's share of the output
 */
#include "cluster/output/cluster_output.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "sort/sort_setup.h"

/* How long a rank may be silent while a commit reaches the medium. */
#define SYNC_DELAY_MS 60000
#define NONCE_BYTES ((size_t)8)
#define NAME_DIGITS 16

static bool sorts(const struct cluster_output *output, unsigned rank)
{
	return cluster_roles_have(output->hellos[rank].roles,
				  CLUSTER_ROLE_SORT);
}

/* The rank that gives the one file its name. */
static bool is_first(const struct cluster_output *output)
{
	unsigned first = 0;

	while (!sorts(output, first))
		first++;
	return output->rank->rank == first;
}

static struct outfile *gathered(struct cluster_output *output)
{
	return &output->output.files[0].outfile;
}

static uint64_t whole_bytes(const struct cluster_output *output)
{
	return output->agreement->whole_count * output->config->shape.size;
}

static void announce_sync(struct cluster_output *output)
{
	if (output->config->sync)
		exchange_announce_delay(output->exchange, SYNC_DELAY_MS);
}

/* A name that is the same on all ranks and another one in each run.  It follows
 * from the secret, so that no other user can make the file beforehand. */
static void name_run(const struct cluster_output *output,
		     char name[NAME_DIGITS + 1])
{
	static const uint8_t
		personal[crypto_generichash_blake2b_PERSONALBYTES] = {
			"blink gather 1"
		};
	uint8_t drawn[NONCE_BYTES], hash[crypto_generichash_blake2b_BYTES_MIN];
	int error;

	store_le64(drawn, output->hellos[0].gather_nonce);
	error = crypto_generichash_blake2b_salt_personal(
		hash, sizeof(hash), drawn, sizeof(drawn), output->rank->secret,
		RANK_SECRET_BYTES, NULL, personal);
	/* It fails on sizes only, and ours are constants. */
	assert(error == 0);
	(void)error;
	snprintf(name, NAME_DIGITS + 1, "%016" PRIx64, load_le64(hash));
}

static int open_part(struct cluster_output *output, uint64_t first_record,
		     uint64_t record_count, struct failure *failure)
{
	const struct sorter_config *config = output->config;
	char name[NAME_DIGITS + 1];
	struct output_part part = { .mark = name };

	if (record_count > output->agreement->whole_count ||
	    first_record > output->agreement->whole_count - record_count)
		return failure_set(failure, EXIT_PEER, NULL, 0,
				   "what the ranks announce does not add up");
	name_run(output, name);
	part.begin_bytes = first_record * config->shape.size;
	part.size_bytes = record_count * config->shape.size;
	part.whole_bytes =
		whole_bytes(output) + output->rank->node_count * NONCE_BYTES;
	output->gathered_bytes = whole_bytes(output);
	return output_open_part(&output->output, config->output_paths[0], &part,
				failure);
}

int cluster_output_open(struct cluster_output *output, uint64_t first_record,
			uint64_t record_count, struct failure *failure)
{
	struct sorter_config config = *output->config;

	if (output->gathers)
		return open_part(output, first_record, record_count, failure);
	if (output->is_large)
		config.unique = false;
	if (output->is_large && config.io == INPUT_AUTO)
		config.io = INPUT_DIRECT;
	return sort_setup_outputs(&output->output, &config, record_count,
				  failure);
}

int cluster_output_shrink(struct cluster_output *output, uint64_t first_record,
			  uint64_t record_count, uint64_t whole_count,
			  struct failure *failure)
{
	uint32_t record_size = output->config->shape.size;

	if (!output->gathers)
		return sort_setup_output_sizes(&output->output, output->config,
					       record_count, failure);
	output->gathered_bytes = whole_count * record_size;
	output_move_part(&output->output, first_record * record_size,
			 record_count * record_size);
	return 0;
}

static int leave_nonce(struct cluster_output *output, struct failure *failure)
{
	unsigned rank = output->rank->rank;
	const struct outfile *file = gathered(output);
	uint64_t offset = whole_bytes(output) + rank * NONCE_BYTES;
	uint8_t nonce[NONCE_BYTES];
	ssize_t done;

	store_le64(nonce, output->hellos[rank].gather_nonce);
	done = pwrite(file->fd, nonce, sizeof(nonce), (off_t)offset);
	if (done == (ssize_t)sizeof(nonce))
		return 0;
	return failure_set(failure, EXIT_FILE, file->path,
			   done < 0 ? errno : EIO, "");
}

int cluster_output_finish(struct cluster_output *output,
			  struct failure *failure)
{
	int error;

	if (!sorts(output, output->rank->rank))
		return 0;
	error = sink_finish(&output->output.sink, failure);
	if (error || !output->gathers)
		return error;
	error = leave_nonce(output, failure);
	if (error)
		return error;
	announce_sync(output);
	return outfile_flush(gathered(output), output->config->sync, failure);
}

static int check_nonces(struct cluster_output *output, const uint8_t *nonces,
			struct failure *failure)
{
	for (unsigned i = 0; i < output->rank->node_count; i++)
		if (sorts(output, i) && load_le64(nonces + i * NONCE_BYTES) !=
						output->hellos[i].gather_nonce)
			return failure_set(failure, EXIT_FILE,
					   gathered(output)->path, 0,
					   "rank %u (%.80s) has another file "
					   "there",
					   i, output->rank->names[i]);
	return 0;
}

/* Look through a descriptor that is opened when the other ranks have flushed
 * theirs: only then NFS shows what they have written. */
static int cut_nonces_off(struct cluster_output *output,
			  struct failure *failure)
{
	const struct outfile *file = gathered(output);
	uint8_t nonces[RANK_NODES_MAX * NONCE_BYTES] = { 0 };
	int fd = outfile_reopen(file);
	int error = 0;

	if (fd < 0)
		return failure_set(failure, EXIT_FILE, file->path, -fd,
				   "cannot read it");
	if (pread(fd, nonces, output->rank->node_count * NONCE_BYTES,
		  (off_t)whole_bytes(output)) < 0)
		error = failure_set(failure, EXIT_FILE, file->path, errno,
				    "cannot read it");
	close(fd);
	if (error == 0)
		error = check_nonces(output, nonces, failure);
	if (error == 0 &&
	    ftruncate(file->fd, (off_t)output->gathered_bytes) < 0)
		error = failure_set(failure, EXIT_FILE, file->path, errno, "");
	return error;
}

int cluster_output_commit(struct cluster_output *output, struct outfile *also,
			  struct failure *failure)
{
	bool sync = output->config->sync;
	int error = 0;

	/* Rank 0 has more than its output to name: the trace. */
	if (!sorts(output, output->rank->rank) ||
	    (output->gathers && !is_first(output)))
		return also ? outfile_commit_all(also, 1, sync, failure) : 0;
	announce_sync(output);
	if (output->gathers)
		error = cut_nonces_off(output, failure);
	return error ? error
		     : output_commit(&output->output, sync, also, failure);
}
