/*
 * test_rank.c - ranks, hosts and secrets, as each launcher tells them
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "net/rank.h"

#define DIGITS "00112233445566778899aabbccddeeff"
#define SECRET "a secret that nobody may print.." /* 32 bytes */

static const char *const variables[] = {
	"BLINK_RANK",
	"BLINK_NODES",
	"BLINK_HOSTS",
	"BLINK_JOB",
	"BLINK_SECRET_FD",
	"BLINK_KEY",
	"OMPI_COMM_WORLD_RANK",
	"OMPI_COMM_WORLD_SIZE",
	"OMPI_COMM_WORLD_LOCAL_SIZE",
	"PMI_RANK",
	"PMI_SIZE",
	"PMI_JOBID",
	"PMI_FD",
	"MPI_LOCALNRANKS",
	"PMIX_RANK",
	"PMIX_NAMESPACE",
	"SLURM_PROCID",
	"SLURM_NTASKS",
	"SLURM_STEP_NUM_TASKS",
	"SLURM_STEP_NODELIST",
	"SLURM_STEP_TASKS_PER_NODE",
	"SLURM_DISTRIBUTION",
	"SLURM_NODEID",
	"SLURM_JOB_ID",
	"SLURM_STEP_ID",
};

static char folder[] = "/tmp/blinksort-rank.XXXXXX";
static char key_path[sizeof(folder) + 8];
static const struct rank_options no_options;

static void clear(void)
{
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		unsetenv(variables[i]);
}

/* NAME=VALUE, separated by blanks; what was set before is gone. */
static void set(const char *text)
{
	char copy[1024], *rest, *one;

	clear();
	snprintf(copy, sizeof(copy), "%s", text);
	for (one = strtok_r(copy, " ", &rest); one;
	     one = strtok_r(NULL, " ", &rest)) {
		char *value = strchr(one, '=');

		assert_non_null(value);
		*value++ = '\0';
		setenv(one, value, 1);
	}
}

static void write_key(mode_t mode)
{
	int fd;

	unlink(key_path);
	fd = open(key_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, DIGITS DIGITS "\n", 65), 65);
	assert_int_equal(close(fd), 0);
}

static int setup(void **state)
{
	(void)state;
	clear();
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(key_path, sizeof(key_path), "%s/key", folder);
	write_key(0400);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	clear();
	unlink(key_path);
	return rmdir(folder);
}

/* --- what is expected ---------------------------------------------------- */

static void find(struct rank *rank, const struct rank_options *options)
{
	struct failure failure = { 0 };

	memset(rank, 0x55, sizeof(*rank));
	if (rank_find(rank, options, &failure) != 0)
		fail_msg("%s: %s", failure.what, failure.why);
	assert_int_equal(failure.status, EXIT_DONE);
}

/* "rank/count source name=address ..." */
static void expect(const struct rank_options *options, const char *want)
{
	char seen[8192], text[ADDRESS_TEXT_BYTES];
	struct rank rank;
	size_t n;

	find(&rank, options);
	n = (size_t)snprintf(seen, sizeof(seen), "%u/%u %s", rank.rank,
			     rank.node_count, rank.source);
	for (unsigned r = 0; r < rank.node_count; r++)
		n += (size_t)snprintf(seen + n, sizeof(seen) - n, " %s=%s",
				      rank.names[r],
				      address_format(&rank.addresses[r], text));
	assert_string_equal(seen, want);
	rank_free(&rank);
}

static void expect_failure_of(const struct rank_options *options,
			      enum exit_status status, const char *what,
			      const char *why)
{
	static const struct rank zero;
	struct failure failure = { 0 };
	struct rank rank;

	memset(&rank, 0x55, sizeof(rank));
	assert_in_range(-rank_find(&rank, options, &failure), 1, 4095);
	if (failure.status != status || strcmp(failure.what, what) != 0 ||
	    !strstr(failure.why, why))
		fail_msg("%d, %s: %s", failure.status, failure.what,
			 failure.why);
	assert_null(strstr(failure.why, "00112233"));
	assert_null(strstr(failure.why, "secret that"));
	assert_null(strchr(failure.why, '\n'));
	assert_memory_equal(&rank, &zero, sizeof(rank));
	rank_free(&rank);
}

static void expect_usage(const char *environment, const char *what,
			 const char *why)
{
	set(environment);
	expect_failure_of(&no_options, EXIT_USAGE, what, why);
}

/* BLAKE2b of the parts of the job's name, each with a NUL behind it. */
static void expect_secret(const struct rank_options *options, const char *name,
			  size_t name_bytes)
{
	static const uint8_t personal[16] = "blink rank 1";
	uint8_t key[32], want[32];
	struct rank rank;

	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i % 16 * 0x11);
	assert_int_equal(crypto_generichash_blake2b_salt_personal(
				 want, sizeof(want), (const uint8_t *)name,
				 name_bytes, key, sizeof(key), NULL, personal),
			 0);
	find(&rank, options);
	assert_memory_equal(rank.secret, want, sizeof(want));
	rank_free(&rank);
	assert_true(sodium_is_zero(rank.secret, sizeof(rank.secret)));
}

#define EXPECT_SECRET(options, name)                                           \
	expect_secret(options, name, sizeof(name) - 1)

/* --- options ------------------------------------------------------------- */

