/*
 * suppose_options.c - reads --suppose, and plans the sort that it tells of
 */
#include "programs/blinksort/suppose_options.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/parse.h"
#include "cluster/agreement/cluster_agree.h"
#include "io/input/input.h"
#include "io/output/output.h"
#include "net/rank.h"
#include "sort/plan.h"
#include "sort/record_counts.h"
#include "sort/sort_setup.h"

/* More than any published sort had; blinksort sorts by RANK_NODES_MAX. */
#define RANKS_MAX UINT16_MAX
#define CPUS_MAX 4096
#define TEXT(number) TEXT_OF(number)
#define TEXT_OF(number) #number

#define FIELD(name) offsetof(struct suppose_options, name)

/* What may be supposed beside ranks and records. */
static const struct {
	const char *name;
	uint64_t min, max;
	size_t field;
} names[] = {
	{ "mtu", 576, UINT16_MAX, FIELD(mtu_bytes) },
	{ "overhead", 0, UINT16_MAX, FIELD(overhead_bytes) },
	{ "latency-ns", 0, NS_PER_S, FIELD(latency_ns) },
	{ "senders", 1, CPUS_MAX, FIELD(sending_cpus) },
	{ "receivers", 1, CPUS_MAX, FIELD(receiving_cpus) },
	{ "shared-cpus", 1, CPUS_MAX, FIELD(shared_cpus) },
	{ "memory-read", 1, INT64_MAX, FIELD(memory.memory_read) },
	{ "memory-copy", 1, INT64_MAX, FIELD(memory.memory_copy) },
	{ "start-ns", 0, INT64_MAX, FIELD(memory.start_ns) },
	{ "compressed", 1, 100, FIELD(memory.compressed_percent) },
	{ "readers", 1, RANK_NODES_MAX, FIELD(choice.readers_max) },
	{ "keepers", 1, RANK_NODES_MAX, FIELD(choice.keepers_max) },
	{ "storage", 1, INT64_MAX, FIELD(storage) },
};

/* word is NAME=NUMBER; *given has a bit for each name that was given. */
static int take_supposed(struct options_reader *reader, char *word,
			 struct suppose_options *suppose, unsigned *given,
			 struct failure *failure)
{
	char *number = word, *name = strsep(&number, "=");

	for (unsigned i = 0; number && i < ARRAY_LEN(names); i++) {
		uint64_t *field = (void *)((char *)suppose + names[i].field);

		if (strcmp(name, names[i].name) != 0)
			continue;
		if (*given & 1U << i)
			return options_refuse(reader, failure,
					      "%s is given twice", name);
		*given |= 1U << i;
		if (parse_u64(number, names[i].min, names[i].max, field) == 0)
			return 0;
		return options_refuse(reader, failure,
				      "%s is not a number from %" PRIu64
				      " to %" PRIu64,
				      name, names[i].min, names[i].max);
	}
	return options_refuse(reader, failure,
			      "'%s' is not mtu, overhead, latency-ns, senders, "
			      "receivers, shared-cpus, memory-read, "
			      "memory-copy, start-ns, compressed, readers, "
			      "keepers or storage, with =NUMBER",
			      name);
}

/* words is cut into pieces. */
static int take_words(struct options_reader *reader, char *words,
		      struct suppose_options *suppose, struct failure *failure)
{
	char *records = strsep(&words, ",");
	char *rank_text = strsep(&records, ":");
	uint64_t ranks = 0;
	unsigned given = 0;
	int error = 0;

	if (!records || parse_u64(rank_text, 1, RANKS_MAX, &ranks) < 0 ||
	    parse_u64(records, 1, INT64_MAX, &suppose->memory.whole_records) <
		    0)
		return options_refuse(reader, failure,
				      "not RANKS:RECORDS, up to %d ranks and "
				      "all their records, such as "
				      "100:1000000000000",
				      RANKS_MAX);
	suppose->memory.rank_count = (unsigned)ranks;
	while (error == 0 && words)
		error = take_supposed(reader, strsep(&words, ","), suppose,
				      &given, failure);
	return error;
}

