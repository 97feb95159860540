/*
 * test_offsim.c - the library as a program outside would use it: through sim/offsim.h alone.
 */
#include <pthread.h>

#include "sim/offsim.h"
#include "tests/test.h"

#define SCENARIO "model: llama-3.2-1b\nquant: q8_0\nmachine: desktop-rtx4090-ddr5\nengine: ideal\n"                     \
		 "workload: {batch: 2, prompt: 61, generate: 17}\n"

static struct offsim_scenario *load(char *path)
{
	struct offsim_scenario *s;
	struct offsim_err err;

	test_file(path, SCENARIO, strlen(SCENARIO));
	if (offsim_load(path, &s, &err))
		ck_abort_msg("%s", err.text);
	return s;
}

START_TEST(runs_and_reads)
{
	char path[64];
	struct offsim_scenario *s = load(path);
	struct offsim_result r;
	struct offsim_err err;

	ck_assert_int_eq(offsim_set(s, "flags.gpu-layers", "5", &err), 0);
	ck_assert_msg(offsim_run(s, &r, &err) == 0, "%s", err.text);
	unlink(path);
	ck_assert(r.fits);
	assert_close(r.decode_tok_s * r.tpot_s, 2, 1e-12);
	assert_close(r.prefill_tok_s * r.ttft_s, 2 * 61, 1e-12);
	assert_close(r.total_s, r.ttft_s + 16 * r.tpot_s, 1e-12);
	ck_assert(r.decode_tok_s <= r.upper_bound_tok_s);
	ck_assert_uint_eq(strlen(r.key), 16);
	offsim_free(s);
}
END_TEST

START_TEST(later_sets_win)
{
	char path[64];
	struct offsim_scenario *s = load(path);
	struct offsim_result first, second;

	ck_assert_int_eq(offsim_set(s, "flags.gpu-layers", "0", NULL), 0);
	ck_assert_int_eq(offsim_run(s, &first, NULL), 0);
	ck_assert_int_eq(offsim_set(s, "flags.gpu-layers", "16", NULL), 0);
	ck_assert_int_eq(offsim_run(s, &second, NULL), 0);
	unlink(path);
	ck_assert(second.decode_tok_s > 2 * first.decode_tok_s);
	ck_assert_str_ne(first.key, second.key);
	offsim_free(s);
}
END_TEST

START_TEST(errors_have_a_place)
{
	char path[64], want[160];
	struct offsim_scenario *s = load(path);
	struct offsim_result r;
	struct offsim_err err;

	ck_assert_int_eq(offsim_set(s, "workload.batsch", "4", &err), 0);
	ck_assert_int_eq(offsim_run(s, &r, &err), -1);
	unlink(path);
	snprintf(want, sizeof(want),
		"--set workload.batsch: unknown key 'batsch' in workload; did you mean 'batch'?");
	ck_assert_str_eq(err.text, want);
	ck_assert_int_eq(offsim_run(s, &r, NULL), -1);
	offsim_free(s);
	ck_assert_int_eq(offsim_load("nowhere.yaml", &s, &err), 0);
	ck_assert_int_eq(offsim_run(s, &r, &err), -1);
	offsim_free(s);
	offsim_free(NULL);
}
END_TEST

static void *run_in_thread(void *arg)
{
	struct offsim_result *r = arg;
	char path[64];
	struct offsim_scenario *s = load(path);

	for (int i = 0; i < 3; i++)
		if (offsim_run(s, r, NULL))
			r->decode_tok_s = -1;
	unlink(path);
	offsim_free(s);
	return NULL;
}

START_TEST(threads_do_not_meet)
{
	pthread_t thread[4];
	struct offsim_result r[4];

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, run_in_thread, &r[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (int i = 1; i < 4; i++) {
		ck_assert(r[i].decode_tok_s == r[0].decode_tok_s);
		ck_assert_str_eq(r[i].key, r[0].key);
	}
}
END_TEST

TEST_MAIN("offsim", runs_and_reads, later_sets_win, errors_have_a_place, threads_do_not_meet)
