#include "sim/cache/spread.h"

#include <math.h>

/* Below 64 a value is its own bin; above, the six bits behind the first. */
static unsigned bin_of(uint64_t x)
{
	if (x < 64)
		return (unsigned)x;
	unsigned octave = 63 - (unsigned)__builtin_clzll(x);

	return (octave - 5) * 64 + (unsigned)(x >> (octave - 6) & 63);
}

static uint64_t middle_of(unsigned bin)
{
	if (bin < 64)
		return bin;
	unsigned shift = bin / 64 - 1;
	uint64_t low = (uint64_t)(64 + bin % 64) << shift;

	return low + ((UINT64_C(1) << shift) - 1) / 2;
}

void spread_add(struct spread *s, uint64_t x)
{
	double from_mean = (double)x - s->mean;

	s->min = s->n == 0 || x < s->min ? x : s->min;
	s->max = x > s->max ? x : s->max;
	s->n++;
	s->mean += from_mean / (double)s->n;
	s->m2 += from_mean * ((double)x - s->mean);
	s->bin[bin_of(x)]++;
}

uint64_t spread_quantile(const struct spread *s, double share)
{
	uint64_t want = (uint64_t)ceil(share * (double)s->n), sum = 0;

	if (want <= 1)
		return s->min;
	if (want >= s->n)
		return s->max;
	for (unsigned b = 0; b < ARRAY_LEN(s->bin); b++) {
		sum += s->bin[b];
		if (sum >= want) {
			uint64_t x = middle_of(b);
			return x < s->min ? s->min : x > s->max ? s->max : x;
		}
	}
	return s->max;
}

double spread_variation(const struct spread *s)
{
	return s->n > 1 && s->mean > 0 ? sqrt(s->m2 / (double)(s->n - 1)) / s->mean : 0;
}
