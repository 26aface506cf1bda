#include "sandbox/agent_link.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "loop/loop.h"
#include "wire/greeting.h"

#define PACKETS_A_TURN 8 /* then the loop serves others first */

struct agent_link {
	struct link *wire;
	struct watch *watch;
	struct timer *broken_due;
	struct timer *silence_due; /* armed while somebody awaits something, and then looks again */
	bool silence_watched;
	bool heard;               /* anything, since the timer was armed */
	unsigned awaiting;        /* channels */
	struct channel *channels; /* by number */
	uint32_t last_number;
	bool greeted;
	bool broken;
	const char *why;
	on_link_lost *on_lost;
	void *ctx;
};

struct link *agent_link_wire(struct agent_link *l)
{
	return l->wire;
}

static void rewatch(struct agent_link *l)
{
	watch_want(l->watch, WATCH_IN | (link_wants_out(l->wire) ? WATCH_OUT : 0));
}

/* From here on the link is silent; its owner hears of it from the loop, never from inside a send. */
static void broke(struct agent_link *l, const char *why)
{
	if (l->broken) return;
	l->broken = true;
	l->why = why;
	watch_want(l->watch, 0);
	timer_set(l->broken_due, 0);
}

static const char *why_of(int result)
{
	switch (result) {
	case -EPIPE: return "its agent is gone";
	case -ENOBUFS: return "its agent does not read";
	default: return "its agent broke the protocol";
	}
}

void agent_link_sent(struct agent_link *l, int result)
{
	if (l->broken) return;
	if (result < 0) broke(l, why_of(result));
	else rewatch(l);
}

int channel_send_large(struct channel *c, const struct packet *p)
{
	int r = p->len <= WIRE_PACKET_MAX ? link_send(c->link->wire, p, NULL, 0)
					  : link_send_spilled(c->link->wire, p);

	/* A memory file that could not be made is this operation's bad luck, not the link's. */
	if (r < 0 && r != -EPIPE && r != -ENOBUFS) return r;
	agent_link_sent(c->link, r);
	return 0;
}

/* ---- silence ---- */

static void watch_silence(struct agent_link *l)
{
	l->silence_watched = true;
	l->heard = false;
	timer_set(l->silence_due, AGENT_SILENCE_MAX_MS);
}

static void on_silence_due(void *ctx)
{
	struct agent_link *l = ctx;

	l->silence_watched = false;
	if (!l->awaiting) return;
	if (l->heard) watch_silence(l);
	else broke(l, "its agent does not answer");
}

void channel_await(struct channel *c)
{
	struct agent_link *l = c->link;

	if (!l || c->awaits) return;
	c->awaits = true;
	l->awaiting++;
	if (!l->silence_watched) watch_silence(l);
}

static void answered(struct channel *c)
{
	if (!c->awaits) return;
	c->awaits = false;
	c->link->awaiting--;
}

/* ---- reading ---- */

static int on_hello(struct agent_link *l, const struct frame *f)
{
	struct msg_hello hello;

	/*
	 * May come twice: a link that the keeper made for us begins with its greeting, and the agent answers
	 * each.
	 */
	if (msg_hello_parse(f, &hello) < 0) return -EPROTO;
	if (hello.role != ROLE_AGENT || wire_agree(&hello) < 0) return -EPROTO;
	l->greeted = true;
	return 0;
}

static int on_frame(struct agent_link *l, struct frame *f, int *fds, size_t fd_count)
{
	auto_free void *spilled = NULL;
	struct channel *c = NULL;
	int r;

	if (f->flags & FRAME_SPILLED) {
		if (fd_count == 0) return -EPROTO;
		r = frame_unspill(f, fds[0], &spilled);
		if (r < 0) return -EPROTO;
	}
	if (f->type == MSG_hello) return on_hello(l, f);
	if (!l->greeted) return -EPROTO;
	HASH_FIND(hh, l->channels, &f->channel, sizeof f->channel, c);
	/* No such channel: a message that crossed our reset on its way. */
	if (!c) return 0;
	answered(c);
	return c->class->on_message(c, f, fds, fd_count);
}

