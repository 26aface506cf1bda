#include "sandbox/entry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <utlist.h>

#include "base/log.h"
#include "base/mem.h"

#define MAKING_MAX_MS 30000 /* then those who wait are told so */

/* ---- notes ---- */

void note_issued(struct sandboxes *all, const char *id, const char *instance, const struct limits *own)
{
	struct issued note = {.own = *own};

	(void)snprintf(note.instance, sizeof note.instance, "%s", instance);
	notes_put(all->issued, id, &note);
}

void note_lost(struct sandboxes *all, const char *id, const char *why)
{
	struct lost note = {0};

	(void)snprintf(note.why, sizeof note.why, "%s", why);
	notes_put(all->lost, id, &note);
}

/* ---- waits ---- */

struct sandbox_wait *wait_add(struct sandbox *sb, enum wait_kind kind, on_outcome *answer, void *ctx)
{
	struct sandbox_wait *w = mem_new(sizeof *w);

	w->sandbox = sb;
	w->kind = kind;
	w->answer = answer;
	w->ctx = ctx;
	DL_APPEND(sb->waits[kind], w);
	return w;
}

struct sandbox_wait *sandbox_wait_cancel(struct sandbox_wait *w)
{
	if (!w) return NULL;
	DL_DELETE(w->sandbox->waits[w->kind], w);
	free(w);
	return NULL;
}

void waits_answer(struct sandbox *sb, enum wait_kind kind, const struct sandbox_outcome *outcome)
{
	struct sandbox_wait *waiting = sb->waits[kind], *last = waiting ? waiting->prev : NULL;
	bool more = waiting != NULL;

	while (more && sb->waits[kind]) {
		struct sandbox_wait *w = sb->waits[kind];
		on_outcome *answer =
			w->answer; /* NOLINT(clang-analyzer-unix.Malloc): it does not follow DL_DELETE */
		void *ctx = w->ctx;

		more = w != last;
		sandbox_wait_cancel(w);
		answer(ctx, outcome);
	}
}

void waits_fail(struct sandbox *sb, enum wait_kind kind, enum refusal refused, int error, const char *text)
{
	waits_answer(sb, kind, &(struct sandbox_outcome){.refused = refused, .error = error, .text = text});
}

/* ---- entries ---- */

struct sandbox *entry_find(const struct sandboxes *all, const char *id)
{
	struct sandbox *sb;

	HASH_FIND_STR(all->first, id, sb);
	return sb;
}

static void on_making_due(void *ctx);

struct sandbox *entry_need(struct sandboxes *all, const char *id)
{
	struct sandbox *sb = entry_find(all, id);

	if (sb) return sb;
	sb = mem_new(sizeof *sb);
	sb->all = all;
	(void)snprintf(sb->id, sizeof sb->id, "%s", id);
	sb->making_due = timer_new(all->loop, on_making_due, sb);
	HASH_ADD_STR(all->first, id, sb);
	return sb;
}

void entry_free(struct sandbox *sb)
{
	HASH_DEL(sb->all->first, sb);
	for (int kind = 0; kind < WAIT_KINDS; kind++)
		while (sb->waits[kind])
			sandbox_wait_cancel(sb->waits[kind]);
	timer_free(sb->making_due);
	idler_unwatch(sb->all->idlers, &sb->idler);
	agent_link_free(sb->link, END_LOST, "the server ends");
	free(sb->run);
	free(sb->instance);
	free(sb);
}

void entry_set_state(struct sandbox *sb, enum sandbox_state state)
{
	sb->state = state;
	if (state == SANDBOX_MAKING) timer_set(sb->making_due, MAKING_MAX_MS);
	else timer_clear(sb->making_due);
	if (state == SANDBOX_LIVE) idler_watch(sb->all->idlers, &sb->idler);
	else idler_unwatch(sb->all->idlers, &sb->idler);
}

void entry_tidy(struct sandbox *sb)
{
	if (sb->state != SANDBOX_ABSENT || sb->link || sb->idler.users) return;
	for (int kind = 0; kind < WAIT_KINDS; kind++)
		if (sb->waits[kind]) return;
	entry_free(sb);
}

void entry_end_link(struct sandbox *sb, enum end_reason reason, const char *text)
{
	struct agent_link *link = take_ptr(sb->link);

	agent_link_free(link, reason, text);
}

static void on_making_due(void *ctx)
{
	struct sandbox *sb = ctx;

	log_event(LOG_WARN, "sandbox_start_timeout", "id", sb->id, NULL);
	entry_set_state(sb, sb->slept ? SANDBOX_ASLEEP : SANDBOX_ABSENT);
	waits_fail(sb, WAIT_START, REFUSED_BACKEND, -ETIMEDOUT, "the sandbox was not ready in time");
	entry_tidy(sb);
}

void entry_start(struct sandbox *sb)
{
	entry_set_state(sb, SANDBOX_MAKING);
	const struct issued *issued = notes_of(sb->all->issued, sb->id);
	struct issued wish = issued ? *issued : (struct issued){0};

	(void)control_create(sb->all->control, sb->id, wish.instance, &wish.own);
}

void entries_end_asking(struct sandboxes *all, const char *text)
{
	struct sandbox *sb, *next;

	all->keeper_lost = true;
	free(all->faults[0]);
	all->faults[0] = mem_strdup(text);
	HASH_ITER (hh, all->first, sb, next) {
		if (sb->state == SANDBOX_MAKING || sb->state == SANDBOX_FALLING_ASLEEP)
			entry_set_state(sb, SANDBOX_ABSENT);
		for (int kind = 0; kind < WAIT_KINDS; kind++)
			waits_fail(sb, (enum wait_kind)kind, REFUSED_BACKEND, -EPIPE, text);
		entry_tidy(sb);
	}
}
