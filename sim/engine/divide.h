/*
 * divide.h - a model divided over the first n GPUs: what engines with tensor parallelism (sim/exec/ranks.h) share when they
 * place it. With one GPU everything is simply there.
 */
#ifndef SIM_ENGINE_DIVIDE_H
#define SIM_ENGINE_DIVIDE_H

#include "sim/engine/engine_table.h"

/* place_init, and p->rows with n equal shares. flag: what asked for so many, for the message when there are fewer or heads
   cannot be divided over them. */
int divide_init(struct placement *p, const struct engine_job *job, uint64_t n, const char *flag, struct arena *a,
	struct err *err);
/* On the GPUs; in another memory, from where away (PLACE_STREAMED, PLACE_ZERO_COPY; the same for all) gets it to them. */
struct place_spot divide_here(const struct placement *p);
struct place_spot divide_away(struct placement *p, int memory, enum place_mode away);
/* All tensors and caches on the GPUs; layers that only speculation runs are not loaded. */
void divide_resident(struct placement *p);
/* The socket whose memory each GPU's process has: "0 1", as numactl binds them; "" leaves it to the machine (ram.numa). flag:
   whose text it is. */
int divide_bind(struct placement *p, const char *sockets, const char *flag, struct err *err);
/* So much on each GPU. */
void divide_book(struct placement *p, enum ledger_category c, const char *what, uint64_t bytes);
/* No GPU lacks memory. */
bool divide_fits(const struct placement *p);
/* The least whole GiB with which all fits, when the more the better; `most` when not even that does. */
typedef bool divide_fits_fn(const void *ctx, double gib, struct arena *a);
double divide_least_gib(double most, divide_fits_fn *fits, const void *ctx, struct arena *a);
/* Bytes of a layer (n_layer: embedding and output) that have to be brought to the i-th GPU. */
double divide_streamed_bytes(const struct placement *p, int layer, int i);
/* Element types of the cache by the names that vLLM and SGLang have for them. */
int divide_kv_types(const char *name, struct kvcache_types *types, struct err *err);

#endif
