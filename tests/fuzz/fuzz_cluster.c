/*
 * What a rank that has the key may say in a whole job: the others end with
 * EXIT_PEER and name a rank, or nothing was wrong with it.  No crash, no wait
 * without end, no lack of memory, no output of a rank that has failed.
 *
 * Two or three ranks run the cluster sort, from the hello to the names, as
 * hosts of a simulated world (simulate/world.h): a job takes no longer than it
 * computes.  One rank lies: the input says how the job is, and then what is
 * changed in which of its datagrams (lie.h).  Without a lie the outputs must be
 * what they should.
 *
 * After a while nothing comes from the liar any more: whatever it has said, the
 * others must then come to an end.
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/cluster_liar.h"

#define FUZZ_RANKS_MAX 3
#define FUZZ_LIES_MAX 24
#define DEADLINE_NS (SECOND_NS / 5)
/* From when on nothing comes from the liar, and when all must have ended: all
 * deadlines, the longest silence that a rank may ask for, and what rank 0 waits
 * for the others' goodbyes. */
#define QUIET_NS (SECOND_NS * 2 / 5)
#define END_NS (QUIET_NS + 8 * DEADLINE_NS + 30 * SECOND_NS)
/* As many datagrams of the liar's come through: a job takes fewer, and of one
 * that gets nowhere more would only be more of the same. */
#define LIAR_DATAGRAMS_MAX 400
/* A lie that is allowed may be this long: else half of the time would go into
 * questions to a rank that may be silent for minutes. */
#define DELAY_MS_MAX 1000
#define RECORD_BYTES 100
#define INPUT_RECORDS_MAX 60

/* What the first bytes say; lies of LIE_BYTES each follow. */
enum {
	AT_RANKS,
	AT_LIAR,
	AT_KEYS,
	AT_COUNTS,
	AT_SPLITTERS,
	AT_SCHEDULE,
	AT_SHAPE,
	AT_WAYS,
	HEADER_BYTES
};
#define LIE_BYTES 16

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "fuzz_cluster: %s\n", what);
	abort();
}

/* --- the ranks and the liar -------------------------------------------------
 */

/* What a rank has besides that of a simulated_rank. */
struct actor {
	struct sorter_config config;
	struct cluster_config cluster_config;
	const char *input_path, *output_path;
	uint64_t record_count;
	const uint8_t *records;
};

static struct actor actors[FUZZ_RANKS_MAX];
static unsigned liar_datagrams;

/* A silence that is allowed becomes a short one. */
static void shorten(uint8_t *datagram, size_t byte_count)
{
	uint64_t delay_ms = byte_count < UDP_STATUS_FIXED_BYTES
				    ? 0
				    : lie_load(datagram + LIE_DELAY_AT, 4);

	if (delay_ms <= DELAY_MS_MAX || delay_ms > EXCHANGE_DELAY_MS_MAX)
		return;
	lie_store(datagram + LIE_DELAY_AT, 4, delay_ms % DELAY_MS_MAX);
	lie_seal(datagram, byte_count, false, &keys);
}

static void put_lies(struct host *host, unsigned socket,
		     const struct address *to, const uint8_t *bytes,
		     size_t byte_count)
{
	uint8_t datagram[DATAGRAM_BATCH_BYTES_MAX];

	byte_count = world_lie(socket, bytes, byte_count, datagram);
	if (socket == CONTROL)
		shorten(datagram, byte_count);
	if (byte_count > 0)
		virtual_network_put(host, socket, to, datagram, byte_count);
}

static void tap(struct host *host, unsigned socket, const struct address *to,
		const uint8_t *bytes, size_t byte_count)
{
	if (host->number != liar || (lie_count == 0 && accuses)) {
		virtual_network_put(host, socket, to, bytes, byte_count);
	} else if (host->now_ns < BEGIN_NS + QUIET_NS &&
		   liar_datagrams < LIAR_DATAGRAMS_MAX) {
		liar_datagrams++;
		put_lies(host, socket, to, bytes, byte_count);
	}
}

/* --- inputs and outputs ----------------------------------------------------
 */

enum keys_kind { KEYS_ASCII, KEYS_BYTES, KEYS_FEW, KEYS_SKEWED, KEYS_KINDS };

static const unsigned counts[] = { 0, 1, 9, 40, 60, 25, 30, 3 };

struct input_file_of {
	char path[40];
	uint8_t *records;
};

static struct input_file_of inputs[FUZZ_RANKS_MAX][KEYS_KINDS]
				  [ARRAY_LEN(counts)];
