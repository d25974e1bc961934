#include "programs/blinkprobe/model_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "base/parse.h"
#include "exchange/model/exchange_model.h"
#include "sort/plan.h"

#define RANKS_MAX UINT16_MAX
#define RECORDS_MAX ((uint64_t)1 << 50)
#define RECORD_BYTES_MAX (1 << 20)
#define LINK_BITS_MAX ((uint64_t)1000000000000000)
#define MTU_BYTES_MIN 576
#define MTU_BYTES_MAX 65535
#define CPUS_MAX 4096
/* No message is as long as a number of 64 bits can say. */
#define BYTES_MAX 1e18
/* Of a number that an option takes, with its NUL. */
#define NUMBER_BYTES 24
/* Of a message, for each bucket of the receiver's share: how many records. */
#define HEAD_BYTES_PER_BUCKET 4

void model_options_init(struct model_options *options)
{
	*options = (struct model_options){
		.record_bytes = 100,
		.link_bits_per_s = (uint64_t)10 * 1000000000,
		.mtu_bytes = 1500,
		.sending_cpus = 1,
		.receiving_cpus = 1,
	};
}

/* --- the command line ----------------------------------------------------- */

/* Copy the first bytes of a text.  False: no number is as long. */
static bool take_digits(char digits[NUMBER_BYTES], const char *text,
			size_t byte_count)
{
	if (byte_count >= NUMBER_BYTES)
		return false;
	memcpy(digits, text, byte_count);
	digits[byte_count] = '\0';
	return true;
}

static int take_ranks(struct options_reader *reader,
		      struct model_options *options, struct failure *failure)
{
	const char *at = reader->value;

	options->rank_counts = 0;
	for (;;) {
		size_t digits = strcspn(at, ",");
		uint64_t ranks = 0;
		char text[NUMBER_BYTES];

		if (!take_digits(text, at, digits) ||
		    parse_u64(text, 1, RANKS_MAX, &ranks) < 0 ||
		    options->rank_counts == MODEL_RANK_COUNTS_MAX)
			return options_refuse(
				reader, failure,
				"not up to %d numbers from 1 to %d, such as "
				"16,64,256",
				MODEL_RANK_COUNTS_MAX, RANKS_MAX);
		options->ranks[options->rank_counts++] = (unsigned)ranks;
		if (at[digits] == '\0')
			return 0;
		at += digits + 1;
	}
}

static int take_link(struct options_reader *reader,
		     struct model_options *options, struct failure *failure)
{
	if (parse_bits(reader->value, LINK_BITS_MAX,
		       &options->link_bits_per_s) < 0)
		return options_refuse(reader, failure,
				      "not bits a second, 1 to 1000T, such as "
				      "10G");
	return 0;
}

static int take_announce(struct options_reader *reader,
			 struct model_options *options, struct failure *failure)
{
	static const char *const kinds[] = { "own", "all" };
	unsigned kind = 0;
	int ret =
		options_choice(reader, kinds, ARRAY_LEN(kinds), &kind, failure);

	options->announces_all = kind == 1;
	return ret;
}

int model_options_take(struct options_reader *reader, int id,
		       struct model_options *options, struct failure *failure)
{
	switch (id) {
	case MODEL_OPTION_RANKS:
		return take_ranks(reader, options, failure);
	case MODEL_OPTION_RECORDS:
		return options_number(reader, 1, RECORDS_MAX,
				      &options->record_count, failure);
	case MODEL_OPTION_RECORD_SIZE:
		return options_number_32(reader, 1, RECORD_BYTES_MAX,
					 &options->record_bytes, failure);
	case MODEL_OPTION_LINK:
		return take_link(reader, options, failure);
	case MODEL_OPTION_MTU:
		return options_number_32(reader, MTU_BYTES_MIN, MTU_BYTES_MAX,
					 &options->mtu_bytes, failure);
	case MODEL_OPTION_OVERHEAD:
		return options_number_32(reader, 0, MTU_BYTES_MAX,
					 &options->overhead_bytes, failure);
	case MODEL_OPTION_SENDERS:
		return options_number_32(reader, 1, CPUS_MAX,
					 &options->sending_cpus, failure);
	case MODEL_OPTION_RECEIVERS:
		return options_number_32(reader, 1, CPUS_MAX,
					 &options->receiving_cpus, failure);
	case MODEL_OPTION_SHARED_CPUS:
		return options_number_32(reader, 1, CPUS_MAX,
					 &options->shared_cpus, failure);
	case MODEL_OPTION_LATENCY:
		return options_number_32(reader, 0, 1000000000,
					 &options->latency_ns, failure);
	case MODEL_OPTION_ANNOUNCE:
		return take_announce(reader, options, failure);
	default:
		return 0;
	}
}

/* --- what is printed ------------------------------------------------------ */

