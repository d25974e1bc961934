/*
 * options.c - reads options from a table of those that a program has
 */
#include "base/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/parse.h"

/* Room for a list of choices; it fits into failure.why with some words. */
#define LIST_BYTES 128
/* A value is shortened to this, where a reason names it twice. */
#define VALUE_BYTES 48

void options_begin(struct options_reader *reader,
		   const struct options_entry *entries, unsigned entry_count,
		   char **words)
{
	*reader = (struct options_reader){
		.entries = entries,
		.entry_count = MIN(entry_count, OPTIONS_ENTRIES_MAX),
		.operands = words,
		.next = words,
	};
}

/* --- mistakes ------------------------------------------------------------- */

#define refuse(reader, failure, ...)                                           \
	failure_set(failure, EXIT_USAGE, (reader)->text, 0, __VA_ARGS__)

/* Returns the option whose name begins with this one: the option that a program
 * with abbreviations would have taken. */
static const char *find_longer_name(const struct options_reader *reader,
				    const char *name, size_t length)
{
	for (unsigned i = 0; length > 0 && i < reader->entry_count; i++) {
		const char *longer = reader->entries[i].name;

		if (longer && strncmp(longer, name, length) == 0)
			return longer;
	}
	return NULL;
}

/* An option that is in no table: name, of this length, without its dashes. */
static int refuse_unknown(const struct options_reader *reader, const char *name,
			  size_t length, bool is_letter,
			  struct failure *failure)
{
	const char *longer = NULL;

	for (unsigned i = 0; i < reader->hint_count; i++) {
		const struct options_hint *hint = &reader->hints[i];

		if (is_letter ? hint->letter == *name
			      : hint->name && strlen(hint->name) == length &&
					memcmp(hint->name, name, length) == 0)
			return refuse(reader, failure, "%s", hint->instead);
	}
	if (!is_letter)
		longer = find_longer_name(reader, name, length);
	if (longer)
		return refuse(reader, failure,
			      "no such option; is --%.64s meant?", longer);
	return refuse(reader, failure, "no such option; see --help");
}

/* The name is that of an option in the table, and leaves room. */
static void add_value(struct options_reader *reader)
{
	size_t length = reader->name_bytes;

	if (reader->text[1] == '-')
		reader->text[length++] = '=';
	format_shortened(reader->text + length, sizeof(reader->text) - length,
			 reader->value, strlen(reader->value));
}

int options_refuse(struct options_reader *reader, struct failure *failure,
		   const char *format, ...)
{
	char reason[FAILURE_WHY_BYTES];
	va_list arguments;

	if (reader->value)
		add_value(reader);
	va_start(arguments, format);
	vsnprintf(reason, sizeof(reason), format, arguments);
	va_end(arguments);
	return refuse(reader, failure, "%s", reason);
}

/* --- options -------------------------------------------------------------- */

/* A new option; text is how it was given, as messages have it. */
static void name_option(struct options_reader *reader, const char *dashes,
			const char *name, size_t length)
{
	size_t dash_count = strlen(dashes);

	reader->value = NULL;
	memcpy(reader->text, dashes, dash_count);
	format_shortened(reader->text + dash_count,
			 sizeof(reader->text) - dash_count, name, length);
	reader->name_bytes = strlen(reader->text);
}

static int check_file(const struct options_reader *reader,
		      const struct options_entry *entry,
		      struct failure *failure)
{
	char value[VALUE_BYTES];

	if (strcmp(reader->value, "-") == 0 && entry->kind == OPTIONS_STREAMS)
		return 0;
	if (strcmp(reader->value, "-") == 0)
		return refuse(reader, failure,
			      "'-' is no stream here: %s is a regular file; "
			      "write ./- if that is its name",
			      entry->value);
	if (reader->value[0] != '-')
		return 0;
	format_shortened(value, sizeof(value), reader->value,
			 strlen(reader->value));
	return refuse(reader, failure,
		      "%s is '%s', which looks like an option; write ./%s if "
		      "that is its name",
		      entry->value, value, value);
}

static int check_value(const struct options_reader *reader,
		       const struct options_entry *entry,
		       struct failure *failure)
{
	if (!reader->value)
		return refuse(reader, failure, "%s is missing", entry->value);
	if (reader->value[0] == '\0')
		return refuse(reader, failure, "%s is empty", entry->value);
	if (entry->kind == OPTIONS_FILE || entry->kind == OPTIONS_FILES ||
	    entry->kind == OPTIONS_STREAMS)
		return check_file(reader, entry, failure);
	return 0;
}

/* True if the option takes no value from the next word, and its letter none at
 * all. */
static bool is_flag(const struct options_entry *entry)
{
	return entry->kind == OPTIONS_FLAG || entry->kind == OPTIONS_MAYBE;
}