static void rank_find__options(void **state)
{
	(void)state;
	expect(&(struct rank_options){ .nodes = "127.0.0.[1-3],[::1]:5",
				       .rank = "3" },
	       "3/4 options 127.0.0.1=127.0.0.1:7300 "
	       "127.0.0.2=127.0.0.2:7300 127.0.0.3=127.0.0.3:7300 "
	       "[::1]:5=[::1]:5");
	expect(&(struct rank_options){ .nodes = "127.0.0.9:12", .rank = "0" },
	       "0/1 options 127.0.0.9:12=127.0.0.9:12");
}

static void rank_find__options_wrong(void **state)
{
	static const struct {
		const char *nodes, *rank, *what, *why;
	} cases[] = {
		{ NULL, NULL, "--nodes, --rank", "needed" },
		{ "127.0.0.1", NULL, "--rank", "needed" },
		{ NULL, "7", "--rank", "needs --nodes" },
		{ "127.0.0.[1-2]", "2", "--rank", "'2': want a number" },
		{ "127.0.0.[1-2]", "-1", "--rank", "from 0 to 1" },
		{ "127.0.0.[1-2]", "x", "--rank", "'x'" },
		{ "127.0.0.[1-2]", "", "--rank", "''" },
		{ "127.0.0.[1-2]", "4294967296", "--rank", "'4294967296'" },
		{ "127.0.0.1,127.0.0.1", "1", "--nodes",
		  "127.0.0.1 is listed twice" },
		{ "127.0.0.[1-3],127.0.0.2", "0", "--nodes",
		  "127.0.0.2 is listed twice" },
		{ "[::1]:4,127.0.0.1,[::1]:4", "0", "--nodes",
		  "[::1]:4 is listed twice" },
		{ "127.0.0.1,127.0.0.1:7300", "0", "--nodes",
		  "127.0.0.1 and 127.0.0.1:7300 are one address" },
		{ "127.0.0.2,::1,[0::1]:7300", "2", "--nodes",
		  "::1 and [0::1]:7300 are one address" },
		{ "127.0.0.1,[::ffff:127.0.0.1]", "0", "--nodes",
		  "127.0.0.1 and [::ffff:127.0.0.1] are one address" },
		{ "127.0.[1-17].[1-241]", "0", "--nodes", "too many hosts" },
		{ "127.0.0.1!127.0.0.1", "0", "--nodes", "0 hosts" },
		{ "127.0.0.[1-", "0", "--nodes", "127.0.0.[1-" },
		{ "", "0", "--nodes", "missing" },
		{ "127.0.0.1,10.1", "0", "--nodes", "not an address: 10.1" },
		{ "127.0.0.1:0", "0", "--nodes", "127.0.0.1:0" },
		{ "10.0.0.1,127.0.0.1", "1", "--key-file", "10.0.0.1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		expect_failure_of(
			&(struct rank_options){ .nodes = cases[i].nodes,
						.rank = cases[i].rank },
			EXIT_USAGE, cases[i].what, cases[i].why);
}

static void rank_find__no_such_host(void **state)
{
	(void)state;
	/* Refused without asking a name server: no label begins so. */
	expect_failure_of(&(struct rank_options){ .nodes = "127.0.0.1,no..such",
						  .rank = "0" },
			  EXIT_PEER, "--nodes", "no..such");
}

static void rank_find__as_many_as_can_be(void **state)
{
	struct rank rank;

	(void)state;
	find(&rank, &(struct rank_options){ .nodes = "127.0.[0-15].[0-255]",
					    .rank = "4095" });
	assert_int_equal(rank.rank, 4095);
	assert_int_equal(rank.node_count, RANK_NODES_MAX);
	assert_string_equal(rank.names[4095], "127.0.15.255");
	rank_free(&rank);
}

/* --- launchers ----------------------------------------------------------- */

#define BLINKD "BLINK_RANK=1 BLINK_NODES=2 BLINK_JOB=0123 "
#define OPEN_MPI                                                               \
	"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3 PMIX_RANK=1 "           \
	"PMIX_NAMESPACE=1607860225 OMPI_COMM_WORLD_LOCAL_SIZE="
#define HYDRA "PMI_RANK=2 PMI_SIZE=3 MPI_LOCALNRANKS="
#define SLURM                                                                  \
	"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 SLURM_NTASKS=99 "               \
	"SLURM_JOB_ID=12 SLURM_STEP_ID=3 SLURM_STEP_NODELIST=127.0.0.[1-3] "
#define LOCAL "127.0.0.1=127.0.0.1:7300"

static void rank_find__blinkd(void **state)
{
	(void)state;
	set(BLINKD "BLINK_HOSTS=127.0.0.[5-6]:9");
	expect(&no_options, "1/2 blinkd 127.0.0.5:9=127.0.0.5:9 "
			    "127.0.0.6:9=127.0.0.6:9");
}

static void rank_find__mpirun(void **state)
{
	(void)state;
	set(OPEN_MPI "3");
	expect(&no_options, "1/3 pmi " LOCAL " " LOCAL " " LOCAL);
	set(HYDRA "3");
	expect(&no_options, "2/3 pmi " LOCAL " " LOCAL " " LOCAL);
}

static void rank_find__mpirun_elsewhere(void **state)
{
	(void)state;
	expect_usage(OPEN_MPI "2", "OMPI_COMM_WORLD_LOCAL_SIZE",
		     "2 of 3 ranks are on this machine: give --nodes");
	expect_usage(HYDRA "1", "MPI_LOCALNRANKS",
		     "give --nodes, or start the ranks by srun");
	expect_usage(HYDRA "4", "MPI_LOCALNRANKS", "'4': want a number");
	expect_usage(HYDRA "0", "MPI_LOCALNRANKS", "'0': want a number");
	expect_usage("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2",
		     "OMPI_COMM_WORLD_RANK",
		     "give --nodes, or start the ranks by srun");
	expect_usage("PMI_RANK=0 PMI_SIZE=2", "PMI_RANK",
		     "give --nodes, or start the ranks by srun");
	expect_usage("PMIX_RANK=0 PMIX_NAMESPACE=x", "PMIX_RANK",
		     "give --nodes, or start the ranks by srun");
}

static void rank_find__wrong_numbers(void **state)
{
	static const struct {
		const char *environment, *what, *why;
	} cases[] = {
		{ "BLINK_RANK=0", "BLINK_NODES", "is not set" },
		{ "BLINK_RANK=0 BLINK_NODES=0", "BLINK_NODES", "'0'" },
		{ "BLINK_RANK=0 BLINK_NODES=4097", "BLINK_NODES",
		  "'4097': want a number from 1 to 4096" },
		{ "BLINK_RANK=2 BLINK_NODES=2", "BLINK_RANK",
		  "'2': want a number from 0 to 1" },
		{ "BLINK_RANK= BLINK_NODES=2", "BLINK_RANK", "''" },
		{ "BLINK_RANK=1x BLINK_NODES=2", "BLINK_RANK", "'1x'" },
		{ "PMI_RANK=5 PMI_SIZE=5", "PMI_RANK", "'5'" },
		{ "PMI_RANK=0", "PMI_SIZE", "is not set" },
		{ "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE",
		  "is not set" },
		/* A batch script, not a step. */
		{ "SLURM_PROCID=0 SLURM_NTASKS=4", "SLURM_STEP_NUM_TASKS",
		  "is not set" },
		{ "SLURM_PROCID=4 SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID",
		  "'4'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		expect_usage(cases[i].environment, cases[i].what, cases[i].why);
}

static void rank_find__hosts_wrong(void **state)
{
	(void)state;
	expect_usage(BLINKD, "BLINK_HOSTS", "is not set: give --nodes");
	expect_usage(BLINKD "BLINK_HOSTS=127.0.0.1", "BLINK_HOSTS",
		     "1 hosts (each counts once) for 2 ranks (BLINK_NODES)");
	expect_usage(BLINKD "BLINK_HOSTS=127.0.0.[1-3]", "BLINK_HOSTS",
		     "3 hosts");
	expect_usage(BLINKD "BLINK_HOSTS=127.0.0.[1", "BLINK_HOSTS",
		     "127.0.0.[1");
	expect_usage("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1",
		     "SLURM_STEP_NODELIST", "is not set: give --nodes");
}

/* Hosts of one's own choice, the rank from elsewhere. */
static void rank_find__nodes_only(void **state)
{
	const struct rank_options two = { .nodes = "127.0.0.8,[::1]:1" };
	const struct rank_options three = { .nodes = "127.0.0.[1-3]:1" };
	const char hosts[] = " 127.0.0.8=127.0.0.8:7300 [::1]:1=[::1]:1";
	const char *const environments[][2] = {
		{ BLINKD, "blinkd" },
		{ BLINKD "BLINK_HOSTS=10.0.0.1", "blinkd" },
		{ "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2", "slurm" },
		{ "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2", "pmi" },
		{ "PMI_RANK=1 PMI_SIZE=2", "pmi" },
		{ "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=1", "pmi" },
		{ "PMIX_RANK=1", "pmi" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(environments); i++) {
		char want[100];

		set(environments[i][0]);
		snprintf(want, sizeof(want), "1/2 %s%s", environments[i][1],
			 hosts);
		expect(&two, want);
	}
	set(BLINKD);
	expect_failure_of(&three, EXIT_USAGE, "--nodes",
			  "3 hosts (each counts once) for 2 ranks "
			  "(BLINK_NODES)");
}

static void rank_find__which_first(void **state)
{
	const char hosts[] = BLINKD OPEN_MPI "3 " HYDRA "3 " SLURM
					     "SLURM_STEP_TASKS_PER_NODE=2,1(x2)"
					     " BLINK_HOSTS=127.0.0.[1-2]";

	(void)state;
	set(hosts);
	expect(&(struct rank_options){ .nodes = "127.0.0.7", .rank = "0" },
	       "0/1 options 127.0.0.7=127.0.0.7:7300");
	expect(&no_options, "1/2 blinkd 127.0.0.1=127.0.0.1:7300 "
			    "127.0.0.2=127.0.0.2:7300");
	/* Of a daemon of mpirun's in a Slurm job. */
	unsetenv("BLINK_RANK");
	expect(&no_options, "1/3 pmi " LOCAL " " LOCAL " " LOCAL);
	unsetenv("OMPI_COMM_WORLD_RANK");
	expect(&no_options, "2/3 pmi " LOCAL " " LOCAL " " LOCAL);
	/* Slurm's own PMI has no hosts, Slurm has. */
	unsetenv("MPI_LOCALNRANKS");
	expect(&no_options, "1/4 slurm 127.0.0.1=127.0.0.1:7300 "
			    "127.0.0.1=127.0.0.1:7300 "
			    "127.0.0.2=127.0.0.2:7300 "
			    "127.0.0.3=127.0.0.3:7300");
	unsetenv("SLURM_PROCID");
	expect_failure_of(&no_options, EXIT_USAGE, "PMI_RANK", "--nodes");
	unsetenv("PMI_RANK");
	expect_failure_of(&no_options, EXIT_USAGE, "PMIX_RANK", "--nodes");
}

/* --- Slurm --------------------------------------------------------------- */

static void rank_find__slurm_layouts(void **state)
{
	static const struct {
		const char *nodes, *tasks, *distribution;
		const char *want; /* of each rank: its address' last digit */
	} cases[] = {
		{ "127.0.0.[1-4]", "2(x3),1", NULL, "1122334" },
		{ "127.0.0.[1-4]", "2(x3),1", "block", "1122334" },
		{ "127.0.0.[1-4]", "2(x3),1", "block:cyclic", "1122334" },
		{ "127.0.0.[1-4]", "2(x3),1", "block:block,pack", "1122334" },
		{ "127.0.0.[1-4]", "2(x3),1", "block,nopack", "1122334" },
		{ "127.0.0.[1-4]", "2(x3),1", "nopack", "1122334" },
		{ "127.0.0.[1-4]", "2(x3),1", "pack", "1122334" },
		{ "127.0.0.[1-4]", "2(x3),1", "cyclic,pack", "1234123" },
		{ "127.0.0.[1-4]", "2(x3),1", "cyclic", "1234123" },
		{ "127.0.0.[1-4]", "2(x3),1", "cyclic:block", "1234123" },
		{ "127.0.0.[1-3]", "1,3,2", "cyclic", "123232" },
		{ "127.0.0.[1-3]", "1,3,2", NULL, "122233" },
		{ "127.0.0.3,127.0.0.1", "1(x2)", NULL, "31" },
		{ "127.0.0.[7,9]", "1,2", NULL, "799" },
		{ "127.0.0.5", "4", NULL, "5555" },
		{ "127.0.0.5", "1(x1)", "cyclic", "5" },
		{ "127.0.0.[1-3]", "1,0,1", "cyclic", "13" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char environment[300], seen[RANK_NODES_MAX + 1];
		struct rank rank;
		unsigned r;

		snprintf(environment, sizeof(environment),
			 "SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=%zu "
			 "SLURM_STEP_NODELIST=%s SLURM_STEP_TASKS_PER_NODE=%s",
			 strlen(cases[i].want), cases[i].nodes, cases[i].tasks);
		set(environment);
		if (cases[i].distribution)
			setenv("SLURM_DISTRIBUTION", cases[i].distribution, 1);
		find(&rank, &no_options);
		for (r = 0; r < rank.node_count; r++) {
			char text[ADDRESS_TEXT_BYTES];

			address_format(&rank.addresses[r], text);
			seen[r] = text[strlen("127.0.0.")];
			assert_int_equal(seen[r], rank.names[r][8]);
		}
		seen[r] = '\0';
		assert_string_equal(seen, cases[i].want);
		assert_string_equal(rank.source, "slurm");
		rank_free(&rank);
	}
}

#define TASKS "SLURM_STEP_TASKS_PER_NODE"

/* SLURM has four ranks on three hosts. */
static void rank_find__slurm_tasks_malformed(void **state)
{
	static const char *const malformed[] = {
		"x",	     "",
		",",	     "2,1,1,",
		"2,,1",	     "2(x",
		"2(x1",	     "2(x)",
		"2(3),1",    "2 ,1,1",
		"-2,1",	     "+2,1",
		"2(x1)2",    "2(x-1)",
		"2(x1],1,1", "65536",
		"1(x4097)",  "0(x4096),1",
		"2,1,1 ",    "18446744073709551617(x3),1"
	};

	(void)state;
	expect_usage(SLURM, TASKS, "is not set");
	for (size_t i = 0; i < ARRAY_LEN(malformed); i++) {
		char why[100];

		snprintf(why, sizeof(why), "'%s': want numbers such as",
			 malformed[i]);
		setenv(TASKS, malformed[i], 1);
		expect_failure_of(&no_options, EXIT_USAGE, TASKS, why);
	}
}

static void rank_find__slurm_tasks_wrong(void **state)
{
	static const char *const wrong[] = { "2,1",    "2(x2)",	  "1(x3)",
					     "2(x3)",  "1,1,3",	  "4",
					     "1(x4)",  "2,2,0,0", "65535(x3)",
					     "1(x128)" };

	(void)state;
	set(SLURM);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		setenv(TASKS, wrong[i], 1);
		expect_failure_of(&no_options, EXIT_USAGE, TASKS,
				  "not 4 ranks (SLURM_STEP_NUM_TASKS) on 3 "
				  "hosts (SLURM_STEP_NODELIST)");
	}
}

static void rank_find__slurm_distribution_wrong(void **state)
{
	static const char *const wrong[] = { "plane=2", "arbitrary", "",
					     "blocks",	"cyclical",  "cyc",
					     "bloc" };

	(void)state;
	set(SLURM TASKS "=2,1,1");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		setenv("SLURM_DISTRIBUTION", wrong[i], 1);
		expect_failure_of(&no_options, EXIT_USAGE, "SLURM_DISTRIBUTION",
				  wrong[i]);
	}
}

/* Rank 1 of 2,1,1. */
static void rank_find__slurm_node(void **state)
{
	static const char *const wrong[] = { "1", "2", "", "x", "-0" };
	struct rank rank;

	(void)state;
	set(SLURM TASKS "=2,1,1 SLURM_NODEID=0");
	find(&rank, &no_options);
	rank_free(&rank);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		setenv("SLURM_NODEID", wrong[i], 1);
		expect_failure_of(&no_options, EXIT_USAGE, "SLURM_NODEID",
				  "rank 1 should be on node 0");
	}
	setenv("SLURM_DISTRIBUTION", "cyclic", 1);
	setenv("SLURM_NODEID", "1", 1);
	find(&rank, &no_options);
	rank_free(&rank);
	setenv("SLURM_NODEID", "0", 1);
	expect_failure_of(&no_options, EXIT_USAGE, "SLURM_NODEID",
			  "'0': rank 1 should be on node 1; give --nodes");
	/* It says nothing of hosts of one's own choice. */
	find(&rank, &(struct rank_options){ .nodes = "127.0.0.[1-4]" });
	rank_free(&rank);
}

/* --- neighbours ---------------------------------------------------------- */

static void rank_find__neighbours(void **state)
{
	static const struct {
		const char *nodes, *rank;
		unsigned machine_rank, machine_count;
	} cases[] = {
		{ "10.0.0.1", "0", 0, 1 },
		{ "10.0.0.[1-3]", "1", 0, 1 },
		{ "10.0.0.1,10.0.0.2:[1-3]", "2", 1, 3 },
		{ "10.0.0.1,10.0.0.2:[1-3]", "0", 0, 1 },
		{ "127.0.0.[1-4]", "2", 2, 4 },
		{ "127.0.0.1,127.255.9.9:3,[::1]:[4-5]", "3", 3, 4 },
		{ "127.0.0.1,10.0.0.1,[::1]:[4-5]", "0", 0, 3 },
		{ "127.0.0.1,10.0.0.1,[::1]:[4-5]", "1", 0, 1 },
		{ "128.0.0.1,127.0.0.1,126.0.0.1", "1", 0, 1 },
		{ "10.0.0.1,[::ffff:10.0.0.1]:9", "1", 1, 2 },
		{ "2001:db8::1,[2001:db8::1]:4,2001:db8::2", "0", 0, 2 },
		{ "2001:db8::1,[2001:db8::1]:4,2001:db8::2", "2", 0, 1 },
		/* The same first bytes in the two families. */
		{ "0.0.0.0,::,::2", "1", 0, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct rank rank;

		find(&rank, &(struct rank_options){ .nodes = cases[i].nodes,
						    .rank = cases[i].rank,
						    .key_path = key_path });
		assert_int_equal(rank.machine_rank, cases[i].machine_rank);
		assert_int_equal(rank.machine_count, cases[i].machine_count);
		rank_free(&rank);
	}
}

static void rank_find__neighbours_of_mpirun(void **state)
{
	struct rank rank;

	(void)state;
	set(HYDRA "3");
	find(&rank, &no_options);
	assert_int_equal(rank.machine_rank, 2);
	assert_int_equal(rank.machine_count, 3);
	rank_free(&rank);
}

/* --- secrets ------------------------------------------------------------- */

static void set_descriptor(int fd)
{
	char text[16];

	set(BLINKD "BLINK_HOSTS=10.0.0.[1-2]");
	snprintf(text, sizeof(text), "%d", fd);
	setenv("BLINK_SECRET_FD", text, 1);
}

/* The end to read of a pipe with the first bytes of SECRET twice. */
static int make_pipe(size_t byte_count, bool keep_writer, int *writer)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], SECRET SECRET, byte_count), byte_count);
	*writer = ends[1];
	if (!keep_writer)
		close(ends[1]);
	set_descriptor(ends[0]);
	return ends[0];
}

