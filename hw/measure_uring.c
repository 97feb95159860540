#include "hw/measure_uring.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ring {
	char *at;
	size_t bytes;
};

struct uring {
	int fd;
	struct ring submit, complete;
	struct io_uring_sqe *sqe;
	size_t sqe_bytes;
	/* inside the rings */
	unsigned *submit_tail, *submit_mask, *submit_index;
	unsigned *complete_head, *complete_tail, *complete_mask;
	struct io_uring_cqe *cqe;
};

static void *map(int fd, size_t bytes, uint64_t offset)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, (off_t)offset);

	return p == MAP_FAILED ? NULL : p;
}

static int map_rings(struct uring *u, const struct io_uring_params *p)
{
	u->submit.bytes = p->sq_off.array + p->sq_entries * sizeof(unsigned);
	u->complete.bytes = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	u->sqe_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
	u->submit.at = map(u->fd, u->submit.bytes, IORING_OFF_SQ_RING);
	u->complete.at = map(u->fd, u->complete.bytes, IORING_OFF_CQ_RING);
	u->sqe = map(u->fd, u->sqe_bytes, IORING_OFF_SQES);
	if (!u->submit.at || !u->complete.at || !u->sqe)
		return -1;
	u->submit_tail = (unsigned *)(void *)(u->submit.at + p->sq_off.tail);
	u->submit_mask = (unsigned *)(void *)(u->submit.at + p->sq_off.ring_mask);
	u->submit_index = (unsigned *)(void *)(u->submit.at + p->sq_off.array);
	u->complete_head = (unsigned *)(void *)(u->complete.at + p->cq_off.head);
	u->complete_tail = (unsigned *)(void *)(u->complete.at + p->cq_off.tail);
	u->complete_mask = (unsigned *)(void *)(u->complete.at + p->cq_off.ring_mask);
	u->cqe = (struct io_uring_cqe *)(void *)(u->complete.at + p->cq_off.cqes);
	return 0;
}

struct uring *uring_open(unsigned depth)
{
	struct io_uring_params p = {0};
	struct uring *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->fd = (int)syscall(SYS_io_uring_setup, depth, &p);
	if (u->fd < 0 || map_rings(u, &p)) {
		int why = errno;
		uring_close(u);
		errno = why;
		return NULL;
	}
	return u;
}

void uring_close(struct uring *u)
{
	if (!u)
		return;
	if (u->submit.at)
		munmap(u->submit.at, u->submit.bytes);
	if (u->complete.at)
		munmap(u->complete.at, u->complete.bytes);
	if (u->sqe)
		munmap(u->sqe, u->sqe_bytes);
	if (u->fd >= 0)
		close(u->fd);
	free(u);
}

static int enter(struct uring *u, unsigned submit, unsigned wait)
{
	int n;

	do
		n = (int)syscall(
			SYS_io_uring_enter, u->fd, submit, wait, wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -1 : 0;
}

int uring_read(struct uring *u, int fd, void *to, size_t len, uint64_t offset, unsigned tag)
{
	unsigned tail = *u->submit_tail, slot = tail & *u->submit_mask;
	struct io_uring_sqe *e = &u->sqe[slot];

	memset(e, 0, sizeof(*e));
	e->opcode = IORING_OP_READ;
	e->fd = fd;
	e->addr = (uint64_t)(uintptr_t)to;
	e->len = (unsigned)len;
	e->off = offset;
	e->user_data = tag;
	u->submit_index[slot] = slot;
	__atomic_store_n(u->submit_tail, tail + 1, __ATOMIC_RELEASE);
	return enter(u, 1, 0);
}

int uring_wait(struct uring *u, unsigned *tag, int *result)
{
	unsigned head = *u->complete_head;

	while (head == __atomic_load_n(u->complete_tail, __ATOMIC_ACQUIRE))
		if (enter(u, 0, 1))
			return -1;
	const struct io_uring_cqe *e = &u->cqe[head & *u->complete_mask];
	*tag = (unsigned)e->user_data;
	*result = e->res;
	__atomic_store_n(u->complete_head, head + 1, __ATOMIC_RELEASE);
	return 0;
}
