/*
 * page_nodes - on which NUMA nodes the pages of a file in the page cache lie
 *
 * USAGE: page_nodes FILE PARTS
 *
 * Prints for each of so many equal parts of the file a line: for each node from
 * 0 to 3, how many per cent of the part's pages lie there.
 */
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE_BYTES 4096
#define NODES 4

/* The node of one page that has been read. */
static int node_of(const volatile uint8_t *page)
{
	const void *pages[] = { (const void *)page };
	int node = -1;

	(void)*page;
	if (syscall(SYS_move_pages, 0, 1UL, pages, NULL, &node, 0) < 0)
		err(1, "move_pages");
	return node;
}

static void print_part(const uint8_t *pages, size_t count)
{
	size_t on[NODES] = { 0 };

	for (size_t i = 0; i < count; i++) {
		int node = node_of(pages + i * PAGE_BYTES);

		if (node >= 0 && node < NODES)
			on[node]++;
	}
	for (unsigned i = 0; i < NODES; i++)
		printf("%s%zu", i == 0 ? "" : " ", on[i] * 100 / count);
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct stat status;
	size_t parts, count;
	uint8_t *pages;
	int fd;

	if (argc != 3 || (parts = strtoul(argv[2], NULL, 10)) == 0)
		errx(2, "usage: page_nodes FILE PARTS");
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0)
		err(1, "%s", argv[1]);
	count = (size_t)status.st_size / PAGE_BYTES / parts;
	if (count == 0)
		errx(1, "%s: too short", argv[1]);
	pages = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd,
		     0);
	if (pages == MAP_FAILED)
		err(1, "%s", argv[1]);
	for (size_t part = 0; part < parts; part++)
		print_part(pages + part * count * PAGE_BYTES, count);
	return 0;
}
