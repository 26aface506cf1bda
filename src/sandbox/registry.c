/*
 * registry.c - what is asked of the registry. The entries behind it are in entry.c; what the keeper and the
 * agents tell about them is in told.c.
 */
#include "sandbox/registry.h"

#include <errno.h>
#include <stdlib.h>

#include "base/id.h"
#include "base/mem.h"
#include "sandbox/entry.h"
#include "sandbox/told.h"

#define LOST_MAX 1024 /* ends that are remembered */

/* ---- idle sleep ---- */

static void on_idle_sandbox(void *ctx, struct idler *i)
{
	struct sandbox *sb = container_of(i, struct sandbox, idler);
	struct sandboxes *all = ctx;

	if (all->keeper_lost) return;
	entry_set_state(sb, SANDBOX_FALLING_ASLEEP);
	(void)control_sleep(all->control, sb->id);
}

void sandboxes_sleep_after(struct sandboxes *all, uint64_t after_ms)
{
	all->sleeps = after_ms > 0;
	idlers_set_after(all->idlers, after_ms);
}

struct sandbox *sandboxes_use(struct sandboxes *all, const char *id)
{
	if (!all->sleeps) return NULL;
	struct sandbox *sb = entry_need(all, id);

	idler_use(all->idlers, &sb->idler);
	return sb;
}

void sandbox_unuse(struct sandbox *sb)
{
	if (!sb) return;
	idler_unuse(sb->all->idlers, &sb->idler);
	entry_tidy(sb);
}

/* ---- life ---- */

struct sandboxes *sandboxes_new(struct loop *loop, int control_fd, size_t issued_max,
				const struct sandboxes_callbacks *callbacks, void *ctx)
{
	struct sandboxes *all = mem_new(sizeof *all);

	all->loop = loop;
	all->issued = notes_new(issued_max, sizeof(struct issued));
	all->lost = notes_new(LOST_MAX, sizeof(struct lost));
	all->idlers = idlers_new(loop, on_idle_sandbox, all);
	all->callbacks = callbacks;
	all->ctx = ctx;
	all->control = control_new(loop, control_fd, &told_callbacks, all);
	return all;
}

struct sandboxes *sandboxes_free(struct sandboxes *all)
{
	if (!all) return NULL;
	while (all->first)
		entry_free(all->first);
	control_free(all->control);
	notes_free(all->issued);
	notes_free(all->lost);
	idlers_free(all->idlers);
	for (size_t i = 0; i < FAULTS_MAX; i++)
		free(all->faults[i]);
	free(all);
	return NULL;
}

void sandboxes_leave(struct sandboxes *all, const char *text)
{
	struct sandbox *sb, *next;

	entries_end_asking(all, text);
	HASH_ITER (hh, all->first, sb, next) {
		entry_set_state(sb, SANDBOX_ABSENT);
		entry_end_link(sb, END_LOST, text);
		entry_tidy(sb);
	}
}

/* ---- one sandbox ---- */

struct sandbox *sandboxes_find(struct sandboxes *all, const char *id)
{
	struct sandbox *sb = entry_find(all, id);

	return sb && sb->state == SANDBOX_LIVE ? sb : NULL;
}

struct sandbox *sandboxes_sleeper(struct sandboxes *all, const char *id)
{
	struct sandbox *sb = entry_find(all, id);

	return sb && sb->state == SANDBOX_ASLEEP ? sb : NULL;
}

enum sandbox_state sandboxes_state(struct sandboxes *all, const char *id)
{
	struct sandbox *sb = entry_find(all, id);

	return sb ? sb->state : SANDBOX_ABSENT;
}

const char *sandboxes_lost(const struct sandboxes *all, const char *id)
{
	const struct lost *lost = notes_of(all->lost, id);

	return lost ? lost->why : NULL;
}

enum sandbox_state sandbox_state(const struct sandbox *sb)
{
	return sb->state;
}

const char *sandbox_id(const struct sandbox *sb)
{
	return sb->id;
}

const char *sandbox_run(const struct sandbox *sb)
{
	return sb->run;
}

const char *sandbox_instance(const struct sandbox *sb)
{
	return sb->instance;
}

uint64_t sandbox_created_ms(const struct sandbox *sb)
{
	return sb->created_ms;
}

struct agent_link *sandbox_link(struct sandbox *sb)
{
	return sb->link;
}

struct sandbox_wait *sandboxes_start(struct sandboxes *all, const char *id, on_outcome *on_started, void *ctx)
{
	if (all->keeper_lost) return NULL;
	struct sandbox *sb = entry_need(all, id);
	struct sandbox_wait *w = wait_add(sb, WAIT_START, on_started, ctx);

	if (sb->state == SANDBOX_ABSENT || sb->state == SANDBOX_ASLEEP) entry_start(sb);
	return w;
}

struct sandbox_wait *sandboxes_remove(struct sandboxes *all, const char *id, on_outcome *on_removed,
				      void *ctx)
{
	if (all->keeper_lost) return NULL;
	struct sandbox *sb = entry_need(all, id);
	struct sandbox_wait *w = wait_add(sb, WAIT_REMOVE, on_removed, ctx);

	notes_forget(all->issued, id);
	notes_forget(all->lost, id);
	if (sb->state == SANDBOX_REMOVING) return w;
	bool making = sb->state == SANDBOX_MAKING;
	entry_set_state(sb, SANDBOX_REMOVING);
	(void)control_remove(all->control, id);
	if (making) waits_fail(sb, WAIT_START, REFUSED_BACKEND, -ECANCELED, "the sandbox was deleted");
	return w;
}

struct sandbox_wait *sandboxes_inspect(struct sandboxes *all, const char *id, on_outcome *on_usage_known,
				       void *ctx)
{
	struct sandbox *sb = entry_find(all, id);

	if (!sb || control_inspect(all->control, id) < 0) return NULL;
	return wait_add(sb, WAIT_INSPECT, on_usage_known, ctx);
}

/* ---- all of them ---- */

void sandboxes_issue(struct sandboxes *all, const char *instance, const struct limits *own, char *ret_id)
{
	id_make_sandbox(ret_id);
	note_issued(all, ret_id, instance, own);
	(void)control_issue(all->control, ret_id, instance, own);
}

bool sandboxes_issued(const struct sandboxes *all, const char *id)
{
	return notes_of(all->issued, id) != NULL;
}

unsigned sandboxes_count(const struct sandboxes *all)
{
	unsigned count = 0;

	for (const struct sandbox *sb = all->first; sb; sb = sb->hh.next)
		count += sb->state != SANDBOX_ABSENT && sb->state != SANDBOX_ASLEEP;
	return count;
}

unsigned sandboxes_limit(const struct sandboxes *all)
{
	return all->limit;
}

void sandboxes_park(struct sandboxes *all, unsigned want)
{
	(void)control_park(all->control, want);
}

void sandboxes_each(struct sandboxes *all, void (*on_each)(void *ctx, struct sandbox *sb), void *ctx)
{
	for (struct sandbox *sb = all->first; sb; sb = sb->hh.next)
		if (sb->state == SANDBOX_LIVE || sb->state == SANDBOX_ASLEEP) on_each(ctx, sb);
}

const char *sandboxes_fault(const struct sandboxes *all, size_t index)
{
	return index < FAULTS_MAX ? all->faults[index] : NULL;
}
