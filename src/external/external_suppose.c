/*
 * external_suppose.c - what a sort would do that is only supposed
 */
#include "external/external_request.h"
#include "external/external_sort.h"
#include "system/topology.h"

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
