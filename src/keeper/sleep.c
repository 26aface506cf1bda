/*
 * sleep.c - sandboxes without processes: a tree on disk and a record that says so.
 *
 * Falling asleep is the way down (ending.c) that leaves the tree; waking up is the way up with that tree in place of a new
 * one. A sleeper holds no ids, no descriptors and no place among max-sandboxes. Whatever goes wrong on the way up leads
 * back here.
 */
#include "keeper/sandbox.h"

#include "base/log.h"
#include "keeper/ending.h"
#include "keeper/front.h"
#include "keeper/keeper.h"

void sandbox_sleep(struct keeper *k, const struct wire_text *id)
{
	struct sandbox *s = id_is_sandbox(id->at, id->len) ? keeper_find(k, id->at) : NULL;

	if (!s) {
		front_gone(k->front, id->at, GONE_REMOVED, "");
		return;
	}
	if (s->state == SANDBOX_ASLEEP) front_asleep(k->front, s);
	if (s->state != SANDBOX_LIVE) return; /* what becomes of it is told anyway */
	s->keeps_tree = true;
	s->silent = true;
	sandbox_end(s, GONE_REMOVED, "nobody used it");
}

void sandbox_rest(struct sandbox *s)
{
	log_event(LOG_INFO, "sandbox_asleep", "id", s->record.id, "why", s->gone_text, NULL);
	ending_release(s);
	sandbox_init(s);
	s->record.asleep = true;
	s->record.base_id = 0; /* somebody else's by now */
	s->gone_text[0] = '\0';
	sandbox_become(s, SANDBOX_ASLEEP);
	front_asleep(s->keeper->front, s);
}

void sandbox_wake(struct sandbox *s)
{
	s->keeps_tree = true;
	sandbox_become(s, SANDBOX_WAITING);
	sandbox_get_in_line(s);
}
