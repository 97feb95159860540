/*
 * Each format of recorded traces: what comes out of a small file, record by record, and what is said of a bad one.
 */
#include "base/datadir.h"
#include "sim/trace/trace_format.h"
#include "tests/test.h"

/* All that a sink is given, as text. */
struct heard {
	struct arena arena;
	struct trace_import_result r;
	struct err err;
	int rc;
	char *text;
	size_t len;
	FILE *to;
};

static int hear_begin(void *ctx, const struct otr_info *info, struct err *err)
{
	struct heard *h = ctx;

	(void)err;
	if (*info->model)
		fprintf(h->to, "model %s\n", info->model);
	if (info->block_tokens)
		fprintf(h->to, "blocks of %u\n", info->block_tokens);
	for (uint32_t i = 0; i < info->n_layer; i++)
		fprintf(h->to, "layer %u: %u of %u, %llu B, %llu B\n", i, info->layer[i].n_expert_used, info->layer[i].n_expert,
			(unsigned long long)info->layer[i].expert_bytes, (unsigned long long)info->layer[i].dense_bytes);
	if (info->workload.batch)
		fprintf(h->to, "prompt %llu, generate %llu\n", (unsigned long long)info->workload.prompt,
			(unsigned long long)info->workload.generate);
	return 0;
}

static int hear_request(void *ctx, const struct otr_request *r, struct err *err)
{
	struct heard *h = ctx;

	(void)err;
	fprintf(h->to, "%llu: %llu %llu", (unsigned long long)r->arrival_ns, (unsigned long long)r->input_tokens,
		(unsigned long long)r->output_tokens);
	if (r->session)
		fprintf(h->to, " s%llu", (unsigned long long)r->session);
	for (size_t i = 0; i < r->n_blocks; i++)
		fprintf(h->to, "%c%llu", i ? ',' : ' ', (unsigned long long)r->block[i]);
	fputc('\n', h->to);
	return 0;
}

/* "decode 1 x2 rows 2 at 5 | 0: 5 1 | 1: 6x3": phase, index, sequences, rows, context, then layers with their experts and rows
   of more than one. */
static int hear_step(void *ctx, const struct trace_step *s, struct err *err)
{
	struct heard *h = ctx;

	(void)err;
	fprintf(h->to, "%s %llu x%llu rows %llu at %llu", s->phase == TRACE_DECODE ? "decode" : "prefill",
		(unsigned long long)s->index, (unsigned long long)s->n_sequences, (unsigned long long)s->n_tokens,
		(unsigned long long)s->context);
	for (size_t i = 0; i < s->n_access; i++) {
		const struct trace_access *a = &s->access[i];
		ck_assert_uint_eq(a->kind, TRACE_EXPERT);
		ck_assert_uint_eq(a->group, MODEL_EXPERTS);
		if (i == 0 || a->layer != a[-1].layer)
			fprintf(h->to, " | %d:", a->layer);
		fprintf(h->to, a->tokens == 1 ? " %u" : " %ux%llu", a->expert, (unsigned long long)a->tokens);
	}
	fputc('\n', h->to);
	return 0;
}

static void hear(struct heard *h, const char *path, const struct trace_import_options *o)
{
	const struct trace_sink sink = {h, hear_begin, hear_step, hear_request};

	memset(h, 0, sizeof(*h));
	arena_init(&h->arena, NULL, NULL);
	h->to = open_memstream(&h->text, &h->len);
	h->rc = trace_import(path, o, &sink, &h->arena, &h->r, &h->err);
	fclose(h->to);
}

static void done(struct heard *h)
{
	free(h->text);
	arena_release(&h->arena);
}

/* A file of tests/data/trace, likewise. */
static void hear_data(struct heard *h, const char *name, const struct trace_import_options *o)
{
	struct arena a;
	struct err err = {0};
	const char *dir;

	arena_init(&a, NULL, NULL);
	assert_ok(datadir_find(&a, &dir, &err), err);
	hear(h, arena_printf(&a, "%s/tests/data/trace/%s", dir, name), o);
	arena_release(&a);
}

