#include "keeper/placing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "isolation/cgroup.h"
#include "isolation/quota.h"
#include "keeper/bond.h"
#include "keeper/ending.h"
#include "keeper/limits.h"
#include "keeper/line.h"
#include "keeper/parking.h"
#include "keeper/parts.h"
#include "keeper/population.h"
#include "keeper/sandbox.h"
#include "keeper/trash.h"
#include "loop/loop.h"
#include "wire/link.h"

#define LINE_WAIT_MS   20000
#define BIND_WAIT_MS   10000
#define PLACE_RETRY_MS 10
#define PLACE_TRIES    500

/* ---- in line ---- */

static void on_line_too_long(void *ctx)
{
	struct err e = {.code = -ETIMEDOUT, .text = "no agent or slot became free in time"};

	ending_refuse(ctx, &e);
}

static void wait_in_line(struct sandbox *s)
{
	line_join(s);
	sandbox_set_timer(s, on_line_too_long, LINE_WAIT_MS);
}

void placing_line_up(struct keeper *k, const char *id, const struct wish *wish)
{
	struct sandbox *s = sandbox_new(k, id, SANDBOX_WAITING);

	population_add(k, s);
	memcpy(s->record.instance, wish->instance, sizeof s->record.instance);
	s->record.own = wish->own;
	wait_in_line(s);
}

void placing_wake(struct sandbox *s)
{
	s->keeps_tree = true;
	sandbox_become(s, SANDBOX_WAITING);
	wait_in_line(s);
}

/* ---- its files ---- */

/* Another size than those that are made ahead: the slot's own disk makes way for one that fits. */
static int fit_disk(struct sandbox *s, int dir_fd, struct err *e)
{
	struct quota *quota = s->keeper->quota;
	struct limits limits;
	int r = limits_of_record(&s->record, &limits);

	if (r < 0) return err_set(e, r, "look up the instance type");
	if (!quota_is_fixed(quota) || limits.disk_bytes == s->slot.disk_bytes) return 0;
	s->slot.data_tree_fd = fd_close(s->slot.data_tree_fd);
	quota_drop(quota, dir_fd, s->slot.disk_fd);
	s->slot.disk_fd = fd_close(s->slot.disk_fd);
	return slot_make_disk(&s->slot, quota, dir_fd, limits.disk_bytes, e);
}

/* The tree it slept on takes the place of the empty one that its slot came with. */
static int place_old_tree(struct sandbox *s, struct err *e)
{
	const struct state *state = &s->keeper->state;
	auto_close int dir_fd = sandbox_open_dir(s);

	if (dir_fd < 0) return err_set(e, dir_fd, "open the sandbox's directory");
	auto_close int spare_fd = openat(state->spare_fd, s->slot.spare, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s->slot.data_tree_fd = fd_close(s->slot.data_tree_fd);
	quota_drop(s->keeper->quota, spare_fd, s->slot.disk_fd);
	s->slot.disk_fd = fd_close(s->slot.disk_fd);
	int r = quota_reopen(s->keeper->quota, dir_fd, &s->slot.disk_fd, e);
	if (r < 0) return r;
	(void)trash_put(s->keeper->trash, state->spare_fd, s->slot.spare);
	return data_tree_open(s->slot.disk_fd, s->slot.kit.userns_fd, &s->slot.data_tree_fd, e);
}

static int place_new_tree(struct sandbox *s, struct err *e)
{
	const struct state *state = &s->keeper->state;

	if (renameat2(state->spare_fd, s->slot.spare, state->sandboxes_fd, s->record.run, RENAME_NOREPLACE) <
	    0)
		return err_set(e, -errno, "move the sandbox's directory into place");
	return 0;
}

static int place_files(struct sandbox *s, struct err *e)
{
	const struct state *state = &s->keeper->state;
	int r = s->wakes ? place_old_tree(s, e) : place_new_tree(s, e);

	if (r < 0) return r;
	auto_close int dir_fd = sandbox_open_dir(s);
	if (dir_fd < 0) return err_set(e, dir_fd, "open the sandbox's directory");
	if (!s->wakes) r = fit_disk(s, dir_fd, e);
	if (r == 0) r = record_write(dir_fd, &s->record, e);
	if (r < 0) return r;
	s->listen_fd = state_socket_bind(state, s->record.base_id);
	if (s->listen_fd < 0) return err_set(e, s->listen_fd, "bind the agent's socket");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->front_fds) < 0)
		return err_set(e, -errno, "make a link");
	return 0;
}