static void rank_find__secret_in_pipe(void **state)
{
	(void)state;
	for (int keep = 0; keep < 2; keep++) {
		int writer;
		int fd = make_pipe(RANK_SECRET_BYTES, keep, &writer);
		struct rank rank;

		/* It is preferred to a key that lies about. */
		setenv("BLINK_KEY", key_path, 1);
		find(&rank, &no_options);
		assert_memory_equal(rank.secret, SECRET, RANK_SECRET_BYTES);
		assert_int_equal(fcntl(fd, F_GETFD), -1);
		rank_free(&rank);
		assert_true(sodium_is_zero(rank.secret, sizeof(rank.secret)));
		expect_failure_of(&no_options, EXIT_USAGE, "BLINK_SECRET_FD",
				  "not a file with a secret");
		if (keep)
			close(writer);
	}
}

/* A file in memory with bytes, and these seals. */
static int make_sealed(const char *bytes, size_t byte_count, int seals)
{
	int fd = memfd_create("secret", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, byte_count, 0), byte_count);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	set_descriptor(fd);
	return fd;
}

/* As blinkd has it. */
static void rank_find__secret_in_memory(void **state)
{
	int fd = make_sealed(SECRET, RANK_SECRET_BYTES,
			     F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE);
	struct rank rank;

	(void)state;
	find(&rank, &no_options);
	assert_memory_equal(rank.secret, SECRET, RANK_SECRET_BYTES);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	rank_free(&rank);
	/* One that has been read, that is too long, that may be changed. */
	fd = make_sealed(SECRET, RANK_SECRET_BYTES, F_SEAL_GROW);
	assert_int_equal(lseek(fd, RANK_SECRET_BYTES, SEEK_SET),
			 RANK_SECRET_BYTES);
	expect_failure_of(&no_options, EXIT_USAGE, "BLINK_SECRET_FD",
			  "no 32 bytes in this file");
	make_sealed(SECRET SECRET, 2 * RANK_SECRET_BYTES, F_SEAL_GROW);
	expect_failure_of(&no_options, EXIT_USAGE, "BLINK_SECRET_FD",
			  "no 32 bytes in this file");
	fd = make_sealed(SECRET, RANK_SECRET_BYTES, 0);
	expect_failure_of(&no_options, EXIT_USAGE, "BLINK_SECRET_FD",
			  "not a file with a secret");
	close(fd);
}

