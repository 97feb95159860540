#include "sim/run/cuda_exec.h"

#include <math.h>

#include "base/json.h"
#include "sim/run/cuda_program.h"

#define MAX_TIMES_BYTES ((size_t)4 << 30)
#define FORMAT "offsim-cuda times 1"

/* Numbers from 0 to max, one an operation. */
static int read_list(const json_t *run, const char *path, const char *key, size_t n, double max, double *out, struct err *err)
{
	const json_t *list = json_object_get(run, key);

	if (!json_is_array(list) || json_array_size(list) != n)
		return err_set(err, ERR_INPUT, "%s: '%s' must be a list of %zu numbers, one for each operation", path, key, n);
	for (size_t i = 0; i < n; i++) {
		const json_t *v = json_array_get(list, i);
		out[i] = json_number_value(v);
		if (!json_is_number(v) || !(out[i] >= 0 && out[i] <= max))
			return err_set(err, ERR_INPUT, "%s: '%s' of operation %zu is not a number from 0 to %g", path, key, i, max);
	}
	return 0;
}

static int read_run(const json_t *from, const char *path, size_t n, struct arena *a, struct cpu_exec_result *run, struct err *err)
{
	double *number = arena_array(a, double, n);
	bool *seen = arena_array(a, bool, n);

	*run = (struct cpu_exec_result){arena_array(a, double, n), arena_array(a, double, n), arena_array(a, uint64_t, n),
		arena_array(a, uint32_t, n)};
	if (read_list(from, path, "start_s", n, 1e9, run->start_s, err) || read_list(from, path, "end_s", n, 1e9, run->end_s, err) ||
		read_list(from, path, "moved_bytes", n, 1e18, number, err))
		return -1;
	for (size_t i = 0; i < n; i++)
		run->moved_bytes[i] = (uint64_t)number[i];
	if (read_list(from, path, "order", n, (double)n - 1, number, err))
		return -1;
	for (size_t i = 0; i < n; i++) {
		run->order[i] = (uint32_t)number[i];
		if (run->order[i] != number[i] || seen[run->order[i]])
			return err_set(err, ERR_INPUT, "%s: 'order' is not one of all operations", path);
		seen[run->order[i]] = true;
	}
	return 0;
}

static int read_runs(const json_t *root, const char *path, const struct opg *g, uint64_t n, struct arena *a,
	struct cpu_exec_result *run, struct err *err)
{
	const json_t *runs = json_object_get(root, "runs");
	const char *format;

	if (json_get_text_or(root, path, "format", "", a, &format, err))
		return -1;
	if (strcmp(format, FORMAT) != 0)
		return err_set(err, ERR_INPUT, "%s: not what offsim-cuda of this version writes ('format' is '%.40s')", path, format);
	if (!json_is_array(runs) || json_array_size(runs) != n)
		return err_set(err, ERR_INPUT, "%s: 'runs' must be a list of %llu", path, (unsigned long long)n);
	for (uint64_t i = 0; i < n; i++)
		if (read_run(json_array_get(runs, i), path, g->ops.n, a, &run[i], err))
			return -1;
	return 0;
}

int cuda_exec_read(const char *path, const struct opg *g, uint64_t n, struct arena *a, struct cpu_exec_result *run,
	struct err *err)
{
	json_t *root;

	if (json_read_file(path, MAX_TIMES_BYTES, &root, err))
		return -1;
	int rc = read_runs(root, path, g, n, a, run, err);
	json_decref(root);
	return rc;
}

int cuda_exec_run(const struct opg *g, uint64_t n, const struct cpu_exec_options *o, struct arena *a,
	struct cpu_exec_result *run, struct err *err)
{
	struct cuda_program p;

	if (cuda_program_open(&p, a, err))
		return -1;
	const char *graph = cuda_program_file(&p, "graph.opg"), *times = cuda_program_file(&p, "times.json");
	const char *argv[] = {"execute", graph, "--output", times, "--repeat", arena_printf(a, "%llu", (unsigned long long)n),
		"--dir", o->dir, o->threads ? "--threads" : NULL, arena_printf(a, "%u", o->threads), NULL};
	int rc = opg_write(g, graph, err) || cuda_program_run(&p, argv, true, o->interrupted, err) ||
		 cuda_exec_read(times, g, n, a, run, err);
	cuda_program_done(&p);
	return rc ? -1 : 0;
}
