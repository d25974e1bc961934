/* hostlist.c - "node[01-16]", "10.0.0.[1-4]:7300", "^file": lists of hosts */
#include "net/hostlist.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/format.h"

/* A longer name of a file is shortened to this in a message. */
#define PATH_BYTES 100

#define BLANKS " \t\r\n"
#define NUMBER_DIGITS_MAX 18 /* what is surely below 2^63 */

static void list_cut(struct hostlist *list, size_t count)
{
	while (list->count > count)
		free(list->hosts[--list->count]);
}

void hostlist_free(struct hostlist *list)
{
	list_cut(list, 0);
	free(list->hosts);
	*list = (struct hostlist){ 0 };
}

/* --- sets ---------------------------------------------------------------- */

#define HOSTSET_SLOTS (4 * HOSTLIST_MAX)
/* Up to this many names are compared one by one, without a hash table: most
 * sets have no more, and each start of a job makes several sets. */
#define HOSTSET_FEW 64

/* A list of hosts that finds its names fast. */
struct hostset {
	struct hostlist list;
	/* The hash table, owned: an index into the list + 1; 0: empty.  NULL
	 * while there are at most HOSTSET_FEW names. */
	uint16_t *slots;
};

/* FNV-1a */
static uint32_t hash_of(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name != '\0'; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return hash;
}

/* The name's entry of the table, or the empty one where it belongs. */
static uint16_t *slot_of(const struct hostset *set, const char *name)
{
	uint32_t slot = hash_of(name) % HOSTSET_SLOTS;

	while (set->slots[slot] != 0 &&
	       strcmp(set->list.hosts[set->slots[slot] - 1], name) != 0)
		slot = (slot + 1) % HOSTSET_SLOTS;
	return &set->slots[slot];
}

static bool has(const struct hostset *set, const char *name)
{
	if (set->slots)
		return *slot_of(set, name) != 0;
	for (size_t i = 0; i < set->list.count; i++)
		if (strcmp(set->list.hosts[i], name) == 0)
			return true;
	return false;
}

/* Give back what the set holds.  A set of zeros is empty, and so is one that
 * was freed. */
static void set_free(struct hostset *set)
{
	hostlist_free(&set->list);
	free(set->slots);
	set->slots = NULL;
}

/* Rebuild the table after the caller has changed the list itself.  Returns 0;
 * or -ENOMEM, but only if the list has become longer. */
static int set_index(struct hostset *set)
{
	if (!set->slots && set->list.count <= HOSTSET_FEW)
		return 0;
	if (!set->slots)
		set->slots = malloc(HOSTSET_SLOTS * sizeof(*set->slots));
	if (!set->slots)
		return -ENOMEM;
	memset(set->slots, 0, HOSTSET_SLOTS * sizeof(*set->slots));
	for (size_t i = 0; i < set->list.count; i++)
		*slot_of(set, set->list.hosts[i]) = (uint16_t)(i + 1);
	return 0;
}

/* Make room for one more name: the capacity is the count's next power of two.
 */
static int list_reserve(struct hostlist *list)
{
	size_t count = list->count;
	char **hosts;

	if (count & (count - 1))
		return 0;
	hosts = realloc(list->hosts, MAX(2 * count, 1) * sizeof(*hosts));
	if (!hosts)
		return -ENOMEM;
	list->hosts = hosts;
	return 0;
}

static void note_duplicate(struct hostlist *list, const char *name)
{
	if (list->duplicate[0] == '\0')
		snprintf(list->duplicate, sizeof(list->duplicate), "%s", name);
}

/* Append the name, unless the set has it.  Returns 0, -E2BIG or -ENOMEM. */
static int set_add(struct hostset *set, const char *name)
{
	char *copy;

	if (has(set, name)) {
		note_duplicate(&set->list, name);
		return 0;
	}
	if (set->list.count == HOSTLIST_MAX)
		return -E2BIG;
	if (list_reserve(&set->list) < 0)
		return -ENOMEM;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	set->list.hosts[set->list.count++] = copy;
	if (!set->slots)
		return set_index(set);
	*slot_of(set, name) = (uint16_t)set->list.count;
	return 0;
}