static void rank_find__secret_of_wrong_length(void **state)
{
	static const size_t lengths[] = { 0, 1, 31, 33, 64 };

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_LEN(lengths); i++) {
		int writer;
		int fd = make_pipe(lengths[i / 2], i % 2, &writer);

		expect_failure_of(&no_options, EXIT_USAGE, "BLINK_SECRET_FD",
				  "no 32 bytes in this file");
		assert_int_equal(fcntl(fd, F_GETFD), -1);
		if (i % 2)
			close(writer);
	}
}

static void rank_find__secret_not_in_pipe(void **state)
{
	static const char *const wrong[] = { "",  "x",	"0",  "1",
					     "2", "-1", "3x", "2147483648" };
	int writer, reader, fd;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		set_descriptor(0);
		setenv("BLINK_SECRET_FD", wrong[i], 1);
		expect_failure_of(&no_options, EXIT_USAGE, "BLINK_SECRET_FD",
				  "want a number from 3 to");
	}
	set_descriptor(1000000);
	expect_failure_of(&no_options, EXIT_USAGE, "BLINK_SECRET_FD",
			  "'1000000': not a file with a secret");
	/* Somebody else's file is left open. */
	fd = open(key_path, O_RDONLY | O_CLOEXEC);
	set_descriptor(fd);
	expect_failure_of(&no_options, EXIT_USAGE, "BLINK_SECRET_FD",
			  "not a file with a secret");
	assert_int_equal(close(fd), 0);
	/* The wrong end. */
	reader = make_pipe(RANK_SECRET_BYTES, true, &writer);
	set_descriptor(writer);
	expect_failure_of(&no_options, EXIT_USAGE, "BLINK_SECRET_FD",
			  "no 32 bytes");
	close(reader);
}

