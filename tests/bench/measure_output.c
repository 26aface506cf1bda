/* measure_output.c - a command that writes 256 MB, and whether anybody on the way keeps them. */
#include <errno.h>

#include "base/err.h"
#include "base/mem.h"
#include "bench.h"
#include "exec.h"
#include "floor_relay.h"
#include "memory.h"
#include "server.h"

#define BYTES ((uint64_t)256 << 20)

static const char request[] =
	"{\"argv\":[\"dd\",\"if=/dev/zero\",\"bs=64k\",\"count=4096\",\"status=none\"]}";
static char *const writer[] = {"dd", "if=/dev/zero", "bs=64k", "count=4096", "status=none", NULL};

struct watched {
	struct program_memory before[PROGRAMS_MAX];
	struct program_memory after[PROGRAMS_MAX];
};

static int output_begin(struct bench *b, void **ret_state, struct err *e)
{
	(void)e;
	*ret_state = mem_new(sizeof(struct watched));
	if (!b->server) b->missing[ROW_OUTPUT_FRONT] = b->missing[ROW_OUTPUT_AGENT] = "not our server";
	return 0;
}

static size_t watch(struct bench *b, struct watched *w, const char *name)
{
	if (!b->server) return 0;
	size_t count = memory_programs(server_pid(b->server), name, w->before, PROGRAMS_MAX);
	memory_reset_peaks(w->before, count);
	return count;
}

/* The largest growth of one process over what it had before. Agents without work simply did not grow. */
static void note_growth(struct bench *b, struct watched *w, const char *name, enum row row)
{
	double growth = 0;

	if (!b->server) return;
	size_t count = memory_programs(server_pid(b->server), name, w->after, PROGRAMS_MAX);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < PROGRAMS_MAX && w->before[j].pid; j++)
			if (w->before[j].pid == w->after[i].pid)
				growth = MAX(growth, w->after[i].peak_kib - w->before[j].rss_kib);
	sample_ours(b, row, growth);
}

/* Both programs' memory lies in one array, told apart by pid; a zero pid ends it. */
static void watch_all(struct bench *b, struct watched *w)
{
	memset(w->before, 0, sizeof w->before);
	size_t fronts = watch(b, w, "tombolo-front");
	struct program_memory front = w->before[0];
	size_t agents = watch(b, w, "tombolo-agent");
	if (fronts && agents < PROGRAMS_MAX) w->before[agents] = front;
}

static int output_ours(struct bench *b, struct watched *w, struct err *e)
{
	uint64_t bytes = 0;

	watch_all(b, w);
	double began = now_us();
	int r = sandbox_exec(&b->client, b->sandbox, request, &bytes, e);
	double us = now_us() - began;
	if (r < 0) return r;
	if (bytes != BYTES)
		return err_say(e, -EPROTO, "%llu bytes of output arrived", (unsigned long long)bytes);
	sample_ours(b, ROW_OUTPUT, (double)bytes / us);
	note_growth(b, w, "tombolo-front", ROW_OUTPUT_FRONT);
	note_growth(b, w, "tombolo-agent", ROW_OUTPUT_AGENT);
	return 0;
}

static int output_round(struct bench *b, void *state, struct err *e)
{
	uint64_t bytes;
	double us;

	int r = output_ours(b, state, e);
	if (r == 0) r = relay_floor_run(writer, &us, &bytes, e);
	if (r < 0) return r;
	if (bytes != BYTES)
		return err_say(e, -EPROTO, "%llu bytes came through the relay", (unsigned long long)bytes);
	sample_floor(b, ROW_OUTPUT, (double)bytes / us);
	return 0;
}

const struct measurement measure_output = {.begin = output_begin, .round = output_round, .end = free};
