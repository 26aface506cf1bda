/*
 * measure_pool.c - the first command of a sandbox that was made ahead. The pool is that of a server of its
 * own, because what is made ahead is in the way of the other measurements.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "bench.h"
#include "exec.h"
#include "server.h"

#define CLAIMS  4    /* in a round */
#define TARGET  "4"  /* sandboxes that the pool keeps */
#define LOOK_US 5000 /* between two looks at the pool */
#define WAIT_US 10e6 /* for the pool to be full */
#define TRUE    "{\"argv\":[\"/bin/true\"]}"

struct pooled {
	struct server *server;
	struct endpoint at;
	struct client client;
	char used[129]; /* a sandbox that has run commands before */
};

static int start(struct bench *b, struct pooled *p, struct err *e)
{
	auto_free char *dir = NULL;
	int r;

	if (asprintf(&dir, "%s/pool", b->dir) < 0) abort();
	if (mkdir(dir, 0700) < 0) return err_set(e, -errno, "make '%s'", dir);
	(void)setenv("WARM_POOL_TARGET", TARGET, 1);
	r = server_start(server_program(b->server), dir, &p->server, &p->at, e);
	(void)unsetenv("WARM_POOL_TARGET");
	return r;
}

static int pool_begin(struct bench *b, void **ret_state, struct err *e)
{
	struct pooled *p = mem_new(sizeof *p);
	int r;

	*ret_state = p;
	if (!b->server) {
		b->missing[ROW_POOL_EXEC] = "not our server";
		return 0;
	}
	r = start(b, p, e);
	if (r == 0) r = client_open(&p->client, &p->at, e);
	return r < 0 ? r : sandbox_create(&p->client, p->used, sizeof p->used, e);
}

/* A pool that is not full is about to make something: then the cores are not free for what is measured. */
static int wait_until_full(struct pooled *p, struct err *e)
{
	double until = now_us() + WAIT_US;

	while (now_us() < until) {
		auto_buf struct buf answer = buf_with_cap(4096);
		int r = client_request(&p->client, "GET", "/v1/pool/stats", NULL, 0, 200, &answer, e);

		if (r < 0) return r;
		if (strstr(buf_text(&answer), "\"warm\":" TARGET)) return 0;
		(void)usleep(LOOK_US);
	}
	return err_say(e, -ETIMEDOUT, "the pool was not full after %.0f s", WAIT_US / 1e6);
}

static int one_claim(struct bench *b, struct pooled *p, struct err *e)
{
	char id[129];
	double began, between, ended;
	int r = wait_until_full(p, e);

	if (r == 0) r = sandbox_create(&p->client, id, sizeof id, e);
	/* The other one goes first: after a claim its successor is being made. */
	began = now_us();
	if (r == 0) r = sandbox_exec(&p->client, p->used, TRUE, NULL, e);
	between = now_us();
	if (r == 0) r = sandbox_exec(&p->client, id, TRUE, NULL, e);
	ended = now_us();
	if (r == 0) r = sandbox_delete(&p->client, id, e);
	if (r < 0) return r;
	sample_ours(b, ROW_POOL_EXEC, ended - between);
	sample_floor(b, ROW_POOL_EXEC, between - began);
	return 0;
}

static int pool_round(struct bench *b, void *state, struct err *e)
{
	struct pooled *p = state;
	int r = 0;

	if (!p->server) return 0;
	/* Started, and its cgroups there, before it is compared with. */
	r = sandbox_exec(&p->client, p->used, TRUE, NULL, e);
	for (int i = 0; r == 0 && i < CLAIMS; i++)
		r = one_claim(b, p, e);
	return r;
}

static void pool_end(void *state)
{
	struct pooled *p = state;
	struct err e = ERR_NONE;

	if (!p) return;
	client_done(&p->client);
	if (server_stop(p->server, &e) < 0) fprintf(stderr, "%s\n", e.text);
	free(p);
}

const struct measurement measure_pool = {.begin = pool_begin, .round = pool_round, .end = pool_end};