/* Only what blinkd has started has a job's secret. */
static void rank_find__secret_of_others(void **state)
{
	int writer;
	int fd = make_pipe(RANK_SECRET_BYTES, false, &writer);
	struct rank rank;

	(void)state;
	find(&rank,
	     &(struct rank_options){ .nodes = "127.0.0.1", .rank = "0" });
	assert_memory_not_equal(rank.secret, SECRET, RANK_SECRET_BYTES);
	rank_free(&rank);
	/* What was asked for by name goes first. */
	EXPECT_SECRET(&(struct rank_options){ .key_path = key_path }, "0123\0");
	assert_int_equal(close(fd), 0);
}

static void rank_find__secret_from_key(void **state)
{
	const char nodes[] = "10.0.0.[1-2]";
	const struct rank_options plain = { .nodes = nodes,
					    .rank = "1",
					    .key_path = key_path };
	const struct rank_options named = { .nodes = nodes,
					    .rank = "1",
					    .key_path = key_path,
					    .job = "a name" };

	(void)state;
	EXPECT_SECRET(&plain, "");
	EXPECT_SECRET(&named, "a name\0");
	set("BLINK_KEY=/nowhere BLINK_JOB=7");
	EXPECT_SECRET(&plain, "");
	setenv("BLINK_KEY", key_path, 1);
	EXPECT_SECRET((&(struct rank_options){ .nodes = nodes, .rank = "0" }),
		      "");
	/* Even where none is needed. */
	EXPECT_SECRET((&(struct rank_options){ .nodes = "::1", .rank = "0" }),
		      "");
}

