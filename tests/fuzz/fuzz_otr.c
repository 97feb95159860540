/*
 * fuzz_otr.c - native traces: whole files, and, since checksums keep all but a few inputs from getting further, the contents
 * of their blocks. The first byte says what the rest is.
 *
 * Records that are taken are written again, and read as the same.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/trace/otr_code.h"

#define MAX_RECORDS 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_fault(const char *fault)
{
	if (!fault[0])
		BUG("failed without a message");
}

static bool same_access(const struct trace_access *a, const struct trace_access *b)
{
	return a->layer == b->layer && a->kind == b->kind && a->group == b->group && a->expert == b->expert &&
		a->tokens == b->tokens && a->kv_tokens == b->kv_tokens &&
		memcmp(&a->kv_pairs, &b->kv_pairs, sizeof(double)) == 0;
}

static void fuzz_steps(struct otr_input in, const struct otr_info *info, struct arena *a)
{
	struct otr_coder c, writing, reading;
	struct trace_step step, again;

	otr_coder_init(&c, info, a);
	otr_coder_init(&writing, info, a);
	otr_coder_init(&reading, info, a);
	for (int i = 0; i < MAX_RECORDS && in.at < in.end; i++) {
		struct otr_bytes bytes = {0};
		if (otr_decode_step(&c, &in, &step)) {
			check_fault(c.fault);
			return;
		}
		if (otr_encode_step(&writing, &step, &bytes))
			BUG("a step was read that cannot be written: %s", writing.fault);
		struct otr_input back = {bytes.at, bytes.at + bytes.n, false};
		if (otr_decode_step(&reading, &back, &again) || back.at != back.end)
			BUG("a step was written that cannot be read: %s", reading.fault);
		if (step.phase != again.phase || step.index != again.index || step.context != again.context ||
			step.n_sequences != again.n_sequences || step.n_tokens != again.n_tokens ||
			step.n_sampled != again.n_sampled || step.n_access != again.n_access)
			BUG("a step is another");
		for (size_t k = 0; k < step.n_access; k++)
			if (!same_access(&step.access[k], &again.access[k]))
				BUG("access %zu is another", k);
	}
}

static void fuzz_requests(struct otr_input in, const struct otr_info *info, struct arena *a)
{
	struct otr_coder c, writing, reading;
	struct otr_request r, again;

	otr_coder_init(&c, info, a);
	otr_coder_init(&writing, info, a);
	otr_coder_init(&reading, info, a);
	for (int i = 0; i < MAX_RECORDS && in.at < in.end; i++) {
		struct otr_bytes bytes = {0};
		if (otr_decode_request(&c, &in, &r)) {
			check_fault(c.fault);
			return;
		}
		otr_encode_request(&writing, &r, &bytes);
		struct otr_input back = {bytes.at, bytes.at + bytes.n, false};
		if (otr_decode_request(&reading, &back, &again) || back.at != back.end ||
			r.arrival_ns != again.arrival_ns || r.session != again.session ||
			r.input_tokens != again.input_tokens || r.output_tokens != again.output_tokens ||
			r.n_blocks != again.n_blocks ||
			(r.n_blocks && memcmp(r.block, again.block, r.n_blocks * sizeof(*r.block))))
			BUG("a request is another");
	}
}

static void fuzz_head(struct otr_input in, struct arena *a)
{
	struct otr_info info;
	struct otr_bytes bytes = {0};
	char fault[160] = "";

	if (otr_decode_info(&in, a, &info, fault))
		check_fault(fault);
	else if (otr_encode_info(&info, a, &bytes, fault))
		BUG("a head was read that cannot be written: %s", fault);
}

static void fuzz_file(struct otr_input in, struct arena *a)
{
	char path[64];
	struct otr_reader *r;
	struct trace_step step;
	struct otr_request request;
	struct err err = {0};
	int fd = memfd_create("fuzz", MFD_CLOEXEC), more = 1;

	if (fd < 0 || write(fd, in.at, (size_t)(in.end - in.at)) != in.end - in.at)
		BUG("no file");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (otr_open(path, a, &r, &err)) {
		check_fault(err.msg);
	} else {
		for (int i = 0; i < MAX_RECORDS && more > 0; i++)
			more = otr_info(r)->kind == OTR_STEPS ? otr_next_step(r, &step, &err) :
								otr_next_request(r, &request, &err);
		if (more < 0)
			check_fault(err.msg);
		otr_close(r);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct otr_layer layer[3] = {{.n_expert = 8}, {.n_expert = 300}, {0}};
	const struct otr_info known = {.n_layer = ARRAY_LEN(layer), .layer = layer}, unknown = {0};
	struct arena a;

	if (size < 1 || size > 1 << 16)
		return 0;
	struct otr_input in = {data + 1, data + size, false};
	arena_init(&a, NULL, NULL);
	switch (data[0]) {
	case 'f': fuzz_file(in, &a); break;
	case 'h': fuzz_head(in, &a); break;
	case 'r': fuzz_requests(in, &unknown, &a); break;
	case 's': fuzz_steps(in, &known, &a); break;
	default: fuzz_steps(in, &unknown, &a);
	}
	arena_release(&a);
	return 0;
}
