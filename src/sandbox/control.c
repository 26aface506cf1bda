#include "sandbox/control.h"

#include <errno.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"
#include "isolation/limits.h"
#include "loop/loop.h"
#include "wire/greeting.h"
#include "wire/link.h"

#define PACKETS_A_TURN 64

struct control {
	struct link *wire;
	struct watch *watch;
	struct timer *lost_due;
	bool lost;
	const struct control_callbacks *callbacks;
	void *ctx;
};

static void lost(struct control *c)
{
	if (c->lost) return;
	c->lost = true;
	watch_want(c->watch, 0);
	timer_set(c->lost_due, 0);
}

static void on_lost_due(void *ctx)
{
	struct control *c = ctx;

	c->callbacks->on_lost(c->ctx);
}

static int sent(struct control *c, int result)
{
	if (c->lost) return -EPIPE;
	if (result < 0) {
		lost(c);
		return -EPIPE;
	}
	watch_want(c->watch, WATCH_IN | (link_wants_out(c->wire) ? WATCH_OUT : 0));
	return 0;
}

/* ---- what the keeper says ---- */

static bool is_id(const struct wire_text *id)
{
	return id_is_sandbox(id->at, id->len);
}

static int on_hello(const struct frame *f)
{
	struct msg_hello m;

	if (msg_hello_parse(f, &m) < 0 || m.role != ROLE_KEEPER) return -EPROTO;
	return wire_agree(&m) < 0 ? -EPROTO : 0;
}

static int on_attached(struct control *c, const struct frame *f, int *fds, size_t fd_count)
{
	struct msg_attached m;

	if (msg_attached_parse(f, &m) < 0 || !is_id(&m.id) || fd_count != 1) return -EPROTO;
	c->callbacks->on_attached(c->ctx, &m, take_fd(&fds[0]));
	return 0;
}

static int on_refused(struct control *c, const struct frame *f)
{
	struct msg_refused m;

	if (msg_refused_parse(f, &m) < 0 || !is_id(&m.id)) return -EPROTO;
	if (m.why < REFUSED_CAPACITY || m.why > REFUSED_INSTANCE) m.why = REFUSED_BACKEND;
	c->callbacks->on_refused(c->ctx, &m);
	return 0;
}

static int on_gone(struct control *c, const struct frame *f)
{
	struct msg_gone m;

	if (msg_gone_parse(f, &m) < 0 || !is_id(&m.id)) return -EPROTO;
	c->callbacks->on_gone(c->ctx, &m);
	return 0;
}

static int on_usage(struct control *c, const struct frame *f)
{
	struct msg_usage m;

	if (msg_usage_parse(f, &m) < 0 || !is_id(&m.id)) return -EPROTO;
	c->callbacks->on_usage(c->ctx, &m);
	return 0;
}

static int on_ready_message(struct control *c, const struct frame *f)
{
	struct msg_ready m;

	if (msg_ready_parse(f, &m) < 0) return -EPROTO;
	c->callbacks->on_ready(c->ctx, &m);
	return 0;
}

static int on_parked(struct control *c, const struct frame *f)
{
	struct msg_parked m;

	if (msg_parked_parse(f, &m) < 0) return -EPROTO;
	c->callbacks->on_parked(c->ctx, &m);
	return 0;
}

static int on_asleep(struct control *c, const struct frame *f)
{
	struct msg_asleep m;

	if (msg_asleep_parse(f, &m) < 0 || !is_id(&m.id)) return -EPROTO;
	c->callbacks->on_asleep(c->ctx, &m);
	return 0;
}

static int on_issued(struct control *c, const struct frame *f)
{
	struct msg_issued m;

	if (msg_issued_parse(f, &m) < 0 || !is_id(&m.id)) return -EPROTO;
	c->callbacks->on_issued(c->ctx, &m);
	return 0;
}