static int on_agent_packet(void *ctx, const uint8_t *bytes, size_t len, int *fds, size_t fd_count)
{
	struct agent_link *l = ctx;
	struct frame_reader reader = frame_reader_of(bytes, len);
	struct frame f;
	int r;

	l->heard = true;
	while ((r = frame_reader_next(&reader, &f)) == 1) {
		r = on_frame(l, &f, fds, fd_count);
		if (r < 0) return -EPROTO;
		fd_count = 0; /* descriptors belong to the first frame */
	}
	return r;
}

/* The last packets of an agent that is gone are still in the socket: an `end` among them is worth having. */
static void on_broken(void *ctx)
{
	struct agent_link *l = ctx;

	/* An agent that lives, because the fault was on our side, would never let us come to the end. */
	(void)shutdown(link_fd(l->wire), SHUT_RDWR);
	while (link_read(l->wire, PACKETS_A_TURN, on_agent_packet, l) == 0 && l->channels &&
	       l->why == why_of(-EPIPE))
		;
	l->on_lost(l->ctx, l->why);
}

static void on_ready(void *ctx, unsigned events)
{
	struct agent_link *l = ctx;
	int r = 0;

	if (events & WATCH_OUT) r = link_flush(l->wire);
	if (r == 0 && (events & WATCH_IN)) r = link_read(l->wire, PACKETS_A_TURN, on_agent_packet, l);
	agent_link_sent(l, r);
}

/* ---- life ---- */

struct agent_link *agent_link_new(struct loop *loop, int fd, on_link_lost *on_lost, void *ctx)
{
	struct agent_link *l = mem_new(sizeof *l);
	struct msg_hello hello = {.version = WIRE_VERSION,
				  .oldest = WIRE_OLDEST,
				  .role = ROLE_FRONT,
				  .build = wire_text_of(TOMBOLO_VERSION)};

	l->wire = link_new(fd);
	l->watch = watch_new(loop, fd, on_ready, l);
	l->broken_due = timer_new(loop, on_broken, l);
	l->silence_due = timer_new(loop, on_silence_due, l);
	l->on_lost = on_lost;
	l->ctx = ctx;
	agent_link_sent(l, LINK_SEND(l->wire, 0, hello, &hello, NULL, 0));
	return l;
}

struct agent_link *agent_link_free(struct agent_link *l, enum end_reason reason, const char *text)
{
	if (!l) return NULL;
	l->broken = true; /* what the callbacks below still send goes nowhere */
	while (l->channels) {
		struct channel *c = l->channels;

		channel_close(c);
		c->class->on_lost(c, reason, text);
	}
	watch_free(l->watch);
	timer_free(l->broken_due);
	timer_free(l->silence_due);
	link_free(l->wire);
	free(l);
	return NULL;
}

/* ---- channels ---- */

int channel_open(struct channel *c, struct agent_link *l, const struct channel_class *class)
{
	struct channel *taken;

	if (HASH_COUNT(l->channels) >= CHANNELS_OPEN_MAX) return -EMFILE;
	/*
	 * Numbers wrap after four thousand million operations; a long one may still hold its own. Zero is the
	 * link's.
	 */
	do {
		l->last_number++;
		HASH_FIND(hh, l->channels, &l->last_number, sizeof l->last_number, taken);
	} while (taken || l->last_number == 0);
	c->class = class;
	c->link = l;
	c->number = l->last_number;
	HASH_ADD(hh, l->channels, number, sizeof c->number, c);
	channel_await(c);
	return 0;
}

void channel_close(struct channel *c)
{
	if (!c->link) return;
	answered(c);
	HASH_DEL(c->link->channels, c);
	c->link = NULL;
}

void channel_reset(struct channel *c, bool kill)
{
	const struct msg_reset m = {.kill = kill};

	if (!c->link) return;
	CHANNEL_SEND(c, reset, &m);
	channel_close(c);
}
