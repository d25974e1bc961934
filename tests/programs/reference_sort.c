/*
 * reference_sort - the obviously right sort that others are compared to
 *
 * USAGE: reference_sort IN... -o OUT [--record-size=S] [--key=OFFSET:LENGTH]
 *
 * Reads all files into memory, merges sorted runs of 1, 2, 4... records, and
 * takes from the earlier run when keys are equal: hence stable.  Nothing of
 * src/ is used, so no mistake is shared.
 */
#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t record_size = 100;
static size_t key_offset = 0;
static size_t key_length = 10;

struct bytes {
	unsigned char *data;
	size_t size;
};

static void append_file(struct bytes *all, const char *path)
{
	FILE *stream = fopen(path, "rb");
	size_t got;

	if (!stream)
		err(3, "%s", path);
	do {
		size_t chunk = (size_t)1 << 20;

		all->data = realloc(all->data, all->size + chunk);
		if (!all->data)
			err(5, "%s", path);
		got = fread(all->data + all->size, 1, chunk, stream);
		all->size += got;
	} while (got > 0);
	if (ferror(stream))
		err(3, "%s", path);
	fclose(stream);
}

static void merge(unsigned char **target, unsigned char **left,
		  unsigned char **right, unsigned char **end)
{
	unsigned char **middle = right;

	while (left < middle || right < end) {
		if (right == end ||
		    (left < middle &&
		     memcmp(*left + key_offset, *right + key_offset,
			    key_length) <= 0))
			*target++ = *left++;
		else
			*target++ = *right++;
	}
}

/* Returns whichever of the two arrays holds the result. */
static unsigned char **merge_sort(unsigned char **from, unsigned char **to,
				  size_t count)
{
	for (size_t run = 1; run < count; run *= 2) {
		unsigned char **swap = from;

		for (size_t i = 0; i < count; i += 2 * run) {
			size_t middle = i + run < count ? i + run : count;
			size_t end = i + 2 * run < count ? i + 2 * run : count;

			merge(to + i, from + i, from + middle, from + end);
		}
		from = to;
		to = swap;
	}
	return from;
}

static void write_records(const char *path, unsigned char **records,
			  size_t count)
{
	FILE *stream = fopen(path, "wb");

	if (!stream)
		err(3, "%s", path);
	for (size_t i = 0; i < count; i++)
		fwrite(records[i], 1, record_size, stream);
	if (ferror(stream) | fclose(stream))
		err(3, "%s", path);
}

static void sort_bytes(const struct bytes *all, const char *out)
{
	size_t count = all->size / record_size;
	unsigned char **from = malloc((count + 1) * sizeof(*from));
	unsigned char **to = malloc((count + 1) * sizeof(*to));

	if (!from || !to)
		err(5, "%zu records", count);
	for (size_t i = 0; i < count; i++)
		from[i] = all->data + i * record_size;
	write_records(out, merge_sort(from, to, count), count);
	free(from);
	free(to);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "record-size", required_argument, NULL, 's' },
		{ "key", required_argument, NULL, 'k' },
		{ 0 },
	};
	struct bytes all = { 0 };
	const char *out = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		if (option == 'o')
			out = optarg;
		else if (option == 's')
			record_size = strtoul(optarg, NULL, 10);
		else if (option != 'k' || sscanf(optarg, "%zu:%zu", &key_offset,
						 &key_length) != 2)
			return 2;
	}
	if (!out || optind == argc)
		errx(2, "IN... -o OUT [--record-size=S] [--key=OFFSET:LENGTH]");
	if (record_size == 0 || key_offset + key_length > record_size)
		errx(2, "the key does not lie in the record");
	for (int i = optind; i < argc; i++) {
		append_file(&all, argv[i]);
		if (all.size % record_size != 0)
			errx(3, "%s: not a whole number of records", argv[i]);
	}
	sort_bytes(&all, out);
	free(all.data);
	return 0;
}
