/*
 * lie.h - what a rank that has the key may say instead of the truth
 *
 * A lying rank is a real one, of which some datagrams are changed on their way
 * out and get their tag or CRC-32C again, so that nothing but the checks behind
 * these stands between the lie and the rank that hears it.
 *
 * Included by one file of a program, which knows the job's keys.
 */
#ifndef LIE_H
#define LIE_H

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "kernels/crc32c.h"
#include "exchange/udp/udp_page.h"
#include "exchange/udp/udp_wire.h"

enum lie_kind {
	LIE_FIELD, /* STATUS: a field, index of lie_fields[] */
	LIE_TOTAL, /* STATUS: the length announced to rank index */
	LIE_HELLO, /* STATUS of phase 0: word index of the hello */
	LIE_OFFER, /* the same: 4 bytes at 4 * index of the page's offer */
	LIE_APPLICATION, /* STATUS behind phase 0: word index of the application
			    payload */
	LIE_GAP,     /* STATUS: one more gap, of segment value on, index long */
	LIE_BYTE,    /* STATUS: byte index */
	LIE_SEGMENT, /* DATA: a field, index of lie_segment_fields[] */
	LIE_PAYLOAD, /* DATA: 4 bytes at 4 * index of the message */
	LIE_LENGTH,  /* any: cut to value bytes, or lengthened by zeros */
	LIE_DROP,    /* any: never sent */
	LIE_KINDS
};

enum lie_operation { LIE_SET, LIE_ADD, LIE_XOR, LIE_OPERATIONS };

#define LIE_ANY_EPOCH 255
#define LIES_MAX 32 /* of a rank */

struct lie {
	enum lie_kind kind;
	enum lie_operation operation;
	/* In datagrams of this collective; or LIE_ANY_EPOCH. */
	unsigned epoch;
	unsigned index;
	uint64_t value;
	/* Of the datagrams that it could be told in the first skip are spared,
	 * and count of the others are changed; 0: all. */
	unsigned skip, count;
	unsigned met; /* so far */
};

struct lie_field {
	const char *name;
	unsigned offset, width; /* bytes */
};

static const struct lie_field lie_fields[] = {
	{ "version", 16, 1 },	     { "type", 17, 1 },
	{ "source", 18, 2 },	     { "destination", 20, 2 },
	{ "data_port", 22, 2 },	     { "failure_node", 24, 2 },
	{ "failure_status", 26, 2 }, { "application_bytes", 28, 2 },
	{ "total_count", 30, 2 },    { "text_bytes", 32, 2 },
	{ "gap_count", 34, 2 },	     { "serial", 36, 4 },
	{ "flags", 40, 4 },	     { "phase", 44, 4 },
	{ "epoch", 48, 4 },	     { "round", 52, 4 },
	{ "delay_ms", 56, 4 },	     { "segment_bytes", 60, 4 },
	{ "gap_serial", 64, 4 },     { "served_serial", 68, 4 },
	{ "sent_bytes", 72, 8 },     { "prefix_bytes", 80, 8 },
	{ "grant_bytes", 88, 8 },    { "clock_ns", 96, 8 },
	{ "echo_ns", 104, 8 },	     { "held_ns", 112, 8 },
};

static const struct lie_field lie_segment_fields[] = {
	{ "version", 4, 1 }, { "type", 5, 1 },	  { "epoch", 6, 2 },
	{ "token", 8, 8 },   { "source", 16, 2 }, { "destination", 18, 2 },
	{ "flags", 20, 2 },  { "length", 22, 2 }, { "offset", 24, 8 },
};

/* Where a STATUS has these. */
#define LIE_TAG_BYTES 16
#define LIE_TYPE_AT 17
#define LIE_APPLICATION_BYTES_AT 28
#define LIE_TOTAL_COUNT_AT 30
#define LIE_GAP_COUNT_AT 34
#define LIE_FLAGS_AT 40
#define LIE_DELAY_AT 56
#define LIE_PHASE_AT 44
#define LIE_EPOCH_AT 48
#define LIE_GAP_BYTES 12
/* Where DATA has these. */
#define LIE_CRC32C_BYTES 4
#define LIE_DATA_EPOCH_AT 6
#define LIE_DATA_OFFSET_AT 24

/* --- lies as words -----------------------------------------------------------
 */

/* False: the word is none of these. */
static inline bool lie_find_word(const char *word, const char *const *words,
				 unsigned count, unsigned *found)
{
	for (unsigned i = 0; i < count; i++) {
		*found = i;
		if (strcmp(word, words[i]) == 0)
			return true;
	}
	return false;
}

static inline bool lie_find_number(const char *word, uint64_t *value)
{
	char *end;

	*value = strtoull(word, &end, 0);
	return end > word && *end == '\0';
}

