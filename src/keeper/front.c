#include "keeper/front.h"

#include <errno.h>
#include <string.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/program.h"
#include "isolation/image_host.h"
#include "keeper/issued.h"
#include "keeper/lost.h"
#include "keeper/parts.h"
#include "keeper/sandbox.h"
#include "loop/loop.h"
#include "wire/greeting.h"
#include "wire/link.h"

#define READ_BUDGET 64
#define TELL_TRIES  3

struct front {
	struct keeper *keeper;
	struct front_events events;
	pid_t pid;
	struct link *link; /* NULL while there is none */
	struct watch *watch;
	struct timer *timer; /* until the next start; while stopping, our patience */
	struct backoff backoff;
	bool served_once;             /* `tombolo serve` knows that we serve */
	on_front_stopped *on_stopped; /* set: it is to end */
};

static void on_front_ready(void *ctx, unsigned events);

/* ---- life ---- */

static void end(struct front *f)
{
	if (!f->link) return;
	f->watch = watch_free(f->watch);
	f->link = link_free(f->link);
	program_end(f->pid);
}

static void lose(struct front *f)
{
	end(f);
	if (f->on_stopped) {
		timer_clear(f->timer);
		f->on_stopped(f->keeper);
		return;
	}
	log_event(LOG_ERROR, "front_died", NULL);
	timer_set(f->timer, backoff_next(&f->backoff, clock_ms()));
}

/* Control link, settings, listening sockets become descriptors 3, 4, 5... */
static int run(struct front *f, int control_fd, struct err *e)
{
	const struct keeper_settings *settings = f->keeper->settings;
	int fds[PROGRAM_FDS_MAX] = {control_fd, settings->config_fd};
	char listen[16];
	const char *args[] = {"--control-fd", "3", "--config-fd", "4", "--listen-fds", listen, NULL};
	struct program p = {
		.name = "tombolo-front",
		.args = args,
		.fds = fds,
		.fd_count = 2 + settings->listen_count,
		.drop = true,
		.uid = settings->front_uid,
		.gid = settings->front_gid,
	};

	(void)snprintf(listen, sizeof listen, "%zu", settings->listen_count);
	for (size_t i = 0; i < settings->listen_count; i++)
		fds[2 + i] = settings->listen_fds[i];
	return program_start(&p, &f->pid, e);
}

static void want(struct front *f)
{
	if (f->link) watch_want(f->watch, link_wants_out(f->link) ? WATCH_IN | WATCH_OUT : WATCH_IN);
}

/* A front that cannot be sent to is lost on the loop's next turn: its socket tells so. */
#define FRONT_SEND(f, name, m, fds, count) \
	do { \
		if (!(f)->link) break; \
		if (LINK_SEND((f)->link, 0, name, m, fds, count) < 0) \
			(void)shutdown(link_fd((f)->link), SHUT_RDWR); \
		want(f); \
	} while (0)

static void each_lost(const char *id, const char *why, void *ctx)
{
	front_gone(ctx, id, GONE_DIED, why);
}

/* Thousands of small ones: as many as fit share a packet. */
struct issued_packet {
	struct front *front;
	struct packet packet;
	uint8_t room[8192];
};

static void issued_send(struct issued_packet *p)
{
	struct link *link = p->front->link;

	if (p->packet.len && link && link_send(link, &p->packet, NULL, 0) < 0)
		(void)shutdown(link_fd(link), SHUT_RDWR);
	p->packet.len = 0;
}

static void each_issued(const struct issued_wish *wish, void *ctx)
{
	struct issued_packet *p = ctx;
	struct msg_issued m = {
		.id = wire_text_of(wish->id),
		.instance = wire_text_of(wish->instance),
		.memory_bytes = wish->memory_bytes,
		.pids = wish->pids,
		.cpu_milli = wish->cpu_milli,
		.disk_bytes = wish->disk_bytes,
	};

	if (msg_issued_add(&p->packet, 0, &m) == 0) return;
	issued_send(p);
	(void)msg_issued_add(&p->packet, 0, &m);
}

static void tell_issued(struct front *f)
{
	struct issued_packet p = {.front = f};

	p.packet = (struct packet){.bytes = p.room, .room = sizeof p.room};
	issued_each(f->keeper->issued, each_issued, &p);
	issued_send(&p);
}

/* It says so to the user, and counts us as one that served: more than one try is due to it. */
static void tell_serve(struct front *f)
{
	static const char line[] = "ready\n";

	for (int i = 0; i < TELL_TRIES && !f->served_once; i++)
		f->served_once = fd_write_all(f->keeper->settings->serve_fd, line, sizeof line - 1) == 0;
}

static void tell_all(struct front *f)
{
	const char *missing = image_host_missing();
	struct msg_hello hello = {.version = WIRE_VERSION,
				  .oldest = WIRE_OLDEST,
				  .role = ROLE_KEEPER,
				  .build = wire_text_of(TOMBOLO_VERSION)};
	struct msg_ready ready = {.limit = f->keeper->settings->max_sandboxes,
				  .faults = {.items = &missing, .count = missing ? 1 : 0}};

	FRONT_SEND(f, hello, &hello, NULL, 0);
	lost_each(f->keeper->lost, each_lost, f);
	tell_issued(f);
	f->events.on_started(f->keeper);
	FRONT_SEND(f, ready, &ready, NULL, 0);
	tell_serve(f);
}

