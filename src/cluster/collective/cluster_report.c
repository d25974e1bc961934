/*
 * cluster_report.c - what a rank has done, in figures that rank 0 gets of
 * all
 */
#include "cluster/collective/cluster_report.h"

#include "base/base.h"

const char *const cluster_figure_names[CLUSTER_FIGURES] = {
	[CLUSTER_RECORDS_IN] = "records_in",
	[CLUSTER_RECORDS_OUT] = "records_out",
	[CLUSTER_THREADS] = "threads",
	[CLUSTER_MEMORY_BYTES] = "memory_bytes",
	[CLUSTER_OPEN_NS] = "open_ns",
	[CLUSTER_JOIN_NS] = "join_ns",
	[CLUSTER_BUCKET_NS] = "bucket_ns",
	[CLUSTER_SAMPLE_NS] = "sample_ns",
	[CLUSTER_ARRANGE_NS] = "arrange_ns",
	[CLUSTER_EXCHANGE_NS] = "exchange_ns",
	[CLUSTER_ORDER_NS] = "order_ns",
	[CLUSTER_FINISH_NS] = "finish_ns",
	[CLUSTER_MEET_NS] = "meet_ns",
	[CLUSTER_COMMIT_NS] = "commit_ns",
	[CLUSTER_SENT_BYTES] = "sent_bytes",
	[CLUSTER_SENT_DATAGRAMS] = "sent_datagrams",
	[CLUSTER_RECEIVED_BYTES] = "received_bytes",
	[CLUSTER_RECEIVED_DATAGRAMS] = "received_datagrams",
	[CLUSTER_RESENT_DATAGRAMS] = "resent_datagrams",
	[CLUSTER_DUPLICATE_DATAGRAMS] = "duplicate_datagrams",
	[CLUSTER_DAMAGED_DATAGRAMS] = "damaged_datagrams",
	[CLUSTER_STRAY_DATAGRAMS] = "stray_datagrams",
	[CLUSTER_STATUS_DATAGRAMS] = "status_datagrams",
	[CLUSTER_ROUND_WAIT_NS] = "round_wait_ns",
	[CLUSTER_ROUNDS_UNWAITED] = "rounds_unwaited",
	[CLUSTER_POLL_WAIT_NS] = "poll_wait_ns",
	[CLUSTER_PLAIN_BYTES] = "plain_bytes",
	[CLUSTER_COMPRESS_NS] = "compress_ns",
};

void cluster_report_encode(const struct cluster_report *report,
			   uint8_t bytes[CLUSTER_REPORT_BYTES])
{
	for (size_t i = 0; i < CLUSTER_FIGURES; i++)
		store_le64(bytes + 8 * i, report->figures[i]);
}

void cluster_report_decode(struct cluster_report *report, const uint8_t *bytes,
			   size_t byte_count)
{
	*report = (struct cluster_report){ 0 };
	for (size_t i = 0; i < CLUSTER_FIGURES && 8 * (i + 1) <= byte_count;
	     i++)
		report->figures[i] = load_le64(bytes + 8 * i);
}
