/*
 * blinksort_help.c - what blinksort --help prints, and hints at other options
 */
#include "programs/blinksort/blinksort_help.h"

#include <errno.h>
#include <stdio.h>

#include "base/base.h"

/* Each line as it is printed. */
/* clang-format off */
static const char usage[] =
"Usage: blinksort [OPTION]... INPUT... -o OUTPUT\n"
"Sort files of fixed-size records by their keys; stable.\n"
"The output appears when it is complete, or not at all; no input is changed but\n"
"one that -o names.  INPUT may be - (standard input) or a pipe of any length.\n"
"\n";

static const char files[] =
"Files:\n"
"  -o, --output=FILE         write the sorted records to FILE, or with - to\n"
"                            standard output; given more than once: write nearly\n"
"                            equal parts, in this order\n"
"      --output-device=DEVICE\n"
"                            overwrite this block device from its first byte on,\n"
"                            instead of -o\n"
"      --device-bytes=SIZE   sort only the first SIZE bytes of an INPUT that is a\n"
"                            block device (all)\n"
"      --header=BYTES        skip BYTES at the head of each INPUT, and begin each\n"
"                            output with those of the first; with BYTES:drop, not\n"
"      --sync                put the output on the medium before it gets its name\n"
"\n";

static const char order[] =
"Order:\n"
"      --record-size=BYTES   take records of this size (100)\n"
"      --key=OFFSET:LENGTH, --key=OFFSET:TYPE\n"
"                            compare this slice of a record, or this number, such\n"
"                            as u32 or f64; with :desc, descending (0:10)\n"
"  -r, --reverse             reverse the whole order; equal keys stay as they are\n"
"  -u, --unique[=WHICH]      write only the first of the records with equal keys,\n"
"                            or the last\n"
"  -m, --merge               merge files that are sorted already, in one pass\n"
"      --head=N              write only the first N records of the order\n"
"\n";

static const char order_more[] =
"More about order:\n"
"      --key=random:SEED     behind all other keys, or alone: take records in a\n"
"                            random order, the same for the same SEED\n"
"      --numbers=TYPE        write the number of each record in the input, from 0\n"
"                            on, as u32 or u64, in place of the record\n"
"  -s, --stable              do nothing: every sort is stable\n"
"  LENGTH                    a number of bytes, which are compared as they are\n"
"  TYPE                      u8, u16, u32, u64 or u128; i8 to i128, with a sign;\n"
"                            f16, bf16, f32 or f64; little endian, or with be\n"
"                            behind it, such as u16be, big endian\n"
"  :desc                     behind either: descending\n"
"  :nanlast, :nanfirst       behind a float: all NaNs last or first, with :desc\n"
"                            and --reverse, too; all are equal, and -0 equals 0\n"
"  Up to eight keys may be given: each decides when those before it are equal.\n"
"  The document of --json says how many records --unique has dropped.\n"
"\n";

static const char memory[] =
"Memory and threads:\n"
"      --threads=N, --parallel=N\n"
"                            use N threads (one for each CPU, if that pays)\n"
"  -S, --memory=SIZE, --buffer-size=SIZE\n"
"                            take no more memory, such as 512M, where M is MiB,\n"
"                            or 50% of what is available (all of that); sort what\n"
"                            does not fit by way of scratch files\n"
"  -T, --temporary-directory=DIR\n"
"                            make scratch files in DIR; given more than once: in\n"
"                            all of them ($TMPDIR, or the output's folder)\n"
"      --explain             print what the sort would do and why, and beyond\n"
"                            memory also how long it would take, and end\n"
"      --progress            tell on a terminal how far the sort has come\n"
"\n";

static const char external[] =
"Beyond memory:\n"
"      --batch-size=N        merge at most N sorted parts at once\n"
"      --compress=CODEC      compress scratch files, and what ranks send, by lz4,\n"
"                            zstd[:LEVEL], or auto: where that is faster (none)\n"
"      --suppose=RANKS:RECORDS[,NAME=NUMBER]...\n"
"                            explain the sort of so many records by so many ranks\n"
"                            of such memory, threads and rates, without any file;\n"
"                            NAME is mtu, overhead, latency-ns, senders,\n"
"                            receivers, shared-cpus, memory-read, memory-copy,\n"
"                            start-ns, compressed, storage, readers or keepers\n"
"      --disk-rates=READ:WRITE:BOTH[:REQUESTS]\n"
"                            plan and predict with these rates of the disk, in\n"
"                            bytes a second: of reading, of writing, and the sum\n"
"                            of both at once; and how many small reads from\n"
"                            anywhere it serves in a second (measured)\n"
"\n";

static const char reports[] =
"Reports and help:\n"
"      --checksum            print the sum of the records' CRC-32s; on standard\n"
"                            error if standard output gets the records\n"
"      --json                print a JSON document about the run; on standard\n"
"                            error if standard output gets the records\n"
"      --trace=FILE          write a timeline (Chrome trace events)\n"
"  -h, --help                print this text\n"
"      --help=TOPIC          print more: order (of keys), cluster (of machines),\n"
"                            external (of sorts beyond memory), tuning, or all\n"
"  -V, --version             print the version\n"
"      @FILE                 take the lines of FILE as further arguments\n"
"\n";

static const char tuning[] =
"Tuning, on which the output does not depend:\n"
"      --io=MODE             read the input by auto, buffered, mmap or direct\n"
"                            (auto)\n"
"      --numa=NODES          run on these NUMA nodes, such as 0-1, with their\n"
"                            memory; or auto, on all that there are, or off: take\n"
"                            the machine for one node (auto)\n"
"      --pin=WHEN            bind each thread to a CPU: yes, or no, which leaves\n"
"                            them where the kernel puts them (yes)\n"
"      --splitters=KIND      divide keys into auto, static or sampled ranges\n"
"                            (auto)\n"
"      --kernel=NAME         use auto, scalar, avx2 or avx512 code (auto)\n"
"\n";

