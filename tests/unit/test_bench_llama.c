#include "hw/bench.h"

#include "base/datadir.h"
#include "base/file.h"
#include "tests/test.h"

struct got {
	struct arena arena;
	struct bench b;
	struct err err;
	int rc;
};

static void read_file(struct got *g, const char *name)
{
	const char *dir;

	memset(g, 0, sizeof(*g));
	arena_init(&g->arena, NULL, NULL);
	assert_ok(datadir_find(&g->arena, &dir, &g->err), g->err);
	g->rc = bench_read_file(arena_printf(&g->arena, "%s/tests/data/bench/%s", dir, name), NULL, &g->arena, &g->b, &g->err);
}

static void read_text(struct got *g, const char *text)
{
	memset(g, 0, sizeof(*g));
	arena_init(&g->arena, NULL, NULL);
	g->rc = bench_read_text(text, strlen(text), "f", NULL, &g->arena, &g->b, &g->err);
}

static void done(struct got *g)
{
	arena_release(&g->arena);
}

/* Text that must be refused with this message, at this line. */
static void refused(const char *text, int line, const char *msg)
{
	struct got g;

	read_text(&g, text);
	ck_assert_int_eq(g.rc, -1);
	assert_err(g.err, ERR_INPUT, msg);
	ck_assert_int_eq(g.err.line, line);
	done(&g);
}

/* The same two tests in every output, each with its own times. */
static void check_2025(const char *name, int line0, int line1)
{
	struct got g;

	read_file(&g, name);
	assert_ok(g.rc, g.err);
	ck_assert_ptr_eq(g.b.format, &bench_llama_bench);
	ck_assert_uint_eq(g.b.n, 2);
	const struct bench_llama *pp = g.b.at[0].llama, *tg = g.b.at[1].llama;
	ck_assert_int_eq(g.b.at[0].line, line0);
	ck_assert_int_eq(g.b.at[1].line, line1);
	ck_assert_str_eq(pp->model_type, "qwen2 7B Q4_K - Medium");
	assert_close(pp->model_size, 4677120000, 0);
	assert_close(pp->model_n_params, 7615616512, 0);
	ck_assert_int_eq(pp->n_prompt, 512);
	ck_assert_int_eq(pp->n_gen, 0);
	ck_assert_int_eq(tg->n_prompt, 0);
	ck_assert_int_eq(tg->n_gen, 128);
	ck_assert_int_eq(tg->n_gpu_layers, -1);
	ck_assert_int_eq(tg->n_ubatch, 512);
	ck_assert_int_eq(tg->flash_attn, -1);
	ck_assert(tg->gpu && !tg->no_mmap && !tg->no_op_offload && !tg->ik);
	ck_assert_str_eq(tg->tensor_split, "");
	ck_assert_str_eq(tg->tensor_buft_overrides, "");
	ck_assert_str_eq(tg->split_mode, "");
	ck_assert(g.b.at[1].value > 118 && g.b.at[1].value < 121 && g.b.at[1].spread < 0.01 && g.b.at[1].spread > 0.001);
	done(&g);
}

START_TEST(all_outputs)
{
	check_2025("llama-2025.csv", 2, 3);
	check_2025("llama-2025.json", 42, 87);
	check_2025("llama-2025.jsonl", 1, 2);
	check_2025("llama-2025.sql", 45, 46);
}
END_TEST

/* 26 fields; f16_kv in place of two types, cuda in place of backends. */
START_TEST(generation_of_2023)
{
	struct got g;

	read_file(&g, "llama-2023.json");
	assert_ok(g.rc, g.err);
	ck_assert_uint_eq(g.b.n, 2);
	ck_assert_str_eq(g.b.at[1].llama->type_k, "f16");
	ck_assert(g.b.at[1].llama->gpu);
	ck_assert_int_eq(g.b.at[1].llama->n_ubatch, 0);
	ck_assert_str_eq(g.b.at[1].what, "tg128, llama 7B mostly Q4_0");
	assert_close(g.b.at[1].value, 130.965708, 1e-12);
	assert_close(g.b.at[1].spread, 1.238924 / 130.965708, 1e-12);
	done(&g);
}
END_TEST

/* The README of that year has 27 values under 26 names: they are not shifted until they fit. */
START_TEST(more_values_than_names)
{
	struct got g;

	read_file(&g, "llama-2023.csv");
	ck_assert_int_eq(g.rc, -1);
	assert_err(g.err, ERR_INPUT, "more than the 26 fields of the header");
	ck_assert_int_eq(g.err.line, 2);
	done(&g);
	read_file(&g, "llama-2023.sql");
	ck_assert_int_eq(g.rc, -1);
	assert_err(g.err, ERR_INPUT, "27 values for 26 columns");
	ck_assert_int_eq(g.err.line, 30);
	done(&g);
	refused("n_prompt,n_gen,avg_ts\n\"512\",\"0\"\n", 2, "2 fields where the header has 3");
	refused("| model | params | test | t/s |\n|--|--|--|--|\n| a Q4_0 | 7.62 B | pp512 | 9.1 ± 0.1 | x |\n", 3,
		"5 cells where the table has 4 columns");
}
END_TEST

