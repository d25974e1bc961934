/*
 * blinksh_main.c - the program that runs one command on many nodes at once
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "base/failure.h"
#include "base/format.h"
#include "base/log.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/stdout.h"
#include "net/hostlist.h"
#include "net/keyfile.h"
#include "shell/client.h"
#include "shell/command.h"
#include "shell/launch.h"
#include "shell/query.h"
#include "shell/report.h"

#define LEASE_MS 10000
#define LOST_AFTER_MS 3000
#define REPEAT_MAX 1000000
#define EXCLUSIONS_MAX 256

struct options {
	struct options_reader reader;
	struct hostlist hosts;
	const char *excluded[EXCLUSIONS_MAX]; /* lists of hosts */
	unsigned excluded_count;
	enum report_mode mode;
	uint64_t lease_ms, timeout_ms, lost_after_ms;
	uint64_t repeat, interval_ms;
	bool is_command; /* the words are a command, not "ping" and such */
	char **words;
	unsigned word_count;
};

/* Each line as it is printed. */
/* clang-format off */
static const char help[] =
"Usage: blinksh [OPTION]... -w HOSTS -- COMMAND [ARGUMENT]...\n"
"       blinksh [OPTION]... -w HOSTS ping | status | cancel JOB\n"
"       blinksh keygen FILE\n"
"Run a command on all hosts at once.  COMMAND is an absolute path; in it and\n"
"in the arguments %r, %n, %h and %% stand for rank, number of nodes, host and\n"
"'%'.  It runs in the folder /: name files by absolute paths.\n"
"\n"
"  --key-file=FILE       read the cluster's key from FILE ($BLINK_KEY)\n"
"  -w HOSTS              run on node[01-16],10.0.0.[1-4]:7300,^file (port 7300;\n"
"                        the file $WCOLL)\n"
"  -x HOSTS              leave these hosts out\n"
"  --timeout=SECONDS     kill the command after this time (never)\n"
"  --lease=SECONDS       let daemons kill it when they have received nothing\n"
"                        from blinksh for so long (10)\n"
"  --lost-after=SECONDS  give a node up that has not replied for so long (3)\n"
"  --kill-on-fail        kill it on all nodes when it fails on one (default)\n"
"  --keep-going          let it go on when it fails on another node\n"
"  -N                    print output without labels\n"
"  -b                    print equal output once, under its hosts\n"
"  --json                print all as one JSON document\n"
"  --repeat=N            run it N times, one after the other (1)\n"
"  --interval=SECONDS    wait so long between two runs (0)\n"
"  -q, --quiet           print no line of times\n"
"  -v, --verbose         print the job's id before it starts\n"
"  -h, --help            print this text\n"
"  -V, --version         print the version\n"
"\n"
"Statuses: 0 done; the command's; 128 + its signal; 124 timeout; 125 refused;\n"
"127 lost; the worst of all nodes wins.  If nothing was started: 2 usage, 3\n"
"file, 4 the network, 5 memory.  3, too: standard output could not be written.\n"
"See blinksh(1).\n";
/* clang-format on */

/* --- options -------------------------------------------------------------- */

enum {
	OPTION_KEY = OPTIONS_OWN,
	OPTION_HOSTS,
	OPTION_EXCLUDE,
	OPTION_TIMEOUT,
	OPTION_LEASE,
	OPTION_LOST_AFTER,
	OPTION_KILL_ON_FAIL,
	OPTION_KEEP_GOING,
	OPTION_PLAIN,
	OPTION_GATHERED,
	OPTION_JSON,
	OPTION_REPEAT,
	OPTION_INTERVAL,
	OPTION_QUIET,
	OPTION_VERBOSE,
};

