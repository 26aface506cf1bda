/*
 * measure_memory.c - what a sandbox costs that does nothing.
 *
 * A process list alone would miss the kernel's part, which is the larger one. So: what the server's processes
 * have for themselves, plus the growth of the host's slab and per-CPU memory (whatever else the host does is
 * in that: the median of several rounds counts). Memory that is given back is freed by the kernel in its own
 * time: hence wait_until_calm().
 */
#include <time.h>

#include "base/err.h"
#include "base/mem.h"
#include "bench.h"
#include "exec.h"
#include "memory.h"
#include "server.h"

#define SANDBOXES  50
#define CALM_LOOKS 6
#define CALM_KIB   256
#define LOOKS_MAX  30

static const char *const kernel_lines[] = {"Slab", "Percpu", NULL};
static const char *const available_lines[] = {"MemAvailable", NULL};

static int memory_begin(struct bench *b, void **ret_state, struct err *e)
{
	(void)ret_state;
	(void)e;
	if (b->server) return 0;
	b->missing[ROW_IDLE_COUNTED] = b->missing[ROW_FRONT_RSS] = b->missing[ROW_KEEPER_RSS] =
		"not our server";
	return 0;
}

static double counted_kib(const struct bench *b)
{
	return memory_host_kib(kernel_lines) + (b->server ? memory_family_kib(server_pid(b->server)) : 0);
}

/* Until several looks in a row see nearly the same: the pools are filled again, the dead are buried. */
static void wait_until_calm(const struct bench *b)
{
	const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
	double last = counted_kib(b);
	int calm = 0;

	for (int look = 0; look < LOOKS_MAX && calm < CALM_LOOKS; look++) {
		nanosleep(&pause, NULL);
		double now = counted_kib(b);
		double change = now > last ? now - last : last - now;
		calm = change < CALM_KIB ? calm + 1 : 0;
		last = now;
	}
}

static void note_rss(struct bench *b, const char *name, enum row row)
{
	struct program_memory program;

	if (!b->server) return;
	if (memory_programs(server_pid(b->server), name, &program, 1) == 1)
		sample_ours(b, row, program.rss_kib);
}

static int make(struct bench *b, char ids[SANDBOXES][129], struct err *e)
{
	int r = 0;

	for (int i = 0; r == 0 && i < SANDBOXES; i++) {
		r = sandbox_create(&b->client, ids[i], sizeof ids[i], e);
		if (r == 0) r = sandbox_exec(&b->client, ids[i], "{\"argv\":[\"true\"]}", NULL, e);
	}
	return r;
}

static int memory_round(struct bench *b, void *state, struct err *e)
{
	static char ids[SANDBOXES][129];

	(void)state;
	wait_until_calm(b);
	double counted = counted_kib(b), available = memory_host_kib(available_lines);
	int r = make(b, ids, e);
	if (r < 0) return r;
	wait_until_calm(b);
	if (b->server) sample_ours(b, ROW_IDLE_COUNTED, (counted_kib(b) - counted) / SANDBOXES);
	sample_ours(b, ROW_IDLE_AVAILABLE, (available - memory_host_kib(available_lines)) / SANDBOXES);
	note_rss(b, "tombolo-front", ROW_FRONT_RSS);
	note_rss(b, "tombolo-keeper", ROW_KEEPER_RSS);
	for (int i = 0; r == 0 && i < SANDBOXES; i++)
		r = sandbox_delete(&b->client, ids[i], e);
	return r;
}

const struct measurement measure_memory = {.begin = memory_begin, .round = memory_round};