START_TEST(ik_llama_cpp)
{
	struct got g;

	read_file(&g, "llama-ik.jsonl");
	assert_ok(g.rc, g.err);
	ck_assert(g.b.at[0].llama->ik && g.b.at[0].llama->gpu);
	ck_assert_str_eq(g.b.at[0].llama->tensor_buft_overrides, "exps=CPU");
	done(&g);
}
END_TEST

/* load_mode in place of use_mmap; backends without a GPU, though n_gpu_layers says all. */
START_TEST(on_a_cpu)
{
	struct got g;

	read_file(&g, "llama-cpu.jsonl");
	assert_ok(g.rc, g.err);
	ck_assert_uint_eq(g.b.n, 13);
	for (size_t i = 0; i < g.b.n; i++)
		ck_assert(!g.b.at[i].llama->gpu && !g.b.at[i].llama->no_mmap && g.b.at[i].llama->n_threads > 0);
	done(&g);
	read_text(&g, "[{\"avg_ts\": 2.385, \"n_prompt\": 0, \"n_gen\": 3, \"backends\": \"BLAS,RPC\", \"use_mmap\": false},\n"
		      "{\"avg_ts\": 2.385, \"n_prompt\": 0, \"n_gen\": 3, \"backends\": \"CPU\", \"load_mode\": \"dio\"}]");
	assert_ok(g.rc, g.err);
	ck_assert(!g.b.at[0].llama->gpu && g.b.at[0].llama->no_mmap && g.b.at[1].llama->no_mmap);
	ck_assert_int_eq(g.b.at[1].line, 2);
	done(&g);
}
END_TEST

START_TEST(table_for_people)
{
	struct got g;

	read_file(&g, "llama.md");
	assert_ok(g.rc, g.err);
	ck_assert_uint_eq(g.b.n, 3);
	const struct bench_llama *l = g.b.at[1].llama;
	ck_assert(l->rounded && l->gpu);
	assert_close(l->model_size, 4.36 * 1073741824, 1e-12);
	assert_close(l->model_n_params, 7.62e9, 1e-12);
	ck_assert_int_eq(l->n_gpu_layers, 99);
	ck_assert_int_eq(l->flash_attn, 1);
	ck_assert_int_eq(l->n_gen, 128);
	ck_assert_int_eq(l->n_depth, 4096);
	assert_close(g.b.at[1].value, 111.92, 1e-12);
	assert_close(g.b.at[1].spread, 0.43 / 111.92, 1e-12);
	ck_assert_int_eq(g.b.at[2].llama->n_prompt, 512);
	ck_assert_int_eq(g.b.at[2].llama->n_gen, 64);
	done(&g);
	read_text(&g, "| model | params | test | t/s |\n| a Q4_0 | 494.03 M | pp 512 | 9.25 |\n"); /* spaces of 2023 */
	assert_ok(g.rc, g.err);
	ck_assert_int_eq(g.b.at[0].llama->n_prompt, 512);
	assert_close(g.b.at[0].llama->model_n_params, 494.03e6, 1e-12);
	done(&g);
}
END_TEST

/* Values in any order of names, names that nobody knows, quotes in strings, several rows of one statement. */
START_TEST(sql_by_name)
{
	struct got g;

	read_text(&g, "INSERT INTO x (new_one, avg_ts, n_gen, n_prompt, model_type) VALUES\n"
		      "('a, (b); ''c''', '2.385', '7', '0', 'it''s Q8_0'), (NULL, 3.1, 0, 9, 'x');\n"
		      "-- insert into\nINSERT INTO x (n_gen, n_prompt, avg_ts) VALUES (1, 0, 5.5);");
	assert_ok(g.rc, g.err);
	ck_assert_uint_eq(g.b.n, 3);
	ck_assert_str_eq(g.b.at[0].llama->model_type, "it's Q8_0");
	assert_close(g.b.at[0].value, 2.385, 0);
	ck_assert_int_eq(g.b.at[1].llama->n_prompt, 9);
	ck_assert_int_eq(g.b.at[1].line, 2);
	ck_assert_int_eq(g.b.at[2].line, 4);
	done(&g);
}
END_TEST

