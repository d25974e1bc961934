/*
 * blinksh_main.c - the program that runs one command on many nodes at once
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "client.h"
#include "command.h"
#include "failure.h"
#include "hostlist.h"
#include "keyfile.h"
#include "launch.h"
#include "log.h"
#include "parse.h"
#include "report.h"
#include "survey.h"
#include "version.h"

#define LEASE_MS 10000
#define LOST_AFTER_MS 3000
#define REPEAT_MAX 1000000

struct options {
	const char *key_path;
	struct hostlist hosts;
	enum report_mode mode;
	bool quiet, verbose, keep_going;
	uint64_t lease_ms, timeout_ms, lost_after_ms;
	uint64_t repeat, interval_ms;
	bool is_command; /* words are a command, not one of ours */
	char **words;
	unsigned word_count;
};

static const char usage[] =
	"usage: blinksh [options] -w HOSTS -- COMMAND [ARGUMENT]...\n"
	"       blinksh [options] -w HOSTS ping | status | cancel JOB\n"
	"       blinksh keygen FILE\n";

static const char help[] =
	"\n"
	"Run a command on all hosts at once.  COMMAND is an absolute path; in "
	"it and in\n"
	"the arguments %r, %n, %h and %% stand for rank, number of nodes, host "
	"and '%'.\n"
	"\n"
	"  --key FILE       the cluster's key (default: $BLINK_KEY)\n"
	"  -w HOSTS         node[01-16],10.0.0.[1-4]:7300,^file (default: the "
	"file $WCOLL)\n"
	"  -x HOSTS         without these\n"
	"  --timeout=S      kill the command after so many seconds\n"
	"  --lease=S        it is killed when blinksh is gone for so long "
	"(10)\n"
	"  --lost-after=S   a node silent for so long is lost (3)\n"
	"  --kill-on-fail   one that fails ends all (the default)\n"
	"  --keep-going     it does not\n"
	"  -N               no labels\n"
	"  -b               equal output once, under its hosts\n"
	"  --json           all as one JSON document\n"
	"  --repeat=N       run it N times, one after the other\n"
	"  --interval=S     so long between two of them\n"
	"  -q               no line of times\n"
	"  -v               the job's id before it starts\n"
	"  --help           this text\n"
	"  --version        the version\n"
	"\n"
	"Exit status: 0; the command's; 128 + its signal; 124 timeout; 125 "
	"refused;\n"
	"127 lost.  The worst of all nodes wins.\n";

/* --- options -------------------------------------------------------------- */

enum {
	OPTION_KEY = 256,
	OPTION_TIMEOUT,
	OPTION_LEASE,
	OPTION_LOST_AFTER,
	OPTION_KILL_ON_FAIL,
	OPTION_KEEP_GOING,
	OPTION_JSON,
	OPTION_REPEAT,
	OPTION_INTERVAL,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{ "key", required_argument, NULL, OPTION_KEY },
	{ "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "lease", required_argument, NULL, OPTION_LEASE },
	{ "lost-after", required_argument, NULL, OPTION_LOST_AFTER },
	{ "kill-on-fail", no_argument, NULL, OPTION_KILL_ON_FAIL },
	{ "keep-going", no_argument, NULL, OPTION_KEEP_GOING },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "interval", required_argument, NULL, OPTION_INTERVAL },
	{ "repeat", required_argument, NULL, OPTION_REPEAT },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ 0 },
};

static int usage_failed(struct failure *failure, const char *what,
			const char *why)
{
	return failure_set(failure, EXIT_USAGE, what, 0, "%s", why);
}

/* "2", "0.25": seconds, to the millisecond, from 1 ms to ten days. */
static int parse_seconds(const char *what, const char *text,
			 uint64_t *milliseconds, struct failure *failure)
{
	const char *point = strchr(text, '.');
	char whole[16] = "", thousandths[4] = "000";
	size_t whole_length = point ? (size_t)(point - text) : strlen(text);
	size_t digits = point ? strlen(point + 1) : 0;
	uint64_t seconds, rest;

	if (whole_length >= sizeof(whole) || digits > 3 ||
	    (point && digits == 0))
		return usage_failed(failure, what, "not a number of seconds");
	memcpy(whole, text, whole_length);
	if (point)
		memcpy(thousandths, point + 1, digits);
	if (parse_u64(whole, 0, 864000, &seconds) < 0 ||
	    parse_u64(thousandths, 0, 999, &rest) < 0 || seconds + rest == 0)
		return usage_failed(failure, what, "not a number of seconds");
	*milliseconds = 1000 * seconds + rest;
	return 0;
}