static inline bool lie_find_index(const char *word, struct lie *lie)
{
	const struct lie_field *fields = lie_fields;
	size_t count = lie->kind == LIE_FIELD ? ARRAY_LEN(lie_fields) : 0;
	uint64_t value;
	bool found;

	if (lie->kind == LIE_SEGMENT) {
		fields = lie_segment_fields;
		count = ARRAY_LEN(lie_segment_fields);
	}
	for (lie->index = 0; lie->index < count; lie->index++)
		if (strcmp(word, fields[lie->index].name) == 0)
			return true;
	found = lie_find_number(word, &value);
	lie->index = (unsigned)value;
	return found;
}

/*
 * Read KIND:EPOCH:INDEX:OPERATION:VALUE[:SKIP:COUNT], as in struct lie.  KIND
 * and OPERATION are words, INDEX a number or the name of a field, EPOCH a
 * number or "any"; a VALUE may be negative.  False: it is not of this form.
 */
static inline bool lie_parse(struct lie *lie, const char *text)
{
	static const char *const kinds[LIE_KINDS] = {
		[LIE_FIELD] = "field",
		[LIE_TOTAL] = "total",
		[LIE_HELLO] = "hello",
		[LIE_OFFER] = "offer",
		[LIE_APPLICATION] = "application",
		[LIE_GAP] = "gap",
		[LIE_BYTE] = "byte",
		[LIE_SEGMENT] = "segment",
		[LIE_PAYLOAD] = "payload",
		[LIE_LENGTH] = "length",
		[LIE_DROP] = "drop",
	};
	static const char *const operations[LIE_OPERATIONS] = {
		[LIE_SET] = "set",
		[LIE_ADD] = "add",
		[LIE_XOR] = "xor",
	};
	char copy[128], *words[7] = { NULL }, *rest = copy;
	unsigned count = 0, kind, operation;
	uint64_t epoch = LIE_ANY_EPOCH, skip = 0, told = 0;

	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	while (count < ARRAY_LEN(words) && rest)
		words[count++] = strsep(&rest, ":");
	if (rest || (count != 5 && count != 7) ||
	    !lie_find_word(words[0], kinds, LIE_KINDS, &kind) ||
	    !lie_find_word(words[3], operations, LIE_OPERATIONS, &operation))
		return false;
	*lie = (struct lie){
		.kind = (enum lie_kind)kind,
		.operation = (enum lie_operation)operation,
	};
	if ((strcmp(words[1], "any") != 0 &&
	     !lie_find_number(words[1], &epoch)) ||
	    !lie_find_index(words[2], lie) ||
	    !lie_find_number(words[4], &lie->value) ||
	    (count == 7 && (!lie_find_number(words[5], &skip) ||
			    !lie_find_number(words[6], &told))))
		return false;
	lie->epoch = (unsigned)epoch;
	lie->skip = (unsigned)skip;
	lie->count = (unsigned)told;
	return true;
}

/* --- in a datagram -----------------------------------------------------------
 */

static inline uint64_t lie_load(const uint8_t *bytes, unsigned width)
{
	uint8_t word[8] = { 0 };

	memcpy(word, bytes, width);
	return load_le64(word);
}

static inline void lie_store(uint8_t *bytes, unsigned width, uint64_t value)
{
	uint8_t word[8];

	store_le64(word, value);
	memcpy(bytes, word, width);
}

/* False: the datagram ends before the number would. */
static inline bool lie_change(const struct lie *lie, uint8_t *datagram,
			      size_t byte_count, size_t offset, unsigned width)
{
	uint64_t value;

	if (offset + width > byte_count)
		return false;
	value = lie_load(datagram + offset, width);
	if (lie->operation == LIE_SET)
		value = lie->value;
	else if (lie->operation == LIE_ADD)
		value += lie->value;
	else
		value ^= lie->value;
	lie_store(datagram + offset, width, value);
	return true;
}

static inline bool lie_add_gap(const struct lie *lie, uint8_t *datagram,
			       size_t *byte_count)
{
	uint64_t gaps = lie_load(datagram + LIE_GAP_COUNT_AT, 2);

	if (*byte_count + LIE_GAP_BYTES > UDP_STATUS_BYTES_MAX)
		return false;
	lie_store(datagram + *byte_count, 8, lie->value);
	lie_store(datagram + *byte_count + 8, 4, lie->index);
	lie_store(datagram + LIE_GAP_COUNT_AT, 2, gaps + 1);
	*byte_count += LIE_GAP_BYTES;
	return true;
}

static inline bool lie_in_status(const struct lie *lie, uint8_t *datagram,
				 size_t *byte_count)
{
	size_t fixed = UDP_STATUS_FIXED_BYTES;
	size_t application = lie_load(datagram + LIE_APPLICATION_BYTES_AT, 2);
	uint64_t phase = lie_load(datagram + LIE_PHASE_AT, 4);
	const struct lie_field *field =
		&lie_fields[lie->index % ARRAY_LEN(lie_fields)];

	switch (lie->kind) {
	case LIE_FIELD:
		return lie_change(lie, datagram, *byte_count, field->offset,
				  field->width);
	case LIE_TOTAL:
		return lie->index <
			       lie_load(datagram + LIE_TOTAL_COUNT_AT, 2) &&
		       lie_change(lie, datagram, *byte_count,
				  fixed + application + 8 * (size_t)lie->index,
				  8);
	case LIE_HELLO:
		return phase == 0 &&
		       lie_change(lie, datagram, fixed + application,
				  fixed + UDP_PAGE_OFFER_BYTES +
					  8 * (size_t)lie->index,
				  8);
	case LIE_OFFER:
		return phase == 0 &&
		       lie_change(lie, datagram, fixed + application,
				  fixed + 4 * (size_t)lie->index, 4);
	case LIE_APPLICATION:
		return phase > 0 &&
		       lie_change(lie, datagram, fixed + application,
				  fixed + 8 * (size_t)lie->index, 8);
	case LIE_GAP:
		return lie_add_gap(lie, datagram, byte_count);
	case LIE_BYTE:
		return lie_change(lie, datagram, *byte_count, lie->index, 1);
	default:
		return false;
	}
}

