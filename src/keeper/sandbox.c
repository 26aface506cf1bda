/*
 * sandbox.c - the way up: from a wish to a living sandbox. The way down is in ending.c.
 */
#include "keeper/sandbox.h"

#include <errno.h>
#include <string.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "isolation/cgroup.h"
#include "isolation/quota.h"
#include "keeper/ahead.h"
#include "keeper/ending.h"
#include "keeper/front.h"
#include "keeper/keeper.h"
#include "keeper/parking.h"
#include "keeper/process.h"
#include "keeper/syncing.h"
#include "keeper/trash.h"
#include "loop/loop.h"
#include "wire/greeting.h"
#include "wire/link.h"

#define LINE_WAIT_MS  20000     /* in the line */
#define BIND_WAIT_MS  10000
#define ADOPT_WAIT_MS 20000     /* nobody else waits for it */
#define READ_BUDGET   16

static void on_bond_ready(void *ctx, unsigned events);

/* ---- small things ---- */

void sandbox_become(struct sandbox *s, enum sandbox_state state)
{
	s->keeper->in_state[s->state]--;
	s->state = state;
	s->keeper->in_state[state]++;
}

void sandbox_set_timer(struct sandbox *s, void (*on_due)(void *ctx), uint64_t ms)
{
	timer_free(s->timer);
	s->timer = timer_new(s->keeper->loop, on_due, s);
	timer_set(s->timer, ms);
}

void sandbox_clear_timer(struct sandbox *s)
{
	s->timer = timer_free(s->timer);
}

void sandbox_init(struct sandbox *s)
{
	s->has_slot = s->silent = s->again = s->wakes = false;
	s->clear_tries = 0;
	s->slot = (struct slot){.kit = SLOT_KIT_EMPTY, .data_tree_fd = -1, .disk_fd = -1};
	s->pidfd = s->listen_fd = s->front_fds[0] = s->front_fds[1] = -1;
	s->limits = (struct limits_of){.phase = LIMITS_NONE};
	for (size_t i = 0; i < ARRAY_LEN(s->limits.fds); i++) s->limits.fds[i] = -1;
	s->dead = true;
}

static struct sandbox *sandbox_new(struct keeper *k, const char *id, enum sandbox_state state)
{
	struct sandbox *s = mem_new(sizeof *s);

	s->keeper = k;
	s->state = state;
	sandbox_init(s);
	(void)snprintf(s->record.id, sizeof s->record.id, "%s", id);
	k->in_state[state]++;
	keeper_add(k, s);
	return s;
}

static void hold_agent(struct sandbox *s, int pidfd)
{
	s->pidfd = pidfd;
	s->pid_watch = watch_new(s->keeper->loop, pidfd, ending_on_death, s);
	watch_want(s->pid_watch, WATCH_IN);
}

static void hold_bond(struct sandbox *s, int fd)
{
	s->bond = link_new(fd);
	s->bond_watch = watch_new(s->keeper->loop, fd, on_bond_ready, s);
	watch_want(s->bond_watch, WATCH_IN);
}

/* ---- the line ---- */

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
	while (*at && (*at)->record.id[0]) at = &(*at)->next_waiting;
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

	while (*at != s) at = &(*at)->next_waiting;
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

/* ---- its files ---- */

