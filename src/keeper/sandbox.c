/*
 * sandbox.c - a sandbox and its agent: what the agent says, how it comes alive, and those of an earlier
 * keeper. The way up is in line.c and placing.c, the way down in ending.c.
 */
#include "keeper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "isolation/cgroup.h"
#include "isolation/quota.h"
#include "keeper/ahead.h"
#include "keeper/ending.h"
#include "keeper/front.h"
#include "keeper/keeper.h"
#include "keeper/syncing.h"
#include "loop/loop.h"
#include "wire/greeting.h"
#include "wire/link.h"

#define ADOPT_WAIT_MS 20000 /* nobody else waits for it */
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
	for (size_t i = 0; i < ARRAY_LEN(s->limits.fds); i++)
		s->limits.fds[i] = -1;
	s->dead = true;
}

struct sandbox *sandbox_new(struct keeper *k, const char *id, enum sandbox_state state)
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

int sandbox_open_dir(const struct sandbox *s)
{
	int fd = openat(s->keeper->state.sandboxes_fd, s->record.run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

void sandbox_hold_agent(struct sandbox *s, int pidfd)
{
	s->pidfd = pidfd;
	s->pid_watch = watch_new(s->keeper->loop, pidfd, ending_on_death, s);
	watch_want(s->pid_watch, WATCH_IN);
}

void sandbox_hold_bond(struct sandbox *s, int fd)
{
	s->bond = link_new(fd);
	s->bond_watch = watch_new(s->keeper->loop, fd, on_bond_ready, s);
	watch_want(s->bond_watch, WATCH_IN);
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
	} else if (s->state == SANDBOX_PLACING || s->state == SANDBOX_BINDING ||
		   s->state == SANDBOX_CLAIMING) {
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
	else if (s->bond_watch)
		watch_want(s->bond_watch, link_wants_out(s->bond) ? WATCH_IN | WATCH_OUT : WATCH_IN);
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
	if (pidfd >= 0) sandbox_hold_agent(s, pidfd);
	if (connected_fd >= 0) sandbox_hold_bond(s, connected_fd);
	if (pidfd < 0 || connected_fd < 0 || !has_slot || sandbox_greet(rec, connected_fd, ROLE_KEEPER) < 0)
		sandbox_end(s, GONE_DIED, "the server was restarted without it");
	else sandbox_set_timer(s, on_adopt_too_slow, ADOPT_WAIT_MS);
}