static void check_with(const char *name, const char *format, const struct trace_import_options *o, const char *want,
	const char *want_note)
{
	struct heard h;
	char note[1024];

	hear_data(&h, name, o);
	assert_ok(h.rc, h.err);
	ck_assert_str_eq(h.r.format->name, format);
	ck_assert_str_eq(h.text, want);
	snprintf(note, sizeof(note), "imported from the format '%s'%s", format, want_note);
	ck_assert_str_eq(h.r.info.note, note);
	ck_assert_str_eq(h.r.info.licence, "");
	ck_assert_int_eq((int)h.r.info.kind, (int)h.r.format->kind);
	ck_assert_int_eq(h.r.info.experts_only, h.r.format->kind == OTR_STEPS);
	done(&h);
}

static void check(const char *name, const char *format, const char *want, const char *want_note)
{
	const struct trace_import_options o = {0};

	check_with(name, format, &o, want, want_note);
}

START_TEST(azure)
{
	check("azure-2023.csv", "azure", "0: 4808 10\n52000000: 3180 8\n98189000: 110 27\n",
		"; arrivals count from 1700158623.979960000 s of the epoch; the last line does not end in a line break, as where a "
		"file was cut");
	/* 02:00 east of UTC by 2 h is midnight; the last one came first */
	check("azure-2024.csv", "azure", "509930000: 2162 5\n517335000: 2399 6\n0: 76 0\n",
		"; requests that come in the file after a later one, kept in its order: 1; requests with no output: 1; arrivals "
		"count from 1715299199.500000000 s of the epoch");
}
END_TEST

START_TEST(burstgpt)
{
	check("burstgpt.csv", "burstgpt",
		"model ChatGPT, GPT-4\n5000000000: 472 18\n45000000000: 1087 230\n118000000000: 417 276\n1106000000000: 0 0\n",
		"; requests with no prompt: 1; requests with no output: 1");
	check("burstgpt-sessions.csv", "burstgpt",
		"model GPT-4, ChatGPT\n250000000: 400 25 s1\n3000000001: 9 0\n7000000000: 500 31 s1\n",
		"; requests whose total is not the sum of prompt and output: 1; requests with no output: 1");
}
END_TEST

START_TEST(mooncake)
{
	check("mooncake.jsonl", "mooncake",
		"blocks of 512\n"
		"0: 6758 500 0,1,2,3,4,5,6,7,8,9,10,11,12,13\n"
		"0: 7322 490 0,14,15,16,17,18,19,20,21,22,23,24,25,26,27\n"
		"0: 7236 794 0,28,29,30,31,32,33,34,35,36,37,38,39,40,41\n"
		"0: 2290 316 0,42,43,44,45\n",
		"");
	check("aiperf-mooncake.jsonl", "mooncake",
		"blocks of 512\n10500000: 1000 52 s1 46,47\n2510500000: 1600 7 s1 46,47,48\n11000000: 4 3 s2\n",
		"; requests that come a delay after an answer, taken as after the request it answers: 1; requests whose blocks are not "
		"as many as their prompt fills: 1; prompts given as text, their tokens taken as a quarter of the characters: 1; "
		"requests that come in the file after a later one, kept in its order: 1");
}
END_TEST

START_TEST(qwen_bailian)
{
	check("qwen-bailian.jsonl", "qwen-bailian",
		"blocks of 16\n"
		"1003000000: 33 18 s56 7,8,9\n"
		"1100000000: 16 1 s57 7\n"
		"61114000000: 64 132 s56 7,8,10,11\n"
		"61114000000: 80 4 s56 7,8,10,11,12\n"
		"70000000000: 8 4 s4 13\n",
		"; turns whose parent is not in the file: 1");
}
END_TEST

/* A hash of the scope "local" is another one in every session. */
START_TEST(aiperf_sessions)
{
	const struct trace_import_options o = {0};
	unsigned long long a, b, c, again, other;
	struct heard h;

	hear_data(&h, "aiperf-sessions.jsonl", &o);
	assert_ok(h.rc, h.err);
	ck_assert_int_eq(sscanf(h.text,
				 "model claude-opus-4-5\nblocks of 64\n0: 130 9 s1 %llu,%llu,%llu\n1750000000: 64 2 s1 %llu\n"
				 "500000000: 64 1 s2 %llu\n",
				 &a, &b, &c, &again, &other),
		5);
	ck_assert_uint_eq(a, again);
	ck_assert_uint_eq(other, 1);
	ck_assert(a != b && b != c && a != other);
	done(&h);
}
END_TEST