static inline bool lie_in_data(const struct lie *lie, uint8_t *datagram,
			       size_t byte_count)
{
	const struct lie_field *field =
		&lie_segment_fields[lie->index % ARRAY_LEN(lie_segment_fields)];
	uint64_t offset = lie_load(datagram + LIE_DATA_OFFSET_AT, 8);
	uint64_t at = 4 * (uint64_t)lie->index;

	if (lie->kind == LIE_SEGMENT)
		return lie_change(lie, datagram, byte_count, field->offset,
				  field->width);
	return lie->kind == LIE_PAYLOAD && at >= offset &&
	       lie_change(lie, datagram, byte_count,
			  UDP_DATA_HEADER_BYTES + at - offset, 4);
}

static inline void lie_seal(uint8_t *datagram, size_t byte_count, bool is_data,
			    const struct udp_wire_keys *keys)
{
	static const uint8_t
		personal[crypto_generichash_blake2b_PERSONALBYTES] = {
			"blink status 1"
		};

	if (is_data && byte_count >= UDP_DATA_HEADER_BYTES)
		store_le32(datagram,
			   crc32c_scalar(keys->seed,
					 datagram + LIE_CRC32C_BYTES,
					 byte_count - LIE_CRC32C_BYTES));
	else if (!is_data && byte_count >= LIE_TAG_BYTES)
		crypto_generichash_blake2b_salt_personal(
			datagram, LIE_TAG_BYTES, datagram + LIE_TAG_BYTES,
			byte_count - LIE_TAG_BYTES, keys->tag_key,
			sizeof(keys->tag_key), NULL, personal);
}

/* Is it this lie's turn, of those that may be told in a datagram of that
 * collective? */
static inline bool lie_is_due(struct lie *lie, unsigned epoch)
{
	if (lie->epoch != LIE_ANY_EPOCH && lie->epoch != epoch)
		return false;
	lie->met++;
	return lie->met > lie->skip &&
	       (lie->count == 0 || lie->met - lie->skip <= lie->count);
}

static inline size_t lie_resize(const struct lie *lie, uint8_t *datagram,
				size_t byte_count, size_t room_bytes)
{
	size_t wanted = MIN(lie->value, room_bytes);

	if (wanted > byte_count)
		memset(datagram + byte_count, 0, wanted - byte_count);
	return wanted;
}

/*
 * Change a datagram on its way: is_data tells which of the two sockets it came
 * to, room_bytes (at least UDP_STATUS_BYTES_MAX) how long it may become.
 * Returns its length; 0: it is not to be sent.  *told is set if anything has
 * changed.
 */
static inline size_t lie_tell(struct lie *lies, unsigned lie_count,
			      const struct udp_wire_keys *keys, bool is_data,
			      uint8_t *datagram, size_t byte_count,
			      size_t room_bytes, bool *told)
{
	size_t whole = is_data ? UDP_DATA_HEADER_BYTES : UDP_STATUS_FIXED_BYTES;
	bool any = false;

	for (unsigned i = 0; i < lie_count; i++) {
		struct lie *lie = &lies[i];
		unsigned epoch;

		/* The byte that only wakes, or what an earlier lie has left. */
		if (byte_count < whole)
			break;
		epoch = (unsigned)(is_data ? lie_load(datagram +
							      LIE_DATA_EPOCH_AT,
						      2)
					   : lie_load(datagram + LIE_EPOCH_AT,
						      4));
		if ((lie->kind == LIE_SEGMENT || lie->kind == LIE_PAYLOAD) !=
			    is_data &&
		    lie->kind != LIE_DROP && lie->kind != LIE_LENGTH)
			continue;
		if (!lie_is_due(lie, epoch))
			continue;
		if (lie->kind == LIE_DROP)
			byte_count = 0;
		else if (lie->kind == LIE_LENGTH)
			byte_count = lie_resize(lie, datagram, byte_count,
						room_bytes);
		else if (is_data ? !lie_in_data(lie, datagram, byte_count)
				 : !lie_in_status(lie, datagram, &byte_count))
			continue;
		any = true;
	}
	if (any)
		lie_seal(datagram, byte_count, is_data, keys);
	*told |= any;
	return byte_count;
}

#endif /* LIE_H */
