#include "keeper/wishes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "isolation/instance.h"
#include "keeper/ahead.h"
#include "keeper/bond.h"
#include "keeper/ending.h"
#include "keeper/front.h"
#include "keeper/issued.h"
#include "keeper/line.h"
#include "keeper/lost.h"
#include "keeper/parts.h"
#include "keeper/placing.h"
#include "keeper/population.h"
#include "keeper/sandbox.h"

static void create(struct keeper *k, const char *id, const struct wish *wish);

/* Who asks for a place that is being cleared waits for that. */
static void ask_again(struct sandbox *s, const struct wish *wish)
{
	s->again = create;
	s->again_wish = *wish;
}

/* The front lost its link to this one: here is another. */
static void attach_again(struct sandbox *s)
{
	struct wish same = {.own = s->record.own};

	if (bond_attach_front(s) == 0) return;
	ending_begin(s, GONE_DIED, "its agent takes no connection");
	memcpy(same.instance, s->record.instance, sizeof same.instance);
	ask_again(s, &same);
}

static void create_over(struct sandbox *old, const struct wish *wish)
{
	switch (old->state) {
	case SANDBOX_WAITING:
	case SANDBOX_PLACING:
	case SANDBOX_BINDING:
	case SANDBOX_CLAIMING:
	case SANDBOX_ADOPTING: return; /* the answer is on its way */
	case SANDBOX_PARKED: return;   /* has no id */
	case SANDBOX_LIVE: attach_again(old); return;
	case SANDBOX_DYING:
	case SANDBOX_CLEARING: ask_again(old, wish); return;
	case SANDBOX_ASLEEP: return; /* is woken like a new one is made */
	}
}

/* ID is a sandbox's id. */
static void create(struct keeper *k, const char *id, const struct wish *wish)
{
	unsigned max = k->settings->max_sandboxes, now;
	struct sandbox *old = population_find(k, id);
	char text[200];

	if (k->phase != KEEPER_SERVING) {
		front_refused(k->front, id, REFUSED_BACKEND, "the server is stopping");
		return;
	}
	if (old && old->state != SANDBOX_ASLEEP) {
		create_over(old, wish);
		return;
	}
	lost_forget(k->lost, id);
	if (!old && ahead_claim(k, id, wish)) return;
	now = population_count_staying(k);
	if (now >= max && !ahead_make_room(k)) {
		(void)snprintf(text, sizeof text, "instance limit reached (%u/%u)", now, max);
		front_refused(k->front, id, REFUSED_CAPACITY, text);
		return;
	}
	if (!admission_allows(&k->admission, clock_ms(), text, sizeof text)) {
		log_event(LOG_WARN, "sandbox_not_admitted", "id", id, "why", text, NULL);
		front_refused(k->front, id, REFUSED_CAPACITY, text);
		return;
	}
	if (old) placing_wake(old);
	else placing_line_up(k, id, wish);
	keeper_changed(k);
}

/* Limits of its own: not beyond what the largest instance type has, for whoever may ask for that may ask for
 * no more. */
static bool wish_is_fair(const struct wish *wish)
{
	struct limits least, most;

	instance_bounds(&least, &most);
	return limits_are_within(&wish->own, &least, &most);
}

void wishes_create(struct keeper *k, const struct msg_create *m)
{
	const char *type = m->instance.len ? m->instance.at : k->settings->instance;
	struct limits limits;
	struct wish wish = {.own = {.memory_bytes = m->memory_bytes,
				    .pids = m->pids,
				    .cpu_milli = m->cpu_milli,
				    .disk_bytes = m->disk_bytes}};

	if (!id_is_sandbox(m->id.at, m->id.len)) {
		log_event(LOG_ERROR, "front_sent_a_bad_id", NULL);
		return;
	}
	if (strlen(type) > INSTANCE_MAX || instance_limits(type, &limits) < 0) {
		front_refused(k->front, m->id.at, REFUSED_INSTANCE, "there is no such instance type");
		return;
	}
	if (!wish_is_fair(&wish)) {
		front_refused(k->front, m->id.at, REFUSED_INSTANCE, "no instance type has such limits");
		return;
	}
	(void)snprintf(wish.instance, sizeof wish.instance, "%s", type);
	create(k, m->id.at, &wish);
}

void wishes_remove(struct keeper *k, const struct wire_text *id)
{
	struct sandbox *s = id_is_sandbox(id->at, id->len) ? population_find(k, id->at) : NULL;
	struct err e = {.code = -ECANCELED, .text = "it was removed while it was being made"};

	if (id_is_sandbox(id->at, id->len)) {
		issued_forget(k->issued, id->at);
		lost_forget(k->lost, id->at);
	}
	if (!s) {
		front_gone(k->front, id->at, GONE_REMOVED, "");
		return;
	}
	s->keeps_tree = false;
	switch (s->state) {
	case SANDBOX_WAITING:
		if (s->record.run[0]) { /* it was to be woken: there is a tree */
			line_leave(s);
			ending_begin(s, GONE_REMOVED, "");
			return;
		}
		front_gone(k->front, id->at, GONE_REMOVED, "");
		ending_refuse(s, &e);
		return;
	case SANDBOX_PLACING:
	case SANDBOX_BINDING:
	case SANDBOX_CLAIMING:
		front_refused(k->front, id->at, REFUSED_BACKEND, e.text);
		ending_begin(s, GONE_REMOVED, "");
		return;
	case SANDBOX_PARKED:
	case SANDBOX_ADOPTING:
	case SANDBOX_ASLEEP:
	case SANDBOX_LIVE: ending_begin(s, GONE_REMOVED, ""); return;
	case SANDBOX_DYING:
	case SANDBOX_CLEARING:
		if (s->again) front_refused(k->front, id->at, REFUSED_BACKEND, e.text);
		s->again = NULL;
		s->silent = s->slow;
		if (s->slow) front_gone(k->front, id->at, GONE_REMOVED, "");
		return;
	}
}

void wishes_sleep(struct keeper *k, const struct wire_text *id)
{
	struct sandbox *s = id_is_sandbox(id->at, id->len) ? population_find(k, id->at) : NULL;

	if (!s) {
		front_gone(k->front, id->at, GONE_REMOVED, "");
		return;
	}
	if (s->state == SANDBOX_ASLEEP) front_asleep(k->front, s);
	if (s->state != SANDBOX_LIVE) return; /* what becomes of it is told anyway */
	s->keeps_tree = true;
	s->silent = true;
	ending_begin(s, GONE_REMOVED, "nobody used it");
}
