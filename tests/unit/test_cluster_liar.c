/*
 * test_cluster_liar.c - a rank that has the key and lies, in simulated time
 *
 * Three ranks, of which one changes what it says (lie.h):
 * tests/data/cluster.lies has what.  Whatever it is, the others end with status
 * 4 and name it, soon, and leave neither an output nor a scratch file: none
 * crashes, none waits for ever, and none takes a lie for a lack of memory. (One
 * that lives and does not say that it has sent all can make the others wait, as
 * a slow one does.)  With a grid there are five ranks, or nine, of which one
 * lies.
 *
 * Each lie is told over several networks, which lose some datagrams and bring
 * others late.  check_cluster_liar.sh has some of the lies over real sockets.
 */
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster_commands.h"
#include "cluster_liar.h"

/* A rank that waits for longer has not noticed.  (Beyond memory that depends on
 * the machine.) */
#define NOTICED_NS ((2 * DEADLINE_S + 5) * SECOND_NS)
#define SEEDS 3
#define LINE_BYTES 2048
#define PARTS 3
#define LIES_PATH "tests/data/cluster.lies"

static unsigned seeds;

/* --- a job ------------------------------------------------------------------
 */

/* The first network is good; others delay, lose and reorder. */
static void draw_network(uint64_t seed)
{
	struct virtual_network_options *options = &network.options;
	uint64_t random = seed;

	network.random = seed;
	options->link_delay_ns = WAY_NS;
	options->loss = options->reordering = 0;
	for (unsigned i = 0; i < rank_count; i++)
		world.hosts[i].clock_offset_ns =
			seed * (splitmix_next(&random) % SECOND_NS);
	if (seed == 0)
		return;
	options->link_delay_ns = 1000 + splitmix_next(&random) % 1000000;
	options->loss = splitmix_next(&random) % (VIRTUAL_CHANCE / 50);
	options->reordering = splitmix_next(&random) % (VIRTUAL_CHANCE / 50);
	options->reordered_ns = splitmix_next(&random) % 3000000;
}

static void read_lies(const char *text)
{
	char copy[LINE_BYTES], *rest = copy;

	strcpy(copy, text);
	for (lie_count = 0; rest;) {
		const char *word = strsep(&rest, " ");

		if (word[0] == '\0')
			continue;
		assert_true(lie_count < LIES_MAX);
		if (!lie_parse(&lies[lie_count++], word))
			fail_msg("%s: no lie", word);
	}
}

static void run_job(unsigned by, const char *options, const char *said,
		    uint64_t seed)
{
	uint64_t random = ~seed;

	told = false;
	liar = by;
	read_lies(said);
	draw_network(seed);
	command_ranks(options);
	for (unsigned i = 0; i < rank_count; i++)
		world_start_rank(i, seed * (splitmix_next(&random) % 10000000));
	if (world_run_job() < 0)
		fail_msg("a rank waits without end: %s %s", options, said);
	world_free_job();
}

static void tap(struct host *host, unsigned socket, const struct address *to,
		const uint8_t *bytes, size_t byte_count)
{
	uint8_t datagram[DATAGRAM_BATCH_BYTES_MAX];

	if (host->number != liar) {
		virtual_network_put(host, socket, to, bytes, byte_count);
		return;
	}
	byte_count = world_lie(socket, bytes, byte_count, datagram);
	if (byte_count > 0)
		virtual_network_put(host, socket, to, datagram, byte_count);
}

/* --- what must be so --------------------------------------------------------
 */

static bool matches(const char *pattern, const char *text)
{
	regex_t regex;
	int error = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);

	assert_int_equal(error, 0);
	error = regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	return error == 0;
}

/* Has a rank noticed, and said that? */
static bool has_noticed(unsigned rank, const char *pattern)
{
	const struct simulated_rank *self = &ranks[rank];
	bool has_output = access(commands[rank].output, F_OK) == 0;
	char text[2 * FAILURE_WHY_BYTES];

	snprintf(text, sizeof(text), "%s: %s",
		 self->failure.what ? self->failure.what : "",
		 self->failure.why);
	if (self->error && self->failure.status == EXIT_PEER && !has_output &&
	    matches(pattern, text) && !strchr(text, '\n') &&
	    (record_count != RECORDS || self->ended_ns <= NOTICED_NS))
		return true;
	print_error("rank %u: status %d, %s, after %.1f s: '%s', not '%s'\n",
		    rank, self->failure.status,
		    has_output ? "an output" : "no output",
		    (double)self->ended_ns / 1e9, text, pattern);
	return false;
}