START_TEST(sharegpt)
{
	check("sharegpt.csv", "sharegpt", "46926808: 2358 531\n347938951: 1034 769\n479613520: 1320 769\n", "");
	check("sharegpt.jsonl", "sharegpt", "46926808: 3 2\n347938952: 22 104\n", "");
	/* 16 characters ask, 25 answer, 7 thank, 3 answer; 20 answer nothing */
	check("sharegpt.json", "sharegpt", "0: 4 7 s1\n0: 13 1 s1\n0: 0 5 s3\n",
		"; tokens are taken as a quarter of the characters; no arrival times: all at 0; conversations that end with no "
		"answer, whose last turn is left out: 1; conversations with no turns: 1; requests with no prompt: 1");
}
END_TEST

START_TEST(vllm_requests)
{
	/* 1777144890.5122073, 1777144890.793941 and 1777144890.9252515, which no double holds to the ns */
	check("vllm-requests.jsonl", "vllm-requests", "0: 2361 532\n281733700: 1128 772\n413044200: 1354 782\n",
		"; arrivals count from 1777144890.512207300 s of the epoch");
}
END_TEST

START_TEST(vidur)
{
	check("vidur.csv", "vidur", "0: 3772 54\n0: 2015 156\n", "; no arrival times: all at 0");
}
END_TEST

START_TEST(route_trace)
{
	check("route.csv", "route-trace",
		"model /data/a model/tiny.gguf\n"
		"layer 0: 2 of 16, 0 B, 5003 B\n"
		"layer 1: 2 of 16, 3059712 B, 11953152 B\n"
		"layer 2: 2 of 16, 2654208 B, 11682816 B\n"
		"prefill 0 x1 rows 2 at 0 | 1: 5 3 5 15 | 2: 2 0\n"
		"decode 0 x1 rows 1 at 2 | 1: 15 4 | 2: 2 7\n"
		"decode 1 x1 rows 1 at 3 | 1: 3 4\n"
		"prefill 1 x1 rows 1 at 0 | 1: 9 8\n"
		"decode 2 x1 rows 1 at 1 | 2: 1 2\n",
		"");
}
END_TEST

#define ASSUMED(n) "; experts of a layer, taken from the highest number seen (--experts): " n
#define NO_BYTES "; the bytes of an expert are not known (--expert-bytes)"

START_TEST(moe_csv)
{
	const struct trace_import_options o = {.n_layer = 3, .n_expert = 64, .expert_bytes = 2654208};

	check("moe.csv", "moe-csv",
		"layer 0: 2 of 10, 0 B, 0 B\nlayer 1: 2 of 10, 0 B, 0 B\n"
		"prefill 0 x1 rows 2 at 0 | 0: 4 1 4 9 | 1: 6 0 6 1\n"
		"prefill 1 x1 rows 1 at 2 | 0: 2 3 | 1: 3 2\n"
		"decode 0 x1 rows 1 at 3 | 0: 4 2 | 1: 5 1\n"
		"decode 1 x1 rows 1 at 4 | 0: 9 2 | 1: 5 0\n"
		"decode 2 x1 rows 1 at 0 | 0: 1 2 | 1: 2 1\n",
		ASSUMED("10") NO_BYTES);
	check_with("moe.csv", "moe-csv", &o,
		"layer 0: 2 of 64, 2654208 B, 0 B\nlayer 1: 2 of 64, 2654208 B, 0 B\nlayer 2: 0 of 0, 0 B, 0 B\n"
		"prefill 0 x1 rows 2 at 0 | 0: 4 1 4 9 | 1: 6 0 6 1\n"
		"prefill 1 x1 rows 1 at 2 | 0: 2 3 | 1: 3 2\n"
		"decode 0 x1 rows 1 at 3 | 0: 4 2 | 1: 5 1\n"
		"decode 1 x1 rows 1 at 4 | 0: 9 2 | 1: 5 0\n"
		"decode 2 x1 rows 1 at 0 | 0: 1 2 | 1: 2 1\n",
		"");
}
END_TEST

