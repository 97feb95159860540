#include "base/intern.h"

#include "base/hash.h"
#include "tests/test.h"

static uint32_t add(struct intern *t, const char *name)
{
	return intern_add(t, name, strlen(name));
}

static uint32_t find(const struct intern *t, const char *name)
{
	return intern_find(t, name, strlen(name));
}

START_TEST(numbers_by_first_sight)
{
	struct arena a;
	struct intern t;

	arena_init(&a, NULL, NULL);
	intern_init(&t, &a);
	ck_assert_uint_eq(find(&t, "pcie"), INTERN_NONE); /* nothing there yet */
	ck_assert_uint_eq(add(&t, "pcie"), 0);
	ck_assert_uint_eq(add(&t, "ram"), 1);
	ck_assert_uint_eq(add(&t, "pcie"), 0);
	ck_assert_uint_eq(add(&t, ""), 2);
	ck_assert_uint_eq(add(&t, "hbm"), 3);
	ck_assert_uint_eq(add(&t, ""), 2);
	ck_assert_uint_eq(t.n, 4);
	ck_assert_uint_eq(find(&t, "ram"), 1);
	ck_assert_uint_eq(find(&t, ""), 2);
	ck_assert_uint_eq(find(&t, "nvme"), INTERN_NONE);
	ck_assert_uint_eq(t.n, 4); /* looking adds nothing */
	ck_assert_str_eq(t.name[0], "pcie");
	ck_assert_str_eq(t.name[2], "");
	arena_release(&a);
}
END_TEST

START_TEST(beginnings_are_other_names)
{
	struct arena a;
	struct intern t;
	char text[] = "pcie.h2d";

	arena_init(&a, NULL, NULL);
	intern_init(&t, &a);
	/* Pieces of one text, none with a NUL behind it: each is a name of its own, and a copy. */
	for (uint32_t len = 8; len > 0; len--)
		ck_assert_uint_eq(intern_add(&t, text, len), 8 - len);
	memset(text, 'x', 8);
	ck_assert_uint_eq(find(&t, "pcie"), 4);
	ck_assert_uint_eq(find(&t, "pcie.h2d"), 0);
	ck_assert_uint_eq(find(&t, "pcie.h2d2"), INTERN_NONE);
	ck_assert_uint_eq(find(&t, "p"), 7);
	ck_assert_str_eq(t.name[4], "pcie");
	arena_release(&a);
}
END_TEST

START_TEST(a_name_ends_at_a_nul)
{
	/* Bytes from a file may hold one. The copy ends there, and so does what is compared. */
	struct arena a;
	struct intern t;
	static const char long_one[64] = "pcie";

	arena_init(&a, NULL, NULL);
	intern_init(&t, &a);
	ck_assert_uint_eq(intern_add(&t, "pcie\0x", 6), 0);
	ck_assert_uint_eq(intern_add(&t, "pcie\0x", 6), 0);
	ck_assert_uint_eq(intern_add(&t, "pcie\0y", 6), 0);
	ck_assert_uint_eq(intern_add(&t, long_one, 64), 0);
	ck_assert_uint_eq(add(&t, "pcie"), 0);
	ck_assert_uint_eq(intern_find(&t, "pcie\0z", 6), 0);
	ck_assert_uint_eq(intern_find(&t, "\0pcie", 5), INTERN_NONE);
	ck_assert_str_eq(t.name[0], "pcie");
	ck_assert_uint_eq(t.n, 1);
	/* Also when the table has grown. */
	for (int i = 0; i < 1000; i++)
		add(&t, arena_printf(&a, "%d", i));
	ck_assert_uint_eq(intern_find(&t, "pcie\0x", 6), 0);
	arena_release(&a);
}
END_TEST

START_TEST(many)
{
	struct arena a;
	struct intern t;
	char name[32];
	const uint32_t n = 100000;

	arena_init(&a, NULL, NULL);
	intern_init(&t, &a);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "layer.%u.ffn_%u", i / 7, i % 7);
		ck_assert_uint_eq(add(&t, name), i);
	}
	ck_assert_uint_eq(t.n, n);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "layer.%u.ffn_%u", i / 7, i % 7);
		ck_assert_uint_eq(find(&t, name), i);
		ck_assert_str_eq(t.name[i], name);
		snprintf(name, sizeof(name), "layer.%u.ffn_%u", i / 7, 7 + i % 7);
		ck_assert_uint_eq(find(&t, name), INTERN_NONE);
	}
	arena_release(&a);
}
END_TEST

START_TEST(names_that_collide)
{
	/* Thirty names of one slot of the first table, the last one, so that they run on at its front. */
	struct arena a;
	struct intern t;
	char name[30][16];
	uint32_t n = 0;

	arena_init(&a, NULL, NULL);
	intern_init(&t, &a);
	for (int i = 0; n < 30; i++) {
		snprintf(name[n], sizeof(name[n]), "n%d", i);
		if ((hash_bytes(HASH_INIT, name[n], strlen(name[n])) & 63) == 63)
			n++;
	}
	for (uint32_t i = 0; i < n; i++)
		ck_assert_uint_eq(add(&t, name[i]), i);
	ck_assert_uint_eq(t.n_slots, 64); /* else the case is not what it says */
	for (uint32_t i = 0; i < n; i++) {
		ck_assert_uint_eq(add(&t, name[i]), i);
		ck_assert_uint_eq(find(&t, name[i]), i);
	}
	ck_assert_uint_eq(find(&t, "x"), INTERN_NONE);
	arena_release(&a);
}
END_TEST

TEST_MAIN("intern", numbers_by_first_sight, beginnings_are_other_names, a_name_ends_at_a_nul, many,
	names_that_collide)
