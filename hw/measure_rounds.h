/*
 * measure_rounds.h - inside hw/measure*: what the parts share.
 */
#ifndef HW_MEASURE_ROUNDS_H
#define HW_MEASURE_ROUNDS_H

#include "hw/measure.h"

/* One measurement under way. */
struct measure {
	const struct measure_options *o;
	struct arena *a;
	struct measurement *out;
	unsigned threads;
	double part_begin_share, part_share; /* of all progress */
	void *probe_memory;
	size_t probe_bytes;
};

/* The compiler must work out x, though nobody reads it. */
#define MEASURE_KEEP(x) __asm__ volatile("" : : "m"(x))

double measure_now(void); /* seconds of a clock that only goes forward */

/* Memory of the system's own, huge pages advised, zeroed. node: bound to this NUMA node (the system's number), -1:
   wherever its first user runs. NULL when there is none. */
void *measure_map(size_t bytes, int node);
void measure_unmap(void *p, size_t bytes);

/* What each thread does until the clock passes `until`; returns how much it did. */
typedef double measure_work_fn(void *ctx, unsigned thread, double until);

/* Does it in n threads, each on a processor of its own, begun together. cpu[i] is thread i's processor. */
struct measure_rates {
	double each;     /* the sum of what each did a second of its own time; -1: the threads could not be had */
	double together; /* what all did a second, from the first start to the last end */
};
struct measure_rates measure_parallel(const int *cpu, unsigned n, double seconds, measure_work_fn *fn, void *ctx);

/* A repetition in slices: its rate is their median. A thread that has to give its processor to another process, often
   for longer than the whole repetition, loses one slice by it and no more. */
#define MEASURE_SLICES 256
struct measure_slices {
	double begin, last;
	double rate[MEASURE_SLICES]; /* the latest */
	size_t n;                    /* so far */
};
void measure_slices_begin(struct measure_slices *s);
double measure_slices_add(struct measure_slices *s, double amount); /* done since the last one; returns the time */
double measure_slices_end(struct measure_slices *s); /* what a measure_work_fn returns: median rate x time */

/* Something to measure once a round: in `seconds`, about. Returns the number, or a negative one with err set. */
struct measure_item;
typedef double measure_item_fn(void *ctx, const struct measure_item *item, double seconds, struct err *err);
struct measure_item {
	const char *name, *what;
	enum unit_dim dim;
	measure_item_fn *fn;
	int arg[4]; /* the part's own */
	double least_s; /* a repetition shorter than this would say nothing; 0: any will do */
};

/* Rounds over all items for about seconds, and no fewer than three; the numbers are appended to the measurement. */
int measure_rounds(struct measure *m, enum measure_part part, const struct measure_item *item, size_t n, double seconds,
		   void *ctx, struct err *err);

void measure_note(struct measure *m, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A line through samples, appended when there is one. derived is made from it by the caller afterwards. */
struct measure_fit *measure_add_fit(struct measure *m, enum measure_part part, const char *name, const char *what,
				    const double *x, const double *y, const double *scale, size_t n);

int measure_ram(struct measure *m, double seconds, struct err *err);
int measure_cpu(struct measure *m, double seconds, struct err *err);

/* The drive is opened before anything is measured: a minute is too long to hear of a misspelt folder. */
struct measure_drive;
int measure_drive_open(struct measure *m, double seconds, struct measure_drive **out, struct err *err);
void measure_drive_close(struct measure_drive *d); /* NULL is allowed */
int measure_disk(struct measure *m, struct measure_drive *d, double seconds, struct err *err);

/* Text as a YAML scalar in double quotes. */
char *measure_quoted(struct arena *a, const char *text);

#endif