static char folder[64];
static char output_paths[FUZZ_RANKS_MAX][80], gathered_path[80], trace_path[80];

static void fill_records(uint8_t *records, unsigned count, unsigned rank,
			 enum keys_kind kind)
{
	uint64_t random = 88172645463325252u + rank;

	for (size_t i = 0; i < (size_t)count * RECORD_BYTES; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		records[i] = (uint8_t)(random >> 32);
		if (kind == KEYS_ASCII)
			records[i] = ' ' + records[i] % 95;
		else if (kind == KEYS_FEW)
			records[i] %= 2;
		else if (kind == KEYS_SKEWED && i % RECORD_BYTES < 3)
			records[i] = 7;
	}
}

static struct input_file_of *find_input(unsigned rank, enum keys_kind kind,
					unsigned which)
{
	struct input_file_of *input = &inputs[rank][kind][which];
	size_t bytes = (size_t)counts[which] * RECORD_BYTES;
	int fd;

	if (input->records)
		return input;
	input->records = malloc(bytes + 1);
	require(input->records != NULL, "memory");
	fill_records(input->records, counts[which], rank, kind);
	fd = memfd_create("input", MFD_CLOEXEC);
	require(fd >= 0 && write(fd, input->records, bytes) == (ssize_t)bytes,
		"an input cannot be made");
	snprintf(input->path, sizeof(input->path), "/proc/self/fd/%d", fd);
	return input;
}

static void remove_outputs(void)
{
	for (unsigned i = 0; i < FUZZ_RANKS_MAX; i++)
		unlink(output_paths[i]);
	unlink(gathered_path);
	unlink(trace_path);
}

static void remove_folder(void)
{
	remove_outputs();
	rmdir(folder);
}

static void set_up(void)
{
	struct stat status;
	bool has_memory = stat("/dev/shm", &status) == 0;

	snprintf(folder, sizeof(folder), "%s/fuzz_cluster.XXXXXX",
		 has_memory ? "/dev/shm" : "/tmp");
	require(mkdtemp(folder) != NULL, "no folder");
	atexit(remove_folder);
	for (unsigned i = 0; i < FUZZ_RANKS_MAX; i++)
		snprintf(output_paths[i], sizeof(output_paths[i]), "%s/out.%u",
			 folder, i);
	require(world_set_up(FUZZ_RANKS_MAX, END_NS) == 0, "memory or keys");
	network.tap = tap;
	snprintf(gathered_path, sizeof(gathered_path), "%s/out.all", folder);
	snprintf(trace_path, sizeof(trace_path), "%s/trace", folder);
	for (unsigned i = 0; i < FUZZ_RANKS_MAX; i++)
		for (unsigned k = 0; k < KEYS_KINDS; k++)
			for (unsigned c = 0; c < ARRAY_LEN(counts); c++)
				find_input(i, (enum keys_kind)k, c);
}

/* --- a job -------------------------------------------------------------------
 */

static void configure(unsigned rank, const uint8_t *header)
{
	static const enum splitters_kind kinds[] = { SPLITTERS_AUTO,
						     SPLITTERS_STATIC,
						     SPLITTERS_SAMPLED,
						     SPLITTERS_SAMPLED };
	static const struct record_shape shapes[] = {
		RECORD_SHAPE_OF_SLICE(100, 0, 10),
		RECORD_SHAPE_OF_SLICE(100, 2, 98),
		RECORD_SHAPE_OF_SLICE(20, 4, 3), RECORD_SHAPE_OF_SLICE(4, 0, 1)
	};
	static const uint32_t payloads[] = { 256, 300, 1472, 0 };
	struct actor *actor = &actors[rank];
	const struct input_file_of *input;
	unsigned which = (header[AT_COUNTS] >> (2 * rank)) % 4 +
			 4 * (header[AT_COUNTS] >> 6 & 1);
	uint8_t ways = header[AT_WAYS];

	input = find_input(rank, (enum keys_kind)(header[AT_KEYS] % KEYS_KINDS),
			   which);
	actor->input_path = input->path;
	actor->output_path = ways & 4 ? gathered_path : output_paths[rank];
	actor->config = (struct sorter_config){
		.input_paths = &actor->input_path,
		.input_count = 1,
		.output_paths = &actor->output_path,
		.output_count = 1,
		.shape = shapes[header[AT_SHAPE] % 4],
		.threads = 1,
		.io = ways & 1 ? INPUT_BUFFERED : INPUT_MMAP,
		.splitters = kinds[header[AT_SPLITTERS] % 4],
		.kernel = CPU_SCALAR,
		.checksum = ways & 2,
		.trace_path = ways & 8 ? trace_path : NULL,
	};
	actor->cluster_config = (struct cluster_config){
		.schedule.kind =
			(enum exchange_schedule)(header[AT_SCHEDULE] % 3),
		.by_reference = (enum cluster_by_reference)(
			(header[AT_SCHEDULE] >> 2) % 3),
		.plain = ways & 16,
		.gathers = ways & 4,
		.payload_bytes = payloads[header[AT_SHAPE] >> 2 & 3],
		.deadline_ns = DEADLINE_NS,
	};
	/* What is read into memory is not shared. */
	if (ways & 1)
		actor->cluster_config.by_reference = CLUSTER_BY_REFERENCE_AUTO;
	actor->records = input->records;
	actor->record_count = (uint64_t)counts[which] * RECORD_BYTES /
			      actor->config.shape.size;
	ranks[rank].config = &actor->config;
	ranks[rank].cluster_config = &actor->cluster_config;
}