int sandbox_open_dir(const struct sandbox *s)
{
	int fd = openat(s->keeper->state.sandboxes_fd, s->record.run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

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

	if (renameat2(state->spare_fd, s->slot.spare, state->sandboxes_fd, s->record.run, RENAME_NOREPLACE) < 0)
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

static void on_bind_too_slow(void *ctx)
{
	struct err e = {.code = -ETIMEDOUT, .text = "the agent did not become a sandbox in time"};

	sandbox_refuse(ctx, &e);
}

static void bind_agent(struct sandbox *s)
{
	const struct slot_kit *kit = &s->slot.kit;
	struct msg_bind m = {
		.run = wire_text_of(s->record.run),
		.base_id = s->record.base_id,
		.cookie = {.at = (const char *)s->record.cookie, .len = RECORD_COOKIE},
		.flags = (kit->usr_tree_fd < 0 ? BIND_OWN_USR : 0) |
		         (cgroups_namespace_fits(s->keeper->cgroups) ? 0 : BIND_CGROUP_NS_SHARED),
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
		sandbox_refuse(s, &e);
		return;
	}
	sandbox_become(s, SANDBOX_BINDING);
	sandbox_set_timer(s, on_bind_too_slow, BIND_WAIT_MS);
}

static void on_placed(void *ctx)
{
	struct sandbox *s = ctx;

	s->working--;
	if (s->state != SANDBOX_PLACING) ending_advance(s);
	else if (s->work_err.code < 0) sandbox_refuse(s, &s->work_err);
	else bind_agent(s);
}

void sandbox_place(struct sandbox *s)
{
	struct keeper *k = s->keeper;
	struct record *rec = &s->record;
	struct parked agent;

	sandbox_leave_line(s);
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
	hold_agent(s, agent.pidfd);
	hold_bond(s, agent.bond_fd);
	s->working++;
	loop_work(k->loop, place, on_placed, s);
}

/* ---- alive ---- */

/* On a work thread, because closing a kit may cost a grace period: what nobody waits for. */
static void settle(void *ctx)
{
	struct sandbox *s = ctx;

	slot_close(&s->slot);
}

static void on_settled(void *ctx)
{
	struct sandbox *s = ctx;

	s->working--;
	ending_advance(s);
}

void sandbox_hand_over(struct sandbox *s)
{
	sandbox_become(s, SANDBOX_LIVE);
	s->keeps_tree = s->keeper->settings->sleeps;
	syncing_add(s->keeper->syncing, sandbox_open_dir(s));
	front_attached(s->keeper->front, s, s->front_fds[0]);
	s->front_fds[0] = fd_close(s->front_fds[0]);
	log_event(LOG_INFO, "sandbox_created", "id", s->record.id, "instance", s->record.instance, NULL);
}

static void come_alive(struct sandbox *s)
{
	sandbox_clear_timer(s);
	s->front_fds[1] = fd_close(s->front_fds[1]);
	s->listen_fd = fd_close(s->listen_fd);
	if (s->record.id[0]) sandbox_hand_over(s);
	else ahead_contained(s);
	s->working++;
	loop_work(s->keeper->loop, settle, on_settled, s);
	keeper_pump(s->keeper);
}

static void come_back(struct sandbox *s)
{
	struct usage usage;

	sandbox_clear_timer(s);
	sandbox_become(s, s->record.id[0] ? SANDBOX_LIVE : SANDBOX_PARKED);
	s->keeps_tree = s->record.id[0] && s->keeper->settings->sleeps;
	if (cgroup_usage(s->keeper->cgroups, s->record.run, &usage) == 0) s->limits.phase = LIMITS_MADE;
	log_event(LOG_INFO, "sandbox_adopted", "id", s->record.id, NULL);
	/* The front that began without it. */
	if (s->keeper->phase == KEEPER_SERVING && s->state == SANDBOX_LIVE && sandbox_attach(s) < 0)
		sandbox_end(s, GONE_DIED, "its agent takes no connection");
	keeper_progress(s->keeper);
}

/* ---- what the agent says ---- */

static int on_bound(struct sandbox *s, const struct frame *f)
{
	struct msg_bound m;
	struct err e = ERR_NONE;

	if (s->state != SANDBOX_BINDING || msg_bound_parse(f, &m) < 0) return -EPROTO;
	if (m.error == 0) {
		come_alive(s);
		return 0;
	}
	(void)err_say(&e, -EIO, "the agent could not contain itself: %.180s", m.text.at);
	sandbox_refuse(s, &e);
	return 0;
}

static int on_hello(struct sandbox *s, const struct frame *f)
{
	struct msg_hello m;
	char why[160];

	if (msg_hello_parse(f, &m) < 0 || m.role != ROLE_AGENT) return -EPROTO;
	if (s->state != SANDBOX_ADOPTING) return 0;
	if (wire_agree(&m) >= 0) {
		come_back(s);
		return 0;
	}
	wire_disagreement(&m, why, sizeof why);
	log_event(LOG_ERROR, "agent_of_another_build", "id", s->record.id, "why", why, NULL);
	sandbox_end(s, GONE_DIED, "its agent is of a build that this server cannot talk to");
	return 0;
}

static int on_bond_frame(struct sandbox *s, const struct frame *f)
{
	switch (f->type) {
	case MSG_hello: return on_hello(s, f);
	case MSG_bound: return on_bound(s, f);
	case MSG_limits_wanted:
		if (s->state == SANDBOX_LIVE) limits_want(s);
		return 0;
	case MSG_limits_idle:
		if (s->state == SANDBOX_LIVE) limits_idle(s);
		return 0;
	default: return -EPROTO;
	}
}

static int on_bond_packet(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct frame f;
	int r;

	(void)fds;
	(void)fd_count;
	while ((r = frame_reader_next(&reader, &f)) == 1) {
		if (f.flags || on_bond_frame(ctx, &f) < 0) return -EPROTO;
	}
	return r;
}

static void on_bond_lost(struct sandbox *s, int r)
{
	const char *what = r == -EPROTO ? "its agent broke the protocol" : "its agent died";
	struct err e = {.code = r};

	watch_want(s->bond_watch, 0);
	if (s->state == SANDBOX_LIVE || s->state == SANDBOX_ADOPTING || s->state == SANDBOX_PARKED) {
		sandbox_end(s, GONE_DIED, what);
	} else if (s->state == SANDBOX_PLACING || s->state == SANDBOX_BINDING || s->state == SANDBOX_CLAIMING) {
		(void)snprintf(e.text, sizeof e.text, "%s while it was being made", what);
		sandbox_refuse(s, &e);
	}
}

static void on_bond_ready(void *ctx, unsigned events)
{
	struct sandbox *s = ctx;
	int r = 0;

	if (events & WATCH_OUT) r = link_flush(s->bond);
	if (r == 0 && events & WATCH_IN) r = link_read(s->bond, READ_BUDGET, on_bond_packet, s);
	if (r < 0) on_bond_lost(s, r);
	else if (s->bond_watch) watch_want(s->bond_watch, link_wants_out(s->bond) ? WATCH_IN | WATCH_OUT : WATCH_IN);
}

/* ---- of an earlier keeper ---- */

int sandbox_greet(const struct record *rec, int fd, enum wire_role role)
{
	uint8_t room[256];
	struct packet p = {.bytes = room, .room = sizeof room};
	struct msg_hello m = {
		.version = WIRE_VERSION,
		.oldest = WIRE_OLDEST,
		.role = (uint8_t)role,
		.cookie = {.at = (const char *)rec->cookie, .len = RECORD_COOKIE},
		.build = wire_text_of(TOMBOLO_VERSION),
	};
	int r = msg_hello_add(&p, 0, &m);

	if (r < 0) return r;
	return send(fd, p.bytes, p.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)p.len ? 0 : -errno;
}

int sandbox_connect_front(const struct sandbox *s)
{
	auto_close int fd = state_socket_connect(&s->keeper->state, s->record.base_id);
	int r;

	if (fd < 0) return take_fd(&fd);
	r = sandbox_greet(&s->record, fd, ROLE_FRONT);
	return r < 0 ? r : take_fd(&fd);
}

int sandbox_attach(struct sandbox *s)
{
	auto_close int fd = sandbox_connect_front(s);

	if (fd < 0) return fd;
	front_attached(s->keeper->front, s, fd);
	return 0;
}

static void on_adopt_too_slow(void *ctx)
{
	sandbox_end(ctx, GONE_DIED, "its agent does not answer");
}

void sandbox_adopt(struct keeper *k, const struct record *rec, bool has_slot, int pidfd, int connected_fd)
{
	struct sandbox *s = sandbox_new(k, rec->id, SANDBOX_ADOPTING);

	s->record = *rec;
	if (rec->asleep) {
		sandbox_rest(s);
		return;
	}
	s->keeps_tree = rec->id[0] && k->settings->sleeps;
	s->has_slot = has_slot;
	s->dead = pidfd < 0;
	if (pidfd >= 0) hold_agent(s, pidfd);
	if (connected_fd >= 0) hold_bond(s, connected_fd);
	if (pidfd < 0 || connected_fd < 0 || !has_slot || sandbox_greet(rec, connected_fd, ROLE_KEEPER) < 0)
		sandbox_end(s, GONE_DIED, "the server was restarted without it");
	else
		sandbox_set_timer(s, on_adopt_too_slow, ADOPT_WAIT_MS);
}
