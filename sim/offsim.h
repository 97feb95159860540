/*
 * offsim.h - the library: load a scenario, override keys, run it, read the result.
 *
 *	struct offsim_scenario *s;
 *	struct offsim_result r;
 *	struct offsim_err err;
 *	if (offsim_load("scenarios/headline.yaml", &s, &err) || offsim_set(s, "flags.gpu-layers", "40", &err) ||
 *		offsim_run(s, &r, &err))
 *		fprintf(stderr, "%s\n", err.text);
 *	else
 *		printf("%g tok/s\n", r.decode_tok_s);
 *	offsim_free(s);
 *
 * Nothing here prints or exits, and nothing is shared between scenarios: several may run at once, each in a thread
 * of its own. Running out of memory is an error like any other.
 */
#ifndef OFFSIM_H
#define OFFSIM_H

#ifdef __cplusplus
extern "C" {
#endif

struct offsim_scenario; /* opaque */

struct offsim_err {
	char text[1400]; /* "FILE:LINE:COL: what is wrong" */
};

/* Rates in tokens per second, times in seconds; NAN where a workload has no such phase or nothing fits. */
struct offsim_result {
	int fits;
	double decode_tok_s, prefill_tok_s, e2e_tok_s;
	double ttft_s, tpot_s, total_s;
	double upper_bound_tok_s;
	char key[17]; /* of the scenario with the contents of machine and model */
};

/* Remembers the path; the file is read by offsim_run. Each returns 0, or -1 with err filled (err may be NULL). */
int offsim_load(const char *path, struct offsim_scenario **out, struct offsim_err *err);
/* Overrides a key as --set does; later ones win. */
int offsim_set(struct offsim_scenario *s, const char *key, const char *value, struct offsim_err *err);
int offsim_run(const struct offsim_scenario *s, struct offsim_result *out, struct offsim_err *err);
void offsim_free(struct offsim_scenario *s);

#ifdef __cplusplus
}
#endif
#endif
