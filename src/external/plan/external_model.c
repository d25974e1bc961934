/*
 * external_model.c - the time of each pass, by its bytes and records
 */
#include "external/plan/external_model.h"

#include "base/clock.h"
#include "external/plan/external_plan.h"

/* A pass that would take longer than 30 years takes 30 years. */
#define PASS_NS_MAX 1e18
/* Time of one CPU for each byte that a pass brings to its sink, and for each
 * record, as measured on a virtual machine with two (results/NOTES.md). */
#define CPU_NS_PER_BYTE 0.35
#define CPU_NS_PER_RECORD 15
/* The same for a record that is counted (record_counts.h). */
#define CPU_NS_PER_COUNTED 1

/* Bytes a second of a disk with an arm, if nothing else is known. */
#define ARM_RATE 150000000

uint64_t external_rates_seek_bytes(const struct external_rates *rates)
{
	uint64_t rate = rates->read > 0 ? rates->read : ARM_RATE;

	return rates->requests > 0 ? rate / rates->requests : 0;
}

bool external_rates_apart(const struct external_rates *rates)
{
	return rates->both > 0 && rates->both >= rates->read &&
	       rates->both - rates->read >= rates->write;
}

static double disk_ns(const struct external_rates *rates, bool in_turns,
		      double read_bytes, double written_bytes)
{
	double together = MIN(read_bytes, written_bytes);

	if (in_turns)
		together = 0;
	/* Neither disk waits for the other. */
	else if (external_rates_apart(rates))
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

/* What a pass reads and writes, and what passes the link, the way on which more
 * does. */
struct pass_bytes {
	double read, written, sent;
};

/* All ranks' inputs or outputs, of which this rank moves so many bytes, lie on
 * one file system, and not on the disk. */
static double storage_ns(const struct external_ranks *ranks, double size,
			 const struct external_rates *rates, double *bytes)
{
	double whole = (double)ranks->part_records * size *
		       external_ranks_takers(ranks);
	double ns = *bytes > 0 ? NS_PER_S * MAX(*bytes, whole) /
					 (double)rates->storage
			       : 0;

	*bytes = 0;
	return ns;
}

/* What a small read takes, or a seek. */
static double request_ns(const struct external_rates *rates)
{
	double least =
		NS_PER_S * EXTERNAL_READ_COST_BYTES / (double)rates->both;

	return rates->requests > 0
		       ? MAX(least, NS_PER_S / (double)rates->requests)
		       : least;
}

/* How often a pass has to wait for another place: for each read of a run; and,
 * where the disk has an arm, for each key that is read by itself.  The rate of
 * both ways at once has the seeks between these in it. */
static double count_seeks(const struct external_plan *plan,
			  const struct external_request *request,
			  enum external_pass number,
			  const struct pass_bytes *bytes)
{
	if (number == EXTERNAL_RUNS && request->input_runs > 0)
		return (double)plan->index_blocks;
	if (number != EXTERNAL_RUNS)
		return bytes->read / (double)MAX(1, plan->read_bytes);
	if (plan->way == EXTERNAL_BY_KEYS && external_request_has_arm(request))
		return (double)request->record_count;
	return 0;
}

static void forecast_pass(struct external_forecast *forecast,
			  enum external_pass number,
			  const struct external_plan *plan,
			  const struct external_request *request,
			  const struct external_rates *rates,
			  const struct pass_bytes *bytes)
{
	struct pass_forecast *pass = &forecast->passes[number];
	double ns[EXTERNAL_LIMITS] = { 0 }, seeks_ns, shared_ns = 0;
	double read = bytes->read, written = bytes->written;
	bool in_turns = number == EXTERNAL_RUNS ? plan->batch_count == 1
						: plan->merge_areas == 1;
	double seeks = count_seeks(plan, request, number, bytes);

	pass->name = external_pass_names[number];
	pass->read_bytes = (uint64_t)bytes->read;
	pass->written_bytes = (uint64_t)bytes->written;
	pass->sent_bytes = (uint64_t)bytes->sent;
	if (rates->both == 0)
		return;
	seeks_ns = seeks * request_ns(rates);
	pass->seeks = (uint64_t)seeks;
	pass->seeks_ns = (uint64_t)MIN(PASS_NS_MAX, seeks_ns);
	if (rates->storage > 0 && number != EXTERNAL_MERGES)
		shared_ns =
			storage_ns(&request->ranks, request->shape.size, rates,
				   number == EXTERNAL_RUNS ? &read : &written);
	ns[EXTERNAL_DISK] = MAX(
		shared_ns, disk_ns(rates, in_turns, read, written) + seeks_ns);
	/* Threads wait for small reads, too; for an arm they wait anyway. */
	ns[EXTERNAL_CPU] =
		cpu_ns(plan, request, MAX(bytes->read, bytes->written));
	if (number != EXTERNAL_RUNS && !external_request_has_arm(request))
		ns[EXTERNAL_CPU] += seeks_ns;
	if (rates->link > 0)
		ns[EXTERNAL_LINK] =
			NS_PER_S * bytes->sent / (double)rates->link;
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
	 * nothing is lost then.  Turns have been counted. */
	if (rates->both <= rates->read || plan->batch_count == 1)
		return 0;
	return (uint64_t)MIN(PASS_NS_MAX, bytes * NS_PER_S *
						  (1 / (double)rates->read -
						   1 / (double)rates->both));
}

/* Of many ranks, each does what its roles say.  A keeper has runs of others on
 * its disk, but not what memory holds of its own; it sends each rank that sorts
 * its part. */
static void set_by_roles(const struct external_plan *plan,
			 const struct external_request *request,
			 struct pass_bytes *runs, struct pass_bytes *output)
{
	const struct external_ranks *ranks = &request->ranks;
	double size = request->shape.size;
	double own = (double)ranks->own_records * size;
	double got = (double)ranks->kept_records * size;
	double held = (double)(request->record_count - plan->spilled_records);
	double spilled = MAX(0, own - held * size) + got;
	double part = (double)ranks->part_records * size;

	if (ranks->takes_nothing)
		part = 0;
	*runs = (struct pass_bytes){ own, spilled, got };
	*output = (struct pass_bytes){ spilled, part, part };
	if (ranks->gives_runs) {
		runs->written = output->read = 0;
		runs->sent = own;
		return;
	}
	output->sent = MAX(
		(own + got) * ranks->taker_count / external_ranks_takers(ranks),
		part * (plan->keeper_count - 1) / plan->keeper_count);
}

void external_model_forecast(struct external_forecast *forecast,
			     const struct external_plan *plan,
			     const struct external_request *request,
			     const struct external_rates *rates)
{
	double size = request->shape.size;
	double whole = (double)request->record_count * size;
	double wanted = request->head_records > 0
				? (double)request->head_records * size
				: whole;
	double spilled = (double)plan->spilled_records * size;
	double merged = request->ranks.gives_runs
				? 0
				: (double)plan->merged_records * size;
	struct pass_bytes runs = { .read = whole, .written = spilled };
	struct pass_bytes merges = { .read = merged, .written = merged };
	struct pass_bytes output = {
		.read = MIN(spilled, wanted),
		.written = wanted,
	};

	/* Keys that are read by themselves: a page or two for each. */
	if (plan->way == EXTERNAL_BY_KEYS) {
		runs.read = 2.0 * PAGE_BYTES * (double)request->record_count;
		output.read = wanted;
	}
	if (request->input_runs > 0) {
		runs.read = (double)PAGE_BYTES * (double)plan->index_blocks;
		output.read = whole;
	}
	if (plan->rank_count > 1)
		set_by_roles(plan, request, &runs, &output);
	*forecast = (struct external_forecast){ 0 };
	forecast_pass(forecast, EXTERNAL_RUNS, plan, request, rates, &runs);
	forecast_pass(forecast, EXTERNAL_MERGES, plan, request, rates, &merges);
	forecast_pass(forecast, EXTERNAL_OUTPUT, plan, request, rates, &output);
	if (runs.read == 0 || runs.written == 0 || rates->storage > 0)
		return;
	forecast->passes[EXTERNAL_RUNS].ns += fill_ns(plan, request, rates);
	forecast->ns += fill_ns(plan, request, rates);
}

const char *const external_pass_names[EXTERNAL_PASSES] = { "runs", "merges",
							   "output" };

const char *const external_limit_names[] = { "disk", "cpu", "link" };