/* Of a job without a key: what its ranks meet by. */
static void read_name(const struct rank_options *options,
		      char name[LOCAL_SECRET_NAME_BYTES])
{
	struct rank rank;

	find(&rank, options);
	assert_true(rank.is_keyless);
	memcpy(name, rank.local.name, sizeof(rank.local.name));
	rank_free(&rank);
}

static void expect_job(const char *environment, const char *job, bool same,
		       const char *want)
{
	char name[LOCAL_SECRET_NAME_BYTES];

	set(environment);
	read_name(&(struct rank_options){ .job = job }, name);
	if ((strcmp(name, want) == 0) != same)
		fail_msg("%s, %s: %s, %s", environment, job, name, want);
}

#define ON_HOST "PMI_SIZE=3 MPI_LOCALNRANKS=3 "

static void rank_find__job_without_key(void **state)
{
	char name[LOCAL_SECRET_NAME_BYTES];

	(void)state;
	set(ON_HOST "PMI_RANK=1 PMI_JOBID=5");
	read_name(&no_options, name);
	expect_job(ON_HOST "PMI_RANK=2 PMI_JOBID=5", NULL, true, name);
	expect_job(ON_HOST "PMI_RANK=0 PMI_JOBID=5", NULL, true, name);
	expect_job(ON_HOST "PMI_RANK=1", "5", true, name);
	expect_job(ON_HOST "PMI_RANK=1", NULL, false, name);
	expect_job(ON_HOST "PMI_RANK=1 PMI_JOBID=6", NULL, false, name);
	expect_job(ON_HOST "PMI_RANK=1 PMI_JOBID=5", "", false, name);
	expect_job("PMI_SIZE=4 MPI_LOCALNRANKS=4 PMI_RANK=1 PMI_JOBID=5", NULL,
		   false, name);
	expect_job("PMI_RANK=1 PMI_SIZE=3 PMI_JOBID=5 BLINK_RANK=1 "
		   "BLINK_NODES=3 BLINK_HOSTS=127.0.0.[1-3] BLINK_JOB=5",
		   NULL, false, name);
}

static void learn(struct rank *rank)
{
	struct failure failure = { 0 };

	/* No machine is so slow. */
	if (rank_learn_secret(rank, (uint64_t)60 * 1000000000, &failure))
		fail_msg("%s: %s", failure.what ? failure.what : "",
			 failure.why);
}

