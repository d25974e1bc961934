/*
 * memory_report.h - what blinkprobe memory says beside its samples
 */
#ifndef MEMORY_REPORT_H
#define MEMORY_REPORT_H

#include "probe/memory_probe.h"

/* On stdout, the keys of a JSON object behind others. */
void memory_report_print(const struct memory_probe *probe,
			 const struct memory_figures *figures);

#endif /* MEMORY_REPORT_H */
