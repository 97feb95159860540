/*
 * ledger.c - bytes booked per memory and category.
 */
#include "models/ledger.h"

#include <string.h>

#include "models/sat.h"

static const char *const category_names[LEDGER_CATEGORY_N] = {
	[LEDGER_WEIGHTS] = "weights",
	[LEDGER_KV] = "kv",
	[LEDGER_ACTIVATION] = "activation",
	[LEDGER_OVERHEAD] = "overhead",
};

static const struct ledger_row *row_at(const struct ledger *l, int memory)
{
	if (memory < 0 || memory >= l->n)
		BUG("ledger has no memory %d", memory);
	return &l->row[memory];
}

void ledger_init(struct ledger *l)
{
	memset(l, 0, sizeof(*l));
}

int ledger_add_memory(struct ledger *l, const char *name, uint64_t capacity_bytes)
{
	struct ledger_row *row;

	if (l->n == LEDGER_MAX_MEMORIES)
		BUG("more than %d memories in a ledger", LEDGER_MAX_MEMORIES);
	row = &l->row[l->n];
	snprintf(row->name, sizeof(row->name), "%s", name);
	row->capacity_bytes = capacity_bytes;
	return l->n++;
}

/* The line of that name, made when it is new; NULL when there is no room: the sum counts all the same. */
static struct ledger_line *line_at(struct ledger *l, int memory, enum ledger_category c, const char *what)
{
	for (int i = 0; i < l->n_lines; i++) {
		struct ledger_line *line = &l->line[i];
		if (line->memory == memory && line->category == c && strcmp(line->what, what) == 0)
			return line;
	}
	if (l->n_lines == LEDGER_MAX_LINES)
		return NULL;

	struct ledger_line *line = &l->line[l->n_lines++];
	*line = (struct ledger_line){.memory = memory, .category = c};
	snprintf(line->what, sizeof(line->what), "%s", what);
	return line;
}

void ledger_book(struct ledger *l, int memory, enum ledger_category c, const char *what, uint64_t bytes)
{
	row_at(l, memory);
	if ((unsigned)c >= LEDGER_CATEGORY_N)
		BUG("no ledger category %d", (int)c);

	uint64_t *used = &l->row[memory].used_bytes[c];
	*used = sat_add(*used, bytes);
	if (bytes == 0)
		return;
	struct ledger_line *line = line_at(l, memory, c, what ? what : category_names[c]);
	if (line)
		line->bytes = sat_add(line->bytes, bytes);
}

void ledger_move(struct ledger *l, int from, int to, enum ledger_category c, uint64_t bytes)
{
	struct ledger_line *line = line_at(l, from, c, category_names[c]);

	if (l->row[from].used_bytes[c] < bytes || !line || line->bytes < bytes)
		BUG("'%s' does not hold so many bytes of %s", row_at(l, from)->name, category_names[c]);
	l->row[from].used_bytes[c] -= bytes;
	line->bytes -= bytes;
	ledger_book(l, to, c, NULL, bytes);
}

uint64_t ledger_used(const struct ledger *l, int memory)
{
	const struct ledger_row *row = row_at(l, memory);
	uint64_t sum = 0;

	for (int c = 0; c < LEDGER_CATEGORY_N; c++)
		sum = sat_add(sum, row->used_bytes[c]);
	return sum;
}

uint64_t ledger_free(const struct ledger *l, int memory)
{
	uint64_t used = ledger_used(l, memory), capacity = l->row[memory].capacity_bytes;

	return used < capacity ? capacity - used : 0;
}

uint64_t ledger_missing(const struct ledger *l, int memory)
{
	uint64_t used = ledger_used(l, memory), capacity = l->row[memory].capacity_bytes;

	return used > capacity ? used - capacity : 0;
}

bool ledger_fits(const struct ledger *l)
{
	for (int i = 0; i < l->n; i++) {
		if (ledger_missing(l, i))
			return false;
	}
	return true;
}

const char *ledger_category_name(enum ledger_category c)
{
	return (unsigned)c < LEDGER_CATEGORY_N ? category_names[c] : "?";
}
