#include "base/arena.h"

#include <stdarg.h>
#include <string.h>

/* Under AddressSanitizer what was not handed out, or was taken back, is poisoned, and 16 poisoned bytes
   stand between allocations; so an overrun inside a block is found as one of malloc's would be. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define GUARD_BYTES 16
#define POISON(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
#define GUARD_BYTES 0
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#define ALIGN 16
#define FIRST_BYTES ((size_t)16 * 1024)

struct arena_block {
	struct arena_block *prev; /* older block */
	size_t cap;               /* bytes in data */
	size_t used;              /* of them handed out */
	size_t reserved;          /* keeps data on 16 bytes */
	_Alignas(ALIGN) char data[];
};

void arena_init(struct arena *a, arena_nomem_fn *nomem, void *ctx)
{
	*a = (struct arena){.nomem = nomem, .nomem_ctx = ctx};
}

static void free_block(struct arena *a, struct arena_block *b)
{
	a->total_bytes -= sizeof(*b) + b->cap;
	UNPOISON(b->data, b->cap);
	free(b);
}

static void free_spare(struct arena *a)
{
	if (a->spare)
		free_block(a, a->spare);
	a->spare = NULL;
}

/* Who rewinds and takes again, a thousand times a second, gets the same memory: fresh pages cost more than the work. */
static void take_back(struct arena *a, struct arena_block *b)
{
	struct arena_block *smaller = a->spare && a->spare->cap >= b->cap ? b : a->spare;

	if (smaller != b)
		a->spare = b;
	if (smaller)
		free_block(a, smaller);
	POISON(a->spare->data, a->spare->cap);
}

void arena_release(struct arena *a)
{
	while (a->head) {
		struct arena_block *b = a->head;
		a->head = b->prev;
		free_block(a, b);
	}
	free_spare(a);
}

void arena_reset(struct arena *a)
{
	if (a->spare) {
		a->spare->prev = a->head;
		a->head = a->spare;
		a->spare = NULL;
	}

	struct arena_block *keep = a->head;
	for (struct arena_block *b = a->head; b; b = b->prev)
		if (b->cap > keep->cap)
			keep = b;
	while (a->head) {
		struct arena_block *b = a->head;
		a->head = b->prev;
		if (b != keep)
			free_block(a, b);
	}
	if (keep) {
		keep->prev = NULL;
		keep->used = 0;
		POISON(keep->data, keep->cap);
		a->head = keep;
	}
}

struct arena_mark arena_mark(const struct arena *a)
{
	return (struct arena_mark){a->head, a->head ? a->head->used : 0};
}

void arena_rewind(struct arena *a, struct arena_mark mark)
{
	while (a->head != mark.block) {
		struct arena_block *b = a->head;
		if (!b)
			BUG("arena_rewind to a mark of another arena, or one from before a reset");
		a->head = b->prev;
		take_back(a, b);
	}
	if (!a->head) {
		free_spare(a);
		return;
	}
	if (mark.used > a->head->used)
		BUG("arena_rewind forwards");
	/* No further than was used: what is behind is poisoned, and may be large. */
	POISON(a->head->data + mark.used, a->head->used - mark.used);
	a->head->used = mark.used;
}

_Noreturn static void out_of_memory(struct arena *a)
{
	if (a->nomem)
		a->nomem(a->nomem_ctx);
	BUG("out of memory");
}

static struct arena_block *new_block(struct arena *a, size_t cap)
{
	if (cap > SIZE_MAX - sizeof(struct arena_block))
		return NULL;
	struct arena_block *b = malloc(sizeof(*b) + cap);
	if (!b)
		return NULL;
	b->prev = a->head;
	b->cap = cap;
	b->used = 0;
	b->reserved = 0;
	POISON(b->data, cap);
	a->head = b;
	a->total_bytes += sizeof(*b) + cap;
	return b;
}

/* A block for need bytes: twice the last one, or only as large as it must be when that much is not there. */
static struct arena_block *grow(struct arena *a, size_t need)
{
	size_t cap = FIRST_BYTES;

	if (a->head && a->head->cap <= SIZE_MAX / 2)
		cap = a->head->cap * 2;
	if (cap < need)
		cap = need;
	if (a->spare && a->spare->cap >= need) {
		struct arena_block *spare = a->spare;
		a->spare = NULL;
		spare->prev = a->head;
		spare->used = 0;
		a->head = spare;
		return spare;
	}
	struct arena_block *b = new_block(a, cap);
	if (!b && cap > need)
		b = new_block(a, need);
	if (!b)
		out_of_memory(a);
	return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
	if (size > SIZE_MAX - 2 * ALIGN - GUARD_BYTES)
		out_of_memory(a);
	size_t need = (size + GUARD_BYTES + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!need)
		need = ALIGN; /* no two allocations share an address */
	struct arena_block *b = a->head;
	if (!b || b->cap - b->used < need)
		b = grow(a, need);
	char *p = b->data + b->used;
	b->used += need;
	UNPOISON(p, size);
	memset(p, 0, size);
	return p;
}

void *arena_alloc_array(struct arena *a, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		out_of_memory(a);
	return arena_alloc(a, bytes);
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	n = strnlen(s, n);
	char *copy = arena_alloc(a, n + 1);
	memcpy(copy, s, n);
	return copy;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		BUG("arena_printf cannot format '%s'", fmt);
	char *s = arena_alloc(a, (size_t)n + 1);
	vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(again);
	return s;
}