static const struct options_entry entries[] = {
	{ OPTION_KEY, "key-file", 0, OPTIONS_FILE, "FILE" },
	{ OPTION_KEY, "key", 0, OPTIONS_FILE, "FILE" }, /* before 0.1.0 */
	{ OPTION_HOSTS, NULL, 'w', OPTIONS_VALUES, "HOSTS" },
	{ OPTION_EXCLUDE, NULL, 'x', OPTIONS_VALUES, "HOSTS" },
	{ OPTION_TIMEOUT, "timeout", 0, OPTIONS_VALUE, "SECONDS" },
	{ OPTION_LEASE, "lease", 0, OPTIONS_VALUE, "SECONDS" },
	{ OPTION_LOST_AFTER, "lost-after", 0, OPTIONS_VALUE, "SECONDS" },
	{ OPTION_KILL_ON_FAIL, "kill-on-fail", 0, OPTIONS_FLAG, NULL },
	{ OPTION_KEEP_GOING, "keep-going", 0, OPTIONS_FLAG, NULL },
	{ OPTION_PLAIN, NULL, 'N', OPTIONS_FLAG, NULL },
	{ OPTION_GATHERED, NULL, 'b', OPTIONS_FLAG, NULL },
	{ OPTION_JSON, "json", 0, OPTIONS_FLAG, NULL },
	{ OPTION_REPEAT, "repeat", 0, OPTIONS_VALUE, "N" },
	{ OPTION_INTERVAL, "interval", 0, OPTIONS_VALUE, "SECONDS" },
	{ OPTION_QUIET, "quiet", 'q', OPTIONS_FLAG, NULL },
	{ OPTION_VERBOSE, "verbose", 'v', OPTIONS_FLAG, NULL },
	OPTIONS_COMMON,
};

/* People who come from pdsh(1) type these letters. */
static const struct options_hint hints[] = {
	{ NULL, 'f', "all nodes run the command at once" },
	{ NULL, 'a', "-w names the hosts" },
	{ NULL, 'g', "-w names the hosts" },
	{ NULL, 'u', "use --timeout" },
	{ NULL, 't', "use --lost-after" },
	{ NULL, 'R', "blinkd starts the command, without ssh or rsh" },
	{ NULL, 'l', "the command runs as the user of the daemon" },
};

static int usage_failed(struct failure *failure, const char *what,
			const char *why)
{
	return failure_set(failure, EXIT_USAGE, what, 0, "%s", why);
}

/* Parses seconds, such as "2" or "0.25", from 1 ms to ten days. */
static int parse_seconds(const char *text, uint64_t *milliseconds)
{
	const char *point = strchr(text, '.');
	char whole[16] = "", thousandths[4] = "000";
	size_t whole_length = point ? (size_t)(point - text) : strlen(text);
	size_t digits = point ? strlen(point + 1) : 0;
	uint64_t seconds, rest;

	if (whole_length >= sizeof(whole) || digits > 3 ||
	    (point && digits == 0))
		return -EINVAL;
	memcpy(whole, text, whole_length);
	if (point)
		memcpy(thousandths, point + 1, digits);
	if (parse_u64(whole, 0, 864000, &seconds) < 0 ||
	    parse_u64(thousandths, 0, 999, &rest) < 0 || seconds + rest == 0)
		return -EINVAL;
	*milliseconds = 1000 * seconds + rest;
	return 0;
}

static int take_seconds(struct options *options, uint64_t *milliseconds,
			struct failure *failure)
{
	if (parse_seconds(options->reader.value, milliseconds) == 0)
		return 0;
	return options_refuse(&options->reader, failure,
			      "not a number of seconds from 0.001 to 864000");
}

static int take_exclusion(struct options *options, struct failure *failure)
{
	if (options->excluded_count == EXCLUSIONS_MAX)
		return usage_failed(failure, "-x", "given too often");
	options->excluded[options->excluded_count++] = options->reader.value;
	return 0;
}

static int take_option(void *context, int id, struct failure *failure)
{
	struct options *options = context;

	switch (id) {
	case OPTION_HOSTS:
		return hostlist_add(&options->hosts, options->reader.value,
				    failure);
	case OPTION_EXCLUDE:
		return take_exclusion(options, failure);
	case OPTION_TIMEOUT:
		return take_seconds(options, &options->timeout_ms, failure);
	case OPTION_LEASE:
		return take_seconds(options, &options->lease_ms, failure);
	case OPTION_LOST_AFTER:
		return take_seconds(options, &options->lost_after_ms, failure);
	case OPTION_INTERVAL:
		return take_seconds(options, &options->interval_ms, failure);
	case OPTION_REPEAT:
		return options_number(&options->reader, 1, REPEAT_MAX,
				      &options->repeat, failure);
	default:
		return 0;
	}
}

