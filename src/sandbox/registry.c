#include "sandbox/registry.h"

#include <errno.h>
#include <stdio.h>

#include <utlist.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "sandbox/agent_link.h"
#include "sandbox/control.h"
#include "sandbox/hash.h"
#include "sandbox/idle.h"
#include "sandbox/issued.h"
#include "sandbox/lost.h"

#define MAKING_MAX_MS 30000 /* then those who wait are told so */
#define FAULTS_MAX    16
#define LOST_MAX      1024  /* ends that are remembered */

enum wait_kind { WAIT_START, WAIT_REMOVE, WAIT_INSPECT, WAIT_KINDS };

struct sandbox_wait {
	struct sandbox *sandbox;
	enum wait_kind kind;
	on_outcome *answer;
	void *ctx;
	struct sandbox_wait *prev, *next;
};

struct sandbox {
	struct sandboxes *all;
	char id[SANDBOX_ID_MAX + 1];
	enum sandbox_state state;
	struct agent_link *link; /* LIVE, and REMOVING until `gone` */
	char *run, *instance;
	uint64_t created_ms;
	struct timer *making_due;
	struct idler idler;
	bool late;  /* MAKING, but nobody asked for it: see `asleep` */
	bool slept; /* there is a tree: a start that fails leaves it asleep */
	struct sandbox_wait *waits[WAIT_KINDS];
	UT_hash_handle hh;
};

struct sandboxes {
	struct loop *loop;
	struct control *control;
	bool keeper_lost;
	struct sandbox *first; /* by id, in the order of their making */
	struct issued *issued;
	struct lost *lost;
	struct idlers *idlers;
	bool sleeps;
	unsigned limit;
	char *faults[FAULTS_MAX];
	const struct sandboxes_callbacks *callbacks;
	void *ctx;
};

/* ---- waits ---- */

static struct sandbox_wait *wait_add(struct sandbox *sb, enum wait_kind kind, on_outcome *answer, void *ctx)
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

/* Answers those who wait now; a callback that asks again waits for the next answer. */
static void waits_answer(struct sandbox *sb, enum wait_kind kind, const struct sandbox_outcome *outcome)
{
	struct sandbox_wait *waiting = sb->waits[kind], *last = waiting ? waiting->prev : NULL;
	bool more = waiting != NULL;

	while (more && sb->waits[kind]) {
		struct sandbox_wait *w = sb->waits[kind];
		on_outcome *answer = w->answer;
		void *ctx = w->ctx;

		more = w != last;
		sandbox_wait_cancel(w);
		answer(ctx, outcome);
	}
}

/* ---- entries ---- */

static struct sandbox *entry_find(const struct sandboxes *all, const char *id)
{
	struct sandbox *sb;

	HASH_FIND_STR(all->first, id, sb);
	return sb;
}

static void on_making_due(void *ctx);

static struct sandbox *entry_need(struct sandboxes *all, const char *id)
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

static void entry_free(struct sandbox *sb)
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

static void set_state(struct sandbox *sb, enum sandbox_state state)
{
	sb->state = state;
	if (state == SANDBOX_MAKING) timer_set(sb->making_due, MAKING_MAX_MS);
	else timer_clear(sb->making_due);
	if (state == SANDBOX_LIVE) idler_watch(sb->all->idlers, &sb->idler);
	else idler_unwatch(sb->all->idlers, &sb->idler);
}

/* An entry that says nothing (no sandbox, nobody waiting) is forgotten. */
static void entry_tidy(struct sandbox *sb)
{
	if (sb->state != SANDBOX_ABSENT || sb->link || sb->idler.users) return;
	for (int kind = 0; kind < WAIT_KINDS; kind++)
		if (sb->waits[kind]) return;
	entry_free(sb);
}

static void link_end(struct sandbox *sb, enum end_reason reason, const char *text)
{
	struct agent_link *link = take_ptr(sb->link);

	agent_link_free(link, reason, text);
}

static void fail_waits(struct sandbox *sb, enum wait_kind kind, enum refusal refused, int error,
		       const char *text)
{
	waits_answer(sb, kind, &(struct sandbox_outcome){.refused = refused, .error = error, .text = text});
}

