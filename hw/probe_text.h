/*
 * probe_text.h - inside hw/probe*: texts of other programs, line by line, and the parsers of each.
 *
 * Nothing in these texts is trusted: what is odd is passed over. No parser fails.
 */
#ifndef HW_PROBE_TEXT_H
#define HW_PROBE_TEXT_H

#include "hw/probe.h"

/* The next line of *at, in the arena, without blanks at its ends and with what is not printable ASCII as '?' (terminal
   escapes dropped; a tab is kept as such); NULL at the end. */
char *probe_line(const char **at, struct arena *a);
/* Splits "Key : value" in place: the key is line itself, the value is returned; NULL when there is no colon. */
char *probe_value(char *line);
/* A whole number at the start of text, at most max; 0 when there is none. */
uint64_t probe_count(const char *text, uint64_t max);
/* A number at the start of text; 0 when there is none, or it is not above 0 and finite. */
double probe_number(const char *text);
/* "32 GB", "4096 MB", "24564 MiB", "32768K": powers of 1024 all; 0 when it is no size. */
uint64_t probe_size(const char *text);
/* "0-3,8" as flags; how many. Numbers from n on are left out. set may be NULL. */
unsigned probe_cpu_list(const char *text, bool *set, unsigned n);

#define PROBE_MAX_CPUS 8192u
#define PROBE_MAX_BYTES ((uint64_t)1 << 50) /* of one memory or drive: more is a mistake */
#define PROBE_MAX_SOCKETS 64u

/* One processor thread, while texts are read. */
struct probe_thread {
	bool listed, allowed;
	int package, core; /* -1 when unknown */
};

struct probe_threads {
	struct probe_thread *at; /* PROBE_MAX_CPUS */
	unsigned n;              /* highest listed + 1 */
};

/* /proc/cpuinfo */
void probe_parse_cpuinfo(struct probe *p, struct probe_threads *t, const char *text);
/* Cpus_allowed_list of /proc/self/status: others are not ours. */
void probe_parse_allowed(struct probe_threads *t, const char *text, struct arena *a);
/* Sockets, cores and threads from the list. */
void probe_count_threads(struct probe *p, const struct probe_threads *t);
void probe_parse_meminfo(struct probe *p, const char *text);
/* What a file of memory.stat says is page cache. */
uint64_t probe_parse_page_cache(const char *text, struct arena *a);
/* dmidecode -t 17 */
void probe_parse_dmidecode(struct probe *p, const char *text);
/* nvidia-smi --query-gpu=… --format=csv, any columns in any order */
void probe_parse_query_gpu(struct probe *p, const char *text);
/* nvidia-smi topo -m */
void probe_parse_topology(struct probe *p, const char *text);
/* The name that pci.ids has for a device: "AD102 [GeForce RTX 4090]"; NULL when it has none. */
const char *probe_parse_pci_ids(const char *text, unsigned vendor, unsigned device, struct arena *a);

/* ---- where texts come from ---- */

struct probe_source {
	const char *root; /* NULL: this machine */
	struct arena *a;
};

/* The text of root/PATH; NULL when there is none. */
const char *probe_file(const struct probe_source *s, const char *path);
/* The same as its first line; "" when there is none. */
const char *probe_word(const struct probe_source *s, const char *path);
/* Names in a folder, sorted as people count (nvme2 before nvme10); n is 0 when there is none. Names with blanks or
   what is not ASCII are passed over. */
const char **probe_folder(const struct probe_source *s, const char *path, size_t *n);
/* The folders of our control group and of those it is in, the innermost first, of both versions; controller is
   "memory" or "cpu". */
const char **probe_groups(const struct probe_source *s, const char *controller, size_t *n);
/* What argv prints, in English, within seconds; NULL when it is missing, fails, or does not end. In a recording: the
   text of root/recorded. */
const char *probe_program(const struct probe_source *s, const char *recorded, const char *const *argv, int seconds);

void probe_read_cpu(struct probe *p, const struct probe_source *s);
void probe_read_ram(struct probe *p, const struct probe_source *s);
void probe_read_gpus(struct probe *p, const struct probe_source *s);
void probe_read_drives(struct probe *p, const struct probe_source *s);
/* Adds the cards of /sys that nvidia-smi did not name, and what /sys knows of those it did. */
void probe_read_cards(struct probe *p, const struct probe_source *s);

void probe_note(struct probe *p, enum probe_note_kind kind, const char *about, const char *fmt, ...)
	PRINTF_LIKE(4, 5);

#endif
