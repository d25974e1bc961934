#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/options.h"

enum {
	FLAG = OPTIONS_OWN,
	OTHER,
	ONCE,
	MANY,
	FILE_ONCE,
	FILE_MANY,
	STREAMS,
	MAYBE
};

static const struct options_entry entries[] = {
	{ FLAG, "flag", 'f', OPTIONS_FLAG, NULL },
	{ OTHER, NULL, 'x', OPTIONS_FLAG, NULL },
	{ ONCE, "once", 'o', OPTIONS_VALUE, "N" },
	{ ONCE, "former", 0, OPTIONS_VALUE, "N" },
	{ MANY, "many", 0, OPTIONS_VALUES, "HOSTS" },
	{ FILE_ONCE, "file", 'i', OPTIONS_FILE, "IN" },
	{ FILE_MANY, "files", 0, OPTIONS_FILES, "OUT" },
	{ STREAMS, "streams", 0, OPTIONS_STREAMS, "TO" },
	{ MAYBE, "maybe", 'm', OPTIONS_MAYBE, "TOPIC" },
	OPTIONS_COMMON,
};

static struct options_reader reader;
static struct failure failure;
static char *words[16];

/* Words as a program gets them, ended by NULL. */
#define BEGIN(...) begin((const char *const[]){ __VA_ARGS__, NULL })

static void begin(const char *const *texts)
{
	unsigned count = 0;

	for (; texts[count]; count++)
		words[count] = (char *)texts[count];
	words[count] = NULL;
	options_begin(&reader, entries, ARRAY_LEN(entries), words);
}

/* Stops the reading at each option. */
static int stop_at(void *context, int id, struct failure *unused)
{
	(void)unused;
	*(int *)context = id;
	return -ECANCELED;
}

/* The next option, 0 or -errno. */
static int next_option(void)
{
	int id = 0, ret = options_read(&reader, stop_at, &id, &failure);

	return ret == -ECANCELED ? id : ret;
}

static void expect(int id, const char *value)
{
	assert_int_equal(next_option(), id);
	if (value)
		assert_string_equal(reader.value, value);
	else
		assert_null(reader.value);
}

static void expect_mistake(const char *what, const char *why)
{
	memset(&failure, 0, sizeof(failure));
	assert_int_equal(next_option(), -EINVAL);
	assert_int_equal(failure.status, EXIT_USAGE);
	assert_string_equal(failure.what, what);
	assert_string_equal(failure.why, why);
}

static void expect_operands(unsigned count, const char *const *texts)
{
	expect(0, NULL);
	assert_int_equal(reader.operand_count, count);
	for (unsigned i = 0; i < count; i++)
		assert_string_equal(reader.operands[i], texts[i]);
	assert_null(reader.operands[count]);
}

#define EXPECT_OPERANDS(count, ...)                                            \
	expect_operands(count, (const char *const[]){ __VA_ARGS__ })

static void no_words(void **state)
{
	(void)state;
	begin((const char *const[]){ NULL });
	EXPECT_OPERANDS(0, NULL);
	assert_false(reader.has_separator);
}

static void names(void **state)
{
	(void)state;
	BEGIN("--flag", "--once=1", "--many", "a", "--many=b=c", "--file=x");
	expect(FLAG, NULL);
	expect(ONCE, "1");
	expect(MANY, "a");
	expect(MANY, "b=c");
	expect(FILE_ONCE, "x");
	EXPECT_OPERANDS(0, NULL);
	assert_true(options_given(&reader, FLAG));
	assert_true(options_given(&reader, ONCE));
	assert_true(options_given(&reader, MANY));
	assert_false(options_given(&reader, FILE_MANY));
	assert_false(options_given(&reader, OTHER));
}

static void letters(void **state)
{
	(void)state;
	BEGIN("-f", "-xfo1", "-i", "in", "-xx");
	expect(FLAG, NULL);
	expect(OTHER, NULL);
	expect(FLAG, NULL);
	expect(ONCE, "1");
	expect(FILE_ONCE, "in");
	expect(OTHER, NULL);
	expect(OTHER, NULL);
	EXPECT_OPERANDS(0, NULL);
}

