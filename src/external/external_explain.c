/*
 * external_explain.c - what a sort would do
 */
#include <errno.h>
#include <string.h>

#include "external/disk_probe.h"
#include "external/external_request.h"
#include "external/external_state.h"

/* Without the disk's rates, all is told but times. */
static void measure(struct external *external,
		    struct external_explanation *explanation)
{
	/* Scratch files are not in the page cache, even if the input is. */
	if (external->input.mode != INPUT_DIRECT)
		input_open_directly(&external->input);
	(void)disk_probe(&external->input, &external->scratch,
			 external->plan.output_chunk_bytes, &explanation->rates,
			 &explanation->unmeasured);
}

/* A directory with too little room is no failure: its room is told. */
static int explain(struct external *external,
		   struct external_explanation *explanation,
		   struct failure *failure)
{
	const struct external_config *config = external->config;
	int error = external_begin_input(external, failure);

	if (error == 0)
		error = scratch_open(&external->scratch, config->scratch_paths,
				     config->scratch_count, failure);
	if (error)
		return error;
	explanation->whole_records = external->input.record_count;
	explanation->request = external->request;
	explanation->request.lanes = NULL; /* which goes with the state */
	explanation->plan = external->plan;
	explanation->rates = config->rates;
	explanation->directory_count = config->scratch_count;
	for (unsigned d = 0; d < config->scratch_count; d++)
		explanation->room_bytes[d] =
			scratch_room(&external->scratch, d);
	if (config->rates.read == 0)
		measure(external, explanation);
	external_model_forecast(&explanation->forecast, &explanation->plan,
				&explanation->request, &explanation->rates);
	return 0;
}

int external_sort_explain(const struct external_config *config,
			  struct external_explanation *explanation,
			  struct failure *failure)
{
	struct arena own = { 0 };
	struct external *external = external_new(config, &own, failure);
	int error;

	memset(explanation, 0, sizeof(*explanation));
	if (!external)
		return -ENOMEM;
	error = explain(external, explanation, failure);
	external_close(external);
	arena_unmap(&own);
	return error;
}

int external_sort_suppose(const struct external_config *config,
			  uint64_t record_count,
			  struct external_explanation *explanation,
			  struct failure *failure)
{
	struct topology topology;
	int error;

	topology_read(&topology);
	*explanation = (struct external_explanation){
		.whole_records = record_count,
		.rates = config->rates,
	};
	external_request_make(&explanation->request, config, record_count,
			      topology.cpu_count);
	failure_set(&explanation->unmeasured, EXIT_USAGE, NULL, 0,
		    "no file is read for that");
	error = external_request_plan(&explanation->request, config,
				      &explanation->plan, failure);
	if (error == 0)
		external_model_forecast(
			&explanation->forecast, &explanation->plan,
			&explanation->request, &explanation->rates);
	return error;
}