int front_start(struct front *f, struct err *e)
{
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(e, -errno, "make a socket pair");
	r = run(f, ends[1], e);
	fd_close(ends[1]);
	if (r < 0) {
		fd_close(ends[0]);
		return r;
	}
	f->link = link_new(ends[0]);
	f->watch = watch_new(f->keeper->loop, link_fd(f->link), on_front_ready, f);
	watch_want(f->watch, WATCH_IN);
	log_event(LOG_INFO, "front_started", "pid", LOG_U(f->pid), NULL);
	tell_all(f);
	return 0;
}

static void on_timer_due(void *ctx)
{
	struct front *f = ctx;
	struct err e = ERR_NONE;

	if (f->on_stopped) {
		log_event(LOG_WARN, "front_killed", "why", "it did not end when asked", NULL);
		lose(f);
	} else if (front_start(f, &e) < 0) {
		log_event(LOG_ERROR, "front_not_started", "why", e.text, NULL);
		timer_set(f->timer, backoff_next(&f->backoff, clock_ms()));
	}
}

struct front *front_new(struct keeper *k, struct front_events events)
{
	struct front *f = mem_new(sizeof *f);

	f->keeper = k;
	f->events = events;
	f->timer = timer_new(k->loop, on_timer_due, f);
	return f;
}

struct front *front_free(struct front *f)
{
	if (!f) return NULL;
	end(f);
	timer_free(f->timer);
	free(f);
	return NULL;
}

static void on_nothing_to_stop(void *ctx)
{
	struct front *f = ctx;

	f->on_stopped(f->keeper);
}

void front_stop(struct front *f, uint64_t patience_ms, on_front_stopped *on_stopped)
{
	f->on_stopped = on_stopped;
	timer_clear(f->timer);
	if (!f->link) {
		loop_defer(f->keeper->loop, on_nothing_to_stop, f);
		return;
	}
	(void)program_signal(f->pid, SIGTERM);
	timer_set(f->timer, patience_ms);
}

/* ---- what it says ---- */

static int on_hello(const struct frame *frame)
{
	struct msg_hello m;
	char why[160];

	if (msg_hello_parse(frame, &m) < 0 || m.role != ROLE_FRONT) return -EPROTO;
	if (wire_agree(&m) >= 0) return 0;
	wire_disagreement(&m, why, sizeof why);
	log_event(LOG_ERROR, "front_of_another_build", "why", why, NULL);
	return -EPROTO;
}

static int on_front_packet(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct front *f = ctx;
	struct frame frame;
	int r;

	(void)fds;
	(void)fd_count;
	while ((r = frame_reader_next(&reader, &frame)) == 1) {
		if (frame.flags) return -EPROTO;
		r = frame.type == MSG_hello ? on_hello(&frame) : f->events.on_request(f->keeper, &frame);
		if (r < 0) return r;
	}
	return r;
}

static void on_front_ready(void *ctx, unsigned events)
{
	struct front *f = ctx;
	int r = 0;

	if (events & WATCH_OUT) r = link_flush(f->link);
	if (r == 0 && events & WATCH_IN) r = link_read(f->link, READ_BUDGET, on_front_packet, f);
	if (r == -EPROTO) log_event(LOG_ERROR, "front_broke_the_protocol", NULL);
	if (r < 0) lose(f);
	else want(f);
}

/* ---- what it is told ---- */

void front_attached(struct front *f, const struct sandbox *s, int link_fd_)
{
	struct msg_attached m = {
		.id = wire_text_of(s->record.id),
		.run = wire_text_of(s->record.run),
		.instance = wire_text_of(s->record.instance),
		.created_ms = s->record.created_ms,
	};

	FRONT_SEND(f, attached, &m, &link_fd_, 1);
}

void front_asleep(struct front *f, const struct sandbox *s)
{
	struct msg_asleep m = {
		.id = wire_text_of(s->record.id),
		.run = wire_text_of(s->record.run),
		.instance = wire_text_of(s->record.instance),
		.created_ms = s->record.created_ms,
		.late = s->state == SANDBOX_ADOPTING,
	};

	FRONT_SEND(f, asleep, &m, NULL, 0);
}

void front_refused(struct front *f, const char *id, enum refusal why, const char *text)
{
	struct msg_refused m = {.id = wire_text_of(id), .why = (uint8_t)why, .text = wire_text_of(text)};

	FRONT_SEND(f, refused, &m, NULL, 0);
}

void front_gone(struct front *f, const char *id, enum gone_why why, const char *text)
{
	struct msg_gone m = {.id = wire_text_of(id), .why = (uint8_t)why, .text = wire_text_of(text)};

	FRONT_SEND(f, gone, &m, NULL, 0);
}

void front_usage(struct front *f, const struct msg_usage *usage)
{
	FRONT_SEND(f, usage, usage, NULL, 0);
}

void front_parked(struct front *f, unsigned ready, bool full)
{
	struct msg_parked m = {.ready = ready, .full = full};

	FRONT_SEND(f, parked, &m, NULL, 0);
}