START_TEST(moe_cache)
{
	const struct trace_import_options o = {.decode_rows = 2};
	const char *said = "; layers that several rows passed, where each expert is named once and taken as of one row: 1" ASSUMED(
		"10") NO_BYTES;

	check("moe-cache.txt", "llamacpp-moe-cache",
		"layer 0: 0 of 0, 0 B, 0 B\nlayer 1: 2 of 10, 0 B, 0 B\nlayer 2: 2 of 10, 0 B, 0 B\n"
		"prefill 0 x1 rows 2 at 0 | 1: 3 7 9 | 2: 4 8\n"
		"decode 0 x1 rows 1 at 2 | 1: 9 3 | 2: 8 4\n"
		"decode 1 x1 rows 1 at 3 | 1: 9 1 | 2: 8 0\n"
		"decode 2 x1 rows 1 at 0 | 1: 2 1\n",
		said);
	check_with("moe-cache.txt", "llamacpp-moe-cache", &o,
		"layer 0: 0 of 0, 0 B, 0 B\nlayer 1: 2 of 10, 0 B, 0 B\nlayer 2: 2 of 10, 0 B, 0 B\n"
		"decode 0 x2 rows 2 at 0 | 1: 3 7 9 | 2: 4 8\n"
		"decode 1 x1 rows 1 at 2 | 1: 9 3 | 2: 8 4\n"
		"decode 2 x1 rows 1 at 3 | 1: 9 1 | 2: 8 0\n"
		"decode 3 x1 rows 1 at 0 | 1: 2 1\n",
		said);
}
END_TEST

#define ROUTING_LAYERS                                                                                                       \
	"model Qwen/Qwen1.5-MoE-A2.7B-Chat\nlayer 0: 2 of 60, 0 B, 0 B\nlayer 1: 0 of 0, 0 B, 0 B\nlayer 2: 0 of 0, 0 B, 0 B\n"  \
	"layer 3: 0 of 0, 0 B, 0 B\nlayer 4: 0 of 0, 0 B, 0 B\nlayer 5: 2 of 60, 0 B, 0 B\n"

START_TEST(vllm_routing)
{
	const struct trace_import_options drop = {.drop_warmup = true};

	check("vllm-routing.jsonl", "vllm-routing",
		ROUTING_LAYERS "prefill 0 x1 rows 3 at 0 | 0: 3 12 3 12 3 12 | 5: 1 2 1 2 1 2\n"
		"decode 0 x1 rows 1 at 0 | 0: 3 12 | 5: 1 2\n"
		"prefill 1 x1 rows 2 at 0 | 0: 3 12 7 40 | 5: 59 2 8 9\n"
		"decode 1 x1 rows 1 at 0 | 0: 40 7 | 5: 9 8\n",
		"; passes and phases are guessed from the order of rows; rows of one constant routing at the beginning, probably "
		"warm-up (--drop-warmup leaves them out): 8" ASSUMED("60") NO_BYTES);
	/* The first row of the prompt has the routing of the warm-up, and stays. */
	check_with("vllm-routing.jsonl", "vllm-routing", &drop,
		ROUTING_LAYERS "prefill 0 x1 rows 2 at 0 | 0: 3 12 7 40 | 5: 59 2 8 9\n"
		"decode 0 x1 rows 1 at 0 | 0: 40 7 | 5: 9 8\n",
		"; passes and phases are guessed from the order of rows; rows of warm-up left out: 8" ASSUMED("60") NO_BYTES);
}
END_TEST

START_TEST(sglang)
{
	check("sglang-per-token.json", "sglang-experts",
		"layer 0: 2 of 8, 0 B, 0 B\nlayer 1: 2 of 8, 0 B, 0 B\n"
		"prefill 0 x2 rows 3 at 0 | 0: 4 1 4 2 0 1 | 1: 3 2 7 6 3 1\n"
		"decode 0 x2 rows 2 at 0 | 0: 5 1 2 5 | 1: 6 0 6 2\n",
		"; records of other ranks left out: 1; records with no tokens left out: 1" ASSUMED("8") NO_BYTES);
	/* physical expert 3 of layer 0 is a copy of logical 0, and so on */
	check("sglang-per-pass.json", "sglang-experts",
		"layer 0: 0 of 3, 0 B, 0 B\nlayer 1: 0 of 3, 0 B, 0 B\n"
		"prefill 0 x1 rows 6 at 0 | 0: 0x3 2 0x2 | 1: 1x6\n"
		"decode 0 x1 rows 1 at 0 | 0: 1 | 1: 1\n",
		"; passes with counts alone: experts taken by number, rows as all uses of a layer: 2" ASSUMED("3") NO_BYTES);
}
END_TEST