static void on_making_due(void *ctx)
{
	struct sandbox *sb = ctx;

	log_event(LOG_WARN, "sandbox_start_timeout", "id", sb->id, NULL);
	set_state(sb, sb->slept ? SANDBOX_ASLEEP : SANDBOX_ABSENT);
	fail_waits(sb, WAIT_START, REFUSED_BACKEND, -ETIMEDOUT, "the sandbox was not ready in time");
	entry_tidy(sb);
}

/* ---- what the keeper and the agents tell ---- */

static void on_link_broken(void *ctx, const char *why)
{
	struct sandbox *sb = ctx;

	log_event(LOG_WARN, "agent_link_lost", "id", sb->id, "why", why, NULL);
	if (sb->state == SANDBOX_REMOVING) {
		link_end(sb, END_DELETED, "the sandbox was deleted");
		return;
	}
	if (sb->state == SANDBOX_FALLING_ASLEEP) {
		link_end(sb, END_LOST, "the sandbox falls asleep");
		return;
	}
	lost_add(sb->all->lost, sb->id, why);
	set_state(sb, SANDBOX_ABSENT);
	link_end(sb, END_LOST, why);
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
	lost_forget(sb->all->lost, sb->id);
}

static void on_attached(void *ctx, const struct msg_attached *m, int fd)
{
	struct sandboxes *all = ctx;
	struct sandbox *sb = entry_need(all, m->id.at);

	if (sb->state == SANDBOX_REMOVING) { /* it was asked for before its removal was */
		fd_close(fd);
		return;
	}
	link_end(sb, END_LOST, "a new link took its place");
	take_names(sb, m->run.at, m->instance.at, m->created_ms);
	sb->link = agent_link_new(all->loop, fd, on_link_broken, sb);
	set_state(sb, SANDBOX_LIVE);
	waits_answer(sb, WAIT_START, &(struct sandbox_outcome){.sandbox = sb, .text = ""});
}

static void on_refused(void *ctx, const struct msg_refused *m)
{
	struct sandboxes *all = ctx;
	struct sandbox *sb = entry_find(all, m->id.at);

	if (!sb || sb->state != SANDBOX_MAKING) return;
	set_state(sb, sb->slept ? SANDBOX_ASLEEP : SANDBOX_ABSENT);
	fail_waits(sb, WAIT_START, (enum refusal)m->why, -EAGAIN, m->text.at);
	entry_tidy(sb);
}

static void start_again(struct sandbox *sb)
{
	set_state(sb, SANDBOX_MAKING);
	struct limits own = issued_limits(sb->all->issued, sb->id);

	(void)control_create(sb->all->control, sb->id, issued_instance(sb->all->issued, sb->id), &own);
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
		set_state(sb, SANDBOX_MAKING);
		return;
	}
	sb->slept = true;
	link_end(sb, END_LOST, "the sandbox fell asleep");
	set_state(sb, SANDBOX_ASLEEP);
	fail_waits(sb, WAIT_INSPECT, 0, -ENOENT, "the sandbox is asleep");
	/* Somebody came while it was falling asleep. */
	if (sb->waits[WAIT_START] && sb->state == SANDBOX_ASLEEP) start_again(sb);
}

static void on_issued(void *ctx, const struct msg_issued *m)
{
	struct sandboxes *all = ctx;

	struct limits own = {.memory_bytes = m->memory_bytes,
			     .pids = m->pids,
			     .cpu_milli = m->cpu_milli,
			     .disk_bytes = m->disk_bytes};

	issued_add(all->issued, m->id.at, m->instance.at, &own);
}

