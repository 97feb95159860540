/*
 * fuzz_trace_jsonl.c - traces as lines of JSON: head, then steps or requests. What is taken is written and read again.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/trace/trace_jsonl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory, by its name in path (of 64 bytes). */
static int memory_file(char *path, const void *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		BUG("no file");
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

/* The lines of what data says, in *text (to be freed); -1 when it says nothing. */
static int rewrite(const void *data, size_t size, char **text, size_t *len)
{
	char path[64];
	int fd = memory_file(path, data, size), more;
	struct trace_jsonl *t;
	struct trace_step step;
	struct otr_request request;
	struct arena a;
	struct err err = {0};
	FILE *to = open_memstream(text, len);

	arena_init(&a, NULL, NULL);
	more = trace_jsonl_open(path, &a, &t, &err);
	if (more == 0) {
		bool steps = trace_jsonl_info(t)->kind == OTR_STEPS;
		trace_jsonl_put_head(to, trace_jsonl_info(t));
		while ((more = steps ? trace_jsonl_next_step(t, &step, &err) : trace_jsonl_next_request(t, &request, &err)) > 0) {
			if (steps)
				trace_jsonl_put_step(to, &step);
			else
				trace_jsonl_put_request(to, &request);
		}
		trace_jsonl_close(t);
	}
	if (more < 0 && !err.msg[0])
		BUG("failed without a message");
	fclose(to);
	close(fd);
	arena_release(&a);
	return more;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *once, *twice;
	size_t n_once, n_twice;

	if (size > 1 << 16)
		return 0;
	if (rewrite(data, size, &once, &n_once) == 0) {
		if (rewrite(once, n_once, &twice, &n_twice))
			BUG("what was written is not taken:\n%.2000s", once);
		if (n_once != n_twice || memcmp(once, twice, n_once))
			BUG("written twice, it is different:\n%.2000s\n%.2000s", once, twice);
		free(twice);
	}
	free(once);
	return 0;
}