/* ---- what is wrong ---- */

/* Of a file with these bytes: where and why it is refused; nothing of it reaches a sink. */
static void check_bad(const char *format, const char *bytes, size_t len, int line, int col, const char *msg)
{
	struct trace_import_options o = {0};
	struct heard h;
	char path[32];

	if (format)
		ck_assert_ptr_nonnull(o.format = trace_format_find(format, NULL));
	test_file(path, bytes, len);
	hear(&h, path, &o);
	unlink(path);
	if (h.rc == 0)
		ck_abort_msg("taken: %s", h.text);
	ck_assert_str_eq(h.err.msg, msg);
	ck_assert_int_eq((int)h.err.code, ERR_INPUT);
	ck_assert_str_eq(h.err.file, path);
	ck_assert_int_eq(h.err.line, line);
	ck_assert_int_eq(h.err.col, col);
	ck_assert_str_eq(h.text, "");
	done(&h);
}

#define bad(format, text, line, col, msg) check_bad(format, text, sizeof(text) - 1, line, col, msg)
#define AZURE "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"

START_TEST(bad_csv)
{
	bad("azure", "TIMESTAMP,GeneratedTokens\n", 1, 1, "the header has no column 'ContextTokens'");
	bad("azure", "", 0, 1, "the header has no column 'TIMESTAMP'");
	bad("azure", AZURE "2023-11-16 18:17:04.0319600,3180", 3, 1, "2 fields where the header has 3");
	bad("azure", AZURE "2023-11-16 18:17:04.0319600,many,8\n", 3, 29, "ContextTokens 'many' is not a number");
	bad("azure", AZURE "2023-11-16 18:17:04.0319600,,8\n", 3, 29, "ContextTokens '' is not a number");
	bad("azure", AZURE "2023-11-16 18:17:04.0319600,-1,8\n", 3, 29, "ContextTokens '-1' is negative");
	bad("azure", AZURE "2023-11-16 18:17:04.0319600,1e30,8\n", 3, 29, "ContextTokens '1e30' is too large");
	bad("azure", AZURE "2023-11-16 18:17:04.0319600,2.385,8\n", 3, 29, "ContextTokens '2.385' is not a whole number");
	bad("azure", AZURE "2023-11-16 18:17:04.0319600,0x10,8\n", 3, 29, "ContextTokens '0x10' is not a number");
	bad("azure", AZURE "2023-11-16 18:17:04.0319600,\"80\n", 3, 29, "a quoted field does not end");
	bad("azure", AZURE "2023-11-16 18:17:04.0319600,8\r0,8\n", 3, 30, "a carriage return within a line");
	bad("azure", AZURE "2023-02-30 18:17:04.0319600,80,8\n", 3, 1,
		"'2023-02-30 18:17:04.0319600' is not a date such as 2023-11-16 18:17:03.9799600");
	bad("azure", AZURE "2023-02-03 18:17:04.0000000001,80,8\n", 3, 1,
		"'2023-02-03 18:17:04.0000000001' is not a date such as 2023-11-16 18:17:03.9799600");
	bad("azure", AZURE "2023-11-16 18:17:04,8\0,8\n", 3, 22, "a NUL byte: this is not a text file");
	bad("burstgpt", "Timestamp,Model,Request tokens,Response tokens,Total tokens\n-5,ChatGPT,1,2,3\n", 2, 1,
		"Timestamp '-5' is negative");
	bad("burstgpt", "Timestamp,Model,Request tokens,Response tokens,Total tokens\n1e12,ChatGPT,1,2,3\n", 2, 1,
		"Timestamp '1e12' is too large");
}
END_TEST