static void on_gone(void *ctx, const struct msg_gone *m)
{
	struct sandboxes *all = ctx;
	struct sandbox *sb = entry_find(all, m->id.at);

	if (m->why == GONE_DIED) lost_add(all->lost, m->id.at, m->text.at);
	if (!sb) return;
	if (m->why == GONE_DIED) log_event(LOG_WARN, "sandbox_died", "id", sb->id, "why", m->text.at, NULL);
	bool deleted = sb->state == SANDBOX_REMOVING || m->why == GONE_REMOVED;
	/* The life before the one that is being made: its answer is still to come. */
	if (sb->state == SANDBOX_MAKING && !sb->late) return;
	bool late = sb->late;
	sb->slept = sb->late = false;
	link_end(sb, deleted ? END_DELETED : END_LOST, deleted ? "the sandbox was deleted" : m->text.at);
	set_state(sb, SANDBOX_ABSENT);
	waits_answer(sb, WAIT_REMOVE, &(struct sandbox_outcome){.text = ""});
	fail_waits(sb, WAIT_INSPECT, 0, -ENOENT, "the sandbox is gone");
	/* Who waited for this very one gets no other in its place. */
	if (late) fail_waits(sb, WAIT_START, REFUSED_BACKEND, -ECONNRESET, m->text.at);
	/* Somebody asked for the id again while it was on its way out. */
	if (sb->waits[WAIT_START] && sb->state == SANDBOX_ABSENT) start_again(sb);
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

/* Nothing can be asked any more: those who wait for an answer are told so. */
static void end_asking(struct sandboxes *all, const char *text)
{
	struct sandbox *sb, *next;

	all->keeper_lost = true;
	free(all->faults[0]);
	all->faults[0] = mem_strdup(text);
	HASH_ITER (hh, all->first, sb, next) {
		if (sb->state == SANDBOX_MAKING || sb->state == SANDBOX_FALLING_ASLEEP) set_state(sb, SANDBOX_ABSENT);
		for (int kind = 0; kind < WAIT_KINDS; kind++)
			fail_waits(sb, (enum wait_kind)kind, REFUSED_BACKEND, -EPIPE, text);
		entry_tidy(sb);
	}
}

static void on_keeper_lost(void *ctx)
{
	struct sandboxes *all = ctx;

	end_asking(all, "the keeper is gone: sandboxes can be neither made nor removed");
	all->callbacks->on_keeper_lost(all->ctx);
}

static const struct control_callbacks control_callbacks = {
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

/* ---- idle sleep ---- */

static void on_idle_sandbox(void *ctx, struct idler *i)
{
	struct sandbox *sb = container_of(i, struct sandbox, idler);
	struct sandboxes *all = ctx;

	if (all->keeper_lost) return;
	set_state(sb, SANDBOX_FALLING_ASLEEP);
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
	all->issued = issued_new(issued_max);
	all->lost = lost_new(LOST_MAX);
	all->idlers = idlers_new(loop, on_idle_sandbox, all);
	all->callbacks = callbacks;
	all->ctx = ctx;
	all->control = control_new(loop, control_fd, &control_callbacks, all);
	return all;
}

struct sandboxes *sandboxes_free(struct sandboxes *all)
{
	if (!all) return NULL;
	while (all->first)
		entry_free(all->first);
	control_free(all->control);
	issued_free(all->issued);
	lost_free(all->lost);
	idlers_free(all->idlers);
	for (size_t i = 0; i < FAULTS_MAX; i++)
		free(all->faults[i]);
	free(all);
	return NULL;
}

void sandboxes_leave(struct sandboxes *all, const char *text)
{
	struct sandbox *sb, *next;

	end_asking(all, text);
	HASH_ITER (hh, all->first, sb, next) {
		set_state(sb, SANDBOX_ABSENT);
		link_end(sb, END_LOST, text);
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
	return lost_why(all->lost, id);
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

	if (sb->state == SANDBOX_ABSENT || sb->state == SANDBOX_ASLEEP) start_again(sb);
	return w;
}

struct sandbox_wait *sandboxes_remove(struct sandboxes *all, const char *id, on_outcome *on_removed,
				      void *ctx)
{
	if (all->keeper_lost) return NULL;
	struct sandbox *sb = entry_need(all, id);
	struct sandbox_wait *w = wait_add(sb, WAIT_REMOVE, on_removed, ctx);

	issued_forget(all->issued, id);
	lost_forget(all->lost, id);
	if (sb->state == SANDBOX_REMOVING) return w;
	bool making = sb->state == SANDBOX_MAKING;
	set_state(sb, SANDBOX_REMOVING);
	(void)control_remove(all->control, id);
	if (making) fail_waits(sb, WAIT_START, REFUSED_BACKEND, -ECANCELED, "the sandbox was deleted");
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
	issued_add(all->issued, ret_id, instance, own);
	(void)control_issue(all->control, ret_id, instance, own);
}

bool sandboxes_issued(const struct sandboxes *all, const char *id)
{
	return issued_has(all->issued, id);
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