static int on_frame(struct control *c, const struct frame *f, int *fds, size_t fd_count)
{
	switch (f->type) {
	case MSG_hello: return on_hello(f);
	case MSG_attached: return on_attached(c, f, fds, fd_count);
	case MSG_refused: return on_refused(c, f);
	case MSG_gone: return on_gone(c, f);
	case MSG_usage: return on_usage(c, f);
	case MSG_ready: return on_ready_message(c, f);
	case MSG_parked: return on_parked(c, f);
	case MSG_asleep: return on_asleep(c, f);
	case MSG_issued: return on_issued(c, f);
	default: return 0; /* a newer keeper may say more than we know */
	}
}

static int on_keeper_packet(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct control *c = ctx;
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct frame f;
	int r;

	while ((r = frame_reader_next(&reader, &f)) == 1) {
		r = on_frame(c, &f, fds, fd_count);
		if (r < 0) return r;
		fd_count = 0;
	}
	return r;
}

static void on_ready(void *ctx, unsigned events)
{
	struct control *c = ctx;
	int r = 0;

	if (events & WATCH_OUT) r = link_flush(c->wire);
	if (r == 0 && (events & WATCH_IN)) r = link_read(c->wire, PACKETS_A_TURN, on_keeper_packet, c);
	(void)sent(c, r);
}

/* ---- life ---- */

struct control *control_new(struct loop *loop, int fd, const struct control_callbacks *callbacks, void *ctx)
{
	struct control *c = mem_new(sizeof *c);
	struct msg_hello hello = {.version = WIRE_VERSION,
				  .oldest = WIRE_OLDEST,
				  .role = ROLE_FRONT,
				  .build = wire_text_of(TOMBOLO_VERSION)};

	c->wire = link_new(fd);
	c->watch = watch_new(loop, fd, on_ready, c);
	c->lost_due = timer_new(loop, on_lost_due, c);
	c->callbacks = callbacks;
	c->ctx = ctx;
	(void)sent(c, LINK_SEND(c->wire, 0, hello, &hello, NULL, 0));
	return c;
}

struct control *control_free(struct control *c)
{
	if (!c) return NULL;
	watch_free(c->watch);
	timer_free(c->lost_due);
	link_free(c->wire);
	free(c);
	return NULL;
}

/* ---- what we ask ---- */

int control_create(struct control *c, const char *id, const char *instance, const struct limits *own)
{
	struct msg_create m = {.id = wire_text_of(id),
			       .instance = wire_text_of(instance),
			       .memory_bytes = own->memory_bytes,
			       .pids = own->pids,
			       .cpu_milli = own->cpu_milli,
			       .disk_bytes = own->disk_bytes};

	return sent(c, c->lost ? -EPIPE : LINK_SEND(c->wire, 0, create, &m, NULL, 0));
}

int control_remove(struct control *c, const char *id)
{
	struct msg_remove m = {.id = wire_text_of(id)};

	return sent(c, c->lost ? -EPIPE : LINK_SEND(c->wire, 0, remove, &m, NULL, 0));
}

int control_sleep(struct control *c, const char *id)
{
	struct msg_sleep m = {.id = wire_text_of(id)};

	return sent(c, c->lost ? -EPIPE : LINK_SEND(c->wire, 0, sleep, &m, NULL, 0));
}

int control_issue(struct control *c, const char *id, const char *instance, const struct limits *own)
{
	struct msg_issue m = {.id = wire_text_of(id),
			      .instance = wire_text_of(instance),
			      .memory_bytes = own->memory_bytes,
			      .pids = own->pids,
			      .cpu_milli = own->cpu_milli,
			      .disk_bytes = own->disk_bytes};

	return sent(c, c->lost ? -EPIPE : LINK_SEND(c->wire, 0, issue, &m, NULL, 0));
}

int control_inspect(struct control *c, const char *id)
{
	struct msg_inspect m = {.id = wire_text_of(id)};

	return sent(c, c->lost ? -EPIPE : LINK_SEND(c->wire, 0, inspect, &m, NULL, 0));
}

int control_park(struct control *c, unsigned want)
{
	struct msg_park m = {.want = want};

	return sent(c, c->lost ? -EPIPE : LINK_SEND(c->wire, 0, park, &m, NULL, 0));
}