static void operands_anywhere(void **state)
{
	(void)state;
	BEGIN("a", "-f", "-", "--once", "1", "", "--", "-x", "b");
	expect(FLAG, NULL);
	expect(ONCE, "1");
	EXPECT_OPERANDS(5, "a", "-", "", "-x", "b");
	assert_true(reader.has_separator);
}

static void stops_at_operand(void **state)
{
	(void)state;
	BEGIN("-f", "a", "-x", "--", "--nonsense");
	reader.stops_at_operand = true;
	expect(FLAG, NULL);
	EXPECT_OPERANDS(4, "a", "-x", "--", "--nonsense");
	assert_false(reader.has_separator);
	BEGIN("-f", "--", "-x");
	reader.stops_at_operand = true;
	expect(FLAG, NULL);
	EXPECT_OPERANDS(1, "-x");
	assert_true(reader.has_separator);
}

/* What looks like an option may be a value, but for a file and "--". */
static void values_with_dashes(void **state)
{
	(void)state;
	BEGIN("--once", "-1", "--many", "--flag", "--many", "-");
	expect(ONCE, "-1");
	expect(MANY, "--flag");
	expect(MANY, "-");
	EXPECT_OPERANDS(0, NULL);
	BEGIN("--many=--", "--many", "--");
	expect(MANY, "--");
	expect_mistake("--many", "HOSTS is missing");
	BEGIN("-i", "-f");
	expect_mistake("-i", "IN is '-f', which looks like an option; write "
			     "./-f if that is its name");
	BEGIN("--files=-");
	expect_mistake("--files", "'-' is no stream here: OUT is a regular "
				  "file; write ./- if that is its name");
	BEGIN("--streams=-", "--streams", "-", "--streams=-f");
	expect(STREAMS, "-");
	expect(STREAMS, "-");
	expect_mistake("--streams", "TO is '-f', which looks like an option; "
				    "write ./-f if that is its name");
}

static void missing_and_empty(void **state)
{
	static const char *const last[] = { "-o", "-fo", "--once" };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(last); i++) {
		BEGIN("a", last[i]);
		if (last[i][1] == 'f')
			expect(FLAG, NULL);
		expect_mistake(last[i][1] == '-' ? last[i] : "-o",
			       "N is missing");
	}
	BEGIN("--once=");
	expect_mistake("--once", "N is empty");
	BEGIN("-i", "");
	expect_mistake("-i", "IN is empty");
	BEGIN("--flag=");
	expect_mistake("--flag", "takes no value");
	BEGIN("-f=1");
	expect_mistake("-f", "takes no value");
}

/* The next word is never its value. */
static void maybe_a_value(void **state)
{
	(void)state;
	BEGIN("--maybe", "a", "--maybe=b", "-mf", "-m", "--maybe=");
	expect(MAYBE, NULL);
	expect(MAYBE, "b");
	expect(MAYBE, NULL);
	expect(FLAG, NULL);
	expect(MAYBE, NULL);
	expect_mistake("--maybe", "TOPIC is empty");
	BEGIN("-m=b");
	expect_mistake("-m", "takes no value");
}

static void given_twice(void **state)
{
	(void)state;
	BEGIN("-o1", "--once=1");
	expect(ONCE, "1");
	expect_mistake("--once", "given twice");
	BEGIN("--file=a", "-i", "a");
	expect(FILE_ONCE, "a");
	expect_mistake("-i", "given twice");
	BEGIN("--files=a", "--files=a", "-ff");
	expect(FILE_MANY, "a");
	expect(FILE_MANY, "a");
	expect(FLAG, NULL);
	expect(FLAG, NULL);
	EXPECT_OPERANDS(0, NULL);
}

