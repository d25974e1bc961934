/* sort_report.c - prints the result of a sort as JSON */
#include "programs/blinksort/sort_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/base.h"
#include "base/format.h"
#include "base/json.h"
#include "base/version.h"
#include "programs/blinksort/external_report.h"
#include "record/key_text.h"

int64_t sort_report_ns(double ns)
{
	return (int64_t)MIN(ns, 1e18);
}

static void print_names(const char *key, const char *const *names,
			unsigned count)
{
	json_open(key, '[');
	for (unsigned i = 0; i < count; i++)
		json_text(NULL, names[i]);
	json_close(']');
}

/* What the process has used so far; it ends when this is printed. */
static void print_usage(void)
{
	struct rusage usage = { 0 };

	getrusage(RUSAGE_SELF, &usage);
	json_number("minor_faults", (uint64_t)usage.ru_minflt);
	json_number("major_faults", (uint64_t)usage.ru_majflt);
	json_number("voluntary_switches", (uint64_t)usage.ru_nvcsw);
	json_number("involuntary_switches", (uint64_t)usage.ru_nivcsw);
}

static void print_checksum(const char *key, bool is_known,
			   unsigned __int128 checksum)
{
	json_text(key, is_known ? FORMAT_U128_HEX(checksum) : NULL);
}

/* As the sort has understood them: joined, and each with its direction. */
static void print_keys(const struct sorter_config *config)
{
	const struct key_list *keys = &config->shape.keys;
	uint32_t input_size = sorter_input_size(config);
	char text[KEY_TEXT_BYTES];

	json_open("keys", '[');
	for (unsigned i = 0; i < keys->field_count; i++) {
		struct key_field field = keys->fields[i];

		/* A slice at the record's end may go on with the random key. */
		if (field.offset >= input_size)
			continue;
		field.length = MIN(field.length, input_size - field.offset);
		json_text(NULL, key_text_format(&field, text));
	}
	if (config->widening.is_random) {
		snprintf(text, sizeof(text), "random:%" PRIu64,
			 config->widening.seed);
		json_text(NULL, text);
	}
	json_close(']');
	json_text("numbers", config->widening.number_bytes == 4	  ? "u32"
			     : config->widening.number_bytes == 8 ? "u64"
								  : NULL);
}

static void print_nodes(const struct sorter_result *result)
{
	if (!json_open_known("numa", result->node_count > 0, '['))
		return;
	for (unsigned i = 0; i < result->node_count; i++) {
		const struct sorter_node *node = &result->nodes[i];

		json_open(NULL, '{');
		json_number("node", node->node);
		json_number("workers", node->workers);
		json_known("memory_bytes", result->knows_node_memory,
			   node->memory_bytes);
		json_close('}');
	}
	json_close(']');
}

/* The keys that both kinds of sort have; the object stays open. */
static void print_sort(const struct sorter_config *config,
		       const struct sorter_result *result)
{
	json_begin("blinksort-sort-1");
	json_text("program", "blinksort");
	json_text("version", blinksort_version);
	json_number("records", result->record_count);
	json_number("record_size", sorter_input_size(config));
	print_keys(config);
	json_number("header_bytes", config->header_bytes);
	json_number("bytes", result->size_bytes);
	json_number("dropped_records", result->dropped_count);
	json_known("head_records", config->head_records > 0,
		   config->head_records);
	json_number("written_records", result->written_count);
	json_number("elapsed_ns", result->committed_ns - result->begin_ns);
	json_open("phases_ns", '{');
	json_number("prepare", result->prepared_ns - result->begin_ns);
	json_number("bucket", result->bucketed_ns - result->prepared_ns);
	json_number("order", result->ordered_ns - result->bucketed_ns);
	json_number("commit", result->committed_ns - result->ordered_ns);
	json_close('}');
	json_text("io", input_mode_names[result->io]);
	json_text("output_io", result->output_direct ? "direct" : "buffered");
	json_bool("synced", config->sync);
	json_text("splitters", splitters_kind_names[result->splitters]);
	json_number("buckets", result->bucket_count);
	json_text("kernel", cpu_level_names[config->kernel]);
	json_number("threads", result->threads);
	json_bool("pin", !config->unpinned);
	json_number("memory_bytes", result->memory_bytes);
	print_nodes(result);
	print_usage();
	print_checksum("checksum", config->checksum, result->checksum);
	print_names("inputs", config->input_paths, config->input_count);
	print_names("outputs", config->output_paths, config->output_count);
}