/* The first entry of this identifier, which must be in the table. */
static unsigned find_id(const struct options_reader *reader, int id)
{
	unsigned i = 0;

	while (reader->entries[i].id != id)
		i++;
	return i;
}

/* An option that has been named and has its value, if there is one. */
static int accept(struct options_reader *reader,
		  const struct options_entry *entry, struct failure *failure)
{
	unsigned first = find_id(reader, entry->id);
	uint64_t bit = (uint64_t)1 << first;
	int ret = 0;

	if ((reader->given & bit) != 0 &&
	    (entry->kind == OPTIONS_VALUE || entry->kind == OPTIONS_FILE))
		return refuse(reader, failure, "given twice");
	if (!is_flag(entry) || reader->value)
		ret = check_value(reader, entry, failure);
	reader->given |= bit;
	reader->values[first] = reader->value;
	return ret < 0 ? ret : entry->id;
}

/* The next word, as the value of an option; NULL: there is none. */
static const char *take_word(struct options_reader *reader)
{
	if (!*reader->next || strcmp(*reader->next, "--") == 0)
		return NULL;
	return *reader->next++;
}

static const struct options_entry *
find_name(const struct options_reader *reader, const char *name, size_t length)
{
	for (unsigned i = 0; i < reader->entry_count; i++) {
		const char *candidate = reader->entries[i].name;

		if (candidate && strlen(candidate) == length &&
		    memcmp(candidate, name, length) == 0)
			return &reader->entries[i];
	}
	return NULL;
}

static const struct options_entry *
find_letter(const struct options_reader *reader, char letter)
{
	for (unsigned i = 0; i < reader->entry_count; i++)
		if (reader->entries[i].letter == letter)
			return &reader->entries[i];
	return NULL;
}

/* "name", "name=VALUE": what follows "--". */
static int read_name(struct options_reader *reader, const char *name,
		     struct failure *failure)
{
	size_t length = strcspn(name, "=");
	const struct options_entry *entry = find_name(reader, name, length);

	/* "--=x" has no name; the message shows all of it. */
	name_option(reader, "--", name, length > 0 ? length : strlen(name));
	if (!entry)
		return refuse_unknown(reader, name, length, false, failure);
	if (entry->kind == OPTIONS_FLAG && name[length] == '=')
		return refuse(reader, failure, "takes no value");
	if (name[length] == '=')
		reader->value = name + length + 1;
	else if (!is_flag(entry))
		reader->value = take_word(reader);
	return accept(reader, entry, failure);
}

/* The first of reader->letters, which are not empty. */
static int read_letter(struct options_reader *reader, struct failure *failure)
{
	const char *letter = reader->letters;
	size_t length = MAX(format_utf8_length(letter), 1);
	const char *rest = letter + length;
	const struct options_entry *entry = find_letter(reader, *letter);

	name_option(reader, "-", letter, length);
	reader->letters = NULL;
	if (!entry)
		return refuse_unknown(reader, letter, length, true, failure);
	if (is_flag(entry) && *rest == '=')
		return refuse(reader, failure, "takes no value");
	if (is_flag(entry))
		reader->letters = *rest != '\0' ? rest : NULL;
	else
		reader->value = *rest != '\0' ? rest : take_word(reader);
	return accept(reader, entry, failure);
}

/* --- words ---------------------------------------------------------------- */

/* The words that were not read are operands, behind those met before. */
static int finish(struct options_reader *reader)
{
	while (*reader->next)
		reader->operands[reader->operand_count++] = *reader->next++;
	reader->operands[reader->operand_count] = NULL;
	reader->value = NULL;
	return 0;
}

/* Returns the identifier of the next option; 0 after the last one; or -EINVAL
 * with *failure filled. */
static int next_option(struct options_reader *reader, struct failure *failure)
{
	if (reader->letters)
		return read_letter(reader, failure);
	while (*reader->next) {
		char *word = *reader->next;

		if (word[0] != '-' || word[1] == '\0') {
			if (reader->stops_at_operand)
				break;
			reader->operands[reader->operand_count++] = word;
			reader->next++;
			continue;
		}
		reader->next++;
		if (strcmp(word, "--") == 0) {
			reader->has_separator = true;
			break;
		}
		if (word[1] == '-')
			return read_name(reader, word + 2, failure);
		reader->letters = word + 1;
		return read_letter(reader, failure);
	}
	return finish(reader);
}

int options_read(struct options_reader *reader,
		 int (*take)(void *context, int id, struct failure *failure),
		 void *context, struct failure *failure)
{
	int id;

	while ((id = next_option(reader, failure)) > 0) {
		int ret;

		if (id == OPTIONS_HELP || id == OPTIONS_VERSION)
			return id;
		ret = take(context, id, failure);
		if (ret < 0)
			return ret;
	}
	return id;
}

bool options_given(const struct options_reader *reader, int id)
{
	return (reader->given >> find_id(reader, id) & 1) != 0;
}

