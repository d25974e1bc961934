/*
 * make_shape - test input whose keys have a given shape, on stdout
 *
 * USAGE: make_shape SHAPE COUNT SEED [--record-size=S] [--key=OFFSET:LENGTH]
 *        make_shape --list
 *
 * Outside the key a record carries its sequence number, least significant byte
 * first, as far as there is room, then noise: so both a lost order of equal
 * keys and a torn record show in a comparison.
 */
#include <err.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape_run {
	uint64_t count;
	uint64_t seed;
	uint64_t state; /* of the generator */
	size_t key_length;
	uint64_t run_left; /* long-runs: records still to come with run_key */
	uint64_t run_key;
};

typedef void key_fn(struct shape_run *run, uint64_t i, uint8_t *key);

/* splitmix64 */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static uint64_t draw(struct shape_run *run)
{
	run->state += 0x9e3779b97f4a7c15;
	return mix(run->state);
}

static uint64_t draw_below(struct shape_run *run, uint64_t limit)
{
	return draw(run) % limit;
}

/* The same bytes each time for the same number. */
static void key_from_number(struct shape_run *run, uint64_t number,
			    uint8_t *key)
{
	uint64_t word = 0;

	for (size_t k = 0; k < run->key_length; k++) {
		if (k % 8 == 0)
			word = mix(number ^ mix(run->seed + k));
		key[k] = (uint8_t)(word >> (8 * (k % 8)));
	}
}

/* Keys that ascend with position, 0 .. of - 1, over the whole key space. */
static void key_from_position(struct shape_run *run, uint64_t position,
			      uint64_t of, uint8_t *key)
{
	unsigned __int128 scaled = ((unsigned __int128)position << 64) / of;
	uint64_t word = (uint64_t)scaled;

	for (size_t k = 0; k < run->key_length; k++) {
		key[k] = (uint8_t)(word >> 56);
		word <<= 8;
	}
}

static void uniform_range(struct shape_run *run, uint8_t *key, size_t begin,
			  size_t end)
{
	uint64_t word = 0;

	for (size_t k = begin; k < end; k++) {
		if ((k - begin) % 8 == 0)
			word = draw(run);
		key[k] = (uint8_t)(word >> (8 * ((k - begin) % 8)));
	}
}

static void uniform(struct shape_run *run, uint64_t i, uint8_t *key)
{
	(void)i;
	uniform_range(run, key, 0, run->key_length);
}

static void ascii(struct shape_run *run, uint64_t i, uint8_t *key)
{
	(void)i;
	for (size_t k = 0; k < run->key_length; k++)
		key[k] = (uint8_t)(32 + draw_below(run, 95));
}

static void all_equal(struct shape_run *run, uint64_t i, uint8_t *key)
{
	(void)i;
	key_from_number(run, 0, key);
}

static void two_values(struct shape_run *run, uint64_t i, uint8_t *key)
{
	(void)i;
	/* They differ in one bit, now in the last byte, now in the first. */
	key_from_number(run, 0, key);
	key[run->seed % 2 ? 0 : run->key_length - 1] ^= draw(run) & 1;
}

static void few_distinct(struct shape_run *run, uint64_t i, uint8_t *key)
{
	(void)i;
	key_from_number(run, draw_below(run, 37), key);
}

/* Log-uniform ranks: rank r with a frequency near 1/r. */
static void zipf(struct shape_run *run, uint64_t i, uint8_t *key)
{
	uint64_t bits = draw_below(run, 24);

	(void)i;
	key_from_number(run, (1ull << bits) + draw_below(run, 1ull << bits),
			key);
}

static void sorted(struct shape_run *run, uint64_t i, uint8_t *key)
{
	key_from_position(run, i, run->count, key);
}

static void reversed(struct shape_run *run, uint64_t i, uint8_t *key)
{
	key_from_position(run, run->count - 1 - i, run->count, key);
}

static void almost_sorted(struct shape_run *run, uint64_t i, uint8_t *key)
{
	if (draw_below(run, 100) == 0)
		uniform(run, i, key);
	else
		sorted(run, i, key);
}

static void sawtooth(struct shape_run *run, uint64_t i, uint8_t *key)
{
	uint64_t tooth = 1000 + run->seed % 1000;

	key_from_position(run, i % tooth, tooth, key);
}

static void organ_pipe(struct shape_run *run, uint64_t i, uint8_t *key)
{
	uint64_t mirror = run->count - 1 - i;

	key_from_position(run, i < mirror ? i : mirror, run->count, key);
}

static void long_runs(struct shape_run *run, uint64_t i, uint8_t *key)
{
	(void)i;
	if (run->run_left == 0) {
		run->run_left = 1 + draw_below(run, 3000);
		run->run_key = draw(run);
	}
	run->run_left--;
	key_from_number(run, run->run_key, key);
}

/* As in the benchmark's skewed data: the top 0 .. 48 bits of the key are those
 * of one of a few prefixes, half of all records sharing one. */
static void skewed(struct shape_run *run, uint64_t i, uint8_t *key)
{
	unsigned bits = (unsigned)draw_below(run, 64);
	uint8_t prefix[8];
	struct shape_run short_run = *run;

	uniform(run, i, key);
	if (bits > 48)
		return;
	short_run.key_length = sizeof(prefix);
	key_from_number(&short_run, i ? 64 - (unsigned)__builtin_clzll(i) : 0,
			prefix);
	for (size_t k = 0; k < run->key_length && 8 * k < bits; k++) {
		unsigned left = bits - 8 * (unsigned)k;
		uint8_t keep = (uint8_t)(left >= 8 ? 0 : 0xff >> left);

		key[k] = (uint8_t)((key[k] & keep) | (prefix[k] & ~keep));
	}
}

