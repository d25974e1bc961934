/*
 * cluster_agree.c - what the ranks conclude from all hellos
 */
#include "cluster/agreement/cluster_agree.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "cluster/agreement/input_division.h"
#include "exchange/udp/udp.h"
#include "io/input/input.h"
#include "io/output/output.h"
#include "sort/buckets.h"
#include "sort/plan.h"

/* The version covers the hello and what each rank concludes from all hellos for
 * itself: two ranks that concluded otherwise would blame each other. */
#define VERSION 14

/* A node's output range that is cut at sampled borders is wrong by half a
 * bucket at either end: with this many splitters for each node by less than 2
 * %. */
#define NODE_SPLITTERS 64

/* The fewest records that a rank has in a static bucket: they nearly fill a
 * block of its list.  With a quarter of that 16 ranks on one machine take an
 * eighth longer, clearing memory for blocks that stay empty. */
#define RANK_BUCKET_RECORDS (BUCKETS_BLOCK_ENTRIES * 4 / 5)

/* --- hellos --------------------------------------------------------------- */

/* A field of the key is a word: 24 bits of its offset, 25 of its length, 2 of
 * its type, a bit each for big endian, descending and bfloat, and 2 bits of
 * where NaNs come.  0: there is none. */
#define LENGTH_BIT 24
#define TYPE_BIT 49
#define BIG_ENDIAN_BIT 51
#define DESCENDING_BIT 52
#define BFLOAT_BIT 53
#define NANS_BIT 54
#define FIELD_BITS 56
_Static_assert(RECORD_SIZE_MAX == 1 << LENGTH_BIT, "offsets are below it");

static uint64_t pack_field(const struct key_field *field)
{
	return field->offset | (uint64_t)field->length << LENGTH_BIT |
	       (uint64_t)field->type << TYPE_BIT |
	       (uint64_t)field->is_big_endian << BIG_ENDIAN_BIT |
	       (uint64_t)field->is_descending << DESCENDING_BIT |
	       (uint64_t)field->is_bfloat << BFLOAT_BIT |
	       (uint64_t)field->nans << NANS_BIT;
}

static uint64_t bits_of(uint64_t word, unsigned from, unsigned to)
{
	return word >> from & (((uint64_t)1 << (to - from)) - 1);
}

/* False: there is no such field in a record of this size. */
static bool unpack_field(struct key_field *field, uint64_t word,
			 uint32_t record_size)
{
	*field = (struct key_field){
		.offset = (uint32_t)bits_of(word, 0, LENGTH_BIT),
		.length = (uint32_t)bits_of(word, LENGTH_BIT, TYPE_BIT),
		.type = (enum key_type)bits_of(word, TYPE_BIT, BIG_ENDIAN_BIT),
		.is_big_endian = bits_of(word, BIG_ENDIAN_BIT, DESCENDING_BIT),
		.is_descending = bits_of(word, DESCENDING_BIT, BFLOAT_BIT),
		.is_bfloat = bits_of(word, BFLOAT_BIT, NANS_BIT),
		.nans = (enum key_nans)bits_of(word, NANS_BIT, FIELD_BITS),
	};
	return word >> FIELD_BITS == 0 && key_field_is_good(field) &&
	       key_field_end(field) <= record_size;
}

/* Words behind the first 0 are not looked at. */
static bool unpack_shape(struct record_shape *shape, const uint64_t *words)
{
	struct key_list *keys = &shape->keys;

	if (words[0] < 1 || words[0] > RECORD_SIZE_MAX || words[1] == 0)
		return false;
	shape->size = (uint32_t)words[0];
	for (unsigned i = 0; i < KEY_FIELDS_MAX && words[1 + i] != 0; i++)
		if (!unpack_field(&keys->fields[keys->field_count++],
				  words[1 + i], shape->size))
			return false;
	key_list_complete(keys, shape->size);
	return true;
}

/* The fields that are told in one word, from its lowest bit on, and the most
 * that each may be. */
