#include "models/ledger.h"

#include "tests/test.h"

START_TEST(booking)
{
	struct ledger l;
	int vram, ram;

	ledger_init(&l);
	ck_assert(ledger_fits(&l));
	vram = ledger_add_memory(&l, "gpu0", 1000);
	ram = ledger_add_memory(&l, "ram", 5000);
	ck_assert_int_eq(vram, 0);
	ck_assert_int_eq(ram, 1);
	ledger_book(&l, vram, LEDGER_WEIGHTS, NULL, 300);
	ledger_book(&l, vram, LEDGER_WEIGHTS, NULL, 200);
	ledger_book(&l, vram, LEDGER_KV, NULL, 400);
	ck_assert_uint_eq(l.row[vram].used_bytes[LEDGER_WEIGHTS], 500);
	ck_assert_uint_eq(ledger_used(&l, vram), 900);
	ck_assert_uint_eq(ledger_free(&l, vram), 100);
	ck_assert_uint_eq(ledger_missing(&l, vram), 0);
	ck_assert_uint_eq(ledger_used(&l, ram), 0);
	ck_assert_str_eq(l.row[ram].name, "ram");
}
END_TEST

START_TEST(full_to_the_byte_fits)
{
	struct ledger l;

	ledger_init(&l);
	ledger_add_memory(&l, "gpu0", 1000);
	ledger_book(&l, 0, LEDGER_OVERHEAD, NULL, 1000);
	ck_assert(ledger_fits(&l));
	ck_assert_uint_eq(ledger_free(&l, 0), 0);
	ledger_book(&l, 0, LEDGER_ACTIVATION, NULL, 1);
	ck_assert(!ledger_fits(&l));
	ck_assert_uint_eq(ledger_missing(&l, 0), 1);
	ck_assert_uint_eq(ledger_free(&l, 0), 0);
}
END_TEST

START_TEST(sums_saturate)
{
	struct ledger l;

	ledger_init(&l);
	ledger_add_memory(&l, "a name that is longer than a row has room for", UINT64_MAX - 1);
	ledger_book(&l, 0, LEDGER_KV, NULL, UINT64_MAX);
	ledger_book(&l, 0, LEDGER_KV, NULL, UINT64_MAX);
	ledger_book(&l, 0, LEDGER_WEIGHTS, NULL, 5);
	ck_assert_uint_eq(ledger_used(&l, 0), UINT64_MAX);
	ck_assert_uint_eq(ledger_missing(&l, 0), 1);
	ck_assert_uint_eq(strlen(l.row[0].name), sizeof(l.row[0].name) - 1);
}
END_TEST

START_TEST(as_many_as_there_is_room_for)
{
	struct ledger l;

	ledger_init(&l);
	for (int i = 0; i < LEDGER_MAX_MEMORIES; i++)
		ck_assert_int_eq(ledger_add_memory(&l, "m", 1), i);
	ledger_book(&l, LEDGER_MAX_MEMORIES - 1, LEDGER_KV, NULL, 2);
	ck_assert(!ledger_fits(&l));
}
END_TEST

START_TEST(names)
{
	ck_assert_str_eq(ledger_category_name(LEDGER_WEIGHTS), "weights");
	ck_assert_str_eq(ledger_category_name(LEDGER_KV), "kv");
	ck_assert_str_eq(ledger_category_name(LEDGER_ACTIVATION), "activation");
	ck_assert_str_eq(ledger_category_name(LEDGER_OVERHEAD), "overhead");
}
END_TEST

TEST_MAIN("ledger", booking, full_to_the_byte_fits, sums_saturate, as_many_as_there_is_room_for, names)