int suppose_options_take(struct options_reader *reader,
			 struct suppose_options *suppose,
			 struct failure *failure)
{
	char *words = strdup(reader->value);
	int error;

	if (!words)
		return failure_no_memory(failure);
	*suppose = (struct suppose_options){
		.mtu_bytes = 1500,
		.sending_cpus = 1,
		.receiving_cpus = 1,
		.overhead_bytes = UINT64_MAX,
		.latency_ns = UINT64_MAX,
		.memory = { .compressed_percent = 50 },
		.choice = { .readers_max = UINT64_MAX,
			    .keepers_max = UINT64_MAX },
	};
	error = take_words(reader, words, suppose, failure);
	free(words);
	return error;
}

/* What this process would take in memory, with input and output past the page
 * cache. */
static uint64_t alone_bytes(const struct external_request *request)
{
	const struct plan_request wanted = {
		.shape = request->shape,
		.record_count = request->record_count,
		.slot_count = request->record_count,
		.input_memory_bytes = input_layout_bytes(request->record_count *
							 request->shape.size),
		.worker_count = request->worker_count,
		.is_counted = record_counts_suit(&request->shape),
		.staging_slots = output_slots_max(request->worker_count),
		.chunk_bytes_max = OUTPUT_CHUNK_BYTES,
	};
	struct plan plan;

	return plan_make(&plan, &wanted) < 0 ? UINT64_MAX : plan.memory_bytes;
}

static uint64_t together_bytes(const struct suppose_options *suppose,
			       const struct external_request *request)
{
	const struct cluster_hello hello = {
		.shape = request->shape,
		.record_count = request->record_count,
		.memory_bytes = request->memory_bytes,
		.input_bytes = input_layout_bytes(request->record_count *
						  request->shape.size),
	};

	return cluster_needed_bytes(&hello, suppose->memory.whole_records,
				    suppose->memory.rank_count, false);
}

static uint64_t in_memory_bytes(const struct suppose_options *suppose,
				const struct external_request *request)
{
	return suppose->memory.rank_count > 1 ? together_bytes(suppose, request)
					      : alone_bytes(request);
}

/* A sort takes fewer threads where it then fits into memory. */
static bool fits_in_memory(const struct suppose_options *suppose,
			   const struct sorter_config *config,
			   struct external_request *request)
{
	struct sort_memory allowed = { .bytes = request->memory_bytes };
	struct external_request tried = *request;

	/* A process alone may take all memory that there is for a sort in
	 * memory; what the request has is a part of that, as ranks and runs
	 * take it. */
	if (suppose->memory.rank_count == 1 && config->memory_bytes == 0)
		sort_setup_ask_memory(&allowed, config, request->record_count,
				      1);
	while (in_memory_bytes(suppose, &tried) > allowed.bytes) {
		if (!tried.may_have_fewer || tried.worker_count == 1)
			return false;
		tried.worker_count /= 2;
		tried.threads_source = "memory";
	}
	*request = tried;
	return true;
}

/* The least that a sort in memory takes, for a message. */
static uint64_t least_bytes(const struct suppose_options *suppose,
			    const struct sorter_config *config, uint64_t count)
{
	const struct external_request request = {
		.shape = config->shape,
		.record_count = count,
		.memory_bytes = config->memory_bytes,
		.worker_count = MAX(1, config->threads),
	};

	return in_memory_bytes(suppose, &request);
}

/* The exchange of ranks with such links. */
static void model_exchange(const struct suppose_options *suppose,
			   uint64_t link_rate, unsigned thread_count,
			   struct exchange_model *model)
{
	bool has_usual_cpus =
		suppose->sending_cpus == 1 && suppose->receiving_cpus == 1;

