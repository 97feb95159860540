#include "sim/trace/requests.h"

#include <gsl/gsl_randist.h>
#include <math.h>

#define LENGTH_MAX 1e9 /* tokens */

int requests_read_lengths(const char *path, struct arena *a, struct requests_law *law, struct err *err)
{
	const struct err_pos pos = {path, 0, 0};
	struct otr_reader *r;
	struct otr_request request;
	struct {
		VEC(uint64_t);
	} lengths = {0};
	int more = -1;

	if (otr_open(path, a, &r, err))
		return -1;
	if (otr_info(r)->kind != OTR_REQUESTS) {
		err_at(err, ERR_INPUT, &pos, "is a trace of steps, not of requests");
	} else {
		while ((more = otr_next_request(r, &request, err)) > 0) {
			VEC_PUSH(&lengths, a, request.input_tokens);
			VEC_PUSH(&lengths, a, request.output_tokens);
		}
		if (more == 0 && lengths.n == 0)
			more = err_at(err, ERR_INPUT, &pos, "has no requests");
	}
	otr_close(r);
	law->recorded = (const uint64_t(*)[2])lengths.at;
	law->n_recorded = lengths.n / 2;
	return more;
}

static uint64_t draw_length(const struct requests_length *l, gsl_rng *rng)
{
	double variance = log1p(l->cv * l->cv);
	double tokens = gsl_ran_lognormal(rng, log(l->mean) - variance / 2, sqrt(variance));

	return (uint64_t)llround(fmin(fmax(tokens, 1), LENGTH_MAX));
}

void requests_next(const struct requests_law *law, gsl_rng *rng, struct otr_request *r)
{
	double shape = 1 / (law->gap_cv * law->gap_cv);

	r->arrival_ns += (uint64_t)llround(gsl_ran_gamma(rng, shape, 1e9 / law->rate_s / shape));
	if (law->n_recorded) {
		const uint64_t *pair = law->recorded[gsl_rng_uniform_int(rng, law->n_recorded)];
		r->input_tokens = pair[0];
		r->output_tokens = pair[1];
	} else {
		r->input_tokens = draw_length(&law->input, rng);
		r->output_tokens = draw_length(&law->output, rng);
	}
}
