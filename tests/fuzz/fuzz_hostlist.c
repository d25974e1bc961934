/*
 * Any text as a list of hosts, as a file of it, and each host of it as an
 * address: no crash, and what comes out keeps the promises of the headers.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "net/address.h"
#include "shell/hostfold.h"
#include "net/hostlist.h"

static void require(int condition)
{
	if (!condition)
		abort();
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Only what needs no name looked up. */
static void check_address(const char *host)
{
	char text[ADDRESS_TEXT_BYTES], again[ADDRESS_TEXT_BYTES];
	struct address address;

	if (host[0] != '[' && host[strspn(host, "0123456789.:")] != '\0')
		return;
	if (address_parse(host, &address) != 0)
		return;
	address_format(&address, text);
	/* A zone is not part of the text, so this may be another address, but
	 * its text is the same. */
	require(address_parse(text, &address) == 0);
	require(strcmp(address_format(&address, again), text) == 0);
}

static void check_list(struct hostlist *list)
{
	require(list->count <= HOSTLIST_MAX);
	for (size_t i = 0; i < list->count; i++) {
		size_t length = strlen(list->hosts[i]);

		require(length > 0 && length < HOSTLIST_NAME_BYTES);
		require(list->hosts[i][0] != '-');
		require(!strpbrk(list->hosts[i], ",!&^# \t\n"));
	}
	for (size_t i = 0; i < list->count && i < 16; i++)
		check_address(list->hosts[i]);
	if (list->count > 0)
		qsort(list->hosts, list->count, sizeof(list->hosts[0]),
		      compare);
	for (size_t i = 1; i < list->count; i++)
		require(strcmp(list->hosts[i - 1], list->hosts[i]) != 0);
}

/* Folded, it lists the same. */
static void check_fold(const struct hostlist *list)
{
	static char text[HOSTLIST_MAX * HOSTLIST_NAME_BYTES];
	ssize_t length = hostfold(list, text, sizeof(text) - 1);
	struct hostlist again = { 0 };
	struct failure failure = { 0 };

	require(length >= 0);
	text[length] = '\0';
	require(list->count == 0 || hostlist_add(&again, text, &failure) == 0);
	require(again.count == list->count);
	for (size_t i = 0; i < again.count; i++)
		require(strcmp(again.hosts[i], list->hosts[i]) == 0);
	hostlist_free(&again);
}

/* What it lists, excluded again, leaves nothing. */
static void fuzz_list(const char *text)
{
	struct hostlist list = { 0 };
	struct failure failure = { 0 };
	int error = hostlist_add(&list, text, &failure);

	if (error) {
		require(error < 0 && list.count == 0);
		require(failure.status != EXIT_DONE && failure.why[0] != '\0');
	} else {
		check_fold(&list);
		check_list(&list);
		require(hostlist_exclude(&list, text, &failure) == 0);
		require(list.count == 0);
	}
	hostlist_free(&list);
}

static void fuzz_file(const char *text, size_t size)
{
	int fd = memfd_create("hosts", 0);
	char path[64];

	require(fd >= 0);
	require(write(fd, text, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "^/proc/self/fd/%d", fd);
	fuzz_list(path);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	require(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	/* No file of this machine's: it might be a terminal, or have no end. */
	for (size_t i = 0; i < size; i++)
		if (text[i] == '^')
			text[i] = '.';
	fuzz_list(text);
	fuzz_file(text, size);
	free(text);
	return 0;
}
