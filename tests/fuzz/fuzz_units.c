/*
 * Any text, as every dimension: parsed to a finite number that is written and parsed again, or refused with a
 * message. The first byte picks the dimension.
 */
#include <math.h>
#include <string.h>

#include "base/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Written for people and read again, it is the same number to the digits shown. */
static void check_format(double value, enum unit_dim dim)
{
	char buf[64];
	double again;
	struct err err;

	units_format(buf, sizeof(buf), value, dim);
	if (dim == UNIT_COUNT && fabs(value) >= 1e15)
		return; /* written with an exponent */
	if (units_parse(buf, dim, &again, &err)) {
		/* Three digits can round the largest numbers up, the smallest ones to nothing. */
		if (fabs(value) > 1e305 || fabs(value) < 1e-305)
			return;
		BUG("%.17g is written '%s', which is refused: %s", value, buf, err.msg);
	}
	if (!(fabs(again - value) <= 0.0051 * fabs(value)) && fabs(value) > 1e-300)
		BUG("%.17g is written '%s', which is %.17g", value, buf, again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 4096)
		return 0;
	enum unit_dim dim = (enum unit_dim)(data[0] % UNIT_DIM_N);
	char *text = malloc(size); /* its own block, so that reading behind it is found */
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';

	double value = NAN;
	struct err err = {0};
	if (units_parse(text, dim, &value, &err)) {
		if (!err.msg[0] || err.code != ERR_INPUT)
			BUG("'%s' is refused without a message", text);
	} else if (!isfinite(value)) {
		BUG("'%s' is read as %g", text, value);
	} else {
		check_format(value, dim);
	}
	free(text);
	return 0;
}
