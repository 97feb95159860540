#include "base/arena.h"

#include <setjmp.h>

#include "base/vec.h"
#include "tests/test.h"

/* Under AddressSanitizer, let malloc fail as it does without. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void jump_out(void *ctx)
{
	longjmp(*(jmp_buf *)ctx, 1);
}

START_TEST(zeroed_and_aligned)
{
	struct arena a;

	arena_init(&a, NULL, NULL);
	for (size_t size = 0; size < 3000; size += 7) {
		unsigned char *p = arena_alloc(&a, size);
		ck_assert_uint_eq((uintptr_t)p % 16, 0);
		for (size_t i = 0; i < size; i++)
			ck_assert_uint_eq(p[i], 0);
		memset(p, 0xa5, size);
	}
	/* Reused memory is zeroed too. */
	arena_reset(&a);
	unsigned char *q = arena_alloc(&a, 20000);
	for (size_t i = 0; i < 20000; i++)
		ck_assert_uint_eq(q[i], 0);
	arena_release(&a);
	ck_assert_uint_eq(a.total_bytes, 0);
}
END_TEST

START_TEST(neighbours_do_not_overlap)
{
	struct arena a;
	char *p[500];

	arena_init(&a, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(p); i++) {
		p[i] = arena_alloc(&a, i * 3 + 1);
		memset(p[i], (int)(i & 0x7f), i * 3 + 1);
	}
	for (size_t i = 0; i < ARRAY_LEN(p); i++)
		for (size_t j = 0; j < i * 3 + 1; j++)
			ck_assert_int_eq(p[i][j], (char)(i & 0x7f));
	ck_assert_ptr_ne(arena_alloc(&a, 0), arena_alloc(&a, 0));
	arena_release(&a);
}
END_TEST

START_TEST(rewind_gives_back)
{
	struct arena a;

	arena_init(&a, NULL, NULL);
	struct arena_mark empty = arena_mark(&a);
	char *kept = arena_strdup(&a, "kept");
	size_t before = a.total_bytes;
	struct arena_mark mark = arena_mark(&a);
	char *next = arena_alloc(&a, 100);
	arena_alloc(&a, 1 << 20);
	ck_assert_uint_gt(a.total_bytes, before + (1 << 20));
	arena_alloc(&a, 3 << 20);
	arena_rewind(&a, mark);
	ck_assert_uint_lt(a.total_bytes, before + (4 << 20)); /* the smaller block went */
	ck_assert_ptr_eq(arena_alloc(&a, 100), next);
	ck_assert_str_eq(kept, "kept");
	arena_rewind(&a, empty);
	ck_assert_uint_eq(a.total_bytes, 0);
	ck_assert_ptr_null(a.head);
	ck_assert_str_eq(arena_strdup(&a, "again"), "again");
	arena_release(&a);
}
END_TEST

/* Rewinding a thousand times costs no thousand blocks of the system, and what is handed out again is zero. */
START_TEST(rewound_memory_comes_again)
{
	struct arena a;
	size_t most = 0;
	char *first = NULL;

	arena_init(&a, NULL, NULL);
	arena_strdup(&a, "kept");
	for (int round = 0; round < 5; round++) {
		struct arena_mark mark = arena_mark(&a);
		char *block = arena_alloc(&a, 700001);
		for (size_t i = 0; i < 700001; i += 1009)
			ck_assert_int_eq(block[i], 0);
		memset(block, 0x5a, 700001);
		if (round == 0) {
			first = block;
			most = a.total_bytes;
		}
		ck_assert_ptr_eq(block, first);
		ck_assert_uint_eq(a.total_bytes, most);
		arena_rewind(&a, mark);
	}
	arena_reset(&a);
	ck_assert_ptr_null(a.spare);
	ck_assert_ptr_eq(arena_alloc(&a, 700001), first); /* the largest of all stays */
	arena_release(&a);
	ck_assert_uint_eq(a.total_bytes, 0);
}
END_TEST

START_TEST(reset_keeps_the_largest)
{
	struct arena a;

	arena_init(&a, NULL, NULL);
	for (int i = 0; i < 1000; i++)
		arena_alloc(&a, 1000);
	arena_reset(&a);
	size_t kept = a.total_bytes;
	ck_assert_uint_gt(kept, 256 * 1024);
	for (int run = 0; run < 10; run++) {
		for (int i = 0; i < 200; i++)
			arena_alloc(&a, 1000);
		ck_assert_uint_eq(a.total_bytes, kept);
		arena_reset(&a);
	}
	arena_release(&a);
	arena_reset(&a); /* nothing there: nothing to do */
	arena_release(&a);
}
END_TEST

START_TEST(too_much_calls_the_handler)
{
	struct arena a;
	jmp_buf out;
	volatile int caught = 0;

	arena_init(&a, jump_out, &out);
	if (setjmp(out))
		caught++;
	else
		arena_alloc_array(&a, SIZE_MAX / 2, 3); /* overflows to a small number */
	if (setjmp(out))
		caught++;
	else
		arena_alloc(&a, SIZE_MAX - 3);
	if (setjmp(out))
		caught++;
	else
		arena_alloc(&a, SIZE_MAX / 2 - 64);
	ck_assert_int_eq(caught, 3);
	ck_assert_str_eq(arena_strdup(&a, "still works"), "still works");
	arena_release(&a);
}
END_TEST

START_TEST(strings)
{
	struct arena a;
	char longer[5000];

	arena_init(&a, NULL, NULL);
	ck_assert_str_eq(arena_strndup(&a, "abcdef", 3), "abc");
	ck_assert_str_eq(arena_strndup(&a, "ab", 100), "ab");
	ck_assert_str_eq(arena_strndup(&a, (const char[]){'x', 'y'}, 2), "xy"); /* no NUL behind it */
	ck_assert_str_eq(arena_strdup(&a, ""), "");
	ck_assert_str_eq(arena_printf(&a, "%s-%.3f", "q", 2.385), "q-2.385");
	memset(longer, 'w', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	ck_assert_uint_eq(strlen(arena_printf(&a, "%s%s", longer, longer)), 2 * sizeof(longer) - 2);
	arena_release(&a);
}
END_TEST

START_TEST(vectors_grow)
{
	struct arena a;
	struct {
		VEC(double);
	} v = {0};

	arena_init(&a, NULL, NULL);
	for (int i = 0; i < 10000; i++)
		VEC_PUSH(&v, &a, i * 2.385);
	ck_assert_uint_eq(v.n, 10000);
	for (int i = 0; i < 10000; i++)
		assert_close(v.at[i], i * 2.385, 0);
	arena_release(&a);
}
END_TEST

TEST_MAIN("arena", zeroed_and_aligned, neighbours_do_not_overlap, rewind_gives_back, rewound_memory_comes_again,
	reset_keeps_the_largest, too_much_calls_the_handler, strings, vectors_grow)
