/*
 * cluster_report.h - what a rank has done, in figures that rank 0 gets of all
 *
 * Times are ns.  The phases follow each other; what waits for others is in the
 * phase that waited.
 */
#ifndef CLUSTER_REPORT_H
#define CLUSTER_REPORT_H

#include <stddef.h>
#include <stdint.h>

enum cluster_figure {
	CLUSTER_RECORDS_IN,
	CLUSTER_RECORDS_OUT,
	CLUSTER_THREADS,
	CLUSTER_MEMORY_BYTES,
	/* The beginning, by rank 0's clock, and how wrong that may be;
	 * UINT64_MAX: it is not known. */
	CLUSTER_BEGIN_AT_NS,
	CLUSTER_CLOCK_BOUND_NS,
	CLUSTER_OPEN_NS,     /* files opened, keys looked at */
	CLUSTER_JOIN_NS,     /* all ranks have said hello */
	CLUSTER_BUCKET_NS,   /* every record's entry in its bucket */
	CLUSTER_SAMPLE_NS,   /* of bucket: splitters agreed upon */
	CLUSTER_ARRANGE_NS,  /* messages laid out */
	CLUSTER_EXCHANGE_NS, /* until all of ours is here */
	CLUSTER_ORDER_NS,    /* what was left to sort and gather */
	CLUSTER_FINISH_NS,   /* until others have theirs and all is written */
	CLUSTER_MEET_NS,     /* until all others have, too */
	CLUSTER_COMMIT_NS,
	CLUSTER_SENT_BYTES,
	CLUSTER_SENT_DATAGRAMS,
	CLUSTER_RECEIVED_BYTES,
	CLUSTER_RECEIVED_DATAGRAMS,
	CLUSTER_RESENT_DATAGRAMS,
	CLUSTER_DUPLICATE_DATAGRAMS,
	CLUSTER_DAMAGED_DATAGRAMS,
	CLUSTER_STRAY_DATAGRAMS,
	CLUSTER_STATUS_DATAGRAMS,
	CLUSTER_ROUND_WAIT_NS,
	CLUSTER_ROUNDS_UNWAITED,
	CLUSTER_POLL_WAIT_NS,
	CLUSTER_PLAIN_BYTES, /* of records that were compressed to be sent */
	CLUSTER_COMPRESS_NS, /* of exchange: until they were */
	CLUSTER_CHECKSUM_LOW,
	CLUSTER_CHECKSUM_HIGH,
	CLUSTER_FIGURES
};

struct cluster_report {
	uint64_t figures[CLUSTER_FIGURES];
};

#define CLUSTER_REPORT_BYTES (8 * CLUSTER_FIGURES)

/* [enum cluster_figure]: "records_in" and so on; NULL: not for printing as a
 * number. */
extern const char *const cluster_figure_names[CLUSTER_FIGURES];

static inline unsigned __int128
cluster_report_checksum(const struct cluster_report *report)
{
	return (unsigned __int128)report->figures[CLUSTER_CHECKSUM_HIGH] << 64 |
	       report->figures[CLUSTER_CHECKSUM_LOW];
}

/* A report is encoded as little-endian words. */
void cluster_report_encode(const struct cluster_report *report,
			   uint8_t bytes[CLUSTER_REPORT_BYTES]);
/* What is missing is 0. */
void cluster_report_decode(struct cluster_report *report, const uint8_t *bytes,
			   size_t byte_count);

#endif /* CLUSTER_REPORT_H */