static const struct choice {
	size_t offset;
	unsigned bits;
	uint64_t most;
} choices[] = {
	{ offsetof(struct cluster_hello, is_uniform), 1, 1 },
	{ offsetof(struct cluster_hello, traces), 1, 1 },
	{ offsetof(struct cluster_hello, unique), 1, 1 },
	{ offsetof(struct cluster_hello, wanted), 3, SPLITTERS_SAMPLED },
	{ offsetof(struct cluster_hello, probed_kind), 3, SPLITTERS_SAMPLED },
	{ offsetof(struct cluster_hello, by_reference), 2,
	  CLUSTER_BY_REFERENCE_AUTO },
	{ offsetof(struct cluster_hello, link), 2, CLUSTER_LINK_WISHES - 1 },
	{ offsetof(struct cluster_hello, roles), CLUSTER_ROLES,
	  CLUSTER_ROLES_ALL },
	{ offsetof(struct cluster_hello, gather_files), 9, OUTPUT_FILES_MAX },
	{ offsetof(struct cluster_hello, keeps_last), 1, 1 },
	{ offsetof(struct cluster_hello, number_words), 2, 2 },
	{ offsetof(struct cluster_hello, is_random), 1, 1 },
	{ offsetof(struct cluster_hello, thread_count), 4, UDP_THREADS_MAX },
};

static uint64_t pack_choices(const struct cluster_hello *hello)
{
	const uint8_t *bytes = (const uint8_t *)hello;
	uint64_t word = 0;
	unsigned from = 0;

	for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
		uint64_t value;

		memcpy(&value, bytes + choices[i].offset, sizeof(value));
		word |= value << from;
		from += choices[i].bits;
	}
	return word;
}

/* False: one of them is more than it may be. */
static bool unpack_choices(struct cluster_hello *hello, uint64_t word)
{
	uint8_t *bytes = (uint8_t *)hello;
	bool is_good = true;

	for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
		uint64_t value = bits_of(word, 0, choices[i].bits);

		is_good &= value <= choices[i].most;
		memcpy(bytes + choices[i].offset, &value, sizeof(value));
		word >>= choices[i].bits;
	}
	return is_good && word == 0;
}

/* Where the words are.  The hello's own numbers are the last ones. */
#define SHAPE_AT 1
#define CHOICES_AT (SHAPE_AT + 1 + KEY_FIELDS_MAX)
#define NUMBERS_AT (CHOICES_AT + 1)
#define NUMBERS_OFFSET offsetof(struct cluster_hello, record_count)
#define NUMBERS_BYTES (sizeof(struct cluster_hello) - NUMBERS_OFFSET)
_Static_assert(8 * NUMBERS_AT + NUMBERS_BYTES == CLUSTER_HELLO_BYTES,
	       "all of them");