/* Each is the option under another name. */
static void spellings(void **state)
{
	(void)state;
	BEGIN("--former=2");
	expect(ONCE, "2");
	EXPECT_OPERANDS(0, NULL);
	assert_true(options_given(&reader, ONCE));
	assert_string_equal(options_value(&reader, ONCE), "2");
	options_refuse_entry(&reader, ONCE, &failure, "refused");
	assert_string_equal(failure.what, "--once");
	BEGIN("-o1", "--former=2");
	expect(ONCE, "1");
	expect_mistake("--former", "given twice");
}

static void unknown_names(void **state)
{
	char longest[400];

	(void)state;
	BEGIN("--fla");
	expect_mistake("--fla", "no such option; is --flag meant?");
	BEGIN("--flags");
	expect_mistake("--flags", "no such option; see --help");
	BEGIN("--file", "a", "--fil=b");
	expect(FILE_ONCE, "a");
	expect_mistake("--fil", "no such option; is --file meant?");
	BEGIN("--=");
	expect_mistake("--=", "no such option; see --help");
	BEGIN("---");
	expect_mistake("---", "no such option; see --help");
	memset(longest, 'y', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memcpy(longest, "--", 2);
	BEGIN(longest);
	assert_int_equal(next_option(), -EINVAL);
	assert_true(strlen(failure.what) < OPTIONS_TEXT_BYTES);
	assert_memory_equal(failure.what, "--yyy", 5);
	assert_non_null(strstr(failure.what, "y...y"));
}

static void unknown_letters(void **state)
{
	(void)state;
	BEGIN("-fyo");
	expect(FLAG, NULL);
	expect_mistake("-y", "no such option; see --help");
	/* A character is named whole, a byte that is none by itself. */
	BEGIN("-\xc3\xbcx");
	expect_mistake("-\xc3\xbc", "no such option; see --help");
	BEGIN("-\xc3x");
	expect_mistake("-\xc3", "no such option; see --help");
}

/* What other programs have is told by name and by letter, whether a longer name
 * would be suggested or not. */
static void hints(void **state)
{
	static const struct options_hint known[] = {
		{ "fla", 'y', "use --flag" },
		{ NULL, 'z', "use --file" },
	};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		char *given[] = {
			((char *[]){ "--fla", "-y", "-z", "--fla=3" })[i], NULL
		};

		options_begin(&reader, entries, ARRAY_LEN(entries), given);
		reader.hints = known;
		reader.hint_count = ARRAY_LEN(known);
		expect_mistake(i == 3 ? "--fla" : given[0],
			       i == 2 ? "use --file" : "use --flag");
	}
}

static int take(void *context, int id, struct failure *why)
{
	int *seen = context;

	(void)why;
	*seen = *seen * 16 + id;
	return id == OTHER ? -ENOENT : 0;
}

static void read_all(void **state)
{
	int seen = 0;

	(void)state;
	BEGIN("-f", "a", "-o1");
	assert_int_equal(options_read(&reader, take, &seen, &failure), 0);
	assert_int_equal(seen, FLAG * 16 + ONCE);
	assert_string_equal(reader.operands[0], "a");
	BEGIN("-f", "--version", "--nonsense");
	assert_int_equal(options_read(&reader, take, &seen, &failure),
			 OPTIONS_VERSION);
	BEGIN("--help", "--nonsense");
	assert_int_equal(options_read(&reader, take, &seen, &failure),
			 OPTIONS_HELP);
	BEGIN("-x", "--nonsense");
	assert_int_equal(options_read(&reader, take, &seen, &failure), -ENOENT);
	BEGIN("--nonsense", "--help");
	assert_int_equal(options_read(&reader, take, &seen, &failure), -EINVAL);
}

static void expect_value_refused(int ret, const char *what, const char *why)
{
	assert_int_equal(ret, -EINVAL);
	assert_int_equal(failure.status, EXIT_USAGE);
	assert_string_equal(failure.what, what);
	assert_string_equal(failure.why, why);
}