START_TEST(bad_jsonl)
{
	bad("mooncake", "{\"timestamp\": 1, \"output_length\": 5}\n", 1, 0, "has no 'input_length'");
	bad("mooncake", "\n{\"timestamp\": 1, \"input_length\": \"5\", \"output_length\": 5}\n", 2, 0,
		"'input_length' must be a whole number, not a string");
	bad("mooncake", "{\"timestamp\": -1, \"input_length\": 5, \"output_length\": 5}\n", 1, 0,
		"'timestamp' must not be negative, but is -1");
	bad("mooncake", "{\"timestamp\": 1e30, \"input_length\": 5, \"output_length\": 5}\n", 1, 0,
		"'timestamp' must not be so large, but is 1e+30");
	bad("mooncake", "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 5, \"hash_ids\": [1, -2]}\n", 1, 0,
		"'hash_ids' must hold whole numbers, and number 2 is none");
	bad("mooncake", "{\"timestamp\": 1, \"input_length\": 5, \"output_length\": 5}\n{\"timestamp\": 2, \"input_le", 2, 26,
		"premature end of input near '\"input_le'");
	bad("mooncake", "[1]\n", 1, 1, "must be an object: { … }");
	bad("mooncake", "{\"timestamp\": 1}\0\n", 1, 17, "a NUL byte: this is not a text file");
	bad("qwen-bailian", "{\"parent_chat_id\": -1, \"timestamp\": 1}\n", 1, 0, "has no 'chat_id'");
	bad("qwen-bailian", "{\"chat_id\": 4, \"timestamp\": 1}\n", 1, 0, "has no 'parent_chat_id'");
	bad("aiperf-sessions", "{\"block_size\": 0, \"requests\": []}\n", 1, 0,
		"'block_size' must be a whole number from 1 to 1048576, not 0");
	bad("aiperf-sessions", "{\"block_size\": 64, \"requests\": []}\n{\"block_size\": 32, \"requests\": []}\n", 2, 0,
		"blocks of 32 tokens behind a session with blocks of 64");
	bad("aiperf-sessions", "{\"block_size\": 64, \"requests\": []}\n", 0, 0, "holds no request");
	bad("sharegpt", "[{\"conversations\": [{\"from\": \"human\"}]}]", 0, 0,
		"conversation 1: turn 1 must have 'from' and 'value'");
	bad("sharegpt", "[{\"conversations\": ", 1, 19, "unexpected token near end of file");
}
END_TEST

#define ROUTE "# route_trace v1\n# model=a arch=b n_layer=2 n_expert=8 n_expert_used=2\n"
#define COLUMNS "turn,phase,step,layer,slot,expert\n"

START_TEST(bad_steps)
{
	bad("route-trace", "# route_trace v2\n", 1, 1, "'# route_trace v2' is not '# route_trace v1'");
	bad("route-trace", ROUTE "# layer=2 expert_bytes=1 dense_bytes=2\n", 3, 1, "layer 2 of 2");
	bad("route-trace", ROUTE "# layer=1 expert_bytes=-1 dense_bytes=2\n", 3, 24,
		"expert_bytes='-1' is not a whole number up to 9223372036854775807");
	bad("route-trace", ROUTE "# layer=1 expert_bytes=5 dense_bytes=2\n" COLUMNS "0,0,0,1,0,8\n", 5, 0,
		"expert 8 of layer 1, which has 8");
	bad("route-trace", ROUTE COLUMNS "0,1,5,0,0,1\n0,1,4,0,0,1\n", 5, 5, "a step that is over comes back");
	bad("route-trace", ROUTE COLUMNS "1,1,5,0,0,1\n0,1,4,0,0,1\n", 5, 1, "a turn that is over comes back");
	bad("route-trace", ROUTE COLUMNS "0,2,5,0,0,1\n", 4, 3, "phase '2' is too large");
	bad("route-trace", ROUTE COLUMNS "0,1,5,0,0\n", 4, 1, "5 fields where the header has 6");
	bad("route-trace", ROUTE COLUMNS, 0, 0, "holds no step");
	bad("moe-csv", "0,0,4,2\n0,1,5\n", 2, 0, "1 experts where the first row has 2");
	bad("moe-csv", "0,0,4,2\n0\n", 2, 2, "a comma and a layer should follow");
	bad("moe-csv", "0,0,4,x\n", 1, 7, "'x' is not a whole number");
	bad("moe-csv", "0,0,4,\n", 1, 7, "'' is not a whole number");
	bad("moe-csv", "0,0,4,99999999999999999999\n", 1, 7, "a number is too large");
	bad("moe-csv", "0,0,4,-2\n", 1, 0, "expert -2 is negative");
	bad("moe-csv", "0,5000,4,2\n", 1, 0, "layer 5000: they go from 0 to 4095");
	bad("moe-csv", "0,0,4,65536\n", 1, 0, "expert 65536: they go from 0 to 65535");
	bad("llamacpp-moe-cache", "0 0 1 5 6\n1 0 1 5\n", 2, 0, "1 experts for one row where others have 2");
	bad("llamacpp-moe-cache", "0 0 0 5 6\n", 1, 0,
		"pass, layer and rows must be whole numbers, and rows at least 1");
	bad("llamacpp-moe-cache", "0 0 1\n", 1, 0, "no experts");
	bad("vllm-routing", "{\"type\": \"rout\"}\n", 1, 0, "'type' must be 'meta' or 'route', not 'rout'");
	bad("vllm-routing", "{\"type\": \"route\", \"layer\": 0, \"token_idx\": 0, \"topk_ids\": []}\n", 1, 0,
		"'topk_ids' must be an array of 1 to 256 experts");
	bad("vllm-routing", "{\"type\": \"route\", \"layer\": 0, \"token_idx\": 0, \"topk_ids\": [1.5]}\n", 1, 0,
		"expert 1 of 'topk_ids' is no number of an expert");
	bad("sglang-experts", "{\"logical_count\": [[1]]}", 0, 0,
		"'records' must be an array (modes per_token and per_pass have it)");
	bad("sglang-experts", "{\"records\": [{\"topk_ids_of_layer\": [[[-2]]]}]}", 0, 0,
		"record 1: 'topk_ids_of_layer' must hold whole numbers, -1 or more");
	bad("sglang-experts", "{\"records\": [{\"rank\": \"x\"}]}", 0, 0, "record 1: 'rank' must be a whole number, not a string");
}
END_TEST

