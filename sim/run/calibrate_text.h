/*
 * calibrate_text.h - inside sim/run: numbers and words as a profile holds them.
 */
#ifndef SIM_RUN_CALIBRATE_TEXT_H
#define SIM_RUN_CALIBRATE_TEXT_H

#include "base/arena.h"
#include "base/units.h"

/* "56.3829GB/s", "2.7us", "72.4%": six digits with a unit that units_parse takes. */
const char *calibrate_number_text(struct arena *a, double value, enum unit_dim dim);
/* UTF-8 without control characters, others replaced by '?'. */
const char *calibrate_plain_text(struct arena *a, const char *text);

#endif
