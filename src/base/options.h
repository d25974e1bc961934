/*
 * options.h - the options of a command line
 *
 * All programs read their options by this module and not by getopt(3), of which
 * each C library has its own: they differ in corner cases, and a name may be
 * abbreviated, so that "--check" is taken for "--checksum".  Here:
 *
 *      --name=VALUE, --name VALUE   an option with a value
 *      --name, --name=VALUE         an option that may have one
 *      -oVALUE, -o VALUE            the same by its letter
 *      -abc                         flags; the last letter may take a value
 *      --                           all words behind it are operands
 *
 * Any other word, and "-" alone, is an operand; options may follow operands.
 * A name is given in full.  A value is never empty, and as a word of its own
 * never "--".  An option with a value is given once unless its entry says
 * otherwise; a flag may be repeated.
 *
 * A mistake fills the caller's failure: EXIT_USAGE, and in failure->what the
 * option as it was given, in memory of the reader, which must outlive it.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"

enum options_kind {
	OPTIONS_FLAG,	 /* without a value */
	OPTIONS_MAYBE,	 /* a flag, or with a value as --name=VALUE */
	OPTIONS_VALUE,	 /* with a value, given once */
	OPTIONS_VALUES,	 /* with a value, given any number of times */
	OPTIONS_FILE,	 /* as OPTIONS_VALUE: the name of a file */
	OPTIONS_FILES,	 /* as OPTIONS_VALUES: names of files */
	OPTIONS_STREAMS, /* as OPTIONS_FILES, and "-" is no mistake */
};

/* Every table has these two options, as OPTIONS_COMMON, or with a kind of help
 * that has topics.  A program's own identifiers begin at OPTIONS_OWN. */
enum { OPTIONS_HELP = 1, OPTIONS_VERSION, OPTIONS_OWN };
#define OPTIONS_COMMON                                                         \
	{ OPTIONS_HELP, "help", 'h', OPTIONS_FLAG, NULL },                     \
	{                                                                      \
		OPTIONS_VERSION, "version", 'V', OPTIONS_FLAG, NULL            \
	}

/* Entries of one identifier are spellings of one option; messages that are not
 * about a word of the command line name the first. */
struct options_entry {
	int id;		  /* what take() is given; above 0 */
	const char *name; /* without its "--"; NULL: it has only a letter */
	char letter;	  /* '\0': it has only a name */
	enum options_kind kind;
	const char *value; /* its name in the help text; NULL for a flag */
};

/* An option of another program that users may expect, which is a mistake. */
struct options_hint {
	const char *name;    /* NULL: it has only a letter */
	char letter;	     /* '\0': it has only a name */
	const char *instead; /* what to do, for the message */
};

#define OPTIONS_ENTRIES_MAX 64 /* the bits of options_reader.given */
#define OPTIONS_TEXT_BYTES 208 /* a longer option is shortened in a message */

struct options_reader {
	/* Borrowed, at most OPTIONS_ENTRIES_MAX. */
	const struct options_entry *entries;
	unsigned entry_count;
	/* Set by the caller after options_begin(), or not: borrowed. */
	const struct options_hint *hints;
	unsigned hint_count;
	/* Set by the caller after options_begin(): the first operand ends the
	 * options, since what follows are those of another program. */
	bool stops_at_operand;

	/* The value of the option just returned; NULL: it has none. */
	const char *value;

	/* Ended by NULL; filled when options_read() has returned 0. */
	char **operands;
	unsigned operand_count;
	bool has_separator; /* options were ended by "--" */

	/* Private. */
	char **next;	     /* the first word that was not read */
	const char *letters; /* rest of a word of letters, or NULL */
	uint64_t given;	     /* a bit for each option's first entry */
	const char *values[OPTIONS_ENTRIES_MAX];
	char text[OPTIONS_TEXT_BYTES];
	size_t name_bytes; /* of that, before a value that was refused */
};

/* Prepare to read words: the words after the program's name, ended by NULL. The
 * array is borrowed, and options_read() reorders it to collect the operands. */
void options_begin(struct options_reader *reader,
		   const struct options_entry *entries, unsigned entry_count,
		   char **words);

