#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/failure.h"
#include "fake_root.h"
#include "skip.h"
#include "refusal.h"
#include "system/numa.h"
#include "system/topology.h"

/* Two CPUs on each of nodes 0, 2 and 5. */
static const struct topology topology = {
	.cpu_count = 6,
	.cpus = { 0, 1, 8, 9, 16, 17 },
	.node_count = 3,
	.nodes = { 0, 2, 5 },
	.node_of = { 0, 0, 1, 1, 2, 2 },
};

static void numa_parse__forms(void **state)
{
	static const struct {
		const char *text;
		uint64_t nodes;
	} cases[] = {
		{ "all", 1 << 0 | 1 << 2 | 1 << 5 },
		{ "0", 1 << 0 },
		{ "0-2,5", 1 << 0 | 1 << 1 | 1 << 2 | 1 << 5 },
		{ "63", UINT64_C(1) << 63 },
		{ "!0", 1 << 2 | 1 << 5 },
		{ "!1,5", 1 << 0 | 1 << 2 },
		{ "+0", 1 << 0 },
		{ "+1-2", 1 << 2 | 1 << 5 },
		{ "!+1", 1 << 0 | 1 << 5 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct failure failure;
		uint64_t nodes = 0;

		if (numa_parse(cases[i].text, &topology, &nodes, &failure) !=
			    0 ||
		    nodes != cases[i].nodes)
			fail_msg("\"%s\": %llx", cases[i].text,
				 (unsigned long long)nodes);
	}
}

static void numa_parse__bad(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} cases[] = {
		{ "", "want auto" },	       { "x", "want auto" },
		{ "0,", "want auto" },	       { "+", "want auto" },
		{ "!", "want auto" },	       { "+all", "want auto" },
		{ "1-", "want auto" },	       { "64", "0 to 63" },
		{ "0-64", "0 to 63" },	       { "5-2", "the lower one first" },
		{ "+3", "not so many" },       { "!all", "no node is left" },
		{ "!0-5", "no node is left" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct failure failure;
		uint64_t nodes = 77;

		if (numa_parse(cases[i].text, &topology, &nodes, &failure) !=
			    -EINVAL ||
		    nodes != 77 || failure.status != EXIT_USAGE ||
		    !strstr(failure.why, cases[i].why))
			fail_msg("\"%s\"", cases[i].text);
	}
}

/* Called in a child: it changes the process. */
static int confine_here(void)
{
	struct topology here, after;
	struct failure failure;
	uint64_t first;
	int policy;

	topology_read(&here);
	topology_read_nodes(&here);
	first = (uint64_t)1 << here.nodes[0];
	if (numa_confine(first, &here, &failure) != 0)
		return 1;
	topology_read(&after);
	for (unsigned i = 0; i < after.cpu_count; i++)
		if (here.node_of[i] != 0 || here.cpus[i] != after.cpus[i])
			return 2;
	/* A page for another node, and then the nodes are the old ones. */
	numa_prefer_new((int)here.nodes[0]);
	numa_prefer_new(-1);
	if (syscall(SYS_get_mempolicy, &policy, NULL, 0, NULL, 0) == 0 &&
	    policy != MPOL_PREFERRED)
		return 4;
	if (numa_confine(UINT64_C(1) << 63, &here, &failure) != -EINVAL ||
	    failure.status != EXIT_USAGE || !strstr(failure.why, "node 63 "))
		return 3;
	return 0;
}

static void numa_confine__to_the_first_node(void **state)
{
	pid_t child = fork();
	int status = 0;

	(void)state;
	if (child == 0)
		_exit(confine_here());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Of this machine's first node all pages come, and each is counted once. */
static void numa_count__what_was_touched(void **state)
{
	const size_t bytes = 1500 * PAGE_BYTES;
	uint64_t bytes_on[TOPOLOGY_NODES_MAX] = { 0 }, sum = 0;
	struct topology here;
	uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(memory != MAP_FAILED);
	topology_read(&here);
	topology_read_nodes(&here);
	numa_interleave(memory, bytes, (uint64_t)1 << here.nodes[0]);
	numa_prefer(memory + 8, bytes - 8, here.nodes[0]);
	assert_int_equal(madvise(memory, bytes, MADV_NOHUGEPAGE), 0);
	memset(memory, 1, 700 * PAGE_BYTES);
	memory[1499 * PAGE_BYTES] = 1;
	numa_count(memory, bytes, bytes_on);
	for (unsigned i = 0; i < TOPOLOGY_NODES_MAX; i++)
		sum += bytes_on[i];
	if (sum == 0)
		skip_because("move_pages(2) is refused");
	assert_int_equal(bytes_on[here.nodes[0]], 701 * PAGE_BYTES);
	assert_int_equal(sum, 701 * PAGE_BYTES);
	/* Half a page is none. */
	memset(bytes_on, 0, sizeof(bytes_on));
	numa_count(memory + 8, 2 * PAGE_BYTES, bytes_on);
	assert_int_equal(bytes_on[here.nodes[0]], PAGE_BYTES);
	munmap(memory, bytes);
}

/* As a container's filter of system calls does it. */
static void numa_count__refused(void **state)
{
	static const struct refusal refusal = { .call = SYS_move_pages,
						.argument = -1,
						.error = EPERM };
	static uint8_t memory[4 * PAGE_BYTES];
	uint64_t bytes_on[TOPOLOGY_NODES_MAX] = { 0 };
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(refuse(&refusal)
			      ? numa_count(memory, sizeof(memory), bytes_on)
			      : CHILD_CANNOT);
	assert_int_equal(wait_for(child), 0);
}

/* A device that has a node, one that has none, one whose file is damaged; and
 * what has no device. */
static void numa_node_of_interface__forms(void **state)
{
	static const struct {
		const char *text;
		int node;
	} cases[] = {
		{ "0\n", 0 },	{ "1\n", 1 }, { "63\n", 63 }, { "64\n", -1 },
		{ "-1\n", -1 }, { "", -1 },   { "x\n", -1 },
	};

	(void)state;
	put("sys/class/net/eth0/device/vendor", "");
	assert_int_equal(numa_node_of_interface("eth0"), -1);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		put("sys/class/net/eth0/device/numa_node", cases[i].text);
		assert_int_equal(numa_node_of_interface("eth0"), cases[i].node);
		assert_int_equal(numa_node_of_interface("eth1"), -1);
	}
}

/* A partition of a disk of a SATA controller, which is a device of PCI; and an
 * array, which no controller has. */
static void numa_node_of_disk__around(void **state)
{
	static const char make[] =
		"cd \"$1\" && mkdir -p sys/dev/block "
		"sys/devices/virtual/block/md0"
		" sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/block/sda/sda1"
		" && echo 2 >sys/devices/pci0000:00/0000:00:1f.2/numa_node"
		" && ln -s "
		"../../devices/pci0000:00/0000:00:1f.2/ata1/host0/block/"
		"sda/sda1 sys/dev/block/8:1"
		" && ln -s ../../devices/virtual/block/md0 sys/dev/block/9:0";
	char command[1024];

	(void)state;
	snprintf(command, sizeof(command), "set -- '%s'; %s", root, make);
	assert_int_equal(system(command), 0);
	assert_int_equal(numa_node_of_disk(makedev(8, 1)), 2);
	assert_int_equal(numa_node_of_disk(makedev(9, 0)), -1);
	assert_int_equal(numa_node_of_disk(makedev(8, 2)), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numa_parse__forms),
		cmocka_unit_test(numa_parse__bad),
		cmocka_unit_test(numa_confine__to_the_first_node),
		cmocka_unit_test(numa_count__refused),
		UNDER_ROOT(numa_node_of_disk__around),
		cmocka_unit_test(numa_count__what_was_touched),
		UNDER_ROOT(numa_node_of_interface__forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
