#include "keeper/ending.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "isolation/cgroup.h"
#include "isolation/quota.h"
#include "keeper/blocks.h"
#include "keeper/front.h"
#include "keeper/line.h"
#include "keeper/lost.h"
#include "keeper/parts.h"
#include "keeper/population.h"
#include "keeper/process.h"
#include "keeper/sandbox.h"
#include "keeper/trash.h"
#include "loop/loop.h"

#define DEATH_MS       10   /* an agent with little in its sandbox is dead by then */
#define PATIENCE_MS    1500 /* of whoever asked for the end */
#define CLEAR_RETRY_MS 10
#define CLEAR_TRIES    500

/* ---- what comes after ---- */

void ending_rest(struct sandbox *s)
{
	log_event(LOG_INFO, "sandbox_asleep", "id", s->record.id, "why", s->gone_text, NULL);
	sandbox_release(s);
	sandbox_init(s);
	s->record.asleep = true;
	s->record.base_id = 0; /* somebody else's by now */
	s->gone_text[0] = '\0';
	sandbox_become(s, SANDBOX_ASLEEP);
	front_asleep(s->keeper->front, s);
}

static void forget(struct sandbox *s)
{
	population_drop(s->keeper, s);
	sandbox_free(s);
}

/* ---- clearing ---- */

static void on_cleared(void *ctx);

static void drop_disk(struct sandbox *s)
{
	struct keeper *k = s->keeper;
	auto_close int dir_fd = sandbox_open_dir(s);

	quota_drop(k->quota, dir_fd, s->slot.disk_fd);
	trash_close(k->trash, take_fd(&s->slot.disk_fd));
}

/* On a work thread, like clear(). A record that still names its agent is swept as one whose agent died: it
 * sleeps then, too. */
static int record_sleep(struct sandbox *s, struct err *e)
{
	auto_close int dir_fd = sandbox_open_dir(s);

	s->record.asleep = true;
	return dir_fd < 0 ? err_set(e, dir_fd, "open the sandbox's directory")
			  : record_write(dir_fd, &s->record, e);
}

static int clear_cgroups(struct sandbox *s, struct err *e)
{
	int r = cgroup_remove(s->keeper->cgroups, s->record.run);

	return r < 0 && r != -ENOENT ? err_set(e, r, "remove the cgroups") : 0;
}

static int clear_socket(struct sandbox *s, struct err *e)
{
	int r = s->record.base_id ? state_socket_unlink(&s->keeper->state, s->record.base_id) : 0;

	return r < 0 ? err_set(e, r, "remove the agent's socket") : 0;
}

static int clear_tree(struct sandbox *s, struct err *e)
{
	struct keeper *k = s->keeper;
	int r;

	/* A tree that is kept is written, in its own time, by the kernel. */
	if (s->tree_kept) {
		trash_close(k->trash, take_fd(&s->slot.disk_fd));
		return record_sleep(s, e);
	}
	drop_disk(s);
	r = trash_put(k->trash, k->state.sandboxes_fd, s->record.run);
	/* Never used: the sandbox ended before its directory was moved into place. */
	if (r == 0 && s->slot.spare[0]) r = trash_put(k->trash, k->state.spare_fd, s->slot.spare);
	return r < 0 ? err_set(e, r, "move the tree to the trash") : 0;
}

/* On a work thread. Each part may find that an earlier try has done it. */
static void clear(void *ctx)
{
	struct sandbox *s = ctx;
	struct err *e = &s->work_err;
	int r = clear_cgroups(s, e);

	/* Nothing is taken from under processes that may still live. */
	if (r < 0 && s->clear_tries < CLEAR_TRIES) return;
	*e = ERR_NONE;
	slot_close(&s->slot);
	(void)clear_socket(s, e);
	(void)clear_tree(s, e);
	if (r < 0) (void)clear_cgroups(s, e);
}

static void begin_clearing(void *ctx)
{
	struct sandbox *s = ctx;

	sandbox_clear_timer(s);
	s->clear_tries++;
	s->tree_kept = s->keeps_tree;
	s->working++;
	loop_work(s->keeper->loop, clear, on_cleared, s);
}

void ending_advance(struct sandbox *s)
{
	if (s->state != SANDBOX_DYING || !s->dead || s->working) return;
	sandbox_become(s, SANDBOX_CLEARING);
	begin_clearing(s);
}

