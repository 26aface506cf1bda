#include "keeper/ahead.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "isolation/quota.h"
#include "keeper/bond.h"
#include "keeper/ending.h"
#include "keeper/front.h"
#include "keeper/limits.h"
#include "keeper/parts.h"
#include "keeper/placing.h"
#include "keeper/population.h"
#include "keeper/sandbox.h"
#include "loop/loop.h"

struct ahead {
	bool wished; /* the front has said how many: until then what was taken over stays */
	unsigned want;
	bool resting; /* a moment after a claim */
	struct timer *rest;
	bool answer_due;
	unsigned told_ready;
	bool told_full;
};

static bool is_coming(const struct sandbox *s)
{
	return s->state == SANDBOX_WAITING || s->state == SANDBOX_PLACING || s->state == SANDBOX_BINDING;
}

static unsigned count(const struct keeper *k, bool coming)
{
	unsigned n = 0;

	for (const struct sandbox *s = population_find(k, ""); s; s = population_find_next(s))
		n += s->state == SANDBOX_PARKED || (coming && is_coming(s));
	return n;
}

/* New ones are put in front of the others. */
static struct sandbox *oldest(const struct keeper *k)
{
	struct sandbox *found = NULL;

	for (struct sandbox *s = population_find(k, ""); s; s = population_find_next(s))
		if (s->state == SANDBOX_PARKED) found = s;
	return found;
}

static bool is_full(const struct keeper *k)
{
	return population_count_staying(k) >= k->settings->max_sandboxes;
}

/* ---- how many ---- */

#define REST_MS 20 /* about the time of a first command, which would have to share its core with us */

static void on_rested(void *ctx)
{
	struct keeper *k = ctx;

	k->ahead->resting = false;
	keeper_changed(k);
}

static void rest(struct ahead *a)
{
	a->resting = true;
	timer_set(a->rest, REST_MS);
}

struct ahead *ahead_new(struct keeper *k)
{
	struct ahead *a = mem_new(sizeof *a);

	a->rest = timer_new(k->loop, on_rested, k);
	return a;
}

struct ahead *ahead_free(struct ahead *a)
{
	if (!a) return NULL;
	timer_free(a->rest);
	free(a);
	return NULL;
}

void ahead_wish(struct keeper *k, unsigned want)
{
	struct ahead *a = k->ahead;

	a->wished = true;
	a->want = want;
	a->answer_due = true;
	k->ahead_failed = false;
	keeper_changed(k);
}

static void line_up_one(struct keeper *k)
{
	struct wish wish = {.own = {0}};

	(void)snprintf(wish.instance, sizeof wish.instance, "%s", k->settings->instance);
	placing_line_up(k, "", &wish);
}

void ahead_refill(struct keeper *k)
{
	struct ahead *a = k->ahead;

	if (!a->wished) return;
	for (unsigned ready = count(k, false); ready > a->want; ready--)
		ending_begin(oldest(k), GONE_REMOVED, "too many were made ahead");
	if (k->ahead_failed || (a->resting && count(k, false))) return;
	for (unsigned have = count(k, true); have < a->want && !is_full(k); have++)
		line_up_one(k);
}

void ahead_tell(struct keeper *k)
{
	struct ahead *a = k->ahead;
	unsigned ready = count(k, false);
	bool full = count(k, true) < a->want && is_full(k);

	if (!a->wished || (!a->answer_due && ready == a->told_ready && full == a->told_full)) return;
	a->answer_due = false;
	a->told_ready = ready;
	a->told_full = full;
	front_parked(k->front, ready, full);
}

bool ahead_make_room(struct keeper *k)
{
	struct sandbox *s;

	for (s = population_find(k, ""); s; s = population_find_next(s)) {
		if (!is_coming(s)) continue;
		ending_give_up(s);
		return true;
	}
	/* Who asks could have had it, but for its disk. */
	s = oldest(k);
	if (s) ending_begin(s, GONE_REMOVED, "it made room");
	return s != NULL;
}

/* ---- one of them ---- */

/* The size of its disk was fixed when it was made; all else is decided at its first command. */
static bool disk_fits(const struct sandbox *s, const struct wish *wish)
{
	struct record as_wished = {.own = wish->own};
	struct limits have, want;

	if (!quota_is_fixed(s->keeper->quota)) return true;
	memcpy(as_wished.instance, wish->instance, sizeof as_wished.instance);
	return limits_of_record(&s->record, &have) == 0 && limits_of_record(&as_wished, &want) == 0 &&
	       have.disk_bytes == want.disk_bytes;
}

/* On a work thread. */
static void write_claim(void *ctx)
{
	struct sandbox *s = ctx;
	struct err *e = &s->work_err;
	auto_close int dir_fd = sandbox_open_dir(s);
	int r;

	*e = ERR_NONE;
	r = dir_fd < 0 ? err_set(e, dir_fd, "open the sandbox's directory") : 0;
	if (r == 0) r = record_write(dir_fd, &s->record, e);
	if (r == 0 && s->limits.stale) r = limits_adapt(s, e);
	e->code = r;
}

/* One that was taken over has no link for a front yet. */
static int link_for_front(struct sandbox *s)
{
	if (s->front_fds[0] < 0) s->front_fds[0] = bond_connect_front(s);
	return s->front_fds[0] < 0 ? s->front_fds[0] : 0;
}

static void on_claim_written(void *ctx)
{
	struct sandbox *s = ctx;
	struct err e = s->work_err;

	s->working--;
	if (s->state != SANDBOX_CLAIMING) {
		ending_advance(s);
		return;
	}
	if (e.code == 0) e.code = link_for_front(s);
	if (e.code < 0) {
		if (!e.text[0]) (void)err_set(&e, e.code, "reach the agent");
		ending_refuse(s, &e);
		return;
	}
	if (s->limits.stale) limits_tell_numbers(s);
	bond_hand_over(s);
	keeper_changed(s->keeper);
}

static bool is_as_wished(const struct sandbox *s, const struct wish *wish)
{
	return strcmp(s->record.instance, wish->instance) == 0 &&
	       memcmp(&s->record.own, &wish->own, sizeof wish->own) == 0;
}

bool ahead_claim(struct keeper *k, const char *id, const struct wish *wish)
{
	struct sandbox *s = oldest(k);

	if (!s || !disk_fits(s, wish)) return false;
	population_drop(k, s);
	(void)snprintf(s->record.id, sizeof s->record.id, "%s", id);
	s->limits.stale = s->limits.phase == LIMITS_MADE && !is_as_wished(s, wish);
	memcpy(s->record.instance, wish->instance, sizeof s->record.instance);
	s->record.own = wish->own;
	s->record.created_ms = clock_wall_ms();
	population_add(k, s);
	sandbox_become(s, SANDBOX_CLAIMING);
	rest(k->ahead);
	s->working++;
	loop_work(k->loop, write_claim, on_claim_written, s);
	return true;
}
