#include "external/external_model.h"

#include "external/external_plan.h"

#define NS_PER_S 1e9
/* Of one CPU, measured on a virtual machine with two (results/NOTES.md): each
 * byte that a pass brings to its sink, and each record. */
#define CPU_NS_PER_BYTE 0.35
#define CPU_NS_PER_RECORD 15
/* Of a record that is counted (record_counts.h). */
#define CPU_NS_PER_COUNTED 1

static double disk_ns(const struct external_rates *rates, double read_bytes,
		      double written_bytes)
{
	double together = MIN(read_bytes, written_bytes);

	if (rates->both == 0)
		return 0;
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

static void forecast_pass(struct external_forecast *forecast,
			  enum external_pass pass,
			  const struct external_plan *plan,
			  const struct external_request *request,
			  const struct external_rates *rates, double read_bytes,
			  double written_bytes)
{
	double disk = disk_ns(rates, read_bytes, written_bytes);
	double cpu = rates->both == 0 ? 0
				      : cpu_ns(plan, request,
					       MAX(read_bytes, written_bytes));

	forecast->passes[pass].read_bytes = (uint64_t)read_bytes;
	forecast->passes[pass].written_bytes = (uint64_t)written_bytes;
	forecast->passes[pass].ns = (uint64_t)MAX(disk, cpu);
	forecast->passes[pass].limit =
		disk >= cpu ? EXTERNAL_DISK : EXTERNAL_CPU;
	forecast->ns += forecast->passes[pass].ns;
}

/* In the first pass nothing can be written until a batch is full, and in the
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
	return (uint64_t)(bytes * NS_PER_S *
			  (1 / (double)rates->read - 1 / (double)rates->both));
}

/* Reads that are not large take longer than their bytes. */
static void add_reads(struct external_forecast *forecast,
		      enum external_pass pass, const struct external_plan *plan,
		      const struct external_rates *rates)
{
	double reads = (double)forecast->passes[pass].read_bytes /
		       (double)MAX(1, plan->read_bytes);
	uint64_t ns;

	if (rates->both == 0)
		return;
	ns = (uint64_t)(NS_PER_S * reads * EXTERNAL_READ_COST_BYTES /
			(double)rates->both);
	forecast->passes[pass].ns += ns;
	forecast->ns += ns;
}

void external_model_forecast(struct external_forecast *forecast,
			     const struct external_plan *plan,
			     const struct external_request *request,
			     const struct external_rates *rates)
{
	double size = request->shape.size;
	double bytes = (double)request->record_count * size;
	double spilled = (double)plan->spilled_records * size;
	double first = bytes, last = spilled; /* what these passes read */

	/* Keys that are read by themselves: a page or two for each. */
	if (plan->way == EXTERNAL_BY_KEYS) {
		first = 2.0 * PAGE_BYTES * (double)request->record_count;
		last = bytes;
	}
	*forecast = (struct external_forecast){ 0 };
	forecast_pass(forecast, EXTERNAL_RUNS, plan, request, rates, first,
		      spilled);
	forecast_pass(forecast, EXTERNAL_MERGES, plan, request, rates,
		      (double)plan->merged_records * size,
		      (double)plan->merged_records * size);
	forecast_pass(forecast, EXTERNAL_OUTPUT, plan, request, rates, last,
		      bytes);
	add_reads(forecast, EXTERNAL_MERGES, plan, rates);
	add_reads(forecast, EXTERNAL_OUTPUT, plan, rates);
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