static void tell_end(struct sandbox *s)
{
	struct keeper *k = s->keeper;

	if (s->gone_why == GONE_DIED && !s->keeps_tree) lost_add(k->lost, s->record.id, s->gone_text);
	front_gone(k->front, s->record.id, s->gone_why, s->gone_text);
}

static void on_cleared(void *ctx)
{
	struct sandbox *s = ctx;
	struct keeper *k = s->keeper;
	char id[SANDBOX_ID_MAX + 1];
	struct wish wish = s->again_wish;
	void (*again)(struct keeper * k, const char *id, const struct wish *wish) = s->again;

	s->working--;
	if (s->work_err.code < 0 && s->clear_tries < CLEAR_TRIES) {
		sandbox_set_timer(s, begin_clearing, CLEAR_RETRY_MS);
		return;
	}
	if (s->tree_kept && !s->keeps_tree) { /* it was removed meanwhile */
		begin_clearing(s);
		return;
	}
	if (s->work_err.code < 0)
		log_event(LOG_ERROR, "sandbox_not_cleared", "id", s->record.id, "why", s->work_err.text,
			  NULL);
	else log_event(LOG_INFO, "sandbox_gone", "id", s->record.id, "why", s->gone_text, NULL);
	if (!s->silent) tell_end(s);
	if (s->has_slot) blocks_give(k->blocks, s->record.base_id);
	memcpy(id, s->record.id, sizeof id);
	if (s->tree_kept) ending_rest(s);
	else forget(s);
	if (again) again(k, id, &wish);
	keeper_changed(k);
}

/* ---- a death that takes its time ---- */

/* A process is frozen, or in the kernel's hands: nothing more is done in the sandbox, and the rest follows.
 */
static void on_impatience(void *ctx)
{
	struct sandbox *s = ctx;

	log_event(LOG_WARN, "sandbox_dies_slowly", "id", s->record.id, NULL);
	s->slow = true;
	if (s->keeps_tree) return;
	if (!s->silent) tell_end(s);
	s->silent = true;
}

/* On a work thread. */
static void hurry(void *ctx)
{
	struct sandbox *s = ctx;

	cgroup_hurry(s->keeper->cgroups, s->record.run);
}

static void on_hurried(void *ctx)
{
	struct sandbox *s = ctx;

	s->working--;
	if (!s->dead) sandbox_set_timer(s, on_impatience, PATIENCE_MS);
	ending_advance(s);
}

/* The agent's death waits for those of all its processes. */
static void on_slow_death(void *ctx)
{
	struct sandbox *s = ctx;

	s->working++;
	loop_work(s->keeper->loop, hurry, on_hurried, s);
}

/* ---- who ends it ---- */

void ending_begin(struct sandbox *s, enum gone_why why, const char *text)
{
	if (s->state == SANDBOX_DYING || s->state == SANDBOX_CLEARING) return;
	/* No front has heard of one that was nobody's. */
	if (!s->record.id[0]) s->silent = true;
	s->gone_why = why;
	(void)snprintf(s->gone_text, sizeof s->gone_text, "%s", text);
	sandbox_clear_timer(s);
	sandbox_become(s, SANDBOX_DYING);
	if (s->bond_watch) watch_want(s->bond_watch, 0);
	if (!s->dead) {
		process_kill(s->pidfd);
		if (s->limits.phase == LIMITS_MADE) sandbox_set_timer(s, on_slow_death, DEATH_MS);
	}
	ending_advance(s);
	keeper_changed(s->keeper);
}

void ending_refuse(struct sandbox *s, const struct err *e)
{
	if (s->record.id[0]) {
		log_event(LOG_WARN, "sandbox_refused", "id", s->record.id, "why", e->text, NULL);
		front_refused(s->keeper->front, s->record.id, REFUSED_BACKEND, e->text);
	} else {
		log_event(LOG_WARN, "sandbox_not_made_ahead", "why", e->text, NULL);
		s->keeper->ahead_failed = true;
	}
	ending_give_up(s);
}

void ending_give_up(struct sandbox *s)
{
	s->silent = true;
	if (s->state == SANDBOX_WAITING) {
		line_leave(s);
		if (s->keeps_tree) ending_rest(s);
		else forget(s);
		return;
	}
	ending_begin(s, GONE_REMOVED, "");
}
