#include "keeper/zygote.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/program.h"
#include "isolation/cgroup.h"
#include "loop/loop.h"
#include "wire/link.h"

#define READ_BUDGET 64

struct spawn {
	struct spawn *next;
	int bond_fd;
};

struct zygote {
	struct loop *loop;
	struct cgroups *cgroups;
	on_spawned *on_done;
	void *ctx;
	pid_t pid;
	struct link *link; /* NULL while it is dead */
	struct watch *watch;
	struct timer *restart;
	struct backoff backoff;
	struct spawn *first, **last; /* asked for and not answered yet */
};

static void on_zygote_ready(void *ctx, unsigned events);

static void end(struct zygote *z)
{
	if (!z->link) return;
	z->watch = watch_free(z->watch);
	z->link = link_free(z->link);
	program_end(z->pid);
}

static int start(struct zygote *z, struct err *e)
{
	const char *const args[] = {"zygote", cgroups_namespace_fits(z->cgroups) ? "cgroup-ns" : NULL, NULL};
	struct err no_archives = ERR_NONE;
	auto_close int tar_fd = program_open("tombolo-tar", &no_archives);
	auto_close int home_fd = cgroups_agents_home(z->cgroups, e);
	int ends[2], r;

	/* Without archives a server still serves the rest. */
	if (tar_fd < 0) log_event(LOG_ERROR, "no_archives", "why", no_archives.text, NULL);
	if (home_fd < 0) return home_fd;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(e, -errno, "make a socket pair");
	const int fds[] = {ends[1], home_fd, tar_fd};
	struct program p = {
		.name = "tombolo-agent", .args = args, .fds = fds, .fd_count = tar_fd < 0 ? 2 : 3};
	r = program_start(&p, &z->pid, e);
	fd_close(ends[1]);
	if (r < 0) {
		fd_close(ends[0]);
		return r;
	}
	/* Before its first clone: each is born where its zygote lives. */
	r = cgroups_take_agents(z->cgroups, z->pid, e);
	z->link = link_new(ends[0]);
	z->watch = watch_new(z->loop, link_fd(z->link), on_zygote_ready, z);
	watch_want(z->watch, WATCH_IN);
	if (r < 0) end(z);
	return r;
}

static void answer(struct zygote *z, pid_t pid, const struct err *e)
{
	struct spawn *s = z->first;

	z->first = s->next;
	if (!z->first) z->last = &z->first;
	if (e) s->bond_fd = fd_close(s->bond_fd);
	z->on_done(z->ctx, pid, s->bond_fd, e);
	free(s);
}

static void on_restart(void *ctx)
{
	struct zygote *z = ctx;
	struct err e = ERR_NONE;

	if (start(z, &e) == 0) return;
	log_event(LOG_ERROR, "zygote_not_started", "why", e.text, NULL);
	timer_set(z->restart, backoff_next(&z->backoff, clock_ms()));
}

static void lose(struct zygote *z)
{
	struct err e = {.code = -EPIPE, .text = "the zygote died"};

	log_event(LOG_WARN, "zygote_died", NULL);
	end(z);
	/* First the timer: the callbacks may ask again, and are told no until it has started. */
	timer_set(z->restart, backoff_next(&z->backoff, clock_ms()));
	for (struct spawn *stop = NULL; z->first != stop;)
		answer(z, -1, &e);
}

/* Trust: the zygote is our own program and has met nobody; still only a pid that is our child counts
 * (parking.c). */
static int on_zygote_packet(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct zygote *z = ctx;
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct frame f;
	int r;

	(void)fds;
	(void)fd_count;
	while ((r = frame_reader_next(&reader, &f)) == 1) {
		struct msg_spawned m;
		struct err e;

		if (f.type == MSG_hello) continue;
		if (!z->first || msg_spawned_parse(&f, &m) < 0) return -EPROTO;
		if (m.pid <= 1) (void)err_set(&e, m.pid < 0 ? m.pid : -EPROTO, "clone an agent");
		answer(z, m.pid, m.pid <= 1 ? &e : NULL);
	}
	return r;
}

static void on_zygote_ready(void *ctx, unsigned events)
{
	struct zygote *z = ctx;
	int r = 0;

	if (events & WATCH_OUT) r = link_flush(z->link);
	if (r == 0) r = link_read(z->link, READ_BUDGET, on_zygote_packet, z);
	if (r < 0) lose(z);
	else watch_want(z->watch, link_wants_out(z->link) ? WATCH_IN | WATCH_OUT : WATCH_IN);
}

int zygote_new(struct loop *loop, struct cgroups *cgroups, on_spawned *on_done, void *ctx,
	       struct zygote **ret, struct err *e)
{
	struct zygote *z = mem_new(sizeof *z);
	int r;

	z->loop = loop;
	z->cgroups = cgroups;
	z->on_done = on_done;
	z->ctx = ctx;
	z->last = &z->first;
	z->restart = timer_new(loop, on_restart, z);
	r = start(z, e);
	if (r < 0) {
		zygote_free(z);
		return r;
	}
	*ret = z;
	return 0;
}

struct zygote *zygote_free(struct zygote *z)
{
	if (!z) return NULL;
	timer_free(z->restart);
	end(z);
	while (z->first) {
		struct spawn *s = z->first;

		z->first = s->next;
		fd_close(s->bond_fd);
		free(s);
	}
	free(z);
	return NULL;
}

int zygote_spawn(struct zygote *z)
{
	struct msg_spawn m = {};
	struct spawn *s;
	int ends[2], r;

	if (!z->link) return -EAGAIN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) return -errno;
	r = LINK_SEND(z->link, 0, spawn, &m, &ends[1], 1);
	fd_close(ends[1]);
	if (r < 0) {
		fd_close(ends[0]);
		return r;
	}
	s = mem_new(sizeof *s);
	s->bond_fd = ends[0];
	*z->last = s;
	z->last = &s->next;
	watch_want(z->watch, link_wants_out(z->link) ? WATCH_IN | WATCH_OUT : WATCH_IN);
	return 0;
}