START_TEST(guessing)
{
	bad(NULL, "", 1, 1, "looks like no known format ('offsim trace import --help' lists them)");
	bad(NULL, "# text\n", 1, 1, "looks like no known format ('offsim trace import --help' lists them)");
	bad(NULL, "{\"total_input_tokens\": 1363, \"expert_popularity\": [[490, 662]]}", 1, 1,
		"counts how often each expert was used, not when: 'offsim trace gen --popularity' takes it");
	bad(NULL, "arrival_time_ns,num_prefill_tokens,num_decode_tokens\n", 1, 1,
		"looks like sharegpt and like vidur: say which with --format");
}
END_TEST

START_TEST(unknown_name)
{
	struct err err = {0};

	ck_assert_ptr_null(trace_format_find("moncake", &err));
	assert_err(err, ERR_USAGE, "unknown format 'moncake'; did you mean 'mooncake'?");
}
END_TEST

static void taken(const char *bytes, size_t len, const char *want)
{
	const struct trace_import_options o = {0};
	struct heard h;
	char path[32];

	test_file(path, bytes, len);
	hear(&h, path, &o);
	unlink(path);
	assert_ok(h.rc, h.err);
	ck_assert_str_eq(h.text, want);
	done(&h);
}

/* What editors and other systems do to a text file changes nothing. */
START_TEST(marks_and_line_ends)
{
	const char csv[] = "\xef\xbb\xbfTIMESTAMP,\"ContextTokens\",GeneratedTokens\r\n\r\n2023-11-16 18:17:03,4808,\"10\"\r\n";
	const char jsonl[] = "\xef\xbb\xbf{\"timestamp\": 3, \"input_length\": 5, \"output_length\": 2}\r\n\r\n";
	const char ids[] = "\xef\xbb\xbf-1,0,4,2\r\n0,0,5,1\r\n";

	taken(csv, sizeof(csv) - 1, "0: 4808 10\n");
	taken(jsonl, sizeof(jsonl) - 1, "3000000: 5 2\n");
	taken(ids, sizeof(ids) - 1,
		"layer 0: 2 of 6, 0 B, 0 B\nprompt 1, generate 2\nprefill 0 x1 rows 1 at 0 | 0: 4 2\ndecode 0 x1 rows 1 at 1 | 0: 5 1\n");
}
END_TEST