START_TEST(broken)
{
	refused("[{\"avg_ts\": 1.5, \"n_prompt\": 3", 1, "'}' expected near end of file");
	refused("{\"avg_ts\": 1.5, \"n_gen\": 3, \"n_prompt\": 0}\n{\"avg_ts\": 1.5, \"n_g", 2,
		"premature end of input near '\"n_g'");
	refused("{\"avg_ts\": 1.5, \"avg_ts\": 1.6, \"n_gen\": 3, \"n_prompt\": 0}", 1, "duplicate object key near '\"avg_ts\"'");
	refused("[1, \"avg_ts\"]", 1, "a test is no object { … }");
	refused("[{\"avg_ts\": null, \"n_gen\": 3, \"n_prompt\": 0}]", 1, "has no 'avg_ts'");
	refused("[{\"avg_ts\": 2.5, \"n_gen\": 3}]", 1, "has no 'n_prompt'");
	refused("[{\"avg_ts\": 2.5, \"n_gen\": \"3x\", \"n_prompt\": 0}]", 1, "n_gen '3x' is no number that llama-bench writes");
	refused("[{\"avg_ts\": 2.5, \"n_gen\": 1e300, \"n_prompt\": 0}]", 1,
		"n_gen '1.0000000000000001e+300' is no number that llama-bench writes");
	refused("[{\"avg_ts\": 0, \"n_gen\": 3, \"n_prompt\": 0}]", 1, "tg3, a model is 0, and no measured value");
	refused("[{\"avg_ts\": 2.5, \"n_gen\": -3, \"n_prompt\": 5}]", 1, "a test of 5 tokens read and -3 generated at depth 0");
	refused("INSERT INTO t (avg_ts, n_gen) VALUES ('2.5', '3', ", 1, "a list in brackets does not end");
	refused("INSERT INTO t VALUES ('2.5', '3') -- avg_ts", 1, "not INSERT INTO table (names) VALUES (values)");
	refused("| model | test | t/s |\n| a | ppx | 1.5 |", 2, "the test 'ppx' is not of the form pp512, tg128, pp512+tg128 @ d4096");
	refused("| model | test | t/s |\n| a | pp5 | fast |", 2, "t/s 'fast' is not MEAN ± DEVIATION");
	refused("n_gen,n_prompt,avg_ts\n", 0, "holds no measurement of llama-bench");
	refused("[{\"avg_ts\": 2.5, \"n_gen\": 3, \"n_prompt\": 0, \"model_type\": \"\xe9\"}]", 1, "byte 0xe9 is not UTF-8");
	refused("\xff\xfe[", 1, "this is UTF-16, as PowerShell writes it; save it as UTF-8");
	refused("hello", 0, "not the output of nvbandwidth, fio, mlc, stream, llama-bench or vllm; name it with --format");
	refused("", 0, "not the output of nvbandwidth, fio, mlc, stream, llama-bench or vllm; name it with --format");
}
END_TEST

/* Each end of a whole file: refused or read, never more. */
START_TEST(truncated)
{
	static const char *const files[] = {"llama-2025.json", "llama-2025.csv", "llama-2025.sql", "llama.md"};

	for (size_t f = 0; f < ARRAY_LEN(files); f++) {
		struct arena a, files_arena;
		struct err err = {0};
		const char *dir;
		char *text;
		size_t len;
		arena_init(&files_arena, NULL, NULL);
		arena_init(&a, NULL, NULL);
		assert_ok(datadir_find(&files_arena, &dir, &err) ||
				file_read(arena_printf(&files_arena, "%s/tests/data/bench/%s", dir, files[f]), 1 << 20, &files_arena,
					&text, &len, &err),
			err);
		for (size_t n = 0; n < len; n++) {
			struct bench b;
			if (bench_read_text(text, n, "f", &bench_llama_bench, &a, &b, &err))
				ck_assert(err.code == ERR_INPUT && err.msg[0]);
			else
				ck_assert_uint_le(b.n, 3);
			arena_reset(&a);
		}
		arena_release(&a);
		arena_release(&files_arena);
	}
}
END_TEST

START_TEST(copies)
{
	struct got g;
	const struct bench_row *row[4];
	size_t first[4];

	read_text(&g, "[{\"avg_ts\": 2.5, \"n_gen\": 3, \"n_prompt\": 0, \"test_time\": \"a\"},"
		      "{\"avg_ts\": 2.5, \"n_gen\": 3, \"n_prompt\": 0, \"test_time\": \"b\"},"
		      "{\"avg_ts\": 2.5, \"n_gen\": 3, \"n_prompt\": 0, \"test_time\": \"a\"},"
		      "{\"avg_ts\": 2.5, \"n_gen\": 3, \"n_prompt\": 0, \"test_time\": \"b\", \"n_threads\": 2}]");
	assert_ok(g.rc, g.err);
	for (size_t i = 0; i < 4; i++)
		row[i] = &g.b.at[i];
	bench_find_copies(row, 4, &g.arena, first);
	ck_assert_uint_eq(first[0], 0);
	ck_assert_uint_eq(first[1], 1);
	ck_assert_uint_eq(first[2], 0);
	ck_assert_uint_eq(first[3], 3);
	done(&g);
}
END_TEST

TEST_MAIN("bench_llama", all_outputs, generation_of_2023, more_values_than_names, ik_llama_cpp, on_a_cpu, table_for_people,
	sql_by_name, broken, truncated, copies)
