/*
 * lying_rank - blinksort, as a rank that has the key and lies
 *
 * usage: lying_rank LIE... -- BLINKSORT'S ARGUMENTS
 *
 * with lies as lie_parse() reads them (lie.h).
 *
 * It is blinksort itself, whose datagrams pass by here; so it should say
 * --transport=udp, or the ranks of one machine speak through memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/datagram.h"
#include "lie.h"

/* The program under another name; the linker brings what it calls by here. */
#define main blinksort_main
int main(int argc, char **argv);
#include "programs/blinksort/blinksort_main.c" /* NOLINT(bugprone-suspicious-include) */
#undef main

int __real_rank_find(struct rank *rank, const struct rank_options *options,
		     struct failure *failure);
int __wrap_rank_find(struct rank *rank, const struct rank_options *options,
		     struct failure *failure);
int __real_datagram_send(struct datagram_socket *socket,
			 const struct address *to, const struct iovec *parts,
			 unsigned part_count, size_t segment_bytes,
			 size_t total_bytes);
int __wrap_datagram_send(struct datagram_socket *socket,
			 const struct address *to, const struct iovec *parts,
			 unsigned part_count, size_t segment_bytes,
			 size_t total_bytes);

static struct lie lies[LIES_MAX];
static unsigned lie_count;
static struct udp_wire_keys job_keys;

_Noreturn static void refuse(const char *word)
{
	fprintf(stderr, "lying_rank: %s: not understood\n", word);
	exit(EXIT_USAGE);
}

static void add_lie(const char *text)
{
	if (lie_count == LIES_MAX || !lie_parse(&lies[lie_count], text))
		refuse(text);
	lie_count++;
}

/* --- what passes by --------------------------------------------------------
 */

int __wrap_rank_find(struct rank *rank, const struct rank_options *options,
		     struct failure *failure)
{
	int error = __real_rank_find(rank, options, failure);

	return error ? error : udp_wire_derive_keys(rank->secret, &job_keys);
}

/* In a STATUS a part of the tag stands there. */
static bool has_token(const uint8_t *bytes, size_t byte_count)
{
	return byte_count > UDP_DATA_HEADER_BYTES &&
	       load_le64(bytes + 8) == job_keys.token;
}

/* What it finds wrong with the others it keeps to itself: they are right. */
static bool is_accusation(const uint8_t *bytes, size_t byte_count)
{
	return byte_count >= UDP_STATUS_FIXED_BYTES &&
	       !has_token(bytes, byte_count) &&
	       (bytes[LIE_FLAGS_AT] & UDP_STATUS_FAILED);
}

static int send_segment(struct datagram_socket *socket,
			const struct address *to, const uint8_t *bytes,
			size_t byte_count)
{
	uint8_t datagram[DATAGRAM_BATCH_BYTES_MAX];
	struct iovec part = { datagram, byte_count };
	bool told = false;

	if (is_accusation(bytes, byte_count))
		return 1;
	memcpy(datagram, bytes, byte_count);
	part.iov_len = lie_tell(lies, lie_count, &job_keys,
				has_token(bytes, byte_count), datagram,
				byte_count, sizeof(datagram), &told);
	if (part.iov_len == 0)
		return 1;
	return __real_datagram_send(socket, to, &part, 1, part.iov_len,
				    part.iov_len);
}

/* Batches one by one: an error of a later segment is the next call's. */
int __wrap_datagram_send(struct datagram_socket *socket,
			 const struct address *to, const struct iovec *parts,
			 unsigned part_count, size_t segment_bytes,
			 size_t total_bytes)
{
	static uint8_t bytes[DATAGRAM_BATCH_BYTES_MAX];
	size_t filled = 0, done = 0;
	int sent = 0;

	for (unsigned i = 0; i < part_count; i++) {
		memcpy(bytes + filled, parts[i].iov_base, parts[i].iov_len);
		filled += parts[i].iov_len;
	}
	while (done < total_bytes) {
		size_t length = MIN(segment_bytes, total_bytes - done);
		int result = send_segment(socket, to, bytes + done, length);

		if (result <= 0)
			return sent > 0 ? sent : result;
		done += length;
		sent++;
	}
	return sent;
}

int main(int argc, char **argv)
{
	int first = 1;

	while (first < argc && strcmp(argv[first], "--") != 0)
		add_lie(argv[first++]);
	if (first == argc)
		refuse("--");
	argv[first] = argv[0];
	return blinksort_main(argc - first, argv + first);
}