/* On a work thread. */
static void place(void *ctx)
{
	struct sandbox *s = ctx;

	s->work_err = ERR_NONE;
	s->work_err.code = place_files(s, &s->work_err);
}

/* ---- its agent ---- */

static void on_bind_too_slow(void *ctx)
{
	struct err e = {.code = -ETIMEDOUT, .text = "the agent did not become a sandbox in time"};

	ending_refuse(ctx, &e);
}

static void bind_agent(struct sandbox *s)
{
	const struct slot_kit *kit = &s->slot.kit;
	struct msg_bind m = {
		.run = wire_text_of(s->record.run),
		.base_id = s->record.base_id,
		.cookie = {.at = (const char *)s->record.cookie, .len = RECORD_COOKIE},
		.flags = kit->usr_tree_fd < 0 ? BIND_OWN_USR : 0,
	};
	int fds[BIND_FDS], count = 0;

	fds[count++] = kit->userns_fd;
	fds[count++] = kit->netns_fd;
	fds[count++] = kit->root_tree_fd;
	if (kit->usr_tree_fd >= 0) fds[count++] = kit->usr_tree_fd;
	fds[count++] = s->slot.data_tree_fd;
	fds[count++] = s->listen_fd;
	fds[count++] = s->front_fds[1];
	int r = LINK_SEND(s->bond, 0, bind, &m, fds, (size_t)count);
	struct err e = ERR_NONE;

	if (r < 0) {
		(void)err_set(&e, r, "reach the agent");
		ending_refuse(s, &e);
		return;
	}
	sandbox_become(s, SANDBOX_BINDING);
	sandbox_set_timer(s, on_bind_too_slow, BIND_WAIT_MS);
}

static void on_placed(void *ctx);

static void begin_placing(void *ctx)
{
	struct sandbox *s = ctx;

	sandbox_clear_timer(s);
	s->place_tries++;
	s->working++;
	loop_work(s->keeper->loop, place, on_placed, s);
}

static void on_placed(void *ctx)
{
	struct sandbox *s = ctx;

	s->working--;
	if (s->state != SANDBOX_PLACING) ending_advance(s);
	/* The tree is still being let go of. */
	else if (s->work_err.code == -EBUSY && s->wakes && s->place_tries < PLACE_TRIES)
		sandbox_set_timer(s, begin_placing, PLACE_RETRY_MS);
	else if (s->work_err.code < 0) ending_refuse(s, &s->work_err);
	else bind_agent(s);
}

void placing_begin(struct sandbox *s)
{
	struct keeper *k = s->keeper;
	struct record *rec = &s->record;
	struct parked agent;

	line_leave(s);
	sandbox_become(s, SANDBOX_PLACING);
	slots_take(k->slots, &s->slot);
	parking_take(k->parking, &agent);
	s->has_slot = true;
	s->dead = false;
	rec->base_id = s->slot.base_id;
	rec->pid = agent.pid;
	rec->pid_start = agent.start;
	rec->asleep = false;
	memcpy(rec->boot, k->boot, sizeof rec->boot);
	s->wakes = rec->run[0];
	if (!s->wakes) {
		rec->created_ms = clock_wall_ms();
		id_make_uuid(rec->run);
	}
	id_random(rec->cookie, sizeof rec->cookie);
	bond_hold_agent(s, agent.pidfd);
	bond_hold(s, agent.bond_fd);
	s->place_tries = 0;
	begin_placing(s);
}