/* A prompt in micro-batches whose rows go round the layers is brought into their order. */
START_TEST(layers_in_order)
{
	const char text[] = "# route_trace v1\n# n_layer=2\n" COLUMNS "0,0,0,1,0,5\n0,0,0,0,0,3\n0,0,1,1,0,6\n0,0,1,0,0,4\n";

	taken(text, sizeof(text) - 1,
		"layer 0: 0 of 7, 0 B, 0 B\nlayer 1: 0 of 7, 0 B, 0 B\nprompt 2, generate 1\n"
		"prefill 0 x1 rows 2 at 0 | 0: 3 4 | 1: 5 6\n");
}
END_TEST

START_TEST(declared)
{
	const struct trace_import_options o[] = {{.n_layer = 3}, {.n_expert = 16}, {.expert_bytes = 3059712}};

	for (size_t i = 0; i < ARRAY_LEN(o); i++) {
		struct heard h;
		hear_data(&h, "route.csv", &o[i]);
		ck_assert_int_eq((int)h.err.code, ERR_USAGE);
		ck_assert_ptr_nonnull(strstr(h.err.msg, "says its layers and experts itself"));
		done(&h);
	}
}
END_TEST

/* What a file does not say may be said. */
START_TEST(half_declared)
{
	const struct trace_import_options o = {.expert_bytes = 2654208};
	const char text[] = "# route_trace v1\n# n_layer=2 n_expert=8 n_expert_used=2\n" COLUMNS "0,0,0,1,0,5\n";
	struct heard h;
	char path[32];

	test_file(path, text, sizeof(text) - 1);
	hear(&h, path, &o);
	unlink(path);
	assert_ok(h.rc, h.err);
	ck_assert_str_eq(h.text, "layer 0: 2 of 8, 2654208 B, 0 B\nlayer 1: 2 of 8, 2654208 B, 0 B\nprompt 1, generate 1\n"
				 "prefill 0 x1 rows 1 at 0 | 1: 5\n");
	done(&h);
}
END_TEST

/* Options that would do nothing are refused. */
START_TEST(options)
{
	const struct {
		const char *file;
		struct trace_import_options o;
		const char *msg;
	} wrong[] = {
		{"azure-2023.csv", {.n_layer = 4}, "files of the format 'azure' hold requests, and no layers or experts"},
		{"azure-2023.csv", {.decode_rows = 4}, "files of the format 'azure' hold requests, and no decode steps"},
		{"moe.csv", {.decode_rows = 4}, "files of the format 'moe-csv' say themselves what a decode step is"},
		{"moe.csv", {.drop_warmup = true}, "files of the format 'moe-csv' have no warm-up that could be left out"},
	};

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct heard h;
		hear_data(&h, wrong[i].file, &wrong[i].o);
		ck_assert_int_eq(h.rc, -1);
		assert_err(h.err, ERR_USAGE, wrong[i].msg);
		done(&h);
	}
}
END_TEST

static int refuse(void *ctx, const struct otr_request *r, struct err *err)
{
	(void)ctx;
	(void)r;
	return err_set(err, ERR_IO, "no more");
}

START_TEST(a_sink_that_fails)
{
	const struct trace_import_options o = {0};
	struct heard h = {0};
	const struct trace_sink sink = {&h, hear_begin, hear_step, refuse};
	const char text[] = "num_prefill_tokens,num_decode_tokens\n1,2\n";
	char path[32];

	test_file(path, text, sizeof(text) - 1);
	arena_init(&h.arena, NULL, NULL);
	h.to = open_memstream(&h.text, &h.len);
	ck_assert_int_eq(trace_import(path, &o, &sink, &h.arena, &h.r, &h.err), -1);
	unlink(path);
	assert_err(h.err, ERR_IO, "no more");
	fclose(h.to);
	done(&h);
}
END_TEST

START_TEST(interrupted)
{
	const volatile sig_atomic_t flag = 1;
	const struct trace_import_options o = {.interrupted = &flag};
	struct heard h;

	hear_data(&h, "vidur.csv", &o);
	ck_assert_int_eq((int)h.err.code, ERR_INTERRUPTED);
	done(&h);
}
END_TEST

TEST_MAIN("trace_format", azure, burstgpt, mooncake, qwen_bailian, aiperf_sessions, sharegpt, vllm_requests, vidur,
	route_trace, moe_csv, moe_cache, vllm_routing, sglang, bad_csv, bad_jsonl, bad_steps, guessing, unknown_name,
	marks_and_line_ends, layers_in_order, declared, half_declared, options, a_sink_that_fails, interrupted)