/* Append all names, up to the first error, which it returns. */
static int set_add_all(struct hostset *set, const struct hostlist *list)
{
	int error = 0;

	note_duplicate(&set->list, list->duplicate);
	for (size_t i = 0; i < list->count && !error; i++)
		error = set_add(set, list->hosts[i]);
	return error;
}

/* Cut off the port of "host:1" and "[::1]:1", and nothing of "::1". */
static bool without_port(const char *name, char host[HOSTLIST_NAME_BYTES])
{
	const char *colon = strrchr(name, ':');

	if (!colon || (strchr(name, ':') != colon && colon[-1] != ']'))
		return false;
	snprintf(host, HOSTLIST_NAME_BYTES, "%.*s", (int)(colon - name), name);
	return true;
}

static bool lists(struct hostset *set, const char *name)
{
	char host[HOSTLIST_NAME_BYTES];

	return has(set, name) || (without_port(name, host) && has(set, host));
}

/* Keep in list only the names that the set has (listed), or only the others.  A
 * name in the set that has no port stands for that host with any port. */
static void filter_list(struct hostset *set, struct hostlist *list, bool listed)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (lists(set, list->hosts[i]) == listed)
			list->hosts[kept++] = list->hosts[i];
		else
			free(list->hosts[i]);
	}
	list->count = kept;
}

static void set_filter(struct hostset *set, struct hostset *other, bool listed)
{
	filter_list(other, &set->list, listed);
	/* This cannot fail, since the list has not become longer. */
	set_index(set);
}

/* --- messages ------------------------------------------------------------ */

/* Bytes in memory; a NUL need not follow. */
struct span {
	const char *begin, *end;
};

/* What the whole text may still list, with the files that it names. */
struct host_budget {
	size_t names_left; /* of HOSTLIST_NAMES_MAX */
	unsigned files_left;
};

/* A list as text, what its limits and messages need, and what it lists. */
struct host_source {
	struct failure *failure;
	const char *file; /* NULL: the caller's text */
	struct span text;
	unsigned depth;
	struct host_budget *budget;
	struct hostset *result;	 /* so far */
	struct hostset *dropped; /* by items that begin with '-' */
};

static unsigned line_of(const struct host_source *source, struct span item)
{
	unsigned line = 1;

	for (const char *at = source->text.begin; at < item.begin; at++)
		line += *at == '\n';
	return line;
}

/* Fill the source's failure: "FILE:LINE: 'ITEM': WHY".  Returns -error. */
static int complain(const struct host_source *source, struct span item,
		    int error, const char *why)
{
	const int shown_max = 40;
	int shown = (int)MIN(item.end - item.begin, shown_max);
	const char *dots = item.end - item.begin > shown_max ? "..." : "";
	char line[16] = "";

	if (source->file)
		snprintf(line, sizeof(line), ":%u: ", line_of(source, item));
	failure_set(source->failure, EXIT_USAGE, "host list", 0,
		    "%.60s%s'%.*s%s': %s", source->file ? source->file : "",
		    line, shown, item.begin, dots, why);
	return -error;
}

/* Complain about the result of an operation on a set: 0, -E2BIG or -ENOMEM. */
static int check_added(const struct host_source *source, struct span item,
		       int error)
{
	if (error == -ENOMEM)
		return failure_set(source->failure, EXIT_RESOURCES, "host list",
				   ENOMEM, "");
	return error ? complain(source, item, -error, "too many hosts") : 0;
}

/* --- items --------------------------------------------------------------- */

struct expansion {
	const struct host_source *source;
	struct hostset *set;
	struct span item;
	const char *closing; /* the ']' of an IPv6 address; NULL: none */
	char name[HOSTLIST_NAME_BYTES];
};

struct number {
	uint64_t value;
	int digits;
	bool padded; /* begins with a zero that is not all of it */
};

struct range {
	uint64_t first, last, step;
	int width; /* at least so many digits */
};

static int expand(struct expansion *expansion, const char *at, size_t length);

