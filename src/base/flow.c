/* flow.c - counts bytes that are read, written, sent and received, by time */
#include "base/flow.h"

#include <pthread.h>
#include <string.h>

#include "base/base.h"

/* The width of the first bins.  A small sort takes some 100 of them. */
#define WIDTH_NS 100000

bool flow_counts;

static struct flow_bins counted;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *const flow_names[FLOWS] = { "read", "write", "send", "receive" };

/* Bins that are twice as wide, and begin no later. */
static void widen(struct flow_bins *bins)
{
	uint64_t odd = bins->first & 1;

	for (unsigned f = 0; f < FLOWS; f++) {
		uint64_t *bytes = bins->bytes[f];

		for (unsigned i = 0; i < FLOW_BINS; i++) {
			uint64_t moved = bytes[i];

			bytes[i] = 0;
			bytes[(i + odd) / 2] += moved;
		}
	}
	bins->first /= 2;
	bins->width_ns *= 2;
}

void flow_bins_add(struct flow_bins *bins, enum flow flow, uint64_t begin_ns,
		   uint64_t end_ns, uint64_t bytes)
{
	uint64_t done = 0, length_ns, first, last;

	begin_ns = MAX(begin_ns, bins->first * bins->width_ns);
	end_ns = MAX(end_ns, begin_ns);
	while (end_ns / bins->width_ns - bins->first >= FLOW_BINS)
		widen(bins);
	length_ns = end_ns - begin_ns;
	first = begin_ns / bins->width_ns;
	last = end_ns / bins->width_ns;
	/* What is done at the end of each bin, rounded down, so that nothing is
	 * lost in the end. */
	for (uint64_t i = first; i < last; i++) {
		uint64_t until_ns = (i + 1) * bins->width_ns - begin_ns;
		uint64_t now = (uint64_t)((unsigned __int128)bytes * until_ns /
					  length_ns);

		bins->bytes[flow][i - bins->first] += now - done;
		done = now;
	}
	bins->bytes[flow][last - bins->first] += bytes - done;
}

void flow_begin(uint64_t now_ns)
{
	memset(&counted, 0, sizeof(counted));
	counted.width_ns = WIDTH_NS;
	counted.first = now_ns / WIDTH_NS;
	flow_counts = true;
}

const struct flow_bins *flow_counted(void)
{
	return &counted;
}

void flow_note(enum flow flow, uint64_t begin_ns, uint64_t bytes)
{
	uint64_t now_ns = clock_now_ns();

	pthread_mutex_lock(&lock);
	flow_bins_add(&counted, flow, begin_ns ? begin_ns : now_ns, now_ns,
		      bytes);
	pthread_mutex_unlock(&lock);
}