static const char cluster[] =
"Sort over a cluster, as one of several ranks:\n"
"      --cluster             take rank and hosts from blinkd, Slurm or MPI; in\n"
"                            the names of files %r is the rank, %n how many ranks\n"
"                            there are, %h the host's name and %% is %\n"
"      --nodes=HOSTS         name all hosts in the order of the ranks, such as\n"
"                            a[01-16]\n"
"      --rank=R              be this one of them, counted from 0\n"
"      --link-rate=RATE      predict with this rate of this host's link each way,\n"
"                            in bytes a second, or as 25Gbit (measured)\n"
"      --shared-input        read INPUT together with all ranks, which name the\n"
"                            same files\n"
"      --gather=FILE         write one file with all ranks, instead of -o; if\n"
"                            given again, each file with some of the ranks\n"
"      --key-file=FILE       read the cluster's key from FILE ($BLINK_KEY)\n"
"      --job=NAME            distinguish this job from others of the same key\n"
"                            or user\n"
"      --schedule=KIND       send by rounds, all-at-once, grid[=AxB] or auto\n"
"                            (auto)\n"
"      --transport=KIND      send all by udp, also within a machine, or by mpi,\n"
"                            which needs blinksort-mpi beside this program\n"
"      --by-reference=WHEN   send references to records, not records: no, yes\n"
"                            (on one machine only) or auto (no)\n"
"      --roles=ROLES         say which ranks read, sort and keep, such as\n"
"                            read:0-3,sort:0-7,keep:4-7, or name a file of that\n"
"                            (all ranks do all); with --suppose also auto\n"
"      --port=P              give rank 0 this port (derived from the job)\n"
"      --payload=BYTES       limit a datagram's payload (what the path allows)\n"
"      --exchange-threads=N  send and receive by N threads (by the link)\n"
"      --plain               send one datagram with each system call\n"
"      --deadline=SECONDS    fail when a rank is silent for longer (5)\n"
"\n";

static const char statuses[] =
"Statuses: 0 done, 1 failed, 2 usage, 3 input or output file, 4 another rank\n"
"or the network, 5 memory or threads.  See ";
/* clang-format on */

enum {
	TOPIC_ORDER,
	TOPIC_CLUSTER,
	TOPIC_EXTERNAL,
	TOPIC_TUNING,
	TOPIC_ALL,
	TOPIC_NONE
};
static const char *const topics[] = { "order", "cluster", "external", "tuning",
				      "all" };

/* Each topic has a text; the last one is what --help prints without a topic. */
static const struct {
	const char *page;
	const char *parts[8];
} texts[] = {
	[TOPIC_ORDER] = { "blinksort-order(7)", { order, order_more } },
	[TOPIC_CLUSTER] = { "blinksort-cluster(7)", { cluster } },
	[TOPIC_EXTERNAL] = { "blinksort-external(7)", { memory, external } },
	[TOPIC_TUNING] = { "blinksort(1)", { tuning } },
	[TOPIC_ALL] = { "blinksort(1)",
			{ files, order, order_more, memory, external, tuning,
			  cluster, reports } },
	[TOPIC_NONE] = { "blinksort(1)", { files, order, memory, reports } },
};

int blinksort_help(struct options_reader *reader, struct failure *failure)
{
	unsigned topic = TOPIC_NONE;

	if (reader->value && options_choice(reader, topics, ARRAY_LEN(topics),
					    &topic, failure) < 0)
		return -EINVAL;
	fputs(usage, stdout);
	for (unsigned i = 0; i < ARRAY_LEN(texts[topic].parts); i++)
		if (texts[topic].parts[i])
			fputs(texts[topic].parts[i], stdout);
	printf("%s%s.\n", statuses, texts[topic].page);
	return 0;
}

#define NO_TEXT "keys are bytes or binary numbers, not text; see --key"
#define USE_REVERSE "use -r, or --key=OFFSET:TYPE:desc"

const struct options_hint blinksort_hints[BLINKSORT_HINTS] = {
	{ "check", 'c', "use blinkval, which checks files; see blinkval(1)" },
	{ NULL, 'C', "use blinkval -q, which checks files; see blinkval(1)" },
	{ NULL, 'k', "use --key=OFFSET:LENGTH or --key=OFFSET:TYPE, in bytes" },
	{ "field-separator", 't',
	  "records have no fields; --key counts bytes" },
	{ "numeric-sort", 'n',
	  "use --key=0:u64 and such: a binary number, not one of digits" },
	{ "general-numeric-sort", 'g',
	  "use --key=0:f64 and such: a binary number, not one of digits" },
	{ "ignore-leading-blanks", 'b', NO_TEXT },
	{ "dictionary-order", 'd', NO_TEXT },
	{ "ignore-case", 'f', NO_TEXT },
	{ "ignore-nonprinting", 'i', NO_TEXT },
	{ "month-sort", 'M', NO_TEXT },
	{ "human-numeric-sort", 0, NO_TEXT },
	{ "version-sort", 0, NO_TEXT },
	{ "sort", 0, NO_TEXT },
	{ "random-sort", 'R', "records are not shuffled" },
	{ "zero-terminated", 'z',
	  "records have a size, no end: --record-size" },
	{ "compress-program", 0, "use --compress=lz4 or --compress=zstd" },
	{ "files0-from", 0, "name the files as INPUT" },
	{ "debug", 0, "use --explain" },
	{ "dry-run", 0, "use --explain" },
	{ "desc", 0, USE_REVERSE },
	{ "descending", 0, USE_REVERSE },
};