const char *options_value(const struct options_reader *reader, int id)
{
	return reader->values[find_id(reader, id)];
}

int options_refuse_entry(struct options_reader *reader, int id,
			 struct failure *failure, const char *reason)
{
	const struct options_entry *entry =
		&reader->entries[find_id(reader, id)];

	if (entry->name)
		name_option(reader, "--", entry->name, strlen(entry->name));
	else
		name_option(reader, "-", &entry->letter, 1);
	return refuse(reader, failure, "%s", reason);
}

int options_check(struct options_reader *reader,
		  const struct options_rule *rules, unsigned rule_count,
		  struct failure *failure)
{
	for (unsigned i = 0; i < rule_count; i++)
		if (rules[i].is_broken && options_given(reader, rules[i].id))
			return options_refuse_entry(reader, rules[i].id,
						    failure, rules[i].reason);
	return 0;
}

/* --- values --------------------------------------------------------------- */

int options_number(struct options_reader *reader, uint64_t min, uint64_t max,
		   uint64_t *number, struct failure *failure)
{
	if (parse_u64(reader->value, min, max, number) == 0)
		return 0;
	return options_refuse(reader, failure, "not a number from %llu to %llu",
			      (unsigned long long)min, (unsigned long long)max);
}

int options_size(struct options_reader *reader, uint64_t min, uint64_t max,
		 uint64_t *bytes, struct failure *failure)
{
	int error = parse_size(reader->value, min, max, bytes);

	if (error == 0)
		return 0;
	if (error == -ERANGE)
		return options_refuse(
			reader, failure, "not from %llu to %llu bytes",
			(unsigned long long)min, (unsigned long long)max);
	return options_refuse(reader, failure,
			      "not a size: digits, and K, M, G or T for powers "
			      "of 1024, such as 1536M");
}

int options_share(struct options_reader *reader, uint64_t min, uint64_t max,
		  uint64_t *bytes, unsigned *percent, struct failure *failure)
{
	const char *sign = strchr(reader->value, '%');
	char digits[sizeof("100")];
	uint64_t number = 0;

	*percent = 0;
	if (!sign)
		return options_size(reader, min, max, bytes, failure);
	snprintf(digits, sizeof(digits), "%.*s", (int)(sign - reader->value),
		 reader->value);
	if (sign[1] != '\0' || sign - reader->value >= (int)sizeof(digits) ||
	    parse_u64(digits, 1, 100, &number) < 0)
		return options_refuse(reader, failure,
				      "not a whole number from 1%% to 100%%");
	*percent = (unsigned)number;
	return 0;
}

int options_take_row(struct options_reader *reader, int id,
		     const struct options_row *rows, unsigned row_count,
		     void *target, struct failure *failure)
{
	static const uint64_t factors[] = {
		[OPTIONS_NUMBER] = 1,
		[OPTIONS_SIZE] = 1,
		[OPTIONS_MS] = NS_PER_MS,
		[OPTIONS_SECONDS] = NS_PER_S,
	};
	const struct options_row *row = rows;
	uint64_t value = 0;
	void *number;
	int error;

	while (row < rows + row_count && row->id != id)
		row++;
	if (row == rows + row_count)
		return 0;
	error = row->unit == OPTIONS_SIZE
			? options_size(reader, row->min, row->max, &value,
				       failure)
			: options_number(reader, row->min, row->max, &value,
					 failure);
	if (error)
		return error;
	value *= factors[row->unit];
	number = (char *)target + row->offset;
	if (row->width == sizeof(uint16_t))
		*(uint16_t *)number = (uint16_t)value;
	else if (row->width == sizeof(uint32_t))
		*(uint32_t *)number = (uint32_t)value;
	else
		*(uint64_t *)number = value;
	return 0;
}

int options_choice(struct options_reader *reader, const char *const *choices,
		   unsigned count, unsigned *choice, struct failure *failure)
{
	char list[LIST_BYTES] = "";
	size_t length = 0;

	for (unsigned i = 0; i < count; i++) {
		const char *before = length == 0     ? ""
				     : i + 1 < count ? ", "
						     : " or ";

		if (!choices[i])
			continue;
		if (strcmp(reader->value, choices[i]) == 0) {
			*choice = i;
			return 0;
		}
		snprintf(list + length, sizeof(list) - length, "%s%s", before,
			 choices[i]);
		length = strlen(list);
	}
	return options_refuse(reader, failure, "not %s", list);
}

int options_check_operand(const char *path, const char *instead,
			  struct failure *failure)
{
	if (path[0] == '\0')
		return failure_set(failure, EXIT_USAGE, "''", 0,
				   "a file's name is empty");
	if (strcmp(path, "-") == 0)
		return failure_set(failure, EXIT_USAGE, "-", 0,
				   "is no stream here: name %s, or ./- for a "
				   "file of this name",
				   instead);
	return 0;
}