	exchange_model_ethernet(model, 8 * (double)link_rate,
				(unsigned)suppose->mtu_bytes,
				(unsigned)suppose->sending_cpus,
				(unsigned)suppose->receiving_cpus);
	if (has_usual_cpus && suppose->shared_cpus == 0)
		model->threads = exchange_model_threads(8 * (double)link_rate,
							thread_count);
	if (suppose->overhead_bytes != UINT64_MAX)
		exchange_model_set_overhead(model,
					    (double)suppose->overhead_bytes);
	if (suppose->latency_ns != UINT64_MAX)
		model->latency_ns = (double)suppose->latency_ns;
	if (suppose->shared_cpus > 0)
		model->ranks_per_cpu = (double)suppose->memory.rank_count /
				       (double)suppose->shared_cpus;
}

static struct sorter_result describe(const struct suppose_options *suppose,
				     const struct external_request *request)
{
	return (struct sorter_result){
		.record_count = request->record_count,
		.size_bytes = request->record_count * request->shape.size,
		.threads = request->worker_count,
		.threads_source = request->threads_source,
		.memory_source = request->memory_source,
		.memory_bytes = in_memory_bytes(suppose, request),
	};
}

static void forecast_memory(const struct suppose_options *suppose,
			    const struct external_config *config,
			    unsigned thread_count,
			    struct memory_forecast *forecast)
{
	const struct external_rates *rates = &config->rates;
	struct memory_request memory = suppose->memory;
	struct exchange_model exchange;

	memory.codec = config->codec.kind;
	memory.record_size = config->sort->shape.size;
	memory.thread_count = thread_count;
	memory.disk_read = rates->read;
	memory.disk_write = rates->write;
	if (rates->link > 0) {
		model_exchange(suppose, rates->link, thread_count, &exchange);
		memory.exchange = &exchange;
	}
	memory_model_forecast(forecast, &memory);
}

int suppose_options_explain(struct suppose_options *suppose,
			    const struct external_config *config,
			    struct sorter_result *result,
			    struct memory_explanation *in_memory,
			    struct external_explanation *explanation,
			    struct failure *failure)
{
	const struct cluster_roles *roles = suppose->choice.roles;
	unsigned ranks = suppose->memory.rank_count;
	uint64_t whole = suppose->memory.whole_records;
	uint64_t count = DIV_ROUND_UP(whole, ranks);
	struct external_config supposed = *config;
	bool fits;
	int error;

	if (count > CLUSTER_INPUT_BYTES_MAX / config->sort->shape.size)
		return failure_set(failure, EXIT_USAGE, "--suppose", 0,
				   "more than 32 TiB for each rank");
	if (ranks > 1) {
		supposed.ranks.rank_count = ranks;
		supposed.ranks.taker_count = ranks - 1;
		supposed.ranks.part_records = supposed.ranks.planned_records =
			supposed.ranks.own_records = count;
	}
	supposed.rates.storage = suppose->storage;
	supposed.in_memory_bytes = least_bytes(suppose, config->sort, count);
	error = external_sort_suppose(&supposed, count, explanation, failure);
	/* A sort in memory may suffice where one in runs does not. */
	fits = (!roles || roles->is_auto) &&
	       fits_in_memory(suppose, config->sort, &explanation->request);
	*result = describe(suppose, &explanation->request);
	if (fits) {
		in_memory->rank_count = ranks;
		in_memory->whole_records = whole;
		forecast_memory(suppose, config, result->threads,
				&in_memory->forecast);
		return 0;
	}
	result->place = SORT_BEYOND_MEMORY;
	explanation->whole_records = whole;
	if (ranks > RANK_NODES_MAX)
		explanation->refused =
			"it has at most " TEXT(RANK_NODES_MAX) " ranks";
	if (error || !roles)
		return error;
	suppose->choice.whole_records = whole;
	suppose->choice.rank_count = ranks;
	return roles_choice_make(&suppose->choice, &supposed, explanation,
				 failure);
}