static int take_option(struct options *options, int option,
		       struct failure *failure)
{
	switch (option) {
	case OPTION_KEY:
		options->key_path = optarg;
		return 0;
	case OPTION_TIMEOUT:
		return parse_seconds("--timeout", optarg, &options->timeout_ms,
				     failure);
	case OPTION_LEASE:
		return parse_seconds("--lease", optarg, &options->lease_ms,
				     failure);
	case OPTION_LOST_AFTER:
		return parse_seconds("--lost-after", optarg,
				     &options->lost_after_ms, failure);
	case OPTION_KILL_ON_FAIL:
	case OPTION_KEEP_GOING:
		options->keep_going = option == OPTION_KEEP_GOING;
		return 0;
	case OPTION_JSON:
		options->mode = REPORT_JSON;
		return 0;
	case 'N':
		options->mode = REPORT_PLAIN;
		return 0;
	case 'b':
		options->mode = REPORT_GATHERED;
		return 0;
	case 'q':
		options->quiet = true;
		return 0;
	case 'v':
		options->verbose = true;
		return 0;
	case OPTION_INTERVAL:
		return parse_seconds("--interval", optarg,
				     &options->interval_ms, failure);
	case OPTION_REPEAT:
		if (parse_u64(optarg, 1, REPEAT_MAX, &options->repeat) == 0)
			return 0;
		return usage_failed(failure, "--repeat",
				    "not a number from 1 to 1000000");
	default:
		return usage_failed(failure, NULL, "try 'blinksh --help'");
	}
}

static void print_and_exit(const char *first, const char *second)
{
	fputs(first, stdout);
	fputs(second, stdout);
	exit(fflush(stdout) == 0 ? EXIT_DONE : EXIT_FILE);
}

static void print_version(void)
{
	printf("blinksh %s", blinksort_version);
	print_and_exit("\n", "");
}

static int parse_options(struct options *options, int argc, char **argv,
			 struct failure *failure)
{
	const char *excluded[256];
	unsigned excluded_count = 0;
	int option, ret = 0;

	/* "+": what follows the first word is the command's own. */
	while (ret == 0 && (option = getopt_long(argc, argv, "+w:x:Nbqv",
						 long_options, NULL)) != -1) {
		if (option == OPTION_HELP)
			print_and_exit(usage, help);
		else if (option == OPTION_VERSION)
			print_version();
		else if (option == 'w')
			ret = hostlist_add(&options->hosts, optarg, failure);
		else if (option == 'x' && excluded_count == ARRAY_LEN(excluded))
			ret = usage_failed(failure, "-x", "too often");
		else if (option == 'x')
			excluded[excluded_count++] = optarg;
		else
			ret = take_option(options, option, failure);
	}
	options->words = argv + optind;
	options->word_count = (unsigned)(argc - optind);
	options->is_command =
		options->word_count > 0 &&
		(strcmp(argv[optind - 1], "--") == 0 || argv[optind][0] == '/');

	if (ret == 0 && options->hosts.count == 0 && getenv("WCOLL")) {
		/* As pdsh has it: the name of a file. */
		char *list = NULL;

		if (asprintf(&list, "^%s", getenv("WCOLL")) < 0)
			return failure_set(failure, EXIT_RESOURCES, NULL,
					   ENOMEM, "WCOLL");
		ret = hostlist_add(&options->hosts, list, failure);
		if (ret < 0)
			failure->what = "WCOLL"; /* list is about to go */
		free(list);
	}
	for (unsigned i = 0; ret == 0 && i < excluded_count; i++)
		ret = hostlist_exclude(&options->hosts, excluded[i], failure);
	return ret;
}

/* --- what to do ----------------------------------------------------------- */

static int read_key(const struct options *options, uint8_t *key,
		    struct failure *failure)
{
	const char *path =
		options->key_path ? options->key_path : getenv("BLINK_KEY");

	if (!path)
		return usage_failed(failure, "--key",
				    "needed, or BLINK_KEY in the environment");
	return keyfile_read(path, key, failure);
}

static int init_client(struct client *client, const struct options *options,
		       struct failure *failure)
{
	uint8_t key[WIRE_KEY_BYTES];
	int ret;

	if (options->hosts.count == 0)
		return usage_failed(failure, "-w", "no hosts");
	ret = command_init();
	if (ret < 0)
		return failure_set(failure, EXIT_RESOURCES, "libsodium", -ret,
				   "");
	ret = read_key(options, key, failure);
	if (ret == 0)
		ret = client_init(client, &options->hosts, key,
				  options->lost_after_ms * 1000000u, failure);
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

