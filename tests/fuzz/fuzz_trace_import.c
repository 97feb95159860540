/*
 * Any bytes as a recorded trace: the first byte says which format (or: guess), the rest is the file. It is refused with
 * a message and nothing said, or both readings agree and every record is within the bounds that an .otr has.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/trace/otr_code.h"
#include "sim/trace/trace_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	const struct otr_info *info;
	uint64_t n_steps[2], n_requests, n_uses;
};

static int begin(void *ctx, const struct otr_info *info, struct err *err)
{
	struct seen *s = ctx;

	(void)err;
	if (s->info)
		BUG("begun twice");
	if (!info->model || !info->source || !info->licence || !info->note || info->n_layer > TRACE_MAX_LAYERS)
		BUG("a head that is not complete");
	s->info = info;
	return 0;
}

static int take_step(void *ctx, const struct trace_step *step, struct err *err)
{
	struct seen *s = ctx;

	(void)err;
	if (!s->info || s->info->kind != OTR_STEPS || step->index != s->n_steps[step->phase]++)
		BUG("a step out of turn");
	if (step->n_access > OTR_ACCESS_MAX)
		BUG("a step too large");
	for (size_t i = 0; i < step->n_access; i++) {
		const struct trace_access *a = &step->access[i];
		if (a->kind != TRACE_EXPERT || a->layer < 0 || (uint32_t)a->layer >= s->info->n_layer ||
			a->expert >= s->info->layer[a->layer].n_expert || a->tokens > TRACE_MAX_TOKENS)
			BUG("use %zu is not of a known expert", i);
		if (i && a->layer < a[-1].layer)
			BUG("layers go back");
	}
	s->n_uses += step->n_access;
	return 0;
}

static int take_request(void *ctx, const struct otr_request *r, struct err *err)
{
	struct seen *s = ctx;

	(void)err;
	if (!s->info || s->info->kind != OTR_REQUESTS)
		BUG("a request out of turn");
	if (r->input_tokens > UINT64_C(1) << 50 || r->output_tokens > UINT64_C(1) << 50 || (r->n_blocks && !s->info->block_tokens))
		BUG("a request out of bounds");
	s->n_requests++;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace_import_options o = {0};
	struct trace_import_result r;
	struct seen seen = {0};
	const struct trace_sink sink = {&seen, begin, take_step, take_request};
	struct arena a;
	struct err err = {0};
	char path[64];

	if (size < 1)
		return 0;
	size_t which = data[0] % (trace_format_table_n + 1);
	if (which < trace_format_table_n) {
		o.format = trace_format_table[which];
		o.drop_warmup = o.format->has_warmup && data[0] >= 128;
		o.decode_rows = o.format->guesses_phases && data[0] >= 64 ? 2 : 0;
	}
	int fd = memfd_create("trace", 0);
	if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)size - 1)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	arena_init(&a, NULL, NULL);
	if (trace_import(path, &o, &sink, &a, &r, &err)) {
		if (err.code != ERR_INPUT || !err.msg[0] || seen.info)
			BUG("refused without a message, or too late: %s", err.msg);
	} else if (r.totals.n_records != seen.n_requests + seen.n_steps[0] + seen.n_steps[1] || r.totals.n_uses != seen.n_uses ||
		   r.totals.n_records == 0) {
		BUG("records are lost");
	}
	arena_release(&a);
	close(fd);
	return 0;
}
