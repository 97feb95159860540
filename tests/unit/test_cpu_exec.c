/*
 * test_cpu_exec.c - graphs run for real: every byte once, in order, what was copied is there, waits last as long as they
 * say. Not how fast.
 */
#include "sim/real/cpu_exec.h"

#include <signal.h>
#include <sys/time.h>

#include "tests/test.h"

#define MACHINE                                                                                                             \
	"resource 0 name=ram rate=5e9\nresource 1 name=link rate=4e9\nresource 2 name=gpu0 rate=9e9\n"                 \
	"memory 0 name=ram kind=ram\nmemory 1 name=gpu0 kind=gpu\nmemory 2 name=nvme0 kind=drive\n"                      \
	"device 0 name=cpu0 kind=cpu memory=0\ndevice 1 name=gpu0 kind=gpu memory=1\n"                                   \
	"unit 0 name=cpu0\nunit 1 name=gpu0\nunit 2 name=gpu0.copy_in\nunit 3 name=gpu0.copy_out\nunit 4 name=nvme0.read\n"

struct ran {
	struct arena a;
	struct opg *g;
	struct cpu_exec *e;
	struct cpu_exec_result r;
	struct err err;
};

static int open_graph(struct ran *ran, const char *text, const struct cpu_exec_options *o)
{
	char path[64];

	*ran = (struct ran){0};
	arena_init(&ran->a, NULL, NULL);
	test_file(path, text, strlen(text));
	assert_ok(opg_read(path, &ran->a, &ran->g, &ran->err), ran->err);
	unlink(path);
	return cpu_exec_open(ran->g, o, &ran->a, &ran->e, &ran->err);
}

static void run_graph(struct ran *ran, const char *text, const struct cpu_exec_options *o)
{
	assert_ok(open_graph(ran, text, o), ran->err);
	assert_ok(cpu_exec_run(ran->e, &ran->r, &ran->err), ran->err);
}

static void close_graph(struct ran *ran)
{
	cpu_exec_close(ran->e);
	arena_release(&ran->a);
}

static const struct cpu_exec_options here = {.dir = "."};

/* Nothing begins before what it waits for has ended, or before its unit is free; all bytes were moved. */
static void check_run(const struct ran *ran)
{
	const struct opg *g = ran->g;
	const struct cpu_exec_result *r = &ran->r;
	double free_s[8] = {0};
	bool seen[256] = {false};

	for (uint32_t i = 0; i < g->ops.n; i++) {
		uint32_t id = r->order[i];
		const struct opg_op *o = &g->ops.at[id];
		ck_assert(!seen[id]);
		seen[id] = true;
		ck_assert_msg(r->start_s[id] + sim_seconds(o->latency) <= r->end_s[id], "operation %u is too short", id);
		ck_assert_uint_eq(r->moved_bytes[id], (uint64_t)o->bytes);
		for (uint32_t k = 0; k < o->n_after; k++)
			ck_assert_msg(r->end_s[o->after[k]] <= r->start_s[id], "operation %u begins before %u ends", id,
				o->after[k]);
		if (o->unit != OPG_NONE) {
			ck_assert_msg(free_s[o->unit] <= r->start_s[id], "operation %u begins on a unit that is busy", id);
			free_s[o->unit] = r->end_s[id];
		}
	}
}

/* Layers copied to where they are computed, two staging buffers in turn, as ideal does. */
static const char streamed[] = "opg 1\nsteps count=2 first=0 end=2 ahead=1 phase=decode\n" MACHINE
	"buffer 0 memory=0 bytes=3000001 role=weights\n"
	"buffer 1 memory=0 bytes=2500000 role=weights\n"
	"buffer 2 memory=1 bytes=3000001 role=staging\n"
	"buffer 3 memory=1 bytes=2500000 role=staging\n"
	"copy 0 unit=2 stream=2 from=0 to=2 bytes=3000001 path=0:1,1:1,2:1\n"
	"copy 1 unit=2 stream=2 from=1 to=3 bytes=2500000 path=0:1,1:1,2:1 pinned=0 latency=3000000\n"
	"kernel 2 after=0 unit=1 device=1 from=2 bytes=3000001 flops=3000001 path=2:1\n"
	"kernel 3 after=1,2 unit=1 device=1 from=3 bytes=2500000 flops=250 path=2:1\n"
	"copy 4 after=2 unit=2 stream=2 from=1 to=2 bytes=2500000 path=0:1,1:1,2:1\n"
	"kernel 5 after=3,4 unit=1 device=1 from=2 bytes=2500000 path=2:1\n"
	"kernel 6 unit=0 device=0 threads=2 from=0 at=4096 bytes=2990000 flops=29900000 path=0:1\n"
	"wait 7 after=5 latency=2385000000\n"
	"join 8 after=6,7\n"
	"step 9 after=8 tokens=1\n"
	"copy 10 unit=3 stream=3 from=3 to=0 bytes=8192 path=0:1,1:1,2:1\n"
	"step 11 after=10 tokens=1\n"
	"end 12\n";