/* Refuses flags that contradict each other. */
static int check_flags(struct options *options, struct failure *failure)
{
	static const struct {
		int id, other;
		const char *reason;
	} pairs[] = {
		{ OPTION_KILL_ON_FAIL, OPTION_KEEP_GOING,
		  "not together with --keep-going" },
		{ OPTION_PLAIN, OPTION_GATHERED, "not together with -b" },
		{ OPTION_PLAIN, OPTION_JSON, "not together with --json" },
		{ OPTION_GATHERED, OPTION_JSON, "not together with --json" },
	};
	struct options_reader *reader = &options->reader;

	for (unsigned i = 0; i < ARRAY_LEN(pairs); i++)
		if (options_given(reader, pairs[i].id) &&
		    options_given(reader, pairs[i].other))
			return options_refuse_entry(reader, pairs[i].id,
						    failure, pairs[i].reason);
	return 0;
}

/* WCOLL is the name of a file, as in pdsh. */
static int add_default_hosts(struct options *options, struct failure *failure)
{
	char *list = NULL;
	int ret;

	if (options->hosts.count > 0 || !getenv("WCOLL"))
		return 0;
	if (asprintf(&list, "^%s", getenv("WCOLL")) < 0)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "WCOLL");
	ret = hostlist_add(&options->hosts, list, failure);
	if (ret < 0)
		failure->what = "WCOLL"; /* list is freed below */
	free(list);
	return ret;
}

static int complete_hosts(struct options *options, struct failure *failure)
{
	int ret = add_default_hosts(options, failure);

	for (unsigned i = 0; ret == 0 && i < options->excluded_count; i++)
		ret = hostlist_exclude(&options->hosts, options->excluded[i],
				       failure);
	return ret;
}

static int complete_options(struct options *options, struct failure *failure)
{
	const struct options_reader *reader = &options->reader;

	if (options_given(reader, OPTION_JSON))
		options->mode = REPORT_JSON;
	else if (options_given(reader, OPTION_PLAIN))
		options->mode = REPORT_PLAIN;
	else if (options_given(reader, OPTION_GATHERED))
		options->mode = REPORT_GATHERED;
	options->words = reader->operands;
	options->word_count = reader->operand_count;
	options->is_command =
		reader->operand_count > 0 &&
		(reader->has_separator || reader->operands[0][0] == '/');
	return check_flags(options, failure);
}

/* --- what to do ----------------------------------------------------------- */

static int read_key(const struct options *options, uint8_t *key,
		    struct failure *failure)
{
	const char *path = options_value(&options->reader, OPTION_KEY);

	if (!path)
		path = getenv("BLINK_KEY");
	if (!path)
		return usage_failed(failure, "--key-file",
				    "is missing, and BLINK_KEY is not set; see "
				    "blinksh --help");
	return keyfile_read(path, key, failure);
}

static int init_client(struct client *client, const struct options *options,
		       struct failure *failure)
{
	/* Queries, and launches with --keep-going, go on without lost nodes, of
	 * which unknown hosts are some. */
	bool loses_unknown = !options->is_command ||
			     options_given(&options->reader, OPTION_KEEP_GOING);
	uint8_t key[WIRE_KEY_BYTES];
	int ret;

	if (options->hosts.count == 0 && options->excluded_count > 0)
		return usage_failed(failure, "-x", "leaves no host of -w");
	if (options->hosts.count == 0)
		return usage_failed(failure, "-w", "no hosts");
	ret = command_init();
	if (ret < 0)
		return failure_set(failure, EXIT_RESOURCES, "libsodium", -ret,
				   "");
	ret = read_key(options, key, failure);
	if (ret == 0)
		ret = client_init(client, &options->hosts, key,
				  options->lost_after_ms * 1000000u,
				  loses_unknown, failure);
	explicit_bzero(key, sizeof(key));
	if (ret < 0)
		return ret;
	ret = client_catch_signals();
	return ret < 0 ? failure_set(failure, EXIT_RESOURCES, NULL, -ret,
				     "signals")
		       : 0;
}