/*
 * Read all options: take() is called with each but --help and --version, and
 * leaves alone those for which options_given() or options_value() is enough; it
 * returns 0 or -errno with *failure filled, which ends the reading.  Returns 0
 * with the operands complete; -errno; or OPTIONS_HELP or OPTIONS_VERSION as
 * soon as one is met.  Unless it returned 0 or refused an option itself, one
 * may call it again to read on.
 */
int options_read(struct options_reader *reader,
		 int (*take)(void *context, int id, struct failure *failure),
		 void *context, struct failure *failure);

/* True if this option, which must be in the table, has been read. */
bool options_given(const struct options_reader *reader, int id);

/* Returns the value of this option of the table, the last one if there were
 * several; NULL: it was not given, or is a flag. */
const char *options_value(const struct options_reader *reader, int id);

/* Fill *failure with "--name=VALUE: reason" for the option just returned.
 * Returns -EINVAL. */
__attribute__((format(printf, 3, 4))) int
options_refuse(struct options_reader *reader, struct failure *failure,
	       const char *format, ...);

/* Fill *failure with "--name: reason" for any option in the table.  Returns
 * -EINVAL. */
int options_refuse_entry(struct options_reader *reader, int id,
			 struct failure *failure, const char *reason);

/* An option that does not go with what else was given. */
struct options_rule {
	int id;
	bool is_broken; /* the option must not have been given */
	const char *reason;
};

/* Refuse the option of the first rule that is broken, as options_refuse_entry()
 * does.  Returns 0, or -EINVAL. */
int options_check(struct options_reader *reader,
		  const struct options_rule *rules, unsigned rule_count,
		  struct failure *failure);

/* Read the value of the option just returned as a decimal number, min..max.
 * Returns 0, or -EINVAL as options_refuse() does. */
int options_number(struct options_reader *reader, uint64_t min, uint64_t max,
		   uint64_t *number, struct failure *failure);

enum options_unit {
	OPTIONS_NUMBER,	 /* as options_number(); a row need not say so */
	OPTIONS_SIZE,	 /* as options_size() */
	OPTIONS_MS,	 /* whole milliseconds, which are stored in ns */
	OPTIONS_SECONDS, /* whole seconds, which are stored in ns */
};

/* A row of a table: an option whose value is a number, min..max, and the
 * integer of a struct where the number is stored, which max fits into. */
struct options_row {
	int id;
	uint64_t min, max;
	size_t offset, width;
	enum options_unit unit;
};
#define OPTIONS_FIELD(type, name)                                              \
	.offset = offsetof(type, name),                                        \
	.width = _Generic(((type *)NULL)->name, uint16_t : 2, uint32_t : 4,    \
			  int : 4, uint64_t : 8)

/* Store the value of the option just returned in *target, by the row of this
 * option; without one, do nothing.  Returns 0, or -EINVAL as options_refuse()
 * does. */
int options_take_row(struct options_reader *reader, int id,
		     const struct options_row *rows, unsigned row_count,
		     void *target, struct failure *failure);

/* Read the value as a number of bytes in the form of parse_size(). */
int options_size(struct options_reader *reader, uint64_t min, uint64_t max,
		 uint64_t *bytes, struct failure *failure);

/* Read the value as options_size() does, and set *percent to 0; or as a part of
 * something, "1%" to "100%", and set *percent alone. */
int options_share(struct options_reader *reader, uint64_t min, uint64_t max,
		  uint64_t *bytes, unsigned *percent, struct failure *failure);

/* Store the index of the value among the choices, of which there are at least
 * two; a NULL in their array is no choice.  *choice may be an enum.  Returns 0,
 * or -EINVAL as options_refuse() does. */
int options_choice(struct options_reader *reader, const char *const *choices,
		   unsigned count, unsigned *choice, struct failure *failure);

/*
 * Refuse an operand that cannot be the name of a file: "", and "-", which other
 * programs take for a stream.  instead is what the caller's program takes in
 * place of "-", for the message: "a regular file", "/dev/stdin".  Returns 0, or
 * -EINVAL with *failure filled.
 */
int options_check_operand(const char *path, const char *instead,
			  struct failure *failure);

#endif /* OPTIONS_H */
