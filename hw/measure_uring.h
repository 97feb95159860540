/*
 * measure_uring.h - asynchronous reads by io_uring, through its system calls.
 *
 * Reading needs three calls and two rings of shared memory; that is less than depending on a library for it. Containers
 * often forbid the calls: uring_open then fails and the caller reads with threads.
 */
#ifndef HW_MEASURE_URING_H
#define HW_MEASURE_URING_H

#include "base/base.h"

struct uring;

/* Up to `depth` reads under way; NULL when the kernel has no io_uring or does not let us (errno). */
struct uring *uring_open(unsigned depth);
void uring_close(struct uring *u); /* NULL is allowed */

/* Hands the kernel one read; tag comes back with it. No more than depth may be under way. -1: errno. */
int uring_read(struct uring *u, int fd, void *to, size_t len, uint64_t offset, unsigned tag);
/* Waits for one to end: its tag, and in *result the bytes read or a negative errno. -1: errno. */
int uring_wait(struct uring *u, unsigned *tag, int *result);

#endif
