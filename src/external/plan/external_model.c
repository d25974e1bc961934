/*
 * external_model.c - the time of each pass, by its bytes and records
 */
#include "external/plan/external_model.h"

#include "external/plan/external_plan.h"

#define NS_PER_S 1e9
/* A pass that would take longer than 30 years takes 30 years. */
#define PASS_NS_MAX 1e18
/* Time of one CPU for each byte that a pass brings to its sink, and for each
 * record, as measured on a virtual machine with two (results/NOTES.md). */
#define CPU_NS_PER_BYTE 0.35
#define CPU_NS_PER_RECORD 15
/* The same for a record that is counted (record_counts.h). */
#define CPU_NS_PER_COUNTED 1

static double disk_ns(const struct external_rates *rates, double read_bytes,
		      double written_bytes)
{
	double together = MIN(read_bytes, written_bytes);

	if (rates->both == 0)
		return 0;
	/* Neither disk waits for the other. */
	if (rates->both >= rates->read &&
	    rates->both - rates->read >= rates->write)
		return NS_PER_S * MAX(read_bytes / (double)rates->read,
				      written_bytes / (double)rates->write);
	return NS_PER_S * (2 * together / (double)rates->both +
			   (read_bytes - together) / (double)rates->read +
			   (written_bytes - together) / (double)rates->write);
}

static double cpu_ns(const struct external_plan *plan,
		     const struct external_request *request, double bytes)
{
	double records = bytes / request->shape.size;
	double record_ns = plan->way == EXTERNAL_BY_COUNTS ? CPU_NS_PER_COUNTED
							   : CPU_NS_PER_RECORD;

	return (bytes * CPU_NS_PER_BYTE + records * record_ns) /
	       request->worker_count;
}

void external_model_set_pass(struct pass_forecast *pass,
			     const double ns[EXTERNAL_LIMITS])
{
	pass->limit = EXTERNAL_DISK;
	for (unsigned l = 0; l < EXTERNAL_LIMITS; l++) {
		pass->limits_ns[l] = (uint64_t)MIN(PASS_NS_MAX, ns[l]);
		if (ns[l] > ns[pass->limit])
			pass->limit = (enum external_limit)l;
	}
	pass->ns = pass->limits_ns[pass->limit];
}

/* The bytes of a rank that pass its link: its own part stays here. */
static double passing_bytes(unsigned rank_count, double bytes)
{
	return rank_count <= 1 ? 0 : bytes * (rank_count - 1) / rank_count;
}

double external_model_link_ns(const struct external_rates *rates,
			      unsigned rank_count, double bytes)
{
	if (rates->link == 0)
		return 0;
	return NS_PER_S * passing_bytes(rank_count, bytes) /
	       (double)rates->link;
}

/* What a pass reads and writes, and what passes the link each way. */
struct pass_bytes {
	double read, written, sent;
};

/* Reads that are not large take longer than their bytes. */
static double reads_ns(const struct external_plan *plan,
		       const struct external_rates *rates, double read_bytes)
{
	double reads = read_bytes / (double)MAX(1, plan->read_bytes);

	return NS_PER_S * reads * EXTERNAL_READ_COST_BYTES /
	       (double)rates->both;
}

static void forecast_pass(struct external_forecast *forecast,
			  enum external_pass number,
			  const struct external_plan *plan,
			  const struct external_request *request,
			  const struct external_rates *rates,
			  const struct pass_bytes *bytes)
{
	struct pass_forecast *pass = &forecast->passes[number];
	double ns[EXTERNAL_LIMITS] = { 0 }, more_ns = 0;

	pass->name = external_pass_name(number);
	pass->read_bytes = (uint64_t)bytes->read;
	pass->written_bytes = (uint64_t)bytes->written;
	pass->sent_bytes =
		(uint64_t)passing_bytes(plan->rank_count, bytes->sent);
	if (rates->both == 0)
		return;
	/* Threads wait for small reads, too. */
	if (number != EXTERNAL_RUNS)
		more_ns = reads_ns(plan, rates, bytes->read);
	ns[EXTERNAL_DISK] =
		disk_ns(rates, bytes->read, bytes->written) + more_ns;
	ns[EXTERNAL_CPU] =
		cpu_ns(plan, request, MAX(bytes->read, bytes->written)) +
		more_ns;
	ns[EXTERNAL_LINK] =
		external_model_link_ns(rates, plan->rank_count, bytes->sent);
	external_model_set_pass(pass, ns);
	forecast->ns += pass->ns;
}

/* Nothing can be written in the first pass until a batch is full, and in the
 * last one nothing until a piece is read. */
static uint64_t fill_ns(const struct external_plan *plan,
			const struct external_request *request,
			const struct external_rates *rates)
{
	double bytes = (double)plan->batch.capacity * request->shape.size;

	/* A disk may read faster alone than it reads and writes together:
	 * nothing is lost then. */
	if (plan->spilled_records == 0 || rates->both <= rates->read)
		return 0;
	return (uint64_t)MIN(PASS_NS_MAX, bytes * NS_PER_S *
						  (1 / (double)rates->read -
						   1 / (double)rates->both));
}

void external_model_forecast(struct external_forecast *forecast,
			     const struct external_plan *plan,
			     const struct external_request *request,
			     const struct external_rates *rates)
{
	double size = request->shape.size;
	double whole = (double)request->record_count * size;
	double part = (double)request->ranks.part_records * size;
	double spilled = (double)plan->spilled_records * size;
	double merged = (double)plan->merged_records * size;
	struct pass_bytes runs = { .read = whole, .written = spilled };
	struct pass_bytes merges = { .read = merged, .written = merged };
	struct pass_bytes output = { .read = spilled, .written = whole };

	/* Keys that are read by themselves: a page or two for each. */
	if (plan->way == EXTERNAL_BY_KEYS) {
		runs.read = 2.0 * PAGE_BYTES * (double)request->record_count;
		output.read = whole;
	}
	/* It sends of what it has, and gets of its part. */
	if (plan->rank_count > 1) {
		output.written = part;
		output.sent = MAX(whole, part);
	}
	*forecast = (struct external_forecast){ 0 };
	forecast_pass(forecast, EXTERNAL_RUNS, plan, request, rates, &runs);
	forecast_pass(forecast, EXTERNAL_MERGES, plan, request, rates, &merges);
	forecast_pass(forecast, EXTERNAL_OUTPUT, plan, request, rates, &output);
	forecast->passes[EXTERNAL_RUNS].ns += fill_ns(plan, request, rates);
	forecast->ns += fill_ns(plan, request, rates);
}

const char *external_pass_name(enum external_pass pass)
{
	static const char *const names[] = { "runs", "merges", "output" };

	return names[pass];
}

const char *external_limit_name(enum external_limit limit)
{
	static const char *const names[] = { "disk", "cpu", "link" };

	return names[limit];
}
