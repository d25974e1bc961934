/*
 * bench_model.c - how far the model of an exchange is from the simulated one,
 * and which constants bring it closest
 *
 * usage: bench_model [STATUS_COUNT]
 *
 * Prints a line for each exchange: simulated, by the model as it is, and by the
 * model with constants that are fitted; and then these.  A simulated rank has
 * one CPU, so the model's rank has one, too (ranks_per_cpu is 1).  The count of
 * STATUS is not fitted: the protocol tells it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/log.h"
#include "exchange/model/exchange_model.h"
#include "simulate/simulation.h"

#define GBIT 1e9
#define STEPS 400

static const unsigned ranks[] = { 4, 16, 64, 120 };
static const uint64_t sizes[] = { 250, 4000, 24000, 390000 };
static const double links[] = { 10 * GBIT, 100 * GBIT };
static const enum exchange_schedule schedules[] = {
	EXCHANGE_ROUNDS,
	EXCHANGE_ALL_AT_ONCE,
	EXCHANGE_GRID,
};

struct point {
	unsigned rank_count;
	uint64_t message_bytes;
	double link_bits_per_s, simulated_ns;
	enum exchange_schedule schedule;
};

static struct point points[ARRAY_LEN(ranks) * ARRAY_LEN(sizes) *
			   ARRAY_LEN(links) * ARRAY_LEN(schedules)];
static unsigned point_count;

/* The options are those that blinkprobe simulate has by itself, and --join. */
static void simulate(struct point *point)
{
	struct simulation_options options = simulation_usual();
	struct simulation_figures figures = { 0 };
	struct failure failure = { .status = EXIT_DONE };

	options.says_hello = true; /* as before each real one */
	options.node_count = point->rank_count;
	options.message_bytes = point->message_bytes;
	options.schedule = point->schedule;
	options.network.link_bits_per_s = (uint64_t)point->link_bits_per_s;
	if (simulation_run(&options, &figures, &failure) < 0)
		exit(log_failure(&failure));
	point->simulated_ns = (double)figures.max_ns;
}

static double model_ns(const struct exchange_model *costs,
		       const struct point *point)
{
	struct exchange_model model = *costs;

	model.link_bytes_per_s = point->link_bits_per_s / 8;
	return exchange_model_ns(&model, point->schedule, point->rank_count,
				 (double)point->message_bytes);
}

/* How far the model is off: a mean of ratios, each the larger by the smaller.
 */
static double error_of(const struct exchange_model *costs)
{
	double sum = 0;

	for (unsigned i = 0; i < point_count; i++) {
		double ratio =
			model_ns(costs, &points[i]) / points[i].simulated_ns;

		sum += MAX(ratio, 1 / ratio);
	}
	return sum / point_count;
}

/* Change one constant at a time, by less and less. */
static void fit(struct exchange_model *costs)
{
	double *const constants[] = { &costs->message_ns, &costs->status_ns,
				      &costs->word_ns,	  &costs->latency_ns,
				      &costs->send_ns,	  &costs->receive_ns };
	double best = error_of(costs);

	for (unsigned step = 0; step < STEPS; step++) {
		double *constant = constants[step % ARRAY_LEN(constants)];
		double factor = 1 + 0.5 * (STEPS - step) / STEPS,
		       was = *constant;

		*constant = was * factor;
		if (error_of(costs) >= best)
			*constant = was / factor;
		if (error_of(costs) >= best)
			*constant = was;
		best = error_of(costs);
	}
}

static void print(const struct exchange_model *now,
		  const struct exchange_model *fitted)
{
	printf("ranks  bytes Gbit/s schedule     simulated us  model  ratio"
	       "  fitted\n");
	for (unsigned i = 0; i < point_count; i++) {
		const struct point *point = &points[i];
		double ns = model_ns(now, point);

		printf("%5u %6" PRIu64
		       " %6.0f %-12s %12.1f %8.1f %5.2f %7.2f\n",
		       point->rank_count, point->message_bytes,
		       point->link_bits_per_s / GBIT,
		       exchange_schedule_names[point->schedule],
		       point->simulated_ns / 1e3, ns / 1e3,
		       ns / point->simulated_ns,
		       model_ns(fitted, point) / point->simulated_ns);
	}
	printf("mean error: a factor of %.3f; fitted %.3f\n", error_of(now),
	       error_of(fitted));
	printf("fitted: send %.0f, receive %.0f, message %.0f, status %.0f, "
	       "latency %.0f, word %.0f ns; status_count %.2f\n",
	       fitted->send_ns, fitted->receive_ns, fitted->message_ns,
	       fitted->status_ns, fitted->latency_ns, fitted->word_ns,
	       fitted->status_count);
}

int main(int argc, char **argv)
{
	struct exchange_model now, fitted;

	for (unsigned r = 0; r < ARRAY_LEN(ranks); r++)
		for (unsigned b = 0; b < ARRAY_LEN(sizes); b++)
			for (unsigned l = 0; l < ARRAY_LEN(links); l++)
				for (unsigned s = 0; s < ARRAY_LEN(schedules);
				     s++) {
					struct point *point =
						&points[point_count++];

					*point = (struct point){
						.rank_count = ranks[r],
						.message_bytes = sizes[b],
						.link_bits_per_s = links[l],
						.schedule = schedules[s],
					};
					simulate(point);
				}
	exchange_model_ethernet(&now, links[0], 1500, 1, 1);
	now.ranks_per_cpu = 1;
	if (argc > 1)
		now.status_count = strtod(argv[1], NULL);
	fitted = now;
	fit(&fitted);
	print(&now, &fitted);
	return 0;
}
