#include "base/suggest.h"

#include "tests/test.h"

static const char *nearest(const char *word, const char *const *from)
{
	struct suggest s;

	suggest_init(&s, word);
	for (; *from; from++)
		suggest_offer(&s, *from);
	return suggest_best(&s);
}

static const char *const keys[] = {"bandwidth", "latency", "capacity", "link", "batch", "kv_type", NULL};

START_TEST(near_words)
{
	ck_assert_str_eq(nearest("bandwidht", keys), "bandwidth"); /* neighbours swapped */
	ck_assert_str_eq(nearest("bandwith", keys), "bandwidth");
	ck_assert_str_eq(nearest("latencyy", keys), "latency");
	ck_assert_str_eq(nearest("BATCH", keys), "batch");
	ck_assert_str_eq(nearest("kv-type", keys), "kv_type");
	ck_assert_str_eq(nearest("lnk", keys), "link");
	ck_assert_str_eq(nearest("batch", keys), "batch");
}
END_TEST

START_TEST(common_beginnings)
{
	ck_assert_str_eq(nearest("band", keys), "bandwidth");
	ck_assert_str_eq(nearest("capacity_bytes", keys), "capacity");
}
END_TEST

START_TEST(far_words)
{
	ck_assert_ptr_null(nearest("temperature", keys));
	ck_assert_ptr_null(nearest("", keys));
	ck_assert_ptr_null(nearest("x", keys));
	ck_assert_ptr_null(nearest("zz", (const char *const[]){"ab", NULL})); /* nothing of it would remain */
	ck_assert_ptr_null(nearest("batch", (const char *const[]){NULL}));
}
END_TEST

START_TEST(order_of_preference)
{
	/* The word as a beginning, one edit, a beginning of the word, two edits; ties go to the first. */
	ck_assert_str_eq(nearest("quant", (const char *const[]){"quint", "quantum_x", NULL}), "quantum_x");
	ck_assert_str_eq(nearest("quantum", (const char *const[]){"quant", "quintum", NULL}), "quintum");
	ck_assert_str_eq(nearest("quantum", (const char *const[]){"quintom", "quant", NULL}), "quant");
	ck_assert_str_eq(nearest("quant", (const char *const[]){"quabc", "quantum_x", NULL}), "quantum_x");
	ck_assert_str_eq(nearest("bat", (const char *const[]){"cat", "hat", NULL}), "cat");
}
END_TEST

START_TEST(long_words)
{
	char longer[400], other[400];

	memset(longer, 'q', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	memcpy(other, longer, sizeof(other));
	other[200] = 'z';
	ck_assert_ptr_null(nearest(longer, (const char *const[]){other, NULL}));
	ck_assert_str_eq(nearest(longer, (const char *const[]){"qqq", NULL}), "qqq");
	ck_assert_str_eq(nearest(longer, (const char *const[]){longer, NULL}), longer);
}
END_TEST

START_TEST(text)
{
	struct suggest s;
	char buf[64], tiny[10];

	suggest_init(&s, "batc");
	ck_assert_str_eq(suggest_text(&s, buf, sizeof(buf)), "");
	suggest_offer(&s, "batch");
	ck_assert_str_eq(suggest_text(&s, buf, sizeof(buf)), "; did you mean 'batch'?");
	ck_assert_str_eq(suggest_text(&s, tiny, sizeof(tiny)), "; did you");
	suggest_text(&s, tiny, 0);
}
END_TEST

TEST_MAIN("suggest", near_words, common_beginnings, far_words, order_of_preference, long_words, text)