/* The ranks have as many records as they are told to have memory for. */
static void set_records(const char *options)
{
	bool is_large = strstr(options, "-S ");

	record_count = is_large ? RECORDS_BEYOND : RECORDS;
	seeds = is_large ? 1 : SEEDS;
}

/* The others find that a rank lies. */
static bool is_found(unsigned by, const char *options, const char *said,
		     const char *pattern)
{
	bool found = true;

	set_records(options);
	for (uint64_t seed = 0; seed < seeds && found; seed++) {
		run_job(by, options, said, seed);
		if (!told)
			print_error("it could not be told\n");
		found = told;
		for (unsigned i = 0; i < rank_count; i++)
			found &= i == liar || has_noticed(i, pattern);
		clean_up();
		/* If it is told once, and lost, the truth is sent again. */
		if (lies[0].count > 0)
			break;
	}
	if (!found)
		print_error("%u ranks, rank %u lies: %s | %s\n", rank_count, by,
			    options, said);
	return found;
}

/* Through the same hands, with nothing changed that matters. */
static void expect_truth(const char *options, const char *said)
{
	set_records(options);
	for (uint64_t seed = 0; seed < seeds; seed++) {
		run_job(1, options, said, seed);
		expect_sorted(options);
		clean_up();
	}
}

/* --- lines of lies ----------------------------------------------------------
 */

/* The table of a compressed message lies behind the counts of buckets and a
 * digest. */
static unsigned find_table(const char *options)
{
	expect_truth(strstr(options, "-S ") ? "-S 1G --compress=lz4"
					    : "--compress=lz4",
		     "");
	return ranks[0].result.sort.bucket_count / 3 + 2;
}

/* A number, or T, T*N, T+N or T*N+N. */
static unsigned read_number(const char **text, unsigned table)
{
	unsigned number = 0;

	if (**text != 'T')
		return (unsigned)strtoul(*text, (char **)text, 10);
	++*text;
	number = table;
	if (**text == '*')
		number *= (unsigned)strtoul(*text + 1, (char **)text, 10);
	if (**text == '+')
		number += (unsigned)strtoul(*text + 1, (char **)text, 10);
	return number;
}

/* Write the lies of a word that may have numbers in brackets. */
static void unfold(const char *word, unsigned table, char *said)
{
	const char *open = strchr(word, '['), *close = strchr(word, ']');
	const char *text;
	unsigned first, last, step = 1;

	said += strlen(said);
	if (!open || !close) {
		sprintf(said, "%s ", word);
		return;
	}
	text = open + 1;
	first = last = read_number(&text, table);
	if (*text == '-') {
		text++;
		last = read_number(&text, table);
	}
	if (*text == '/') {
		text++;
		step = read_number(&text, table);
	}
	for (unsigned i = first; i <= last; i += step)
		said += sprintf(said, "%.*s%u%s ", (int)(open - word), word, i,
				close + 1);
}

static void unfold_lies(const char *options, const char *text, char *said)
{
	unsigned table = strchr(text, 'T') ? find_table(options) : 0;
	char copy[LINE_BYTES], *rest = copy;

	strcpy(copy, text);
	said[0] = '\0';
	while (rest)
		unfold(strsep(&rest, " "), table, said);
}

/* Replace what stands for the liar, and for what is wrong with it. */
static void fill_pattern(char *pattern, const char *text)
{
	for (; *text; text++) {
		if (*text == '@')
			pattern += sprintf(pattern, "rank %u ", liar);
		else if (*text == '!')
			pattern +=
				sprintf(pattern,
					": it is faulty or of another version");
		else
			*pattern++ = *text;
	}
	*pattern = '\0';
}

static bool tell(const char *pairs, const char *options, const char *text,
		 const char *message)
{
	char said[LINE_BYTES], pattern[LINE_BYTES];
	bool found = true;

	while (*pairs) {
		char *end;

		rank_count = 3;
		unfold_lies(options, text, said);
		rank_count = (unsigned)strtoul(pairs, &end, 10);
		liar = (unsigned)strtoul(end + 1, &end, 10);
		fill_pattern(pattern, message);
		found &= is_found(liar, options, said, pattern);
		pairs = end + (*end == ',');
	}
	return found;
}

