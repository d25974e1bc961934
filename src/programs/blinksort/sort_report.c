/* sort_report.c - prints the result of a sort as JSON */
#include "programs/blinksort/sort_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/base.h"
#include "base/format.h"
#include "base/version.h"
#include "programs/blinksort/external_report.h"
#include "programs/blinksort/rank_report.h"
#include "record/key_text.h"

int64_t sort_report_ns(double ns)
{
	return (int64_t)MIN(ns, 1e18);
}

static void print_names(const char *key, const char *const *names,
			unsigned count)
{
	printf(", \"%s\": [", key);
	for (unsigned i = 0; i < count; i++) {
		fputs(i == 0 ? "" : ", ", stdout);
		format_json_string(stdout, names[i]);
	}
	putchar(']');
}

/* What the process has used so far; it ends when this is printed. */
static void print_usage(void)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_SELF, &usage);
	printf(", \"minor_faults\": %ld, \"major_faults\": %ld, "
	       "\"voluntary_switches\": %ld, \"involuntary_switches\": %ld",
	       usage.ru_minflt, usage.ru_majflt, usage.ru_nvcsw,
	       usage.ru_nivcsw);
}

static void print_checksum(const char *key, bool is_known,
			   unsigned __int128 checksum)
{
	format_json_text(stdout, key,
			 is_known ? FORMAT_U128_HEX(checksum) : NULL);
}

/* As the sort has understood them: joined, and each with its direction. */
static void print_keys(const struct sorter_config *config)
{
	const struct key_list *keys = &config->shape.keys;
	uint32_t input_size = sorter_input_size(config);
	char text[KEY_TEXT_BYTES];
	const char *comma = "";

	fputs(", \"keys\": [", stdout);
	for (unsigned i = 0; i < keys->field_count; i++) {
		struct key_field field = keys->fields[i];

		/* A slice at the record's end may go on with the random key. */
		if (field.offset >= input_size)
			continue;
		field.length = MIN(field.length, input_size - field.offset);
		printf("%s\"%s\"", comma, key_text_format(&field, text));
		comma = ", ";
	}
	if (config->widening.is_random)
		printf("%s\"random:%" PRIu64 "\"", comma,
		       config->widening.seed);
	putchar(']');
	format_json_text(stdout, "numbers",
			 config->widening.number_bytes == 4   ? "u32"
			 : config->widening.number_bytes == 8 ? "u64"
							      : NULL);
}

static void print_nodes(const struct sorter_result *result)
{
	fputs(", \"numa\": ", stdout);
	if (result->node_count == 0) {
		fputs("null", stdout);
		return;
	}
	for (unsigned i = 0; i < result->node_count; i++) {
		const struct sorter_node *node = &result->nodes[i];

		printf("%s{\"node\": %u, \"workers\": %u", i == 0 ? "[" : ", ",
		       node->node, node->workers);
		format_json_number(stdout, "memory_bytes",
				   result->knows_node_memory,
				   node->memory_bytes);
		putchar('}');
	}
	putchar(']');
}

