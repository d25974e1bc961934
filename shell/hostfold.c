/*
 * hostfold.c - a list of hosts as a short text that hostlist_add() reads
 * again
 */
#include "shell/hostfold.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* hostlist_add() takes numbers of this length in brackets. */
#define NUMBER_DIGITS_MAX 18
#define NUMBER_MAX UINT64_C(999999999999999999)
/* A name, with its number twice and brackets. */
#define ITEM_BYTES (HOSTLIST_NAME_BYTES + NUMBER_DIGITS_MAX + 4)

/* Names that differ in one number only: the head, first, first + 1 ..., the
 * tail. */
struct fold {
	const char *name; /* the first one */
	size_t head_bytes;
	const char *tail; /* in name */
	int width; /* digits at least: more than 1 if padded with zeros */
	uint64_t first, last;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The offset at which the number begins that differs between the two names; if
 * they differ in something else, they do not fold, and the result is unused. */
static size_t number_offset(const char *name, const char *next)
{
	size_t at = 0;

	while (name[at] != '\0' && name[at] == next[at])
		at++;
	while (at > 0 && is_digit(name[at - 1]))
		at--;
	return at;
}

/* False: there is no number, or it is too long. */
static bool take_number(struct fold *fold)
{
	const char *digits = fold->name + fold->head_bytes;
	const char *at = digits;
	uint64_t value = 0;

	for (; is_digit(*at); at++) {
		if (at - digits == NUMBER_DIGITS_MAX)
			return false;
		value = 10 * value + (uint64_t)(*at - '0');
	}
	if (at == digits)
		return false;
	fold->tail = at;
	fold->width = *digits == '0' ? (int)(at - digits) : 1;
	fold->first = fold->last = value;
	return true;
}

/* True if name is the one that follows the fold's last name. */
static bool is_next(const struct fold *fold, const char *name)
{
	char digits[24];
	int count = snprintf(digits, sizeof(digits), "%0*" PRIu64, fold->width,
			     fold->last + 1);

	return fold->last < NUMBER_MAX &&
	       strncmp(name, fold->name, fold->head_bytes) == 0 &&
	       strncmp(name + fold->head_bytes, digits, (size_t)count) == 0 &&
	       strcmp(name + fold->head_bytes + count, fold->tail) == 0;
}

/* Returns how many names from *names on fold into one: at least 2, with *fold
 * filled, or 1. */
static size_t fold_names(char *const *names, size_t count, struct fold *fold)
{
	size_t folded = 1;

	/* An IPv6 address has brackets of its own, which must not nest. */
	if (count < 2 || strchr(names[0], '['))
		return 1;
	*fold = (struct fold){ .name = names[0] };
	fold->head_bytes = number_offset(names[0], names[1]);
	if (!take_number(fold))
		return 1;
	while (folded < count && is_next(fold, names[folded])) {
		fold->last++;
		folded++;
	}
	return folded;
}

/* item: ITEM_BYTES */
static const char *write_fold(const struct fold *fold, char *item)
{
	snprintf(item, ITEM_BYTES, "%.*s[%0*" PRIu64 "-%0*" PRIu64 "]%s",
		 (int)fold->head_bytes, fold->name, fold->width, fold->first,
		 fold->width, fold->last, fold->tail);
	return item;
}

/* Append text at to; returns the new end, or NULL if it does not fit, or if to
 * is NULL already. */
static char *put_text(char *to, const char *end, const char *text)
{
	while (to && *text != '\0') {
		if (to == end)
			return NULL;
		*to++ = *text++;
	}
	return to;
}

static ssize_t fold_all(char *const *names, size_t count, char *text,
			size_t room)
{
	const char *end = text + room;
	char *to = text;

	for (size_t i = 0; i < count;) {
		char item[ITEM_BYTES];
		struct fold fold;
		size_t folded = fold_names(names + i, count - i, &fold);

		if (i > 0)
			to = put_text(to, end, ",");
		to = put_text(to, end,
			      folded > 1 ? write_fold(&fold, item) : names[i]);
		if (!to)
			return -ENOSPC;
		i += folded;
	}
	return to - text;
}

ssize_t hostfold(const struct hostlist *list, char *text, size_t room)
{
	return fold_all(list->hosts, list->count, text, room);
}

char *hostfold_text(char *const *names, size_t count)
{
	size_t room = 0;
	ssize_t bytes;
	char *text;

	/* Two names that fold may get longer: "a9,a10" is "a[9-10]". */
	for (size_t i = 0; i < count; i++)
		room += strlen(names[i]) + 2;
	text = malloc(room + 1);
	if (!text)
		return NULL;
	bytes = fold_all(names, count, text, room);
	text[MAX(bytes, 0)] = '\0';
	return text;
}
