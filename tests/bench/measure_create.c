/* measure_create.c - the life of a sandbox: reserved, started by its first command, deleted. */
#include <stdio.h>

#include "base/err.h"
#include "bench.h"
#include "exec.h"
#include "floor_namespaces.h"

#define LIVES 4 /* in a round */

static int one_life(struct bench *b, struct err *e)
{
	char id[129];
	double began = now_us();
	int r = sandbox_create(&b->client, id, sizeof id, e);

	if (r == 0) r = sandbox_exec(&b->client, id, "{\"argv\":[\"/bin/true\"]}", NULL, e);
	if (r < 0) return r;
	double ran = now_us();
	r = sandbox_delete(&b->client, id, e);
	if (r < 0) return r;
	sample_ours(b, ROW_CREATE_EXEC, ran - began);
	sample_ours(b, ROW_CREATE_EXEC_DELETE, now_us() - began);
	return 0;
}

/* A host that does not let us make namespaces has no floor; the rest of the row still says something. */
static void one_floor(struct bench *b)
{
	struct err e = ERR_NONE;
	double exec_us, all_us;

	if (b->missing[ROW_CREATE_EXEC]) return;
	if (namespace_floor_run(b->namespaces, "/bin/true", &exec_us, &all_us, &e) < 0) {
		fprintf(stderr, "%s\n", e.text);
		b->missing[ROW_CREATE_EXEC] = b->missing[ROW_CREATE_EXEC_DELETE] =
			"this host refused the namespaces";
		return;
	}
	sample_floor(b, ROW_CREATE_EXEC, exec_us);
	sample_floor(b, ROW_CREATE_EXEC_DELETE, all_us);
}

static int create_round(struct bench *b, void *state, struct err *e)
{
	int r = 0;

	(void)state;
	for (int i = 0; r == 0 && i < LIVES; i++) {
		r = one_life(b, e);
		one_floor(b);
	}
	return r;
}

const struct measurement measure_create = {.round = create_round};