static void rank_learn_secret__without_key(void **state)
{
	uint8_t last[RANK_SECRET_BYTES] = { 0 };

	(void)state;
	for (unsigned run = 0; run < 3; run++) {
		struct rank ranks[3];

		for (unsigned r = 0; r < ARRAY_LEN(ranks); r++) {
			char text[8];

			snprintf(text, sizeof(text), "%u", r);
			set(ON_HOST);
			setenv("PMI_RANK", text, 1);
			find(&ranks[r], &no_options);
		}
		assert_memory_not_equal(ranks[0].secret, last, sizeof(last));
		memcpy(last, ranks[0].secret, sizeof(last));
		for (unsigned r = ARRAY_LEN(ranks); r-- > 0;) {
			learn(&ranks[r]);
			assert_memory_equal(ranks[r].secret, last,
					    sizeof(last));
		}
		for (unsigned r = 0; r < ARRAY_LEN(ranks); r++)
			rank_free(&ranks[r]);
	}
}

/* Nothing is waited for where it is known, or where there is one rank. */
static void rank_learn_secret__is_known(void **state)
{
	struct failure failure = { 0 };
	struct rank rank;

	(void)state;
	find(&rank, &(struct rank_options){ .nodes = "127.0.0.[1-2]",
					    .rank = "1",
					    .key_path = key_path });
	assert_false(rank.is_keyless);
	assert_int_equal(rank_learn_secret(&rank, 0, &failure), 0);
	rank_free(&rank);
	find(&rank,
	     &(struct rank_options){ .nodes = "127.0.0.1", .rank = "0" });
	assert_false(rank.is_keyless);
	assert_false(sodium_is_zero(rank.secret, sizeof(rank.secret)));
	assert_int_equal(rank_learn_secret(&rank, 0, &failure), 0);
	rank_free(&rank);
}

static void rank_learn_secret__no_rank_0(void **state)
{
	struct failure failure = { 0 };
	struct rank rank;

	(void)state;
	set(ON_HOST "PMI_RANK=1");
	find(&rank, &no_options);
	assert_int_not_equal(rank_learn_secret(&rank, 20000000, &failure), 0);
	assert_int_equal(failure.status, EXIT_PEER);
	assert_null(failure.what);
	assert_string_equal(failure.why, "rank 0 (127.0.0.1) has not come "
					 "within 0.0 s");
	rank_free(&rank);
}

