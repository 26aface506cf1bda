/*
 * pool.h - the warm pool: how many sandboxes are made ahead of need (SEMANTICS 7.3).
 *
 * Theory of operation: the keeper makes them, keeps them, drops dead ones and gives the oldest to whoever
 * needs one; this only says how many are wanted (`park`), step by step: a batch at a time, the next when the
 * last is there. When the keeper says that no more can be made, what there is then is the learned limit; from
 * there on one single sandbox is wished for, and when it comes, the limit is forgotten. Every refresh
 * interval the wish is repeated, which also ends the pause after a shutdown or a failure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct pool;

struct pool_policy {
	unsigned target; /* ready ones; 0: the pool is off */
	unsigned batch;  /* made at once, at least 1 */
	uint64_t refresh_ms;
	unsigned max_instances; /* of the configuration; 0: none */
};

/* What the pool asks of the rest. */
struct pool_events {
	void (*on_wish)(void *ctx, unsigned want); /* keep WANT ready; answered by pool_told() */
	unsigned (*assigned)(void *ctx);           /* sandboxes that somebody has */
};

struct pool_stats {
	unsigned warm, assigned;
	unsigned limit; /* 0: not known */
};

/* Copies POLICY; borrows the rest. Does nothing before pool_prime(). */
struct pool *pool_new(struct loop *loop, const struct pool_policy *policy, const struct pool_events *events,
		      void *ctx);
struct pool *pool_free(struct pool *p);

/* Begins, or begins again at once. */
void pool_prime(struct pool *p);

/* Ends those that are ready, and makes no others until the next refresh. */
void pool_shutdown(struct pool *p);

/* READY are made ahead; FULL: no more can be made. */
void pool_told(struct pool *p, unsigned ready, bool full);

/* LIMIT: most sandboxes there can be; 0: not known. */
void pool_told_limit(struct pool *p, unsigned limit);

struct pool_stats pool_stats(const struct pool *p);
const struct pool_policy *pool_policy(const struct pool *p);
