/*
 * line.c - the line: sandboxes that wait for an agent and a slot. keeper_pump() serves it from its head. Who
 * leaves it otherwise, or fails on the rest of the way up (placing.c), is refused here.
 */
#include "keeper/sandbox.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "keeper/ahead.h"
#include "keeper/ending.h"
#include "keeper/front.h"
#include "keeper/keeper.h"

#define LINE_WAIT_MS 20000

static void on_line_too_long(void *ctx)
{
	struct err e = {.code = -ETIMEDOUT, .text = "no agent or slot became free in time"};

	sandbox_refuse(ctx, &e);
}

/* Whom somebody waits for stands before those that are made ahead. */
static struct sandbox **place_in_line(struct keeper *k, const char *id)
{
	struct sandbox **at = &k->waiting;

	if (!id[0]) return k->waiting_last;
	while (*at && (*at)->record.id[0])
		at = &(*at)->next_waiting;
	return at;
}

void sandbox_get_in_line(struct sandbox *s)
{
	struct keeper *k = s->keeper;
	struct sandbox **at = place_in_line(k, s->record.id);

	s->next_waiting = *at;
	*at = s;
	if (!s->next_waiting) k->waiting_last = &s->next_waiting;
	sandbox_set_timer(s, on_line_too_long, LINE_WAIT_MS);
}

void sandbox_line_up(struct keeper *k, const char *id, const struct wish *wish)
{
	struct sandbox *s = sandbox_new(k, id, SANDBOX_WAITING);

	memcpy(s->record.instance, wish->instance, sizeof s->record.instance);
	s->record.own = wish->own;
	sandbox_get_in_line(s);
}

void sandbox_leave_line(struct sandbox *s)
{
	struct keeper *k = s->keeper;
	struct sandbox **at = &k->waiting;

	while (*at != s)
		at = &(*at)->next_waiting;
	*at = s->next_waiting;
	if (!*at) k->waiting_last = at;
	s->next_waiting = NULL;
	sandbox_clear_timer(s);
}

void sandbox_refuse(struct sandbox *s, const struct err *e)
{
	if (!s->record.id[0]) {
		ahead_failed(s, e);
		return;
	}
	log_event(LOG_WARN, "sandbox_refused", "id", s->record.id, "why", e->text, NULL);
	front_refused(s->keeper->front, s->record.id, REFUSED_BACKEND, e->text);
	sandbox_give_up(s);
}

void sandbox_give_up(struct sandbox *s)
{
	s->silent = true;
	if (s->state == SANDBOX_WAITING) {
		sandbox_leave_line(s);
		if (s->keeps_tree) sandbox_rest(s);
		else ending_forget(s);
		return;
	}
	sandbox_end(s, GONE_REMOVED, "");
}