static int reject(const struct expansion *expansion, const char *why)
{
	return complain(expansion->source, expansion->item, EINVAL, why);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_byte(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || (c != '\0' && strchr(".-_:%", c));
}

static bool take_number(const char **at, struct number *number)
{
	const char *begin = *at;

	*number = (struct number){ 0 };
	for (; is_digit(**at); (*at)++) {
		if (++number->digits > NUMBER_DIGITS_MAX)
			return false;
		number->value = 10 * number->value + (uint64_t)(**at - '0');
	}
	number->padded = number->digits > 1 && *begin == '0';
	return number->digits > 0;
}

/* Returns NULL, or what is wrong.  Moves *at, which a ']' is known to follow,
 * behind the number or range. */
static const char *take_range(const char **at, struct range *range)
{
	static const char malformed[] = "want numbers, ranges and steps in "
					"brackets, as [1-3,8,10-20/2]";
	struct number first, last, step = { .value = 1 };

	if (!take_number(at, &first))
		return malformed;
	last = first;
	if (**at == '-') {
		++*at;
		if (!take_number(at, &last))
			return malformed;
		if (**at == '/') {
			++*at;
			if (!take_number(at, &step))
				return malformed;
		}
	}
	if (step.value == 0)
		return "a step of zero";
	if (last.value < first.value)
		return "a range that counts down";
	if ((last.padded && last.digits != first.digits) ||
	    (first.padded && last.digits < first.digits))
		return "a range with two paddings";
	*range = (struct range){
		.first = first.value,
		.last = last.value,
		.step = step.value,
		.width = first.padded ? first.digits : 1,
	};
	return NULL;
}

/* Expand each number of the range, followed by all expansions of the rest. */
static int expand_range(struct expansion *expansion, const struct range *range,
			const char *rest, size_t length)
{
	size_t room = sizeof(expansion->name) - length;
	uint64_t number = range->first;

	for (;;) {
		int digits = snprintf(expansion->name + length, room,
				      "%0*" PRIu64, range->width, number);
		int error;

		if ((size_t)digits >= room)
			return reject(expansion, "too long a name");
		error = expand(expansion, rest, length + (size_t)digits);
		if (error)
			return error;
		if (range->last - number < range->step)
			return 0;
		number += range->step;
	}
}

/* at: behind the '[' */
static int expand_bracket(struct expansion *expansion, const char *at,
			  size_t length)
{
	const char *end = memchr(at, ']', (size_t)(expansion->item.end - at));

	if (!end)
		return reject(expansion, "a '[' without its ']'");
	for (;; at++) {
		struct range range;
		const char *why = take_range(&at, &range);
		int error;

		if (!why && at != end && *at != ',')
			why = "neither ',' nor ']' behind a number";
		if (why)
			return reject(expansion, why);
		error = expand_range(expansion, &range, end + 1, length);
		if (error || at == end)
			return error;
	}
}

static int add_name(struct expansion *expansion)
{
	const struct host_source *source = expansion->source;
	int error = -E2BIG;

	if (source->budget->names_left > 0) {
		source->budget->names_left--;
		error = set_add(expansion->set, expansion->name);
	}
	return check_added(source, expansion->item, error);
}

/* Append all names that begin with the length bytes in name and go on with an
 * expansion of the item from at on.  The function calls itself once for each
 * bracket, each of which puts a digit into name: so never deeper than a name is
 * long. */
static int expand(struct expansion *expansion, const char *at, size_t length)
{
	for (; at < expansion->item.end && *at != '['; at++) {
		if (!is_name_byte(*at) && at != expansion->closing)
			return reject(expansion,
				      "a character that no host name has");
		if (length == sizeof(expansion->name) - 1)
			return reject(expansion, "too long a name");
		expansion->name[length++] = *at;
	}
	if (at < expansion->item.end)
		return expand_bracket(expansion, at + 1, length);
	expansion->name[length] = '\0';
	return add_name(expansion);
}

/* The bracket that ends the IPv6 address at the beginning of an item; NULL: the
 * item does not begin with one, since no colon is between the brackets. */
static const char *address_closing(struct span item)
{
	bool colon = false;
	int depth = 0;

	for (const char *at = item.begin; at < item.end; at++) {
		depth += (*at == '[') - (*at == ']');
		if (depth <= 0)
			return depth == 0 && colon ? at : NULL;
		colon = colon || *at == ':';
	}
	return NULL;
}

/* Append all names that item stands for to the set; item lies in the source's
 * text and is not empty.  Returns 0 or -errno. */
static int expand_item(const struct host_source *source, struct span item,
		       struct hostset *set)
{
	struct expansion expansion = {
		.source = source,
		.set = set,
		.item = item,
		.closing = address_closing(item),
	};

	if (item.begin[0] == '-')
		return reject(&expansion, "a name cannot begin with '-'");
	if (!expansion.closing)
		return expand(&expansion, item.begin, 0);
	expansion.name[0] = '[';
	return expand(&expansion, item.begin + 1, 1);
}

/* --- files --------------------------------------------------------------- */

static int evaluate(struct host_source *source);

/* Replace comments by blanks, so that a file reads as one list. */
static void erase_comments(char *at, const char *end)
{
	bool comment = false;

	for (; at < end; at++) {
		comment = *at != '\n' && (comment || *at == '#');
		if (comment)
			*at = ' ';
	}
}

/* The whole file and a NUL; the caller frees it. */
static int read_path(const char *path, struct span *text)
{
	char *bytes = malloc(HOSTLIST_FILE_BYTES + 1);
	FILE *file;
	size_t length = 0;
	int error = 0;

	if (!bytes)
		return -ENOMEM;
	file = fopen(path, "re");
	if (file)
		length = fread(bytes, 1, HOSTLIST_FILE_BYTES + 1, file);
	if (!file || ferror(file))
		error = -errno;
	else if (length > HOSTLIST_FILE_BYTES)
		error = -EFBIG;
	else if (memchr(bytes, '\0', length))
		error = -EINVAL;
	if (file)
		fclose(file);
	if (error) {
		free(bytes);
		return error;
	}
	bytes[length] = '\0';
	erase_comments(bytes, bytes + length);
	*text = (struct span){ bytes, bytes + length };
	return 0;
}

static int evaluate_path(const struct host_source *parent, const char *path,
			 struct hostset *result)
{
	struct host_source source = *parent;
	int error = read_path(strcmp(path, "-") == 0 ? "/dev/stdin" : path,
			      &source.text);
	char name[PATH_BYTES];

	if (error)
		return failure_set(source.failure, EXIT_FILE, "host list",
				   -error, "%s",
				   format_shortened(name, sizeof(name), path,
						    strlen(path)));
	source.file = path;
	source.depth++;
	source.result = result;
	error = evaluate(&source);
	free((char *)source.text.begin);
	return error;
}

/* item: "^FILE" */
static int evaluate_file(const struct host_source *source, struct span item,
			 struct hostset *result)
{
	char *path;
	int error;

	/* Without a limit, files that name each other would be read for ever.
	 */
	if (source->depth == HOSTLIST_FILES_DEEP ||
	    source->budget->files_left == 0)
		return complain(source, item, ELOOP, "too many files");
	source->budget->files_left--;
	if (item.end - item.begin == 1)
		return complain(source, item, EINVAL, "no file's name");
	path = strndup(item.begin + 1, (size_t)(item.end - item.begin - 1));
	if (!path)
		return check_added(source, item, -ENOMEM);
	error = evaluate_path(source, path, result);
	free(path);
	return error;
}

/* --- lists --------------------------------------------------------------- */

/* The effect of an item on the list before it, or, dropped, on all of it. */
enum effect { EFFECT_ADD, EFFECT_DROP, EFFECT_REMOVE, EFFECT_KEEP };

static bool is_one_of(char c, const char *characters)
{
	return c != '\0' && strchr(characters, c);
}

static const char *skip_blanks(struct span text)
{
	while (text.begin < text.end && is_one_of(*text.begin, BLANKS))
		text.begin++;
	return text.begin;
}

static bool is_path(struct span item)
{
	return item.begin < item.end && item.begin[0] == '^';
}

/* A path may hold any character except a comma and blanks.  Brackets may hold
 * commas, but no blanks. */
static const char *item_end(struct span text)
{
	bool dash = text.begin < text.end && text.begin[0] == '-';
	bool path = is_path((struct span){ text.begin + dash, text.end });
	const char *ends = path ? "," BLANKS : ",!&" BLANKS;
	const char *at = text.begin;
	int depth = 0;

	for (; at < text.end; at++) {
		if (!path)
			depth += (*at == '[') - (*at == ']');
		if (is_one_of(*at, depth > 0 ? BLANKS : ends))
			break;
	}
	return at;
}

static int apply(const struct host_source *source, enum effect effect,
		 struct span item)
{
	struct hostset operand = { 0 };
	int error;

	if (effect == EFFECT_ADD && item.begin[0] == '-' &&
	    item.end - item.begin > 1) {
		effect = EFFECT_DROP;
		item.begin++;
	}
	error = is_path(item) ? evaluate_file(source, item, &operand)
			      : expand_item(source, item, &operand);
	if (!error && (effect == EFFECT_REMOVE || effect == EFFECT_KEEP)) {
		set_filter(source->result, &operand, effect == EFFECT_KEEP);
	} else if (!error) {
		error = set_add_all(effect == EFFECT_DROP ? source->dropped
							  : source->result,
				    &operand.list);
		error = check_added(source, item, error);
	}
	set_free(&operand);
	return error;
}

/* Take a separator, which tells the effect of the item behind it; blanks alone
 * mean: add. */
static enum effect take_separator(struct span *text)
{
	char separator = *text->begin;

	if (is_one_of(separator, ",!&"))
		text->begin++;
	return separator == '!'	  ? EFFECT_REMOVE
	       : separator == '&' ? EFFECT_KEEP
				  : EFFECT_ADD;
}

/* The message shows what is before the gap, and one character behind it. */
static int name_is_missing(const struct host_source *source, const char *before,
			   const char *gap)
{
	struct span shown = { before, gap + (gap < source->text.end) };

	return complain(source, shown, EINVAL, "a host's name is missing");
}

static int walk(const struct host_source *source)
{
	struct span text = source->text;
	const char *before = text.begin;
	enum effect effect = EFFECT_ADD;

	text.begin = skip_blanks(text);
	/* A file may be empty. */
	if (text.begin == text.end && source->file)
		return 0;
	for (;;) {
		struct span item = { text.begin, item_end(text) };
		int error;

		if (item.begin == item.end)
			return name_is_missing(source, before, item.end);
		error = apply(source, effect, item);
		if (error)
			return error;
		before = item.begin;
		text.begin = item.end;
		text.begin = skip_blanks(text);
		if (text.begin == text.end)
			return 0;
		effect = take_separator(&text);
		text.begin = skip_blanks(text);
	}
}

/* Fill source->result, which is empty. */
static int evaluate(struct host_source *source)
{
	struct hostset dropped = { 0 };
	int error;

	source->dropped = &dropped;
	error = walk(source);
	source->dropped = NULL;
	if (!error && dropped.list.count > 0)
		set_filter(source->result, &dropped, false);
	set_free(&dropped);
	return error;
}

/* Add what the caller's text lists to *set, which the caller frees, also after
 * an error. */
static int read_list(const char *text, struct hostset *set,
		     struct failure *failure)
{
	struct host_budget budget = {
		.names_left = HOSTLIST_NAMES_MAX,
		.files_left = HOSTLIST_FILES_MAX,
	};
	struct host_source source = {
		.failure = failure,
		.text = { text, text + strlen(text) },
		.budget = &budget,
		.result = set,
	};

	return evaluate(&source);
}

/* Change *list only if all has succeeded. */
static int append(struct hostlist *list, const struct hostlist *more)
{
	struct hostset whole = { .list = *list };
	size_t count = list->count;
	int error = set_index(&whole);

	if (!error)
		error = set_add_all(&whole, more);
	*list = whole.list;
	free(whole.slots);
	if (error)
		list_cut(list, count);
	return error;
}

int hostlist_add(struct hostlist *list, const char *text,
		 struct failure *failure)
{
	struct hostset set = { 0 };
	int error = read_list(text, &set, failure);

	if (error)
		goto out;
	error = append(list, &set.list);
	if (error == -E2BIG)
		failure_set(failure, EXIT_USAGE, "host list", 0,
			    "more than %d hosts", HOSTLIST_MAX);
	else if (error)
		failure_set(failure, EXIT_RESOURCES, "host list", -error, "");
out:
	set_free(&set);
	return error;
}

int hostlist_exclude(struct hostlist *list, const char *text,
		     struct failure *failure)
{
	struct hostset set = { 0 };
	int error = read_list(text, &set, failure);

	if (!error)
		filter_list(&set, list, false);
	set_free(&set);
	return error;
}