START_TEST(streaming_runs_in_order)
{
	struct ran ran;

	run_graph(&ran, streamed, &here);
	check_run(&ran);
	ck_assert(ran.r.end_s[9] <= ran.r.start_s[10]); /* ahead=1 */
	ck_assert(ran.r.end_s[7] - ran.r.start_s[7] >= 2385e-6);
	close_graph(&ran);
}
END_TEST

START_TEST(it_runs_again_and_again)
{
	struct ran ran;

	run_graph(&ran, streamed, &here);
	for (int i = 0; i < 20; i++) {
		assert_ok(cpu_exec_run(ran.e, &ran.r, &ran.err), ran.err);
		check_run(&ran);
	}
	close_graph(&ran);
}
END_TEST

START_TEST(threads_as_asked_for)
{
	for (unsigned n = 1; n <= 5; n += 2) {
		struct ran ran;
		struct cpu_exec_options o = {.threads = n, .dir = "."};

		run_graph(&ran, streamed, &o);
		check_run(&ran);
		close_graph(&ran);
	}
}
END_TEST

/* From a file into RAM, from there into a GPU's memory, directly too, and new entries back. Odd sizes, places that are no pages. */
static const char drives[] = "opg 1\nsteps count=1 first=0 end=1 ahead=1 phase=decode\n" MACHINE
	"buffer 0 memory=2 bytes=9000001 role=weights\n"
	"buffer 1 memory=2 bytes=5003 role=weights\n"
	"buffer 2 memory=0 bytes=9000001 role=staging\n"
	"buffer 3 memory=1 bytes=9000001 role=staging\n"
	"buffer 4 memory=1 bytes=3000 role=staging\n"
	"buffer 5 memory=2 bytes=100000 role=cache\n"
	"buffer 6 memory=1 bytes=100000 role=staging\n"
	"copy 0 unit=4 stream=4 from=0 to=2 bytes=9000001 path=0:1 latency=100000000\n"
	"copy 1 after=0 unit=2 from=2 to=3 bytes=9000001 path=0:1\n"
	"copy 2 unit=4 stream=4 from=1 to=4 at=1003 bytes=3000 path=0:1 via=0\n"
	"copy 3 after=2 unit=3 from=4 to=5 into=60001 bytes=3000 path=0:1 via=0\n"
	"copy 4 after=3 unit=4 stream=4 from=5 to=6 bytes=100000 path=0:1 via=0\n"
	"copy 5 after=1 unit=4 stream=4 from=1 to=2 at=4000 bytes=7000 path=0:1\n"
	"step 6 after=5,4 tokens=1\nend 7\n";

START_TEST(drives_are_files)
{
	struct ran ran;

	run_graph(&ran, drives, &here);
	check_run(&ran);
	assert_ok(cpu_exec_run(ran.e, &ran.r, &ran.err), ran.err);
	check_run(&ran);
	close_graph(&ran);
}
END_TEST

/* More than a buffer holds is read round again; arithmetic needs no bytes. */
START_TEST(round_again)
{
	struct ran ran;

	run_graph(&ran, "opg 1\nsteps count=1 first=0 end=1 ahead=1 phase=decode\n" MACHINE
			"buffer 0 memory=0 bytes=70000 role=weights\nbuffer 1 memory=1 bytes=50000 role=staging\n"
			"kernel 0 unit=0 device=0 from=0 at=65536 bytes=1000000 flops=1 path=0:1\n"
			"kernel 1 unit=0 device=0 flops=12345678 amount=12345678 path=0:1\n"
			"copy 2 unit=2 from=0 to=1 at=4 bytes=300000 path=0:1\n"
			"copy 3 from=0 to=1 bytes=300 path=0:1 after=2\n"
			"step 4 after=0,1,3 tokens=1\nend 5\n", &here);
	check_run(&ran);
	close_graph(&ran);
}
END_TEST

