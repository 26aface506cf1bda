/*
 * ending.c - the way down: kill the agent, wait for its death, then remove cgroups, tree and socket, then tell the front.
 *
 * DYING ends when the agent is dead and no work of ours runs any more; CLEARING is one work, repeated while the kernel is
 * still taking the processes out of their cgroups. Only after it are the ids free for another sandbox.
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

/* On a work thread, like clear(). */
static void record_sleep(struct sandbox *s)
{
	auto_close int dir_fd = sandbox_open_dir(s);
	int r;

	s->record.asleep = true;
	r = dir_fd < 0 ? err_set(&s->work_err, dir_fd, "open the sandbox's directory")
	               : record_write(dir_fd, &s->record, &s->work_err);
	/* A record that still names its agent is swept as one whose agent died: it sleeps then, too. */
	s->work_err.code = r;
}

/* On a work thread. */
static void clear(void *ctx)
{
	struct sandbox *s = ctx;
	struct keeper *k = s->keeper;
	int r = cgroup_remove(k->cgroups, s->record.run);

	if (r == -EBUSY && s->clear_tries < CLEAR_TRIES) {
		s->work_err.code = r;
		return;
	}
	s->work_err = ERR_NONE;
	if (r < 0 && r != -ENOENT) (void)err_set(&s->work_err, r, "remove the cgroups");
	slot_close(&s->slot);
	/* A tree that is kept is written, in its own time, by the kernel. */
	if (s->tree_kept) trash_close(k->trash, take_fd(&s->slot.disk_fd));
	else drop_disk(s);
	if (s->record.base_id) state_socket_unlink(&k->state, s->record.base_id);
	if (s->tree_kept) {
		record_sleep(s);
	} else {
		r = trash_put(k->trash, k->state.sandboxes_fd, s->record.run);
		if (r < 0) (void)err_set(&s->work_err, r, "move the tree to the trash");
	}
	/* Never used: the sandbox ended before its directory was moved into place. */
	if (s->slot.spare[0]) (void)trash_put(k->trash, k->state.spare_fd, s->slot.spare);
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
	if (s->work_err.code == -EBUSY) {
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