static void numbers(void **state)
{
	uint64_t number = 0;

	(void)state;
	BEGIN("--once=7", "--many=1K", "--many=2", "--many=x");
	expect(ONCE, "7");
	assert_int_equal(options_number(&reader, 1, 7, &number, &failure), 0);
	assert_int_equal(number, 7);
	expect_value_refused(options_number(&reader, 1, 6, &number, &failure),
			     "--once=7", "not a number from 1 to 6");
	expect(MANY, "1K");
	assert_int_equal(options_size(&reader, 0, 1024, &number, &failure), 0);
	assert_int_equal(number, 1024);
	expect(MANY, "2");
	expect_value_refused(options_size(&reader, 3, 9, &number, &failure),
			     "--many=2", "not from 3 to 9 bytes");
	expect(MANY, "x");
	expect_value_refused(options_size(&reader, 3, 9, &number, &failure),
			     "--many=x",
			     "not a size: digits, and K, M, G or T for powers "
			     "of 1024, such as 1536M");
	BEGIN("-oz");
	expect(ONCE, "z");
	expect_value_refused(options_number(&reader, 1, 6, &number, &failure),
			     "-oz", "not a number from 1 to 6");
}

static void choices(void **state)
{
	static const char *const three[] = { "a", "bc", "d" };
	static const char *const gaps[] = { [2] = "a", [4] = "bc", [7] = "d" };
	char longest[60];
	const char *many[] = { longest, longest, longest, "y" };
	unsigned choice = 9;

	(void)state;
	BEGIN("--many=d", "--many=b", "--many=y", "--many=x");
	expect(MANY, "d");
	assert_int_equal(options_choice(&reader, three, 3, &choice, &failure),
			 0);
	assert_int_equal(choice, 2);
	assert_int_equal(options_choice(&reader, gaps, ARRAY_LEN(gaps), &choice,
					&failure),
			 0);
	assert_int_equal(choice, 7);
	expect(MANY, "b");
	expect_value_refused(
		options_choice(&reader, three, 3, &choice, &failure),
		"--many=b", "not a, bc or d");
	expect_value_refused(options_choice(&reader, gaps, ARRAY_LEN(gaps),
					    &choice, &failure),
			     "--many=b", "not a, bc or d");
	/* A list that does not fit is cut, and the last choice still found. */
	memset(longest, 'z', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	expect(MANY, "y");
	assert_int_equal(options_choice(&reader, many, 4, &choice, &failure),
			 0);
	assert_int_equal(choice, 3);
	expect(MANY, "x");
	assert_int_equal(options_choice(&reader, many, 4, &choice, &failure),
			 -EINVAL);
	assert_int_equal(choice, 3);
}

static void rows(void **state)
{
	struct {
		uint16_t before;
		uint16_t port;
		uint16_t after;
		uint64_t ns;
		uint32_t bytes;
		int count;
	} taken = { .before = 7, .after = 8 };
#define FIELD(name) OPTIONS_FIELD(__typeof__(taken), name)
	static const struct options_row table[] = {
		{ ONCE, 1, UINT16_MAX, FIELD(port) },
		{ MANY, 1, 20, FIELD(ns), OPTIONS_SECONDS },
		{ FLAG, 0, UINT32_MAX, FIELD(bytes), OPTIONS_SIZE },
		{ OTHER, 20, 20, FIELD(ns), OPTIONS_MS },
		{ STREAMS, 0, INT_MAX, FIELD(count) },
	};
#define TAKE(id)                                                               \
	options_take_row(&reader, id, table, ARRAY_LEN(table), &taken, &failure)

	(void)state;
	BEGIN("--once=65535", "--many=20", "--many=21", "--many=2K",
	      "--many=x");
	expect(ONCE, "65535");
	assert_int_equal(TAKE(ONCE), 0);
	assert_int_equal(taken.port, 65535);
	assert_int_equal(taken.before, 7);
	assert_int_equal(taken.after, 8);
	assert_int_equal(TAKE(FILE_ONCE), 0);
	assert_int_equal(taken.port, 65535);
	expect(MANY, "20");
	assert_int_equal(TAKE(MANY), 0);
	assert_true(taken.ns == 20 * UINT64_C(1000000000));
	assert_int_equal(TAKE(OTHER), 0);
	assert_int_equal(taken.ns, 20000000);
	assert_int_equal(TAKE(STREAMS), 0);
	assert_int_equal(taken.count, 20);
	expect(MANY, "21");
	expect_value_refused(TAKE(MANY), "--many=21",
			     "not a number from 1 to 20");
	expect(MANY, "2K");
	assert_int_equal(TAKE(FLAG), 0);
	assert_int_equal(taken.bytes, 2048);
	expect(MANY, "x");
	expect_value_refused(TAKE(FLAG), "--many=x",
			     "not a size: digits, and K, M, G or T for powers "
			     "of 1024, such as 1536M");
}

static void refusals(void **state)
{
	char longest[300];

	(void)state;
	memset(longest, 'z', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	BEGIN("-f", "--many", longest);
	expect(FLAG, NULL);
	expect_value_refused(options_refuse(&reader, &failure, "no %d", 1),
			     "-f", "no 1");
	expect(MANY, longest);
	assert_int_equal(options_refuse(&reader, &failure, "%s", longest),
			 -EINVAL);
	assert_true(strlen(failure.what) < OPTIONS_TEXT_BYTES);
	assert_memory_equal(failure.what, "--many=zzz", 10);
	assert_non_null(strstr(failure.what, "z...z"));
	assert_int_equal(strlen(failure.why), FAILURE_WHY_BYTES - 1);
	expect_value_refused(
		options_refuse_entry(&reader, FILE_ONCE, &failure, "alone"),
		"--file", "alone");
	expect_value_refused(
		options_refuse_entry(&reader, OTHER, &failure, "alone"), "-x",
		"alone");
}

static void file_operands(void **state)
{
	(void)state;
	assert_int_equal(options_check_operand("-f", "", &failure), 0);
	assert_int_equal(options_check_operand("./-", "", &failure), 0);
	expect_value_refused(options_check_operand("", "x", &failure), "''",
			     "a file's name is empty");
	expect_value_refused(options_check_operand("-", "/dev/stdin", &failure),
			     "-",
			     "is no stream here: name /dev/stdin, or ./- for a "
			     "file of this name");
}

/* The last of as many as there may be has a bit of its own. */
static void largest_table(void **state)
{
	struct options_entry table[OPTIONS_ENTRIES_MAX];

	(void)state;
	for (unsigned i = 0; i < OPTIONS_ENTRIES_MAX; i++)
		table[i] = (struct options_entry){ (int)i + 1, NULL, 0,
						   OPTIONS_VALUE, "N" };
	table[0].letter = 'a';
	table[OPTIONS_ENTRIES_MAX - 1].letter = 'z';
	BEGIN("-z1", "-a1", "-z1");
	options_begin(&reader, table, OPTIONS_ENTRIES_MAX, words);
	expect(OPTIONS_ENTRIES_MAX, "1");
	assert_false(options_given(&reader, 1));
	expect(1, "1");
	expect_mistake("-z", "given twice");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_words),
		cmocka_unit_test(names),
		cmocka_unit_test(letters),
		cmocka_unit_test(operands_anywhere),
		cmocka_unit_test(stops_at_operand),
		cmocka_unit_test(values_with_dashes),
		cmocka_unit_test(missing_and_empty),
		cmocka_unit_test(maybe_a_value),
		cmocka_unit_test(given_twice),
		cmocka_unit_test(spellings),
		cmocka_unit_test(unknown_names),
		cmocka_unit_test(unknown_letters),
		cmocka_unit_test(hints),
		cmocka_unit_test(read_all),
		cmocka_unit_test(numbers),
		cmocka_unit_test(choices),
		cmocka_unit_test(rows),
		cmocka_unit_test(refusals),
		cmocka_unit_test(file_operands),
		cmocka_unit_test(largest_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