/* --- lies ----------------------------------------------------------------- */

/* Numbers near where something wraps are as easily found as others. */
static uint64_t value_of(unsigned form, uint64_t value)
{
	switch (form % 6) {
	case 1:
		return -(value & 0xffff);
	case 2:
		return ((uint64_t)1 << 32) - (value & 0xffff);
	case 3:
		return value & 0xffff;
	case 4:
		return (uint64_t)1 << value % 64;
	case 5:
		return ((uint64_t)1 << value % 64) - 1;
	default:
		return value;
	}
}

static void read_lie(struct lie *lie, const uint8_t *bytes)
{
	*lie = (struct lie){
		.kind = (enum lie_kind)(bytes[0] % LIE_KINDS),
		.operation = (enum lie_operation)(bytes[1] % LIE_OPERATIONS),
		.epoch = bytes[2] % 6 == 5 ? LIE_ANY_EPOCH : bytes[2] % 6,
		.index = (unsigned)(bytes[3] | bytes[4] << 8),
		.value = value_of(bytes[5], load_le64(bytes + 8)),
		.skip = bytes[6],
		.count = bytes[7],
	};
	/* Where all is lost there is nothing but silence. */
	if (lie->kind == LIE_DROP)
		lie->count = 1 + lie->count % 16;
}

/* --- what must be so --------------------------------------------------------
 */

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* Numbers that an honest rank might have said, which do not fit here. */
static bool is_too_large(const struct failure *failure)
{
	return strstr(failure->why, "sorting this takes up to") ||
	       strstr(failure->why, "this sort is beyond it") ||
	       strstr(failure->why, "records, which are too many for") ||
	       strstr(failure->why, "that one process can sort") ||
	       strstr(failure->why, "memory for the records of other nodes");
}

/* A wrong nonce is what a rank leaves that writes to a disk of its own. */
static bool is_another_file(const struct failure *failure)
{
	return failure->status == EXIT_FILE &&
	       strstr(failure->why, "has another file there");
}

static void check_failed(unsigned rank)
{
	const struct failure *failure = &ranks[rank].failure;
	const struct actor *actor = &actors[rank];
	const char *what = failure->what ? failure->what : "";

	if (!told)
		fprintf(stderr, "%s: %s\n", what, failure->why);
	require(told, "without a lie a rank has failed");
	require(actor->output_path == gathered_path ||
			!exists(actor->output_path),
		"a rank that has failed has an output");
	if (failure->status == EXIT_USAGE || is_another_file(failure) ||
	    (failure->status == EXIT_RESOURCES && is_too_large(failure)))
		return;
	if (failure->status != EXIT_PEER)
		fprintf(stderr, "status %d: %s: %s\n", failure->status, what,
			failure->why);
	require(failure->status == EXIT_PEER, "a wrong status");
	require(strstr(what, "rank ") || strstr(failure->why, "rank "),
		"no rank is named");
}

static const struct record_shape *compared_shape;

static int compare_records(const void *a, const void *b)
{
	const uint8_t *const *x = a, *const *y = b;
	int order = record_compare(compared_shape, *x, *y);

	/* All lie in one array, in rank order. */
	return order != 0 ? order : *x < *y ? -1 : *x > *y;
}

static size_t read_whole(const char *path, uint8_t *bytes, size_t room_bytes)
{
	FILE *file = fopen(path, "re");
	size_t length = file ? fread(bytes, 1, room_bytes, file) : 0;

	require(file != NULL, "there is no output");
	fclose(file);
	return length;
}