/* The keys that both kinds of sort have; the object stays open. */
static void print_sort(const struct sorter_config *config,
		       const struct sorter_result *result)
{
	printf("{\"schema\": \"blinksort-sort-1\", "
	       "\"program\": \"blinksort\"");
	format_json_text(stdout, "version", blinksort_version);
	printf(", \"records\": %llu, \"record_size\": %u",
	       (unsigned long long)result->record_count,
	       sorter_input_size(config));
	print_keys(config);
	printf(", \"header_bytes\": %llu, \"bytes\": %llu, "
	       "\"dropped_records\": %llu",
	       (unsigned long long)config->header_bytes,
	       (unsigned long long)result->size_bytes,
	       (unsigned long long)result->dropped_count);
	format_json_number(stdout, "head_records", config->head_records > 0,
			   config->head_records);
	printf(", \"written_records\": %llu",
	       (unsigned long long)result->written_count);
	printf(", \"elapsed_ns\": %llu, \"phases_ns\": {\"prepare\": %llu, "
	       "\"bucket\": %llu, \"order\": %llu, \"commit\": %llu}",
	       (unsigned long long)(result->committed_ns - result->begin_ns),
	       (unsigned long long)(result->prepared_ns - result->begin_ns),
	       (unsigned long long)(result->bucketed_ns - result->prepared_ns),
	       (unsigned long long)(result->ordered_ns - result->bucketed_ns),
	       (unsigned long long)(result->committed_ns - result->ordered_ns));
	printf(", \"io\": \"%s\", \"output_io\": \"%s\", \"synced\": %s",
	       input_mode_name(result->io),
	       result->output_direct ? "direct" : "buffered",
	       config->sync ? "true" : "false");
	printf(", \"splitters\": \"%s\", \"buckets\": %u, \"kernel\": \"%s\", "
	       "\"threads\": %u, \"pin\": %s, \"memory_bytes\": %llu",
	       splitters_kind_name(result->splitters), result->bucket_count,
	       cpu_level_name(config->kernel), result->threads,
	       config->unpinned ? "false" : "true",
	       (unsigned long long)result->memory_bytes);
	print_nodes(result);
	print_usage();
	print_checksum("checksum", config->checksum, result->checksum);
	print_names("inputs", config->input_paths, config->input_count);
	print_names("outputs", config->output_paths, config->output_count);
}

static void print_external(const struct sorter_result *result,
			   const struct external_result *external)
{
	fputs(", \"external\": ", stdout);
	if (result->place == SORT_BEYOND_MEMORY)
		external_report_json(external);
	else
		fputs("null", stdout);
}

void sort_report_json(const struct sorter_config *config,
		      const struct sorter_result *result,
		      const struct external_result *external)
{
	print_sort(config, result);
	print_external(result, external);
	puts("}");
}

/* --- clusters --------------------------------------------------------------
 */

/* Behind the last report: they begin with our own, and rank 0 has those of all
 * ranks. */
static unsigned end_report(const struct cluster_result *result)
{
	return result->rank == 0 ? result->node_count : result->rank + 1;
}

static unsigned __int128 whole_checksum(const struct cluster_result *result)
{
	unsigned __int128 sum = 0;

	for (unsigned i = result->rank; i < end_report(result); i++)
		sum += cluster_report_checksum(&result->reports[i]);
	return sum;
}

static uint64_t count_records(const struct cluster_result *result)
{
	uint64_t count = 0;

	for (unsigned i = result->rank; i < end_report(result); i++)
		count += result->reports[i].figures[CLUSTER_RECORDS_OUT];
	return count;
}

/* begin_ns counts from rank 0's begin; clock_bound_ns is the largest error. */
static void print_clock(const struct cluster_result *result,
			const struct cluster_report *report)
{
	uint64_t bound_ns = report->figures[CLUSTER_CLOCK_BOUND_NS];
	int64_t begin_ns =
		(int64_t)(report->figures[CLUSTER_BEGIN_AT_NS] -
			  result->reports[0].figures[CLUSTER_BEGIN_AT_NS]);
	bool is_known = result->rank == 0 && bound_ns != UINT64_MAX;

	format_json_number(stdout, "begin_ns", is_known, begin_ns);
	format_json_number(stdout, "clock_bound_ns", is_known, bound_ns);
}

void sort_report_roles(unsigned roles)
{
	const char *comma = "";

	fputs(", \"roles\": [", stdout);
	for (unsigned i = 0; i < CLUSTER_ROLES; i++)
		if (cluster_roles_have(roles, (enum cluster_role)i)) {
			printf("%s\"%s\"", comma,
			       cluster_role_name((enum cluster_role)i));
			comma = ", ";
		}
	putchar(']');
}

