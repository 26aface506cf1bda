#include "keeper/bond.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "isolation/cgroup.h"
#include "isolation/quota.h"
#include "keeper/ending.h"
#include "keeper/front.h"
#include "keeper/limits.h"
#include "keeper/parts.h"
#include "keeper/process.h"
#include "keeper/sandbox.h"
#include "keeper/syncing.h"
#include "loop/loop.h"
#include "wire/greeting.h"
#include "wire/link.h"

#define READ_BUDGET 16

/* ---- connections to it ---- */

int bond_greet(const struct record *rec, int fd, enum wire_role role)
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

int bond_connect_front(const struct sandbox *s)
{
	auto_close int fd = state_socket_connect(&s->keeper->state, s->record.base_id);
	int r;

	if (fd < 0) return take_fd(&fd);
	r = bond_greet(&s->record, fd, ROLE_FRONT);
	return r < 0 ? r : take_fd(&fd);
}

int bond_attach_front(struct sandbox *s)
{
	auto_close int fd = bond_connect_front(s);

	if (fd < 0) return fd;
	front_attached(s->keeper->front, s, fd);
	return 0;
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

void bond_hand_over(struct sandbox *s)
{
	sandbox_become(s, SANDBOX_LIVE);
	s->keeps_tree = s->keeper->settings->sleeps;
	syncing_add(s->keeper->syncing, sandbox_open_dir(s));
	front_attached(s->keeper->front, s, s->front_fds[0]);
	s->front_fds[0] = fd_close(s->front_fds[0]);
	log_event(LOG_INFO, "sandbox_created", "id", s->record.id, "instance", s->record.instance, NULL);
}

/* One that is nobody's is whole with its cgroups, so that its first command waits for nothing. */
static void park(struct sandbox *s)
{
	sandbox_become(s, SANDBOX_PARKED);
	log_event(LOG_DEBUG, "sandbox_made_ahead", "run", s->record.run, NULL);
	keeper_changed(s->keeper);
}

static void come_alive(struct sandbox *s)
{
	sandbox_clear_timer(s);
	s->front_fds[1] = fd_close(s->front_fds[1]);
	s->listen_fd = fd_close(s->listen_fd);
	if (s->record.id[0]) bond_hand_over(s);
	else limits_want(s, park);
	s->working++;
	loop_work(s->keeper->loop, settle, on_settled, s);
	keeper_changed(s->keeper);
}

/* On a work thread. Without it the sandbox's death waits for its disk; that costs nobody else. */
static void hold_disk(void *ctx)
{
	struct sandbox *s = ctx;
	struct err e = ERR_NONE;
	auto_close int dir_fd = sandbox_open_dir(s);

	if (dir_fd >= 0 && quota_hold(s->keeper->quota, dir_fd, &s->slot.disk_fd, &e) < 0)
		log_event(LOG_WARN, "disk_not_held", "id", s->record.id, "why", e.text, NULL);
}

static void come_back(struct sandbox *s)
{
	struct usage usage;

	sandbox_clear_timer(s);
	sandbox_become(s, s->record.id[0] ? SANDBOX_LIVE : SANDBOX_PARKED);
	s->keeps_tree = s->record.id[0] && s->keeper->settings->sleeps;
	if (cgroup_usage(s->keeper->cgroups, s->record.run, &usage) == 0) s->limits.phase = LIMITS_MADE;
	log_event(LOG_INFO, "sandbox_adopted", "id", s->record.id, NULL);
	s->working++;
	loop_work(s->keeper->loop, hold_disk, on_settled, s);
	/* The front that began without it. */
	if (s->keeper->phase == KEEPER_SERVING && s->state == SANDBOX_LIVE && bond_attach_front(s) < 0)
		ending_begin(s, GONE_DIED, "its agent takes no connection");
	keeper_changed(s->keeper);
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
	ending_refuse(s, &e);
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
	ending_begin(s, GONE_DIED, "its agent is of a build that this server cannot talk to");
	return 0;
}

static int on_bond_frame(struct sandbox *s, const struct frame *f)
{
	switch (f->type) {
	case MSG_hello: return on_hello(s, f);
	case MSG_bound: return on_bound(s, f);
	case MSG_limits_wanted:
		if (s->state == SANDBOX_LIVE) limits_want(s, NULL);
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
		ending_begin(s, GONE_DIED, what);
	} else if (s->state == SANDBOX_PLACING || s->state == SANDBOX_BINDING ||
		   s->state == SANDBOX_CLAIMING) {
		(void)snprintf(e.text, sizeof e.text, "%s while it was being made", what);
		ending_refuse(s, &e);
	}
}

static void on_bond_ready(void *ctx, unsigned events)
{
	struct sandbox *s = ctx;
	int r = 0;

	if (events & WATCH_OUT) r = link_flush(s->bond);
	if (r == 0 && events & WATCH_IN) r = link_read(s->bond, READ_BUDGET, on_bond_packet, s);
	if (r < 0) on_bond_lost(s, r);
	else if (s->bond_watch)
		watch_want(s->bond_watch, link_wants_out(s->bond) ? WATCH_IN | WATCH_OUT : WATCH_IN);
}

/* ---- holding it ---- */

static void on_death(void *ctx, unsigned events)
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
	case SANDBOX_BINDING: ending_refuse(s, &e); return;
	case SANDBOX_PARKED:
	case SANDBOX_ADOPTING:
	case SANDBOX_LIVE:
		log_event(LOG_WARN, "agent_died", "id", s->record.id, NULL);
		ending_begin(s, GONE_DIED, "its agent died");
		return;
	case SANDBOX_DYING: ending_advance(s); return;
	case SANDBOX_CLEARING:
	case SANDBOX_ASLEEP: return;
	}
}

void bond_hold_agent(struct sandbox *s, int pidfd)
{
	s->pidfd = pidfd;
	s->pid_watch = watch_new(s->keeper->loop, pidfd, on_death, s);
	watch_want(s->pid_watch, WATCH_IN);
}

void bond_hold(struct sandbox *s, int fd)
{
	s->bond = link_new(fd);
	s->bond_watch = watch_new(s->keeper->loop, fd, on_bond_ready, s);
	watch_want(s->bond_watch, WATCH_IN);
}
