/* cluster_progress.c - how far the ranks of a sort beyond memory have come */
#include "cluster/collective/cluster_progress.h"

#include "base/base.h"

#define TELL_NS 1000000000
#define MESSAGE_BYTES (8 * CLUSTER_PROGRESS_WORDS)

void cluster_progress_note(void *context,
			   const struct external_progress *progress)
{
	struct cluster_progress *own = context;
	const uint64_t words[CLUSTER_PROGRESS_WORDS] = {
		(uint64_t)progress->pass |
			(uint64_t)progress->wait_disk_percent << 16 |
			(uint64_t)progress->wait_memory_percent << 32,
		progress->moved_bytes,
		progress->total_bytes,
	};

	/* The words are stored one by one, so a message may mix two states:
	 * read_message() bounds them. */
	for (unsigned i = 0; i < CLUSTER_PROGRESS_WORDS; i++)
		atomic_store_explicit(&own->words[i], words[i],
				      memory_order_relaxed);
}

/* Sums over all ranks do not wrap. */
static struct external_progress read_message(const uint8_t *bytes,
					     size_t byte_count)
{
	struct external_progress progress = { 0 };
	uint64_t first, total;

	if (byte_count != MESSAGE_BYTES)
		return progress;
	first = load_le64(bytes);
	total = load_le64(bytes + 16);
	if ((first & UINT16_MAX) >= EXTERNAL_PASSES ||
	    total > UINT64_MAX / RANK_NODES_MAX)
		return progress;
	return (struct external_progress){
		.pass = (enum external_pass)(first & UINT16_MAX),
		.wait_disk_percent =
			(unsigned)MIN(first >> 16 & UINT16_MAX, 100),
		.wait_memory_percent =
			(unsigned)MIN(first >> 32 & UINT16_MAX, 100),
		.moved_bytes = MIN(load_le64(bytes + 8), total),
		.total_bytes = total,
	};
}

static void show(const struct cluster_progress *progress)
{
	struct external_progress ranks[RANK_NODES_MAX];
	unsigned count = progress->rank->node_count;

	for (unsigned i = 0; i < count; i++) {
		size_t byte_count;
		const uint8_t *bytes = exchange_application_payload(
			progress->exchange, i, &byte_count);

		ranks[i] = read_message(bytes, byte_count);
	}
	progress->show(ranks, count);
}

void cluster_progress_tell(struct cluster_progress *progress, uint64_t now_ns)
{
	uint8_t message[MESSAGE_BYTES];

	if (!progress->show || now_ns < progress->next_ns)
		return;
	progress->next_ns = now_ns + TELL_NS;
	for (unsigned i = 0; i < CLUSTER_PROGRESS_WORDS; i++)
		store_le64(message + 8 * i,
			   atomic_load_explicit(&progress->words[i],
						memory_order_relaxed));
	exchange_tell(progress->exchange, message, sizeof(message));
	if (progress->rank->rank == 0)
		show(progress);
}
