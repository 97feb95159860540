/*
 * fuzz_opg.c - operation graphs. What is taken is written again and read as the same, and simulated as far as it goes.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "sim/core/opg.h"

#define MAX_OPS 2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file_of(const void *data, size_t size, char path[64])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		BUG("no file");
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static char *written(const struct opg *g, struct arena *a)
{
	char path[64], *text;
	size_t len;
	struct err err = {0};

	snprintf(path, sizeof(path), "/tmp/offsim-fuzz-%ld.opg", (long)getpid());
	if (opg_write(g, path, &err) || file_read(path, (size_t)1 << 28, a, &text, &len, &err))
		BUG("%s", err.msg);
	unlink(path);
	return text;
}

static void check_again(const struct opg *g, struct arena *a)
{
	char *text = written(g, a), path[64];
	struct opg *back;
	struct err err = {0};
	int fd = file_of(text, strlen(text), path);

	if (opg_read(path, a, &back, &err))
		BUG("what was written is refused: %d:%d: %s", err.line, err.col, err.msg);
	close(fd);
	if (strcmp(written(back, a), text) != 0)
		BUG("a graph is another");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct opg *g;
	struct opg_times times;
	struct err err = {0};
	char path[64];

	if (size > 1 << 16)
		return 0;
	arena_init(&a, NULL, NULL);
	int fd = file_of(data, size, path);
	if (opg_read(path, &a, &g, &err)) {
		if (!err.msg[0])
			BUG("failed without a message");
	} else {
		check_again(g, &a);
		if (g->ops.n < MAX_OPS && opg_simulate(g, NULL, &a, &times, &err) && !err.msg[0])
			BUG("failed without a message");
	}
	close(fd);
	arena_release(&a);
	return 0;
}
