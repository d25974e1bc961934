/*
 * cluster_options.c - reads blinksort's options about ranks, and refuses those
 * that cannot be combined
 */
#include "programs/blinksort/cluster_options.h"

#include <string.h>

#include "base/base.h"
#include "base/parse.h"
#include "exchange/udp/udp.h"
#include "exchange/udp/udp_wire.h"
#include "programs/blinksort/mpi_link.h"
#include "programs/blinksort/roles_options.h"

#define DEADLINE_SECONDS_MAX 86400

#define FIELD(name) OPTIONS_FIELD(struct cluster_config, name)
static const struct options_row number_rows[] = {
	{ CLUSTER_OPTION_PORT, 1, UINT16_MAX, FIELD(port) },
	{ CLUSTER_OPTION_PAYLOAD, UDP_PAYLOAD_BYTES_MIN, UDP_PAYLOAD_BYTES_MAX,
	  FIELD(payload_bytes) },
	{ CLUSTER_OPTION_THREADS, 1, UDP_THREADS_MAX, FIELD(thread_count) },
	{ CLUSTER_OPTION_DEADLINE, 1, DEADLINE_SECONDS_MAX, FIELD(deadline_ns),
	  OPTIONS_SECONDS },
};

/* In the order of their enum. */
static const char *const references[] = { "no", "yes", "auto" };

static int take_transport(struct options_reader *reader,
			  struct cluster_options *options,
			  struct failure *failure)
{
	const char *value = reader->value;

	options->kind =
		strcmp(value, "mpi") == 0 ? CLUSTER_MPI_RANK : CLUSTER_NONE;
	options->config.datagrams_only = strcmp(value, "udp") == 0;
	if (options->kind != CLUSTER_NONE || options->config.datagrams_only)
		return 0;
	return options_refuse(reader, failure, "not udp or mpi");
}

/* AxB; false: it is not of that form. */
static bool take_sides(const char *text, struct cluster_schedule *schedule)
{
	size_t length = strcspn(text, "x");
	uint64_t rows, columns;
	char first[8] = "";

	if (text[length] == '\0' || length >= sizeof(first))
		return false;
	memcpy(first, text, length);
	if (parse_u64(first, 1, RANK_NODES_MAX, &rows) ||
	    parse_u64(text + length + 1, 1, RANK_NODES_MAX, &columns))
		return false;
	schedule->rows = (unsigned)rows;
	schedule->columns = (unsigned)columns;
	return true;
}

static int take_schedule(struct options_reader *reader,
			 struct cluster_schedule *schedule,
			 struct failure *failure)
{
	static const char grid[] = "grid=";

	*schedule = (struct cluster_schedule){ .kind = EXCHANGE_GRID };
	if (strncmp(reader->value, grid, strlen(grid)) != 0)
		return options_choice(reader, exchange_schedule_names,
				      EXCHANGE_SCHEDULES, &schedule->kind,
				      failure);
	if (take_sides(reader->value + strlen(grid), schedule))
		return 0;
	return options_refuse(reader, failure,
			      "not grid=AxB, such as grid=8x16, with sides "
			      "from 1 to %d",
			      RANK_NODES_MAX);
}

/* Bytes, or bits, in which rates of links are mostly given. */
static int take_link_rate(struct options_reader *reader, uint64_t *bytes,
			  struct failure *failure)
{
	uint64_t bits = 0;

	if (strstr(reader->value, "bit") &&
	    parse_bits(reader->value, INT64_MAX, &bits) == 0 && bits >= 8) {
		*bytes = bits / 8;
		return 0;
	}
	if (parse_size(reader->value, 1, INT64_MAX, bytes) == 0)
		return 0;
	return options_refuse(reader, failure,
			      "not bytes a second, such as 300M, or bits, such "
			      "as 25Gbit");
}

int cluster_options_take(struct options_reader *reader, int id,
			 struct cluster_options *options, uint64_t *link_rate,
			 struct failure *failure)
{
	struct cluster_config *config = &options->config;

	switch (id) {
	case CLUSTER_OPTION_LINK_RATE:
		return take_link_rate(reader, link_rate, failure);
	case CLUSTER_OPTION_SCHEDULE:
		return take_schedule(reader, &config->schedule, failure);
	case CLUSTER_OPTION_TRANSPORT:
		return take_transport(reader, options, failure);
	case CLUSTER_OPTION_BY_REFERENCE:
		return options_choice(reader, references, ARRAY_LEN(references),
				      &config->by_reference, failure);
	case CLUSTER_OPTION_ROLES:
		return roles_options_take(reader, &config->roles, failure);
	default:
		return options_take_row(reader, id, number_rows,
					ARRAY_LEN(number_rows), config,
					failure);
	}
}

/* MPI knows hosts and ranks, vouches for them, and has its own ways to send. */
static int refuse_of_udp(struct options_reader *reader,
			 const struct cluster_options *options,
			 struct failure *failure)
{
	static const char *const of_udp = "only with --transport=udp";
	const struct options_rule rules[] = {
		{ CLUSTER_OPTION_SCHEDULE,
		  options->config.schedule.kind == EXCHANGE_ALL_AT_ONCE,
		  "all-at-once only with --transport=udp" },
		{ CLUSTER_OPTION_NODES, true, of_udp },
		{ CLUSTER_OPTION_RANK, true, of_udp },
		{ CLUSTER_OPTION_KEY_FILE, true, of_udp },
		{ CLUSTER_OPTION_JOB, true, of_udp },
		{ CLUSTER_OPTION_PORT, true, of_udp },
		{ CLUSTER_OPTION_PAYLOAD, true, of_udp },
		{ CLUSTER_OPTION_THREADS, true, of_udp },
		{ CLUSTER_OPTION_PLAIN, true, of_udp },
	};

	return options_check(reader, rules, ARRAY_LEN(rules), failure);
}

int cluster_options_complete(struct options_reader *reader,
			     struct cluster_options *options,
			     struct failure *failure)
{
	options->config.rank = (struct rank_options){
		.nodes = options_value(reader, CLUSTER_OPTION_NODES),
		.rank = options_value(reader, CLUSTER_OPTION_RANK),
		.key_path = options_value(reader, CLUSTER_OPTION_KEY_FILE),
		.job = options_value(reader, CLUSTER_OPTION_JOB),
	};
	options->config.plain = options_given(reader, CLUSTER_OPTION_PLAIN);
	if (mpi_link_is_there() &&
	    !options_given(reader, CLUSTER_OPTION_TRANSPORT))
		options->kind = CLUSTER_MPI_RANK;
	if (options->kind == CLUSTER_NONE &&
	    (options_given(reader, CLUSTER_OPTION_CLUSTER) ||
	     options_given(reader, CLUSTER_OPTION_NODES) ||
	     options_given(reader, CLUSTER_OPTION_RANK)))
		options->kind = CLUSTER_UDP_RANK;
	options->config.shares_input =
		options_given(reader, CLUSTER_OPTION_SHARED_INPUT);
	if (options->config.shares_input &&
	    options->config.by_reference == CLUSTER_BY_REFERENCE_YES)
		return options_refuse_entry(reader, CLUSTER_OPTION_BY_REFERENCE,
					    failure, "not with --shared-input");
	for (int id = CLUSTER_OPTION_SHARED_INPUT; id < CLUSTER_OPTION_END;
	     id++)
		if (options_given(reader, id) && options->kind == CLUSTER_NONE)
			return options_refuse_entry(
				reader, id, failure,
				"only with --cluster or --nodes");
	return options->kind == CLUSTER_MPI_RANK
		       ? refuse_of_udp(reader, options, failure)
		       : 0;
}