/* The longest message between two ranks with equal shares. */
static double message_bytes(const struct model_options *options, unsigned ranks)
{
	double buckets = (double)plan_buckets(options->record_count) / ranks;
	double records = (double)options->record_count / ranks / ranks;

	return records * options->record_bytes +
	       HEAD_BYTES_PER_BUCKET * MAX(1, buckets);
}

/* A rank's model.  Before this protocol, each rank told each other one the
 * lengths of all messages, and was told by four STATUS of each. */
static struct exchange_model model_of(const struct options_reader *reader,
				      const struct model_options *options,
				      unsigned ranks)
{
	struct exchange_model model;

	exchange_model_ethernet(&model, (double)options->link_bits_per_s,
				options->mtu_bytes, options->sending_cpus,
				options->receiving_cpus);
	if (options_given(reader, MODEL_OPTION_OVERHEAD)) {
		model.status_bytes +=
			options->overhead_bytes - model.overhead_bytes;
		model.status_bytes = MAX(0, model.status_bytes);
		model.overhead_bytes = options->overhead_bytes;
	}
	if (options_given(reader, MODEL_OPTION_LATENCY))
		model.latency_ns = options->latency_ns;
	if (options->announces_all) {
		model.announce_bytes = 8 * ranks;
		model.announce_all_max = 0;
		model.status_count = 3;
	}
	if (options->shared_cpus)
		model.ranks_per_cpu = (double)ranks / options->shared_cpus;
	return model;
}

static void print_model(const struct exchange_model *model)
{
	printf(", \"payload_bytes\": %.0f, \"overhead_bytes\": %.0f"
	       ", \"send_ns\": %.0f, \"receive_ns\": %.0f"
	       ", \"message_ns\": %.0f, \"status_ns\": %.0f"
	       ", \"status_bytes\": %.0f"
	       ", \"latency_ns\": %.0f, \"word_ns\": %.0f"
	       ", \"gather_bytes_per_s\": %.0f, \"status_count\": %u",
	       model->payload_bytes, model->overhead_bytes, model->send_ns,
	       model->receive_ns, model->message_ns, model->status_ns,
	       model->status_bytes, model->latency_ns, model->word_ns,
	       model->gather_bytes_per_s, model->status_count);
}

static void print_forecast(const struct exchange_model *model,
			   const struct model_options *options, unsigned ranks)
{
	double bytes = message_bytes(options, ranks);
	enum exchange_schedule schedule =
		exchange_model_schedule((uint64_t)MIN(bytes, BYTES_MAX), ranks);
	struct exchange_model rdma;
	unsigned rows, columns;

	exchange_model_rdma(&rdma, (double)options->link_bits_per_s);
	exchange_model_grid_sides(ranks, &rows, &columns);
	printf("{\"ranks\": %u, \"message_bytes\": %.0f, \"link_ns\": %.0f"
	       ", \"rounds_ns\": %.0f, \"all_at_once_ns\": %.0f"
	       ", \"grid_ns\": %.0f, \"rows\": %u, \"columns\": %u"
	       ", \"rdma_ns\": %.0f, \"auto\": \"%s\", \"auto_ns\": %.0f}",
	       ranks, bytes, exchange_model_link_ns(model, ranks, bytes),
	       exchange_model_ns(model, EXCHANGE_ROUNDS, ranks, bytes),
	       exchange_model_ns(model, EXCHANGE_ALL_AT_ONCE, ranks, bytes),
	       exchange_model_ns(model, EXCHANGE_GRID, ranks, bytes), rows,
	       columns, exchange_model_mpi_ns(&rdma, ranks, bytes),
	       exchange_schedule_name(schedule),
	       exchange_model_ns(model, schedule, ranks, bytes));
}

int model_options_check(struct options_reader *reader,
			const struct model_options *options,
			struct failure *failure)
{
	if (options->rank_counts == 0)
		return options_refuse_entry(reader, MODEL_OPTION_RANKS, failure,
					    "is missing: how many, such as "
					    "16,64,256");
	if (options->record_count == 0)
		return options_refuse_entry(reader, MODEL_OPTION_RECORDS,
					    failure,
					    "is missing: of all ranks");
	return 0;
}

void model_options_print(const struct options_reader *reader,
			 const struct model_options *options)
{
	struct exchange_model model =
		model_of(reader, options, options->ranks[0]);

	printf(", \"records\": %" PRIu64 ", \"record_bytes\": %" PRIu32
	       ", \"link_bits_per_s\": %" PRIu64 ", \"mtu_bytes\": %" PRIu32,
	       options->record_count, options->record_bytes,
	       options->link_bits_per_s, options->mtu_bytes);
	print_model(&model);
	printf(", \"forecasts\": [");
	for (unsigned i = 0; i < options->rank_counts; i++) {
		unsigned ranks = options->ranks[i];

		model = model_of(reader, options, ranks);
		printf("%s", i == 0 ? "" : ", ");
		print_forecast(&model, options, ranks);
	}
	printf("]");
}