void cluster_hello_encode(const struct cluster_hello *hello,
			  uint8_t bytes[CLUSTER_HELLO_BYTES])
{
	const struct key_list *keys = &hello->shape.keys;
	uint64_t words[CLUSTER_HELLO_BYTES / 8] = { VERSION,
						    hello->shape.size };

	for (unsigned i = 0; i < keys->field_count; i++)
		words[SHAPE_AT + 1 + i] = pack_field(&keys->fields[i]);
	words[CHOICES_AT] = pack_choices(hello);
	memcpy(words + NUMBERS_AT, (const uint8_t *)hello + NUMBERS_OFFSET,
	       NUMBERS_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		store_le64(bytes + 8 * i, words[i]);
}

/* What is appended to a record, whose bytes are of the size that is told. */
static struct widening widening_of(const struct cluster_hello *hello)
{
	struct widening widening = {
		.number_bytes = 4 * (uint32_t)hello->number_words,
		.is_random = hello->is_random == 1,
		.seed = hello->seed,
	};

	widening_complete(&widening);
	return widening;
}

int cluster_hello_decode(struct cluster_hello *hello, const uint8_t *bytes,
			 size_t byte_count)
{
	uint64_t words[CLUSTER_HELLO_BYTES / 8];

	if (byte_count < 8 || load_le64(bytes) != VERSION ||
	    byte_count != CLUSTER_HELLO_BYTES)
		return -EPROTO;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		words[i] = load_le64(bytes + 8 * i);
	*hello = (struct cluster_hello){ 0 };
	memcpy((uint8_t *)hello + NUMBERS_OFFSET, words + NUMBERS_AT,
	       NUMBERS_BYTES);
	return unpack_shape(&hello->shape, words + SHAPE_AT) &&
			       unpack_choices(hello, words[CHOICES_AT]) &&
			       hello->schedule <= UINT32_MAX &&
			       hello->thread_count > 0 &&
			       hello->shape.size > widening_of(hello).bytes
		       ? 0
		       : -EBADMSG;
}

/* --- agreeing ------------------------------------------------------------- */

/* What all ranks have told, and what they conclude from it. */
struct meeting {
	const struct cluster_hello *hellos; /* [node_count] */
	const char *const *names;
	unsigned node_count, own;
	struct cluster_agreement *agreement;
	struct failure *failure;
};

static bool has(const struct cluster_hello *hello, enum cluster_role role)
{
	return cluster_roles_have(hello->roles, role);
}

/* Outputs would replace each other; and the records of an input that two ranks
 * read would all be there twice. */
static int compare_places(const struct meeting *all, unsigned rank)
{
	const struct cluster_hello *theirs = &all->hellos[rank];
	const struct cluster_hello *ours = &all->hellos[all->own];

	if (rank == all->own)
		return 0;
	if (ours->output_place != 0 &&
	    theirs->output_place == ours->output_place)
		return failure_set(all->failure, EXIT_USAGE, NULL, 0,
				   "rank %u (%.80s) writes the same output "
				   "file as rank %u: %s",
				   rank, all->names[rank], all->own,
				   ours->gather_files > 0
					   ? "all ranks name the files in one "
					     "order"
					   : "%r in its name is the rank");
	if (ours->input_place != 0 && theirs->input_place == ours->input_place)
		return failure_set(all->failure, EXIT_USAGE, NULL, 0,
				   "rank %u (%.80s) reads the same input file "
				   "as rank %u: --shared-input divides it; %%r "
				   "in its name is the rank",
				   rank, all->names[rank], all->own);
	return 0;
}

static int compare(const struct meeting *all, unsigned rank)
{
	const struct cluster_hello *theirs = &all->hellos[rank];
	const struct cluster_hello *ours = &all->hellos[all->own];
	uint32_t their_size = theirs->shape.size - widening_of(theirs).bytes;
	uint32_t our_size = ours->shape.size - widening_of(ours).bytes;
	const struct {
		const char *option;
		bool is_same;
	} options[] = {
		{ "numbers", theirs->number_words == ours->number_words },
		{ "key",
		  key_list_equal(&theirs->shape.keys, &ours->shape.keys) &&
			  theirs->is_random == ours->is_random &&
			  theirs->seed == ours->seed },
		{ "header", theirs->header == ours->header },
		{ "unique", theirs->unique == ours->unique &&
				    theirs->keeps_last == ours->keeps_last },
		{ "head", theirs->head_records == ours->head_records },
		{ "splitters", theirs->wanted == ours->wanted },
		{ "by-reference", theirs->by_reference == ours->by_reference },
		{ "trace", theirs->traces == ours->traces },
		{ "compress", theirs->codec == ours->codec },
		{ "schedule", theirs->schedule == ours->schedule },
		{ "shared-input",
		  (theirs->shared_records == CLUSTER_NOT_SHARED) ==
			  (ours->shared_records == CLUSTER_NOT_SHARED) },
		{ "gather", theirs->gather_files == ours->gather_files },
	};

	if (their_size != our_size)
		return failure_set(all->failure, EXIT_USAGE, NULL, 0,
				   "rank %u (%.80s) has a record size of %u, "
				   "rank %u of %u",
				   rank, all->names[rank], their_size, all->own,
				   our_size);
	for (unsigned i = 0; i < ARRAY_LEN(options); i++)
		if (!options[i].is_same)
			return failure_set(all->failure, EXIT_USAGE, NULL, 0,
					   "rank %u (%.80s) has another --%s "
					   "than rank %u",
					   rank, all->names[rank],
					   options[i].option, all->own);
	/* A rank that does not read has opened nothing; cluster_check_roles()
	 * has a word for that. */
	if (has(theirs, CLUSTER_ROLE_READ) && has(ours, CLUSTER_ROLE_READ) &&
	    theirs->shared_records != ours->shared_records)
		return failure_set(
			all->failure, EXIT_USAGE, NULL, 0,
			"rank %u (%.80s) finds %" PRIu64
			" records in the shared input, rank %u %" PRIu64,
			rank, all->names[rank], theirs->shared_records,
			all->own, ours->shared_records);
	return compare_places(all, rank);
}

/* Fewer slots are free between two files of an input than two pages have bytes,
 * since the end of a header may take one.  An input that other ranks may map is
 * one file, without free slots. */
static bool slots_are_good(const struct cluster_hello *hello)
{
	uint64_t free_slots = hello->slot_count - hello->record_count;

	return hello->slot_count >= hello->record_count &&
	       free_slots <= (hello->host_id ? 0
					     : (uint64_t)INPUT_FILES_MAX * 2 *
						       PAGE_BYTES);
}

static bool kind_is_good(const struct cluster_hello *hello)
{
	return hello->probed_kind == SPLITTERS_STATIC_256 ||
	       (hello->probed_kind == SPLITTERS_STATIC_95 &&
		splitters_may_be_ascii(&hello->shape));
}

/* A rank has its part of a shared input at first. */
static bool part_is_good(const struct meeting *all, unsigned rank)
{
	uint64_t whole = all->hellos[rank].shared_records;
	unsigned count = all->node_count;

	return whole == CLUSTER_NOT_SHARED ||
	       all->hellos[rank].record_count ==
		       input_division_begin(whole, rank + 1, count) -
			       input_division_begin(whole, rank, count);
}

static int refuse_records(const struct meeting *all, unsigned rank,
			  const char *where)
{
	return failure_set(
		all->failure, rank == all->own ? EXIT_RESOURCES : EXIT_PEER,
		NULL, 0,
		"rank %u (%.80s) has %" PRIu64
		" records, which are too many %s",
		rank, all->names[rank], all->hellos[rank].record_count, where);
}

/* Is it possible what a rank says of its input?  The caller has compared its
 * shape with ours. */
static int check_input(const struct meeting *all, unsigned rank)
{
	const struct cluster_hello *hello = &all->hellos[rank];

	if (hello->record_count > CLUSTER_INPUT_BYTES_MAX / hello->shape.size)
		return refuse_records(all, rank, "for one node");
	if (!slots_are_good(hello) || !kind_is_good(hello) ||
	    !part_is_good(all, rank) ||
	    (hello->record_count > 0 && !has(hello, CLUSTER_ROLE_READ)))
		return failure_set(
			all->failure, EXIT_PEER, NULL, 0,
			"rank %u (%.80s) sent impossible numbers of its "
			"input: " EXCHANGE_FAULTY,
			rank, all->names[rank]);
	return 0;
}

/* 95 characters if all ranks have found only characters in their keys, else 256
 * bytes.  *is_uniform: all ranks have found evenly spread keys, of the same
 * kind. */
static enum splitters_kind static_kind(const struct cluster_hello *hellos,
				       unsigned node_count, bool *is_uniform)
{
	bool any_ascii = false, any_bytes = false;

	*is_uniform = true;
	for (unsigned i = 0; i < node_count; i++) {
		bool is_ascii = hellos[i].probed_kind == SPLITTERS_STATIC_95;

		if (hellos[i].record_count == 0)
			continue;
		any_ascii |= is_ascii;
		any_bytes |= !is_ascii;
		*is_uniform &= hellos[i].is_uniform == 1;
	}
	/* Bytes on one rank and characters on another are not spread alike. */
	if (any_ascii && any_bytes)
		*is_uniform = false;
	return any_ascii && !any_bytes ? SPLITTERS_STATIC_95
				       : SPLITTERS_STATIC_256;
}

/* The first rank whose input the others cannot map, since it is on another
 * machine or not one mapped file; node_count if there is none. */
static unsigned find_unmappable(const struct cluster_hello *hellos,
				unsigned node_count)
{
	for (unsigned i = 0; i < node_count; i++)
		if (hellos[i].host_id == 0 ||
		    hellos[i].host_id != hellos[0].host_id)
			return i;
	return node_count;
}

static int agree_by_reference(const struct meeting *all)
{
	unsigned node = find_unmappable(all->hellos, all->node_count);
	uint64_t wanted = all->hellos[0].by_reference;

	all->agreement->by_reference =
		wanted != CLUSTER_BY_REFERENCE_NO && node == all->node_count;
	if (all->agreement->by_reference || wanted != CLUSTER_BY_REFERENCE_YES)
		return 0;
	return failure_set(all->failure, EXIT_USAGE, NULL, 0,
			   "--by-reference=yes: rank %u (%.80s) has no mapped "
			   "file on this machine as its input",
			   node, all->names[node]);
}

/* A sort in memory takes so many bytes for a record that a rank has, and for
 * one that it gets, beside the record: 59 were measured together where a rank
 * has 250,000 records, and fewer where it has more. */
#define OWN_RECORD_BYTES 40
#define SHARE_RECORD_BYTES 24
/* And for a part of all records that is larger than others by chance. */
#define SHARE_MARGIN(records) ((records) / 32 + 1000)

/* And for staging slots and what ends at whole huge pages: 5.7 MiB were
 * measured for a part of 3 MB; small parts take less.  A rank with less memory
 * than a sort beyond memory takes is not asked for that: it may succeed
 * without. */
#define STAGING_BYTES(share_bytes) MIN(8 * MIB, 2 * (share_bytes))
#define EXTERNAL_BYTES_MIN (10 * MIB)

/* Numbers of records and bytes are bounded: see check_input(). */
uint64_t cluster_needed_bytes(const struct cluster_hello *hello,
			      uint64_t whole_count, unsigned node_count,
			      bool by_reference)
{
	uint64_t share = whole_count / node_count;
	uint64_t received = by_reference ? 0 : hello->shape.size;

	share += SHARE_MARGIN(share);
	if (MAX(hello->record_count, share) > PLAN_RECORDS_MAX)
		return UINT64_MAX;
	return MIN(hello->input_bytes, 2 * CLUSTER_INPUT_BYTES_MAX) +
	       hello->record_count * OWN_RECORD_BYTES +
	       share * SHARE_RECORD_BYTES +
	       share / node_count * (node_count - 1) * received +
	       (hello->memory_bytes < EXTERNAL_BYTES_MIN
			? 0
			: STAGING_BYTES(share * hello->shape.size));
}

int cluster_check_roles(const struct cluster_hello *hellos, unsigned node_count,
			bool *is_plain, struct failure *failure)
{
	uint64_t any = 0, all = CLUSTER_ROLES_ALL;

	for (unsigned i = 0; i < node_count; i++) {
		any |= hellos[i].roles;
		all &= hellos[i].roles;
	}
	*is_plain = all == CLUSTER_ROLES_ALL;
	for (unsigned role = 0; role < CLUSTER_ROLES; role++)
		if (!cluster_roles_have(any, (enum cluster_role)role))
			return failure_set(
				failure, EXIT_USAGE, "--roles", 0,
				"none of the %u ranks has the role %s",
				node_count, cluster_role_names[role]);
	if (!*is_plain && node_count > CLUSTER_ROLES_RANKS_MAX)
		return failure_set(failure, EXIT_USAGE, "--roles", 0,
				   "%u ranks: roles may differ among %d",
				   node_count, CLUSTER_ROLES_RANKS_MAX);
	if (!*is_plain && hellos[0].shared_records != CLUSTER_NOT_SHARED)
		return failure_set(failure, EXIT_USAGE, "--roles", 0,
				   "not with --shared-input");
	return 0;
}

static bool is_too_large(const struct meeting *all)
{
	unsigned count = all->node_count;

	for (unsigned i = 0; i < count && count > 1; i++)
		if (all->hellos[i].memory_bytes > 0 &&
		    cluster_needed_bytes(&all->hellos[i],
					 all->agreement->whole_count, count,
					 all->agreement->by_reference) >
			    all->hellos[i].memory_bytes)
			return true;
	return false;
}

/* Each file has a rank.  Beyond memory a rank learns how many records it keeps
 * only when it has written them, and the next one's place in the file follows
 * from that, as does how many of them are the first of all. */
static int check_gathered(const struct meeting *all)
{
	const struct cluster_hello *own = &all->hellos[all->own];
	unsigned sorters = 0;

	for (unsigned i = 0; i < all->node_count; i++)
		sorters += has(&all->hellos[i], CLUSTER_ROLE_SORT);
	if (own->gather_files > sorters)
		return failure_set(all->failure, EXIT_USAGE, "--gather", 0,
				   "%" PRIu64
				   " files are more than the ranks that "
				   "sort, %u",
				   own->gather_files, sorters);
	if (!own->unique || !all->agreement->is_external)
		return 0;
	if (own->head_records > 0)
		return failure_set(all->failure, EXIT_USAGE, "--head", 0,
				   "this is sorted beyond memory, where ranks "
				   "do not count what --unique leaves: sort "
				   "with one of both");
	if (own->gather_files == 0)
		return 0;
	return failure_set(all->failure, EXIT_USAGE, "--gather", 0,
			   "this is sorted beyond memory, where --unique does "
			   "not go into one file: write parts, or sort without "
			   "--unique");
}

/* All ranks sort in memory, though one of them has more records than that
 * takes: it is alone, or it has not told of its memory, as only a rank with
 * little input does. */
static int check_plans(const struct meeting *all)
{
	for (unsigned i = 0; i < all->node_count; i++)
		if (all->hellos[i].record_count > PLAN_RECORDS_MAX)
			return refuse_records(all, i, "for a sort in memory");
	return 0;
}

/* The same number for each node. */
static uint32_t static_buckets(const struct cluster_agreement *agreement,
			       unsigned node_count)
{
	uint64_t buckets =
		MIN(plan_buckets(agreement->whole_count),
		    agreement->whole_count / node_count / RANK_BUCKET_RECORDS);

	return (uint32_t)MAX(1, buckets / node_count) * node_count;
}

int cluster_agree(struct cluster_agreement *agreement,
		  const struct cluster_hello *hellos, unsigned node_count,
		  unsigned own, const char *const *names,
		  struct failure *failure)
{
	const struct meeting all = {
		.hellos = hellos,
		.names = names,
		.node_count = node_count,
		.own = own,
		.agreement = agreement,
		.failure = failure,
	};
	uint64_t wanted = hellos[own].wanted;
	struct widening widening;
	bool is_uniform, is_plain;

	assert(node_count > 0);
	*agreement = (struct cluster_agreement){ 0 };
	for (unsigned i = 0; i < node_count; i++) {
		int error = compare(&all, i);

		if (error == 0)
			error = check_input(&all, i);
		if (error)
			return error;
		agreement->whole_count += hellos[i].record_count;
	}
	widening = widening_of(&hellos[own]);
	if (widening.bytes > 0 && node_count == 1)
		return failure_set(failure, EXIT_USAGE, NULL, 0,
				   "--numbers and random keys are not for one "
				   "rank: leave out --nodes or --cluster");
	if (widening_check(&widening, agreement->whole_count, failure) < 0 ||
	    cluster_check_roles(hellos, node_count, &is_plain, failure) < 0 ||
	    agree_by_reference(&all) < 0)
		return -EINVAL;
	/* Records are widened where they are brought into memory one by one.
	 * A shared input is for sorts beyond memory, too; but without records
	 * there is nothing to do. */
	agreement->is_external =
		!is_plain || widening.bytes > 0 ||
		(node_count > 1 && agreement->whole_count > 0 &&
		 hellos[own].shared_records != CLUSTER_NOT_SHARED) ||
		is_too_large(&all);
	if (check_gathered(&all) < 0 ||
	    (!agreement->is_external && check_plans(&all) < 0))
		return -EINVAL;
	agreement->kind = static_kind(hellos, node_count, &is_uniform);
	agreement->may_sample = wanted == SPLITTERS_AUTO;
	if (agreement->whole_count > 0 &&
	    (wanted == SPLITTERS_SAMPLED ||
	     (wanted == SPLITTERS_AUTO && !is_uniform)))
		agreement->kind = SPLITTERS_SAMPLED;
	agreement->static_buckets = static_buckets(agreement, node_count);
	agreement->sampled_splitters =
		(uint32_t)MIN(MAX(plan_splitters(agreement->whole_count),
				  node_count * NODE_SPLITTERS),
			      SPLITTERS_MAX);
	return 0;
}

/* The margin is 20 standard deviations or more of a part that varies by chance:
 * x / 10 + 1000 is never below 20 times the root of x. */
bool cluster_is_skewed(const uint64_t *node_records, unsigned node_count)
{
	uint64_t whole = 0, part;

	assert(node_count > 0);
	for (unsigned i = 0; i < node_count; i++)
		whole += node_records[i];
	part = whole / node_count;
	for (unsigned i = 0; i < node_count; i++)
		if (node_records[i] > part + part / 10 + 1000)
			return true;
	return false;
}

/* --- which rank keeps whose runs -------------------------------------------
 */

_Static_assert(RANK_NODES_MAX <= 1 << 16, "a rank is two bytes");

/* The next keeper behind rank k; the same one, if there is none. */
static unsigned next_keeper(const struct cluster_hello *hellos,
			    unsigned node_count, unsigned k)
{
	for (unsigned i = k + 1; i < node_count; i++)
		if (has(&hellos[i], CLUSTER_ROLE_KEEP))
			return i;
	return k;
}

void cluster_keepers_choose(const struct cluster_hello *hellos,
			    unsigned node_count, uint16_t *keeper)
{
	unsigned k = has(&hellos[0], CLUSTER_ROLE_KEEP)
			     ? 0
			     : next_keeper(hellos, node_count, 0);
	unsigned keepers = 0;
	uint64_t kept[RANK_NODES_MAX], whole = 0;

	for (unsigned i = 0; i < node_count; i++) {
		bool keeps = has(&hellos[i], CLUSTER_ROLE_KEEP);

		kept[i] = keeps ? hellos[i].record_count : 0;
		whole += hellos[i].record_count;
		keepers += keeps;
	}
	for (unsigned i = 0; i < node_count; i++) {
		uint64_t records = hellos[i].record_count;

		keeper[i] = (uint16_t)i;
		if (has(&hellos[i], CLUSTER_ROLE_KEEP))
			continue;
		/* A keeper has its part when half of the next input would be
		 * too much. */
		while (kept[k] + records / 2 >= whole / MAX(1, keepers) &&
		       next_keeper(hellos, node_count, k) != k)
			k = next_keeper(hellos, node_count, k);
		keeper[i] = (uint16_t)k;
		kept[k] += records;
	}
}

/* --- what a rank has to do beyond memory -----------------------------------
 */

/* All ranks plan for as many records as the one has that reads or keeps most,
 * so that their pieces and blocks suit each other. */
static void count_runs(const struct cluster_hello *hellos, unsigned node_count,
		       unsigned own, struct external_ranks *ranks)
{
	uint64_t kept[RANK_NODES_MAX] = { 0 };
	uint16_t keeper[RANK_NODES_MAX];

	cluster_keepers_choose(hellos, node_count, keeper);
	for (unsigned i = 0; i < node_count; i++) {
		uint64_t records = hellos[i].record_count;

		kept[keeper[i]] += records;
		ranks->own_records = MAX(ranks->own_records, records);
		ranks->planned_records =
			MAX(ranks->planned_records, kept[keeper[i]]);
		if (i == own || keeper[i] != own || records == 0)
			continue;
		ranks->giver_count++;
		ranks->kept_records += records;
		ranks->kept_most = MAX(ranks->kept_most, records);
	}
	if (!has(&hellos[own], CLUSTER_ROLE_READ))
		ranks->own_records = 0;
}

struct external_ranks cluster_work_of(const struct cluster_hello *hellos,
				      unsigned node_count, unsigned own,
				      bool shares_input)
{
	uint64_t whole = 0;
	struct external_ranks ranks = {
		.rank_count = node_count,
		.takes_nothing = !has(&hellos[own], CLUSTER_ROLE_SORT),
		.gives_runs = !has(&hellos[own], CLUSTER_ROLE_KEEP),
		.shares_input = shares_input,
	};

	for (unsigned i = 0; i < node_count; i++) {
		ranks.keeper_count += has(&hellos[i], CLUSTER_ROLE_KEEP);
		ranks.taker_count +=
			i != own && has(&hellos[i], CLUSTER_ROLE_SORT);
		/* The files of a shared input are the whole input. */
		if (i == own && !shares_input)
			ranks.input_begin = whole;
		whole += hellos[i].record_count;
	}
	ranks.part_records = whole / MAX(1, external_ranks_takers(&ranks));
	if (shares_input)
		ranks.records_max =
			input_division_records_max(whole, node_count);
	count_runs(hellos, node_count, own, &ranks);
	return ranks;
}
