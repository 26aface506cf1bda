/* measure_requests.c - the smallest request there is, against a server that does nothing but answer it. */
#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "bench.h"
#include "crowd.h"
#include "floor_nginx.h"

#define SINGLE     100 /* requests of one client, in a round */
#define CROWD_EACH 150 /* of each of sixteen */

struct requests {
	struct nginx *nginx;
	struct endpoint nginx_at;
	struct client ours[CROWD_SIZE], floor[CROWD_SIZE];
};

static void requests_end(void *state)
{
	struct requests *q = state;

	for (unsigned i = 0; q && i < CROWD_SIZE; i++) {
		client_done(&q->ours[i]);
		client_done(&q->floor[i]);
	}
	if (q) nginx_stop(q->nginx);
	free(q);
}

static int requests_begin(struct bench *b, void **ret_state, struct err *e)
{
	struct requests *q = mem_new(sizeof *q);
	int r = nginx_start(b->dir, &q->nginx, &q->nginx_at, e);

	*ret_state = q;
	if (r == -ENOENT)
		b->missing[ROW_HEALTH] = b->missing[ROW_HEALTH_RATE] = "no nginx here to compare with";
	else if (r < 0) return r;
	r = 0;
	for (unsigned i = 0; r == 0 && i < CROWD_SIZE; i++) {
		r = client_open(&q->ours[i], &b->server_at, e);
		if (r == 0 && q->nginx) r = client_open(&q->floor[i], &q->nginx_at, e);
	}
	return r;
}

static int ask(struct client *c, double *ret_us, struct err *e)
{
	double began = now_us();
	int r = client_request(c, "GET", "/health", NULL, 0, 200, NULL, e);

	*ret_us = now_us() - began;
	return r;
}

static int many(unsigned index, void *ctx, struct err *e)
{
	struct client *clients = ctx;
	double us;
	int r = 0;

	for (int i = 0; r == 0 && i < CROWD_EACH; i++)
		r = ask(&clients[index], &us, e);
	return r;
}

static int requests_round(struct bench *b, void *state, struct err *e)
{
	struct requests *q = state;
	double us;
	int r = 0;

	for (int i = 0; r == 0 && i < SINGLE; i++) {
		r = ask(&q->ours[0], &us, e);
		if (r == 0) sample_ours(b, ROW_HEALTH, us);
		if (r == 0 && q->nginx) {
			r = ask(&q->floor[0], &us, e);
			sample_floor(b, ROW_HEALTH, us);
		}
	}
	if (r == 0) r = crowd_run(many, q->ours, &us, e);
	if (r == 0) sample_ours(b, ROW_HEALTH_RATE, CROWD_SIZE * CROWD_EACH / us * 1e6);
	if (r < 0 || !q->nginx) return r;
	r = crowd_run(many, q->floor, &us, e);
	if (r == 0) sample_floor(b, ROW_HEALTH_RATE, CROWD_SIZE * CROWD_EACH / us * 1e6);
	return r;
}

const struct measurement measure_requests = {
	.begin = requests_begin, .round = requests_round, .end = requests_end};
