#include "sim/real/cpu_buffers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/units.h"
#include "sim/real/cpu_work.h"

#define GUARD CPU_PAGE
#define GUARD_BYTE 0xc3
#define POISON_BYTE 0xa5
/* Filled, written and checked in pieces of this. */
#define PIECE ((uint64_t)1 << 20)

static uint64_t pages(uint64_t bytes)
{
	return (bytes + CPU_PAGE - 1) / CPU_PAGE * CPU_PAGE;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void *cpu_map(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

void cpu_unmap(void *p, uint64_t bytes)
{
	if (p)
		munmap(p, bytes);
}

static bool on_drive(const struct cpu_buffers *b, int buffer)
{
	return b->g->memories.at[b->g->buffers.at[buffer].memory].kind == OPG_MEMORY_DRIVE;
}

/* ---- room ---- */

static uint64_t memory_available(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[256];
	uint64_t kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib ? kib << 10 : UINT64_MAX;
}

static uint64_t disk_available(const char *dir)
{
	struct statvfs fs;

	return statvfs(dir, &fs) ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize;
}

static int check_room(const char *what, uint64_t bytes, uint64_t available, const char *of, struct err *err)
{
	char need[32], have[32];

	if (bytes <= available)
		return 0;
	return err_set(err, ERR_INPUT, "%s: %s of %s are needed, %s are available; a smaller model or a shorter context would do", what,
		units_format(need, sizeof(need), (double)bytes, UNIT_BYTES), of,
		units_format(have, sizeof(have), (double)available, UNIT_BYTES));
}

/* ---- the file ---- */

static int disk_fault(const struct cpu_buffers *b, const char *what, int why, struct err *err)
{
	return err_set(err, ERR_IO, "cannot %s a file in '%s': %s", what, b->dir, strerror(why));
}

static int open_file(struct cpu_buffers *b, struct err *err)
{
	char path[4096];
	int fd, flags;

	if (snprintf(path, sizeof(path), "%s/offsim-replay-XXXXXX", b->dir) >= (int)sizeof(path))
		return err_set(err, ERR_INPUT, "the name of folder '%.60s…' is too long", b->dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return disk_fault(b, "make", errno, err);
	unlink(path);
	flags = fcntl(fd, F_GETFL);
	if (fcntl(fd, F_SETFL, flags | O_DIRECT)) {
		close(fd);
		return err_set(err, ERR_INPUT,
			"files in '%s' cannot be read around the page cache; name a folder on a drive with --dir", b->dir);
	}
	b->fd = fd;
	return 0;
}

/* All of it, or an errno. */
static int transfer(int fd, bool write, char *p, uint64_t len, uint64_t offset)
{
	while (len) {
		ssize_t n = write ? pwrite(fd, p, len, (off_t)offset) : pread(fd, p, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		p += n;
		len -= (uint64_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

/* ---- filling ---- */

static int fill_memory(struct cpu_buffers *b, int buffer, const volatile sig_atomic_t *interrupted, struct err *err)
{
	const struct opg_buffer *spec = &b->g->buffers.at[buffer];
	uint64_t bytes = pages(spec->bytes);
	char *p = cpu_map(bytes + 2 * GUARD);

	if (!p)
		return err_set(err, ERR_NOMEM, "out of memory");
	b->at[buffer].memory = p + GUARD;
	memset(p, GUARD_BYTE, GUARD);
	memset(p + GUARD + bytes, GUARD_BYTE, GUARD);
	for (uint64_t at = 0; at < bytes; at += PIECE) {
		uint64_t n = least(PIECE, bytes - at);
		if (interrupted && *interrupted)
			return err_set(err, ERR_INTERRUPTED, "interrupted");
		if (spec->role == OPG_STAGING)
			memset(p + GUARD + at, POISON_BYTE, n);
		else
			cpu_pattern((unsigned)buffer, at, p + GUARD + at, n);
	}
	return 0;
}

static int fill_file(struct cpu_buffers *b, int buffer, char *piece, const volatile sig_atomic_t *interrupted,
	struct err *err)
{
	uint64_t bytes = pages(b->g->buffers.at[buffer].bytes);

	for (uint64_t at = 0; at < bytes; at += PIECE) {
		uint64_t n = least(PIECE, bytes - at);
		if (interrupted && *interrupted)
			return err_set(err, ERR_INTERRUPTED, "interrupted");
		cpu_pattern((unsigned)buffer, at, piece, n);
		int why = transfer(b->fd, true, piece, n, b->at[buffer].file_offset + at);
		if (why)
			return disk_fault(b, "write", why, err);
	}
	return 0;
}

static int fill_all(struct cpu_buffers *b, const volatile sig_atomic_t *interrupted, struct err *err)
{
	char *piece = b->fd < 0 ? NULL : cpu_map(PIECE);
	int rc = b->fd >= 0 && !piece ? err_set(err, ERR_NOMEM, "out of memory") : 0;

	for (int i = 0; rc == 0 && i < (int)b->g->buffers.n; i++)
		rc = on_drive(b, i) ? fill_file(b, i, piece, interrupted, err) : fill_memory(b, i, interrupted, err);
	/* What is still on its way to the disk would be in the way of reads. */
	if (rc == 0 && b->fd >= 0 && fdatasync(b->fd))
		rc = disk_fault(b, "write", errno, err);
	cpu_unmap(piece, PIECE);
	return rc;
}

int cpu_buffers_open(struct cpu_buffers *b, const struct opg *g, const char *dir, const volatile sig_atomic_t *interrupted,
	struct arena *a, struct err *err)
{
	uint64_t memory_bytes = 0, file_bytes = 0;

	*b = (struct cpu_buffers){.g = g, .at = arena_array(a, struct cpu_buffer, g->buffers.n), .fd = -1, .dir = dir};
	for (int i = 0; i < (int)g->buffers.n; i++) {
		uint64_t bytes = pages(g->buffers.at[i].bytes);
		b->at[i].content = (struct cpu_content){g->buffers.at[i].role == OPG_STAGING ? OPG_NONE : i, 0, 0};
		if (on_drive(b, i)) {
			b->at[i].file_offset = file_bytes;
			file_bytes += bytes;
		} else {
			memory_bytes += bytes + 2 * GUARD;
		}
	}
	if (check_room("the buffers do not fit in MemAvailable", memory_bytes, memory_available(), "memory", err) ||
		(file_bytes && check_room("the file does not fit", file_bytes, disk_available(dir), "disk", err)) ||
		(file_bytes && open_file(b, err)))
		return -1;
	if (fill_all(b, interrupted, err)) {
		cpu_buffers_close(b);
		return -1;
	}
	return 0;
}

void cpu_buffers_close(struct cpu_buffers *b)
{
	for (size_t i = 0; i < b->g->buffers.n; i++) {
		if (b->at[i].memory)
			cpu_unmap(b->at[i].memory - GUARD, pages(b->g->buffers.at[i].bytes) + 2 * GUARD);
		b->at[i].memory = NULL;
	}
	if (b->fd >= 0)
		close(b->fd);
	b->fd = -1;
}

/* ---- copies ---- */

/* The whole pages around [at, at + len) of a buffer in the file, into or from p: the byte `at` is at p[at % page]. */
static int transfer_pages(const struct cpu_buffers *b, int buffer, bool write, uint64_t at, uint64_t len, char *p)
{
	uint64_t first = at / CPU_PAGE * CPU_PAGE;

	return transfer(b->fd, write, p, pages(at + len) - first, b->at[buffer].file_offset + first);
}

/* A stretch that wraps around neither buffer. */
static int copy_stretch(const struct cpu_buffers *b, const struct opg_op *o, uint64_t at, uint64_t into, uint64_t len, char *bounce)
{
	bool read = on_drive(b, o->from), write = on_drive(b, o->to);
	bool stop = o->via != OPG_NONE || !o->pinned;
	char *to = write ? NULL : b->at[o->to].memory + into;
	const char *from = read ? NULL : b->at[o->from].memory + at;
	int why;

	if (read) {
		/* Straight to where they go: what is read of the last page beyond them lies in the same buffer's pages. */
		if (!stop && at % CPU_PAGE == 0 && into % CPU_PAGE == 0)
			return transfer_pages(b, o->from, false, at, len, to);
		why = transfer_pages(b, o->from, false, at, len, bounce);
		if (why)
			return why;
		memcpy(to, bounce + at % CPU_PAGE, len);
		return 0;
	}
	if (write) {
		memcpy(bounce + into % CPU_PAGE, from, len);
		return transfer_pages(b, o->to, true, into, len, bounce);
	}
	if (!stop) {
		memmove(to, from, len);
		return 0;
	}
	memcpy(bounce, from, len);
	memcpy(to, bounce, len);
	return 0;
}

int cpu_buffers_copy(const struct cpu_buffers *b, const struct opg_op *o, uint64_t offset, uint64_t len, char *bounce)
{
	uint64_t from_bytes = b->g->buffers.at[o->from].bytes, to_bytes = b->g->buffers.at[o->to].bytes;

	while (len) {
		uint64_t at = (o->at + offset) % from_bytes, into = (o->into + offset) % to_bytes;
		uint64_t n = least(len, least(from_bytes - at, to_bytes - into));
		int why = copy_stretch(b, o, at, into, n, bounce);
		if (why)
			return why;
		offset += n;
		len -= n;
	}
	return 0;
}

void cpu_buffers_copied(struct cpu_buffers *b, const struct opg_op *o)
{
	const struct cpu_content *from = &b->at[o->from].content;
	struct cpu_content *to = &b->at[o->to].content;
	uint64_t bytes = (uint64_t)o->bytes;

	*to = (struct cpu_content){from->origin, from->at + o->at, bytes};
	/* Not from where it is known on, or not all of it, or round again. */
	if (b->g->buffers.at[o->to].role != OPG_STAGING || o->into || bytes > b->g->buffers.at[o->to].bytes ||
		(from->bytes && o->at + bytes > from->bytes))
		to->origin = OPG_NONE;
}

/* ---- afterwards ---- */

static int wrong(const struct cpu_buffers *b, int buffer, const char *what, struct err *err)
{
	return err_set(err, ERR_IO, "buffer %d in %s %s: the replay copied something wrongly, or this machine's memory fails", buffer,
		b->g->memories.at[b->g->buffers.at[buffer].memory].name, what);
}

static bool all_bytes(const char *p, uint64_t len, int byte)
{
	return (unsigned char)p[0] == byte && memcmp(p, p + 1, len - 1) == 0;
}

static int check_content(const struct cpu_buffers *b, int buffer, char *piece, struct err *err)
{
	const struct cpu_content *c = &b->at[buffer].content;
	uint64_t size = c->origin == OPG_NONE ? 0 : b->g->buffers.at[c->origin].bytes;

	for (uint64_t done = 0, n; c->origin != OPG_NONE && done < c->bytes; done += n) {
		uint64_t at = (c->at + done) % size;
		n = least(least(PIECE, c->bytes - done), size - at);
		cpu_pattern((unsigned)c->origin, at, piece, n);
		if (memcmp(piece, b->at[buffer].memory + done, n) != 0)
			return wrong(b, buffer, "does not hold what was copied into it", err);
	}
	return 0;
}

int cpu_buffers_check(const struct cpu_buffers *b, struct err *err)
{
	char *piece = cpu_map(PIECE);
	int rc = piece ? 0 : err_set(err, ERR_NOMEM, "out of memory");

	for (int i = 0; rc == 0 && i < (int)b->g->buffers.n; i++) {
		const char *p = b->at[i].memory;
		if (!p)
			continue;
		if (!all_bytes(p - GUARD, GUARD, GUARD_BYTE) ||
			!all_bytes(p + pages(b->g->buffers.at[i].bytes), GUARD, GUARD_BYTE))
			rc = wrong(b, i, "was written beyond its ends", err);
		else
			rc = check_content(b, i, piece, err);
	}
	cpu_unmap(piece, PIECE);
	return rc;
}
