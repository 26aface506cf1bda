/* follow.c - a log as it comes: events under credit, gaps, the end. The agent's word is judged, event by
 * event. */
#include "sandbox/follow.h"

#include <errno.h>

#include "base/mem.h"
#include "sandbox/follow_private.h"
#include "sandbox/operation_end.h"

/* ---- what the agent says ---- */

static int on_opened(struct follow *f, const struct frame *frame)
{
	struct msg_opened m;

	if (msg_opened_parse(frame, &m) < 0 || f->opened) return -EPROTO;
	f->opened = true;
	f->events->on_opened(f->ctx, m.process_id.at, m.pid);
	return 0;
}

static int on_log(struct follow *f, const struct frame *frame)
{
	struct msg_log m;

	if (msg_log_parse(frame, &m) < 0 || !f->opened || f->only_started) return -EPROTO;
	if (m.stream != STREAM_OUT && m.stream != STREAM_ERR) return -EPROTO;
	if (m.bytes.len == 0 || m.bytes.len > WIRE_DATA_MAX || m.at_ms > WALL_MS_MAX || m.seq <= f->seq)
		return -EPROTO;
	/* More than was paid for would pile up in our memory. */
	if (m.bytes.len > f->allowed) return -EPROTO;
	struct follow_event event = {.seq = m.seq,
				     .at_ms = m.at_ms,
				     .stream = (enum wire_stream)m.stream,
				     .bytes = m.bytes.at,
				     .len = m.bytes.len};
	f->allowed -= m.bytes.len;
	f->seq = m.seq;
	f->events->on_log(f->ctx, &event);
	return 0;
}

static int on_gap(struct follow *f, const struct frame *frame)
{
	struct msg_log_gap m;

	if (msg_log_gap_parse(frame, &m) < 0 || !f->opened || m.seq <= f->seq) return -EPROTO;
	f->seq = m.seq - 1;
	f->events->on_gap(f->ctx, m.seq);
	return 0;
}

static int on_now(struct follow *f)
{
	if (!f->opened || f->caught_up) return -EPROTO;
	f->caught_up = true;
	f->events->on_now(f->ctx);
	return 0;
}

static int on_credit(struct follow *f, const struct frame *frame)
{
	struct msg_credit m;

	if (msg_credit_parse(frame, &m) < 0) return -EPROTO;
	if (m.bytes > WIRE_SPILL_MAX || f->input_allowed > WIRE_SPILL_MAX) return -EPROTO;
	f->input_allowed += m.bytes;
	if (f->events->on_room) f->events->on_room(f->ctx);
	return 0;
}

static int on_end(struct follow *f, const struct frame *frame)
{
	struct operation_end end;

	if (operation_end_parse(frame, &end) < 0) return -EPROTO;
	if (!f->opened && end.reason != END_FAILED && end.reason != END_DELETED && end.reason != END_LOST)
		return -EPROTO;
	channel_close(&f->channel);
	f->events->on_end(f->ctx, &end);
	follow_free(f);
	return 0;
}

static int on_message(struct channel *c, const struct frame *frame, int *fds, size_t fd_count)
{
	struct follow *f = container_of(c, struct follow, channel);

	(void)fds, (void)fd_count;
	switch (frame->type) {
	case MSG_opened: return on_opened(f, frame);
	case MSG_log: return on_log(f, frame);
	case MSG_log_gap: return on_gap(f, frame);
	case MSG_log_now: return on_now(f);
	case MSG_credit: return on_credit(f, frame);
	case MSG_end: return on_end(f, frame);
	default: return message_name(frame->type) ? -EPROTO : 0;
	}
}

static void on_lost(struct channel *c, enum end_reason reason, const char *text)
{
	struct follow *f = container_of(c, struct follow, channel);
	struct operation_end end = operation_end_lost(reason, text);

	f->events->on_end(f->ctx, &end);
	follow_free(f);
}

static const struct channel_class follow_class = {.on_message = on_message, .on_lost = on_lost};

/* ---- the caller's side ---- */

struct follow *follow_new(struct agent_link *link, const struct follow_events *events, void *ctx)
{
	struct follow *f = mem_new(sizeof *f);

	f->events = events;
	f->ctx = ctx;
	f->allowed = FOLLOW_WINDOW;
	if (channel_open(&f->channel, link, &follow_class) == 0) return f;
	free(f);
	return NULL;
}

void follow_free(struct follow *f)
{
	channel_close(&f->channel);
	free(f);
}

struct follow *follow_start(struct agent_link *link, const struct follow_spec *spec,
			    const struct follow_events *events, void *ctx)
{
	struct follow *f = follow_new(link, events, ctx);
	struct msg_open_follow m = {.kind = (uint8_t)spec->kind,
				    .name = name_sent(spec->name),
				    .flags = spec->flags,
				    .since = spec->since,
				    .window = FOLLOW_WINDOW,
				    .cols = spec->cols,
				    .rows = spec->rows};

	if (f) CHANNEL_SEND(&f->channel, open_follow, &m);
	return f;
}

void follow_consumed(struct follow *f, size_t len)
{
	f->consumed += (uint32_t)len;
	/* In large steps, as for a command; half the window is room enough for the largest event. */
	if (f->consumed < FOLLOW_WINDOW / 2) return;
	struct msg_credit m = {.bytes = f->consumed};
	f->allowed += f->consumed;
	f->consumed = 0;
	if (f->channel.link) CHANNEL_SEND(&f->channel, credit, &m);
}

struct follow *follow_drop(struct follow *f)
{
	if (!f) return NULL;
	channel_reset(&f->channel, false);
	follow_free(f);
	return NULL;
}