static int socket_failed(const struct client *client, int ret,
			 struct failure *failure)
{
	if (client->signal != 0)
		return 0;
	return failure_set(failure, EXIT_PEER, NULL, -ret, "socket");
}

static bool any_lost(const struct client *client)
{
	for (uint32_t i = 0; i < client->node_count; i++) {
		if (client->nodes[i].lost)
			return true;
	}
	return false;
}

static void print_job(const struct launch *launch)
{
	char text[2 * WIRE_JOB_BYTES + 1];

	log_warnx("job %s", format_hex(text, launch->job, WIRE_JOB_BYTES));
}

/* Runs the command as often as wanted, while it succeeds. */
static int run_launches(struct launch *launch, const struct options *options,
			struct report_samples *samples)
{
	int ret = 0;

	for (uint64_t i = 0; i < options->repeat && ret == 0; i++) {
		if (i > 0 && options->interval_ms > 0 &&
		    client_rest(launch->client, options->interval_ms) < 0)
			break;
		ret = launch_prepare(launch);
		if (ret == 0 && options_given(&options->reader, OPTION_VERBOSE))
			print_job(launch);
		if (ret == 0)
			ret = launch_run(launch);
		samples->whole_ns[samples->count++] = launch->whole_ns;
		if (launch->client->signal != 0 || report_status(launch) != 0)
			break;
	}
	return ret;
}

static int report_launch(const struct launch *launch,
			 const struct options *options,
			 const struct report_samples *samples)
{
	int caught = launch->client->signal;
	int status = caught ? 128 + caught : report_status(launch);

	report_output(launch, options->mode, status, samples);
	if (options->mode != REPORT_JSON) {
		report_failures(launch);
		if (!options_given(&options->reader, OPTION_QUIET))
			report_times(launch, samples);
	}
	return status;
}

static int run_command(struct client *client, const struct options *options,
		       struct failure *failure)
{
	const struct launch_options launch_options = {
		.arguments = options->words,
		.argument_count = options->word_count,
		.lease_ms = (uint32_t)options->lease_ms,
		.timeout_ms = (uint32_t)options->timeout_ms,
		.kill_on_fail =
			!options_given(&options->reader, OPTION_KEEP_GOING),
		.shows_progress = options->mode != REPORT_JSON &&
				  isatty(STDERR_FILENO) == 1,
	};
	struct report_samples samples = { 0 };
	struct launch launch;
	int ret;

	if (options->words[0][0] != '/')
		return usage_failed(failure, options->words[0],
				    "not an absolute path, such as /bin/true: "
				    "no PATH is searched");
	ret = launch_init(&launch, client, &launch_options, failure);
	if (ret < 0)
		goto out;
	samples.whole_ns = calloc(options->repeat, sizeof(*samples.whole_ns));
	if (!samples.whole_ns) {
		ret = failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				  "--repeat");
		goto out;
	}
	ret = run_launches(&launch, options, &samples);
	if (ret < 0)
		ret = socket_failed(client, ret, failure);
	if (ret == 0)
		ret = report_launch(&launch, options, &samples);
out:
	free(samples.whole_ns);
	launch_fini(&launch);
	return ret;
}

static int parse_job(const char *text, uint8_t job[WIRE_JOB_BYTES])
{
	if (strlen(text) != 2 * WIRE_JOB_BYTES ||
	    strspn(text, "0123456789abcdef") != 2 * WIRE_JOB_BYTES)
		return -EINVAL;
	for (size_t i = 0; i < WIRE_JOB_BYTES; i++)
		sscanf(text + 2 * i, "%2hhx", &job[i]);
	return 0;
}

static int choose_query(struct query *query, const struct options *options,
			struct failure *failure)
{
	const char *word = options->word_count > 0 ? options->words[0] : NULL;
	unsigned word_count = 1;