static void print_rank(const struct sorter_config *config,
		       const struct cluster_result *result, unsigned rank)
{
	const struct cluster_report *report = &result->reports[rank];

	printf("{\"rank\": %u", rank);
	for (unsigned i = 0; i < CLUSTER_FIGURES; i++) {
		const char *name = cluster_figure_name((enum cluster_figure)i);

		if (name)
			printf(", \"%s\": %" PRIu64, name, report->figures[i]);
	}
	print_clock(result, report);
	sort_report_roles(result->roles[rank]);
	print_checksum("checksum", config->checksum,
		       cluster_report_checksum(report));
	fputs(", \"passes\": ", stdout);
	rank_report_json(result, rank);
	putchar('}');
}

static void print_mpi(const struct mpi_report *mpi)
{
	format_json_text(stdout, "mpi_library", mpi ? mpi->library : NULL);
	format_json_number(stdout, "mpi_init_ns", mpi, mpi ? mpi->init_ns : 0);
	format_json_number(stdout, "mpi_finalize_ns", mpi,
			   mpi ? mpi->finalize_ns : 0);
}

static void print_schedule(const struct cluster_schedule *schedule)
{
	printf(", \"schedule\": \"%s\", \"grid\": ",
	       exchange_schedule_names[schedule->kind]);
	if (schedule->kind == EXCHANGE_GRID)
		printf("[%u, %u]", schedule->rows, schedule->columns);
	else
		printf("null");
}

/* What records were compressed with, and why --compress=auto has chosen that.
 */
static void print_sending(const struct cluster_sending *sending)
{
	bool is_predicted = sending->link_rate > 0;

	printf(", \"compress\": \"%s\"", codec_name(sending->codec.kind));
	if (sending->sample.plain_bytes == 0) {
		format_json_text(stdout, "compress_choice", NULL);
		return;
	}
	printf(", \"compress_choice\": {\"sampled_bytes\": %" PRIu64
	       ", \"compressed_bytes\": %" PRIu64,
	       sending->sample.plain_bytes, sending->sample.stored_bytes);
	format_json_number(stdout, "link_rate", is_predicted,
			   sending->link_rate);
	format_json_number(stdout, "none_ns", is_predicted,
			   sort_report_ns(sending->none_ns));
	format_json_number(stdout, "lz4_ns", is_predicted,
			   sort_report_ns(sending->lz4_ns));
	putchar('}');
}

static void print_cluster(const struct sorter_config *config,
			  const struct cluster_result *result,
			  const struct mpi_report *mpi)
{
	print_sort(config, &result->sort);
	printf(", \"rank\": %u, \"nodes\": %u", result->rank,
	       result->node_count);
	print_schedule(&result->schedule);
	print_sending(&result->sending);
	printf(", \"transport\": \"%s\", \"by_reference\": %s, "
	       "\"shared_input\": %s, \"payload_bytes\": %u",
	       result->transport, result->by_reference ? "true" : "false",
	       result->shares_input ? "true" : "false", result->payload_bytes);
	format_json_number(stdout, "network_node", result->network_node >= 0,
			   result->network_node);
	print_mpi(mpi);
	format_json_number(stdout, "whole_records", result->rank == 0,
			   count_records(result));
	print_checksum("whole_checksum", result->rank == 0 && config->checksum,
		       whole_checksum(result));
	print_external(&result->sort, &result->external);
	printf(", \"ranks\": [");
	for (unsigned i = result->rank; i < end_report(result); i++) {
		fputs(i == result->rank ? "" : ", ", stdout);
		print_rank(config, result, i);
	}
	puts("]}");
}

void sort_report_cluster(const struct sorter_config *config,
			 const struct cluster_result *result,
			 const struct mpi_report *mpi, bool as_json)
{
	if (as_json)
		print_cluster(config, result, mpi);
	else if (config->checksum)
		printf("%s\n", FORMAT_U128_HEX(whole_checksum(result)));
}