static void check_sorted(void)
{
	static uint8_t
		all[FUZZ_RANKS_MAX * INPUT_RECORDS_MAX * RECORD_BYTES + 1];
	static uint8_t got[sizeof(all)];
	static const uint8_t *sorted[sizeof(all) / 4];
	uint32_t size = actors[0].config.shape.size;
	size_t bytes = 0, got_bytes = 0, count;

	for (unsigned i = 0; i < rank_count; i++) {
		size_t length = actors[i].record_count * size;

		memcpy(all + bytes, actors[i].records, length);
		bytes += length;
		if (i == 0 || actors[i].output_path != gathered_path)
			got_bytes += read_whole(actors[i].output_path,
						got + got_bytes,
						sizeof(got) - got_bytes);
	}
	count = bytes / size;
	for (size_t i = 0; i < count; i++)
		sorted[i] = all + i * size;
	compared_shape = &actors[0].config.shape;
	qsort(sorted, count, sizeof(sorted[0]), compare_records);
	require(got_bytes == bytes,
		"the outputs are not as long as the inputs");
	for (size_t i = 0; i < count; i++)
		require(memcmp(got + i * size, sorted[i], size) == 0,
			"the outputs are not sorted");
}

static void check_end(void)
{
	bool failed = false;

	for (unsigned i = 0; i < rank_count; i++) {
		failed |= ranks[i].error != 0;
		if (ranks[i].error && (i != liar || !told))
			check_failed(i);
	}
	if (!told && !failed)
		check_sorted();
}

/* --- the fuzzer's side ------------------------------------------------------
 */

const char *__asan_default_options(void);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max,
			       unsigned seed);

/* What a job has freed need not be remembered for hundreds of others; and it
 * may ask for more than there is. */
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=8:allocator_may_return_null=1";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool ready;

	if (size < HEADER_BYTES)
		return 0;
	if (!ready)
		set_up();
	ready = true;
	told = false;
	liar_datagrams = 0;
	rank_count = 2 + data[AT_RANKS] % 2;
	accuses = data[AT_RANKS] & 2;
	liar = data[AT_LIAR] % rank_count;
	lie_count =
		(unsigned)MIN((size - HEADER_BYTES) / LIE_BYTES, FUZZ_LIES_MAX);
	for (unsigned i = 0; i < lie_count; i++)
		read_lie(&lies[i], data + HEADER_BYTES + i * LIE_BYTES);
	for (unsigned i = 0; i < rank_count; i++) {
		configure(i, data);
		world_start_rank(i, 0);
	}
	require(world_run_job() == 0, "a rank waits without end");
	check_end();
	world_free_job();
	remove_outputs();
	return 0;
}

/* One field of one lie, or a lie more or less, as often as any bytes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max,
			       unsigned seed)
{
	size_t count =
		size < HEADER_BYTES ? 0 : (size - HEADER_BYTES) / LIE_BYTES;
	uint8_t *lie = data + HEADER_BYTES;
	unsigned choice = seed % 8;

	seed /= 8;
	if (size < HEADER_BYTES || choice < 2)
		return LLVMFuzzerMutate(data, size, size_max);
	if (count == 0 || (choice == 2 && count < FUZZ_LIES_MAX)) {
		if (HEADER_BYTES + (count + 1) * LIE_BYTES > size_max)
			return size;
		lie += count * LIE_BYTES;
		for (unsigned i = 0; i < LIE_BYTES; i++)
			lie[i] = (uint8_t)(seed >> i);
		lie[0] = (uint8_t)(seed % LIE_KINDS);
		lie[2] = (uint8_t)(seed / LIE_KINDS % 6);
		lie[3] = (uint8_t)(seed / 256 % 32);
		lie[4] = lie[6] = lie[7] = 0;
		return HEADER_BYTES + (count + 1) * LIE_BYTES;
	}
	lie += seed % count * LIE_BYTES;
	seed /= (unsigned)count;
	if (choice == 3) {
		memmove(lie, data + HEADER_BYTES + (count - 1) * LIE_BYTES,
			LIE_BYTES);
		return HEADER_BYTES + (count - 1) * LIE_BYTES;
	}
	if (choice == 4)
		LLVMFuzzerMutate(lie + 8, 8, 8);
	else
		LLVMFuzzerMutate(lie + seed % 8, 1, 1);
	return HEADER_BYTES + count * LIE_BYTES;
}
