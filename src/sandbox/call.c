#include "sandbox/call.h"

#include <errno.h>

#include "base/mem.h"
#include "sandbox/agent_link.h"
#include "sandbox/operation_end.h"

struct call {
	struct channel channel;
	on_call_end *on_end;
	void *ctx;
};

static struct call *call_free(struct call *c)
{
	channel_close(&c->channel);
	free(c);
	return NULL;
}

static int on_message(struct channel *channel, const struct frame *f, int *fds, size_t fd_count)
{
	struct call *c = container_of(channel, struct call, channel);
	struct operation_end end;

	(void)fds, (void)fd_count;
	if (f->type != MSG_end) return message_name(f->type) ? -EPROTO : 0;
	if (operation_end_parse(f, &end) < 0) return -EPROTO;
	if (end.reason != END_DONE && end.reason != END_FAILED) return -EPROTO;
	channel_close(channel);
	c->on_end(c->ctx, &end);
	call_free(c);
	return 0;
}

static void on_lost(struct channel *channel, enum end_reason reason, const char *text)
{
	struct call *c = container_of(channel, struct call, channel);
	struct operation_end end = operation_end_lost(reason, text);

	c->on_end(c->ctx, &end);
	call_free(c);
}

static const struct channel_class call_class = {.on_message = on_message, .on_lost = on_lost};

static struct call *call_new(struct agent_link *link, on_call_end *on_end, void *ctx)
{
	struct call *c = mem_new(sizeof *c);

	c->on_end = on_end;
	c->ctx = ctx;
	return channel_open(&c->channel, link, &call_class) == 0 ? c : call_free(c);
}

struct call *call_drop(struct call *c)
{
	if (!c) return NULL;
	channel_reset(&c->channel, false);
	return call_free(c);
}

/* ---- the messages ---- */

struct call *process_signal(struct agent_link *link, enum process_kind kind, const char *name, int signo,
			    enum signal_how how, on_call_end *on_end, void *ctx)
{
	const struct msg_open_signal m = {
		.kind = (uint8_t)kind, .name = name_sent(name), .signo = signo, .how = (uint8_t)how};
	struct call *c = call_new(link, on_end, ctx);

	if (c) CHANNEL_SEND(&c->channel, open_signal, &m);
	return c;
}

static struct call *session_call(struct agent_link *link, const struct msg_open_session *m,
				 on_call_end *on_end, void *ctx)
{
	struct call *c = call_new(link, on_end, ctx);

	if (c && CHANNEL_SEND_LARGE(&c->channel, open_session, m) < 0) c = call_free(c);
	return c;
}

struct call *session_make(struct agent_link *link, const char *name, const struct session_spec *spec,
			  on_call_end *on_end, void *ctx)
{
	const struct msg_open_session m = {.name = wire_text_of(name),
					   .how = SESSION_MAKE,
					   .cwd = wire_text_of(spec->cwd),
					   .env = {.items = spec->env, .count = spec->env_count},
					   .timeout_ms = spec->timeout_ms};

	return session_call(link, &m, on_end, ctx);
}

struct call *session_end(struct agent_link *link, const char *name, on_call_end *on_end, void *ctx)
{
	const struct msg_open_session m = {
		.name = wire_text_of(name), .how = SESSION_END, .cwd = wire_text_of("")};

	return session_call(link, &m, on_end, ctx);
}