static void rank_find__key_is_needed(void **state)
{
	static const char *const lists[] = { "10.0.0.1", "127.0.0.1,10.0.0.1",
					     "10.0.0.1,::1", "126.255.255.255",
					     "::2" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		expect_failure_of(&(struct rank_options){ .nodes = lists[i],
							  .rank = "0",
							  .job = "name" },
				  EXIT_USAGE, "--key-file", "BLINK_KEY");
}

static void rank_find__key_file_wrong(void **state)
{
	const struct rank_options options = { .nodes = "127.0.0.1",
					      .rank = "0",
					      .key_path = key_path };

	(void)state;
	write_key(0440);
	expect_failure_of(&options, EXIT_FILE, key_path, "chmod 0400");
	unlink(key_path);
	expect_failure_of(&options, EXIT_FILE, key_path, "No such file");
	set("BLINK_KEY=/nowhere/key");
	expect_failure_of(
		&(struct rank_options){ .nodes = "127.0.0.1", .rank = "0" },
		EXIT_FILE, "/nowhere/key", "No such file");
}

static void rank_free__twice(void **state)
{
	struct rank rank = { 0 };

	(void)state;
	rank_free(&rank);
	find(&rank,
	     &(struct rank_options){ .nodes = "127.0.0.[1-5]", .rank = "4" });
	rank_free(&rank);
	rank_free(&rank);
	assert_null(rank.addresses);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/* --- ranks that are given --------------------------------------------------
 */

/* Neither the environment nor the other options count. */
static void rank_find__given(void **state)
{
	static const char *const names[] = { "a", "b", "a" };
	struct rank_given given = {
		.source = "mpi",
		.rank = 2,
		.node_count = 3,
		.machine_rank = 1,
		.machine_count = 2,
		.names = names,
		.secret = SECRET,
	};
	struct rank rank;

	(void)state;
	set("BLINK_RANK=0 BLINK_NODES=7 BLINK_HOSTS=x");
	find(&rank, &(struct rank_options){ .given = &given, .rank = "5" });
	assert_int_equal(rank.rank, 2);
	assert_int_equal(rank.node_count, 3);
	assert_int_equal(rank.machine_rank, 1);
	assert_int_equal(rank.machine_count, 2);
	assert_string_equal(rank.source, "mpi");
	assert_string_equal(rank.names[1], "b");
	assert_string_equal(rank.names[2], "a");
	assert_memory_equal(rank.secret, SECRET, RANK_SECRET_BYTES);
	assert_false(rank.is_keyless);
	rank_free(&rank);
}

/* SLURM's ranks, but on three machines */
#define SLURM_APART                                                            \
	"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=3 "                               \
	"SLURM_STEP_NODELIST=10.0.0.[1-3] SLURM_STEP_TASKS_PER_NODE=1(x3) "
#define SLURM_PMI "PMI_RANK=1 PMI_SIZE=3 "

/* The environment, and PMI_FD, a socket; is PMI what gives the secret? */
static bool takes_pmi(const char *environment,
		      const struct rank_options *options)
{
	struct rank rank;
	char text[16];
	int fds[2];
	bool has_pmi;

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	set(environment);
	snprintf(text, sizeof(text), "%d", fds[0]);
	setenv("PMI_FD", text, 1);
	find(&rank, options);
	has_pmi = rank.pmi_fd > 0;
	assert_false(has_pmi && rank.is_keyless);
	rank_free(&rank);
	close(fds[0]);
	close(fds[1]);
	return has_pmi;
}

static void rank_find__pmi(void **state)
{
	const struct rank_options with_key = { .key_path = key_path };

	(void)state;
	assert_true(takes_pmi(SLURM_APART SLURM_PMI, &no_options));
	/* A key comes first, and so do ranks of one machine. */
	assert_false(takes_pmi(SLURM_APART SLURM_PMI, &with_key));
	assert_false(takes_pmi(SLURM "SLURM_STEP_TASKS_PER_NODE=2,1,1 "
				     "PMI_RANK=1 PMI_SIZE=4",
			       &no_options));
	assert_false(takes_pmi(HYDRA "3", &no_options));
	expect_usage(SLURM_APART, "--key-file",
		     "needed, or BLINK_KEY, or srun --mpi=pmi2: 10.0.0.1 is");
	expect_usage(SLURM_APART SLURM_PMI "PMI_FD=x", "PMI_FD",
		     "'x': not a socket of this process: give --key-file");
}

/* A PMI that is not Slurm's is no channel for a secret. */
static void rank_find__pmi_of_others(void **state)
{
	static const char *const launchers[] = {
		HYDRA "1",
		"PMI_RANK=1 PMI_SIZE=3 ",
		/* Open MPI's, and a launcher of its own within Slurm */
		OPEN_MPI "1 PMI_RANK=1 PMI_SIZE=3 ",
		SLURM_APART SLURM_PMI "MPI_LOCALNRANKS=1 ",
		SLURM_APART "PMI_RANK=1 PMI_SIZE=1 ",
		SLURM_APART "PMI_RANK=0 PMI_SIZE=3 ",
		SLURM_APART "PMI_SIZE=3 ",
		SLURM_APART "",
	};
	const struct rank_options apart = { .nodes = "10.0.0.[1-3]" };
	char environment[256], text[16];
	int fds[2];

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	snprintf(text, sizeof(text), " PMI_FD=%d", fds[0]);
	for (size_t i = 0; i < ARRAY_LEN(launchers); i++) {
		snprintf(environment, sizeof(environment), "%s%s", launchers[i],
			 text);
		set(environment);
		expect_failure_of(&apart, EXIT_USAGE, "--key-file",
				  "needed, or BLINK_KEY");
	}
	/* Nothing has been asked. */
	assert_true(recv(fds[1], text, 1, MSG_DONTWAIT) < 0);
	close(fds[0]);
	close(fds[1]);
}

/* "NAME rank/count", with " slurm" if it is that; "": none */
static void expect_launch(const char *environment, const char *want)
{
	struct rank_launch launch;
	char seen[128] = "";

	set(environment);
	if (rank_find_launch(&launch))
		snprintf(seen, sizeof(seen), "%s %u/%u%s", launch.name,
			 launch.rank, launch.node_count,
			 launch.is_slurm ? " slurm" : "");
	assert_string_equal(seen, want);
}

static void rank_find_launch__each(void **state)
{
	(void)state;
	expect_launch("", "");
	expect_launch("OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=300",
		      "OMPI_COMM_WORLD_SIZE 3/300");
	expect_launch("PMI_RANK=0 PMI_SIZE=2 MPI_LOCALNRANKS=2 "
		      "SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=5",
		      "PMI_SIZE 0/2");
	expect_launch("SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=5 PMI_RANK=1",
		      "SLURM_STEP_NUM_TASKS 1/5 slurm");
	/* A batch script is no step of so many tasks. */
	expect_launch("SLURM_PROCID=0 SLURM_NTASKS=5", "");
	expect_launch("PMIX_RANK=1", "");
	expect_launch("PMI_RANK=2 PMI_SIZE=2", "");
	expect_launch("PMI_RANK=x PMI_SIZE=2", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(rank_find__given),
		CASE(rank_find_launch__each),
		CASE(rank_find__options),
		CASE(rank_find__options_wrong),
		CASE(rank_find__no_such_host),
		CASE(rank_find__as_many_as_can_be),
		CASE(rank_find__blinkd),
		CASE(rank_find__mpirun),
		CASE(rank_find__mpirun_elsewhere),
		CASE(rank_find__wrong_numbers),
		CASE(rank_find__hosts_wrong),
		CASE(rank_find__nodes_only),
		CASE(rank_find__which_first),
		CASE(rank_find__slurm_layouts),
		CASE(rank_find__slurm_tasks_malformed),
		CASE(rank_find__slurm_tasks_wrong),
		CASE(rank_find__slurm_distribution_wrong),
		CASE(rank_find__slurm_node),
		CASE(rank_find__neighbours),
		CASE(rank_find__neighbours_of_mpirun),
		CASE(rank_find__secret_in_pipe),
		CASE(rank_find__secret_in_memory),
		CASE(rank_find__secret_of_wrong_length),
		CASE(rank_find__secret_not_in_pipe),
		CASE(rank_find__secret_of_others),
		CASE(rank_find__secret_from_key),
		CASE(rank_find__job_without_key),
		CASE(rank_find__pmi),
		CASE(rank_find__pmi_of_others),
		CASE(rank_learn_secret__without_key),
		CASE(rank_learn_secret__is_known),
		CASE(rank_learn_secret__no_rank_0),
		CASE(rank_find__key_is_needed),
		CASE(rank_find__key_file_wrong),
		CASE(rank_free__twice),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
