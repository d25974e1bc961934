/*
 * shape_options.c - reads the options that describe records
 */
#include "programs/blinksort/shape_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/log.h"
#include "base/parse.h"
#include "io/input/input.h"
#include "record/key_text.h"
#include "system/thread_pool.h"

/* Offsets behind it stay far below the largest one. */
#define HEADER_DROPPED_MAX ((uint64_t)1 << 40)
#define RANDOM "random:"

#define FIELD(name) OPTIONS_FIELD(struct sorter_config, name)
static const struct options_row number_rows[] = {
	{ SHAPE_OPTION_DEVICE_BYTES, 1, INT64_MAX, FIELD(device_bytes),
	  OPTIONS_SIZE },
	{ SHAPE_OPTION_RECORD_SIZE, 1, RECORD_SIZE_MAX, FIELD(shape.size) },
	{ SHAPE_OPTION_HEAD, 1, INT64_MAX, FIELD(head_records) },
	{ SHAPE_OPTION_THREADS, 1, THREAD_POOL_WORKERS_MAX, FIELD(threads) },
};

/* One more --key, which weighs less than those before. */
static int take_key(struct options_reader *reader, struct sorter_config *config,
		    struct failure *failure)
{
	struct key_list *keys = &config->shape.keys;
	struct widening *widening = &config->widening;
	size_t random_bytes = strlen(RANDOM);
	const char *why;

	if (keys->field_count + widening->is_random == KEY_FIELDS_MAX)
		return options_refuse(reader, failure, "more than %d keys",
				      KEY_FIELDS_MAX);
	if (widening->is_random)
		return options_refuse(reader, failure,
				      "behind a random key, by which no two "
				      "records are equal");
	if (strncmp(reader->value, RANDOM, random_bytes) == 0) {
		widening->is_random = true;
		return parse_u64(reader->value + random_bytes, 0, UINT64_MAX,
				 &widening->seed) < 0
			       ? options_refuse(reader, failure,
						"the seed is not a number from "
						"0 to 18446744073709551615")
			       : 0;
	}
	why = key_text_parse(reader->value, &keys->fields[keys->field_count++]);
	return why ? options_refuse(reader, failure, "%s", why) : 0;
}

/* Bytes, and maybe ":drop". */
static int take_header(struct options_reader *reader,
		       struct sorter_config *config, struct failure *failure)
{
	const char *colon = strchrnul(reader->value, ':');
	char size[32] = "";
	int error = -EINVAL;

	config->header_is_known = true;
	config->drops_header = strcmp(colon, ":drop") == 0;
	if ((*colon == '\0' || config->drops_header) &&
	    (size_t)(colon - reader->value) < sizeof(size)) {
		memcpy(size, reader->value, (size_t)(colon - reader->value));
		error = parse_size(size, 0, HEADER_DROPPED_MAX,
				   &config->header_bytes);
	}
	if (error == 0 && !config->drops_header &&
	    config->header_bytes > INPUT_HEADER_KEPT_MAX)
		return options_refuse(reader, failure,
				      "more than 16M only with :drop");
	return error ? options_refuse(
			       reader, failure,
			       "not a size, such as 128 or 4K, and maybe :drop")
		     : 0;
}

/* Which record it keeps need not be said. */
static int take_unique(struct options_reader *reader, enum unique_kind *unique,
		       struct failure *failure)
{
	static const char *const names[] = {
		[UNIQUE_FIRST] = "first",
		[UNIQUE_LAST] = "last",
	};

	*unique = UNIQUE_FIRST;
	return reader->value ? options_choice(reader, names, ARRAY_LEN(names),
					      unique, failure)
			     : 0;
}

int shape_options_take(struct options_reader *reader, int id,
		       struct sorter_config *config, struct failure *failure)
{
	switch (id) {
	case SHAPE_OPTION_HEADER:
		return take_header(reader, config, failure);
	case SHAPE_OPTION_KEY:
		return take_key(reader, config, failure);
	case SHAPE_OPTION_UNIQUE:
		return take_unique(reader, &config->unique, failure);
	default:
		return options_take_row(reader, id, number_rows,
					ARRAY_LEN(number_rows), config,
					failure);
	}
}

/* The keys are those of the record so far. */
static int widen(struct sorter_config *config, struct failure *failure)
{
	struct record_shape *shape = &config->shape;
	struct widening *widening = &config->widening;
	struct key_list *keys = &shape->keys;

	widening_complete(widening);
	if (shape->size > RECORD_SIZE_MAX - widening->bytes)
		return failure_set(
			failure, EXIT_USAGE, "--record-size", 0,
			"at most %u bytes with --numbers or a "
			"random key",
			(uint32_t)(RECORD_SIZE_MAX - widening->bytes));
	shape->size += widening->bytes;
	if (widening->is_random)
		keys->fields[keys->field_count++] = (struct key_field){
			.offset = shape->size - WIDENING_WORD_BYTES,
			.length = WIDENING_WORD_BYTES,
		};
	return 0;
}

int shape_options_complete(const struct options_reader *reader,
			   struct sorter_config *config,
			   struct failure *failure)
{
	struct record_shape *shape = &config->shape;
	struct key_list *keys = &shape->keys;
	char text[KEY_TEXT_BYTES];
	int error;

	/* In a record smaller than the default key, the key is the record. */
	if (keys->field_count == 0 && !config->widening.is_random)
		keys->fields[keys->field_count++].length =
			MIN(RECORD_KEY_LENGTH_DEFAULT, shape->size);
	for (unsigned i = 0; i < keys->field_count; i++)
		if (key_field_end(&keys->fields[i]) > shape->size)
			return failure_set(
				failure, EXIT_USAGE, NULL, 0,
				"--key=%s: ends behind the record of %u bytes",
				key_text_format(&keys->fields[i], text),
				shape->size);
	if (options_given(reader, SHAPE_OPTION_REVERSE))
		key_list_reverse(keys);
	error = widen(config, failure);
	if (error == 0)
		key_list_complete(keys, shape->size);
	return error;
}

void shape_options_tell_defaults(const struct record_shape *shape, bool size,
				 bool key)
{
	char text[32] = "";

	if (key)
		snprintf(text, sizeof(text), " --key=0:%u",
			 MIN(RECORD_KEY_LENGTH_DEFAULT, shape->size));
	if (size || key)
		log_warnx("taken by default:%s%s",
			  size ? " --record-size=100" : "", text);
}