/* Many that are ready at once, on one unit: in the order of their numbers. And chains of what takes no time. */
START_TEST(ready_ones_queue_in_order)
{
	struct ran ran;
	char *text;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	fputs("opg 1\nsteps count=1 first=0 end=1 ahead=1 phase=decode\n" MACHINE "buffer 0 memory=0 bytes=70000 role=weights\n", to);
	for (int i = 0; i < 100; i++)
		fprintf(to, "kernel %d unit=0 device=0 from=0 bytes=5000 path=0:1\n", i);
	for (int i = 100; i < 200; i++)
		fprintf(to, "join %d after=%d,%d\n", i, i - 1, i - 100);
	fputs("step 200 after=199 tokens=1\nend 201\n", to);
	fclose(to);
	run_graph(&ran, text, &here);
	check_run(&ran);
	for (uint32_t i = 0, last = 0; i < ran.g->ops.n; i++)
		if (ran.r.order[i] < 100)
			ck_assert_uint_eq(ran.r.order[i], last++);
	free(text);
	close_graph(&ran);
}
END_TEST

static void refuse(const char *rest, const struct cpu_exec_options *o, const char *msg)
{
	struct ran ran;
	char text[4096];

	snprintf(text, sizeof(text), "opg 1\nsteps count=1 first=0 end=1 ahead=1 phase=decode\n" MACHINE "%s", rest);
	ck_assert_int_eq(open_graph(&ran, text, o), -1);
	ck_assert_msg(strstr(ran.err.msg, msg) != NULL, "'%s', not '%s'", ran.err.msg, msg);
	arena_release(&ran.a);
}

START_TEST(what_cannot_run_is_refused)
{
	refuse("buffer 0 memory=2 bytes=70000 role=weights\nkernel 0 unit=0 device=0 from=0 bytes=5 path=0:1\nstep 1 tokens=1\nend 2\n",
		&here, "operation 0: a kernel must read from memory");
	refuse("buffer 0 memory=2 bytes=70000 role=weights\ncopy 0 from=0 to=0 bytes=5 path=0:1\nstep 1 tokens=1\nend 2\n", &here,
		"operation 0: a copy from drive to drive");
	refuse("buffer 0 memory=0 bytes=1000000000000000 role=weights\nstep 0 tokens=1\nend 1\n", &here,
		"the buffers do not fit in MemAvailable: 909 TiB of memory are needed");
	refuse("buffer 0 memory=0 bytes=7 role=weights\nkernel 0 unit=0 device=0 threads=9999 flops=1 cap=1\nstep 1 tokens=1\nend 2\n",
		&here, "9999 threads; this program starts 256 for a device at most");
	refuse("buffer 0 memory=0 bytes=7 role=weights\nkernel 0 unit=0 device=0 flops=1e20 cap=1\nstep 1 tokens=1\nend 2\n", &here,
		"operation 0 would never end on this machine");
	refuse("buffer 0 memory=2 bytes=7 role=weights\nstep 0 tokens=1\nend 1\n", &(struct cpu_exec_options){.dir = "/nowhere"},
		"cannot make a file in '/nowhere': No such file or directory");
}
END_TEST

static volatile sig_atomic_t interrupted;

static void on_alarm(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* An hour's wait, and a kernel of hours, end at once. */
START_TEST(interrupts_are_heeded)
{
	struct ran ran;
	struct cpu_exec_options o = {.dir = ".", .interrupted = &interrupted};
	struct itimerval soon = {.it_value = {.tv_usec = 100000}};

	assert_ok(open_graph(&ran, "opg 1\nsteps count=1 first=0 end=1 ahead=1 phase=decode\n" MACHINE
				   "buffer 0 memory=0 bytes=70000 role=weights\nwait 0 latency=3600000000000000\n"
				   "kernel 1 unit=0 device=0 threads=2 from=0 bytes=70000 flops=1e15 path=0:1\n"
				   "step 2 after=0,1 tokens=1\nend 3\n", &o), ran.err);
	signal(SIGALRM, on_alarm);
	ck_assert_int_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
	ck_assert_int_eq(cpu_exec_run(ran.e, &ran.r, &ran.err), -1);
	assert_err(ran.err, ERR_INTERRUPTED, "interrupted");
	close_graph(&ran);
}
END_TEST

START_TEST(patterns_begin_anywhere)
{
	char whole[64], part[64];

	cpu_pattern(7, 1000, whole, sizeof(whole));
	for (size_t from = 0; from < 9; from++) {
		cpu_pattern(7, 1000 + from, part, 20);
		ck_assert(memcmp(part, whole + from, 20) == 0);
	}
}
END_TEST

TEST_MAIN("cpu_exec", streaming_runs_in_order, it_runs_again_and_again, threads_as_asked_for, drives_are_files, round_again,
	ready_ones_queue_in_order, what_cannot_run_is_refused, interrupts_are_heeded, patterns_begin_anywhere)
