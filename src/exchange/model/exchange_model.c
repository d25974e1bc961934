/*
 * exchange_model.c - predicts the time of an exchange by arithmetic
 */
#include "exchange/model/exchange_model.h"

#include <assert.h>

#include "base/base.h"
#include "base/clock.h"
#include "exchange/grid_bundle.h"
#include "exchange/udp/udp.h"
#include "exchange/udp/udp_wire.h"

/* The heads of IP and UDP, and the exchange's own (udp_wire.h). */
#define HEADER_BYTES (28 + UDP_DATA_HEADER_BYTES)
/* Preamble, header, checksum and gap. */
#define ETHERNET_BYTES 38
/* The largest double that becomes a number of bytes. */
#define MESSAGE_BYTES_MAX 1e18
/* What a thread and its CPU move, of datagrams of 9000 bytes: so a link that is
 * not twice as fast has the rank's own thread alone. */
#define THREAD_BITS_PER_S 12.5e9
/* The neighbour's word is sent before the last so many bytes of a round. */
#define WORD_AHEAD_BYTES (32 << 10)

/*
 * CPU time of a datagram at two MTUs; a line between and beyond them.  Measured
 * on virtual machines, segmented by the kernel: 0.37 and 0.78 us, 0.84 and 2.9;
 * a driver of a real interface adds 0.1 to 0.2.
 */
#define MTU_LOW 1500.0
#define MTU_HIGH 9000.0
#define SEND_LOW_NS 500.0
#define SEND_HIGH_NS 1000.0
#define RECEIVE_LOW_NS 1000.0
#define RECEIVE_HIGH_NS 3100.0

static double by_mtu(double mtu, double low_ns, double high_ns)
{
	double ns = low_ns +
		    (high_ns - low_ns) * (mtu - MTU_LOW) / (MTU_HIGH - MTU_LOW);

	return MAX(0, ns);
}

void exchange_model_ethernet(struct exchange_model *model,
			     double link_bits_per_s, unsigned mtu_bytes,
			     unsigned sending_cpus, unsigned receiving_cpus)
{
	*model = (struct exchange_model){
		.link_bytes_per_s = link_bits_per_s / 8,
		.payload_bytes = mtu_bytes - HEADER_BYTES,
		.overhead_bytes = HEADER_BYTES + ETHERNET_BYTES,
		.send_ns = by_mtu(mtu_bytes, SEND_LOW_NS, SEND_HIGH_NS) /
			   sending_cpus,
		.receive_ns =
			by_mtu(mtu_bytes, RECEIVE_LOW_NS, RECEIVE_HIGH_NS) /
			receiving_cpus,
		.message_ns = 2000,
		.status_ns = 2000 + 2000,
		.status_bytes = UDP_STATUS_FIXED_BYTES + 28 + ETHERNET_BYTES,
		.latency_ns = 10000,
		.word_ns = 8000,
		.gather_bytes_per_s = 2.5e9,
		.announce_bytes = 8,
		.announce_all_max = EXCHANGE_KNOWN_MAX,
		/* All of yours have arrived: for half of them DATA tells it. */
		.status_count = 0.5,
		.threads = 1,
	};
}

unsigned exchange_model_threads(double link_bits_per_s, unsigned cpus)
{
	double threads = link_bits_per_s / THREAD_BITS_PER_S;

	return (unsigned)MAX(1, MIN(threads, MIN(cpus, UDP_THREADS_MAX)));
}

void exchange_model_set_overhead(struct exchange_model *model,
				 double overhead_bytes)
{
	double more_bytes = overhead_bytes - model->overhead_bytes;

	model->status_bytes = MAX(0, model->status_bytes + more_bytes);
	model->overhead_bytes = overhead_bytes;
}

/* Datagrams of a message: an empty one is one, too. */
static double datagrams(const struct exchange_model *model, double bytes)
{
	double count = (double)(uint64_t)(bytes / model->payload_bytes);

	if (count * model->payload_bytes < bytes)
		count++;
	return MAX(1, count);
}

static double link_ns(const struct exchange_model *model, double bytes)
{
	return NS_PER_S *
	       (bytes + model->overhead_bytes * datagrams(model, bytes)) /
	       model->link_bytes_per_s;
}

/* One message, which is sent and received at once. */
static double message_ns(const struct exchange_model *model, double bytes)
{
	double count = datagrams(model, bytes);
	double send_ns = model->message_ns + model->send_ns * count;
	double receive_ns = model->message_ns + model->receive_ns * count;
	double shared_ns = (send_ns + receive_ns) * model->ranks_per_cpu;
	double cpu_ns = model->threads > 1
				? (send_ns + receive_ns) / model->threads
				: MAX(send_ns, receive_ns);

	return MAX(MAX(link_ns(model, bytes), shared_ns), cpu_ns);
}

/* STATUS, which has so many bytes more than its fixed ones. */
static double status_ns(const struct exchange_model *model, double more_bytes)
{
	double bytes =
		model->status_bytes > 0 ? model->status_bytes + more_bytes : 0;

	return MAX(model->status_ns *
			   MAX(1.0 / model->threads, model->ranks_per_cpu),
		   NS_PER_S * bytes / model->link_bytes_per_s);
}