	if (!word)
		return usage_failed(failure, "COMMAND",
				    "is missing; see blinksh --help");
	if (strcmp(word, "ping") == 0) {
		query->kind = QUERY_PING;
	} else if (strcmp(word, "status") == 0) {
		query->kind = QUERY_STATUS;
	} else if (strcmp(word, "cancel") == 0) {
		query->kind = QUERY_CANCEL;
		word_count = 2;
	} else if (strcmp(word, "stop") == 0) {
		return usage_failed(failure, word,
				    "SIGTERM stops a daemon, on its own host; "
				    "see blinkd(1)");
	} else {
		return usage_failed(failure, word,
				    "not ping, status, cancel or keygen; write "
				    "'-- COMMAND' to run a command");
	}
	if (options->word_count != word_count)
		return usage_failed(failure, word, "wrong number of arguments");
	if (word_count == 2 && parse_job(options->words[1], query->job) < 0)
		return usage_failed(failure, options->words[1],
				    "not a job: 32 hexadecimal digits");
	return 0;
}

static int run_query(struct query *query, const struct options *options,
		     struct failure *failure)
{
	struct client *client = query->client;
	int ret;

	/* init_client() has checked that there is at least one node. */
	query->nodes =
		calloc(MAX(1, client->node_count), sizeof(*query->nodes));
	if (!query->nodes)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "%u nodes", client->node_count);
	ret = query_run(query);
	if (ret < 0)
		ret = socket_failed(client, ret, failure);
	if (ret == 0) {
		report_query(query, options->mode == REPORT_JSON);
		if (client->signal != 0)
			ret = 128 + client->signal;
		else if (any_lost(client))
			ret = exit_status_of(WIRE_JOB_UNKNOWN, 0).status;
	}
	free(query->nodes);
	return ret;
}

static int keygen(const struct options *options, struct failure *failure)
{
	int ret;

	if (options->word_count != 2)
		return usage_failed(failure, "keygen", "one FILE is expected");
	/* Words behind the first are no options: "keygen --help" comes here. */
	if (options->words[1][0] == '-' || options->words[1][0] == '\0')
		return usage_failed(failure, "keygen",
				    "FILE is empty or begins with '-'; write "
				    "./ before such a name");
	ret = command_init();
	if (ret < 0)
		return failure_set(failure, EXIT_RESOURCES, "libsodium", -ret,
				   "");
	return keyfile_create(options->words[1], failure);
}

/* Returns the exit status, or -errno with *failure filled. */
static int run(struct options *options, struct client *client,
	       struct failure *failure)
{
	struct query query = { .client = client };
	int ret;

	/* keygen needs no hosts, so a bad WCOLL does not matter to it. */
	if (!options->is_command && options->word_count > 0 &&
	    strcmp(options->words[0], "keygen") == 0)
		return keygen(options, failure);
	ret = complete_hosts(options, failure);
	if (ret == 0 && !options->is_command)
		ret = choose_query(&query, options, failure);
	if (ret == 0)
		ret = init_client(client, options, failure);
	if (ret == 0 && options->is_command)
		ret = run_command(client, options, failure);
	else if (ret == 0)
		ret = run_query(&query, options, failure);
	return ret;
}

int main(int argc, char **argv)
{
	struct options options = {
		.lease_ms = LEASE_MS,
		.lost_after_ms = LOST_AFTER_MS,
		.repeat = 1,
	};
	struct client client = { 0 };
	struct failure failure = { 0 };
	int ret;

	log_init("blinksh");
	stdout_reserve();
	options_begin(&options.reader, entries, ARRAY_LEN(entries),
		      argv + (argc > 0));
	/* Words that follow the first one belong to the command. */
	options.reader.stops_at_operand = true;
	options.reader.hints = hints;
	options.reader.hint_count = ARRAY_LEN(hints);
	ret = options_read(&options.reader, take_option, &options, &failure);
	if (ret > 0) {
		ret = stdout_print_info(ret, "blinksh", help);
	} else {
		if (ret == 0)
			ret = complete_options(&options, &failure);
		if (ret == 0)
			ret = run(&options, &client, &failure);
		if (ret < 0)
			ret = log_failure(&failure);
		client_fini(&client);
		if (stdout_finish() != EXIT_DONE && ret == 0)
			ret = EXIT_FILE;
	}
	hostlist_free(&options.hosts);
	return ret;
}
