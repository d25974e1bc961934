/*
 * memory_model.c - predicts the passes of a sort in memory by arithmetic
 */
#include "cluster/memory/memory_model.h"

#include "base/base.h"
#include "base/clock.h"
#include "sort/plan.h"

/* CPU time of a record: to find its bucket, and to bring a bucket into order.
 */
#define BUCKET_NS 8
#define ORDER_NS 3.4
/* Time of a process beside its start: it opens files, takes memory and threads,
 * and gives them back. */
#define PROCESS_NS 1.1e6
/* CPU time of a page of the page cache that is written anew. */
#define PAGE_NS 430
/* lz4 compresses so many bytes a second by one CPU: ascii records on a Zen 3.
 */
#define ENCODE_BYTES_PER_S 600000000
/* A message says of each bucket in the receiver's share how many records it
 * has. */
#define HEAD_BYTES_PER_BUCKET 4
/* The largest double that becomes a number of bytes. */
#define BYTES_MAX 1e18

static double message_bytes(const struct memory_request *request)
{
	double ranks = request->rank_count;
	double buckets = plan_buckets(request->whole_records) / ranks;
	double records = (double)request->whole_records / ranks / ranks;

	return records * request->record_size +
	       HEAD_BYTES_PER_BUCKET * MAX(1, buckets);
}

static void predict_codec(struct memory_forecast *forecast,
			  const struct memory_request *request)
{
	const struct codec_sample sample = {
		.plain_bytes = ENCODE_BYTES_PER_S,
		.cpu_ns = NS_PER_S,
	};
	double bytes = forecast->message_bytes;
	double none_ns = forecast->schedules_ns[EXCHANGE_AUTO];
	double stored_ns = exchange_model_ns(
		request->exchange, EXCHANGE_AUTO, request->rank_count,
		bytes * (double)request->compressed_percent / 100);

	if (request->codec != CODEC_AUTO && request->codec != CODEC_LZ4)
		return;
	forecast->compressed_ns =
		codec_sending_ns(&sample, request->thread_count,
				 bytes * (request->rank_count - 1), stored_ns);
	forecast->compresses = request->codec == CODEC_LZ4 ||
			       codec_gains(none_ns, forecast->compressed_ns);
}

static void predict_exchange(struct memory_forecast *forecast,
			     const struct memory_request *request)
{
	const struct exchange_model *model = request->exchange;
	unsigned rank_count = request->rank_count;
	double bytes = forecast->message_bytes;

	forecast->has_exchange = true;
	forecast->link_ns = exchange_model_link_ns(model, rank_count, bytes);
	for (unsigned s = 0; s < ARRAY_LEN(forecast->schedules_ns); s++)
		forecast->schedules_ns[s] =
			exchange_model_ns(model, s, rank_count, bytes);
	forecast->chosen = exchange_model_schedule(
		(uint64_t)MIN(bytes, BYTES_MAX), rank_count, model->threads);
	exchange_model_grid_sides(rank_count, &forecast->rows,
				  &forecast->columns);
	predict_codec(forecast, request);
}

/* A process starts.  In a cluster the client also sends to each rank and hears
 * of it, and the ranks greet each other: one way, and back. */
static double launch_ns(const struct memory_request *request)
{
	double process_ns = (double)request->start_ns + PROCESS_NS;
	double ranks = request->rank_count;

	if (request->rank_count == 1)
		return process_ns;
	return process_ns + 4 * request->exchange->latency_ns +
	       (3 * ranks - 1) * request->exchange->status_ns;
}

static void set_pass(struct memory_forecast *forecast, enum memory_pass number,
		     double disk_ns, double cpu_ns, double link_ns)
{
	static const char *const names[] = { "launch", "bucket", "exchange",
					     "order" };
	const double ns[EXTERNAL_LIMITS] = {
		[EXTERNAL_DISK] = disk_ns,
		[EXTERNAL_CPU] = cpu_ns,
		[EXTERNAL_LINK] = link_ns,
	};
	struct pass_forecast *pass = &forecast->passes[number];

	external_model_set_pass(pass, ns);
	pass->name = names[number];
	forecast->ns += pass->ns;
}

static double bytes_ns(double bytes, uint64_t rate)
{
	return NS_PER_S * bytes / (double)rate;
}

/* The link is the limit if the bytes alone take half of the time or more, and
 * else the CPUs, which send and take messages and STATUS. */
static void predict_sending(struct memory_forecast *forecast,
			    const struct memory_request *request)
{
	bool compresses = forecast->compresses;
	double ns = compresses ? forecast->compressed_ns
			       : forecast->schedules_ns[EXCHANGE_AUTO];
	double left =
		compresses ? (double)request->compressed_percent / 100 : 1;
	double link_ns = forecast->link_ns * left;
	bool is_by_link = 2 * link_ns >= ns;

	set_pass(forecast, MEMORY_EXCHANGE, 0, is_by_link ? 0 : ns,
		 is_by_link ? ns : link_ns);
	forecast->passes[MEMORY_EXCHANGE].sent_bytes = (uint64_t)MIN(
		forecast->message_bytes * left * (request->rank_count - 1),
		BYTES_MAX);
}

static void predict_passes(struct memory_forecast *forecast,
			   const struct memory_request *request)
{
	double threads = request->thread_count;
	double records = (double)request->whole_records / request->rank_count;
	double bytes = records * request->record_size;
	double read_ns = 0, write_ns = 0;
	double bucket_ns = bytes_ns(bytes, request->memory_read) +
			   records * BUCKET_NS / threads;
	double order_ns = bytes_ns(bytes, request->memory_copy) +
			  records * ORDER_NS / threads;

	if (request->disk_read > 0) {
		read_ns = bytes_ns(bytes, request->disk_read);
		write_ns = bytes_ns(bytes, request->disk_write);
	} else {
		order_ns += bytes / PAGE_BYTES * PAGE_NS / threads;
	}
	set_pass(forecast, MEMORY_LAUNCH, 0, launch_ns(request), 0);
	set_pass(forecast, MEMORY_BUCKET, read_ns, bucket_ns, 0);
	predict_sending(forecast, request);
	set_pass(forecast, MEMORY_ORDER, write_ns, order_ns, 0);
	bytes = MIN(bytes, BYTES_MAX);
	forecast->passes[MEMORY_BUCKET].read_bytes = (uint64_t)bytes;
	forecast->passes[MEMORY_ORDER].written_bytes = (uint64_t)bytes;
}

void memory_model_forecast(struct memory_forecast *forecast,
			   const struct memory_request *request)
{
	*forecast = (struct memory_forecast){ 0 };
	forecast->message_bytes = message_bytes(request);
	if (request->exchange)
		predict_exchange(forecast, request);
	if (request->memory_read > 0 && request->memory_copy > 0 &&
	    (request->exchange || request->rank_count == 1))
		predict_passes(forecast, request);
}
