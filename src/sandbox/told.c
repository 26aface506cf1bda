/*
 * told.c - what the keeper and the agents tell, and what becomes of the picture then.
 *
 * What is told was sent before the keeper knew what we have asked for since: it may be about the life before
 * the one that is being made, or the one that is being removed. Hence the early returns.
 */
#include "sandbox/told.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sandbox/entry.h"

static void on_link_broken(void *ctx, const char *why)
{
	struct sandbox *sb = ctx;

	log_event(LOG_WARN, "agent_link_lost", "id", sb->id, "why", why, NULL);
	if (sb->state == SANDBOX_REMOVING) {
		entry_end_link(sb, END_DELETED, "the sandbox was deleted");
		return;
	}
	if (sb->state == SANDBOX_FALLING_ASLEEP) {
		entry_end_link(sb, END_LOST, "the sandbox falls asleep");
		return;
	}
	note_lost(sb->all, sb->id, why);
	entry_set_state(sb, SANDBOX_ABSENT);
	entry_end_link(sb, END_LOST, why);
	entry_tidy(sb);
}

static void take_names(struct sandbox *sb, const char *run, const char *instance, uint64_t created_ms)
{
	free(sb->run);
	free(sb->instance);
	sb->run = mem_strdup(run);
	sb->instance = mem_strdup(instance);
	sb->created_ms = created_ms;
	sb->slept = sb->late = false;
	notes_forget(sb->all->lost, sb->id);
}

static void on_attached(void *ctx, const struct msg_attached *m, int fd)
{
	struct sandboxes *all = ctx;
	struct sandbox *sb = entry_need(all, m->id.at);

	if (sb->state == SANDBOX_REMOVING) { /* it was asked for before its removal was */
		fd_close(fd);
		return;
	}
	entry_end_link(sb, END_LOST, "a new link took its place");
	take_names(sb, m->run.at, m->instance.at, m->created_ms);
	sb->link = agent_link_new(all->loop, fd, on_link_broken, sb);
	entry_set_state(sb, SANDBOX_LIVE);
	waits_answer(sb, WAIT_START, &(struct sandbox_outcome){.sandbox = sb, .text = ""});
}

static void on_refused(void *ctx, const struct msg_refused *m)
{
	struct sandboxes *all = ctx;
	struct sandbox *sb = entry_find(all, m->id.at);

	if (!sb || sb->state != SANDBOX_MAKING) return;
	entry_set_state(sb, sb->slept ? SANDBOX_ASLEEP : SANDBOX_ABSENT);
	waits_fail(sb, WAIT_START, (enum refusal)m->why, -EAGAIN, m->text.at);
	entry_tidy(sb);
}

static void on_asleep(void *ctx, const struct msg_asleep *m)
{
	struct sandboxes *all = ctx;
	struct sandbox *sb = entry_need(all, m->id.at);

	/* Their answers are still to come. */
	if (sb->state == SANDBOX_REMOVING || sb->state == SANDBOX_MAKING) return;
	take_names(sb, m->run.at, m->instance.at, m->created_ms);
	if (m->late) {
		sb->late = true;
		entry_set_state(sb, SANDBOX_MAKING);
		return;
	}
	sb->slept = true;
	entry_end_link(sb, END_LOST, "the sandbox fell asleep");
	entry_set_state(sb, SANDBOX_ASLEEP);
	waits_fail(sb, WAIT_INSPECT, 0, -ENOENT, "the sandbox is asleep");
	/* Somebody came while it was falling asleep. */
	if (sb->waits[WAIT_START] && sb->state == SANDBOX_ASLEEP) entry_start(sb);
}

static void on_issued(void *ctx, const struct msg_issued *m)
{
	struct sandboxes *all = ctx;

	struct limits own = {.memory_bytes = m->memory_bytes,
			     .pids = m->pids,
			     .cpu_milli = m->cpu_milli,
			     .disk_bytes = m->disk_bytes};

	note_issued(all, m->id.at, m->instance.at, &own);
}

static void on_gone(void *ctx, const struct msg_gone *m)
{
	struct sandboxes *all = ctx;
	struct sandbox *sb = entry_find(all, m->id.at);

	if (m->why == GONE_DIED) note_lost(all, m->id.at, m->text.at);
	if (!sb) return;
	if (m->why == GONE_DIED) log_event(LOG_WARN, "sandbox_died", "id", sb->id, "why", m->text.at, NULL);
	bool deleted = sb->state == SANDBOX_REMOVING || m->why == GONE_REMOVED;
	/* The life before the one that is being made: its answer is still to come. */
	if (sb->state == SANDBOX_MAKING && !sb->late) return;
	bool late = sb->late;
	sb->slept = sb->late = false;
	entry_end_link(sb, deleted ? END_DELETED : END_LOST,
		       deleted ? "the sandbox was deleted" : m->text.at);
	entry_set_state(sb, SANDBOX_ABSENT);
	waits_answer(sb, WAIT_REMOVE, &(struct sandbox_outcome){.text = ""});
	waits_fail(sb, WAIT_INSPECT, 0, -ENOENT, "the sandbox is gone");
	/* Who waited for this very one gets no other in its place. */
	if (late) waits_fail(sb, WAIT_START, REFUSED_BACKEND, -ECONNRESET, m->text.at);
	/* Somebody asked for the id again while it was on its way out. */
	if (sb->waits[WAIT_START] && sb->state == SANDBOX_ABSENT) entry_start(sb);
	entry_tidy(sb);
}

static void on_usage(void *ctx, const struct msg_usage *m)
{
	struct sandboxes *all = ctx;
	struct sandbox *sb = entry_find(all, m->id.at);

	if (!sb) return;
	waits_answer(sb, WAIT_INSPECT, &(struct sandbox_outcome){.sandbox = sb, .text = "", .usage = m});
	entry_tidy(sb);
}

static void on_ready(void *ctx, const struct msg_ready *m)
{
	struct sandboxes *all = ctx;
	const uint8_t *at = m->faults.packed;
	const char *fault;

	all->limit = m->limit;
	for (size_t i = 0; i < FAULTS_MAX; i++) {
		free(all->faults[i]);
		all->faults[i] = NULL;
	}
	for (size_t i = 0; i < FAULTS_MAX && (fault = wire_list_next(&m->faults, &at, NULL)); i++)
		all->faults[i] = mem_strdup(fault);
	all->callbacks->on_ready(all->ctx);
}

static void on_parked(void *ctx, const struct msg_parked *m)
{
	struct sandboxes *all = ctx;

	if (all->callbacks->on_parked) all->callbacks->on_parked(all->ctx, m->ready, m->full != 0);
}

static void on_keeper_lost(void *ctx)
{
	struct sandboxes *all = ctx;

	entries_end_asking(all, "the keeper is gone: sandboxes can be neither made nor removed");
	all->callbacks->on_keeper_lost(all->ctx);
}

const struct control_callbacks told_callbacks = {
	.on_attached = on_attached,
	.on_refused = on_refused,
	.on_gone = on_gone,
	.on_usage = on_usage,
	.on_ready = on_ready,
	.on_parked = on_parked,
	.on_asleep = on_asleep,
	.on_issued = on_issued,
	.on_lost = on_keeper_lost,
};
