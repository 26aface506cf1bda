#include "sandbox/pool.h"

#include "base/mem.h"
#include "loop/loop.h"

struct pool {
	struct pool_policy policy;
	const struct pool_events *events;
	void *ctx;
	struct timer *refresh;
	unsigned want;    /* as last wished */
	unsigned ready;   /* as last told */
	unsigned limit;   /* the server's */
	unsigned learned; /* 0: nothing */
	bool resting;     /* from a shutdown to the next refresh */
};

static unsigned lower(unsigned a, unsigned b)
{
	if (a == 0) return b;
	return b == 0 ? a : MIN(a, b);
}

/* What is above our last wish is on its way out: nobody will get it. */
static unsigned warm(const struct pool *p)
{
	return MIN(p->ready, p->want);
}

static unsigned known_limit(const struct pool *p)
{
	return lower(lower(p->policy.max_instances, p->limit), p->learned);
}

/* How many may be ready after the next step. */
static unsigned next_want(const struct pool *p)
{
	unsigned target = p->policy.target, have = warm(p), tracked = have + p->events->assigned(p->ctx);
	unsigned limit = known_limit(p), step = p->policy.batch;

	if (p->resting) return 0;
	if (have >= target) return target;
	/* At the limit: a single one, to find out whether it still holds. */
	if (limit && tracked >= limit) step = 1;
	else if (limit) step = MIN(step, limit - tracked);
	return have + MIN(step, target - have);
}

static void wish(struct pool *p)
{
	p->want = next_want(p);
	p->events->on_wish(p->ctx, p->want);
}

static void begin(struct pool *p)
{
	p->resting = false;
	timer_set(p->refresh, p->policy.refresh_ms);
	wish(p);
}

static void on_refresh(void *ctx)
{
	begin(ctx);
}

struct pool *pool_new(struct loop *loop, const struct pool_policy *policy, const struct pool_events *events,
		      void *ctx)
{
	struct pool *p = mem_new(sizeof *p);

	p->policy = *policy;
	p->events = events;
	p->ctx = ctx;
	p->refresh = timer_new(loop, on_refresh, p);
	return p;
}

struct pool *pool_free(struct pool *p)
{
	if (!p) return NULL;
	timer_free(p->refresh);
	free(p);
	return NULL;
}

void pool_prime(struct pool *p)
{
	begin(p);
}

void pool_shutdown(struct pool *p)
{
	begin(p);
	p->resting = true;
	wish(p);
}

void pool_told(struct pool *p, unsigned ready, bool full)
{
	bool grew = ready > p->ready;

	p->ready = ready;
	if (full) {
		p->learned = MAX(warm(p) + p->events->assigned(p->ctx), 1u);
		return;
	}
	if (grew) p->learned = 0;
	/* The step is done: the next one. */
	if (ready >= p->want && next_want(p) != p->want) wish(p);
}

void pool_told_limit(struct pool *p, unsigned limit)
{
	p->limit = limit;
}

struct pool_stats pool_stats(const struct pool *p)
{
	return (struct pool_stats){
		.warm = warm(p), .assigned = p->events->assigned(p->ctx), .limit = known_limit(p)};
}

const struct pool_policy *pool_policy(const struct pool *p)
{
	return &p->policy;
}
