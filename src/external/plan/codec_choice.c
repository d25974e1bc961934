/*
 * codec_choice.c - compares the passes with and without compression
 */
#include "external/plan/codec_choice.h"

#include <time.h>

#include "base/base.h"
#include "base/clock.h"

/* Shorter, the caches of a disk are measured. */
#define PACE_NS_MIN 500000000
/* Spread over the first run, since its keys are in order. */
#define SAMPLE_BLOCKS 8
/* lz4 decompresses at more than four times the rate at which it compresses
 * (ascii records on a Zen 3: 600 MB/s and 3.1 GB/s). */
#define DECODE_PART 4
/* A gain of less than this part of the time is not sure. */
#define LEAST_GAIN 0.05

/* What a byte takes, by the pace and the sample, in ns. */
struct costs {
	double disk;   /* that the disks move */
	double sort;   /* of a record, in a pass; of all CPUs together */
	double encode; /* of a record */
	double ratio;  /* stored bytes of one */
};

/* The second pass moves as many bytes as the first one, and takes about as much
 * of the CPUs; what memory keeps is sent, too, but never compressed. */
static void look_ahead(struct external_forecast *outlook,
		       const struct costs *costs, const struct codec_work *work)
{
	double whole = (double)work->whole_bytes;
	double spilled = (double)work->spilled_bytes;
	double merged = (double)work->merged_bytes;
	double stored = spilled * costs->ratio;
	double decode = costs->encode / DECODE_PART;
	unsigned others = MAX(1, work->rank_count) - 1;
	/* A rank's own part does not pass its link. */
	double part = (double)others / (others + 1);
	double link_ns = work->link > 0 ? 1e9 * part / (double)work->link : 0;
	const double ns[EXTERNAL_PASSES][EXTERNAL_LIMITS] = {
		[EXTERNAL_RUNS] = {
			[EXTERNAL_DISK] = costs->disk * (whole + stored),
			[EXTERNAL_CPU] = costs->sort * whole +
					 costs->encode * spilled,
		},
		[EXTERNAL_MERGES] = {
			[EXTERNAL_DISK] =
				costs->disk * 2 * merged * costs->ratio,
			[EXTERNAL_CPU] =
				(costs->sort + costs->encode + decode) * merged,
		},
		[EXTERNAL_OUTPUT] = {
			[EXTERNAL_DISK] = costs->disk * (stored + whole),
			[EXTERNAL_CPU] = costs->sort * whole + decode * spilled,
			[EXTERNAL_LINK] = link_ns * (stored + whole - spilled),
		},
	};

	*outlook = (struct external_forecast){ 0 };
	for (unsigned p = 0; p < EXTERNAL_PASSES; p++) {
		external_model_set_pass(&outlook->passes[p], ns[p]);
		outlook->passes[p].name = external_pass_names[p];
		outlook->ns += outlook->passes[p].ns;
	}
}

/* The disks have moved each byte twice in the time of the pace, or more, if
 * batches in order were read meanwhile: then they seem slower than they are. */
bool codec_pays(const struct codec_sample *sample,
		const struct codec_pace *pace, const struct codec_work *work,
		struct codec_verdict *verdict)
{
	double bytes = (double)pace->spilled_bytes;
	double cpus = pace->cpu_count;
	struct codec_work known = *work;
	struct costs costs;

	if (sample->plain_bytes == 0 || pace->cpu_count == 0 ||
	    pace->spilled_bytes == 0)
		return false;
	if (known.whole_bytes == 0)
		known.whole_bytes = known.spilled_bytes = pace->spilled_bytes;
	costs = (struct costs){
		.disk = (double)pace->elapsed_ns / (2 * bytes),
		.sort = (double)pace->cpu_ns / bytes / cpus,
		.ratio = 1,
	};
	verdict->sample = *sample;
	look_ahead(&verdict->none, &costs, &known);
	costs.encode =
		(double)sample->cpu_ns / (double)sample->plain_bytes / cpus;
	costs.ratio =
		(double)sample->stored_bytes / (double)sample->plain_bytes;
	look_ahead(&verdict->lz4, &costs, &known);
	return codec_gains((double)verdict->none.ns, (double)verdict->lz4.ns);
}

bool codec_gains(double none_ns, double codec_ns)
{
	return codec_ns < none_ns * (1 - LEAST_GAIN);
}

double codec_sending_ns(const struct codec_sample *sample, unsigned cpu_count,
			double plain_bytes, double stored_ns)
{
	double encode_ns = plain_bytes * (double)sample->cpu_ns /
			   (double)sample->plain_bytes;

	return encode_ns / cpu_count + MAX(stored_ns, encode_ns / DECODE_PART);
}

void codec_choice_init(struct codec_choice *choice, const struct codec *wanted,
		       unsigned cpu_count, const struct codec_work *work)
{
	*choice = (struct codec_choice){
		.codec = *wanted,
		.is_open = wanted->kind == CODEC_AUTO,
		.cpu_count = cpu_count,
		.work = *work,
	};
	if (choice->is_open)
		choice->codec = (struct codec){ .kind = CODEC_NONE };
}

static void decide(struct codec_choice *choice, uint64_t now_ns,
		   uint64_t process_cpu_ns)
{
	struct codec_pace pace = {
		.spilled_bytes = choice->spilled_bytes,
		.elapsed_ns = now_ns - choice->begin_ns,
		.cpu_ns = process_cpu_ns - choice->begin_cpu_ns,
		.cpu_count = choice->cpu_count,
	};
	struct codec_verdict verdict = { 0 };
	bool is_early = pace.elapsed_ns < PACE_NS_MIN, pays;

	/* What a slow link saves is sure, as if the disk took no time. */
	if (is_early)
		pace.elapsed_ns = 0;
	pays = codec_pays(&choice->sample, &pace, &choice->work, &verdict);
	if (is_early && !pays)
		return;
	choice->is_open = false;
	choice->verdict = verdict;
	if (pays)
		choice->codec = (struct codec){ .kind = CODEC_LZ4 };
}

void codec_choice_begin_run(struct codec_choice *choice, uint64_t run_bytes,
			    uint64_t now_ns, uint64_t process_cpu_ns)
{
	if (!choice->is_open)
		return;
	if (choice->run_count == 0) {
		choice->begin_ns = now_ns;
		choice->begin_cpu_ns = process_cpu_ns;
	} else {
		decide(choice, now_ns, process_cpu_ns);
	}
	choice->run_count++;
	choice->spilled_bytes += run_bytes;
}

uint64_t codec_choice_cpu_ns(void)
{
	return clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

bool codec_choice_wants(const struct codec_choice *choice, uint64_t chunk,
			uint64_t chunk_count)
{
	return choice->is_open && choice->run_count == 1 &&
	       chunk % DIV_ROUND_UP(chunk_count, SAMPLE_BLOCKS) == 0;
}

void codec_choice_test(struct codec_encoder *encoder, const uint8_t *block,
		       uint32_t block_bytes, struct codec_sample *sample)
{
	uint64_t begin_ns;
	size_t length;

	/* The first time touches the encoder's memory. */
	codec_encode(encoder, block, block_bytes);
	begin_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	length = codec_encode(encoder, block, block_bytes);
	*sample = (struct codec_sample){
		.plain_bytes = block_bytes,
		.stored_bytes = length ? length : block_bytes,
		.cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns,
	};
}

void codec_choice_add(struct codec_sample *sum,
		      const struct codec_sample *sample)
{
	sum->plain_bytes += sample->plain_bytes;
	sum->stored_bytes += sample->stored_bytes;
	sum->cpu_ns += sample->cpu_ns;
}
