/*
 * wishes.c - `create` and `remove`: what the front asks for, judged, and fitted to what there is of that id.
 */
#include "keeper/sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "isolation/instance.h"
#include "keeper/ahead.h"
#include "keeper/front.h"
#include "keeper/keeper.h"

/* Who asks for a place that is being cleared waits for that. */
static void ask_again(struct sandbox *s, const char *instance)
{
	s->again = true;
	(void)snprintf(s->again_instance, sizeof s->again_instance, "%s", instance);
}

/* The front lost its link to this one: here is another. */
static void attach_again(struct sandbox *s)
{
	auto_close int fd = sandbox_connect_front(s);

	if (fd >= 0) {
		front_attached(s->keeper->front, s, fd);
		return;
	}
	sandbox_end(s, GONE_DIED, "its agent takes no connection");
	ask_again(s, s->record.instance);
}

static void create_over(struct sandbox *old, const char *instance)
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
	case SANDBOX_CLEARING: ask_again(old, instance); return;
	}
}

void sandbox_create(struct keeper *k, const struct wire_text *id, const struct wire_text *instance)
{
	const char *type = instance->len ? instance->at : k->settings->instance;
	unsigned max = k->settings->max_sandboxes, now;
	struct sandbox *old;
	struct limits limits;
	char text[96];

	if (!id_is_sandbox(id->at, id->len)) {
		log_event(LOG_ERROR, "front_sent_a_bad_id", NULL);
		return;
	}
	if (strlen(type) > INSTANCE_MAX || instance_limits(type, &limits) < 0) {
		front_refused(k->front, id->at, REFUSED_INSTANCE, "there is no such instance type");
		return;
	}
	if (k->phase != KEEPER_SERVING) {
		front_refused(k->front, id->at, REFUSED_BACKEND, "the server is stopping");
		return;
	}
	old = keeper_find(k, id->at);
	if (old) {
		create_over(old, type);
		return;
	}
	if (ahead_claim(k, id->at, type)) return;
	now = keeper_count_staying(k);
	if (now >= max && !ahead_make_room(k)) {
		(void)snprintf(text, sizeof text, "instance limit reached (%u/%u)", now, max);
		front_refused(k->front, id->at, REFUSED_CAPACITY, text);
		return;
	}
	sandbox_line_up(k, id->at, type);
	keeper_pump(k);
}

void sandbox_create_again(struct keeper *k, const char *id, const char *instance)
{
	struct wire_text id_text = wire_text_of(id), instance_text = wire_text_of(instance);

	sandbox_create(k, &id_text, &instance_text);
}

void sandbox_remove(struct keeper *k, const struct wire_text *id)
{
	struct sandbox *s = id_is_sandbox(id->at, id->len) ? keeper_find(k, id->at) : NULL;
	struct err e = {.code = -ECANCELED, .text = "it was removed while it was being made"};

	if (!s) {
		front_gone(k->front, id->at, GONE_REMOVED, "");
		return;
	}
	switch (s->state) {
	case SANDBOX_WAITING:
		front_gone(k->front, id->at, GONE_REMOVED, "");
		sandbox_refuse(s, &e);
		return;
	case SANDBOX_PLACING:
	case SANDBOX_BINDING:
	case SANDBOX_CLAIMING:
		front_refused(k->front, id->at, REFUSED_BACKEND, e.text);
		sandbox_end(s, GONE_REMOVED, "");
		return;
	case SANDBOX_PARKED:
	case SANDBOX_ADOPTING:
	case SANDBOX_LIVE: sandbox_end(s, GONE_REMOVED, ""); return;
	case SANDBOX_DYING:
	case SANDBOX_CLEARING:
		if (s->again) front_refused(k->front, id->at, REFUSED_BACKEND, e.text);
		s->again = false;
		s->silent = false;
		return;
	}
}