static void common_prefix(struct shape_run *run, uint64_t i, uint8_t *key)
{
	(void)i;
	key_from_number(run, 0, key);
	uniform_range(run, key, run->key_length * 6 / 10, run->key_length);
}

static void first_two_random(struct shape_run *run, uint64_t i, uint8_t *key)
{
	(void)i;
	key_from_number(run, 0, key);
	uniform_range(run, key, 0, run->key_length < 2 ? run->key_length : 2);
}

static void last_two_random(struct shape_run *run, uint64_t i, uint8_t *key)
{
	(void)i;
	key_from_number(run, 0, key);
	uniform_range(run, key, run->key_length < 2 ? 0 : run->key_length - 2,
		      run->key_length);
}

/* Only bytes 00 and FF, often all of them: what a sentinel might be taken for.
 */
static void extremes(struct shape_run *run, uint64_t i, uint8_t *key)
{
	uint64_t word = draw(run);

	(void)i;
	if (word % 4 < 2) {
		memset(key, word % 4 ? 0xff : 0, run->key_length);
		return;
	}
	for (size_t k = 0; k < run->key_length; k++)
		key[k] = (uint8_t)(draw(run) & 1 ? 0xff : 0);
}

/* Whoever judges by the first records is misled by the next two. */
static void ascii_then_binary(struct shape_run *run, uint64_t i, uint8_t *key)
{
	if (i < run->count / 2)
		ascii(run, i, key);
	else
		uniform(run, i, key);
}

static void uniform_then_equal(struct shape_run *run, uint64_t i, uint8_t *key)
{
	if (i < run->count / 8)
		uniform(run, i, key);
	else
		all_equal(run, i, key);
}

static const struct {
	const char *name;
	key_fn *make;
} shapes[] = {
	{ "uniform", uniform },
	{ "ascii", ascii },
	{ "all-equal", all_equal },
	{ "two-values", two_values },
	{ "few-distinct", few_distinct },
	{ "zipf", zipf },
	{ "sorted", sorted },
	{ "reversed", reversed },
	{ "almost-sorted", almost_sorted },
	{ "sawtooth", sawtooth },
	{ "organ-pipe", organ_pipe },
	{ "long-runs", long_runs },
	{ "skewed", skewed },
	{ "common-prefix", common_prefix },
	{ "first-two-random", first_two_random },
	{ "last-two-random", last_two_random },
	{ "extremes", extremes },
	{ "ascii-then-binary", ascii_then_binary },
	{ "uniform-then-equal", uniform_then_equal },
};

#define SHAPE_COUNT (sizeof(shapes) / sizeof(shapes[0]))

static int list_shapes(void)
{
	for (size_t s = 0; s < SHAPE_COUNT; s++)
		puts(shapes[s].name);
	return 0;
}

static key_fn *find_shape(const char *name)
{
	for (size_t s = 0; s < SHAPE_COUNT; s++) {
		if (strcmp(name, shapes[s].name) == 0)
			return shapes[s].make;
	}
	errx(2, "%s: no such shape; --list shows them", name);
}

static void write_records(struct shape_run *run, key_fn *make,
			  size_t record_size, size_t key_offset)
{
	size_t key_end = key_offset + run->key_length;
	uint8_t *record = malloc(record_size);

	if (!record)
		err(5, "a record");
	for (uint64_t i = 0; i < run->count; i++) {
		uint64_t sequence = i;
		uint64_t noise = mix(run->seed ^ i);
		size_t outside = 0;

		make(run, i, record + key_offset);
		for (size_t k = 0; k < record_size; k++) {
			if (k == key_offset)
				k = key_end;
			if (k == record_size)
				break;
			record[k] = (uint8_t)(outside < 8 ? sequence : noise);
			sequence >>= 8;
			noise = noise * 6364136223846793005u + 1;
			outside++;
		}
		if (fwrite(record, record_size, 1, stdout) != 1)
			err(3, "stdout");
	}
	free(record);
	if (fflush(stdout) != 0)
		err(3, "stdout");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "record-size", required_argument, NULL, 's' },
		{ "key", required_argument, NULL, 'k' },
		{ "list", no_argument, NULL, 'l' },
		{ 0 },
	};
	struct shape_run run = { .key_length = 10 };
	size_t record_size = 100;
	size_t key_offset = 0;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'l')
			return list_shapes();
		if (option == 's')
			record_size = strtoul(optarg, NULL, 10);
		else if (option != 'k' || sscanf(optarg, "%zu:%zu", &key_offset,
						 &run.key_length) != 2)
			return 2;
	}
	if (argc - optind != 3)
		errx(2, "SHAPE COUNT SEED [--record-size=S] [--key=O:L]");
	if (run.key_length == 0 || key_offset + run.key_length > record_size)
		errx(2, "the key does not lie in the record");
	run.count = strtoull(argv[optind + 1], NULL, 10);
	run.seed = strtoull(argv[optind + 2], NULL, 10);
	run.state = mix(run.seed);
	write_records(&run, find_shape(argv[optind]), record_size, key_offset);
	return 0;
}