void sort_report_json(const struct sorter_config *config,
		      const struct sorter_result *result,
		      const struct external_result *external)
{
	print_sort(config, result);
	external_report_json(result, external);
	json_end();
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

	json_known("begin_ns", is_known, begin_ns);
	json_known("clock_bound_ns", is_known, bound_ns);
}

void sort_report_roles(unsigned roles)
{
	json_open("roles", '[');
	for (enum cluster_role r = 0; r < CLUSTER_ROLES; r++)
		if (cluster_roles_have(roles, r))
			json_text(NULL, cluster_role_names[r]);
	json_close(']');
}

static void print_passes(const struct cluster_result *result, unsigned rank)
{
	if (!json_open_known("passes", result->sort.place != SORT_IN_MEMORY,
			     '['))
		return;
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		const struct cluster_pass *row = &result->passes.of[rank][p];

		json_open(NULL, '{');
		json_text("pass", external_pass_names[p]);
		json_number("ns", row->ns);
		json_known("predicted_ns", row->predicted_ns > 0,
			   row->predicted_ns);
		json_number("read_bytes", row->read_bytes);
		json_number("written_bytes", row->written_bytes);
		json_number("sent_bytes", row->sent_bytes);
		json_number("received_bytes", row->received_bytes);
		json_text("limit", external_limit_names[row->limit]);
		json_close('}');
	}
	json_close(']');
}

static void print_rank(const struct sorter_config *config,
		       const struct cluster_result *result, unsigned rank)
{
	const struct cluster_report *report = &result->reports[rank];

	json_open(NULL, '{');
	json_number("rank", rank);
	for (unsigned i = 0; i < CLUSTER_FIGURES; i++) {
		const char *name = cluster_figure_names[i];

		if (name)
			json_number(name, report->figures[i]);
	}
	print_clock(result, report);
	sort_report_roles(result->roles[rank]);
	print_checksum("checksum", config->checksum,
		       cluster_report_checksum(report));
	print_passes(result, rank);
	json_close('}');
}

static void print_mpi(const struct mpi_report *mpi)
{
	json_text("mpi_library", mpi ? mpi_link_library() : NULL);
	json_known("mpi_init_ns", mpi, mpi ? mpi->init_ns : 0);
	json_known("mpi_finalize_ns", mpi, mpi ? mpi->finalize_ns : 0);
}

static void print_schedule(const struct cluster_schedule *schedule)
{
	json_text("schedule", exchange_schedule_names[schedule->kind]);
	if (!json_open_known("grid", schedule->kind == EXCHANGE_GRID, '['))
		return;
	json_number(NULL, schedule->rows);
	json_number(NULL, schedule->columns);
	json_close(']');
}

/* What records were compressed with, and why --compress=auto has chosen that.
 */
static void print_sending(const struct cluster_sending *sending)
{
	bool is_predicted = sending->link_rate > 0;

	json_text("compress", codec_names[sending->codec.kind]);
	if (!json_open_known("compress_choice", sending->sample.plain_bytes > 0,
			     '{'))
		return;
	json_number("sampled_bytes", sending->sample.plain_bytes);
	json_number("compressed_bytes", sending->sample.stored_bytes);
	json_known("link_rate", is_predicted, sending->link_rate);
	json_known("none_ns", is_predicted, sort_report_ns(sending->none_ns));
	json_known("lz4_ns", is_predicted, sort_report_ns(sending->lz4_ns));
	json_close('}');
}

static void print_cluster(const struct sorter_config *config,
			  const struct cluster_result *result,
			  const struct mpi_report *mpi)
{
	print_sort(config, &result->sort);
	json_number("rank", result->rank);
	json_number("nodes", result->node_count);
	print_schedule(&result->schedule);
	print_sending(&result->sending);
	json_text("transport", result->transport);
	json_bool("by_reference", result->by_reference);
	json_bool("shared_input", result->shares_input);
	json_number("payload_bytes", result->payload_bytes);
	json_number("exchange_threads", result->thread_count);
	json_known("network_node", result->network_node >= 0,
		   result->network_node);
	print_mpi(mpi);
	json_known("whole_records", result->rank == 0, count_records(result));
	print_checksum("whole_checksum", result->rank == 0 && config->checksum,
		       whole_checksum(result));
	external_report_json(&result->sort, &result->external);
	json_open("ranks", '[');
	for (unsigned i = result->rank; i < end_report(result); i++)
		print_rank(config, result, i);
	json_close(']');
	json_end();
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
