/* hostlist.c - "node[01-16]", "10.0.0.[1-4]:7300", "^file": lists of hosts */
#include "net/hostlist.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/hostitem.h"
#include "net/hostset.h"

#define BLANKS " \t\r\n"

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

static void set_filter(struct hostset *set, struct hostset *other, bool listed)
{
	hostset_filter(other, &set->list, listed);
	/* This cannot fail, since the list has not become longer. */
	hostset_index(set);
}

/* --- files --------------------------------------------------------------- */

static int evaluate(const struct host_source *source, struct hostset *result);

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

/* Read to the file's end.  Returns the length, or -errno. */
static ssize_t read_all(int fd, char *bytes, size_t room)
{
	size_t length = 0;
	ssize_t got;

	do {
		got = read(fd, bytes + length, room - length);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0)
			length += (size_t)got;
	} while (got != 0 && length < room);
	return (ssize_t)length;
}

/* The whole file and a NUL; the caller frees it. */
static int read_text(int fd, struct span *text)
{
	char *bytes = malloc(HOSTLIST_FILE_BYTES + 1);
	ssize_t length;

	if (!bytes)
		return -ENOMEM;
	length = read_all(fd, bytes, HOSTLIST_FILE_BYTES + 1);
	if (length > (ssize_t)HOSTLIST_FILE_BYTES)
		length = -EFBIG;
	else if (length > 0 && memchr(bytes, '\0', (size_t)length))
		length = -EINVAL;
	if (length < 0) {
		free(bytes);
		return (int)length;
	}
	bytes[length] = '\0';
	erase_comments(bytes, bytes + length);
	*text = (struct span){ bytes, bytes + length };
	return 0;
}

static int read_path(const char *path, struct span *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int error;

	if (fd < 0)
		return -errno;
	error = read_text(fd, text);
	close(fd);
	return error;
}

static int evaluate_path(const struct host_source *parent, const char *path,
			 struct hostset *result)
{
	struct host_source source = *parent;
	int error = read_path(strcmp(path, "-") == 0 ? "/dev/stdin" : path,
			      &source.text);

	if (error)
		return failure_set(source.failure, EXIT_FILE, "host list",
				   -error, "%.100s", path);
	source.file = path;
	source.depth++;
	error = evaluate(&source, result);
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
		return host_source_complain(source, item, ELOOP,
					    "too many files");
	source->budget->files_left--;
	if (item.end - item.begin == 1)
		return host_source_complain(source, item, EINVAL,
					    "no file's name");
	path = strndup(item.begin + 1, (size_t)(item.end - item.begin - 1));
	if (!path)
		return host_source_check(source, item, -ENOMEM);
	error = evaluate_path(source, path, result);
	free(path);
	return error;
}

/* --- lists --------------------------------------------------------------- */

/* What an item does to the list before it. */
enum effect { EFFECT_ADD, EFFECT_REMOVE, EFFECT_KEEP };

struct evaluation {
	const struct host_source *source;
	struct hostset *result;	 /* so far */
	struct hostset *dropped; /* by items that begin with '-' */
};

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

static int join(const struct evaluation *evaluation, enum effect effect,
		bool drop, struct span item, struct hostset *operand)
{
	int error;

	if (effect != EFFECT_ADD) {
		set_filter(evaluation->result, operand, effect == EFFECT_KEEP);
		return 0;
	}
	error = hostset_add_all(drop ? evaluation->dropped : evaluation->result,
				&operand->list);
	return host_source_check(evaluation->source, item, error);
}

static int apply(const struct evaluation *evaluation, enum effect effect,
		 struct span item)
{
	bool drop = effect == EFFECT_ADD && item.begin[0] == '-' &&
		    item.end - item.begin > 1;
	struct hostset operand = { 0 };
	int error;

	item.begin += drop;
	if (is_path(item))
		error = evaluate_file(evaluation->source, item, &operand);
	else
		error = hostitem_expand(evaluation->source, item, &operand);
	if (!error)
		error = join(evaluation, effect, drop, item, &operand);
	hostset_free(&operand);
	return error;
}

/* What a separator says about the item behind it; blanks alone mean: add. */
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

	return host_source_complain(source, shown, EINVAL,
				    "a host's name is missing");
}

static int walk(const struct evaluation *evaluation)
{
	struct span text = evaluation->source->text;
	const char *before = text.begin;
	enum effect effect = EFFECT_ADD;

	text.begin = skip_blanks(text);
	/* A file may be empty. */
	if (text.begin == text.end && evaluation->source->file)
		return 0;
	for (;;) {
		struct span item = { text.begin, item_end(text) };
		int error;

		if (item.begin == item.end)
			return name_is_missing(evaluation->source, before,
					       item.end);
		error = apply(evaluation, effect, item);
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

/* result: empty */
static int evaluate(const struct host_source *source, struct hostset *result)
{
	struct hostset dropped = { 0 };
	const struct evaluation evaluation = {
		.source = source,
		.result = result,
		.dropped = &dropped,
	};
	int error = walk(&evaluation);

	if (!error && dropped.list.count > 0)
		set_filter(result, &dropped, false);
	hostset_free(&dropped);
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
	const struct host_source source = {
		.failure = failure,
		.text = { text, text + strlen(text) },
		.budget = &budget,
	};

	return evaluate(&source, set);
}

/* Change *list only if all has succeeded. */
static int append(struct hostlist *list, const struct hostlist *more)
{
	struct hostset whole = { .list = *list };
	size_t count = list->count;
	int error = hostset_index(&whole);

	if (!error)
		error = hostset_add_all(&whole, more);
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
	hostset_free(&set);
	return error;
}

int hostlist_exclude(struct hostlist *list, const char *text,
		     struct failure *failure)
{
	struct hostset set = { 0 };
	int error = read_list(text, &set, failure);

	if (!error)
		hostset_filter(&set, list, false);
	hostset_free(&set);
	return error;
}
