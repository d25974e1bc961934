/*
 * noise_report.h - what blinkprobe noise prints, as members of a JSON object
 */
#ifndef NOISE_REPORT_H
#define NOISE_REPORT_H

#include "probe/noise_probe.h"

/* Each member with a comma before it. */
void noise_report_print(const struct noise_probe *probe,
			const struct noise_figures *figures);

#endif /* NOISE_REPORT_H */
