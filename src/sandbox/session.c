#include "sandbox/session.h"

#include <errno.h>

#include "base/mem.h"
#include "sandbox/agent_link.h"
#include "sandbox/operation_end.h"

struct session_operation {
	struct channel channel;
	on_session_done *on_done;
	void *ctx;
};

static int on_message(struct channel *c, const struct frame *f, int *fds, size_t fd_count)
{
	struct session_operation *op = container_of(c, struct session_operation, channel);
	struct operation_end end;

	(void)fds, (void)fd_count;
	if (f->type != MSG_end) return message_name(f->type) ? -EPROTO : 0;
	if (operation_end_parse(f, &end) < 0) return -EPROTO;
	if (end.reason != END_DONE && end.reason != END_FAILED) return -EPROTO;
	channel_close(&op->channel);
	op->on_done(op->ctx, &end);
	free(op);
	return 0;
}

static void on_lost(struct channel *c, enum end_reason reason, const char *text)
{
	struct session_operation *op = container_of(c, struct session_operation, channel);
	struct operation_end end = operation_end_lost(reason, text);

	op->on_done(op->ctx, &end);
	free(op);
}

static const struct channel_class session_class = {.on_message = on_message, .on_lost = on_lost};

static struct session_operation *start(struct agent_link *link, const struct msg_open_session *m,
				       on_session_done *on_done, void *ctx)
{
	struct session_operation *op;
	size_t size = WIRE_HEADER + msg_open_session_size(m);
	auto_free uint8_t *room = size > WIRE_SPILL_MAX ? NULL : malloc(size);
	struct packet p = {.bytes = room, .room = size};
	int r;

	if (!room) return NULL;
	op = mem_new(sizeof *op);
	op->on_done = on_done;
	op->ctx = ctx;
	if (channel_open(&op->channel, link, &session_class) < 0) {
		free(op);
		return NULL;
	}
	(void)msg_open_session_add(&p, op->channel.number, m);
	r = size <= WIRE_PACKET_MAX ? link_send(agent_link_wire(link), &p, NULL, 0)
				    : link_send_spilled(agent_link_wire(link), &p);
	/* A memory file that could not be made is this operation's bad luck, not the link's. */
	if (r < 0 && r != -EPIPE && r != -ENOBUFS) {
		channel_close(&op->channel);
		free(op);
		return NULL;
	}
	agent_link_sent(link, r);
	return op;
}

struct session_operation *session_make(struct agent_link *link, const char *name,
				       const struct session_spec *spec, on_session_done *on_done, void *ctx)
{
	const struct msg_open_session m = {.name = wire_text_of(name),
					   .how = SESSION_MAKE,
					   .cwd = wire_text_of(spec->cwd),
					   .env = {.items = spec->env, .count = spec->env_count},
					   .timeout_ms = spec->timeout_ms};

	return start(link, &m, on_done, ctx);
}

struct session_operation *session_end(struct agent_link *link, const char *name, on_session_done *on_done,
				      void *ctx)
{
	const struct msg_open_session m = {
		.name = wire_text_of(name), .how = SESSION_END, .cwd = wire_text_of("")};

	return start(link, &m, on_done, ctx);
}

struct session_operation *session_operation_drop(struct session_operation *op)
{
	struct msg_reset m = {0};

	if (!op) return NULL;
	if (op->channel.link) CHANNEL_SEND(&op->channel, reset, &m);
	channel_close(&op->channel);
	free(op);
	return NULL;
}