static const char *pairs_of(const char *word)
{
	if (strcmp(word, "both") == 0)
		return "3/2,3/0";
	if (strcmp(word, "grid") == 0)
		return "5/4,5/1,9/4";
	return strcmp(word, "passing") == 0 ? "5/1,9/4" : word;
}

/* A line without braces. */
static bool tell_line(char *line)
{
	char *parts[PARTS] = { "", "", "@" }, *liars;
	unsigned count = 0;

	while (line && count < PARTS) {
		char *bar = strstr(line, " | ");

		if (bar)
			*bar = '\0';
		parts[count++] = line;
		line = bar ? bar + 3 : NULL;
	}
	assert_true(count >= 2 && !line);
	liars = strsep(&parts[0], " ");
	return tell(pairs_of(liars), parts[0] ? parts[0] : "", parts[1],
		    parts[2]);
}

/* A line with each of the words of its first braces. */
static bool tell_lines(const char *line)
{
	const char *open = strchr(line, '{'), *close = strchr(line, '}');
	char copy[LINE_BYTES];
	bool found = true;

	assert_true(strlen(line) < sizeof(copy));
	if (!open || !close) {
		strcpy(copy, line);
		return tell_line(copy);
	}
	for (const char *word = open + 1; word <= close;) {
		size_t length = strcspn(word, ",}");

		snprintf(copy, sizeof(copy), "%.*s%.*s%s", (int)(open - line),
			 line, (int)length, word, close + 1);
		found &= tell_lines(copy);
		word += length + 1;
	}
	return found;
}

/* --- cases ------------------------------------------------------------------
 */

static char *text_of_lies;

/* All lines that have a word, or have it not. */
static void tell_all(bool is_large, bool is_grid)
{
	char *text = strdup(text_of_lies), *rest = text;
	unsigned count = 0, number = 0, wrong = 0;

	assert_non_null(text);
	while (rest) {
		const char *line = strsep(&rest, "\n");

		number++;
		if (line[0] == '\0' || line[0] == '#' ||
		    !strstr(line, "-S ") == is_large ||
		    !strstr(line, "--schedule=grid") == is_grid)
			continue;
		count++;
		if (!tell_lines(line)) {
			print_error("%s:%u\n", LIES_PATH, number);
			wrong++;
		}
	}
	free(text);
	assert_int_equal(wrong, 0);
	assert_true(count > 0);
}

static void the_truth(void **state)
{
	(void)state;
	rank_count = 3;
	expect_truth("", "");
	expect_truth("--splitters=sampled", "");
	/* Not once, but as a bad cable does: what is lost is sent again. */
	expect_truth("", "segment:1:epoch:set:77:0:8");
	expect_truth("-S 12M", "");
	assert_true(ranks[0].result.external.run_count > 0);
	expect_truth("-S 12M --roles=keep:0-1", "");
	for (rank_count = 5; rank_count <= 9; rank_count += 4) {
		expect_truth("--schedule=grid", "");
		assert_int_equal(ranks[0].result.schedule.kind, EXCHANGE_GRID);
	}
}

static void lies_in_memory(void **state)
{
	(void)state;
	tell_all(false, false);
}

static void lies_in_grids(void **state)
{
	(void)state;
	tell_all(false, true);
}

static void lies_beyond_memory(void **state)
{
	(void)state;
	tell_all(true, false);
}

static int set_up(void **state)
{
	static char text[64 * KIB];
	FILE *file = fopen(LIES_PATH, "re");

	(void)state;
	if (!file)
		fail_msg("%s: %s", LIES_PATH, strerror(errno));
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	text_of_lies = text;
	set_up_commands("test_cluster_liar", 9);
	network.tap = tap;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return tear_down_commands();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_truth),
		cmocka_unit_test(lies_in_memory),
		cmocka_unit_test(lies_in_grids),
		cmocka_unit_test(lies_beyond_memory),
	};

	return cmocka_run_group_tests_name("cluster_liar", tests, set_up,
					   tear_down);
}