	log_warnx("job %s", report_job(text, launch->job));
}

/* As often as wanted, while all goes well. */
static int run_launches(struct launch *launch, const struct options *options,
			struct report_samples *samples)
{
	int ret = 0;

	for (uint64_t i = 0; i < options->repeat && ret == 0; i++) {
		if (i > 0 && options->interval_ms > 0 &&
		    client_rest(launch->client, options->interval_ms) < 0)
			break;
		ret = launch_prepare(launch);
		if (ret == 0 && options->verbose)
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
		report_failures(launch, launch->client->lost_after_ns);
		if (!options->quiet)
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
		.kill_on_fail = !options->keep_going,
	};
	struct report_samples samples = { 0 };
	struct launch launch;
	int ret;

	if (options->words[0][0] != '/')
		return usage_failed(failure, options->words[0],
				    "not an absolute path");
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

static int choose_survey(struct survey *survey, const struct options *options,
			 struct failure *failure)
{
	const char *word = options->word_count > 0 ? options->words[0] : NULL;
	unsigned word_count = 1;

	if (!word)
		return usage_failed(failure, NULL,
				    "no command; try 'blinksh --help'");
	if (strcmp(word, "ping") == 0) {
		survey->kind = SURVEY_PING;
	} else if (strcmp(word, "status") == 0) {
		survey->kind = SURVEY_STATUS;
	} else if (strcmp(word, "cancel") == 0) {
		survey->kind = SURVEY_CANCEL;
		word_count = 2;
	} else {
		return usage_failed(failure, word,
				    "write '-- COMMAND' to run a command");
	}
	if (options->word_count != word_count)
		return usage_failed(failure, word, "wrong number of arguments");
	if (word_count == 2 && parse_job(options->words[1], survey->job) < 0)
		return usage_failed(failure, options->words[1],
				    "not a job: 32 hexadecimal digits");
	return 0;
}

static int run_survey(struct survey *survey, const struct options *options,
		      struct failure *failure)
{
	struct client *client = survey->client;
	int ret;

	/* One node at least: the list of hosts was read. */
	survey->nodes =
		calloc(MAX(1, client->node_count), sizeof(*survey->nodes));
	if (!survey->nodes)
		return failure_set(failure, EXIT_RESOURCES, NULL, ENOMEM,
				   "%u nodes", client->node_count);
	ret = survey_run(survey);
	if (ret < 0)
		ret = socket_failed(client, ret, failure);
	if (ret == 0) {
		report_survey(survey, options->mode == REPORT_JSON);
		if (client->signal != 0)
			ret = 128 + client->signal;
		else if (any_lost(client))
			ret = outcome_of(WIRE_JOB_UNKNOWN, 0).status;
	}
	free(survey->nodes);
	return ret;
}

/* The exit status, or -errno with *failure filled. */
static int run(const struct options *options, struct failure *failure)
{
	struct client client = { 0 };
	struct survey survey = { .client = &client };
	int ret = 0;

	if (!options->is_command)
		ret = choose_survey(&survey, options, failure);
	if (ret == 0)
		ret = init_client(&client, options, failure);
	if (ret == 0 && options->is_command)
		ret = run_command(&client, options, failure);
	else if (ret == 0)
		ret = run_survey(&survey, options, failure);
	client_fini(&client);
	return ret;
}

static int keygen(const struct options *options, struct failure *failure)
{
	int ret;

	if (options->word_count != 2)
		return usage_failed(failure, "keygen", "one file is wanted");
	ret = command_init();
	if (ret < 0)
		return failure_set(failure, EXIT_RESOURCES, "libsodium", -ret,
				   "");
	return keyfile_create(options->words[1], failure);
}

int main(int argc, char **argv)
{
	struct options options = {
		.lease_ms = LEASE_MS,
		.lost_after_ms = LOST_AFTER_MS,
		.repeat = 1,
	};
	struct failure failure = { 0 };
	int ret;

	log_init("blinksh");
	if (argc > 1 && strcmp(argv[1], "keygen") == 0) {
		/* Not in need of hosts, so a bad WCOLL does not matter. */
		options.words = argv + 1;
		options.word_count = (unsigned)(argc - 1);
		ret = keygen(&options, &failure);
	} else {
		ret = parse_options(&options, argc, argv, &failure);
		if (ret == 0)
			ret = run(&options, &failure);
	}
	if (ret < 0)
		ret = log_failure(&failure);
	hostlist_free(&options.hosts);
	return ret;
}
