/*
 * units.h - "55GB/s", "64KiB", "1.2us", "989TFLOP/s" <-> numbers in SI base units.
 *
 * Every number a person writes carries its unit, and the table row that reads it says which dimension it
 * must have: a bare "55" for a bandwidth is an error, and so is "55GB" or "55GB/s junk".
 *
 *	dimension     base unit   written
 *	plain         1           2.385
 *	count         1           40            (a whole number; "2k" and "1e3" are refused, "4096" is meant)
 *	fraction      1           0.85 or 85%
 *	bytes         B           B kB MB GB TB PB, KiB MiB GiB TiB PiB
 *	time          s           ps ns us µs ms s min h
 *	bytes_rate    B/s         bytes + "/s"
 *	flop_rate     FLOP/s      FLOP/s kFLOP/s MFLOP/s GFLOP/s TFLOP/s PFLOP/s ("OP/s" the same)
 *	transfer_rate T/s         MT/s GT/s
 *	frequency     Hz          Hz kHz MHz GHz
 *	token_rate    tok/s       tok/s
 *	request_rate  req/s       "/s" or req/s
 *	power         W           W kW
 *
 * A space between number and unit is allowed. Case matters except where no other unit could be meant
 * ("kb" is refused: bits or bytes?).
 */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stdbool.h>

#include "base/err.h"

enum unit_dim {
	UNIT_PLAIN,
	UNIT_COUNT,
	UNIT_FRACTION,
	UNIT_BYTES,
	UNIT_TIME,
	UNIT_BYTES_RATE,
	UNIT_FLOP_RATE,
	UNIT_TRANSFER_RATE,
	UNIT_FREQUENCY,
	UNIT_TOKEN_RATE,
	UNIT_REQUEST_RATE,
	UNIT_POWER,
	UNIT_DIM_N,
};

/* "bandwidth (such as 55GB/s)": what a person should have written, for messages and help. */
const char *units_describe(enum unit_dim dim);
/* The base unit as it stands behind a number: "B/s", "s"; "" for pure numbers. */
const char *units_base(enum unit_dim dim);

/* Parses the whole of text. The message names the text, what is wrong with it and what was expected;
   not-a-number, infinity and overflow are refused. Negative numbers parse: ranges are the caller's. */
int units_parse(const char *text, enum unit_dim dim, double *out, struct err *err);

/* Writes value for people, three or four significant digits and a fitting prefix: "55.0 GB/s". Bytes use
   binary prefixes ("21.4 GiB"), rates decimal ones. Returns buf. */
char *units_format(char *buf, size_t size, double value, enum unit_dim dim);

#endif