/* What is announced is a message, and of Ethernet a STATUS. */
static double announce_ns(const struct exchange_model *model, double bytes)
{
	double fixed_ns = NS_PER_S * (model->status_bytes + bytes) /
			  model->link_bytes_per_s;

	return MAX(message_ns(model, bytes), fixed_ns);
}

/* What passes before and after the messages, when each rank announces so many
 * bytes. */
static double control_ns(const struct exchange_model *model, unsigned ranks,
			 double announce_bytes)
{
	double other_ns = announce_ns(model, announce_bytes);

	other_ns +=
		MIN(1, model->status_count) * status_ns(model, announce_bytes);
	other_ns += MAX(0, model->status_count - 1) * status_ns(model, 0);
	return 2 * model->latency_ns + (ranks - 1) * other_ns;
}

/* A short message is over before the neighbour's word has come. */
static double word_ns(const struct exchange_model *model, double bytes)
{
	return status_ns(model, 0) +
	       model->word_ns * MAX(0, 1 - bytes / WORD_AHEAD_BYTES);
}

static double staggered_ns(const struct exchange_model *model, unsigned ranks,
			   double announce_bytes, double bytes,
			   double between_ns)
{
	if (ranks <= 1)
		return 0;
	return control_ns(model, ranks, announce_bytes) + model->latency_ns +
	       (ranks - 1) * (message_ns(model, bytes) + between_ns);
}

/* All ranks exchange at once, and each tells each other one its lengths. */
static double direct_ns(const struct exchange_model *model, unsigned ranks,
			double bytes, double between_ns)
{
	double announced = ranks <= model->announce_all_max ? ranks : 1;

	return staggered_ns(model, ranks, announced * model->announce_bytes,
			    bytes, between_ns);
}

double exchange_model_link_ns(const struct exchange_model *model,
			      unsigned ranks, double message_bytes)
{
	return ranks <= 1 ? 0 : link_ns(model, (ranks - 1) * message_bytes);
}

/* An exchange by a grid of rows x columns, without the neighbour's word, of
 * which the last row may be incomplete: every byte travels within a row, and
 * then within a column. */
static double grid_ns(const struct exchange_model *model, unsigned rows,
		      unsigned columns, double message_bytes)
{
	/* A rank of the own row is sent what is for its column; then a rank of
	 * the column is sent what has come for it from the row. */
	double part_bytes = message_bytes + GRID_LENGTH_BYTES;
	double row_bytes = part_bytes * rows;
	double column_bytes = part_bytes * columns;
	double order_ns = MAX(1, model->ranks_per_cpu) * NS_PER_S * row_bytes *
			  columns / model->gather_bytes_per_s;

	if (rows <= 1 && columns <= 1)
		return 0;
	return staggered_ns(model, columns, model->announce_bytes, row_bytes,
			    0) +
	       order_ns +
	       staggered_ns(model, rows, model->announce_bytes, column_bytes,
			    0);
}

void exchange_model_grid_sides(unsigned ranks, unsigned *rows,
			       unsigned *columns)
{
	uint64_t side = 1;

	while (side * side < ranks)
		side++;
	*columns = (unsigned)side;
	*rows = (unsigned)((ranks + side - 1) / side);
}

double exchange_model_ns(const struct exchange_model *model,
			 enum exchange_schedule schedule, unsigned ranks,
			 double message_bytes)
{
	struct exchange_model by_one = *model;
	unsigned rows, columns;

	if (schedule == EXCHANGE_AUTO)
		schedule = exchange_model_schedule(
			(uint64_t)MIN(message_bytes, MESSAGE_BYTES_MAX), ranks,
			model->threads);
	switch (schedule) {
	case EXCHANGE_GRID:
		exchange_model_grid_sides(ranks, &rows, &columns);
		return grid_ns(model, rows, columns, message_bytes);
	case EXCHANGE_ALL_AT_ONCE:
		return direct_ns(model, ranks, message_bytes, 0);
	default:
		/* A rank speaks with one other at a time, by one thread. */
		by_one.threads = 1;
		return direct_ns(&by_one, ranks, message_bytes,
				 word_ns(&by_one, message_bytes));
	}
}

enum exchange_schedule exchange_model_schedule(uint64_t message_bytes,
					       unsigned ranks, unsigned threads)
{
	uint64_t grid_bytes;
	unsigned rows, columns;

	assert(threads > 0);
	if (message_bytes > EXCHANGE_MODEL_ROUNDS_BYTES && threads == 1)
		return EXCHANGE_ROUNDS;
	exchange_model_grid_sides(ranks, &rows, &columns);
	grid_bytes = MIN(EXCHANGE_MODEL_GRID_BYTES,
			 columns * EXCHANGE_MODEL_GRID_SIDE_BYTES / threads);
	if (message_bytes >= grid_bytes || ranks < EXCHANGE_MODEL_GRID_RANKS)
		return EXCHANGE_ALL_AT_ONCE;
	return EXCHANGE_GRID;
}
