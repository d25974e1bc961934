#include "external/codec_choice.h"

#include <time.h>

#include "base/base.h"

/* Shorter, the caches of a disk are measured. */
#define PACE_NS_MIN 500000000
/* Spread over the first run, since its keys are in order. */
#define SAMPLE_BLOCKS 8
/* lz4 decompresses at more than four times the rate at which it compresses
 * (ascii records on a Zen 3: 600 MB/s and 3.1 GB/s). */
#define DECODE_PART 4
/* Of the time: what is to be won by less is not sure. */
#define LEAST_GAIN 0.05

static uint64_t cpu_now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * A pass takes as long as its disks or its threads do, whichever is slower.
 * Half of the bytes that the disks move in it are those that become fewer.  The
 * pace is that of the first pass; the second moves as many bytes, and takes
 * about as much of the CPUs.
 */
bool codec_pays(const struct codec_sample *sample,
		const struct codec_pace *pace)
{
	double ratio, disk_ns, threads_ns, encode_ns, first_ns, second_ns;

	if (sample->plain_bytes == 0 || pace->cpu_count == 0)
		return false;
	ratio = (double)sample->stored_bytes / (double)sample->plain_bytes;
	disk_ns = (double)pace->elapsed_ns * (1 - (1 - ratio) / 2);
	threads_ns = (double)pace->cpu_ns / pace->cpu_count;
	encode_ns = (double)sample->cpu_ns / (double)sample->plain_bytes *
		    (double)pace->spilled_bytes / pace->cpu_count;
	first_ns = MAX(disk_ns, threads_ns + encode_ns);
	second_ns = MAX(disk_ns, threads_ns + encode_ns / DECODE_PART);
	return first_ns + second_ns <
	       2 * (double)pace->elapsed_ns * (1 - LEAST_GAIN);
}

void codec_choice_init(struct codec_choice *choice, const struct codec *wanted,
		       unsigned cpu_count)
{
	*choice = (struct codec_choice){
		.codec = *wanted,
		.is_open = wanted->kind == CODEC_AUTO,
		.cpu_count = cpu_count,
	};
	if (choice->is_open)
		choice->codec = (struct codec){ .kind = CODEC_NONE };
}

static void decide(struct codec_choice *choice, uint64_t now_ns,
		   uint64_t process_cpu_ns)
{
	const struct codec_pace pace = {
		.spilled_bytes = choice->spilled_bytes,
		.elapsed_ns = now_ns - choice->begin_ns,
		.cpu_ns = process_cpu_ns - choice->begin_cpu_ns,
		.cpu_count = choice->cpu_count,
	};

	if (pace.elapsed_ns < PACE_NS_MIN)
		return;
	choice->is_open = false;
	if (codec_pays(&choice->sample, &pace))
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
	return cpu_now_ns(CLOCK_PROCESS_CPUTIME_ID);
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
	begin_ns = cpu_now_ns(CLOCK_THREAD_CPUTIME_ID);
	length = codec_encode(encoder, block, block_bytes);
	*sample = (struct codec_sample){
		.plain_bytes = block_bytes,
		.stored_bytes = length ? length : block_bytes,
		.cpu_ns = cpu_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns,
	};
}

void codec_choice_add(struct codec_choice *choice,
		      const struct codec_sample *sample)
{
	choice->sample.plain_bytes += sample->plain_bytes;
	choice->sample.stored_bytes += sample->stored_bytes;
	choice->sample.cpu_ns += sample->cpu_ns;
}
