/*
 * ending.c - the way down: kill the agent, wait for its death, then remove cgroups, tree and socket, then tell the front.
 *
 * DYING ends when the agent is dead and no work of ours runs any more; CLEARING is one work, repeated while any part of it
 * fails: mostly the kernel is still taking the processes out of their cgroups. What cannot be cleared in CLEAR_TRIES is told,
 * and left to the next start's sweep. Only after it are the ids free for another sandbox.
 */
#include "keeper/ending.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "isolation/cgroup.h"
#include "isolation/quota.h"
#include "keeper/blocks.h"
#include "keeper/front.h"
#include "keeper/keeper.h"
#include "keeper/lost.h"
#include "keeper/process.h"
#include "keeper/sandbox.h"
#include "keeper/trash.h"
#include "loop/loop.h"
#include "wire/link.h"

#define CLEAR_RETRY_MS 10
#define CLEAR_TRIES    500

static void on_cleared(void *ctx);

void sandbox_end(struct sandbox *s, enum gone_why why, const char *text)
{
	if (s->state == SANDBOX_DYING || s->state == SANDBOX_CLEARING) return;
	/* No front has heard of one that was nobody's. */
	if (!s->record.id[0]) s->silent = true;
	s->gone_why = why;
	(void)snprintf(s->gone_text, sizeof s->gone_text, "%s", text);
	sandbox_clear_timer(s);
	sandbox_become(s, SANDBOX_DYING);
	if (s->bond_watch) watch_want(s->bond_watch, 0);
	if (!s->dead) process_kill(s->pidfd);
	ending_advance(s);
	keeper_progress(s->keeper);
}

void ending_on_death(void *ctx, unsigned events)
{
	struct sandbox *s = ctx;
	struct err e = {.code = -ESRCH, .text = "the agent died while the sandbox was being made"};

	(void)events;
	process_reap(s->pidfd);
	s->pid_watch = watch_free(s->pid_watch);
	s->pidfd = fd_close(s->pidfd);
	s->dead = true;
	switch (s->state) {
	case SANDBOX_WAITING: return;
	case SANDBOX_PLACING:
	case SANDBOX_CLAIMING:
	case SANDBOX_BINDING: sandbox_refuse(s, &e); return;
	case SANDBOX_PARKED:
	case SANDBOX_ADOPTING:
	case SANDBOX_LIVE:
		log_event(LOG_WARN, "agent_died", "id", s->record.id, NULL);
		sandbox_end(s, GONE_DIED, "its agent died");
		return;
	case SANDBOX_DYING: ending_advance(s); return;
	case SANDBOX_CLEARING:
	case SANDBOX_ASLEEP: return;
	}
}

static void drop_disk(struct sandbox *s)
{
	struct keeper *k = s->keeper;
	auto_close int dir_fd = sandbox_open_dir(s);

	quota_drop(k->quota, dir_fd, s->slot.disk_fd);
	trash_close(k->trash, take_fd(&s->slot.disk_fd));
}

/* On a work thread, like clear(). A record that still names its agent is swept as one whose agent died: it sleeps then, too. */
static int record_sleep(struct sandbox *s, struct err *e)
{
	auto_close int dir_fd = sandbox_open_dir(s);

	s->record.asleep = true;
	return dir_fd < 0 ? err_set(e, dir_fd, "open the sandbox's directory") : record_write(dir_fd, &s->record, e);
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
	bool again = s->again;

	s->working--;
	if (s->work_err.code < 0 && s->clear_tries < CLEAR_TRIES) {
		sandbox_set_timer(s, begin_clearing, CLEAR_RETRY_MS);
		return;
	}
	if (s->tree_kept && !s->keeps_tree) { /* it was removed meanwhile */
		begin_clearing(s);
		return;
	}
	if (s->work_err.code < 0) log_event(LOG_ERROR, "sandbox_not_cleared", "id", s->record.id, "why", s->work_err.text, NULL);
	else log_event(LOG_INFO, "sandbox_gone", "id", s->record.id, "why", s->gone_text, NULL);
	if (!s->silent) tell_end(s);
	if (s->has_slot) blocks_give(k->blocks, s->record.base_id);
	memcpy(id, s->record.id, sizeof id);
	if (s->tree_kept) sandbox_rest(s);
	else ending_forget(s);
	if (again) sandbox_create_again(k, id, &wish);
	keeper_pump(k);
	keeper_progress(k);
}

void ending_release(struct sandbox *s)
{
	sandbox_clear_timer(s);
	s->pid_watch = watch_free(s->pid_watch);
	s->bond_watch = watch_free(s->bond_watch);
	s->bond = link_free(s->bond);
	s->pidfd = fd_close(s->pidfd);
	s->listen_fd = fd_close(s->listen_fd);
	s->slot.disk_fd = fd_close(s->slot.disk_fd);
	s->front_fds[0] = fd_close(s->front_fds[0]);
	s->front_fds[1] = fd_close(s->front_fds[1]);
}

void ending_forget(struct sandbox *s)
{
	struct keeper *k = s->keeper;

	keeper_drop(k, s);
	k->in_state[s->state]--;
	ending_release(s);
	explicit_bzero(&s->record, sizeof s->record);
	free(s);
}
