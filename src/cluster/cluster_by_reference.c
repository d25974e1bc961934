/*
 * cluster_by_reference.c - send references to records, not records
 *
 * Ranks on one machine need not send records: each rank can map the inputs of
 * all.  Messages then hold entries, 8 bytes for a record, and the rank that
 * sorts a record gathers it from the input that has it, straight into the
 * output.
 *
 * All inputs lie in one address range, in rank order, so that one
 * multiplication finds a record of any rank.  Each input begins at a huge page
 * of its own, since filling in page tables takes most of the time here: all
 * ranks fill in those of all inputs.  An input is opened by way of its owner's
 * /proc/PID/fd, which the owner's user may do, and the owner stays until all
 * outputs are written.
 *
 * The owner tells its PID, the descriptor, and how many records it has, and it
 * may lie.  So only a regular file that a process of this user has open is
 * mapped, for reading, and only if it is long enough.  cluster_agree.c has
 * bounded the number of records, so that all inputs fit into the range.  An
 * entry that points past an input is replaced by one that points to its
 * beginning.  The key in an entry is the owner's word: to compare it with the
 * record's would read each record twice.  So a rank that errs there can make
 * the output unsorted, which it cannot where records are sent; and so can an
 * input that changes meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/cluster_state.h"
#include "io/input/sigbus.h"
#include "system/machine.h"

/* An index of 27 bits leaves 37 bits of an entry to the key prefix. */
#define ALIGNED_SLOTS_MAX ((uint64_t)1 << 27)

/* --- offering ------------------------------------------------------------- */

void cluster_offer_input(struct cluster *cluster, struct cluster_hello *hello)
{
	const struct input *input = &cluster->input;

	if (input->file_count != 1 || input->mode != INPUT_MMAP ||
	    input->files[0].is_device)
		return;
	hello->host_id = machine_host_id();
	hello->process = (uint64_t)getpid();
	hello->input_fd = (uint64_t)input->files[0].fd;
}

/* --- one address range ---------------------------------------------------- */

/* The fewest records that end at the border of a huge page; or of a page, if
 * huge pages would leave too few bits to the key prefix. */
static uint64_t align_records(const struct cluster *cluster)
{
	uint64_t records = cluster->input.align_records;
	uint32_t size = cluster->sort_config->shape.size;

	while (records * size % HUGE_PAGE_BYTES != 0)
		records *= 2;
	if (records * cluster->rank.node_count > ALIGNED_SLOTS_MAX)
		return cluster->input.align_records;
	return records;
}

uint64_t cluster_input_slots(const struct cluster *cluster, unsigned node)
{
	return ROUND_UP(cluster->hellos[node].slot_count +
				input_lead_slots(&cluster->input),
			align_records(cluster));
}

static int cannot(const struct cluster *cluster, unsigned node, int error,
		  const char *what, struct failure *failure)
{
	return failure_set(failure, EXIT_PEER, NULL, error,
			   "cannot %s the input of rank %u (%.60s); "
			   "--by-reference=no does without",
			   what, node, cluster->rank.names[node]);
}

/* Round up to the end of the last huge page, which the kernel would map by
 * small pages otherwise. */
static size_t mapped_bytes(const struct cluster *cluster, unsigned node,
			   uint64_t bytes)
{
	uint64_t room = cluster_input_slots(cluster, node) *
			cluster->sort_config->shape.size;

	return MIN(ROUND_UP(bytes, HUGE_PAGE_BYTES), room);
}

/* The descriptor stays open for the handler of SIGBUS. */
static int map_input(struct cluster *cluster, unsigned node,
		     struct failure *failure)
{
	const struct cluster_hello *hello = &cluster->hellos[node];
	uint32_t record_size = cluster->sort_config->shape.size;
	/* From the page on in which the records begin. */
	uint32_t lead = input_lead_bytes(&cluster->input);
	uint64_t offset = cluster->input.header_bytes - lead;
	uint64_t bytes = lead + hello->record_count * record_size;
	struct cluster_source *source = &cluster->receive.sources[node];
	uint8_t *address =
		cluster->receive.base + source->first_slot * record_size - lead;
	char name[FAILURE_WHY_BYTES];
	struct stat status;
	int error;
	int fd = machine_open(hello->process, hello->input_fd, O_RDONLY,
			      &status);

	if (fd < 0)
		return cannot(cluster, node, -fd, "open", failure);
	source->input_fd = fd;
	if ((uint64_t)status.st_size < offset + bytes)
		return cannot(cluster, node, EBADF, "use", failure);
	if (mmap(address, mapped_bytes(cluster, node, bytes), PROT_READ,
		 MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED)
		return cannot(cluster, node, errno, "map", failure);
	snprintf(name, sizeof(name), "the input of rank %u (%.80s)", node,
		 cluster->rank.names[node]);
	error = sigbus_watch(address, ROUND_UP(bytes, PAGE_BYTES), fd, offset,
			     name);
	if (error)
		return cannot(cluster, node, -error, "watch", failure);
	return 0;
}

int cluster_map_inputs(struct cluster *cluster, struct failure *failure)
{
	int error = 0;

	for (unsigned i = 0; i < cluster->rank.node_count && error == 0; i++)
		if (i != cluster->rank.rank &&
		    cluster->receive.sources[i].record_count > 0)
			error = map_input(cluster, i, failure);
	return error;
}

/* --- entries -------------------------------------------------------------- */

void cluster_take_entries(const struct cluster *cluster, unsigned node,
			  uint64_t *entries, uint64_t count)
{
	const struct cluster_hello *hello = &cluster->hellos[node];
	uint64_t mask = ~(UINT64_MAX << plan_index_bits(hello->slot_count));
	uint64_t index_mask = cluster->receive.index_mask;
	uint64_t first_slot = cluster->receive.sources[node].first_slot;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t slot = entries[i] & mask;

		/* Only this input is read, whatever the entry says. */
		if (slot >= hello->record_count)
			slot = 0;
		entries[i] = (entries[i] & ~index_mask) | (slot + first_slot);
	}
}
